"""What people are told: /privacy is true to the settings, and the first notice comes once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.message import ChatRef, DeliveryError, Incoming, Reply
from config.settings import (
    EmbedderSettings,
    ForgetSettings,
    JournalSettings,
    MediaSettings,
    RerankSettings,
    SessionSettings,
    TraceSettings,
)
from tests.conftest import Clock
from tests.servers.openai_server import OpenAIServer
from tests.talk import Screen, Talk, talking

TOLD = "I say this only once"
ON: dict[str, Any] = {"privacy": {"first_notice": True}}
REMOTE = {"openai_base_url": "https://llm.example.org:8443/s3cret/v1", "openai_model": "m"}


async def about(path: Path, clock: Clock, **settings: Any) -> str:
    """What /privacy says under settings."""
    async with talking(path, clock, **settings) as talk:
        return await talk.say("/privacy")


SETTINGS: dict[str, tuple[dict[str, Any], str, str]] = {
    "journal": ({"journal": JournalSettings(keep_days=7)}, "for 7 days\n- ", "for 180 days"),
    "journal for ever": ({"journal": JournalSettings(keep_days=0)}, "replies to them, until you erase them", "180"),
    "traces": ({"trace": TraceSettings(keep_days=3)}, "without words, for 3 days", "for 30 days"),
    "traces for ever": ({"trace": TraceSettings(keep_days=0)}, "until the reply is erased", "for 30 days"),
    "undo": ({"forget": ForgetSettings(undo_minutes=2.5)}, "after 2.5 minutes", "after 10 minutes"),
    "idle": (
        {"session": SessionSettings(idle_minutes=45)} | REMOTE,
        "after 45 minutes of silence",
        "after 30 minutes of silence",
    ),
    "model": (REMOTE, "chat model at llm.example.org, with", "no chat model is connected"),
    "model here": (
        {"openai_base_url": "http://127.0.0.1:11434/v1", "openai_model": "m"},
        "at 127.0.0.1 (this machine)",
        "no chat model is connected",
    ),
    "embedder": (
        REMOTE | {"openai_embedding_model": "e", "embedder": EmbedderSettings(kind="auto")},
        "vectors are made at llm.example.org",
        "vectors are made nowhere",
    ),
    "bundled embedder": (
        {"embedder": EmbedderSettings(kind="local")},
        "vectors are made on this machine",
        "vectors are made nowhere",
    ),
    "reranker": (REMOTE | {"rerank": RerankSettings(model="r")}, "put in order at llm.example.org", "nothing of it"),
    "pictures": (REMOTE | {"media": MediaSettings(images=True)}, "your pictures go there, too", "nothing of it"),
}


@pytest.mark.parametrize("name", SETTINGS)
async def test_privacy_is_true_to_each_setting(tmp_path: Path, clock: Clock, name: str) -> None:
    settings, said, instead_of = SETTINGS[name]
    plain, changed = await about(tmp_path / "a", clock), await about(tmp_path / "b", clock, **settings)
    assert said in changed
    assert said not in plain
    assert instead_of not in changed


async def test_privacy_names_hosts_and_never_what_else_an_address_holds(tmp_path: Path, clock: Clock) -> None:
    told = await about(tmp_path, clock, **REMOTE)
    assert "llm.example.org" in told
    assert not [word for word in ("s3cret", "8443", "https") if word in told]


async def test_privacy_counts_what_there_is_and_tells_of_pauses(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock) as talk:
        await talk.say("My name is Lin and I am allergic to pollen.")
        await talk.say("My name is Bo.", user="2002")
        told = await talk.say("/privacy")
        assert "1 of your messages and 0 of my replies" in told
        assert "2 lines of a profile, 0 events and 0 facts" in told
        assert "paused" not in told
        await talk.say("/pause", chat="group:1")
        assert "Learning is paused in 1 other chat." in await talk.say("/privacy")
        await talk.say("/pause")
        await talk.say("I like tea.")
        told = await talk.say("/privacy")
        assert "1 line of what was said in a pause" in told
        assert "paused in this chat and in 1 more" in told
        assert "1 of your messages" in told
        (reply,) = await talk.ask("/privacy", chat="group:1")
        assert reply.private


async def test_privacy_says_all_of_it_in_chinese(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock) as talk:
        told = await talk.say("/privacy", language="zh-Hans")
        assert "保留 180 天" in told
        assert "10 分钟后彻底抹掉" in told


async def test_the_first_answer_says_once_what_is_remembered(tmp_path: Path, clock: Clock) -> None:
    async with OpenAIServer() as server:
        server.on(reply="Hello there")
        async with talking(tmp_path, clock, server, **ON) as talk:
            said = await talk.say("hi")
            assert said.startswith("Hello there\n\n")
            assert TOLD in said
            assert TOLD not in await talk.say("hi again")
            assert TOLD in await talk.say("hi", user="2002")
            assert TOLD not in talk.everything_stored()
        async with talking(tmp_path, clock, server, **ON) as talk:
            assert TOLD not in await talk.say("hi")
            assert TOLD not in await talk.say("hi", user="2002")


async def test_start_says_it_itself_and_other_commands_carry_it(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock, **ON) as talk:
        assert TOLD not in await talk.say("/start")
        assert TOLD not in await talk.say("hello")
        assert TOLD in await talk.say("/help", user="2002")
        assert TOLD not in await talk.say("hello", user="2002")
        assert TOLD not in await talk.say("/privacy", user="3003")
        assert TOLD not in await talk.say("hello", user="3003")


async def test_a_setting_leaves_it_out(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock, privacy={"first_notice": False}) as talk:
        assert TOLD not in await talk.say("hello")


async def test_in_a_group_it_is_private_or_one_line(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock, **ON) as talk:
        answer, notice = await talk.ask("hello", chat="group:1")
        assert TOLD not in answer.text
        assert (notice.private, notice.hint) == (True, "")
        assert TOLD in notice.text
        assert "\n" not in notice.closed
        assert len(await talk.ask("hello again", chat="group:1")) == 1
        assert TOLD not in await talk.say("hello")


async def test_a_failed_answer_leaves_the_notice_to_the_next(tmp_path: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(tmp_path, clock, server, **ON) as talk:
        server.fault(match="/chat/completions", status=401)
        assert TOLD not in await talk.say("hi")
    async with OpenAIServer() as server, talking(tmp_path, clock, server, **ON) as talk:
        server.on(reply="Hello there")
        assert TOLD in await talk.say("hi", id="later")


class Torn(Screen):
    """A platform that takes no reply."""

    def __init__(self, **how: bool) -> None:
        super().__init__()
        self.how = how

    async def send(self, reply: Reply) -> str | None:
        await super().send(reply)
        raise DeliveryError("torn", **self.how)


async def through(talk: Talk, screen: Screen, number: str) -> None:
    """Have a message of 1001 answered on a screen."""
    chat = ChatRef("test", "dm:1001")
    await talk.app.conversation.submit(
        Incoming(chat, "1001", "Lin", number, "hi", talk.clock.advance(minutes=1)), screen
    )
    await screen.finished.wait()


@pytest.mark.parametrize("how", [{}, {"unknown": True}, {"later": True}], ids=["refused", "unknown", "later"])
async def test_a_notice_comes_again_only_where_it_is_sure_not_to_have_arrived(
    tmp_path: Path, clock: Clock, how: dict[str, bool]
) -> None:
    async with OpenAIServer() as server:
        server.on(reply="Hello there")
        async with talking(tmp_path, clock, server, **ON) as talk:
            torn = Torn(**how)
            await through(talk, torn, "x1")
            assert TOLD in torn.replies[0].text
        async with talking(tmp_path, clock, server, **ON) as talk:
            # After a kill the answer that waits is the one that carried it, and carries it still.
            waiting = await talk.app.memory.waiting("test", since=clock.advance(minutes=-5))
            assert len(waiting) == int("later" in how)
            assert (TOLD in await talk.say("hello again")) == (how == {})
