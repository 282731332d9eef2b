"""What comes beside the words: what is opened, what is not and why, and that nothing wild gets through."""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from bot.media import LONGEST_NAME, MOST_FILES, MOST_PICTURES, READS_AT_ONCE, Picture, as_content, opened
from bot.message import Media, MediaError, MediaKind
from bot.text import clean
from bot.tokens import token_counter
from config.settings import MediaSettings

PNG = b"\x89PNG\r\n\x1a\n" + bytes(32)
JPEG = b"\xff\xd8\xff\xe0" + bytes(32)
GIF = b"GIF89a" + bytes(32)
WEBP = b"RIFF\x20\x00\x00\x00WEBPVP8 " + bytes(32)
HEIC = b"\x00\x00\x00\x18ftypheic" + bytes(32)
SEEING = MediaSettings(images=True)
SIMPLIFIED = "今天天气很好，我们去公园散步吧。\n会议纪要：周三下午三点开会，地点在二楼会议室。"
TRADITIONAL = "今天天氣很好，我們去公園散步吧。\n會議紀要：週三下午三點開會，地點在二樓會議室。"
FRENCH = "Où allons-nous déjeuner à midi ?\nL'été dernier, nous étions à la mer."


@dataclass
class Store:
    """A platform's files. Tells how often it was asked, for how much, and for how many things at once."""

    limits: list[int] = field(default_factory=list)
    under_way: int = 0
    most_at_once: int = 0
    gate: asyncio.Event | None = None
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    def media(self, content: bytes | Exception, kind: MediaKind = "file", **told: Any) -> Media:
        async def read(limit: int) -> bytes:
            self.limits.append(limit)
            self.asked.set()
            self.under_way += 1
            self.most_at_once = max(self.most_at_once, self.under_way)
            try:
                await asyncio.sleep(0)
                if self.gate is not None:
                    await self.gate.wait()
            finally:
                self.under_way -= 1
            if isinstance(content, Exception):
                raise content
            return content

        return Media(kind, read, **told)


@pytest.fixture
def store() -> Store:
    return Store()


def characters(text: str) -> int:
    """A counter of tokens a child can follow."""
    return len(text)


async def why(*media: Media, settings: MediaSettings = SEEING) -> list[tuple[str, str]]:
    """Return kind and reason of everything that stayed unopened."""
    return [(rest.kind, rest.why) for rest in (await opened(media, settings, characters)).unseen]


async def text_of(store: Store, content: bytes, name: str = "a.txt", **told: Any) -> str:
    (file,) = (await opened([store.media(content, name=name, **told)], SEEING, characters)).texts
    assert not file.cut
    return file.text


@pytest.mark.parametrize(
    ("content", "mime"), [(PNG, "image/png"), (JPEG, "image/jpeg"), (GIF, "image/gif"), (WEBP, "image/webp")]
)
async def test_a_picture_is_what_its_content_says(store: Store, content: bytes, mime: str) -> None:
    found = await opened([store.media(content, "image", mime="image/x-odd", name="a.bmp")], SEEING, characters)
    assert found.images == (Picture(mime, content, "a.bmp"),)
    assert (found.texts, found.unseen) == ((), ())


@pytest.mark.parametrize("content", [HEIC, b"", b"<html>", b"RIFF\x20\x00\x00\x00WAVEfmt "])
async def test_what_only_claims_to_be_a_picture_is_not_shown(store: Store, content: bytes) -> None:
    assert await why(store.media(content, "image", mime="image/png")) == [("image", "kind")]


@pytest.mark.parametrize("told", [{"mime": "image/png"}, {"name": "A.PNG"}])
async def test_a_picture_sent_as_a_file_is_a_picture(store: Store, told: dict[str, str]) -> None:
    item = store.media(PNG, "file", **told)
    assert [picture.mime for picture in (await opened([item], SEEING, characters)).images] == ["image/png"]
    assert await why(item, settings=MediaSettings()) == [("image", "kind")]


