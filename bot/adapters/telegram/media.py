"""What comes beside the words of a Telegram message, to be fetched when somebody wants it."""

from __future__ import annotations

import io
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from telegram import Animation, Audio, Bot, Document, Message, PhotoSize, Sticker, Video, VideoNote, Voice
from telegram.constants import FileSizeLimit
from telegram.error import TelegramError

from bot.message import Media, MediaError, MediaKind
from bot.text import clean

Fetch = Callable[[str, int], Awaitable[bytes]]
"""Fetches the file with an id, of at most so many bytes. Raises MediaError."""

_PICTURES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
"""Files that are pictures to a model that sees."""
_UNREADABLE: Final = ("location", "contact", "poll", "dice", "checklist", "paid_media", "live_photo", "game", "invoice")
"""What people send that has neither words nor a file for us (a venue is a location, too)."""

_File: TypeAlias = PhotoSize | Sticker | Document | Voice | Audio | Video | VideoNote | Animation


@dataclass(frozen=True, slots=True)
class Files:
    """The platform's files: ask where one lies, then download it."""

    bot: Bot

    async def fetch(self, file_id: str, limit: int) -> bytes:
        """Download a file of at most ``limit`` bytes. Raises MediaError."""
        content = io.BytesIO()
        try:
            file = await self.bot.get_file(file_id)
            if (file.file_size or 0) > limit:
                raise MediaError(f"the file has {file.file_size} bytes, more than {limit}")
            await file.download_to_memory(content)
        except (TelegramError, RuntimeError) as error:  # the latter: the platform tells no place to download it from
            raise MediaError(f"Telegram does not give the file: {error}") from error
        if content.tell() > limit:
            raise MediaError(f"the file has more than {limit} bytes")
        return content.getvalue()


def media_of(message: Message, fetch: Fetch) -> tuple[Media, ...]:
    """Read the file of a message: none or one, the items of an album come as messages of their own."""
    if message.photo:
        return (_media("image", _largest(message.photo), fetch, mime="image/jpeg"),)
    if message.sticker:
        return (_media("sticker", message.sticker, fetch, mime=_sticker_type(message.sticker)),)
    for kind, file in _recordings(message):
        if file is not None:
            return (_media(kind, file, fetch, mime=getattr(file, "mime_type", None) or ""),)
    if message.document:
        mime = message.document.mime_type or ""
        return (_media("image" if mime in _PICTURES else "file", message.document, fetch, mime=mime),)
    return ()


def unreadable(message: Message) -> tuple[Media, ...]:
    """Stand for a place, a contact or the like, so that its sender can be told that it was not understood."""
    if any(getattr(message, name, None) for name in _UNREADABLE):
        return (Media("file", _refuse),)
    return ()


def _recordings(message: Message) -> Sequence[tuple[MediaKind, _File | None]]:
    # An animation carries a document as well, for clients of long ago.
    return (
        ("voice", message.voice),
        ("audio", message.audio),
        ("video", message.video),
        ("video", message.video_note),
        ("video", message.animation),
    )


def _media(kind: MediaKind, file: _File, fetch: Fetch, *, mime: str) -> Media:
    name = clean(getattr(file, "file_name", None) or "")
    return Media(kind, partial(fetch, file.file_id), name=name, mime=mime, size=file.file_size)


def _largest(sizes: Sequence[PhotoSize]) -> PhotoSize:
    fitting = [size for size in sizes if (size.file_size or 0) <= FileSizeLimit.FILESIZE_DOWNLOAD]
    return max(fitting or sizes, key=lambda size: size.width * size.height)


def _sticker_type(sticker: Sticker) -> str:
    if sticker.is_animated:
        return "application/x-tgsticker"
    return "video/webm" if sticker.is_video else "image/webp"


async def _refuse(limit: int) -> bytes:  # noqa: ARG001 - the shape of Media.read
    raise MediaError("this kind of message has no content that can be read")
