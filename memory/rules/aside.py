"""Words that say of themselves that they are not to be remembered: "off the record: ...", “别记住这个：……”."""

from __future__ import annotations

import re
from typing import Final

from memory.script import folded

_OBJECT: Final = (
    "(?:(?:这|下面|以下|接下来|后面)(?:个|句|条|段|些|件事)?(?:话|的话|内容|消息)?|我(?:下面|接下来)?说的(?:话)?)"
)
_ZH: Final = (
    rf"(?:{_OBJECT})?(?:请|麻烦)?(?:你|您)?(?:别|不要|不用|不必|勿)(?:帮我|给我)?(?:再)?"
    rf"(?:记住|记录|记下来|记下|记|保存|存下来|存|留底)(?:{_OBJECT}|下来)?(?:哦|啊|哈|喔|噢|了)?"
)
_EN: Final = (
    r"(?:(?:this|what follows|the following|this one|this part)(?: is|'s| stays)?[, ]+)?(?:strictly |please[, ]+)?"
    r"(?:off the record|off record|not for the record"
    r"|(?:do not|don't|dont|never) (?:remember|save|store|record|keep|memorise|memorize|log)"
    r" (?:this|that|the following|what follows|what i say(?: now| next)?|any of this|this one)(?: please)?)"
)
_LEAD: Final = re.compile(rf"(?:{_EN}|{_ZH})")
_BEHIND: Final = re.compile(rf"[(\[【]\s*(?:{_EN}|{_ZH})\s*[.!]?\s*[)\]】]\s*$")


def off_the_record(text: str) -> bool:
    """Whether a message asks for itself not to be remembered: in a word before it, or in brackets behind it.

    Only what cannot be anything else: a colon or a line's end behind the word; a comma only where the word names what
    it speaks of ("别记这个，"). "Off the record, he told me ..." is a way of telling, too, and counts: to keep
    less than was meant is the smaller mistake.
    """
    seen = folded(text.strip())
    lead = _LEAD.match(seen)
    if lead is not None:
        rest = seen[lead.end() :]
        named = re.search(rf"off the record|off record|this|that|follow|what i say|{_OBJECT}", lead.group()) is not None
        ends = r"\s*(?:[:\n]|--?|—+)\s*\S|\s*[,]\s*\S" if named else r"\s*[:\n]\s*\S"
        if re.match(ends, rest):
            return True
    return _BEHIND.search(seen) is not None and _BEHIND.sub("", seen).strip() != ""
