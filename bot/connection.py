"""Requests to one OpenAI-compatible endpoint: bounded in time and size, and never a storm of them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import httpx2
import openai

from bot import metrics
from bot.circuit import Circuit, RestingError, Ticket
from bot.endpoint import TROUBLE, LLMError, failure, normalise_base_url

Events = openai.AsyncStream[object]

CONNECT_SECONDS: Final = 5.0
"""Longest wait for a connection; a machine that is up answers in far less."""
MOST_BYTES: Final = 32 * 2**20
"""Of one answer: a model that thinks aloud sends some 300 bytes a token, and 100,000 of these fit in."""
FAILURES: Final = (openai.OpenAIError, httpx2.HTTPError, ValueError, RecursionError, TimeoutError)
"""What the SDK lets out of a request: its own errors, raw transport errors, and bodies nobody can decode."""

_PASSING: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS})
"""Refusals below 500 that say nothing about the request."""
_UNTAKEN: Final = (httpx2.ConnectError, httpx2.ConnectTimeout)

log = logging.getLogger(__name__)

_T = TypeVar("_T")
_ticket: ContextVar[Ticket | None] = ContextVar("ticket", default=None)
"""The request that is under way in this task; the SDK hands nothing through to the client below it."""


class _Resting(openai.OpenAIError):
    """A RestingError in a shape that the SDK lets through without trying again."""


class _TooLarge(openai.OpenAIError):
    """The answer has more bytes than any answer of use."""


@dataclass(frozen=True, slots=True)
class Opened:
    """An answer that has begun, and the request it belongs to, for whoever reads it to say how it went."""

    events: Events
    ticket: Ticket


class Connection:
    """Requests to one endpoint. Failures come out as LLMError, which never holds the key.

    The SDK retries what fails in passing, after a pause that grows and varies or the one of Retry-After; it is the
    only layer that does. An endpoint that goes on failing is left alone (``circuit``), also by retries under way.
    ``timeout`` (seconds) bounds a request with all its retries. ``whose`` tells callers apart: an endpoint that fails
    on one alone is not failing. Raises ValueError for an unusable address or key.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None,
        *,
        timeout: float,
        retries: int,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self.base_url = normalise_base_url(base_url)
        if self.base_url != base_url.strip().rstrip("/"):
            log.info("OPENAI_BASE_URL is used as %s", self.base_url)
        self._key = (api_key or "").strip()
        if not (self._key.isascii() and self._key.isprintable()):
            raise ValueError("OPENAI_API_KEY must be plain ASCII on one line: copy it again")
        self._timeout = timeout
        self.circuit = Circuit(self.base_url, ticks=ticks)
        self._client = openai.AsyncOpenAI(
            base_url=self.base_url,
            api_key=self._key or "none",
            max_retries=retries,
            timeout=openai.Timeout(timeout, connect=min(CONNECT_SECONDS, timeout)),
            http_client=_Guarded(trust_env=not _is_loopback(self.base_url)),
        )

    async def get(self, path: str) -> object:
        """GET ``path`` and return the decoded body, whatever it is. Raises LLMError."""
        return await self._whole(lambda: self._client.get(path, cast_to=object), whose=path)

    async def post(self, path: str, body: Mapping[str, Any], *, whose: Hashable = None) -> object:
        """POST ``body`` as JSON and return the decoded body of the answer. Raises LLMError."""
        return await self._whole(lambda: self._client.post(path, body=dict(body), cast_to=object), whose=whose)

    async def open(self, path: str, body: Mapping[str, Any], *, whose: Hashable = None) -> Opened:
        """POST ``body`` and return the answer as a stream of decoded events.

        Whoever reads it ends its ticket: with ``answered`` or ``failed``, then ``leave``. Raises LLMError.
        """
        ticket = self.circuit.ticket(whose)
        request = lambda: self._client.post(  # noqa: E731 - it is made when the request is let out
            path, body=dict(body), cast_to=object, stream=True, stream_cls=Events
        )
        try:
            return Opened(await self._bounded(request, ticket), ticket)
        except BaseException:
            ticket.leave()
            raise

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    def explain(self, error: Exception) -> LLMError:
        """Return the LLMError for what a request raised."""
        problem = self._explain(error).hide(self._key)
        if not problem.counted:
            problem.counted = True
            metrics.ENDPOINT_ERRORS.labels(problem.kind).inc()
        return problem

    async def _whole(self, request: Callable[[], Awaitable[object]], *, whose: Hashable) -> object:
        ticket = self.circuit.ticket(whose)
        try:
            answer = await self._bounded(request, ticket)
            ticket.answered()
        finally:
            ticket.leave()
        return answer

    async def _bounded(self, request: Callable[[], Awaitable[_T]], ticket: Ticket) -> _T:
        under_way = _ticket.set(ticket)
        try:
            async with asyncio.timeout(self._timeout):
                await ticket.admit()
                return await request()
        except (*FAILURES, RestingError) as error:
            problem = self.explain(error)
            if isinstance(error, TimeoutError):
                ticket.failed()
        finally:
            _ticket.reset(under_way)
        raise problem

    def _explain(self, error: Exception) -> LLMError:
        match error:
            case LLMError():
                return error
            case RestingError() | _Resting():
                return LLMError("resting", str(error))
            case _TooLarge():
                return LLMError("bad_answer", str(error))
            case TimeoutError() | openai.APITimeoutError() | httpx2.TimeoutException():
                return LLMError("timeout", f"nothing for {self._timeout:g} s from {self.base_url}")
            case openai.APIConnectionError() | httpx2.HTTPError():
                return LLMError("unreachable", f"{self.base_url}: {error.__cause__ or error}")
            case openai.APIError():
                status = error.status_code if isinstance(error, openai.APIStatusError) else None
                words = error.body if isinstance(error.body, str) and error.body else error.message
                return failure(words, status=status, codes=(error.code, error.type))
            case _:
                return LLMError("bad_answer", str(error))


