"""Which language to answer in: as a person writes, else as their platform says."""

from __future__ import annotations

from typing import Final

from bot.message import Incoming, Update
from bot.text import clean
from memory import detect_language

SHORT_WORDS: Final = 2


def language_of(update: Update) -> str:
    """The language ("zh" or "en") to answer an update in as long as its author's is not known."""
    hinted = "zh" if (update.language or "").lower().startswith("zh") else "en"
    written = changed_language(clean(update.text), hinted) if isinstance(update, Incoming) else None
    return written or hinted


def changed_language(text: str, known: str) -> str | None:
    """The language a text shows that its author has gone over to; None when it is ``known`` or says too little.

    "ok 👍" is English that a Chinese writes, too.
    """
    written = detect_language(text)
    if written in (None, known) or (written == "en" and len(text.split()) <= SHORT_WORDS):
        return None
    return written
