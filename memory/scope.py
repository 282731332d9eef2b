"""What ``/forget`` is asked to forget: words, the last thing, all since a time, this chat, or everything. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from memory.dates import mentions
from memory.script import folded

Kind = Literal["words", "chosen", "last", "since", "here", "everything"]
"""How much is meant. "chosen" are memories picked from a list."""
SEARCHED: Final = frozenset({"words", "chosen", "last"})
"""What takes every line along that gives it away; the others end where their time or place ends."""
LONGEST: Final = 80
"""Characters of the longest wish that is read as anything but words to be looked for."""
DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Scope:
    """What is meant; ``since`` (aware UTC) for what was said from then on."""

    kind: Kind = "words"
    since: datetime | None = None

    @property
    def searches(self) -> bool:
        """Whether lines that hold the words of what goes are looked for wherever they stand."""
        return self.kind in SEARCHED


WORDS: Final = Scope()
CHOSEN: Final = Scope("chosen")

_PLACE: Final = "(?:chat|conversation|talk|channel|group|room|thread|topic)"
_ALL_ZH: Final = "(?:一切|全部|所有|全都)(?:的?(?:事情?|东西|内容|信息|资料|数据|记忆|记录|话))?"
_EVERYTHING: Final = re.compile(
    r"(?:everything|all)(?: (?:of it|you (?:ever )?(?:know|remember|have|stored|learn(?:ed|t))(?: (?:about|of|on) me)?"
    r"|(?:about|of|on) me|(?:that )?(?:i|i've|i have) (?:ever )?(?:said|told you|written)"
    r"|(?:of )?my (?:data|memories|messages)))?"
    r"|all (?:of )?my (?:data|memories|messages)|me"
    rf"|(?:关于|有关)?(?:我|你记得|你知道)?(?:的)?{_ALL_ZH}|关于我的?(?:事情?|记忆)"
    rf"|(?:你)?(?:知道|记得)的?(?:关于)?(?:我的)?{_ALL_ZH}"
)
_LAST: Final = re.compile(
    r"(?:the )?(?:last|latest|previous)(?: (?:one|thing|message|memory|line|sentence))?"
    r"(?: (?:that )?i (?:just )?(?:said|told you|wrote))?|that(?: one)?|this(?: one)?|it|just now"
    r"|what i(?:'ve| have)? just (?:said|told you|wrote|written)"
    r"|(?:我)?(?:刚才|刚刚|方才)(?:我)?(?:说|讲|写)?(?:的)?(?:那|这)?一?(?:条|句|个|件|段)?(?:话|事|事情|记忆|消息)?"
    r"|(?:上|最后|最近的?那?|最新的?那?)一?(?:条|句|个|件|段)(?:话|事|事情|记忆|消息)?"
    r"|[这那]一?(?:条|句|个|件|段)(?:话|事|事情|记忆|消息)?|它"
)
_HERE: Final = re.compile(
    rf"(?:(?:everything|all)(?: (?:said|i said|i told you))? (?:in |from )?)?(?:here|this {_PLACE})"
    rf"|what (?:i|was) said (?:here|in this {_PLACE})"
    r"|(?:在)?(?:这里|这儿|(?:这个?|本)(?:聊天|对话|会话|群聊?|群组|频道|话题|私聊))(?:里|中|里面)?"
    rf"(?:我)?(?:说过?)?(?:的)?(?:{_ALL_ZH}|话|内容)?"
)
_SINCE_EN: Final = re.compile(
    r"(?:(?:everything|all|what) )?(?:(?:that )?(?:i|i've|i have) (?:said|told you) )?"
    r"(?:since|from|starting(?: from)?) (?P<time>.+?)(?: on(?:wards?)?| until now| till now)?"
)
_LATELY_EN: Final = re.compile(
    r"(?:(?:everything|all|what)(?: i(?:'ve| have)? (?:said|told you))? )?(?:from |in |of |during |within )?"
    r"(?:the )?(?:last|past) (?P<count>\S+ )??(?P<unit>minute|hour|day)s?"
)
_TODAY: Final = re.compile(
    r"(?:(?:everything|all|what)(?: i(?:'ve| have)? (?:said|told you))? )?(?:(?:from |of )?today|today's messages)"
    r"|今天(?:我)?(?:说过?)?(?:的)?(?:一切|全部|所有|话|内容)?"
)
_TAIL_ZH: Final = rf"(?:我)?(?:说过?)?(?:的)?(?:{_ALL_ZH}|话|内容)?"
_SINCE_ZH: Final = re.compile(
    rf"(?:从|自从?|打从?)(?P<time>.+?)(?:起|开始|以来|以后|之后|到现在|至今)?{_TAIL_ZH}"
    rf"|(?P<time_2>.+?)(?:起|开始|以来|以后|之后|到现在|至今){_TAIL_ZH}"
    rf"|(?P<time_3>(?:最近|过去|近).+?)(?:内|里|之内|以内)?{_TAIL_ZH}"
)
_EDGES: Final = re.compile(r"^[\s\"'“”,，]+|[\s.!?。！？~\"'“”,，]+$")
_FILLER: Final = re.compile(r"[\s,.;:，。、的]|\b(?:since|from|on|at|the|of|in)\b")


def read(words: str, *, now: datetime, zone: str) -> Scope:
    """What the words behind ``/forget`` mean; anything that is no other form is words to be looked for.

    ``now`` is aware; a time is reckoned in ``zone`` (IANA) and always lies behind.
    """
    if len(words) > LONGEST:
        return WORDS
    wish = _EDGES.sub("", re.sub(r"\s+", " ", folded(words)))
    if _EVERYTHING.fullmatch(wish):
        return Scope("everything")
    if _HERE.fullmatch(wish):
        return Scope("here")
    if _LAST.fullmatch(wish):
        return Scope("last")
    since = _since(wish, now=now, zone=zone)
    return WORDS if since is None else Scope("since", since)


def _since(wish: str, *, now: datetime, zone: str) -> datetime | None:
    if _TODAY.fullmatch(wish):
        return _start("today", now=now, zone=zone)
    if found := _LATELY_EN.fullmatch(wish):
        count = (found["count"] or "").strip() or ("an" if found["unit"] == "hour" else "a")
        return _start(f"{count} {found['unit']}s ago", now=now, zone=zone)
    if found := _SINCE_EN.fullmatch(wish):
        return _start(f"since {found['time']}", now=now, zone=zone)
    if found := _SINCE_ZH.fullmatch(wish):
        return _start(found["time"] or found["time_2"] or found["time_3"], now=now, zone=zone)
    return None


def _start(time: str, *, now: datetime, zone: str) -> datetime | None:
    """The beginning of the time that a text names and nothing else; None where it names none, or one to come."""
    found = mentions(time, at=now, zone=zone, lean="past") or mentions(f"since {time}", at=now, zone=zone, lean="past")
    if len(found) != 1 or _FILLER.sub("", time.replace(found[0].words.removeprefix("since "), " ")):
        return None
    start = found[0].start
    if start > now and found[0].precision in ("minute", "hour"):
        start -= DAY
    return start if start <= now else None