class _Guarded(openai.DefaultAsyncHttpxClient):
    """Sends each try of a request, if the endpoint is to be asked at all, and says how it went."""

    async def send(self, request: httpx2.Request, *, stream: bool = False, **more: Any) -> httpx2.Response:
        """Send one try; see httpx."""
        ticket = _ticket.get()
        if ticket is None:
            raise RuntimeError("a request goes through Connection")
        try:
            await ticket.admit()
        except RestingError as error:
            raise _Resting(str(error)) from error
        try:
            response = await super().send(request, stream=True, **more)
            response.stream = _Bounded(response.stream)
            if not stream:
                await _read(response)
        except httpx2.HTTPError as error:
            ticket.failed(taken=not isinstance(error, _UNTAKEN))
            raise
        _judge(response, ticket)
        return response


async def _read(response: httpx2.Response) -> None:
    try:
        await response.aread()
    except BaseException:
        await response.aclose()
        raise


class _Bounded(httpx2.AsyncByteStream):
    """The bytes of an answer, up to a bound."""

    def __init__(self, stream: httpx2.SyncByteStream | httpx2.AsyncByteStream) -> None:
        if not isinstance(stream, httpx2.AsyncByteStream):
            raise TypeError("an asynchronous answer was expected")
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the pieces as they come. Raises an error of the SDK for too many."""
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > MOST_BYTES:
                raise _TooLarge(f"an answer of more than {MOST_BYTES} bytes")
            yield piece

    async def aclose(self) -> None:
        """Let go of the connection."""
        await self._stream.aclose()


def tell(ticket: Ticket, problem: LLMError | None) -> None:
    """Tell an endpoint's circuit how an answer began: with ``problem``, or as it should."""
    if problem is not None and problem.kind in TROUBLE:
        ticket.failed()
    else:
        ticket.answered()


def _judge(response: httpx2.Response, ticket: Ticket) -> None:
    """Say what a status tells. That of a good answer tells little: it comes before the answer does."""
    if response.status_code in _PASSING or response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        ticket.failed(asked_rest=_seconds(response.headers.get("Retry-After", "")))
    elif response.is_error:
        ticket.answered()


def _seconds(header: str) -> float:
    """Seconds of a Retry-After header, 0 for none; the other form, a date, is left to the SDK."""
    try:
        seconds = float(header)
    except ValueError:
        return 0.0
    return seconds if seconds > 0 else 0.0


def _is_loopback(base_url: str) -> bool:
    """Whether a server on this very machine is meant; a proxy from the environment must not come between."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
