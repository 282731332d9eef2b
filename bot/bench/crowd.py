"""What ``bench load`` plays: who writes what and when, and a model that answers by script. No platform, no clock.

Every message carries a sign of its own, ``#12-3``: the third message of person 12. The answer to a turn names the signs
of the turn and nothing else, so that whoever reads it can tell what was lost, doubled, out of order, or another's.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import AsyncGenerator, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import httpx2

from bot.bench.day import LIVES, TALK
from bot.bench.proposals import fact, is_distillation, one_line
from bot.connection import Events, Opened
from bot.llm import LLM, LLMError, Messages, Stream
from config.settings import ModelSettings
from memory.model import SELF
from memory.ports import Completion

SIGN: Final = re.compile(r"#(\d+)-(\d+)\b")
NOWHERE: Final = "http://127.0.0.1:9/v1"
"""An address for a model that is never asked over a wire."""
FRAMES: Final = 8
"""Pieces of an answer."""
COMMAND_EVERY: Final = 50
"""One message of so many is a command, which must be obeyed however much there is to do."""
QUICK_EVERY: Final = 10
"""One message of so many is followed by another of the same person within :data:`QUICK_SECONDS`."""
QUICK_SECONDS: Final = 0.4
_ANSWER: Final = (
    "That is good to hear, and it is kept in mind for another time. If it should ever be of use I will come back to it;"
    " until then there is nothing to be done about it, and nobody is in a hurry. Is there something else to talk about?"
)
_USAGE: Final = {"prompt_tokens": 800, "completion_tokens": 60}
_NUMBERED: Final = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)
_SIGNED: Final = re.compile(r"([^:：\]]*#\d+-\d+)\s*$")

Sign = tuple[int, int]
"""A person's number and the number of their message, both from 1."""


@dataclass(frozen=True, slots=True)
class Due:
    """A message and when it is to come in, seconds from the beginning, whatever has become of those before."""

    at: float
    sign: Sign
    text: str
    language: str

    @property
    def is_command(self) -> bool:
        """Whether it is obeyed instead of answered by the model."""
        return self.text.startswith("/")


def schedule(*, chats: int, rate: float, seconds: float, seed: int = 1) -> Iterator[Due]:
    """Everything that comes in, in order of time: ``rate`` messages a second from ``chats`` people, at random times.

    Pauses are as those of people who do not know of each other. Some write twice in a row.
    """
    source = random.Random(seed)  # noqa: S311
    said, at, again = [0] * (chats + 1), 0.0, 0
    while True:
        quick = again > 0
        at += source.uniform(0, min(QUICK_SECONDS, 2 / rate)) if quick else source.expovariate(rate)
        if at >= seconds:
            return
        person = again or source.randint(1, chats)
        again = 0 if quick or source.randrange(QUICK_EVERY) else person
        said[person] += 1
        sign = (person, said[person])
        is_command = not quick and not again and source.randrange(COMMAND_EVERY) == 0
        yield Due(at, sign, "/usage" if is_command else words(sign), LIVES[person % len(LIVES)][0])


def words(sign: Sign) -> str:
    """What somebody says: one sentence after the other of a day of talk, in their language and about their life."""
    person, number = sign
    language, life = LIVES[person % len(LIVES)]
    talk = [text for session in TALK[language] for text in session]
    text = talk[(person + number) % len(talk)].removeprefix("*").format(**life)
    return f"{text} #{person}-{number}"


def signs(text: str) -> list[Sign]:
    """The signs in a text, in order."""
    return [(int(person), int(number)) for person, number in SIGN.findall(text)]


class ScriptedModel(LLM):
    """A chat model without a wire: the real stream over made-up events.

    Whatever reads an answer of the product reads this one. It answers after ``seconds``, a piece at a time.
    ``strange`` counts requests that hold the words of anybody but one person: memory that went astray.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(NOWHERE, None, "scripted", ModelSettings())
        self._seconds = seconds
        self.strange = self.answered = self.distilled = self.asked_about_pairs = 0

    def stream(self, messages: Messages, *, max_tokens: int, whose: Hashable = None) -> Stream:
        """Answer the signs behind the last answer of the request."""
        del max_tokens
        ticket = self._connection.circuit.ticket(whose)

        async def opened() -> Opened:
            return Opened(cast("Events", _Answer(self._pieces(messages), self._seconds)), ticket)

        return Stream(opened, _never, silence=60.0)

    async def complete(
        self, messages: Messages, *, schema: Mapping[str, Any] | None = None, max_tokens: int
    ) -> Completion:
        """Propose each message of a session as a fact, as a model does that takes everything for worth noting."""
        del max_tokens
        prompt = "\n".join(str(message["content"]) for message in messages)
        self._check(prompt)
        await asyncio.sleep(self._seconds)
        if not is_distillation(schema):
            self.asked_about_pairs += 1
            return Completion(json.dumps({"items": []}), "stop")
        self.distilled += 1
        return Completion(json.dumps({"items": list(_items(prompt))}, ensure_ascii=False), "stop", 900, 700, 200)

    def _pieces(self, messages: Messages) -> list[str]:
        self._check("\n".join(str(message["content"]) for message in messages))
        self.answered += 1
        asked = signs(str(messages[-1]["content"]).rpartition("</")[2])
        told = " ".join(f"#{person}-{number}" for person, number in asked)
        text = f"{told}: {_ANSWER}"
        return [text[len(text) * n // FRAMES : len(text) * (n + 1) // FRAMES] for n in range(FRAMES)]

    def _check(self, prompt: str) -> None:
        self.strange += len({person for person, _ in signs(prompt)}) > 1


def _items(prompt: str) -> Iterator[Mapping[str, Any]]:
    for number, line in _NUMBERED.findall(prompt):
        if (said := _SIGNED.search(line)) is not None:
            text = one_line(said[1])
            yield {**fact(text, subject=SELF), "cites": [{"message": int(number), "quote": text}]}


class _Answer:
    """The events of one answer, as the SDK hands them out."""

    def __init__(self, pieces: Sequence[str], seconds: float) -> None:
        self.response = httpx2.Response(200, headers={"content-type": "text/event-stream"})
        self._events = _events(pieces, seconds)

    def __aiter__(self) -> _Answer:
        return self

    async def __anext__(self) -> object:
        return await anext(self._events)

    async def close(self) -> None:
        """Let go of what was not read."""
        await self._events.aclose()


async def _events(pieces: Sequence[str], seconds: float) -> AsyncGenerator[object, None]:
    for piece in pieces:
        await asyncio.sleep(seconds / len(pieces))
        yield {"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]}
    yield {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": _USAGE}


def _never(error: Exception) -> LLMError:
    return LLMError("bad_answer", str(error))
