"""What goes to the model: system prompt, window, recalled block, message; and the answer when there is no model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from bot.media import Opened, TextFile, as_content
from bot.personas import persona_for
from bot.text import clean, clean_name, is_blank
from bot.trace import Request, TurnTrace
from bot.turn import Said
from bot.window import WINDOW_SHARE
from config.locales import phrase
from config.prompts import render
from config.settings import Settings
from config.templates import Spoken, spoken
from memory import asks_about_everything, block, day_of, is_question, quoted, zone_shown
from memory.model import Account, Chat, Message, Recollection
from memory.ports import TokenCounter

QUOTE_CHARACTERS: Final = 1_000
"""Most of a quoted message that goes along; the question itself is never cut."""
LONGEST_NAME: Final = 64
"""Characters of a name in a prompt; longer ones are messages in disguise."""
FRAME_TOKENS: Final = 64
"""Room for what an endpoint adds around the messages."""

TONGUES: Final[Mapping[Spoken, str]] = {"en": "English", "zh": "简体中文", "zh-TW": "繁體中文（台灣的用字和說法）"}
"""What the model is to answer in, as it is told."""

_LINE_END: Final = re.compile(r"[\n\u2028\u2029]")
_FENCE: Final = re.compile(r"[<＜﹤‹〈](?=[\s/／]*memories\b)", re.IGNORECASE)
"""What begins the recalled block or ends it (config/prompts/recalled.*.md), or looks like it to a model."""
_COLON: Final = re.compile(r"\s*[:：︰﹕]\s*")


class Requests:
    """Builds requests within the token budget of the settings."""

    def __init__(self, settings: Settings, count: TokenCounter) -> None:
        self._settings = settings
        self._count = count

    def build(self, system: str, said: Sequence[Said], media: Opened, trace: TurnTrace) -> Request:
        """The messages of one request; the recalled block stands before the person's words, as data.

        ``system`` is :meth:`system` of the last message.
        """
        last = said[-1]
        window = (_told(line, last.owner, last.chat) for line in trace.window.lines)
        asked = "\n\n".join(self._asked(said, media, trace.found))
        *earlier, (role, asked) = _merged([*window, ("user", asked)])
        said_before: Request = [{"role": each, "content": words} for each, words in earlier]
        return [
            {"role": "system", "content": system},
            *said_before,
            {"role": role, "content": as_content(asked, media.images)},
        ]

    def window_budget(self, system: str, said: Sequence[Said], media: Opened, found: Recollection) -> int:
        """Tokens left for the window; negative when the message alone is too long for the model."""
        model = self._settings.model
        fixed = self._count(system)
        # Part by part, a token for each joint: what was counted when it was heard need not be counted again.
        fixed += sum(self._count(part) + 1 for part in self._asked(said, media, found))
        fixed += len(media.images) * self._settings.media.image_tokens
        fixed += model.reply_tokens + FRAME_TOKENS
        return min(int(model.context_tokens * WINDOW_SHARE), model.context_tokens - fixed)

    def without_model(self, said: Sequence[Said], trace: TurnTrace) -> str:
        """An answer from memory alone, which says that it is one. Receipts come from the stored rows."""
        owner = said[-1].owner
        zone = ZoneInfo(owner.zone)
        words = [one.message.text for one in said if one.message.kind == "said"]
        asked = any(is_question(text) for text in words)
        everything = any(asks_about_everything(text) for text in words)
        units = [unit for unit in trace.found.units if everything or unit.band != "always" or unit.score > 0]
        lines = [
            {
                "speaker": "" if unit.speaker == owner.name else unit.speaker,
                "text": unit.text,
                "date": unit.at.astimezone(zone).date().isoformat(),
                "when": "" if unit.when is None else day_of(unit.when, owner).removeprefix("on "),
                "sure": unit.band != "perhaps",
                "outdated": unit.outdated is not None,
            }
            for unit in units
            if asked and unit.text not in trace.kept
        ]
        return phrase(
            "chat.without_model",
            owner.language,
            kept=trace.kept,
            ended=trace.ended,
            noted=trace.noted,
            asked=asked,
            recalled=lines,
            fleeting=any(one.message.fleeting for one in said),
        )

    def system(self, said: Said) -> str:
        """What the model is told about itself and about whom it talks to."""
        owner = said.owner
        return render(
            "system",
            owner.language,
            now=local_time(said.incoming.at, owner, private=said.chat.private),
            person=owner.name and quoted(owner.name),
            persona=persona_for(self._settings, said.incoming.chat),
            fixed=owner.language_fixed,
            tongue=TONGUES[spoken(owner.language)],
        )

    def _asked(self, said: Sequence[Said], media: Opened, found: Recollection) -> list[str]:
        """What the person says now, part by part, behind what they show and what is remembered."""
        owner = said[-1].owner
        parts = [_file(file, owner) for file in media.texts]
        if media.unseen:
            parts.append(phrase("media.for_model", owner.language, unseen=media.unseen))
        for one in said:
            parts += _words(one)
        # The block alone is what memory holds: nothing else of a request can look like it.
        return [part for part in (block(found, owner), *map(_unfenced, parts)) if part]


def unseen(media: Opened, language: str) -> str:
    """What a person is told whose message held nothing that could be read."""
    if not media.unseen:
        return phrase("error.blank", language)
    return phrase("media.unseen", language, unseen=media.unseen)


def _words(said: Said) -> list[str]:
    """One message as the model reads it; whose words are whose is plain."""
    incoming, owner = said.incoming, said.owner
    parts = []
    if incoming.reply_to is not None and incoming.reply_to.text:
        quoted = _inset(clean(incoming.reply_to.text)[:QUOTE_CHARACTERS])
        parts.append(phrase("chat.quoted", owner.language, name=one_line(incoming.reply_to.name), text=quoted))
    words = clean(incoming.text)
    if is_blank(words):
        return parts
    if incoming.forward_from is not None:
        return [*parts, _forwarded(owner, one_line(incoming.forward_from), words)]
    return [*parts, words if said.chat.private else _spoken(owner.name, words)]


def _file(file: TextFile, owner: Account) -> str:
    return phrase("media.file", owner.language, name=one_line(file.name), text=_inset(file.text), cut=file.cut)


def one_line(name: str) -> str:
    """A name as a prompt may hold it: it cannot open a line of its own."""
    return clean_name(name)[:LONGEST_NAME]


def local_time(at: datetime, owner: Account, *, private: bool) -> str:
    """Date, weekday, time and zone as the owner reads them; outside a ``private`` chat without the zone's name."""
    local = at.astimezone(ZoneInfo(owner.zone))
    weekday = phrase("time.weekdays", owner.language).split(",")[local.weekday()]
    return phrase(
        "time.moment",
        owner.language,
        weekday=weekday,
        date=local.date().isoformat(),
        time=f"{local:%H:%M}",
        zone=zone_shown(owner, private=private, at=at),
    )