async def test_a09_without_a_model_that_sees_nothing_is_fetched(store: Store) -> None:
    kinds: Sequence[MediaKind] = ("image", "voice", "sticker", "video", "audio")
    media = [store.media(AssertionError("read"), kind) for kind in kinds]
    assert await why(*media, settings=MediaSettings()) == [(kind, "kind") for kind in kinds]
    assert store.limits == []


async def test_a_model_that_sees_still_hears_nothing(store: Store) -> None:
    assert await why(store.media(WEBP, "sticker"), store.media(b"OggS", "voice")) == [
        ("sticker", "kind"),
        ("voice", "kind"),
    ]
    assert store.limits == []


async def test_a_file_that_cannot_be_text_is_not_fetched(store: Store) -> None:
    media = [
        store.media(b"", name="a.pdf", mime="application/pdf"),
        store.media(b"", name="a.zip", mime="application/zip"),
        store.media(b"", name="film.mkv", mime="video/x-matroska"),
    ]
    assert await why(*media) == [("file", "kind")] * 3
    assert store.limits == []


async def test_without_room_for_text_no_file_is_fetched(store: Store) -> None:
    item = store.media(b"hello", name="a.txt")
    for none in (MediaSettings(text_bytes=0), MediaSettings(text_tokens=0)):
        assert await why(item, settings=none) == [("file", "kind")]
    assert store.limits == []


async def test_what_is_too_large_by_its_own_account_is_not_fetched_and_never_more_is_asked_for(store: Store) -> None:
    tight = MediaSettings(images=True, image_bytes=1_000, text_bytes=100)
    media = [
        store.media(PNG, "image", size=1_001),
        store.media(b"hello", name="a.txt", size=101),
        store.media(PNG, "image", size=1_000),
        store.media(b"hello", name="a.txt"),
    ]
    assert await why(*media, settings=tight) == [("image", "size"), ("file", "size")]
    assert store.limits == [1_000, 100]


async def test_a_platform_that_sends_more_than_was_asked_for_is_not_believed(store: Store) -> None:
    assert await why(store.media(b"x" * 101), settings=MediaSettings(text_bytes=100)) == [("file", "size")]


