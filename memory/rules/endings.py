"""Ends that a clause states of its own accord: a couple that parts, a job that is given up.

They name no value, or only a name, so that no rule of a slot reads them. A parting ends what was known of the partner's
name, a job given up whichever job was known. That it is so is kept as a fact, or as the event it is where its time is
told (:mod:`memory.rules.plans`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from memory import dates
from memory.model import SELF
from memory.rules.grammar import FACT, Clause, Statement, any_of

_WHEN: Final = (
    r"(?: (?:yesterday|today|recently|again|last (?:night|week|month|year|spring|summer|autumn|fall|winter)"
    r"|this (?:week|month|year)|(?:a|\w+) (?:days?|weeks?|months?|years?) ago|for good))?"
)
_HAVE: Final = r"(?:'ve |ve |have |just |finally |actually )*"
_PART: Final = r"(?:broke up|broken up|split up|called it quits|separated)"
_UNWED: Final = r"(?:divorced|got divorced|gotten divorced|are divorced|got a divorce)"
_KIN: Final = any_of("girlfriend boyfriend partner gf bf wife husband spouse fiancée? fiance")
_NAME: Final = r"(?P<name>[^\W\d_]{2,20})"
_ENGLISH: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"we {_HAVE}(?:{_PART}|(?P<unwed>{_UNWED})){_WHEN}",
        rf"(?:my (?P<kin>{_KIN})|{_NAME}) and (?:i|me) {_HAVE}(?:{_PART}|(?P<unwed>{_UNWED})){_WHEN}",
        rf"i {_HAVE}(?:broke up|broken up|split up) with (?:my (?P<kin>{_KIN})|{_NAME}){_WHEN}",
        rf"(?:my (?P<kin>{_KIN})|{_NAME}) (?:broke up with|dumped) me{_WHEN}",
        rf"my (?P<kin>{_KIN}) left me{_WHEN}",
        rf"(?P<job>i {_HAVE}(?:quit|resigned from|left|lost) my job|i (?:got|was) (?:fired|laid off)){_WHEN}",
    )
)
_TIME: Final = any_of("已经 刚刚? 昨天 前天 上周 上个?月 去年 今年 最近 前几天 前两天 终于 正式") + "*"
_AGO: Final = r"(?:了?(?:好久|很久|[一二两三四五六七八九十半几0-9]+(?:天|周|个?月|年)多?)了?|了)"
_HAN_KIN: Final = any_of("女朋友 男朋友 女友 男友 对象 老婆 老公 妻子 丈夫 太太 先生 爱人 媳妇 前任 未婚妻 未婚夫")
_HAN_NAME: Final = r"(?P<name>[一-鿿a-z]{1,12}?)"
_WITH: Final = rf"[和跟与同](?:我的?)?(?:(?P<kin>{_HAN_KIN})|{_HAN_NAME})"
_CHINESE: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"我们?{_TIME}(?:分手|(?P<unwed>离婚)){_AGO}",
        rf"(?:我们?)?{_TIME}{_WITH}{_TIME}(?:分手?|掰|(?P<unwed>离婚)){_AGO}",
        rf"我?{_TIME}被(?:(?P<kin>{_HAN_KIN})|{_HAN_NAME})甩了",
        rf"(?P<job>我?{_TIME}(?:辞职|离职|被裁员?|被公司裁员?|失业|被开除|把工作辞)了)",
    )
)
_PARTNERS: Final = {
    "en": (("girlfriend", "boyfriend"), ("wife", "husband")),
    "zh": (("女朋友", "男朋友"), ("老婆", "老公")),
}
"""What partners are most often called who are not wed, and who are; an end of what nobody knows does nothing."""
_NO_NAME: Final = re.compile(
    r"(?:you|he|she|they|it|mom|mum|dad|mother|father|sister|brother|everyone|friends?|this|that|band|what|who)"
    r"|.*[你您他她它谁的]|.*(?:公司|朋友|同事|老板|爸|妈|哥|姐|弟|妹|过去|自己)"
)


def endings(clause: Clause) -> Iterator[Statement]:
    """Yield what a plain clause ends, after the fact that it is so; nothing where it ends nothing in so many words."""
    for pattern in _CHINESE if clause.tongue.code == "zh" else _ENGLISH:
        if found := pattern.fullmatch(clause.words):
            yield from _ended(clause, found.groupdict(), found)
            return


def _ended(clause: Clause, groups: dict[str, str | None], found: re.Match[str]) -> Iterator[Statement]:
    name = groups.get("name")
    written = clause.written[slice(*found.span("name"))] if name else ""
    if name and (_NO_NAME.fullmatch(name) or written[0].islower()):
        return
    if not dates.holds_time(clause.written):
        yield Statement(FACT, clause.written, SELF, clause)
    if groups.get("job"):
        yield Statement("job", "", SELF, clause, negates=True)
        return
    if kin := groups.get("kin"):
        yield Statement("name", "", kin, clause, negates=True)
        return
    partners = _PARTNERS[clause.tongue.code][bool(groups.get("unwed"))]
    for partner in partners:
        yield Statement("name", written, partner, clause, negates=True)
