"""``trace``: how replies came to be, in numbers; the words of people only where they are asked for.

Reading what somebody said is a choice, never a side effect: without ``words`` not one of them is read from the file.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bot.border import FAILED
from config.settings import Settings
from memory import DATABASE_NAME, Census, Told, looking

_OTHER: Final = "(forgotten, or of another account)"
_UNKEPT: Final = "(its words were not kept)"


@dataclass(frozen=True, slots=True)
class Asked:
    """Which traces are wanted: of a ``turn``, or the ``last`` ones, of everybody or of an ``owner`` (platform:id)."""

    last: int = 1
    turn: str | None = None
    owner: str | None = None
    words: bool = False


def main(settings: Settings, asked: Asked, *, as_json: bool) -> int:
    """Print the traces and return the exit code. Raises DatabaseError when the database cannot be read."""
    with looking(settings.data_dir / DATABASE_NAME) as census:
        found = [] if census is None else _found(census, asked)
        shown = [] if census is None else [_shown(census, told, words=asked.words) for told in found]
        missing = "" if found else _missing(census, asked)
    if missing:
        sys.stderr.write(f"{missing}\n")
        return FAILED
    if as_json:
        sys.stdout.write(json.dumps(shown, ensure_ascii=False, indent=1) + "\n")
        return 0
    for told in shown:
        sys.stdout.write("\n".join(_lines(told)) + "\n\n")
    return 0


def _found(census: Census, asked: Asked) -> list[Told]:
    if asked.turn is not None:
        return census.of_turn(asked.turn)
    if asked.owner is not None:
        return census.of(*_named(asked.owner), asked.last)
    return census.newest(asked.last)


def _missing(census: Census | None, asked: Asked) -> str:
    if census is None:
        return "There is no database yet: nobody has talked to the bot."
    if asked.turn is not None:
        return (
            f"No reply has the number {asked.turn}. Traces are kept for [trace] keep_days; a turn that broke off "
            "before its reply is in the log alone."
        )
    if asked.owner is not None and not census.knows(*_named(asked.owner)):
        return f"Nobody is known as {asked.owner}: name a person as PLATFORM:ID, such as telegram:1001."
    return "No reply has been given yet, or its trace is older than [trace] keep_days."


def _named(owner: str) -> tuple[str, str]:
    platform, _, user_id = owner.partition(":")
    return platform, user_id


def _shown(census: Census, told: Told, *, words: bool) -> dict[str, Any]:
    data = dict(told.data)
    shown = {
        "turn": told.turn,
        "at": told.at.isoformat(),
        "owner": told.who,
        "reply": told.reply,
        **{name: value for name, value in data.items() if name != "turn"},
    }
    if words:
        recalled = [unit["id"] for unit in data.get("recalled", ())]
        rows = [row for row in (data.get("question"), told.reply, *recalled) if row is not None]
        texts = census.words(told.account, rows)
        shown["words"] = {
            "question": texts.get(data.get("question", 0), _OTHER),
            "reply": texts.get(told.reply or 0, _OTHER),
            "recalled": {str(id_): texts.get(id_, _OTHER) for id_ in recalled},
        }
    return shown


def _lines(told: Mapping[str, Any]) -> Iterator[str]:
    """A trace for people: a line of what it is, then what went into it, indented."""
    yield f"turn {told['turn'] or '-'}  {told['at']}  {told['owner']}"
    tokens, milliseconds = told.get("tokens") or {}, told.get("ms") or {}
    spent = ", ".join(f"{count} {way}" for way, count in tokens.items() if count is not None)
    took = ", ".join(f"{name} {value:g}" for name, value in milliseconds.items())
    yield f"  finish {told.get('finish')}; tokens {spent or 'none'}; ms {took or 'none'}"
    level = told.get("level")
    yield f"  level {'-' if level is None else f'{level:.4f}'}; notes {', '.join(told.get('notes', ())) or '-'}"
    words = told.get("words")
    if words:
        yield f"  asked: {words['question'] or _UNKEPT}"
        yield f"  replied: {words['reply'] or _UNKEPT}"
    for kept in told.get("learned", ()):
        yield f"  learned: {kept['action']} {kept['reason']} {kept['id'] or ''}".rstrip()
    for unit in told.get("recalled", ()):
        terms = ", ".join(f"{term} {value:.3f}" for term, value in unit["scores"].items())
        what = f"{unit['id']} {unit['kind']} {unit['band']} {unit['score']:.3f}"
        yield f"  recalled: {what} ({terms or 'not asked about'})"
        if words:
            yield f"    {words['recalled'][str(unit['id'])]}"
    for arm, numbers in told.get("arms", {}).items():
        yield f"  {arm}: {', '.join(f'{name} {value:g}' for name, value in numbers.items())}"
    reasons = Counter(reason for _, reason in told.get("left_out", ()))
    yield f"  left out: {', '.join(f'{reason} {count}' for reason, count in reasons.most_common()) or 'nothing'}"
    window = told.get("window") or {}
    yield (
        f"  window: {window.get('lines', 0)} lines, {window.get('tokens', 0)} tokens; "
        f"{window.get('dropped', 0)} lines dropped"
    )
