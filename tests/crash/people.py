"""What people say in a story, what must be remembered of it, and a model that distils it.

Every statement holds one word of its own (``zog`` and five letters), so that each line, answer, memory and byte can be
told from all others.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from tests.servers.openai_server import How, OpenAIServer, Request

WORD: Final = re.compile(r"zog[a-j]{5}")
END: Final = "That is all."
_LINE: Final = re.compile(r"^\[(\d+)\] .*?(I am allergic to )?(zog[a-j]{5})", re.MULTILINE)
_LETTERS: Final = str.maketrans("0123456789", "abcdefghij")
SAYINGS: Final = (
    "Our neighbour grows a {} in the garden",
    "There is a {} in the garden of our neighbour",
    "Our neighbour has a {} in the garden",
)
"""One statement in words of its own for each time a model is asked, so that two distillations are two memories."""


def word(number: int) -> str:
    """The word of the statement with this number."""
    return f"zog{number:05}".translate(_LETTERS)


@dataclass(slots=True)
class Statement:
    """Something that was said, and what has become of it.

    ``rule``: it is remembered at once, and distilled into the same. ``twice``: it was said twice, and remembered from
    each time, until that was ``merged``. ``state``: "kept", "hidden" by a deletion, or "erased". ``older`` are the
    backups that were there when it was erased, and may hold it until the bot starts once more and cleans them.
    """

    word: str
    person: int
    chat: int
    rule: bool = False
    twice: bool = False
    merged: bool = False
    state: str = "kept"
    older: frozenset[Path] = frozenset()

    @property
    def text(self) -> str:
        """The words."""
        return f"I am allergic to {self.word}." if self.rule else f"{SAYINGS[0].format(self.word)}."


class Server(OpenAIServer):
    """The endpoint of the model, which may take its time: ``pause`` seconds before each piece of an answer.

    ``speaking`` and ``distilling`` tell that it has begun to.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pause = 0.0
        self.speaking, self.distilling = asyncio.Event(), asyncio.Event()

    async def _chat(self, raw: web.Request, request: Request) -> web.StreamResponse:
        raw["distils"] = "response_format" in request.body
        if raw["distils"]:
            self.distilling.set()
            await asyncio.sleep(5 * self.pause)
        return await super()._chat(raw, request)

    async def _stream(self, raw: web.Request, events: Sequence[str], how: How) -> web.StreamResponse:
        if raw["distils"] or not self.pause:
            return await super()._stream(raw, events, how)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(raw)
        for event in events:
            await response.write(f"data: {event}\n\n".encode())
            self.speaking.set()
            await asyncio.sleep(self.pause)
        return response


@dataclass
class Model:
    """The scripted model. ``wrong`` are the requests that should not have been."""

    server: Server = field(default_factory=Server)
    known: Callable[[Sequence[str]], set[str]] = lambda _: set()
    gone: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    distillations: int = 0
    _asked: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.server.on(reply=self._answer)

    def _answer(self, request: Request) -> str:
        if back := self.gone & set(WORD.findall(request.prompt)):
            self.wrong.append(f"what is forgotten is shown to the model: {sorted(back)}")
        if "response_format" not in request.body:
            # The question stands behind what is recalled for it.
            return f"About {(WORD.findall(request.last_user) or ['that'])[-1]}: {END}"
        if "You compare notes" in request.prompt:
            return json.dumps({"items": []})
        return self._distil(request.last_user)

    def _distil(self, session: str) -> str:
        self.distillations += 1
        lines = _LINE.findall(session.partition("New:")[2])
        if again := self.known([found for _, rule, found in lines if not rule]):
            self.wrong.append(f"distilled a second time: {sorted(again)}")
        # What was said twice is told once, as a model would: the double is made otherwise.
        once = {found: (int(number), bool(rule)) for number, rule, found in reversed(lines)}
        return json.dumps({"items": [self._item(number, found, rule=rule) for found, (number, rule) in once.items()]})

    def _item(self, number: int, found: str, *, rule: bool) -> dict[str, Any]:
        times = self._asked.get(found, 0)
        self._asked[found] = times + 1
        text = "" if rule else SAYINGS[times % len(SAYINGS)].format(found)
        quote = f"I am allergic to {found}" if rule else SAYINGS[0].format(found)
        return {
            "kind": "profile" if rule else "fact",
            "subject": "self",
            "text": text,
            "attribute": "allergy" if rule else "",
            "value": found if rule else "",
            "when": "",
            "start": "",
            "end": "",
            "until": "",
            "confidence": 0.9,
            "importance": 0.5,
            "forgettable": False,
            "negates": False,
            "cites": [{"message": number, "quote": quote}],
        }
