"""What one message may cost is bounded, however long it is."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from bot.hearing import MOST_CHARACTERS
from bot.message import ChatRef, Edited, Incoming
from bot.tokens import LONG_TEXT, counted
from memory import Memory
from memory.model import Recollection
from tests.conftest import Clock
from tests.servers.openai_server import OpenAIServer
from tests.talk import talking


@pytest.mark.parametrize(
    ("language", "told"),
    [
        ("en", "more than 100000 characters, and I have not kept"),
        ("zh", "超过了 100000 个字符，我一个字都没有留下"),
    ],
)
async def test_a_message_longer_than_any_is_not_taken_and_whoever_sent_it_is_told(
    data_dir: Path, clock: Clock, language: str, told: str
) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="ok")
        assert told in await talk.say("zebrafinch " * 10_000, language=language)
        assert talk.rows() == []
        assert server.chats == []
        assert await talk.say("Shorter, then.", language=language) == "ok"


async def test_an_edit_to_a_message_longer_than_any_takes_the_old_words_back(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="ok")
        await talk.say("I saw a zebrafinch.", id="m")
        ref, now = ChatRef("test", "dm:1001", private=True), clock()
        edited = Incoming(ref, "1001", "name1001", "m", "x" * (MOST_CHARACTERS + 1), now, "en")
        (reply,) = await talk._through(Edited(edited, now))
        assert "100000" in reply.text
        assert not any("zebrafinch" in text for _, _, text in talk.rows())


async def test_whoever_chose_a_language_is_told_in_it_that_a_message_is_too_long(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        await talk.say("/language zh", language="en")
        assert "我一个字都没有留下" in await talk.say("x" * (MOST_CHARACTERS + 1), language="en")


async def test_of_a_long_text_memory_is_searched_for_its_beginning_and_its_end(
    data_dir: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[str] = []
    recall = Memory.recall

    async def watched(self: Memory, owner: object, question: str, **more: object) -> Recollection:
        searched.append(question)
        return await recall(self, owner, question, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Memory, "recall", watched)
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="ok")
        text = "What is wrong with this? " + "middle " * 5_000 + "Or is it my zebrafinch?"
        await talk.say(text)
        assert text in server.chats[-1].prompt
    (question,) = searched
    assert len(question) < 5_000
    assert question.startswith("What is wrong")
    assert question.endswith("my zebrafinch?")


@pytest.mark.parametrize(("length", "elsewhere"), [(LONG_TEXT, False), (LONG_TEXT + 1, True)])
async def test_a_long_text_is_counted_in_another_thread(length: int, elsewhere: bool) -> None:  # noqa: FBT001
    threads: list[int] = []

    def count(text: str) -> int:
        threads.append(threading.get_ident())
        return len(text)

    assert await counted(count, "x" * length) == length
    assert (threads != [threading.get_ident()]) is elsewhere
