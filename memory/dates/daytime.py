"""Which half of the day an hour without one belongs to, told by what is done then ("wake up at 5:30", 7点吃晚饭)."""

from __future__ import annotations

import re
from typing import Final

from memory.dates.clock import Hours

_MORNING: Final = (1, 13)
_MIDDAY: Final = (11, 15)
_OFFICE: Final = (8, 19)
_EVENING: Final = (16, 24)
_BEDTIME: Final = (19, 29)
"""Half-open hours after midnight; bed is gone to up to five in the morning."""
_RISING: Final = (
    r"\b(?:wakes?|waking|woke|(?:gets?|getting|got) up|up (?:at|by)|alarm|breakfast|sunrise"
    r"|(?:work|school|kindergarten|nursery) (?:starts?|begins?)|(?:starts?|begins?|starting) (?:work|school)"
    r"|(?:leave|leaves|leaving) (?:for|to) (?:work|school))\b"
    r"|起床|闹钟|醒|早[饭餐起]|晨[跑练会读]|日出|(?<!不)上班|上学"
)
_LUNCH: Final = r"\b(?:lunch|brunch)\b|午[饭餐]"
_RECEIVING: Final = (
    r"\b(?:exams?|appointments?|doctors?|dentist|therapist|interview|meeting|check-?up)\b"
    r"|面试|考试|体检|看[病牙]|医生|会议|开会|签约"
)
_DINING: Final = (
    r"\b(?:dinner|supper|sunset|concert|gig|(?:finish|finishes|leave|leaves|get off|gets off) work"
    r"|(?:work|school) (?:ends?|finishes))\b"
    r"|晚[饭餐会]|夜[宵跑]|下班|放学|演唱会|音乐会|日落"
)
_SLEEPING: Final = r"\b(?:bed ?(?:time)?|asleep|sleeps?)\b|睡(?!醒|过头)|就寝"
_DONE: Final[tuple[tuple[Hours, str], ...]] = (
    (_MORNING, _RISING),
    (_MIDDAY, _LUNCH),
    (_EVENING, _DINING),
    (_BEDTIME, _SLEEPING),
    (_OFFICE, _RECEIVING),
)
_ANY: Final = re.compile("|".join(f"(?P<p{number}>{words})" for number, (_, words) in enumerate(_DONE)))


def implied(hour: int, before: str, behind: str) -> Hours | None:
    """Return the part of the day that the nearest word of a folded clause implies for an ``hour`` between its halves.

    What leads to the hour counts before what follows it ("I wake up at 6 and dine with Ann"). None where nothing
    tells, or where the hour is in that part neither in the morning nor in the evening ("the dentist at 7").
    """
    earlier = list(_ANY.finditer(before))
    found = earlier[-1] if earlier else _ANY.search(behind)
    if found is None or found.lastgroup is None:
        return None
    first, end = _DONE[int(found.lastgroup[1:])][0]
    return (first, end) if any(first <= hour + later < end for later in (0, 12, 24)) else None
