"""A model that repeats whatever it was shown and makes memories of every word, its own inventions among them."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from types import TracebackType
from typing import Any, Self

import numpy as np

from bot.answer import Outcome
from memory.ports import Completion, Vector
from tests.secrecy.oracle import WORD

WIDTH = 32
_NUMBERED = re.compile(r"^\[(\d+)\][^:：]*[:：] ?(.*)$", re.MULTILINE)

Request = Sequence[Mapping[str, Any]]


@dataclass
class Echo:
    """Fits ``bot.llm.LLM`` as far as the agent uses it.

    ``shown`` sees the text of each request, "chat" or "housekeeping"; ``meanwhile`` is what happens while
    housekeeping waits for the answer.
    """

    random: Random
    shown: Callable[[str, str], None]
    meanwhile: Callable[[], Awaitable[None]] | None = None
    heard: list[str] = field(default_factory=list)

    def stream(self, messages: Request, *, max_tokens: int, whose: Hashable = None) -> Talking:
        del max_tokens, whose
        text = _text(messages)
        self.shown("chat", text)
        words = list(dict.fromkeys(map(str.capitalize, WORD.findall(text))))
        self.heard += words
        told = self.random.sample(words, min(len(words), 3))
        return Talking(f"You told me about {', '.join(told)}." if told else "I see.")

    async def complete(
        self, messages: Request, *, schema: Mapping[str, Any] | None = None, max_tokens: int
    ) -> Completion:
        del max_tokens
        text = _text(messages)
        self.shown("housekeeping", text)
        if self.meanwhile is not None:
            await self.meanwhile()
        if schema is None or "items" not in schema.get("properties", {}):
            return Completion("{}", "stop", 10)
        items = [self._item(int(number), said) for number, said in _NUMBERED.findall(text)]
        return Completion(json.dumps({"items": [item for item in items if item]}, ensure_ascii=False), "stop", 10)

    def _item(self, number: int, said: str) -> dict[str, Any] | None:
        text = said.strip()
        if self.heard and self.random.random() < 0.1:
            # What it heard in another request, maybe of somebody else: the gate must see that nobody said it here.
            text = f"I like {self.random.choice(self.heard)} tea"
        elif not WORD.search(text):
            return None
        return {
            "kind": "fact",
            "subject": "self",
            "text": text,
            "confidence": 0.9,
            "importance": 0.5,
            "forgettable": False,
            "cites": [{"message": number, "quote": said.strip()}],
        }


class Talking:
    """One answer, in one piece."""

    def __init__(self, text: str) -> None:
        self.outcome = Outcome(text, "stop")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        pass

    async def __aiter__(self) -> AsyncIterator[str]:
        yield self.outcome.text


@dataclass
class Buckets:
    """An embedder that throws words into buckets: texts that share words are near."""

    shown: Callable[[str, str], None]
    model: str = "buckets"
    dimensions: int | None = WIDTH

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        self.shown("embedding", "\n".join(texts))
        return [_vector(text) for text in texts]


def _vector(text: str) -> Vector | None:
    vector = np.zeros(WIDTH, dtype=np.float32)
    for word in re.findall(r"[a-z]+|[\u4e00-\u9fff]", text.casefold()):
        vector[sum(word.encode()) % WIDTH] += 1
    length = float(np.linalg.norm(vector))
    return None if length == 0 else vector / np.float32(length)


def _text(messages: Request) -> str:
    return "\n".join(str(message["content"]) for message in messages)
