"""Our Chinese texts in traditional characters, as they are written in Taiwan.

OpenCC does nearly all of it. What it gets wrong in our texts, or says as nobody there would, is set right by
``OVERRIDES``; a test tells when one of them has become needless.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from opencc import OpenCC

OVERRIDES: Final[Mapping[str, str]] = {
    "“": "「",
    "”": "」",
    "東西里": "東西裡",
    "回復後": "回覆後",
    "連線": "連接",
    "瞭解": "了解",
}
"""What OpenCC makes of our texts to what it should have made of them, in this order."""


@cache
def _converter() -> OpenCC:
    return OpenCC("s2twp")


def traditional(text: str) -> str:
    """Return a text of ours, simplified Chinese, in traditional characters and the words of Taiwan.

    For what ships with the program only: what people write stays as they wrote it.
    """
    converted: str = _converter().convert(text)
    for wrong, right in OVERRIDES.items():
        converted = converted.replace(wrong, right)
    return converted
