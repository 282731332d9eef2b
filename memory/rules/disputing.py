"""Words by which a person says that something is wrong: all of a message, or it is talk about something else."""

from __future__ import annotations

import re
from typing import Final, Literal

from memory.script import folded

Dispute = Literal["answer", "memory"]
"""What is said to be wrong: what was answered, or in so many words what is remembered."""

_LONGEST: Final = 60
_THAT: Final = r"(?:that|this|it|that one|this one|what you (?:said|wrote|know|remember))"
_WRONG: Final = r"(?:wrong|not right|not true|not correct|incorrect|false|untrue|not so|mistaken)"
_EN: Final[dict[Dispute, str]] = {
    "answer": rf"(?:{_THAT}(?: is|'s| was|'s just| is just| is simply)? {_WRONG}|{_THAT} (?:isn't|is not|wasn't)"
    r" (?:right|true|correct|so)|(?:this|that|you) (?:got|have) (?:that|this|it) wrong|you(?:'re| are) wrong"
    rf"|{_WRONG})",
    "memory": r"(?:you(?:'ve| have)? (?:remember(?:ed)?|recall(?:ed)?|memori[sz]ed|noted|stored|saved)"
    r" (?:that|this|it|me) wrong(?:ly)?|you misremember(?:ed)?(?: that| this| it)?|wrong memory"
    rf"|(?:your|that|this) memory is {_WRONG}|you (?:remember|recall) wrong(?:ly)?)",
}
_ZH: Final[dict[Dispute, str]] = {
    "answer": r"(?:(?:这|那)(?:个|条|样|里)?)?(?:你)?(?:说|写|讲|弄|搞)?(?:的)?(?:不对|错了|不正确|有误|不是真的)"
    r"|(?:不是|才不是)(?:这样|那样|这么回事|那么回事)的?|没(?:有)?(?:这|那)(?:回|么)?事",
    "memory": r"(?:(?:这|那)(?:个|条|样|里)?)?(?:你)?(?:记|记得|记住|记的|记忆)(?:的)?"
    r"(?:不对|错了?|错啦|有误|反了|混了)",
}
_LEAD: Final = (
    r"(?:(?:no|nope|hey|hm+|wait|sorry|actually|oh|well|but|不|嗯|诶|欸|哎|喂|等等|啊|哦|抱歉|其实)[ ,.!，。]*)*"
)
_TAIL: Final = r"(?:[ ,.!~，。]|吧|啊|呀|哦|哈|啦|呢|了|though|at all|i think|i'm afraid|sorry|please)*"
_KINDS: Final[tuple[Dispute, ...]] = ("memory", "answer")
_PATTERNS: Final = tuple((kind, re.compile(f"{_LEAD}(?:{_EN[kind]}|{_ZH[kind]}){_TAIL}")) for kind in _KINDS)


def disputes(text: str) -> Dispute | None:
    """Return what a message says is wrong, if that is all it says; None for any other.

    "That's wrong, the capital is Rome" says more, and is talk; so is a question.
    """
    if len(text) > _LONGEST:
        return None
    plain = " ".join(folded(text).replace("’", "'").split())
    for kind, pattern in _PATTERNS:
        if pattern.fullmatch(plain):
            return kind
    return None
