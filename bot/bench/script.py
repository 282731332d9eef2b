"""What ``bench delivery`` plays: who asks what, how each answer must look at the end, what goes wrong on the way. Pure.

The words of an answer are known both as Markdown and as a chat shows them, so that nothing of the bot's own
conversion judges itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

LONG_EVERY: Final = 5
"""Every fifth chat gets answers longer than one Telegram message."""
TROUBLED_EVERY: Final = 20
"""Of so many chats one gets a flood, one loses an edit and one loses the first frame of an answer on the way."""
_ROWS: Final = 9
_LONG_ROWS: Final = 84
"""Rows of an answer: about 1,000 and 6,500 characters."""
_QUESTION: Final = re.compile(r"Question (\d+) of chat (\d+): .+")
_HEAD: Final = re.compile(r"Chat \d+: \d+(, \d+)*")

Asked = tuple[int, ...]
"""The numbers of the questions that one answer is to."""
Method = Literal["sendMessage", "editMessageText"]

_FLOODED: Final[tuple[tuple[Method, int], ...]] = (("sendMessage", 1), ("editMessageText", 3))
"""On which request a flood falls."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What becomes of request number ``nth`` (from 1) of a method in a chat, instead of being carried out.

    "flood": refused, and so is every request there for ``seconds``. "drop": the connection breaks.
    "swallow": answered as if it had been done, which no platform does; it proves that the judge sees.
    """

    chat: int
    method: Method
    nth: int
    kind: Literal["flood", "drop", "swallow"]
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Script:
    """A run. ``frame_seconds`` lie between two frames of an answer, ``quiet_seconds`` is the bot's setting."""

    chats: int = 200
    frames: int = 50
    frame_seconds: float = 0.2
    quiet_seconds: float = 1.0
    faults: tuple[Fault, ...] = ()

    @property
    def numbers(self) -> range:
        """The chats."""
        return range(1, self.chats + 1)

    @property
    def flooded(self) -> frozenset[int]:
        """The chats that are told to wait."""
        return frozenset(fault.chat for fault in self.faults if fault.kind == "flood")

    @property
    def patience(self) -> float:
        """Seconds after which a run is given up: many times what it takes."""
        return 60 + 0.5 * self.chats + 10 * self.frames * self.frame_seconds

    def calm(self) -> Script:
        """The same without a flood."""
        return replace(self, faults=tuple(fault for fault in self.faults if fault.kind != "flood"))


