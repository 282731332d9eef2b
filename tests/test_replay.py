"""Replay: every kind of line, what comes out for it, and time that the lines drive."""

from __future__ import annotations

import contextlib
import io
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bot.replay import replay
from config.settings import Settings
from memory import DATABASE_NAME
from tests.servers.openai_server import OpenAIServer
from tests.talk import NO_EMBEDDER

Json = dict[str, Any]


def settings(data_dir: Path, server: OpenAIServer | None = None) -> Settings:
    """Words alone, and the model of ``server`` if there is one."""
    if server is None:
        return Settings(data_dir=data_dir, zone="UTC", embedder=NO_EMBEDDER)
    return Settings(
        data_dir=data_dir,
        zone="UTC",
        embedder=NO_EMBEDDER,
        openai_base_url=server.base_url,
        openai_model="scripted",
    )


def message(text: str, **fields: Any) -> Json:
    """A message of 1001 in the private chat; the minute of ``at`` is its number."""
    number = fields.pop("n", 0)
    base = {"at": f"2026-03-02T12:{number:02d}:00+00:00", "platform": "telegram", "chat": "dm:1001", "user": "1001"}
    return base | {"name": "Lin", "id": f"m{number}", "text": text} | fields


async def play(config: Settings, lines: Sequence[Json | str]) -> tuple[int, list[Json]]:
    """Play lines (raw when they are strings) and return the exit code and what came out."""
    raw = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    out = io.StringIO()
    code = await replay(config, io.StringIO(raw), out)
    return code, [json.loads(line) for line in out.getvalue().splitlines()]


def every_byte(folder: Path) -> bytes:
    """The bytes of every data file."""
    return b"".join(file.read_bytes() for file in folder.iterdir())


async def test_a_message_gives_its_replies_buttons_and_the_trace_with_the_request(data_dir: Path) -> None:
    async with OpenAIServer() as server:
        server.on("allergic to\\?", reply="To pollen.", when_prompt_contains="I am allergic to pollen")
        server.on(reply="ok")
        code, (first, second) = await play(
            settings(data_dir, server), [message("I am allergic to pollen"), message("What am I allergic to?", n=1)]
        )
    assert code == 0
    assert (first["id"], first["replies"], first["buttons"]) == ("m0", ["ok"], [])
    assert first["trace"]["learned"][0]["text"] == "I am allergic to pollen"
    assert second["replies"] == ["To pollen."]
    assert [row["role"] for row in second["trace"]["request"]] == ["system", "user", "assistant", "user"]
    assert "pollen" in second["trace"]["recalled"][0]["text"]
    assert second["trace"]["tokens"]["in"] > 0


async def test_a_bot_line_is_imported_and_a_line_without_reply_is_only_learned_from(data_dir: Path) -> None:
    async with OpenAIServer() as server:
        server.on(reply="ok")
        _, out = await play(
            settings(data_dir, server),
            [
                message("I am allergic to pollen", reply=False),
                message("That sounds bad.", role="assistant", id="b1", n=1),
                message("That sounds bad.", role="assistant", id="b1", n=2),
                message("What do you think of it?", n=3),
            ],
        )
        roles = [(row["role"], row["content"]) for row in server.chats[0].messages[1:]]
    assert [line["replies"] for line in out] == [[], [], [], ["ok"]]
    assert out[0]["trace"]["learned"][0]["action"] == "added"
    assert roles[:2] == [("user", "I am allergic to pollen"), ("assistant", "That sounds bad.")]
    assert len(roles) == 3


async def test_groups_threads_quotes_forwards_and_what_is_not_addressed(data_dir: Path) -> None:
    group = {"chat": "group:-500", "thread": "7"}
    async with OpenAIServer() as server:
        server.on(reply="ok")
        _, out = await play(
            settings(data_dir, server),
            [
                message("nobody hears this", addressed=False, **group),
                message(
                    "What?", n=1, reply_to={"id": "9", "user": "1002", "text": "I live in Rome", "name": "Bo"}, **group
                ),
                message("I live in Rome", n=2, forward_from="Bo"),
                message("hi there, friends of mine", n=3, chat="guild:900/c1", user=1002, platform="discord"),
                {"dump": "1001", "platform": "telegram"},
            ],
        )
        asked = [request.last_user for request in server.chats]
    assert [line["replies"] for line in out[:4]] == [[], ["ok"], ["ok"], ["ok"]]
    assert "by Bo" in asked[0]
    assert asked[0].endswith("Lin: What?")
    assert "forwards this message by Bo" in asked[1]
    assert asked[2] == "Lin: hi there, friends of mine"
    assert out[4] == {"dump": "1001", "memories": [], "notices": []}
    assert (out[0]["trace"], out[1]["trace"]["question"] > 0) == (None, True)


