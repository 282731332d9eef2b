"""The grammar of dated plans, habits and what happened: a clause is ``subject adverb* doing`` with its time taken out.

The time may stand anywhere ("on Friday I fly", 我周五飞) and is read by :mod:`memory.dates`; what is left must be
matched whole by a doing, and no word may stand in it that makes the clause unsure (you, if, or, 可能, 之前).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from memory.model import SELF
from memory.rules.grammar import Subject

Time = Literal["ahead", "habit", "past", "due"]


@dataclass(frozen=True, slots=True)
class Doing:
    """One way to say that something happens.

    ``own`` reads what the owner does, ``others`` what somebody else does, both folded and without the time.
    ``time`` is where it must lie: "ahead" is not over, "past" has begun, "habit" recurs, "due" ends with a deadline
    ("by Friday", 周五前), which is an event of the day it names: on that day it is asked for. ``ends`` marks a plan
    that is given up. Three groups cut the memory's text out of the words: ``told`` is all of it, ``no`` (what
    denies) and ``rest`` (what only leads to the time, "is on") are no part of it.
    """

    own: re.Pattern[str]
    others: re.Pattern[str]
    time: Time
    ends: bool = False

    def match(self, words: str, start: int, subject: str) -> re.Match[str] | None:
        """Match all the words behind the subject; several others ("my parents are") go like "we"."""
        own = self.own.fullmatch(words, start)
        return own if own or subject == SELF else self.others.fullmatch(words, start)


@dataclass(frozen=True, slots=True)
class Calendar:
    """How one language speaks of time, as tables.

    ``subject`` finds who does it (None: nobody the rules know), ``adverbs`` are skipped behind it. ``doings`` need a
    subject, those of ``alone`` none. ``unsure`` are words that spoil a clause, ``usually`` those that spoil a single
    date. ``leads`` are words that belong to the time behind them ("on"); ``due`` those that make it a deadline, before
    it ("by") and behind it (前). ``links`` are all that may be left of a clause
    that says nothing but a time.
    """

    subject: Callable[[str, str], Subject | None]
    adverbs: re.Pattern[str]
    doings: tuple[Doing, ...]
    alone: tuple[Doing, ...]
    unsure: re.Pattern[str]
    usually: re.Pattern[str]
    leads: re.Pattern[str]
    due: tuple[re.Pattern[str], re.Pattern[str]]
    links: re.Pattern[str]