@pytest.mark.parametrize("error", [MediaError("https://host/file/bot123:SECRET/a"), TimeoutError()])
async def test_what_does_not_come_is_told_and_costs_nothing_else(
    store: Store, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    caplog.set_level(logging.DEBUG)
    found = await opened(
        [store.media(error, name="diary.txt"), store.media(b"hello", name="b.txt")], SEEING, characters
    )
    assert [(rest.name, rest.why) for rest in found.unseen] == [("diary.txt", "unreadable")]
    assert [file.text for file in found.texts] == ["hello"]
    assert not any(word in caplog.text for word in ("SECRET", "diary", "hello"))
    assert type(error).__name__ in caplog.text


async def test_a_file_that_never_comes_is_given_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.media.READ_SECONDS", 0.01)
    store.gate = asyncio.Event()
    assert await why(store.media(b"hello")) == [("file", "unreadable")]
    assert store.under_way == 0


async def test_files_are_fetched_side_by_side_but_not_all_at_once(store: Store) -> None:
    media = [store.media(PNG, "image") for _ in range(MOST_PICTURES)]
    media += [store.media(b"hello", name="a.txt") for _ in range(MOST_FILES)]
    found = await opened(media, SEEING, characters)
    assert (len(found.images), len(found.texts)) == (MOST_PICTURES, MOST_FILES)
    assert store.most_at_once == READS_AT_ONCE


async def test_of_a_large_album_the_first_pictures_are_shown_and_the_rest_is_told(store: Store) -> None:
    found = await opened([store.media(PNG, "image", name=f"{n}.png") for n in range(6)], SEEING, characters)
    assert [picture.name for picture in found.images] == ["0.png", "1.png", "2.png", "3.png"]
    assert [(rest.name, rest.why) for rest in found.unseen] == [("4.png", "size"), ("5.png", "size")]
    assert len(store.limits) == MOST_PICTURES


async def test_no_more_than_a_few_files_are_read(store: Store) -> None:
    assert await why(*(store.media(b"x", name="a.txt") for _ in range(MOST_FILES + 1))) == [("file", "size")]


async def test_a_turn_that_is_given_up_leaves_no_reading_behind(store: Store) -> None:
    store.gate = asyncio.Event()
    task = asyncio.create_task(opened([store.media(b"x"), store.media(PNG, "image")], SEEING, characters))
    await store.asked.wait()
    assert store.under_way
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert store.under_way == 0


@pytest.mark.parametrize(
    ("charset", "text"),
    [
        ("utf-8", SIMPLIFIED),
        ("utf-8-sig", SIMPLIFIED),
        ("utf-16", SIMPLIFIED),
        ("utf-16", FRENCH),
        ("utf-16-le", SIMPLIFIED),
        (
            "utf-16-le",
            '关于这件事，我记得：\nset = "从现在起我用中文回答你。"\n| | `text_bytes` | `200000` | 最大的文本文件 |',
        ),
        (
            "utf-16-le",
            "（记住了。）\n| `/start` | 介绍自己 |\n| 代理作答：规则、回忆、窗口、模型、来历 | `bot/agent.py` |",
        ),
        ("utf-32", TRADITIONAL),
        ("gb18030", SIMPLIFIED),
        ("gb18030", TRADITIONAL),
        ("gb18030", "你好，世界"),
        ("gb18030", "姓名,电话\n张三,123"),
        (
            "gb18030",
            "| `init` | 缺什么问什么，写进 `.env` |\n\n## 许可\n\n| `[model]` | `32768` | 模型的上下文长度 |\n" * 5,
        ),
        ("big5", TRADITIONAL),
        ("big5", "姓名,電話\n張三,123"),
        ("shift_jis", "今日はとても良い天気ですね。公園に行きましょう。"),
        ("euc_kr", "오늘은 날씨가 매우 좋습니다. 공원에 산책하러 갑시다."),
        ("cp1251", "Сегодня очень хорошая погода, пойдём гулять в парк."),
        ("cp1252", FRENCH),
    ],
)
async def test_text_is_read_in_the_charset_it_was_written_in(store: Store, charset: str, text: str) -> None:
    assert await text_of(store, text.encode(charset)) == text.rstrip()


@pytest.mark.parametrize(
    "told",
    [
        {"name": "a.ts", "mime": "video/mp2t"},
        {"name": "a.sql", "mime": "application/x-sql"},
        {"name": "", "mime": ""},
        {"name": "notes", "mime": "application/octet-stream"},
        {"name": "notes", "mime": "Text/Plain; charset=utf-8"},
        {"name": "x", "mime": "application/ld+json"},
        {"name": "drawing", "mime": "image/svg+xml"},
    ],
)
async def test_text_is_known_by_name_or_type_and_the_unknown_is_looked_at(store: Store, told: dict[str, str]) -> None:
    assert await text_of(store, b"hello", **told) == "hello"


@pytest.mark.parametrize(
    "content",
    [
        PNG,
        gzip.compress(b"hello" * 100, mtime=0),
        b"%PDF-1.4\n" + gzip.compress(bytes(range(256)) * 9, mtime=0),
        b"hello\x00world",
        b"\xef\xbb\xbfhello\x01",
        b"\xff\xfe\x00\xd8\x00\x00",
        bytes(range(128, 256)) * 5,
    ],
)
async def test_what_is_no_text_is_refused_whatever_it_is_called(store: Store, content: bytes) -> None:
    assert await why(store.media(content, name="a.txt", mime="text/plain")) == [("file", "binary")]


async def test_text_comes_without_control_characters_and_with_one_kind_of_line_end(store: Store) -> None:
    assert await text_of(store, b"\x1b[1mone\r\ntwo\rthree\x0c\n\n") == "[1mone\ntwo\nthree"


async def test_a_long_file_is_cut_after_the_last_whole_line_that_fits(store: Store) -> None:
    lines = b"12345\n" * 10
    (file,) = (await opened([store.media(lines)], MediaSettings(text_tokens=20), characters)).texts
    assert (file.text, file.cut) == ("12345\n12345\n12345", True)
    (file,) = (await opened([store.media(lines)], MediaSettings(text_tokens=60), characters)).texts
    assert (file.text, file.cut) == (lines.decode().rstrip(), False)


async def test_a_line_longer_than_the_room_is_cut_inside(store: Store) -> None:
    (file,) = (await opened([store.media(b"x" * 100 + b"\ny")], MediaSettings(text_tokens=20), characters)).texts
    assert (file.text, file.cut) == ("x" * 20, True)


async def test_files_share_the_room_and_a_short_one_leaves_its_rest_to_the_others(store: Store) -> None:
    media = [store.media(b"a" * 90), store.media(b"b" * 10), store.media(b"c" * 30)]
    files = (await opened(media, MediaSettings(text_tokens=100), characters)).texts
    assert [(len(file.text), file.cut) for file in files] == [(60, True), (10, False), (30, False)]
    files = (await opened(media[:1] * 2, MediaSettings(text_tokens=100), characters)).texts
    assert [(len(file.text), file.cut) for file in files] == [(50, True), (50, True)]


async def test_the_rest_of_a_very_long_file_is_not_even_counted(store: Store) -> None:
    longest = 0

    def counting(text: str) -> int:
        nonlocal longest
        longest = max(longest, len(text))
        return len(text)

    await opened([store.media(b"word\n" * 30_000)], MediaSettings(text_tokens=100), counting)
    assert longest <= 1_600


@hypothesis_settings(max_examples=60, deadline=None)
@given(content=st.binary(max_size=300) | st.text(max_size=300).map(lambda text: text.encode("utf-8", "replace")))
async def test_anything_may_come_and_what_is_shown_is_clean_and_fits(content: bytes) -> None:
    found = await opened([Store().media(content)], MediaSettings(text_tokens=50), token_counter("gpt-4o"))
    assert len(found.texts) + len(found.unseen) == 1
    for file in found.texts:
        assert file.text == clean(file.text)
        assert token_counter("gpt-4o")(file.text) <= 50


@hypothesis_settings(max_examples=60, deadline=None)
@given(name=st.text(max_size=200))
async def test_no_name_opens_a_line_of_its_own(name: str) -> None:
    found = await opened([Store().media(b"hello", "voice", name=name)], SEEING, characters)
    (shown,) = [rest.name for rest in found.unseen]
    assert len(shown) <= LONGEST_NAME
    assert len(shown.splitlines()) <= 1


async def test_a_long_name_keeps_its_ending(store: Store) -> None:
    (rest,) = (await opened([store.media(b"", "audio", name="la" * 99 + " (live).flac")], SEEING, characters)).unseen
    assert rest.name.startswith("lala")
    assert rest.name.endswith(" (live).flac")


async def test_nothing_opened_is_nothing() -> None:
    found = await opened([], SEEING, characters)
    assert (found.images, found.texts, found.unseen) == ((), (), ())


def test_words_alone_stay_words_and_pictures_make_parts() -> None:
    assert as_content("hi", []) == "hi"
    assert as_content("hi", [Picture("image/png", b"\x00\x01", "a")]) == [
        {"type": "text", "text": "hi"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAE="}},
    ]


def test_a_picture_without_words_makes_no_empty_part() -> None:
    assert [part["type"] for part in as_content("", [Picture("image/png", b"", "a")]) if isinstance(part, dict)] == [
        "image_url"
    ]
