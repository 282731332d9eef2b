"""Where one answer goes: parts become requests, the platform's refusals become the three of bot.delivery."""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from telegram import (
    Bot,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputFile,
    LinkPreviewOptions,
    Message,
    MessageEntity,
    ReplyParameters,
)
from telegram.constants import ChatAction
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    RetryAfter,
    TelegramError,
)

from bot.adapters.telegram.connection import never_left, seconds
from bot.delivery import Flood, Refused, Unconfirmed
from bot.markdown import Part, telegram_parts, uncalled
from bot.message import Button, ChatRef

_GONE: Final = ("message to edit not found", "message can't be edited", "to delete not found", "message_id_invalid")
_MALFORMED: Final = ("parse entities", "entity")
_NOT_MODIFIED: Final = "not modified"
_NO_THREAD: Final = "thread not found"
"""Stable parts of what the platform says, in small letters."""

_NO_PREVIEW: Final = LinkPreviewOptions(is_disabled=True)
_IN_A_ROW: Final = 2
"""Buttons side by side."""
_SHORT: Final = 6
"""Columns up to which a label is a sign or a number."""
_SHORT_IN_A_ROW: Final = 5
"""Buttons side by side that are all short."""
_LONG: Final = 18
"""Columns of a label from which on it is cut off beside another one on a phone; a Han character takes two."""
_DETOURS: Final = 2
"""A request is made again after the topic was lost and after the group moved."""

T = TypeVar("T")