async def test_the_same_id_again_is_the_same_message(data_dir: Path) -> None:
    _, out = await play(settings(data_dir), [message("I live in Oslo"), message("I live in Oslo")])
    assert [len(line["replies"]) for line in out] == [1, 0]


async def test_forgetting_by_button_ends_in_a_receipt_when_time_has_passed(data_dir: Path) -> None:
    config = settings(data_dir)
    _, asked = await play(config, [message("I live in Oslo"), message("/forget Oslo", n=1)])
    assert [button["label"] for button in asked[1]["buttons"]] == ["Forget it", "Keep"]
    _, out = await play(
        config,
        [
            message("/forget Oslo", n=2),
            {"press": asked[1]["buttons"][0]["id"], "user": "1001"},
            message("/forget yes", n=3),
            {"restart": True},
            {"advance": 300},
            {"advance": 300},
            {"dump": 1001, "platform": "telegram"},
        ],
    )
    assert out[1]["error"] == f"line 2: no button {asked[1]['buttons'][0]['id']} was shown in this replay"
    assert out[2]["replies"][0].startswith("Hidden at once: 1 memory")
    assert out[3] == {"restart": True, "notices": []}
    assert (out[4]["advanced"], out[4]["notices"]) == (300.0, [])
    (receipt,) = out[5]["notices"]
    assert (receipt["platform"], receipt["chat"]) == ("telegram", "dm:1001")
    assert receipt["text"].startswith("Erased for good: 1 memory")
    assert out[5]["jobs"]
    assert out[6]["memories"] == []
    assert b"Oslo" not in every_byte(data_dir)


async def test_a_button_obeys_its_owner_alone(tmp_path: Path) -> None:
    lines = [message("I live in Oslo"), message("/forget Oslo", n=1)]
    _, rehearsed = await play(settings(tmp_path / "rehearsal"), lines)
    pressed = {"press": rehearsed[1]["buttons"][0]["id"], "at": "2026-03-02T12:02:00Z"}
    _, out = await play(settings(tmp_path / "data"), [*lines, pressed | {"user": 1002}, pressed | {"user": 1001}])
    assert [answer["press"] for answer in out[2:]] == [pressed["press"]] * 2
    assert out[2]["replies"][0].startswith("That choice is no longer open")
    assert out[3]["replies"][0].startswith("Hidden at once: 1 memory")
    assert "at 13:12;" in out[3]["replies"][0], "the clock of who lives in Oslo"
    assert [button["label"] for button in out[3]["buttons"]] == ["Undo"]


async def test_a_dump_shows_live_and_closed_memories_with_their_evidence(data_dir: Path) -> None:
    _, out = await play(
        settings(data_dir),
        [
            message("I live in Oslo"),
            message("I live in Rome now", n=1),
            message("/remember I am off sick on 5 March 2026", n=2),
            {"dump": "1001", "platform": "telegram"},
            {"dump": "nobody", "platform": "telegram"},
        ],
    )
    homes = [row for row in out[3]["memories"] if row.get("attribute") == "home"]
    assert [(row["value"], row["live"]) for row in homes] == [("Oslo", False), ("Rome", True)]
    old, new = homes
    assert old["successor"] == new["id"]
    assert old["retired_at"] is not None
    assert new["audience"] == "private"
    assert new["source"] == "user"
    assert new["said_at"] == "2026-03-02T12:01:00+00:00"
    (citation,) = new["citations"]
    assert (citation["quote"], citation["at"]) == ("I live in Rome now", "2026-03-02T12:01:00+00:00")
    assert out[4]["memories"] == []


async def test_a_restart_loses_nothing(data_dir: Path) -> None:
    async with OpenAIServer() as server:
        server.on("Which", reply="yes", when_prompt_contains=["The number is forty-two", "noted"])
        server.on(reply="noted")
        _, out = await play(
            settings(data_dir, server),
            [message("The number is forty-two"), {"restart": True}, message("Which number?", n=1)],
        )
    assert out[1] == {"restart": True, "notices": []}
    assert out[2]["replies"] == ["yes"]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ({"edit": "m0", "text": "new words"}, "edit"),
        ({"delete": "m0"}, "delete"),
        ({"join": "group:-500", "user": "1001"}, "join"),
        ({"leave": "group:-500", "user": "1001", "at": "2026-03-02T12:00:00Z"}, "leave"),
    ],
)
async def test_what_comes_later_is_accepted_and_answered_with_not_yet(data_dir: Path, line: Json, name: str) -> None:
    assert await play(settings(data_dir), [line]) == (0, [{"not yet": name, "notices": []}])


