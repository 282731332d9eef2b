"""Plain words inside Markdown: escaped, they are read as they are written."""

from __future__ import annotations

from typing import Final

import regex

_SIGNS: Final = regex.compile(r"[\\`*_~|\[\]<>#]")


def escaped(text: str) -> str:
    """Escape every sign of ``text`` that Markdown might take for markup (CommonMark 0.31, 2.4 Backslash escapes)."""
    return _SIGNS.sub(r"\\\g<0>", text)
