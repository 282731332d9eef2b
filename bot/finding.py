"""One thing that ``check`` looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: "ok" works, "warn" works less well, "fail" does not work; ``fix`` says what to do.

    A failure of the ``settings`` themselves is one that no look at anything else explains.
    """

    level: Literal["ok", "warn", "fail"]
    what: str
    fix: str = ""
    settings: bool = False

    @property
    def line(self) -> str:
        """The finding as printed."""
        return f"{self.level:4}  {self.what}" + (f" — {self.fix}" if self.fix else "")
