"""What is known about an OpenAI-compatible endpoint without asking it: its address and its refusals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final, Literal, Self
from urllib.parse import SplitResult, urlsplit

Kind = Literal[
    "unauthorised",
    "not_found",
    "rate_limited",
    "overloaded",
    "timeout",
    "unreachable",
    "context_too_long",
    "refused",
    "no_images",
    "bad_answer",
    "resting",
]

HINTS: Final[dict[Kind, str]] = {
    "unauthorised": "the endpoint does not accept the key: check OPENAI_API_KEY and what the key is allowed to do",
    "not_found": "no such model or path: check OPENAI_MODEL, OPENAI_EMBEDDING_MODEL and whether "
    "OPENAI_BASE_URL ends in the version path (mostly /v1)",
    "rate_limited": "too many requests, or the credit is used up: see the endpoint's limits and billing",
    "overloaded": "the endpoint fails on its side: try later",
    "timeout": "no answer in time: see model.timeout_seconds and embedder.timeout_seconds in recollect.toml",
    "unreachable": "nobody answers there: check OPENAI_BASE_URL, and that the server runs",
    "context_too_long": "the prompt is longer than the model takes: lower model.context_tokens in recollect.toml",
    "refused": "the endpoint refuses the request: `python -m bot check` shows what it says to one of our own",
    "no_images": "the model takes no pictures, or not these: name one that sees as OPENAI_MODEL, or set images = false "
    "under [media] in recollect.toml",
    "bad_answer": "that is no answer of an OpenAI-compatible endpoint: check OPENAI_BASE_URL "
    "(a missing /v1 often leads to a web page)",
    "resting": "the endpoint failed again and again and is left alone for a while: the log says how; it is tried again "
    "by itself",
}
"""What an operator can do, by kind of failure."""
TROUBLE: Final[frozenset[Kind]] = frozenset({"rate_limited", "overloaded", "timeout", "unreachable"})
"""Failures of the endpoint itself, whatever it was asked."""

_DETAIL_LIMIT: Final = 300
"""Characters of the endpoint's own words that ``check`` and ``init`` show."""

_ENDPOINT_PATH: Final = re.compile(r"/(?:chat/completions|completions|embeddings|models|responses)$")
_CONTEXT_CODES: Final = frozenset({"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"})
_CONTEXT_WORDS: Final = re.compile(
    r"context (?:length|window|size|limit)|maximum context|max_?(?:prompt|input)_?(?:tokens|length)"
    r"|(?:prompt|input|messages?) (?:is |are )?too long|too many (?:input )?tokens|range of input length"
    r"|input length.{0,40}exceed|exceeds?.{0,40}(?:token limit|context)"
    r"|上下文.{0,16}(?:超|过长|限制|上限)"
    r"|(?:输入|文本|内容|提示词?|请求|消息|令牌|prompt|tokens?).{0,16}(?:过长|太长|超长|超出|超过|超限)",
    re.IGNORECASE | re.DOTALL,
)
_PICTURE_WORDS: Final = re.compile(
    r"\bimages?\b|image_(?:url|input)|\bpictures?\b|\bvision\b|multi-?modal|mmproj|图片|图像|图文|视觉|多模态",
    re.IGNORECASE,
)
"""How endpoints that cannot refuse a request without naming what it is about speak of pictures."""
_CONTEXT_STATUSES: Final = frozenset({None, 400, 413, 422, 500})
_WORD_STATUS: Final = {
    "invalid_api_key": 401,
    "authentication_error": 401,
    "permission_error": 403,
    "model_not_found": 404,
    "not_found_error": 404,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "insufficient_quota": 429,
    "overloaded_error": 503,
    "server_error": 500,
    "api_error": 500,
    "invalid_request_error": 400,
}
"""HTTP status meant by an error word that comes without one, as inside a stream."""


