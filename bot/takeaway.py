"""What a person takes away: their memory as files, for programs (JSON) and for their own eyes (one HTML page)."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from html import escape
from typing import Any, Final
from zoneinfo import ZoneInfo

from bot.message import File
from config.locales import phrase
from memory import attribute_label
from memory.model import Account

LARGEST: Final = 8_000_000
"""Bytes of one file: Discord takes 10 MB from a bot, Telegram 50 MB."""

_PAGE: Final = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }}
h2 {{ margin-top: 2rem; border-bottom: 1px solid #ccc; }}
li {{ margin: .4rem 0; }}
small, blockquote {{ color: #555; }}
blockquote {{ margin: .1rem 0 .1rem 1rem; white-space: pre-wrap; }}
.over {{ color: #777; text-decoration: line-through; }}
.said {{ white-space: pre-wrap; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>{intro}</p>
{body}
</body>
</html>
"""


def files_of(
    document: Mapping[str, Any], owner: Account, *, largest: int = LARGEST, mark: str = ""
) -> tuple[File, ...]:
    """The files of an export; what is larger than ``largest`` bytes goes into one archive, and that in parts.

    ``mark`` ends their names, for those of another account of the same person.
    """
    day = document["made_at"][:10] + mark
    written = json.dumps(document, ensure_ascii=False, indent=1).encode()
    files = (
        File(f"recollect-{day}.json", written, "application/json"),
        File(f"recollect-{day}.html", page(document, owner).encode(), "text/html"),
    )
    if all(len(file.content) <= largest for file in files):
        return files
    return tuple(_parts(_archive(files, f"recollect-{day}.zip"), largest))


def page(document: Mapping[str, Any], owner: Account) -> str:
    """The export as a page that needs nothing else, in its owner's language and zone; all words are escaped."""
    language = owner.language
    sections = [
        ("profile", [_memory(row, owner, attribute=row["attribute"]) for row in document["profile"]]),
        ("timeline", [_memory(row, owner, when=_span(row, owner)) for row in document["timeline"]]),
        ("facts", [_memory(row, owner) for row in document["facts"]]),
        ("journal", [_line(row, owner) for row in document["journal"]]),
    ]
    headings = {name: phrase(f"export.{name}", language) for name, _ in sections}
    return _PAGE.format(
        language=escape(language),
        title=escape(phrase("export.title", language, name=owner.name)),
        intro=escape(
            phrase(
                "export.intro",
                language,
                at=_local(document["made_at"], owner),
                zone=owner.zone,
                pending=len(document["pending_deletions"]),
            )
        ),
        body="\n".join(_section(headings[name], rows, language) for name, rows in sections),
    )


def _section(heading: str, rows: Sequence[str], language: str) -> str:
    if not rows:
        rows = [f"<li><small>{escape(phrase('export.none', language))}</small></li>"]
    return f"<h2>{escape(heading)}</h2>\n<ul>\n" + "\n".join(rows) + "\n</ul>"


def _memory(row: Mapping[str, Any], owner: Account, *, attribute: str = "", when: str = "") -> str:
    """One memory, the words it rests on below it; one that is over is struck out."""
    language = owner.language
    label = attribute_label(attribute, language) if attribute and ":" not in attribute else ""
    text = f"{label}: {row['value']}" if label else row["text"]
    about = "" if row["about"] == "self" else f"[{row['about']}] "
    closed = row["closed_at"]
    notes = [
        when,
        phrase("export.gathered", language) if row["source"] == "summary" else "",
        _local(row["said_at"], owner),
    ]
    if closed is not None:
        notes.append(phrase("export.closed", language, at=_local(closed, owner)))
    quotes = "".join(f"<blockquote>{escape(each['quote'])}</blockquote>" for each in row["citations"])
    style = ' class="over"' if closed is not None else ""
    told = " · ".join(filter(None, notes))
    return f"<li><span{style}>{escape(about + text)}</span> <small>{escape(told)}</small>{quotes}</li>"


def _line(row: Mapping[str, Any], owner: Account) -> str:
    told = f"{_local(row['at'], owner)} {row['speaker']}"
    return f'<li><small>{escape(told)}</small><div class="said">{escape(row["text"])}</div></li>'


def _span(row: Mapping[str, Any], owner: Account) -> str:
    start = _local(row["start"], owner)
    return f"[{start if row['precision'] in ('minute', 'hour') else start[:10]}]"


def _local(at: str, owner: Account) -> str:
    return f"{datetime.fromisoformat(at).astimezone(ZoneInfo(owner.zone)):%Y-%m-%d %H:%M}"


def _archive(files: Iterable[File], name: str) -> File:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.writestr(file.name, file.content)
    return File(name, held.getvalue(), "application/zip")


def _parts(file: File, largest: int) -> Iterator[File]:
    """The file, or its pieces to be joined in their order ("cat recollect.zip.* > recollect.zip")."""
    if len(file.content) <= largest:
        yield file
        return
    pieces = range(0, len(file.content), largest)
    for number, begins in enumerate(pieces, 1):
        piece = file.content[begins : begins + largest]
        yield File(f"{file.name}.{number:03}", piece, "application/octet-stream")
