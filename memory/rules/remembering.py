"""Explicit wishes to be remembered: "remember that …", 记住…, and the text after /remember."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from memory import checks
from memory.model import Candidate, Citation
from memory.rules.clauses import TONGUES, tongue_of
from memory.rules.grammar import any_of
from memory.rules.reading import HIDDEN, Reading, read
from memory.script import visible

LONGEST_FACT: Final = 500
"""Characters of the longest fact a person may have remembered; more than that is a document."""

_ASKS: Final = re.compile(
    any_of(
        r"^\W*(?:(?:对了|另外|还有|请|麻烦你?|你要|你|帮我|那|嗯)\W*)*(?:记住|记一下|记下来?|"
        r"记得)(?:一下)?[\s,:]*(?=\S)",
        r"^\W*(?:(?:please|pls|plz|also|and|ok|hey|hi|can_you|could_you|just)\W+)*(?:remember|note|keep_in_mind|"
        r"bear_in_mind|don'?t_forget|note_to_self)(?:_that\b|\s*:|_(?=(?:i|i'm|my|we|our)\b))[\s,:]*(?=\S)",
    )
)
_NO_FACT: Final = re.compile(
    any_of(
        r"^(?:了|吧|没|这句|这个|我说|我的?话|到|去|要|别|把|给|提醒|一定) ^我(?:了|吗|吧|没|是谁|说) "
        r"\bremind\b ^to\b ^when\b ^time\b ^the_(?:time|day)\b "
        r"^我的?[^是叫在有要会能去来做住爱喜想吃喝用开上下对不没\d]+$ [{}<>\[\]|\\]"
    )
)
_OWN: Final = re.compile(r"[我咱]|\b(?:i|i'm|i've|my|mine|we|our|me)\b")
_PLAINLY: Final = re.compile(
    any_of(
        r"^\W*(?:(?:对了|另外|还有|请|麻烦你?|嗯)\W*)*(?:帮我|给我|替我)(?:记住|记一下|记下来?)",
        r"^\W*(?:(?:please|pls|plz|also|and|ok|hey|hi|btw|can_you|could_you|just)\W+)*(?:please_remember_that\b|note_to_self\b|(?:please_)?remember\s*:|"
        r"remember_that\b(?=[^\n]*\d))",
    )
)
"""Asks to have something kept in so many words, be it about whom it may; of the bot itself nothing is kept.

"Remember that …" alone is as often good advice, so that it counts only beside a figure worth keeping."""
_TELLS: Final = re.compile(r"(?:the|our|an?|this|there|[a-z]+'s)\b|[一-鿿]")
_ORDERS: Final = re.compile(
    r"以后|今后|从现在|必须|只[能要]|不[要准许]|别|回[答复]|规则|服从|from now on|always|never|only\b"
)
"""How what is to be kept begins, for it to tell of something; what it holds when it orders something instead."""
_TO_THE_BOT: Final = re.compile(r"[你您]|\b(?:you|your|yours|you're|bot)\b")
_SENTENCE_END: Final = re.compile(r"[。!?;\n]|\.(?=\s|$)")


def remembered(reading: Reading, known: Sequence[Candidate], *, message_id: int, at: datetime) -> list[Candidate]:
    """Return the fact a message asks to remember, unless rules already read its words (``known``)."""
    found: list[Candidate] = []
    for first, body, plainly in _wishes(reading):
        quote = reading.quote(first, first + len(body))
        if _is_statement(body, plainly=plainly) and not any(_says(line, quote) for line in known):
            found.append(fact(quote, Citation(message_id, quote, at)))
    return found


def _says(known: Candidate, quote: str) -> bool:
    """Whether a candidate stands for a wish: an event only for all its words, which its text does not keep."""
    cited = known.citations[0].quote
    return cited == quote if known.kind == "event" else cited in quote


def wants_remembering(text: str) -> bool:
    """Whether a message asks in so many words to have something remembered, be it fit for a memory or not.

    "Remember when we met?" and "remember to call me" ask for something else.
    """
    reading = read(text)
    if reading is None:
        return False
    return any(
        body and not _NO_FACT.search(body) and not tongue_of(body).question.search(body)
        for _, body, _ in _wishes(reading)
    )


def _wishes(reading: Reading) -> Iterator[tuple[int, str, bool]]:
    """Yield what each sentence wishes to have remembered: its place in ``folded``, its words, whether asked plainly."""
    start = 0
    for end in [*(stop.end() for stop in _SENTENCE_END.finditer(reading.folded)), len(reading.folded)]:
        sentence, at_start, start = reading.folded[start:end], start, end
        asked = _ASKS.match(sentence)
        if asked and not sentence.rstrip().endswith("?"):
            yield (
                at_start + asked.end(),
                sentence[asked.end() :].rstrip(" 。.!;\n"),
                _PLAINLY.match(sentence) is not None,
            )


def fact(text: str, citation: Citation) -> Candidate:
    """Return a fact in the person's own words, which they asked to have kept."""
    code = tongue_of(text).code
    return Candidate(kind="fact", citations=(citation,), language=code, text=seen(text).strip(), importance=0.8)


def seen(text: str) -> str:
    """Return a text as written, without what nobody sees (zero width, control, lone surrogates)."""
    return "".join(character for character in text if visible(character))


def _is_statement(body: str, *, plainly: bool) -> bool:
    tongue = tongue_of(body)
    return (
        1 < len(body) <= LONGEST_FACT
        and HIDDEN not in body
        and (_OWN.search(body) is not None or (plainly and _tells(body)))
        and not _NO_FACT.search(body)
        and not _TO_THE_BOT.match(body)
        and not tongue.question.search(body)
        and not any(each.unreal.search(body) or each.joke.search(body) for each in TONGUES)
        and not checks.secret(body)
        and not checks.instruction(body)
    )


def _tells(body: str) -> bool:
    """Whether words that do not speak of their author tell of something, rather than order something."""
    return _TELLS.match(body) is not None and not _ORDERS.search(body) and not _TO_THE_BOT.search(body)
