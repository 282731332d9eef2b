"""Which language to answer in, and which script of Chinese: as a person writes, else as their platform says."""

from __future__ import annotations

from typing import Final

import regex

from bot.message import Incoming, Update
from bot.text import clean
from config.templates import spoken
from memory import chinese_script, detect_language

SHORT_WORDS: Final = 2
MANY_SIGNS: Final = 4
"""Han characters that are Chinese without any of the words every sentence has."""
SCRIPT_SIGNS: Final = 2
"""Characters of the other script that tell that a Chinese has gone over to it; one may be a name or a quote."""

_ENGLISH: Final = regex.compile(
    r"\b(?:i|i'm|i've|you|he|she|it|it's|we|they|me|my|your|his|her|our|their|this|that|these|those|there|the|an?|is|am"
    r"|are|was|were|be|been|do|does|did|don't|have|has|had|can|could|will|would|should|not|no|yes|and|or|but|if|when"
    r"|what|which|who|where|why|how|of|to|in|on|at|for|with|from|about|please|thanks?|hello|hi|us|let|speak|talk|tell|say"
    r"|know|think|want|need|like|love|got?|come|make|see)\b",
    regex.IGNORECASE,
)
_CHINESE: Final = regex.compile(
    "[的了吗嗎呢吧是不没沒有在我你您他她它这這那哪谁誰什么甚麼怎样樣们們要想会會能可请請和跟就也很还還给給让讓把被过過啊]"
)
_HAN: Final = regex.compile(r"\p{Han}")


def language_of(update: Update) -> str:
    """The language ("en", "zh", "zh-TW") to answer an update in as long as its author's is not known."""
    hinted = spoken(update.language or "")
    written = changed_language(clean(update.text), hinted) if isinstance(update, Incoming) else None
    return written or hinted


def changed_language(text: str, known: str, hinted: str = "zh") -> str | None:
    """The language a text shows that its author has gone over to; None when it is ``known`` or says too little.

    Names, products and commands ("iPhone 15 Pro Max", "東京都") are in everybody's sentences, and "ok 👍" is
    English that a Chinese writes, too: only words that sentences are made of tell a language. Of Chinese without
    a sign of its script, ``hinted`` (what the platform says) tells the script.
    """
    written = detect_language(text)
    if written is None or written == known == "en":
        return None
    if written == "en":
        return "en" if len(text.split()) > SHORT_WORDS and _ENGLISH.search(text) else None
    if known != "en":
        script = chinese_script(text, least=SCRIPT_SIGNS)
        return None if script == known else script
    told = _CHINESE.search(text) or len(_HAN.findall(text)) >= MANY_SIGNS
    return (chinese_script(text) or (hinted if spoken(hinted) != "en" else "zh")) if told else None
