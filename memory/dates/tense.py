"""Whether a clause speaks of what was or of what will be, by its verbs and particles."""

from __future__ import annotations

import re
from typing import Final

from memory.dates.frame import Lean

_PLANNED: Final = re.compile(
    r"(?<![重主需])要(?!是|么)|(?<![开聚学约晚机宴社议])会(?!议|员|场|所)|将|打算|准备|计划|预定|预计"
    r"|\b(?:will|won['’]?t|shall|gonna|going to|(?:plan|plans|planning|want|wants|need|needs|have|has) to|must|should"
    r"|remind|let['’]?s|(?:am|is|are) (?:\w+ )?\w+ing|upcoming"
    r"|(?:am|is|are) (?:scheduled|booked|planned|due|set))\b|['’](?:ll|m|re) (?:\w+ing|going)\b|['’]ll\b"
)
_OVER: Final = re.compile(
    r"了|过(?![几两三敏期分程于节年生来去])|刚|已经|曾|当时|那时|上次|[买搬去来做吃见认识生办走回写发拍看]的(?!时候)"
    r"|\b(?:was|were|did|didn['’]?t|had|been|ago|went|came|got|saw|bought|met|ate|made|took|gave|left|told|said|felt"
    r"|found|lost|won|wrote|read|ran|broke|began|started|flew|drove|slept|woke|spent|sold|paid|sent|heard|knew|thought"
    r"|became|fell|held|kept|caught|taught|brought|drank|sang|swam|wore|chose|spoke|stole|hit|quit|hurt"
    r"|(?!need|feed|speed|indeed|hundred|naked|red\b|bed\b)[a-z]{2,}ed)\b"
)
_AHEAD: Final = re.compile(
    r"想|得[去回交在参]|需要|记得|提醒|别忘|回来|到期|截止|出发|必须|应该|安排|再[去来见说]"
    r"|\b(?:is|are|am|do|does|can|could|see you|back|due|ends?|until|till)\b|['’](?:m|re)\b"
)


def tense(clause: str) -> Lean:
    """Lean of a folded clause: plans first ("要结婚了"), then what is over, then the present used of the future."""
    if _PLANNED.search(clause):
        return "future"
    if _OVER.search(clause):
        return "past"
    return "future" if _AHEAD.search(clause) else "none"


def planned(clause: str) -> bool:
    """Whether a folded clause plainly speaks of what is to come."""
    return _PLANNED.search(clause) is not None
