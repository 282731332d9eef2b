"""An answer as it comes from a chat endpoint, event by event, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from bot.endpoint import LLMError, failure
from bot.reasoning import GrowingAnswer
from bot.text import is_blank

Finish = Literal["stop", "length", "cut", "empty"]

_LENGTH_REASONS: Final = frozenset({"length", "max_tokens", "model_length"})
MOST_CHARACTERS: Final = 200_000
"""Of one answer, thinking included: more than any model is let write here. An endpoint that minds no limit is left."""
_FILTER_REASONS: Final = frozenset({"content_filter", "sensitive", "safety"})


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an answer ended.

    ``text`` is its visible part. ``finish`` is "stop" when it ended by itself, "length" at its token
    limit, "cut" when it broke off (``error`` tells why, None when the stream just ended), "empty" when
    nothing of it can be seen; then ``text`` is "". Tokens are the endpoint's own count, None if untold.
    """

    text: str
    finish: Finish
    tokens_in: int | None = None
    tokens_out: int | None = None
    error: LLMError | None = None


class Reading:
    """Takes the decoded events of one answer, streamed chunks or the one body of an unstreamed answer."""

    def __init__(self) -> None:
        self._answer = GrowingAnswer()
        self._answered = False
        self._reason: str | None = None
        self._tokens: tuple[int | None, int | None] = (None, None)

    @property
    def finished(self) -> bool:
        """Whether the endpoint said that the answer is over."""
        return self._reason is not None

    @property
    def begun(self) -> bool:
        """Whether anything of an answer has come."""
        return self._answered

    @property
    def overflows(self) -> bool:
        """Whether the answer is longer than any is let be; it ends here."""
        return len(self._answer) > MOST_CHARACTERS

    @property
    def visible(self) -> str:
        """The visible text so far; "" as long as nothing of it can be seen."""
        text = self._answer.visible()
        return "" if is_blank(text) else text

    def take(self, event: object) -> None:
        """Add one event. Raises LLMError when it is a refusal or nothing an endpoint would send."""
        match event:
            case {"error": error} if error:
                raise refusal(error)
            case {"choices": choices}:
                self._answered = True
                if choices and isinstance(choices, list) and isinstance(choices[0], dict):
                    self._take_choice(choices[0])
            case dict():
                pass
            case _:
                raise LLMError("bad_answer", repr(event))
        match event:
            case {"usage": {**usage}}:
                self._tokens = (_count(usage, "prompt_tokens"), _count(usage, "completion_tokens"))

    def outcome(self, error: LLMError | None = None) -> Outcome:
        """Tell how the answer ended; ``error`` is what broke it off.

        Raises LLMError when there is nothing to show for it: the error itself, a content filter, or no
        answer at all.
        """
        text = self._answer.visible(complete=True)
        nothing = is_blank(text)
        if nothing and error is not None:
            raise error
        if nothing and self._reason in _FILTER_REASONS:
            raise LLMError("refused", "stopped by the endpoint's content filter")
        if not self._answered:
            raise LLMError("bad_answer", "no answer in the response")
        if nothing:
            return Outcome("", "empty", *self._tokens)
        return Outcome(text, "cut" if error else self._finish(), *self._tokens, error=error)

    def _finish(self) -> Finish:
        if self.overflows:
            return "length"
        if self._reason is None or self._reason in _FILTER_REASONS:
            return "cut"
        return "length" if self._reason in _LENGTH_REASONS else "stop"

    def _take_choice(self, choice: Mapping[str, Any]) -> None:
        part = choice.get("delta") or choice.get("message")
        if isinstance(part, dict):
            self._answer.add(_words(part.get("content"))[: MOST_CHARACTERS + 1])
        if reason := choice.get("finish_reason"):
            self._reason = str(reason).lower()


def refusal(error: object) -> LLMError:
    """Return the error for an ``error`` object that came inside a response of status 200."""
    match error:
        case {**fields}:
            codes = (fields.get("code"), fields.get("type"))
            return failure(str(fields.get("message") or fields), status=None, codes=codes)
        case _:
            return failure(str(error), status=None)


def _words(content: object) -> str:
    """Return the text of a message's content; some endpoints send it in typed parts, thinking among them."""
    match content:
        case str():
            return content
        case [*parts]:
            return "".join(
                part["text"]
                for part in parts
                if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str)
            )
        case _:
            return ""


def _count(usage: Mapping[Any, Any], name: str) -> int | None:
    value = usage.get(name)
    return value if isinstance(value, int) else None
