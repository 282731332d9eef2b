"""/export hands over everything of one person and nothing of anybody else, in a form that is published."""

from __future__ import annotations

import html.parser
import io
import json
import re
import stat
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import config
from bot.adapters.console import ConsoleAdapter
from bot.message import ChatRef, DeliveryError, File, Reply
from bot.takeaway import files_of
from memory import Line
from memory.model import Account
from tests.conftest import Clock
from tests.servers.openai_server import OpenAIServer
from tests.talk import Talk, talking

SCHEMA = json.loads((Path(config.__file__).parent / "export.schema.json").read_text("utf-8"))
SECTIONS = ("profile", "timeline", "facts", "journal")


def valid(document: Any) -> None:
    jsonschema.validate(document, SCHEMA, cls=jsonschema.Draft202012Validator)


async def taken(talk: Talk, **more: Any) -> tuple[dict[str, Any], str]:
    """The two files of an export; those of a linked account would come behind them."""
    (reply,) = await talk.ask("/export", **more)
    names = [file.name for file in reply.files]
    assert [name.rsplit(".", 1)[1] for name in names[:2]] == ["json", "html"]
    document = json.loads(reply.files[0].content)
    valid(document)
    return document, reply.files[1].content.decode()


def test_the_schema_is_one_and_refuses_what_it_does_not_know() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        valid({"format": "recollect-export", "version": 2})


