"""The same question in other words, by a model: for one that cannot be searched as it stands.

Never needed. A model that is away, slow, chatty or hostile leaves the question as it was and a note in the
trace; what it writes is searched for and never shown, and only in the memory the question was asked of.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from config.prompts import render
from memory.answers import AnswerError, parse
from memory.checks import instruction
from memory.lexicon import asked_in
from memory.model import Account
from memory.ports import Completer, CompleterUnavailable
from memory.usage import Usage
from memory.usage import tokens as spent

MOST_QUERIES: Final = 3
LONGEST_QUERY: Final = 200
"""Characters of a search; a longer one is no search."""
LONGEST_ANSWER: Final = 2_000
"""Characters of three searches in whatever dress; a longer answer is something else."""
LONGEST_TURN: Final = 300
"""Characters shown of a turn before the question, and of the question."""
ANSWER_TOKENS: Final = 300

_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["items"],
    "additionalProperties": False,
}


class Rejected(Exception):
    """An answer that holds no searches, or more than searches; ``str()`` is for the trace and holds none of it."""


class Rewriter:
    """Asks the model for searches, for ``seconds`` at most."""

    def __init__(self, completer: Completer, usage: Usage, *, seconds: float) -> None:
        self._completer = completer
        self._usage = usage
        self._seconds = seconds

    async def queries(
        self, owner: Account, question: str, *, context: Sequence[str], now: datetime
    ) -> tuple[tuple[str, ...], str]:
        """Up to three searches for a question, and a note for the trace; none when anything is wrong.

        ``context`` are turns of the room the question was asked in, oldest first. Nothing else of the owner's
        leaves for the model.
        """
        try:
            async with asyncio.timeout(self._seconds):
                asked = _request(owner, question, context, now)
                answer = await self._completer.complete(asked, schema=_SCHEMA, max_tokens=ANSWER_TOKENS)
            self._usage.count(
                owner,
                "rewrite",
                tokens_in=spent(answer.tokens_in, *(message["content"] for message in asked)),
                tokens_out=spent(answer.tokens_out, answer.text),
            )
            found = searches(answer.text, question, cut=answer.cut)
        except TimeoutError:
            return (), "not rewritten: the model is slow"
        except CompleterUnavailable:
            return (), "not rewritten: no model"
        except (AnswerError, Rejected) as error:
            return (), f"not rewritten: {error}"
        return found, f"rewritten: {len(found)} more searches"


def searches(answer: str, question: str, *, cut: bool = False) -> tuple[str, ...]:
    """The searches in a model's answer, without the question itself.

    All or nothing: one that orders, or is longer than any search, spoils the rest. Raises AnswerError, Rejected.
    """
    if len(answer) > LONGEST_ANSWER:
        raise Rejected("the answer was too long")
    said = [item.get("text") for item in parse(answer, cut=cut)]
    texts = [" ".join(text.split()) for text in said if isinstance(text, str)]
    if len(texts) < len(said) or any(len(text) > LONGEST_QUERY or instruction(text) for text in texts):
        raise Rejected("the answer held more than searches")
    found = [text for text in dict.fromkeys(texts) if any(map(str.isalnum, text)) and text != question.strip()]
    if not found:
        raise Rejected("the answer held no search")
    return tuple(found[:MOST_QUERIES])


def _request(owner: Account, question: str, context: Sequence[str], now: datetime) -> list[dict[str, str]]:
    local = now.astimezone(ZoneInfo(owner.zone))
    told = render("rewrite", asked_in(question), most=MOST_QUERIES, now=f"{local:%Y-%m-%d %H:%M}")
    asked = {"turns": [turn[:LONGEST_TURN] for turn in context], "question": question[:LONGEST_TURN]}
    return [
        {"role": "system", "content": told},
        {"role": "user", "content": json.dumps(asked, ensure_ascii=False)},
    ]