def _told(line: Message, owner: Account, chat: Chat) -> tuple[str, str]:
    """A line of the window, (role, words). Who is not the person themselves is named, what was forwarded says so."""
    if line.role == "bot":
        return "assistant", _unfenced(line.text)
    if line.kind == "forwarded":
        return "user", _unfenced(_forwarded(owner, line.speaker, line.text))
    return "user", _unfenced(line.text if chat.private else _spoken(line.speaker, line.text))


def _spoken(speaker: str, text: str) -> str:
    """What somebody said in a group, as one entry of the talk; the first colon ends the name."""
    return f"{_COLON.sub(' ', speaker)}: {_inset(text)}"


def _unfenced(text: str) -> str:
    """A text that can neither begin nor end a recalled block."""
    return _FENCE.sub("(", text)


def _forwarded(owner: Account, name: str, text: str) -> str:
    return phrase("chat.forwarded", owner.language, name=name, text=_inset(text))


def _inset(text: str) -> str:
    """A text whose further lines stand back, so that none of them can pass for a speaker or the end of a quote."""
    return _LINE_END.sub(r"\g<0>  ", text)


def _merged(lines: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Lines, each (role, words), in turns: what follows from one role becomes one, for some models refuse two in a row.

    Lines of a person are left without an answer when the model was down or broke off.
    """
    merged: list[tuple[str, str]] = []
    for role, words in lines:
        if merged and merged[-1][0] == role:
            merged[-1] = (role, f"{merged[-1][1]}\n\n{words}")
        else:
            merged.append((role, words))
    return merged
