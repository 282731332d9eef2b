"""What may be seen by whom: the rules of DESIGN's audience in a few lines, kept apart from the program's own.

A marker is a made-up word that is said once, by one account in one room. Where the word turns up tells who
was shown what.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Literal

WORD = re.compile(r"qz[a-z]{7}zq", re.IGNORECASE)
"""A marker. It is said as a name, for a name that nobody said is what the write gate has to see; an index may hold it
in small letters."""

BEFORE = "#"
"""Marks the name of a room for what was said there before it was opened to more people."""

State = Literal["live", "hidden", "withdrawn", "gone"]


class Violation(AssertionError):
    """Somebody was shown, or something kept, what may not be."""


@dataclass(slots=True)
class Marker:
    """A word and its story. ``room`` is the key of the chat it was said in, ``private`` whether that is one.

    ``hidden`` words wait for their erasure since ``since``; ``withdrawn`` ones were taken back on the platform.
    ``fleeting`` words may be answered and are never kept; ``over`` ones not even that. What was said to hold only
    ``until`` some time is no memory afterwards. ``unasked`` is what nothing may be made of before its owner agrees.
    """

    word: str
    account: tuple[str, str]
    room: str
    private: bool
    state: State = "live"
    everywhere: bool = False
    fleeting: bool = False
    since: datetime | None = None
    over: bool = False
    until: datetime | None = None
    unasked: bool = False

    @property
    def said_in(self) -> str:
        """The room as it is called now."""
        return self.room.partition(BEFORE)[0]


@dataclass(slots=True)
class Oracle:
    """Every marker there is, and who is one person."""

    random: Random
    markers: dict[str, Marker] = field(default_factory=dict)
    persons: dict[tuple[str, str], frozenset[tuple[str, str]]] = field(default_factory=dict)
    told: set[tuple[tuple[str, str], str]] = field(default_factory=set)
    """(account, word) of what the bot told somebody in a group, after another had said it there."""
    spoken: set[tuple[str, str]] = field(default_factory=set)
    """(room, word) of what the bot said in a group: whoever is there has heard it."""
    left: set[tuple[tuple[str, str], str]] = field(default_factory=set)
    """(account, room) of those who left a group."""

    def opened(self, room: str) -> None:
        """More people may see a room: what was said there before was said elsewhere, and they have not heard it."""
        for marker in self.markers.values():
            if marker.room == room:
                marker.room = f"{room}{BEFORE}"
        self.spoken = {(each, word) for each, word in self.spoken if each != room}

    def word(self) -> str:
        """A word nobody has said."""
        letters = "abcdefghijklmnopqrstuvwxyz"
        return f"Qz{''.join(self.random.choice(letters) for _ in range(7))}zq"

    def said(self, account: tuple[str, str], room: str, *, private: bool, fleeting: bool = False) -> Marker:
        """A new word that an account says in a room."""
        made = Marker(self.word(), account, room, private, fleeting=fleeting)
        self.markers[made.word] = made
        return made

    def person(self, account: tuple[str, str]) -> frozenset[tuple[str, str]]:
        """The accounts of the person behind one."""
        return self.persons.get(account, frozenset({account}))

    def found(self, text: str) -> list[Marker]:
        """The markers that stand in a text; Raises Violation for one nobody has said."""
        words = dict.fromkeys(map(str.capitalize, WORD.findall(text)))
        if strange := [word for word in words if word not in self.markers]:
            raise Violation(f"words that nobody has said: {strange}")
        return [self.markers[word] for word in words]

    def check(self, text: str, *, account: tuple[str, str], room: str, private: bool, what: str) -> None:
        """Raise Violation if a text made for an account in a room holds what may not be in it."""
        for marker in self.found(text):
            if reason := self._refused(marker, account, room, private=private):
                raise Violation(f"{what} for {account} in {room}: {reason}: {marker}\n{text}")

    def _refused(self, marker: Marker, account: tuple[str, str], room: str, *, private: bool) -> str:
        """Why a marker may not be shown there; "" if it may."""
        mine = marker.account in self.person(account)
        if marker.over:
            return "it was off the record, and that talk is over"
        if marker.state != "live":
            return f"it is {marker.state}"
        if private:
            # An answer in a group is part of the talk with the one who was answered, whoever else's words it took up.
            told = any((each, marker.word) in self.told for each in self.person(account))
            return "" if mine or told else "it is somebody else's"
        if (room, marker.word) in self.spoken:
            return ""
        if mine and marker.everywhere and not marker.fleeting:
            return ""  # its owner opened it to every place, whichever of their accounts is there
        if (marker.account, room) in self.left:
            return "its author has left"
        if marker.room == room and not marker.private:
            return ""  # what was said in a group was heard by the group
        return "it was not said here" if mine else "it is somebody else's"

    def forgotten(self, texts: Iterable[str], *, states: Iterable[State] = ("gone",), what: str) -> None:
        """Raise Violation if any of the texts holds a word that was erased (or is in one of ``states``)."""
        refused = set(states)
        for text in texts:
            for word in dict.fromkeys(map(str.capitalize, WORD.findall(text))):
                marker = self.markers.get(word)
                if marker is not None and marker.state in refused:
                    raise Violation(f"{what} holds what is {marker.state}: {marker}\n{text[:2_000]}")
