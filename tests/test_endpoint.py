"""What can be said of an endpoint by its address and by its words alone."""

from __future__ import annotations

import pytest

from bot.endpoint import ContextTooLong, PicturesRefused, failure, picture_refusal
from bot.llm import normalise_base_url


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("http://h", "http://h/v1"),
        ("http://h/", "http://h/v1"),
        ("http://h:8/v1", "http://h:8/v1"),
        (" http://h/v1/ ", "http://h/v1"),
        ("http://h/v1/chat/completions", "http://h/v1"),
        ("http://h/v1/embeddings/", "http://h/v1"),
        ("http://h//v1//", "http://h/v1"),
        ("https://h/api/v3", "https://h/api/v3"),
        ("https://h/compatible-mode/v1/chat/completions", "https://h/compatible-mode/v1"),
        ("https://h/v1beta/openai/", "https://h/v1beta/openai"),
        ("HTTPS://h/v1", "https://h/v1"),
        ("http://[::1]:8/v1", "http://[::1]:8/v1"),
    ],
)
def test_b05_a_base_url_is_taken_as_people_paste_it(given: str, used: str) -> None:
    assert normalise_base_url(given) == used
    assert normalise_base_url(used) == used


@pytest.mark.parametrize(
    "given",
    [
        "",
        "h/v1",
        "localhost:11434",
        "ftp://h",
        "http://",
        "http://h:x",
        "http://h:99999",
        "http:// h/v1",
        "http://[::1/",
        "http://h/v1?key=1",
        "http://user:secret@h/v1",
        "http://h/v1#x",
    ],
)
def test_b05_a_hopeless_base_url_is_refused_with_its_name_and_without_its_secrets(given: str) -> None:
    with pytest.raises(ValueError, match="OPENAI_BASE_URL") as caught:
        normalise_base_url(given)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 4096 tokens. However, you requested 4231 tokens",
        "the request exceeds the available context size",
        "Range of input length should be [1, 30720]",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 199759 + 8192 > 200000",
        "输入长度超过限制",
        "超出模型最大上下文长度限制",
        "Prompt 超长",
    ],
)
def test_b07_a_prompt_that_is_too_long_is_known_by_its_words(words: str) -> None:
    assert isinstance(failure(words, status=400), ContextTooLong)


@pytest.mark.parametrize(
    ("words", "status"),
    [("Request too large on tokens per min: context length", 429), ("invalid temperature", 400), ("参数错误", 400)],
)
def test_other_refusals_are_not_taken_for_a_long_prompt(words: str, status: int) -> None:
    assert not isinstance(failure(words, status=status), ContextTooLong)


def test_a_body_that_is_too_large_is_a_long_prompt() -> None:
    assert isinstance(failure("", status=413), ContextTooLong)


@pytest.mark.parametrize(
    ("codes", "kind"),
    [
        (["503"], "overloaded"),
        ([None, "rate_limit_error"], "rate_limited"),
        (["invalid_api_key"], "unauthorised"),
        ([20015], "bad_answer"),
        ([], "bad_answer"),
    ],
)
def test_an_error_without_a_status_is_known_by_its_code(codes: list[object], kind: str) -> None:
    assert failure("x", status=None, codes=codes).kind == kind


def test_an_error_never_says_the_key_and_keeps_its_line_short() -> None:
    error = failure("no such key sk-1 " + "x" * 9_999, status=401).hide("sk-1")
    assert "sk-1" not in f"{error!r} {error} {error.told}"
    assert len(error.told) < 600
    assert "OPENAI_API_KEY" in error.hint


@pytest.mark.parametrize("words", ["bad input: I am ill", "maximum context length exceeded by: I am ill"])
def test_the_endpoints_words_are_told_where_nobodys_were_sent_and_not_in_the_log(words: str) -> None:
    error = failure(words, status=400)
    assert words in error.told
    assert "ill" not in f"{error!r} {error}"
    assert "400" in str(error)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("Invalid content type. image_url is only supported by certain models.", 400),
        ("messages[1]: unknown variant `image_url`, expected `text`", 422),
        ("messages.0.content must be a string", 400),
        ("tiny is not a multimodal model", 400),
        ("参数错误", 400),
        ("No endpoints found that support image input", 404),
        ("image input is not supported - hint: you may need to provide the mmproj", 500),
        ("The model is not a VLM (Vision Language Model)", None),
        ("", 413),
        ("", 415),
    ],
)
def test_a_request_with_pictures_may_be_refused_for_them(words: str, status: int | None) -> None:
    error = picture_refusal(failure(words, status=status))
    assert isinstance(error, PicturesRefused)
    assert (error.kind, error.status, error.detail) == ("no_images", status, words)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("maximum context length is 4096 tokens", 400),
        ("the prompt is too long", 413),
        ("Incorrect API key", 401),
        ("too many images a minute", 429),
        ("no such model", 404),
        ("out of memory", 500),
        ("<title>Gateway</title>", None),
    ],
)
def test_what_pictures_cannot_be_blamed_for_stays_what_it_is(words: str, status: int | None) -> None:
    error = failure(words, status=status)
    assert picture_refusal(error) is error