class LLMError(Exception):
    """A request to an endpoint failed. ``str()`` is for the log and names the fix.

    ``kind`` is for the handler, ``status`` the HTTP status if there was one, ``detail`` the endpoint's own
    words, without the key. These often quote what they refuse, and a log outlives /forget: they are never in
    ``str()`` or ``repr()``, and shown only where nobody's words were sent (``told``).
    """

    def __init__(self, kind: Kind, detail: str = "", *, status: int | None = None) -> None:
        super().__init__(kind, status)
        self.kind: Kind = kind
        self.status = status
        self.detail = detail
        self.counted = False
        """Whether it is among what is measured already; it may pass more than one border."""

    def __str__(self) -> str:
        status = "" if self.status is None else f" (HTTP {self.status})"
        return f"{self.kind.replace('_', ' ')}{status}: {self.hint}"

    @property
    def told(self) -> str:
        """The error together with the endpoint's words; for requests of our own making alone."""
        detail = self.detail if len(self.detail) <= _DETAIL_LIMIT else f"{self.detail[:_DETAIL_LIMIT]}…"
        return f"{self}: {detail}" if detail else str(self)

    @property
    def hint(self) -> str:
        """What an operator can do; names the setting."""
        return HINTS[self.kind]

    def hide(self, secret: str) -> Self:
        """Take ``secret`` out of the endpoint's words, which like to quote the key they refuse."""
        if secret:
            self.detail = self.detail.replace(secret, "***")
        return self


class ContextTooLong(LLMError):
    """The prompt does not fit the model; a shorter one may."""

    def __init__(self, detail: str = "", *, status: int | None = None) -> None:
        super().__init__("context_too_long", detail, status=status)


class PicturesRefused(LLMError):
    """The request held pictures and these may be why it was refused; the same without them may be answered."""

    def __init__(self, detail: str = "", *, status: int | None = None) -> None:
        super().__init__("no_images", detail, status=status)


def picture_refusal(error: LLMError) -> LLMError:
    """Return what ``error`` means for a request with pictures: PicturesRefused if these may be why, else itself.

    Of models that do not see, some say so, some speak of a type they do not know and some of wrong parameters
    (400 and 422); others fail (llama.cpp: 500), are not found (OpenRouter: 404) or find the body too large (413).
    """
    match error:
        case LLMError(kind="refused", status=int()):
            blamed = True
        case LLMError(kind="context_too_long", status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE):
            blamed = _CONTEXT_WORDS.search(error.detail) is None
        case LLMError(kind="not_found" | "overloaded" | "bad_answer"):
            blamed = _PICTURE_WORDS.search(error.detail) is not None
        case _:
            blamed = False
    return PicturesRefused(error.detail, status=error.status) if blamed else error


def failure(detail: str, *, status: int | None, codes: Sequence[object] = ()) -> LLMError:
    """Return the error for a refusal.

    ``detail`` are the endpoint's words, ``status`` the HTTP status if there was one, ``codes`` its error code
    and type: words, or a status, as it comes inside a stream.
    """
    words = [str(code).lower() for code in codes if code is not None]
    if status is None:
        status = next((meant for word in words if (meant := _status_of(word))), None)
    if status in _CONTEXT_STATUSES and (
        status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        or not _CONTEXT_CODES.isdisjoint(words)
        or _CONTEXT_WORDS.search(detail)
    ):
        return ContextTooLong(detail, status=status)
    return LLMError(_kind_of(status), detail, status=status)


def _status_of(word: str) -> int | None:
    return int(word) if re.fullmatch(r"[45]\d\d", word) else _WORD_STATUS.get(word)


def _kind_of(status: int | None) -> Kind:
    match status:
        case 401 | 403:
            return "unauthorised"
        case 404 | 405:
            return "not_found"
        case 402 | 429:
            return "rate_limited"
        case 408 | 504:
            return "timeout"
        case int() if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return "overloaded"
        case None:
            return "bad_answer"
        case _:
            return "refused"


def normalise_base_url(url: str) -> str:
    """Return the base URL that the SDK wants, from whatever people paste.

    A trailing slash and the path of a single call (``/chat/completions``) are taken off; an empty path
    becomes ``/v1``; any other path is kept, for gateways have paths of their own (``/api/v3``). Giving a
    result in again changes nothing. Raises ValueError, whose text names OPENAI_BASE_URL and the fix.
    """
    text = url.strip()
    if not re.match(r"https?://", text, re.IGNORECASE):
        raise ValueError("OPENAI_BASE_URL must begin with http:// or https://, as in https://api.example.com/v1")
    parts = _split(text)
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError(
            "OPENAI_BASE_URL must hold no user name, no '?' and no '#'; the key belongs into OPENAI_API_KEY"
        )
    path = re.sub(r"/{2,}", "/", parts.path).rstrip("/")
    path = _ENDPOINT_PATH.sub("", path)
    return f"{parts.scheme.lower()}://{parts.netloc}{path or '/v1'}"


def _split(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or re.search(r"\s", text):
        raise ValueError(
            "OPENAI_BASE_URL is no valid address; it looks like https://api.example.com/v1 or http://127.0.0.1:11434/v1"
        )
    return parts
