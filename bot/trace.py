"""How one reply came to be: what was recalled and why, what was left out, what the window dropped, costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bot import correlation
from bot.media import Content, as_words
from bot.window import Window
from memory.model import EVERYWHERE, Chat, Decision, Entry, Recollection

Request = list[dict[str, Content]]
"""Messages of a chat request: role and content each."""


def may_be_named(entry: Entry, room: Chat) -> bool:
    """Whether a reply in ``room`` may hold the words of a memory: in a group only what belongs there."""
    return room.private or entry.provenance.audience in (room.audience, EVERYWHERE)


@dataclass(slots=True)
class TurnTrace:
    """Filled while a turn is answered. :meth:`stored` holds ids and scores only; the words stay in the stores.

    ``room`` is where it is answered, ``question`` the id of the message, ``turn`` the number it has in the log.
    """

    question: int
    room: Chat
    learned: list[Decision] = field(default_factory=list)
    found: Recollection = field(default_factory=Recollection)
    window: Window = field(default_factory=Window)
    request: Request = field(default_factory=list)
    finish: str = "none"
    tokens: dict[str, int | None] = field(default_factory=dict)
    milliseconds: dict[str, float] = field(default_factory=dict)
    turn: str = field(default_factory=correlation.current)

    @property
    def kept(self) -> list[str]:
        """What the rules stored or confirmed, as the rows have it; only what may be named in the room."""
        return self._named("added", "confirmed", "superseded")

    @property
    def ended(self) -> list[str]:
        """What the person said does not hold any more; only what may be named in the room."""
        return self._named("retired")

    @property
    def noted(self) -> bool:
        """Whether memory took up anything at all, nameable or not."""
        return any(decision.action != "dropped" for decision in self.learned)

    @property
    def told(self) -> dict[str, Any]:
        """What the log tells of the turn: numbers."""
        level = self.found.level
        return {
            "ms": round(sum(self.milliseconds.values())),
            "model_ms": round(self.milliseconds.get("model", 0.0)),
            "level_found": None if level is None else round(level, 3),
            "recalled": len(self.found.units),
            "tokens_in": self.tokens.get("in"),
            "tokens_out": self.tokens.get("out"),
            "finish": self.finish,
        }

    def _named(self, *actions: str) -> list[str]:
        entries = (decision.entry for decision in self.learned if decision.action in actions)
        return [entry.text for entry in entries if entry is not None and may_be_named(entry, self.room)]

    def stored(self) -> dict[str, Any]:
        """The trace as it is kept: no text of anybody, so that forgetting never has to search it."""
        return {
            "turn": self.turn,
            "question": self.question,
            "learned": [
                {"action": d.action, "reason": d.reason, "id": d.entry.id if d.entry else None} for d in self.learned
            ],
            "level": self.found.level,
            "notes": list(self.found.notes),
            "arms": {arm: dict(told) for arm, told in self.found.arms.items()},
            "recalled": [
                {
                    "id": unit.id,
                    "kind": unit.kind,
                    "band": unit.band,
                    "score": round(unit.score, 4),
                    "scores": {name: round(value, 4) for name, value in unit.scores.items()},
                }
                for unit in self.found.units
            ],
            "left_out": [list(pair) for pair in self.found.left_out],
            "window": {
                "lines": len(self.window.lines),
                "ids": [line.id for line in self.window.lines],
                "dropped": self.window.dropped,
                "tokens": self.window.tokens,
            },
            "finish": self.finish,
            "tokens": self.tokens,
            "ms": {name: round(value, 2) for name, value in self.milliseconds.items()},
        }

    def shown(self) -> dict[str, Any]:
        """The trace with its words and the request that went to the model, for debugging and replay; never stored."""
        texts = {unit.id: unit.text for unit in self.found.units}
        stored = self.stored()
        for unit in stored["recalled"]:
            unit["text"] = texts[unit["id"]]
        for kept, decision in zip(stored["learned"], self.learned, strict=True):
            kept["text"] = decision.entry.text if decision.entry else None
        return stored | {"request": [message | {"content": as_words(message["content"])} for message in self.request]}
