"""The operator's persona: for all, or for a chat; it reaches the system prompt and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.check import look_at_persona
from bot.message import ChatRef
from bot.personas import persona_for
from config.settings import ModelSettings, Settings
from tests.conftest import Clock
from tests.servers.openai_server import OpenAIServer
from tests.talk import talking

EVERYWHERE = "You are the ferryman."
GROUP, TOPIC, SERVER, CHANNEL = (
    "You are the group's.",
    "You are the topic's.",
    "You are the server's.",
    "The channel's.",
)
SETTINGS = Settings(
    persona=EVERYWHERE,
    personas={
        "telegram:-100500": GROUP,
        "telegram:-100500/12": TOPIC,
        "discord:900": SERVER,
        "discord:901": CHANNEL,
    },
)


@pytest.mark.parametrize(
    ("chat", "persona"),
    [
        (ChatRef("telegram", "group:-100500", private=False), GROUP),
        (ChatRef("telegram", "group:-100500", private=False, thread="12"), TOPIC),
        (ChatRef("telegram", "group:-100500", private=False, thread="13"), GROUP),
        (ChatRef("telegram", "dm:1001"), EVERYWHERE),
        (ChatRef("telegram", "dm:900"), EVERYWHERE),
        (ChatRef("telegram", "group:-7", private=False, thread="901"), EVERYWHERE),
        (ChatRef("discord", "guild:900/901", private=False), CHANNEL),
        (ChatRef("discord", "guild:900/902", private=False), SERVER),
        (ChatRef("discord", "guild:900/902", private=False, thread="901"), CHANNEL),
        (ChatRef("discord", "dm:12"), EVERYWHERE),
    ],
)
def test_the_narrowest_persona_of_a_place_counts(chat: ChatRef, persona: str) -> None:
    assert persona_for(SETTINGS, chat) == persona


async def test_a_persona_is_in_the_system_prompt_of_its_chat_and_nowhere_else(
    data_dir: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.talk.PLATFORM", "telegram")
    voices = {"persona": "ALLVOICE", "personas": {"telegram:-5": "You are the GROUPVOICE."}}
    async with OpenAIServer() as server, talking(data_dir, clock, server, **voices) as talk:
        server.on(reply="ok")
        for place, voice in (("dm:1001", "ALLVOICE"), ("group:-5", "GROUPVOICE")):
            await talk.say("How do you do today?", chat=place)
            system, *rest = (str(message["content"]) for message in server.chats[-1].messages)
            assert voice in system
            assert not any(voice in words for words in rest)
        assert "VOICE" not in talk.everything_stored()


def test_check_names_the_places_and_warns_of_a_persona_that_fills_the_context() -> None:
    assert look_at_persona(Settings()) == []
    (found,) = look_at_persona(Settings(persona="Be dry."))
    assert (found.level, found.what) == ("ok", "persona: one for all, at most 4 tokens")
    (found,) = look_at_persona(SETTINGS)
    assert found.what.startswith("persona: everywhere else, telegram:-100500, telegram:-100500/12, discord:900,")
    (found,) = look_at_persona(Settings(persona="dry " * 500, model=ModelSettings(context_tokens=4_096)))
    assert (found.level, found.fix) == ("warn", "it goes with every request; 4,096 tokens is all there is")