def troubles(chats: int) -> tuple[Fault, ...]:
    """Floods of 3 to 10 s on a first send or in the middle of edits, and dropped requests, for 5 % of chats each."""
    faults: list[Fault] = []
    for turn, first in enumerate(range(1, chats + 1, TROUBLED_EVERY)):
        seconds = 3.0 + 3 * turn % 8
        # Two by two, so that chats of both kinds meet both.
        method, nth = _FLOODED[turn // 2 % 2]
        troubled = (
            Fault(first + turn % 2, method, nth, "flood", seconds),
            Fault(first + 2, "editMessageText", 2 + turn % 8, "drop"),
            Fault(first + 3, "sendMessage", 1, "drop"),
        )
        faults += [fault for fault in troubled if fault.chat <= chats]
    return tuple(faults)


def is_serial(chat: int) -> bool:
    """Whether a chat's second question comes while the first is being answered; else both come at once."""
    return chat % 2 == 1


def ways(chat: int) -> list[list[Asked]]:
    """The answers a chat may show, in order, best first: two questions at once are one turn if they come together."""
    apart: list[Asked] = [(1,), (2,)]
    return [apart] if is_serial(chat) else [[(1, 2)], apart]


def question(chat: int, number: int) -> str:
    """What a person writes."""
    return f"Question {number} of chat {chat}: when does the tide turn in harbour {chat * 10 + number}?"


def asked(prompt: str) -> tuple[int, Asked]:
    """Read which chat asks what at the end of a prompt. Raises ValueError when nothing of ours is there."""
    found: list[tuple[int, int]] = []
    for paragraph in reversed(prompt.split("\n\n")):
        if (match := _QUESTION.fullmatch(paragraph)) is None:
            break
        found.insert(0, (int(match[2]), int(match[1])))
    if len({chat for chat, _ in found}) != 1:
        raise ValueError("the prompt does not end with questions of one chat")
    return found[0][0], tuple(number for _, number in found)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model says, and what of it a chat shows: words and code, both without white space."""

    markdown: str
    text: str
    code: str


def answer(chat: int, numbers: Asked) -> Answer:
    """Return the answer to some questions of a chat; no two are alike."""
    head = f"Chat {chat}: {', '.join(map(str, numbers))}"
    code = f'tide = {chat}\nif tide:\n    print("{head}", "潮")'
    rows = _LONG_ROWS if chat % LONG_EVERY == 0 else _ROWS
    blocks = [(f"## {head}", head), (f"```python\n{code}\n```", code)]
    blocks += [_row(chat, numbers, row) for row in range(rows)]
    markdown = "\n\n".join(written for written, _ in blocks)
    return Answer(markdown, squeezed("".join(shown for _, shown in blocks)), squeezed(code))


def _row(chat: int, numbers: Asked, row: int) -> tuple[str, str]:
    """One paragraph, as Markdown and as it is shown."""
    key = f"{chat}.{numbers[-1]}.{row}"
    if row % 3 == 0:
        return (
            f"第{key}段：潮水**退去**，港口安静下来🌊。👩‍🚀 也在那里看海。",
            f"第{key}段：潮水退去，港口安静下来🌊。👩‍🚀 也在那里看海。",
        )
    return (
        f"In row {key} the **tide turns** at `{key}`, and *nobody* is late for it; the boats go out again 🚤.",
        f"In row {key} the tide turns at {key}, and nobody is late for it; the boats go out again 🚤.",
    )


def frames(text: str, count: int) -> Iterator[str]:
    """Cut a text into ``count`` pieces of nearly one length, wherever that may be."""
    for number in range(count):
        yield text[len(text) * number // count : len(text) * (number + 1) // count]


def squeezed(text: str) -> str:
    """A text without white space, which the platform trims and a cut drops."""
    return "".join(text.split())


@dataclass(frozen=True, slots=True)
class Shown:
    """A message of the bot as it stands at the end.

    ``code`` is what of it is drawn as a block of code. ``edits`` were asked for, carried out or not.
    ``first`` and ``last``: when it came and when it last changed, in seconds after the first question.
    """

    text: str
    code: str
    edits: int
    first: float
    last: float


def replies(messages: Sequence[Shown]) -> list[list[Shown]]:
    """Part the messages of a chat into replies: each begins with its heading."""
    parted: list[list[Shown]] = []
    for message in messages:
        if not parted or _HEAD.match(message.text):
            parted.append([])
        parted[-1].append(message)
    return parted


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is right in a chat: ``right`` of ``wanted`` replies are there once; ``clean``: and nothing besides.

    ``joined``: two questions at once were answered as one.
    """

    right: int
    wanted: int
    clean: bool
    in_order: bool
    joined: bool = False


def judged(chat: int, messages: Sequence[Shown]) -> Verdict:
    """Compare what a chat shows with what it must show."""
    there = [
        (squeezed("".join(part.text for part in reply)), squeezed("".join(part.code for part in reply)))
        for reply in replies(messages)
    ]
    verdicts = [_compared(there, [answer(chat, numbers) for numbers in way]) for way in ways(chat)]
    return max(verdicts, key=lambda verdict: (verdict.clean, verdict.right))


def _compared(there: Sequence[tuple[str, str]], answers: Sequence[Answer]) -> Verdict:
    due = [(given.text, given.code) for given in answers]
    places = [there.index(one) for one in due if one in there]
    return Verdict(
        right=sum(there.count(one) == 1 for one in due),
        wanted=len(due),
        clean=sorted(there) == sorted(due),
        in_order=places == sorted(places),
        joined=len(due) == 1,
    )
