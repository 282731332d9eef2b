"""What a model was led to say calls nobody and carries no word away by itself."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bot.markdown import Mark, Part, telegram_parts, uncalled, unopened
from tests.conftest import Clock
from tests.stages.world import world_on

LEAKS = [
    case["text"]
    for line in (Path(__file__).parent / "cases" / "injections.jsonl").read_text("utf-8").splitlines()
    if (case := json.loads(line))["aim"] == "leak"
]
SUPPRESS_EMBEDS = 1 << 2
ADDRESS = "https://evil.example/?q=SECRET"


def coded(message: dict[str, Any]) -> list[str]:
    """What of a message is marked as code."""
    return [
        message["text"][entity["offset"] : entity["offset"] + entity["length"]]
        for entity in message.get("entities") or ()
        if entity["type"] == "code"
    ]


async def test_in_a_telegram_group_no_name_rings_and_in_private_names_stay_names(data_dir: Path, clock: Clock) -> None:
    async with world_on("telegram", data_dir, clock) as world:
        world.model.on(reply=f"Ask **@alice_w** and @bob_w; mail bo@x.example, see {ADDRESS}")
        await world.ask("Whom shall I ask?", room="group")
        await world.ask("Whom shall I ask?")
        server = world.stage.server  # type: ignore[attr-defined]
        # A long answer grows: it is sent once and then edited, as often as there is time for.
        shown = [request.params for request in server.requests if request.method in {"sendMessage", "editMessageText"}]
    in_group, in_private = ([one for one in shown if (one["chat_id"] < 0) is group] for group in (True, False))
    for one in in_group:
        assert coded(one) == re.findall(r"(?<!\w)@\w+", one["text"])
    assert coded(in_group[-1]) == ["@alice_w", "@bob_w"]
    assert "@alice_w" in in_private[-1]["text"]
    assert not any(coded(one) for one in in_private)
    for one in shown:
        assert one["link_preview_options"] == {"is_disabled": True}


@pytest.mark.parametrize("room", ["private", "group"])
async def test_on_discord_no_address_is_fetched_for_a_preview_and_nobody_is_called(
    data_dir: Path, clock: Clock, room: str
) -> None:
    async with world_on("discord", data_dir, clock) as world:
        world.model.on(reply="\n".join(LEAKS))
        await world.ask("What do you say?", room=room)  # type: ignore[arg-type]
        server = world.stage.server  # type: ignore[attr-defined]
        posted = [request.body for request in server.sent("POST .*/messages$")]
    assert posted
    for body in posted:
        assert body["flags"] & SUPPRESS_EMBEDS
        assert body["allowed_mentions"]["parse"] == []


def test_an_answer_to_a_slash_command_has_its_addresses_in_brackets() -> None:
    shown = unopened(Part(f"See {ADDRESS}. [x]({ADDRESS}) ![i]({ADDRESS}) <{ADDRESS}> `{ADDRESS}`")).text
    assert shown == f"See <{ADDRESS}>. [x](<{ADDRESS}>) ![i](<{ADDRESS}>) <{ADDRESS}> `{ADDRESS}`"
    assert unopened(Part("see https://en.example/A_(b), ok")).text == "see <https://en.example/A_(b)>, ok"
    block = f"```\n{ADDRESS}\n```"
    assert unopened(Part(block)).text == block
    assert len(unopened(Part("http://a " * 177)).text) <= 2_000


def test_many_names_are_one_stretch_of_code_and_code_stays_code() -> None:
    (many,) = telegram_parts(" ".join(f"@user{number}" for number in range(150)), markdown=True)
    assert [mark.kind for mark in uncalled(many).marks] == ["code"]
    (code,) = telegram_parts("`@property` and @alice_w", markdown=True)
    assert uncalled(code).marks == (Mark("code", 0, 9), Mark("code", 14, 8))
    plain = Part("nobody@example.org is an address")
    assert uncalled(plain) is plain


@pytest.mark.parametrize("text", LEAKS)
def test_no_mark_of_a_telegram_message_leads_anywhere_but_to_the_web(text: str) -> None:
    for part in telegram_parts(text, markdown=True):
        for mark in uncalled(part).marks:
            assert mark.url is None or mark.url.startswith(("http://", "https://"))
            assert mark.kind not in {"text_mention", "mention", "custom_emoji"}