async def test_an_export_holds_all_of_its_owner_and_nothing_of_others(tmp_path: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(tmp_path, clock, server) as talk:
        server.on(reply="Understood, <b>you</b>.")
        await talk.say("I live in Oslo.")
        await talk.say("I moved to Bergen. I am allergic to pollen.")
        await talk.say("I am flying to Lima on 5 May 2026.")
        await talk.say("/remember my bike is in the cellar")
        await talk.say("I live in Zanzibar.", user="2002", name="Bo")
        await talk.say("I live in Quito.", user="2002", chat="group:1", name="Bo")
        await talk.say("Good morning to the group.", chat="group:1")
        await talk.say("/share 1")
        document, page = await taken(talk, id="export")
        texts = json.dumps(document)
        for word in ("Oslo", "Bergen", "pollen", "Lima", "bike", "Understood", "Good morning"):
            assert word in texts, word
            assert word in page, word
        for word in ("Zanzibar", "Quito", "Bo", "2002"):
            assert word not in texts, word
            assert word not in page, word
        closed = [row for row in document["profile"] if row["closed_at"]]
        assert [row["value"] for row in closed] == ["Oslo"]
        assert closed[0]["replaced_by"] in [row["number"] for row in document["profile"]]
        assert document["profile"][0]["citations"][0]["quote"] == "I live in Oslo"
        assert "/export" not in texts
        assert [chat["key"] for chat in document["chats"] if not chat["private"]] == ["group:1"]
        assert [line["by"] for line in document["journal"][:2]] == ["you", "bot"]
        assert document["account"]["user_id"] == "1001"


async def test_what_is_forgotten_or_was_off_the_record_is_not_in_it(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock) as talk:
        await talk.say("I am allergic to pollen.")
        await talk.say("I like tea.")
        await talk.say("Off the record: I like the zebrafinch.")
        await talk.say("/pause")
        await talk.say("I like the quokka.")
        await talk.say("/forget pollen")
        await talk.say("/forget yes")
        document, page = await taken(talk)
        for word in ("pollen", "zebrafinch", "quokka"):
            assert word not in json.dumps(document)
            assert word not in page
        assert "tea" in page
        assert [row["counts"]["memories"] for row in document["pending_deletions"]] == [1]
        assert len(document["settings"]["paused_chats"]) == 1


async def test_an_export_of_nobody_s_yet_is_valid_and_says_so(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock) as talk:
        document, page = await taken(talk)
        assert [document[name] for name in SECTIONS] == [[], [], [], []]
        assert page.count("Nothing.") == len(SECTIONS)


async def test_in_a_group_nothing_is_handed_over(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock) as talk:
        await talk.say("I am allergic to pollen.")
        (reply,) = await talk.ask("/export", chat="group:1")
        assert (reply.files, reply.private) == ((), True)
        assert "private chat" in reply.text


class Tags(html.parser.HTMLParser):
    """Every tag of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "onerror")]


async def test_no_word_of_anybody_becomes_markup_of_the_page(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock) as talk:
        evil = "<script>alert(1)</script><img src=x onerror=y>{title} & 'q'"
        await talk.say(f"/remember {evil}", name="<i>Lin</i>")
        await talk.say(evil, name="<i>Lin</i>")
        _, page = await taken(talk, name="<i>Lin</i>")
        seen = Tags()
        seen.feed(page)
        assert not seen.tags & {"script", "img", "i", "a", "link", "iframe"}
        assert seen.links == []
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert "default-src 'none'" in page


async def test_the_page_speaks_its_owner_s_language_and_time(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock, zone="Asia/Shanghai") as talk:
        await talk.say("我对花粉过敏。", language="zh-Hans")
        _, page = await taken(talk, language="zh-Hans")
        assert "关于你" in page
        assert "花粉" in page
        assert "Asia/Shanghai" in page


DOCUMENT: dict[str, Any] = {
    "format": "recollect-export",
    "version": 1,
    "made_at": "2026-03-02T12:00:00Z",
    "pending_deletions": [],
    "profile": [],
    "timeline": [],
    "facts": [],
}


def test_what_is_larger_than_a_platform_takes_comes_as_an_archive_and_that_in_parts() -> None:
    words = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(60_000))
    line = {"number": 1, "at": "2026-03-02T12:00:00Z", "speaker": "Lin", "text": words}
    document = DOCUMENT | {"journal": [line]}
    owner = Account(1, "test", "1001", "Lin")
    plain = files_of(document, owner)
    assert [file.mime for file in plain] == ["application/json", "text/html"]
    repeated = DOCUMENT | {"journal": [line | {"text": "again " * 20_000}]}
    (archive,) = files_of(repeated, owner, largest=20_000)
    assert (archive.name, archive.mime) == ("recollect-2026-03-02.zip", "application/zip")
    parts = files_of(document, owner, largest=20_000)
    assert [part.name for part in parts[:2]] == ["recollect-2026-03-02.zip.001", "recollect-2026-03-02.zip.002"]
    assert all(len(part.content) <= 20_000 for part in parts)
    with zipfile.ZipFile(io.BytesIO(b"".join(part.content for part in parts))) as joined:
        assert joined.testzip() is None
        assert json.loads(joined.read("recollect-2026-03-02.json")) == document


def test_a_terminal_puts_files_where_it_was_started_for_their_owner_s_eyes_alone(tmp_path: Path, clock: Clock) -> None:
    out = io.StringIO()
    console = ConsoleAdapter("me", now=clock, out=out, folder=tmp_path)
    for content in (b"one", b"two"):
        console.print(Reply("Here.", files=(File("a.json", content, "application/json"),)))
    assert (tmp_path / "a.json").read_bytes() == b"one"
    assert (tmp_path / "a-2.json").read_bytes() == b"two"
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o600
    assert str(tmp_path / "a-2.json") in out.getvalue()


async def test_a_terminal_that_cannot_write_says_why(tmp_path: Path, clock: Clock) -> None:
    console = ConsoleAdapter("me", now=clock, out=io.StringIO(), folder=tmp_path / "nowhere")
    with pytest.raises(DeliveryError, match=r"a\.json cannot be written"):
        await console.notify(ChatRef("console", "dm:me"), Reply("Here.", files=(File("a.json", b"1", "x"),)))


async def test_no_copy_of_an_export_stays_with_the_bot(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path / "data", clock) as talk:
        await talk.say("I am allergic to pollen.")
        before = {path.name for path in (tmp_path / "data").rglob("*")}
        await taken(talk)
        assert {path.name for path in (tmp_path / "data").rglob("*")} == before
        assert "recollect-export" not in talk.everything_stored()
        owner, chat = await talk.owner(), await talk.room()
        line = Line("user", "Lin", clock(), "zebrafinch", fleeting=True)
        await talk.app.memory.note(owner, chat, line)
        assert "zebrafinch" not in json.dumps(await talk.app.memory.exports.all(owner, now=clock()))


async def test_linked_accounts_are_named_and_their_memories_are_not_in_it(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock) as talk:
        await talk.say("I like tea.")
        await talk.say("I like the zebrafinch.", user="2002")
        shown = await talk.say("/link", user="2002")
        code = max(re.findall(r"[A-Z0-9-]{6,}", shown), key=len)
        await talk.say(f"/link {code}")
        document, page = await taken(talk)
        assert document["links"] == [{"platform": "test", "user_id": "2002"}]
        assert "zebrafinch" not in json.dumps(document) + page


async def test_who_has_linked_two_accounts_is_handed_the_files_of_both(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock) as talk:
        await talk.say("I live in Oslo.")
        await talk.say("I am allergic to pollen.", user="2002")
        await talk.say("I live in Quito.", user="3003")
        (shown,) = await talk.ask("/link")
        code = re.search(r"/link (\w{4}-\w{4})", shown.text)
        assert code is not None
        await talk.say(f"/link {code[1]}", user="2002")
        (reply,) = await talk.ask("/export")
        documents = [json.loads(file.content) for file in reply.files if file.name.endswith(".json")]
        assert [document["account"]["user_id"] for document in documents] == ["1001", "2002"]
        for document in documents:
            valid(document)
        assert [[row["value"] for row in document["profile"]] for document in documents] == [["Oslo"], ["pollen"]]
        assert "Each of your 2 linked accounts has files of its own" in reply.text
        assert len({file.name for file in reply.files}) == len(reply.files) == 4
        assert not any(b"Quito" in file.content for file in reply.files)
        await talk.say("/unlink")
        (reply,) = await talk.ask("/export")
        assert len(reply.files) == 2
        assert "linked" not in reply.text


async def test_what_somebody_said_of_sensitive_matters_is_in_their_export(tmp_path: Path, clock: Clock) -> None:
    async with talking(tmp_path, clock, privacy={"sensitive": "ask"}) as talk:
        await talk.say("/privacy health yes")
        await talk.say("/privacy money no")
        await talk.say("I am allergic to pollen.")
        document, _ = await taken(talk)
        given = [(each["matter"], each["agreed"]) for each in document["settings"]["consents"]]
        assert given == [("health", True), ("money", False)]
