"""Time in the words of people, Chinese and English: pure functions from text to spans.

``mentions`` and ``until`` read what is said, ``recurrence`` and ``occurrences`` what comes round, ``asked`` and
its kin what a question wants. Weeks begin on Monday, seasons are the northern ones, days are counted in the
person's zone. A text goes three steps: :mod:`~memory.dates.lexer` finds the time words by the tables of
``chinese``, ``english`` and ``figures``; :mod:`~memory.dates.grammar` tells what a row of them means;
:mod:`~memory.dates.reading` joins expressions. What is vague or may be no date at all is left out.
"""

from __future__ import annotations

from memory.dates.asking import PartialDate, asked, asks_when, holds_time, matches, partial
from memory.dates.frame import Lean
from memory.dates.mention import mentions, until
from memory.dates.recurring import MOST_OCCURRENCES, occurrences, recurrence, takes_place, upcoming

__all__ = [
    "MOST_OCCURRENCES",
    "Lean",
    "PartialDate",
    "asked",
    "asks_when",
    "holds_time",
    "matches",
    "mentions",
    "occurrences",
    "partial",
    "recurrence",
    "takes_place",
    "until",
    "upcoming",
]