WRONG: list[tuple[Json | str, str]] = [
    ("{", "no JSON"),
    ("[1]", "no JSON object"),
    ("[" * 100_000, "no JSON"),
    ('{"advance": ' + "9" * 5_000 + "}", "no JSON"),
    ({"text": "hi"}, "at: Field required"),
    (message("hi", at="2026-03-02T12:00:00"), "at: "),
    (message("hi", at="0001-01-01T00:00:00+14:00"), "at: "),
    (message("hi", chat="room 5"), "chat: "),
    (message("hi", colour="blue"), "colour: "),
    (message("hi", role="system"), "role: "),
    ({"advance": -1}, "advance: "),
    ({"advance": 1e300}, "advance: "),
    ({"restart": False}, "restart: "),
    ({"dump": "1001"}, "platform: "),
    ({"press": "forget:1:all", "user": "1001"}, "no button"),
]


async def test_each_wrong_line_is_named_with_its_number_and_the_rest_goes_on(data_dir: Path) -> None:
    lines: list[Json | str] = [wrong for wrong, _ in WRONG]
    code, out = await play(settings(data_dir), ["", *lines, "  ", message("I live in Oslo")])
    assert code == 1
    assert len(out) == len(WRONG) + 1
    for number, (answer, (_, said)) in enumerate(zip(out, WRONG, strict=False), 2):
        assert list(answer) == ["error", "notices"]
        assert answer["error"].startswith(f"line {number}: ")
        assert said in answer["error"]
    assert out[-1]["replies"][0].startswith("Noted: I live in Oslo")


@pytest.mark.parametrize("text", ["", "half \ud83d of a pair", "bell\x07 and null\x00", "👩‍👩‍👧‍👦", "x" * 100_000])
async def test_odd_text_reaches_the_bot_and_is_answered(data_dir: Path, text: str) -> None:
    code, (answer,) = await play(settings(data_dir), [message(text)])
    assert code == 0
    assert len(answer["replies"]) == 1


async def test_jobs_run_when_the_lines_let_time_pass(data_dir: Path) -> None:
    async with OpenAIServer() as server:
        server.on("JSON|json", reply='{"items": []}')
        server.on(reply="ok")
        _, out = await play(
            settings(data_dir, server), [message("I had a long day at the lake today"), {"advance": 3_600}]
        )
        assert len(server.chats) == 2
    assert "distil" in " ".join(out[1]["jobs"])


async def test_one_bot_line_told_to_two_people_is_a_wrong_line_and_the_rest_goes_on(data_dir: Path) -> None:
    line = {"role": "assistant", "id": "b1", "chat": "group:-500"}
    code, out = await play(
        settings(data_dir),
        [
            message("Dinner is at eight.", **line),
            message("Dinner is at eight.", n=1, **line | {"user": "1002"}),
            message("I live in Oslo", n=2),
        ],
    )
    assert code == 1
    assert out[0] == {"id": "b1", "replies": [], "buttons": [], "trace": None, "notices": []}
    assert out[1]["error"].startswith("line 2: not imported")
    assert out[2]["replies"][0].startswith("Noted: I live in Oslo")


async def test_a_receipt_that_falls_due_during_a_line_of_somebody_else_is_a_notice_of_its_own(data_dir: Path) -> None:
    _, out = await play(
        settings(data_dir),
        [
            message("I live in Oslo"),
            message("/forget Oslo", n=1),
            message("/forget yes", n=2),
            message("I live in Rome", n=20, platform="discord", chat="dm:2002", user="2002"),
            message("I like it there", n=21, platform="discord", chat="dm:2002", user="2002"),
        ],
    )
    assert [line["trace"] for line in out[1:3]] == [None, None]
    (receipt,) = out[3]["notices"]
    assert (receipt["platform"], receipt["chat"]) == ("telegram", "dm:1001")
    assert receipt["text"].startswith("Erased for good")
    assert [reply.startswith("Noted: I live in Rome") for reply in out[3]["replies"]] == [True]
    assert out[4]["notices"] == []


async def test_a_dump_names_where_a_memory_may_be_used(data_dir: Path) -> None:
    _, out = await play(
        settings(data_dir),
        [
            message("I live in Oslo"),
            message("I am allergic to pollen", n=1, chat="group:-500"),
            {"dump": "1001", "platform": "telegram"},
        ],
    )
    assert {row["text"]: row["audience"] for row in out[2]["memories"]} == {
        "I live in Oslo": "private",
        "I am allergic to pollen": "group:-500",
    }


async def test_a_dump_as_the_first_line_knows_what_has_expired(data_dir: Path) -> None:
    await play(settings(data_dir), [message("I live in Oslo"), message("I am allergic to pollen", n=5)])
    with contextlib.closing(sqlite3.connect(data_dir / DATABASE_NAME)) as connection, connection:
        connection.execute("UPDATE profile SET expires_at = said_at + 1000000 WHERE attribute = 'home'")
    _, (dumped,) = await play(settings(data_dir), [{"dump": "1001", "platform": "telegram"}])
    lives = {row["text"]: row["live"] for row in dumped["memories"]}
    assert lives == {"I live in Oslo": False, "I am allergic to pollen": True}
