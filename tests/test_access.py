"""The door: nobody is let in but by an admin, and nothing stays of who is not, whatever they send and wherever."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from bot.message import ChatRef, Deleted, Edited, Incoming, Media, Moved
from config.settings import AccessSettings
from memory import DATABASE_NAME, opening
from memory.access import LASTS, MOST_ASKING, REFUSED_FOR, TRIES, TRIES_WITHIN
from memory.db import Database
from tests.conftest import Clock
from tests.servers.openai_server import OpenAIServer
from tests.talk import PLATFORM, Screen, Talk, talking

ADMIN = AccessSettings(admins=("test:1001",))
SECRET = "zanzibarine"
STRANGER = "2002"


def code_in(text: str) -> str:
    """The code that a stranger was shown."""
    (line,) = [line for line in text.splitlines() if any(sign in line for sign in ("this code on", "配对码", "配對碼"))]
    return line[-9:]


async def let_in(talk: Talk, user: str = STRANGER) -> None:
    """Have a stranger ask and the admin approve."""
    code = code_in(await talk.say("hello", user=user))
    assert "may talk to me now" in await talk.say(f"/approve {code}")


def nothing_is_kept(talk: Talk, user: str = STRANGER) -> bool:
    """Whether there is no line and no account of somebody."""
    return not talk.rows("SELECT 1 FROM journal") and not talk.rows(f"SELECT 1 FROM accounts WHERE user_id = '{user}'")


# ---- strangers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "language", "greeting"),
    [
        (f"Hi there, I am allergic to {SECRET}", "en", "Hello! I talk only to people who were let in"),
        (f"你好，我对{SECRET}过敏", "zh", "你好！我只跟管理员同意过的人聊天"),
        (f"你好，我對{SECRET}過敏，請問你是誰？", "zh-TW", "你好！我只跟管理員同意過的人聊天"),
        ("/start", "zh-Hant", "你好！我只跟管理員同意過的人聊天"),
        ("/help", "en", "Hello! I talk only to people who were let in"),
    ],
)
async def test_a_stranger_is_answered_once_with_a_code_and_nothing_of_it_stays(
    data_dir: Path, clock: Clock, words: str, language: str, greeting: str
) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server, access=ADMIN) as talk:
        (told,) = await talk.ask(words, user=STRANGER, language=language)
        assert told.text.startswith(greeting)
        code = code_in(told.text)
        assert await talk.ask(f"Are you there? I said {SECRET}", user=STRANGER) == []
        assert await talk.ask("/forget everything", user=STRANGER) == []
        assert server.chats == []
        assert nothing_is_kept(talk)
        stored = talk.everything_stored()
        assert SECRET not in stored
        assert code not in stored
        assert code.replace("-", "") not in stored


async def test_a_code_is_shown_again_after_a_day_and_the_old_one_is_void(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock, access=ADMIN) as talk:
        old = code_in(await talk.say("hello", user=STRANGER))
        clock.advance(seconds=LASTS.total_seconds() - 300)
        assert await talk.say("hello?", user=STRANGER) == ""
        clock.advance(minutes=10)
        new = code_in(await talk.say("hello!", user=STRANGER))
        assert "no code that works" in await talk.say(f"/approve {old}")
        assert f"test:{STRANGER} is let in" in await talk.say(f"/approve {new}")


async def test_files_edits_presses_and_forwards_of_a_stranger_are_not_taken_either(
    data_dir: Path, clock: Clock
) -> None:
    read: list[int] = []

    async def content(limit: int) -> bytes:
        read.append(limit)
        return SECRET.encode()

    async with OpenAIServer() as server, talking(data_dir, clock, server, access=ADMIN) as talk:
        media = (Media("file", content, "note.txt", "text/plain", 9),)
        assert "pass this code on" in await talk.say("", user=STRANGER, media=media)
        assert await talk.ask(SECRET, user=STRANGER, forward_from="Kim") == []
        assert await talk.press("forget:1:yes", user=STRANGER) == ""
        assert await talk.press("language:zh", user=STRANGER) == ""
        chat = ChatRef(PLATFORM, f"dm:{STRANGER}")
        said = Incoming(chat, STRANGER, "Kim", "e1", SECRET, clock())
        screen = Screen()
        await talk.app.conversation.submit(Edited(said, clock()), screen)
        await screen.finished.wait()
        assert screen.replies == []
        assert read == []
        assert server.chats == []
        assert nothing_is_kept(talk)
        assert SECRET not in talk.everything_stored()


async def test_a_crowd_of_strangers_does_not_fill_the_file(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock, access=ADMIN) as talk:
        answers = [await talk.say("hello", user=str(user)) for user in range(5_000, 5_000 + MOST_ASKING + 5)]
        assert [bool(answer) for answer in answers] == [True] * MOST_ASKING + [False] * 5
        assert talk.rows("SELECT count(*) FROM pairing") == [(MOST_ASKING,)]


# ---- admins ----------------------------------------------------------------------------------------------


async def test_an_admin_lets_a_stranger_in_from_chat_and_they_are_told(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server, access=ADMIN) as talk:
        server.on(reply="Hello Kim")
        told = await talk.say("你好，你是谁呀", user=STRANGER)
        answer = await talk.say(f"/approve {code_in(told).lower().replace('-', ' ')}")
        assert answer == f"test:{STRANGER} is let in and may talk to me now. /deny test:{STRANGER} takes it back."
        (owed,) = await talk.app.memory.notices()
        assert (owed.owner.user_id, owed.key, owed.notice.phrase) == (STRANGER, f"dm:{STRANGER}", "access.welcome")
        assert owed.owner.language == "zh"
        assert await talk.say("How are you?", user=STRANGER) == "Hello Kim"
        assert "no code that works" in await talk.say(f"/approve {code_in(told)}")


async def test_only_admins_may_and_only_they_are_shown_how(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock, access=ADMIN) as talk:
        await let_in(talk)
        code = code_in(await talk.say("hello", user="3003"))
        for command in (f"/approve {code}", f"/deny {code}", "/members", "/approve telegram:3003"):
            assert (await talk.say(command, user=STRANGER)).startswith("That is for the people who run this bot.")
        assert await talk.ask("let me in", user="3003") == []
        assert "/approve" not in await talk.say("/help", user=STRANGER)
        assert "/approve" in await talk.say("/help")


async def test_codes_are_guessed_at_a_few_times_only(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock, access=ADMIN) as talk:
        code = code_in(await talk.say("hello", user=STRANGER))
        for _ in range(TRIES):
            assert "no code that works" in await talk.say("/approve AAAA-AAAA")
        assert "Too many wrong codes" in await talk.say(f"/approve {code}")
        clock.advance(seconds=TRIES_WITHIN.total_seconds())
        assert "is let in" in await talk.say(f"/approve {code}")


async def test_a_code_is_for_private_chats_alone(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock, access=ADMIN) as talk:
        code = code_in(await talk.say("hello", user=STRANGER))
        (reply,) = await talk.ask(f"/approve {code}", chat="group:-5")
        assert reply.private
        assert reply.text.startswith("Codes and numbers are for our private chat")
        assert await talk.say("hello", user=STRANGER) == ""


async def test_who_is_refused_hears_nothing_for_a_month(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock, access=ADMIN) as talk:
        code = code_in(await talk.say("hello", user=STRANGER))
        assert (await talk.say(f"/deny {code}")).startswith(f"Refused: test:{STRANGER} hears nothing")
        assert "no code that works" in await talk.say(f"/approve {code}")
        clock.advance(seconds=(REFUSED_FOR - timedelta(hours=1)).total_seconds())
        assert await talk.say("hello", user=STRANGER) == ""
        clock.advance(hours=2)
        assert "pass this code on" in await talk.say("hello", user=STRANGER)


async def test_members_lists_who_may_and_who_asks(data_dir: Path, clock: Clock) -> None:
    access = AccessSettings(admins=("test:1001",), allow=("test:7",), groups=("telegram:-100",))
    async with talking(data_dir, clock, access=access) as talk:
        await let_in(talk)
        await talk.say("hi", user=STRANGER, name="Kim")
        await talk.say("/approve", chat="group:-5")
        await talk.say("hello", user="3003")
        assert (await talk.say("/members")).splitlines() == [
            "These may talk to me:",
            f"- test:{STRANGER} (Kim)",
            "- test:1001 (name1001), admin",
            "- test:7",
            "and everybody in:",
            "- test:-5",
            "- telegram:-100",
            "These were shown a code; /approve CODE lets them in:",
            f"- test:3003, until {clock() + LASTS - timedelta(minutes=1):%Y-%m-%d %H:%M}",
        ]


async def test_an_admin_is_put_out_at_the_terminal_alone(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock, access=ADMIN) as talk:
        access = talk.app.memory.access
        await access.allow("telegram:9", "person", zone="UTC", now=clock(), admin=True)
        assert "only on the machine" in await talk.say("/deny telegram:9")
        assert (await access.standing("telegram:9", ())).admin
        assert await access.remove("telegram:9") == ["person"]


# ---- removal ---------------------------------------------------------------------------------------------


async def test_a_removal_counts_at_once_and_leaves_memory_to_its_owner(
    data_dir: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.talk.PLATFORM", "telegram")
    access = AccessSettings(admins=("telegram:1001",))
    async with OpenAIServer() as server, talking(data_dir, clock, server, access=access) as talk:
        server.on(reply="I see.")
        await let_in(talk)
        await talk.say(f"I am allergic to {SECRET}", user=STRANGER)
        asked = len(server.chats)
        assert "is let in no more" in await talk.say(f"/deny telegram:{STRANGER}")
        told = await talk.say("And I like tea and quince", user=STRANGER)
        assert "stays yours" in told
        assert await talk.say("/remember I like quince", user=STRANGER) == ""
        assert await talk.say("/retry", user=STRANGER) == ""
        assert SECRET in await talk.say("/whatdoyouknow", user=STRANGER)
        (export,) = await talk.ask("/export", user=STRANGER)
        assert len(export.files) == 2
        assert "What I keep of you" in await talk.say("/privacy", user=STRANGER)
        assert len(server.chats) == asked
        assert "quince" not in talk.everything_stored()
        (offer,) = await talk.ask(f"please forget my {SECRET}", user=STRANGER)
        assert (await talk.press(offer.buttons[0].id, user=STRANGER)).startswith("Hidden at once: 1 memory")
        clock.advance(minutes=30)
        await talk.app.tick()
        assert SECRET not in talk.everything_stored()


async def test_words_that_are_edited_by_who_is_let_in_no_more_are_taken_back_and_not_replaced(
    data_dir: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.talk.PLATFORM", "telegram")
    async with talking(data_dir, clock, access=AccessSettings(admins=("telegram:1001",))) as talk:
        await let_in(talk)
        for number in ("a", "b"):
            await talk.say(f"I am allergic to {SECRET}{number}", user=STRANGER, id=number)
        await talk.say(f"/deny telegram:{STRANGER}")
        chat = ChatRef("telegram", f"dm:{STRANGER}")
        said = Incoming(chat, STRANGER, "Kim", "a", "I am allergic to quince", clock())
        for update in (Edited(said, clock()), Deleted(chat, ("b",), clock())):
            screen = Screen()
            await talk.app.conversation.submit(update, screen)
            await screen.finished.wait()
            assert screen.replies == []
        stored = talk.everything_stored()
        assert SECRET not in stored
        assert "quince" not in stored


async def test_what_still_waited_when_its_author_was_put_out_is_not_answered(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server, access=ADMIN) as talk:
        await let_in(talk)
        desk = talk.app.agent
        said = await desk.hear(Incoming(ChatRef(PLATFORM, f"dm:{STRANGER}"), STRANGER, "Kim", "w1", "hi", clock()))
        await talk.app.memory.access.remove(f"test:{STRANGER}")
        screen = Screen()
        await desk.answer([said], screen)  # type: ignore[list-item]
        assert (screen.replies, server.chats) == ([], [])
        assert not await talk.app.memory.waits(said.owner, said.message.id)  # type: ignore[union-attr]


# ---- groups ----------------------------------------------------------------------------------------------


async def test_in_a_group_only_those_let_in_are_heard_until_an_admin_opens_it(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server, access=ADMIN) as talk:
        server.on(reply="Hello")
        assert await talk.ask(f"hi {SECRET}", user=STRANGER, chat="group:-5") == []
        assert await talk.ask("/approve", user=STRANGER, chat="group:-5") == []
        assert SECRET not in talk.everything_stored()
        assert await talk.say("hi", chat="group:-5") == "Hello"
        assert (await talk.say("/approve", chat="group:-5")).startswith("From now on everybody in this group may")
        assert await talk.say("hi", user=STRANGER, chat="group:-5") == "Hello"
        assert await talk.say("hi", user=STRANGER, chat="group:-5", thread="7") == "Hello"
        assert await talk.ask("hi", user=STRANGER, chat="group:-6") == []
        assert "pass this code on" in await talk.say("hi", user=STRANGER)
        assert "only those here who are let in" in await talk.say("/deny", chat="group:-5")
        assert await talk.ask("hi", user=STRANGER, chat="group:-5") == []


async def test_a_group_that_was_let_in_is_let_in_under_its_new_number(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock, access=ADMIN) as talk:
        await talk.say("/approve", chat="group:-5")
        moved = Moved(ChatRef(PLATFORM, "group:-5", private=False), "group:-1005", clock())
        await talk.app.conversation.submit(moved, Screen())
        assert await talk.say("hi", user=STRANGER, chat="group:-1005")
        assert await talk.ask("hi", user=STRANGER, chat="group:-7") == []


@pytest.mark.parametrize(
    ("access", "chat", "heard"),
    [
        (AccessSettings(), "dm:1001", False),
        (AccessSettings(open="everybody"), "dm:1001", True),
        (AccessSettings(allow=("telegram:1001",)), "dm:1001", True),
        (AccessSettings(allow=("telegram:1001",)), "group:-5", True),
        (AccessSettings(allow=("discord:1001",)), "dm:1001", False),
        (AccessSettings(groups=("telegram:-5",)), "group:-5", True),
        (AccessSettings(groups=("telegram:-5",)), "dm:1001", False),
        (AccessSettings(groups=("telegram:-5",)), "group:-55", False),
        (AccessSettings(groups=("telegram:1001",)), "dm:1001", False),
    ],
)
async def test_the_settings_name_people_and_groups_by_platform_and_number(
    data_dir: Path,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    *,
    access: AccessSettings,
    chat: str,
    heard: bool,
) -> None:
    monkeypatch.setattr("tests.talk.PLATFORM", "telegram")
    async with talking(data_dir, clock, access=access) as talk:
        await talk.say("My name is Kim", chat=chat)
        assert bool(talk.rows("SELECT 1 FROM journal")) == heard


async def test_a_server_of_discord_is_all_its_channels_and_the_terminal_is_always_let_in(
    data_dir: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with talking(data_dir, clock, access=AccessSettings(groups=("discord:900",))) as talk:
        monkeypatch.setattr("tests.talk.PLATFORM", "discord")
        assert await talk.say("My name is Kim", chat="guild:900/11")
        assert await talk.ask("My name is Kim", chat="guild:901/11") == []
        monkeypatch.setattr("tests.talk.PLATFORM", "console")
        assert await talk.say("My name is Kim")
        assert "/approve" in await talk.say("/help")


async def test_the_first_code_tells_the_operator_what_to_type(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock, access=AccessSettings()) as talk:
        told = await talk.say("hello", user=STRANGER)
        assert f"python -m bot access approve {code_in(told)})" in told
    async with talking(data_dir, clock, access=ADMIN) as talk:
        assert "python -m bot" not in await talk.say("hello", user="3003", id="x")


async def test_an_update_locks_nobody_out_who_had_talked_before(
    data_dir: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [step for step in opening.migrations() if step[1] < "0021"]
    with monkeypatch.context() as patch:
        patch.setattr(opening, "migrations", lambda: before)
        await (await Database.open(data_dir / DATABASE_NAME)).close()
    with sqlite3.connect(data_dir / DATABASE_NAME) as raw:
        for platform, user in (("telegram", "1001"), ("discord", "7"), ("console", "me")):
            raw.execute(
                "INSERT INTO accounts (platform, user_id, name, created_at) VALUES (?, ?, 'Lin', 5)", (platform, user)
            )
    raw.close()
    monkeypatch.setattr("tests.talk.PLATFORM", "telegram")
    async with talking(data_dir, clock, access=AccessSettings()) as talk:
        everyone = await talk.app.memory.access.everyone()
        assert [(each.name, each.admin, each.how) for each in everyone] == [
            ("discord:7", False, "update"),
            ("telegram:1001", False, "update"),
        ]
        assert "Noted" in await talk.say("My name is Kim")
        assert "python -m bot access approve" in await talk.say("My name is Kim", user="2002")