class Moves:
    """Which groups have another id now. ``told`` hears of each of them once."""

    def __init__(self, told: Callable[[int, int], None]) -> None:
        self._new: dict[int, int] = {}
        self._told = told

    def note(self, old: int, new: int) -> None:
        """Remember that a group moved, seen in a message of the platform."""
        self._new[old] = new

    def found(self, old: int, new: int) -> None:
        """Remember it, and pass it on: a refusal said so before any message did."""
        if self._new.get(old) != new:
            self.note(old, new)
            self._told(old, new)

    def has(self, chat_id: int) -> bool:
        """Whether a group is somewhere else now."""
        return chat_id in self._new

    def where(self, chat_id: int) -> int:
        """The present id of a chat."""
        return self._new.get(chat_id, chat_id)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the next message goes: a chat, a topic of it, and what it answers."""

    chat_id: int
    thread: int | None = None
    answers: int | None = None

    def reply(self, slot: int) -> ReplyParameters | None:
        """Only the first message of an answer points to its question, and does without if that was deleted."""
        if slot > 0 or self.answers is None:
            return None
        return ReplyParameters(self.answers, allow_sending_without_reply=True)


class TelegramOutlet:
    """An Outlet into ``chat``. ``answers`` is the message replied to, ``draft_id`` (not 0) allows drafts."""

    def __init__(
        self, bot: Bot, chat: ChatRef, moves: Moves, *, answers: int | None = None, draft_id: int | None = None
    ) -> None:
        self._bot = bot
        self._moves = moves
        thread = None if chat.thread is None else int(chat.thread)
        self._place = _Place(int(chat.key.partition(":")[2]), thread, answers)
        self._first = self._place.chat_id
        self._posted_in: dict[str, int] = {}
        self._private = chat.private
        self._draft_id = draft_id if chat.private and thread is None else None

    def parts(self, text: str, *, markdown: bool, most: int | None = None) -> Sequence[Part]:
        """Cut a text into messages of at most 4,096 UTF-16 units; in a group no name in it calls anybody."""
        parts = telegram_parts(text, markdown=markdown, most=most)
        return parts if self._private else [uncalled(part) for part in parts]

    def repeatable(self, slot: int) -> bool:  # noqa: ARG002 - the platform has no nonce for any of them
        """Telegram cannot tell a repeated message from a second one."""
        return False

    async def post(self, slot: int, part: Part, buttons: Sequence[Button]) -> str:
        """Send a message."""
        return await self._sent(
            lambda place: self._bot.send_message(
                place.chat_id,
                part.text,
                entities=_entities(part),
                message_thread_id=place.thread,
                reply_parameters=place.reply(slot),
                reply_markup=keyboard(buttons),
                link_preview_options=_NO_PREVIEW,
            )
        )

    async def attach(self, slot: int, name: str, content: bytes) -> str:
        """Send a file."""
        return await self._sent(
            lambda place: self._bot.send_document(
                place.chat_id,
                InputFile(content, filename=name),
                message_thread_id=place.thread,
                reply_parameters=place.reply(slot),
            )
        )

    async def edit(self, message_id: str, part: Part, buttons: Sequence[Button]) -> None:
        """Change a message of ours."""
        with _translated():
            try:
                await self._bot.edit_message_text(
                    part.text,
                    self._home(message_id),
                    int(message_id),
                    entities=_entities(part),
                    reply_markup=keyboard(buttons),
                    link_preview_options=_NO_PREVIEW,
                )
            except BadRequest as refusal:
                if not _says(refusal, _NOT_MODIFIED):
                    raise

    async def delete(self, message_id: str) -> None:
        """Take back a message of ours."""
        with _translated():
            await self._bot.delete_message(self._home(message_id), int(message_id))

    async def draft(self, part: Part) -> bool:
        """Show a frame as a draft, where drafts are switched on and the platform has them."""
        if self._draft_id is None:
            return False
        try:
            with _translated():
                await self._bot.send_message_draft(
                    self._place.chat_id, self._draft_id, part.text, entities=_entities(part)
                )
        except Refused as refusal:
            if refusal.formatting:
                raise
            self._draft_id = None
        return self._draft_id is not None

    async def typing(self) -> None:
        """Show for five seconds that an answer is on its way."""
        await self._request(
            lambda place: self._bot.send_chat_action(place.chat_id, ChatAction.TYPING, message_thread_id=place.thread)
        )

    async def _sent(self, request: Callable[[_Place], Awaitable[Message]]) -> str:
        message_id = str((await self._request(request)).message_id)
        self._posted_in[message_id] = self._place.chat_id
        return message_id

    async def _request(self, request: Callable[[_Place], Awaitable[T]]) -> T:
        """Make a request where the chat is now; again without the topic if that is gone, and after a move."""
        with _translated():
            for _ in range(_DETOURS):
                place = self._settled()
                try:
                    return await request(place)
                except ChatMigrated as move:
                    self._moves.found(place.chat_id, move.new_chat_id)
                except BadRequest as refusal:
                    if place.thread is None or not _says(refusal, _NO_THREAD):
                        raise
                    self._place = replace(self._place, thread=None)
            return await request(self._settled())

    def _settled(self) -> _Place:
        """Follow the group; its old topics and message numbers mean nothing in the new one."""
        if self._moves.has(self._place.chat_id):
            self._place = _Place(self._moves.where(self._place.chat_id))
        return self._place

    def _home(self, message_id: str) -> int:
        """The chat a message of ours was sent to; it stays there when the group moves on."""
        return self._posted_in.get(message_id, self._first)


def keyboard(buttons: Sequence[Button]) -> InlineKeyboardMarkup | None:
    """Lay buttons out, two in a row, short ones five; one with a long label has its row to itself."""
    rows: list[list[Button]] = []
    for button in buttons:
        if rows and _fits(rows[-1], button):
            rows[-1].append(button)
        else:
            rows.append([button])
    if not rows:
        return None
    return InlineKeyboardMarkup(
        [[InlineKeyboardButton(button.label, callback_data=button.id) for button in row] for row in rows]
    )


def _fits(row: Sequence[Button], button: Button) -> bool:
    """Whether a button finds its place beside those of a row; a sign or a number stands among its like."""
    short = _columns(button) <= _SHORT
    if short != (_columns(row[0]) <= _SHORT):
        return False
    if short:
        return len(row) < _SHORT_IN_A_ROW
    return len(row) < _IN_A_ROW and max(_columns(button), _columns(row[0])) <= _LONG


def _columns(button: Button) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in button.label)


def _entities(part: Part) -> list[MessageEntity] | None:
    return [
        MessageEntity(mark.kind, mark.offset, mark.length, url=mark.url, language=mark.language) for mark in part.marks
    ] or None


@contextmanager
def _translated() -> Iterator[None]:
    """Turn the SDK's errors into those of an outlet; they quote neither the token nor the text."""
    try:
        yield
    except RetryAfter as flood:
        raise Flood(seconds(flood)) from flood
    except BadRequest as refusal:
        raise Refused(str(refusal), gone=_says(refusal, *_GONE), formatting=_says(refusal, *_MALFORMED)) from refusal
    except ChatMigrated as move:
        raise Refused("the group has moved and left its messages behind", gone=True) from move
    except (Conflict, Forbidden, InvalidToken) as refusal:
        raise Refused(str(refusal)) from refusal
    except TelegramError as error:
        raise Unconfirmed(str(error), left=not never_left(error)) from error


def _says(refusal: BadRequest, *stable: str) -> bool:
    said = refusal.message.casefold()
    return any(part in said for part in stable)
