"""What one endpoint turned out to understand of the request; learnt from its refusals and remembered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from bot.endpoint import LLMError

JsonForm = Literal["json_schema", "json_object", "text"]

_JSON_FORMS: Final[tuple[JsonForm, ...]] = ("json_schema", "json_object", "text")
_DISPENSABLE: Final = ("stream_options", "temperature")


@dataclass(slots=True)
class Dialect:
    """Begins with what OpenAI's API documents and gives up what the endpoint refuses."""

    _limit: str = "max_tokens"
    _unknown: set[str] = field(default_factory=set)
    _json_form: JsonForm = "json_schema"

    def phrase(self, fields: Mapping[str, Any], *, max_tokens: int) -> dict[str, Any]:
        """Return a request body of ``fields``, without what the endpoint does not know."""
        known = {name: value for name, value in fields.items() if name not in self._unknown}
        return {**known, self._limit: max_tokens}

    def learn(self, refusal: LLMError, body: Mapping[str, Any]) -> bool:
        """Learn from the refusal of ``body``; True if the request is worth another try."""
        if refusal.kind != "refused":
            return False
        if "max_tokens" in body and "max_completion_tokens" in refusal.detail:
            self._limit = "max_completion_tokens"
            return True
        refused = {name for name in _DISPENSABLE if name in body and name in refusal.detail}
        self._unknown |= refused
        return bool(refused)

    def json_forms(self) -> Sequence[JsonForm]:
        """Return the ways to ask for JSON that are left, best first."""
        return _JSON_FORMS[_JSON_FORMS.index(self._json_form) :]

    def keep_json_form(self, form: JsonForm) -> None:
        """Remember the way that worked."""
        self._json_form = form


def response_format(form: JsonForm, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request field that asks for JSON of ``schema`` in the given way; empty for "text"."""
    match form:
        case "json_schema":
            wanted = {"name": "answer", "schema": dict(schema), "strict": True}
            return {"response_format": {"type": form, form: wanted}}
        case "json_object":
            return {"response_format": {"type": form}}
        case "text":
            return {}
