"""The model client against a real socket: how answers end, how requests fail, what is learnt."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from bot.llm import LLM, ContextTooLong, LLMError, Outcome, PicturesRefused
from bot.media import Content, Picture, as_content
from config.settings import ModelSettings
from memory.ports import Completer, CompleterUnavailable
from tests.servers.openai_server import OpenAIServer

KEY = "sk-secret-0123456789"
HI = [{"role": "user", "content": "hi"}]
WEB_PAGE = "<!DOCTYPE html><title>Gateway</title>"
PNG = Picture("image/png", b"\x89PNG\r\n\x1a\n", "cat.png")
JPEG = Picture("image/jpeg", b"\xff\xd8\xff\xe0", "dog.jpg")
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"facts": {"type": "array"}}}


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer() as running:
        yield running


@pytest.fixture
async def llm(server: OpenAIServer) -> AsyncIterator[LLM]:
    async with client(server.base_url) as one:
        yield one


def client(base_url: str, **settings: Any) -> LLM:
    return LLM(base_url, KEY, "scripted", ModelSettings(**{"timeout_seconds": 5, "retries": 0, **settings}))


async def ask(llm: LLM, content: Content = "hi") -> tuple[list[str], Outcome]:
    stream = llm.stream([{"role": "user", "content": content}], max_tokens=50)
    frames = [frame async for frame in stream]
    return frames, stream.outcome


async def failing(llm: LLM, content: Content = "hi") -> LLMError:
    with pytest.raises(LLMError) as caught:
        await ask(llm, content)
    return caught.value


def delta(content: str, finish: str | None = None) -> str:
    reason = f'"{finish}"' if finish else "null"
    return f'{{"choices":[{{"index":0,"delta":{{"content":"{content}"}},"finish_reason":{reason}}}]}}'


async def test_an_answer_grows_in_frames_and_ends_with_its_token_counts(server: OpenAIServer, llm: LLM) -> None:
    server.on("hi", reply="Hello there")
    frames, outcome = await ask(llm)
    assert frames == ["Hel", "Hello", "Hello the", "Hello there"]
    assert outcome == Outcome("Hello there", "stop", tokens_in=len("user: hi"), tokens_out=11)


async def test_b04_empty_choices_missing_deltas_and_a_null_usage_do_no_harm(server: OpenAIServer, llm: LLM) -> None:
    chunks = [
        '{"choices":[],"prompt_filter_results":[{}]}',
        '{"choices":[{"index":0,"delta":{"role":"assistant"}}]}',
        delta("Hel"),
        '{"choices":[{"index":0,"finish_reason":null,"content_filter_offsets":{}}]}',
        delta("lo", "stop"),
        '{"choices":[],"usage":null}',
    ]
    server.on("hi", chunks=chunks)
    assert await ask(llm) == (["Hel", "Hello"], Outcome("Hello", "stop"))


@pytest.mark.parametrize("how", [{"cut": True}, {"drop": True}])
async def test_b04_a_stream_that_breaks_off_is_cut_and_is_not_asked_for_again(
    server: OpenAIServer, how: dict[str, bool]
) -> None:
    server.on("hi", chunks=[delta("Hel")], **how)  # type: ignore[arg-type]
    async with client(server.base_url, retries=2) as llm:
        frames, outcome = await ask(llm)
    assert (frames, outcome.text, outcome.finish) == (["Hel"], "Hel", "cut")
    assert (outcome.error is not None) == ("drop" in how)
    assert len(server.chats) == 1


async def test_b04_an_error_inside_the_stream_is_told_by_its_code(server: OpenAIServer, llm: LLM) -> None:
    server.on("hi", chunks=['{"error":{"message":"overloaded","code":503}}'])
    assert (await failing(llm)).kind == "overloaded"


async def test_an_error_after_some_words_keeps_the_words(server: OpenAIServer, llm: LLM) -> None:
    server.on("hi", chunks=[delta("Hel"), '{"error":{"message":"slow down","code":"rate_limit_exceeded"}}'])
    frames, outcome = await ask(llm)
    assert (frames, outcome.finish) == (["Hel"], "cut")
    assert outcome.error is not None
    assert outcome.error.kind == "rate_limited"


@pytest.mark.parametrize("chunk", ["{bad", '"invalid token"', "null", "[1]"])
async def test_a_corrupt_chunk_cuts_the_answer(server: OpenAIServer, llm: LLM, chunk: str) -> None:
    server.on("hi", chunks=[delta("Hel"), chunk])
    _, outcome = await ask(llm)
    assert (outcome.text, outcome.finish) == ("Hel", "cut")


async def test_a_fault_after_the_end_of_the_answer_changes_nothing(server: OpenAIServer, llm: LLM) -> None:
    server.on("hi", chunks=[delta("Hello", "stop"), "{bad"])
    assert (await ask(llm))[1] == Outcome("Hello", "stop")


@pytest.mark.parametrize("reason", ["length", "max_tokens"])
async def test_an_answer_at_its_token_limit_says_so(server: OpenAIServer, llm: LLM, reason: str) -> None:
    server.on("hi", reply="Hello", finish=reason)
    assert (await ask(llm))[1].finish == "length"


@pytest.mark.parametrize("reply", ["", "   \n", "<think>only thoughts</think>", "\u200b\u2060", "** **"])
async def test_an_answer_with_nothing_to_see_is_empty(server: OpenAIServer, llm: LLM, reply: str) -> None:
    server.on("hi", reply=reply)
    frames, outcome = await ask(llm)
    assert (frames, outcome.text, outcome.finish) == ([], "", "empty")


async def test_thinking_in_tags_or_fields_is_never_shown(server: OpenAIServer, llm: LLM) -> None:
    server.on("hi", reply="<think>secret</think>Hello", reasoning="secret")
    frames, outcome = await ask(llm)
    assert outcome.text == "Hello"
    assert not any("secret" in frame for frame in frames)


async def test_words_shown_before_a_lone_closing_tag_are_withdrawn(server: OpenAIServer, llm: LLM) -> None:
    server.on("hi", reply="plan</think>\n\nHello")
    frames, outcome = await ask(llm)
    assert frames[0] == "pla"
    assert (frames[-1], outcome.text) == ("Hello", "Hello")


async def test_content_in_typed_parts_is_read_without_its_thinking_part(server: OpenAIServer, llm: LLM) -> None:
    parts = '[{"type":"thinking","thinking":"x"},{"type":"text","text":"Hello"}]'
    server.on("hi", chunks=[f'{{"choices":[{{"delta":{{"content":{parts}}},"finish_reason":"stop"}}]}}'])
    assert (await ask(llm))[1] == Outcome("Hello", "stop")


async def test_a_stream_without_any_event_is_a_failure(server: OpenAIServer, llm: LLM) -> None:
    server.on("hi", chunks=[])
    assert (await failing(llm)).kind == "bad_answer"


async def test_a_plain_json_answer_to_a_stream_request_is_read(server: OpenAIServer, llm: LLM) -> None:
    body = {"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}
    server.fault(status=200, body=body)
    assert await ask(llm) == (["Hello"], Outcome("Hello", "stop"))


async def test_b04_a_plain_json_answer_without_choices_is_empty(server: OpenAIServer, llm: LLM) -> None:
    server.fault(status=200, body={"choices": []})
    assert (await ask(llm))[1].finish == "empty"


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (WEB_PAGE, "text/html"),
        (f'"invalid token {KEY}"', "application/json"),
        ("null", "application/json"),
        ('{"ok": true}', "application/json"),
        ("not json", "application/json"),
        ("hello", "text/plain"),
    ],
)
async def test_b05_a_body_that_is_no_answer_points_at_the_base_url(
    server: OpenAIServer, llm: LLM, body: str, media_type: str
) -> None:
    server.fault(status=200, body=body, headers={"Content-Type": media_type})
    error = await failing(llm)
    assert error.kind == "bad_answer"
    assert "OPENAI_BASE_URL" in str(error)
    assert "/v1" in error.hint
    assert KEY not in str(error)
    assert "<title>" not in str(error)
    assert ("a web page" in error.detail) == (media_type == "text/html")


async def test_b05_a_base_url_without_v1_is_repaired_and_the_log_says_so(
    server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.on("hi", reply="Hello")
    caplog.set_level(logging.INFO)
    async with client(server.root) as llm:
        assert (await ask(llm))[1].text == "Hello"
    assert f"OPENAI_BASE_URL is used as {server.base_url}" in caplog.text


@pytest.mark.parametrize("tail", ["/", "/chat/completions", "/embeddings/"])
async def test_b05_a_trailing_slash_or_a_whole_path_works(server: OpenAIServer, tail: str) -> None:
    server.on("hi", reply="Hello")
    async with client(server.base_url + tail) as llm:
        assert (await ask(llm))[1].text == "Hello"


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": "context_length_exceeded", "message": "maximum context length is 8192 tokens"}},
        {"error": {"message": "This model's maximum context length is 4096 tokens. However, you requested"}},
        {"error": {"message": "输入长度超过限制"}},
        {"error": {"type": "exceed_context_size_error", "message": "too big", "code": 400}},
        {"code": 20015, "message": "number of input tokens (9) has exceeded max_prompt_tokens (8) limit."},
    ],
)
async def test_b07_a_prompt_that_is_too_long_is_a_kind_of_its_own(
    server: OpenAIServer, llm: LLM, body: dict[str, Any]
) -> None:
    server.fault(status=400, body=body)
    error = await failing(llm)
    assert isinstance(error, ContextTooLong)
    assert error.kind == "context_too_long"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, "unauthorised"),
        (403, "unauthorised"),
        (404, "not_found"),
        (402, "rate_limited"),
        (429, "rate_limited"),
        (500, "overloaded"),
        (503, "overloaded"),
        (504, "timeout"),
        (400, "refused"),
        (422, "refused"),
    ],
)
async def test_b11_each_status_has_its_kind_and_the_key_stays_out_of_the_text(
    server: OpenAIServer, llm: LLM, status: int, kind: str
) -> None:
    server.fault(status=status, body={"error": {"message": f"no: {KEY}"}})
    error = await failing(llm)
    assert (error.kind, error.status) == (kind, status)
    assert KEY not in f"{error} {error.detail} {error.args}"


async def test_b11_a_refused_key_is_not_tried_again(server: OpenAIServer) -> None:
    server.fault(status=401, body={"error": {"message": "Incorrect API key"}}, times=9)
    async with client(server.base_url, retries=2) as llm:
        await failing(llm)
    assert len(server.chats) == 1


async def test_b11_retry_after_is_waited_for_and_the_answer_comes_once(server: OpenAIServer) -> None:
    """Left to itself the SDK pauses 0.375 s at least before the first retry: less proves the header."""
    server.on("hi", reply="Hello")
    async with client(server.base_url, retries=2) as llm:
        await llm.models()
        server.fault(status=429, headers={"Retry-After": "0.05"}, body={"error": {"message": "slow down"}})
        begin = time.perf_counter()
        _, outcome = await ask(llm)
    assert outcome.text == "Hello"
    assert 0.05 <= time.perf_counter() - begin < 0.35
    assert len(server.chats) == 2


async def test_b11_two_failures_of_the_server_are_survived(server: OpenAIServer) -> None:
    server.fault(status=500, headers={"Retry-After": "0.01"}, times=2)
    server.on("hi", reply="Hello")
    async with client(server.base_url, retries=2) as llm:
        assert (await ask(llm))[1].text == "Hello"
    assert len(server.chats) == 3


async def test_b11_an_endpoint_that_hangs_is_given_up_within_the_bound(server: OpenAIServer) -> None:
    server.fault(match="chat", hang=True, times=9)
    begin = time.perf_counter()
    async with client(server.base_url, retries=2, timeout_seconds=0.2) as llm:
        assert (await failing(llm)).kind == "timeout"
    assert time.perf_counter() - begin < 1


async def test_a_stream_that_stalls_is_cut_with_what_came(server: OpenAIServer) -> None:
    server.on("hi", chunks=[delta("Hel")], stall=True)
    async with client(server.base_url, timeout_seconds=0.2) as llm:
        _, outcome = await ask(llm)
    assert (outcome.text, outcome.finish) == ("Hel", "cut")
    assert outcome.error is not None
    assert outcome.error.kind == "timeout"


async def test_an_answer_that_is_over_does_not_wait_long_for_its_token_count(
    server: OpenAIServer, llm: LLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.llm.TAIL_SECONDS", 0.1)
    server.on("hi", chunks=[delta("Hello", "stop")], stall=True)
    begin = time.perf_counter()
    assert (await ask(llm))[1] == Outcome("Hello", "stop")
    assert time.perf_counter() - begin < 2


async def test_b11_a_dead_endpoint_does_not_look_like_a_hang() -> None:
    async with OpenAIServer() as server:
        address = server.base_url
    async with client(address) as llm:
        error = await failing(llm)
    assert error.kind == "unreachable"
    assert address in error.told


async def test_one_hanging_chat_does_not_hold_another(server: OpenAIServer, llm: LLM) -> None:
    gate = asyncio.Event()
    server.on("slow", reply="late", hold=gate)
    server.on("fast", reply="soon")
    slow = asyncio.create_task(ask(llm, "slow"))
    assert (await ask(llm, "fast"))[1].text == "soon"
    gate.set()
    assert (await slow)[1].text == "late"


async def test_a_stream_left_early_keeps_what_was_shown_and_lets_go(server: OpenAIServer, llm: LLM) -> None:
    server.on("hi", reply="Hello", stall=True)
    async with llm.stream(HI, max_tokens=50) as stream:
        first = await anext(stream)
    assert (stream.outcome.text, stream.outcome.finish) == (first, "cut")


async def test_an_endpoint_that_wants_max_completion_tokens_is_remembered(server: OpenAIServer, llm: LLM) -> None:
    words = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
    server.fault(match='"max_tokens"', status=400, body={"error": {"message": words}}, times=9)
    server.on("hi", reply="Hello")
    await ask(llm)
    await ask(llm)
    limits = [request.body.get("max_completion_tokens") for request in server.chats]
    assert limits == [None, 50, 50]


async def test_optional_fields_that_are_refused_are_left_out_from_then_on(server: OpenAIServer) -> None:
    server.fault(match="stream_options", status=400, body={"error": {"message": "extra: stream_options"}}, times=9)
    server.fault(match="temperature", status=400, body={"error": {"message": "temperature?"}}, times=9)
    server.on("hi", reply="Hello")
    async with client(server.base_url, temperature=0.5) as llm:
        await ask(llm)
        await ask(llm)
    assert len(server.chats) == 4
    assert {"stream_options", "temperature"}.isdisjoint(server.chats[-1].body)


async def test_lone_surrogates_reach_the_endpoint_as_text(server: OpenAIServer, llm: LLM) -> None:
    server.on("", reply="Hello")
    await ask(llm, "a\ud800b\ud83d\ude00")
    assert server.chats[0].last_user == "a\ufffdb😀"


async def test_pictures_go_along_with_the_words(server: OpenAIServer, llm: LLM) -> None:
    server.sees = True
    server.on("what is this", reply="A cat and a dog.")
    assert (await ask(llm, as_content("what is this\ud800?", [PNG, JPEG])))[1].text == "A cat and a dog."
    assert server.chats[0].last_user == "what is this\ufffd?"
    assert server.chats[0].pictures == [(PNG.mime, PNG.data), (JPEG.mime, JPEG.data)]


async def test_words_alone_go_as_plain_content(server: OpenAIServer, llm: LLM) -> None:
    server.on("hi", reply="Hello")
    await ask(llm, as_content("hi", []))
    assert server.chats[0].messages == HI


async def test_a_model_that_does_not_see_is_told_apart_and_answers_without_pictures(
    server: OpenAIServer, llm: LLM
) -> None:
    server.on("hi", reply="Hello")
    error = await failing(llm, as_content("hi", [PNG]))
    assert isinstance(error, PicturesRefused)
    assert (error.kind, error.status) == ("no_images", 400)
    assert "OPENAI_MODEL" in str(error)
    assert (await ask(llm))[1].text == "Hello"


async def test_what_is_refused_beside_the_pictures_is_still_learnt(server: OpenAIServer, llm: LLM) -> None:
    server.sees = True
    server.fault(match="stream_options", status=400, body={"error": {"message": "extra: stream_options"}}, times=9)
    server.on("hi", reply="Hello")
    assert (await ask(llm, as_content("hi", [PNG])))[1].text == "Hello"


async def test_pictures_refused_inside_the_stream_are_told_apart(server: OpenAIServer, llm: LLM) -> None:
    server.sees = True
    server.on("hi", chunks=['{"error":{"message":"image input is not supported","code":500}}'])
    assert (await failing(llm, as_content("hi", [PNG]))).kind == "no_images"


async def test_without_pictures_no_refusal_is_blamed_on_them(server: OpenAIServer, llm: LLM) -> None:
    server.fault(status=400, body={"error": {"message": "bad input: my picture of an image_url"}})
    assert (await failing(llm)).kind == "refused"


async def test_pictures_do_not_hide_what_else_is_wrong(server: OpenAIServer, llm: LLM) -> None:
    for status, kind in ((401, "unauthorised"), (429, "rate_limited"), (503, "overloaded")):
        server.fault(status=status, body={"error": {"message": "no"}})
        assert (await failing(llm, as_content("hi", [PNG]))).kind == kind
    server.fault(status=400, body={"error": {"code": "context_length_exceeded", "message": "too long"}})
    assert isinstance(await failing(llm, as_content("hi", [PNG])), ContextTooLong)


async def test_complete_asks_for_the_schema_and_returns_the_bare_text(server: OpenAIServer, llm: LLM) -> None:
    server.on("hi", reply='<think>hm</think>{"facts": []}')
    completer: Completer = llm
    done = await completer.complete(HI, schema=SCHEMA, max_tokens=50)
    assert (done.text, done.finish, done.cut) == ('{"facts": []}', "stop", False)
    assert done.tokens > 0
    assert server.chats[0].body["response_format"]["json_schema"]["schema"] == SCHEMA


@pytest.mark.parametrize(
    ("known", "forms"),
    [("json_object", ["json_schema", "json_object", "json_object"]), ("", ["json_schema", "json_object"])],
)
async def test_complete_steps_down_to_what_the_endpoint_knows_and_remembers(
    server: OpenAIServer, llm: LLM, known: str, forms: list[str]
) -> None:
    unknown = '"response_format": {"type": "json_schema"' if known else "response_format"
    server.fault(match=unknown, status=400, body={"error": {"message": "unknown"}}, times=9)
    server.on("hi", reply="{}")
    for _ in range(2):
        await llm.complete(HI, schema=SCHEMA, max_tokens=50)
    asked = [request.body.get("response_format", {}).get("type") for request in server.chats]
    assert asked == (forms if known else [*forms, None, None])


async def test_a_failure_other_than_a_refusal_does_not_cost_the_schema(server: OpenAIServer, llm: LLM) -> None:
    server.fault(status=503)
    server.on("hi", reply="{}")
    with pytest.raises(CompleterUnavailable, match="overloaded"):
        await llm.complete(HI, schema=SCHEMA, max_tokens=50)
    await llm.complete(HI, schema=SCHEMA, max_tokens=50)
    assert [request.body["response_format"]["type"] for request in server.chats] == ["json_schema"] * 2


@pytest.mark.parametrize(("how", "finish"), [({"finish": "length"}, "length"), ({"cut": True}, "other")])
async def test_complete_marks_an_answer_that_did_not_end_by_itself(
    server: OpenAIServer, llm: LLM, how: dict[str, Any], finish: str
) -> None:
    server.on("hi", reply='{"facts": [', **how)
    done = await llm.complete(HI, max_tokens=50)
    assert (done.finish, done.cut) == (finish, True)


async def test_complete_without_a_schema_asks_for_no_form(server: OpenAIServer, llm: LLM) -> None:
    server.on("hi", reply="Hello")
    await llm.complete(HI, max_tokens=50)
    assert "response_format" not in server.chats[0].body


async def test_the_models_are_listed(server: OpenAIServer, llm: LLM) -> None:
    server.models = ["a", "b"]
    assert await llm.models() == ["a", "b"]


@pytest.mark.parametrize("body", [WEB_PAGE, "null", '{"data": [{"name": 1}, 2]}', '{"data": null}'])
async def test_an_odd_list_of_models_is_empty_or_an_error(server: OpenAIServer, llm: LLM, body: str) -> None:
    kind = "text/html" if body == WEB_PAGE else "application/json"
    server.fault(status=200, body=body, headers={"Content-Type": kind})
    if "data" in body:
        assert await llm.models() == []
    else:
        with pytest.raises(LLMError, match="OPENAI_BASE_URL"):
            await llm.models()


@pytest.mark.parametrize(("reply", "able"), [('{"ok": true}', True), ("Sure, it is fine.", False)])
async def test_the_probe_tells_whether_json_comes_back(
    server: OpenAIServer, llm: LLM, reply: str, *, able: bool
) -> None:
    server.on("JSON", reply=reply)
    assert await llm.probe_json() is able


@pytest.mark.parametrize(("reply", "sees"), [("It is Red.", True), ("I cannot see pictures.", False)])
async def test_the_probe_tells_whether_a_picture_is_seen(
    server: OpenAIServer, llm: LLM, reply: str, *, sees: bool
) -> None:
    server.sees = True
    server.on("colour", reply=reply)
    assert await llm.probe_images() is sees
    ((mime, data),) = server.chats[0].pictures
    assert (mime, data[16:24]) == ("image/png", bytes([0, 0, 0, 64, 0, 0, 0, 64]))


def test_a_key_that_cannot_be_sent_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="OPENAI_API_KEY"):
        LLM("http://127.0.0.1:1/v1", "密钥", "m", ModelSettings())
