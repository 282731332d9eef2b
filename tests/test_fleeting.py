"""Whatever people do, no word said in a pause or off the record is anywhere it could last.

Random days of two people at the whole bot: a model that repeats every word it reads and proposes all of it as a
memory, an embedder that is listened to, kills in between. The seed is in the name of the test.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from bot.message import ChatRef, Deleted, Edited, Incoming
from config.settings import EmbedderSettings
from memory import DATABASE_NAME, RecallOptions
from tests.conftest import Clock
from tests.servers.openai_server import OpenAIServer, Request
from tests.talk import PLATFORM, Screen, Talk, talking

STEPS: Final = 45
PEOPLE: Final = ("1001", "2002")
GROUP: Final = "group:1"
QUESTIONS: Final = ("What do I like, and what did I say?", "And why that one?")
BY_WORDS: Final = RecallOptions(by_words=True, threshold=False)
MARKER: Final = re.compile(r"\bz[a-z]{7}q\b")
"""A word that stands for nothing, so that wherever it is found it came from the one who said it."""


def background(request: Request) -> bool:
    """Whether a request is none of a talk: a distillation, a verdict."""
    return "\nNew:\n" in request.prompt


def parrot(request: Request) -> str:
    """The most talkative model: it repeats all it reads, and would have all of it remembered."""
    if not background(request):
        return "You told me: " + " ".join(MARKER.findall(request.prompt) or ["nothing"])
    new = request.prompt.partition("New:")[2]
    items = [
        {
            "kind": "fact",
            "subject": "self",
            "text": f"I like the {word}.",
            "confidence": 0.9,
            "importance": 0.9,
            "forgettable": False,
            "messages": [number],
        }
        for number, line in enumerate(new.strip().splitlines(), 1)
        for word in MARKER.findall(line)
    ]
    return json.dumps({"items": items})


class Day:
    """Two people, and what is known of their words: which may last and which may not."""

    def __init__(self, seed: int, path: Path, clock: Clock, server: OpenAIServer) -> None:
        self.random = random.Random(seed)
        self.clock = clock
        self.server = server
        self.secret: set[str] = set()
        self.open: set[str] = set()
        self.paused: set[tuple[str, str]] = set()
        self.said: list[tuple[str, str, str, bool]] = []
        self.talk: Talk
        self._path = path
        self._numbers = 0
        self._built = AsyncExitStack()

    async def start(self) -> None:
        embedder = EmbedderSettings(kind="endpoint")
        again = talking(self._path, self.clock, self.server, embedder=embedder, openai_embedding_model="e")
        self.talk = await self._built.enter_async_context(again)

    async def stop(self) -> None:
        await self._built.aclose()
        self._built = AsyncExitStack()

    def word(self, *, secret: bool) -> str:
        made = "z" + "".join(self.random.choices("abcdefghijklmnoprstuvw", k=7)) + "q"
        (self.secret if secret else self.open).add(made)
        return made

    def place(self) -> tuple[str, str]:
        user = self.random.choice(PEOPLE)
        return user, self.random.choice((f"dm:{user}", f"dm:{user}", GROUP))

    async def say(self) -> None:
        user, chat = self.place()
        secret = (user, chat) in self.paused
        await self._tell(user, chat, f"I like the {self.word(secret=secret)}.", secret=secret)

    async def say_aside(self) -> None:
        user, chat = self.place()
        form = self.random.choice(
            ("/offrecord I like the {}.", "Off the record: I like the {}.", "别记住这个：我喜欢 {} 。")
        )
        await self._tell(user, chat, form.format(self.word(secret=True)), secret=True)

    async def ask(self) -> None:
        user, chat = self.place()
        await self._tell(user, chat, self.random.choice(QUESTIONS), secret=(user, chat) in self.paused)

    async def pause(self) -> None:
        user, chat = self.place()
        self.paused.add((user, chat))
        await self.talk.say("/pause", user=user, chat=chat, id=self._number())

    async def resume(self) -> None:
        user, chat = self.place()
        self.paused.discard((user, chat))
        await self.talk.say("/resume", user=user, chat=chat, id=self._number())

    async def edit(self) -> None:
        if not self.said:
            return
        user, chat, number, secret = self.random.choice(self.said[-8:])
        secret = secret or (user, chat) in self.paused
        text = f"I like the {self.word(secret=secret)}."
        await self._submit(Edited(self._incoming(user, chat, number, text), self.clock.advance(seconds=5)))

    async def take_back(self) -> None:
        if self.said:
            _, chat, number, _ = self.random.choice(self.said)
            ref = ChatRef(PLATFORM, chat, private=chat != GROUP)
            await self._submit(Deleted(ref, (number,), self.clock.advance(seconds=5)))

    async def repeat(self) -> None:
        """The platform delivers a message once more."""
        if self.said:
            user, chat, number, _ = self.random.choice(self.said)
            await self._submit(self._incoming(user, chat, number, "I like the zaaaaaaaq."))

    async def let_time_pass(self) -> None:
        self.clock.advance(minutes=self.random.choice((3, 20, 45, 400)))
        if self.random.random() < 1 / 3:
            # Nothing may rest on which of the jobs comes first.
            for job in reversed(self.talk.app.memory.jobs):
                await job.run(self.clock())
        await self.talk.app.tick()

    async def begin_anew(self) -> None:
        user, chat = self.place()
        await self.talk.say("/new", user=user, chat=chat, id=self._number())
        await self.talk.app.tick()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def export(self) -> None:
        user = self.random.choice(PEOPLE)
        (reply,) = await self.talk.ask("/export", user=user, id=self._number())
        assert not self.leaked(b"".join(file.content for file in reply.files).decode())

    async def look(self) -> None:
        """Nothing that lasts holds a secret word, and no request that is none of the owner's own talk."""
        for table in ("profile", "timeline", "facts", "citations", "traces", "notices", "offers"):
            assert not self.leaked(repr(self.talk.rows(f"SELECT * FROM {table}"))), table
        assert not self.leaked(repr(self.talk.rows("SELECT text FROM journal WHERE fleeting = 0")))
        for request in self.server.embedding_requests:
            assert not self.leaked(json.dumps(request.body)), "a secret word went to the embedder"
        for request in filter(background, self.server.chats):
            assert not self.leaked(request.prompt), "a secret word was distilled"
        for user in PEOPLE:
            owner = await self.talk.app.memory.known_account(PLATFORM, user)
            for word in sorted(self.secret)[-6:] if owner is not None else ():
                assert owner is not None
                room = await self.talk.app.memory.chat(owner, f"dm:{user}")
                found = await self.talk.app.memory.recall(owner, word, room=room, now=self.clock(), options=BY_WORDS)
                assert not self.leaked(" ".join(unit.text for unit in found.units))

    def leaked(self, text: str) -> list[str]:
        return sorted(set(MARKER.findall(text)) & self.secret)

    async def _tell(self, user: str, chat: str, text: str, *, secret: bool) -> None:
        number = self._number()
        self.said.append((user, chat, number, secret))
        await self._submit(self._incoming(user, chat, number, text))

    async def _submit(self, update: Any) -> None:
        screen = Screen()
        await self.talk.app.conversation.submit(update, screen)
        await asyncio.wait_for(screen.finished.wait(), 20)

    def _incoming(self, user: str, chat: str, number: str, text: str) -> Incoming:
        ref = ChatRef(PLATFORM, chat, private=chat != GROUP)
        return Incoming(ref, user, f"name{user}", number, text, self.clock.advance(minutes=1))

    def _number(self) -> str:
        self._numbers += 1
        return f"n{self._numbers}"

    @property
    def steps(self) -> list[Callable[[], Coroutine[Any, Any, None]]]:
        often = [self.say, self.say_aside, self.ask, self.let_time_pass] * 3
        return [*often, self.pause, self.pause, self.resume, self.edit, self.take_back, self.repeat, self.begin_anew,
                self.restart, self.export]  # fmt: skip


@pytest.fixture(params=range(4), ids=lambda seed: f"seed{seed}")
async def day(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> AsyncIterator[Day]:
    async with OpenAIServer() as server:
        server.on(reply=parrot)
        server.embed_with(lambda text: [1.0 + len(text) % 7, 1.0 + text.count("z"), 1.0])
        made = Day(request.param, tmp_path, clock, server)
        await made.start()
        yield made
        await made.stop()


async def test_no_word_of_a_fleeting_line_is_anywhere_it_could_last(day: Day) -> None:
    for _ in range(STEPS):
        await day.random.choice(day.steps)()
        await day.look()
    assert day.secret
    day.clock.advance(hours=25)
    await day.talk.app.tick()
    await day.look()
    assert not day.leaked(day.talk.everything_stored()), "a secret word outlived its time"
    await day.stop()
    file = (day._path / DATABASE_NAME).read_bytes().decode("utf-8", "replace")
    assert not day.leaked(file), "a secret word is left in the file"
    await day.start()
    kept = day.talk.everything_stored()
    assert [word for word in day.open if word in kept], "nothing was remembered at all: the day proves nothing"
