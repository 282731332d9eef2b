"""Codes that are shown once and typed somewhere else: random, short-lived, and kept as keyed hashes alone."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

LENGTH: Final = 8
"""Signs of a code: 40 bits. With few tries a guess hits one open code in a hundred million times."""
ALPHABET: Final = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
"""Without signs that are taken for one another."""


class Hashed(Protocol):
    """A code as it is kept."""

    @property
    def salt(self) -> bytes:
        """What its hash is keyed with."""

    @property
    def hash(self) -> bytes:
        """What it is recognised by."""


Kept = TypeVar("Kept", bound=Hashed)


@dataclass(frozen=True, slots=True)
class Fresh:
    """A new code: ``shown`` in groups of four signs, to be read once; ``salt`` and ``hash`` to be kept."""

    shown: str
    salt: bytes
    hash: bytes


def fresh() -> Fresh:
    """Draw a code that nobody can guess."""
    code = "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
    salt = secrets.token_bytes(16)
    return Fresh(f"{code[:4]}-{code[4:]}", salt, _digest(salt, code))


def matching(codes: Iterable[Kept], typed: str) -> Kept | None:
    """The code that was typed. Every one is compared, in constant time, so that a clock tells nothing of any."""
    plain = "".join(sign for sign in typed.upper() if sign.isalnum())
    found: Kept | None = None
    for code in codes:
        if hmac.compare_digest(code.hash, _digest(code.salt, plain)):
            found = code
    return found


def _digest(salt: bytes, code: str) -> bytes:
    return hmac.digest(salt, code.encode(), "sha256")
