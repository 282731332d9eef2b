"""What the SDK hands over, as our updates. Asks nobody and changes nothing but its memory of albums."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from telegram import (
    CallbackQuery,
    Chat,
    ChatMember,
    ChatMemberRestricted,
    ChatMemberUpdated,
    Message,
    MessageEntity,
    MessageOrigin,
    MessageOriginChannel,
    MessageOriginChat,
    MessageOriginHiddenUser,
    MessageOriginUser,
    User,
)
from telegram import Update as TelegramUpdate
from telegram.constants import ChatMemberStatus, ChatType

from bot.adapters.telegram.connection import NAME
from bot.adapters.telegram.media import Fetch, media_of, unreadable
from bot.message import ChatRef, Edited, Incoming, Left, Moved, Press, Quote, Update
from bot.text import clean, is_blank

_GENERAL: Final = 1
"""Id of the topic General, which is written to without an id."""
_ALBUMS: Final = 200
"""So many albums addressed to us are remembered; their items come within a second of each other."""
_COMMAND: Final = re.compile(r"/(?P<name>[A-Za-z0-9_]+)(?:@(?P<bot>\w+))?(?=\s|$)")


class Reader:
    """Reads what was written to the bot ``me``. ``fetch`` gets files, ``now`` is aware UTC."""

    def __init__(self, me: User, fetch: Fetch, now: Callable[[], datetime]) -> None:
        self._me = me
        self._fetch = fetch
        self._now = now
        self._albums: OrderedDict[tuple[int, str], None] = OrderedDict()

    def look_ahead(self, update: TelegramUpdate) -> None:
        """Note whether this addresses us with an album: all its items do then, those before it as well."""
        message = update.message
        if message is None or message.media_group_id is None or not _addresses(message, self._me):
            return
        self._albums[message.chat.id, message.media_group_id] = None
        if len(self._albums) > _ALBUMS:
            self._albums.popitem(last=False)

    def read(self, update: TelegramUpdate) -> Update | None:
        """Read an update; None if it is nothing to us."""
        if update.callback_query is not None:
            return _press(update.callback_query, self._now())
        if update.edited_message is not None:
            return self._edited(update.edited_message)
        if (change := update.my_chat_member or update.chat_member) is not None:
            return self._changed(change)
        if update.message is None:
            return None
        self.look_ahead(update)
        if (told := _moved(update.message) or self._left(update.message)) is not None:
            return told
        incoming = self._incoming(update.message)
        return incoming if incoming is not None and incoming.addressed else None

    def _changed(self, change: ChatMemberUpdated) -> Left | None:
        """Read that somebody, or the bot itself, is in a group no more."""
        now = change.new_chat_member
        return None if _is_in(now) else self._gone(change.chat, now.user, change.date)

    def _left(self, message: Message) -> Left | None:
        """Read the note that somebody left."""
        user = message.left_chat_member
        return None if user is None else self._gone(message.chat, user, message.date)

    def _gone(self, chat: Chat, user: User, at: datetime) -> Left | None:
        ours = user.id == self._me.id
        if chat.type in (ChatType.PRIVATE, ChatType.CHANNEL) or (user.is_bot and not ours):
            return None  # who blocks the bot has not left a group
        return Left(_chat(chat), None if ours else str(user.id), _utc(at))

    def _edited(self, message: Message) -> Edited | None:
        # An edit may take our name out of a message we have read, so it comes whether it addresses us or not.
        if message.location is not None:
            return None  # a person on the move, not a change of words
        incoming = self._incoming(message)
        return None if incoming is None else Edited(incoming, _utc(message.edit_date or message.date))

    def _incoming(self, message: Message) -> Incoming | None:
        """Read a message of a person; None if it is none, or has nothing in it that anybody could read."""
        author = _author(message)
        text = _words(message, self._me)
        media = media_of(message, self._fetch)
        if message.chat.type == ChatType.PRIVATE and is_blank(text):
            media = media or unreadable(message)
        if author is None or (is_blank(text) and not media):
            return None
        return Incoming(
            chat=chat_of(message),
            user_id=str(author.id),
            name=clean(author.full_name),
            message_id=str(message.message_id),
            text=text,
            at=_utc(message.date),
            language=author.language_code,
            addressed=_addresses(message, self._me) or self._in_album(message),
            reply_to=_quote(message),
            forward_from=clean(_origin(message.forward_origin)) if message.forward_origin else None,
            media=media,
            album=message.media_group_id,
        )

    def _in_album(self, message: Message) -> bool:
        return message.media_group_id is not None and (message.chat.id, message.media_group_id) in self._albums


def _is_in(member: ChatMember) -> bool:
    """Whether somebody is in a group; whoever is restricted may be out of it."""
    if isinstance(member, ChatMemberRestricted):
        return member.is_member
    return member.status not in (ChatMemberStatus.LEFT, ChatMemberStatus.BANNED)


def chat_of(message: Message) -> ChatRef:
    """The chat of a message, and its topic if it is in one."""
    # Ordinary replies carry a thread id, too; only in a topic is it one.
    thread = message.message_thread_id if message.is_topic_message else None
    return _chat(message.chat, None if thread in (None, _GENERAL) else str(thread))


def _chat(chat: Chat, thread: str | None = None) -> ChatRef:
    private = chat.type == ChatType.PRIVATE
    return ChatRef(NAME, f"{'dm' if private else 'group'}:{chat.id}", private, thread)


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


def _author(message: Message) -> User | None:
    """The person who wrote a message; None for a bot, a channel, or somebody who speaks as a chat."""
    author = message.from_user
    if author is None or author.is_bot or message.via_bot or message.is_automatic_forward:
        return None
    return None if message.chat.type == ChatType.CHANNEL else author


def _moved(message: Message) -> Moved | None:
    """Read that a group became a supergroup; the platform says so in the old chat and in the new one."""
    if message.migrate_to_chat_id is not None:
        old, new = message.chat.id, message.migrate_to_chat_id
    elif message.migrate_from_chat_id is not None:
        old, new = message.migrate_from_chat_id, message.chat.id
    else:
        return None
    return moved(old, new, _utc(message.date))


def moved(old: int, new: int, at: datetime) -> Moved:
    """Tell that a group has another id now."""
    return Moved(ChatRef(NAME, f"group:{old}", private=False), f"group:{new}", at)


def _press(query: CallbackQuery, at: datetime) -> Press | None:
    if query.message is None or query.data is None:
        return None  # of a message made inline, or a game
    # Of a message too old to be read only the chat is told.
    chat = chat_of(query.message) if isinstance(query.message, Message) else _chat(query.message.chat)
    user = query.from_user
    number = str(query.message.message_id)
    return Press(chat, str(user.id), clean(user.full_name), query.data, at, user.language_code, number)


def _addresses(message: Message, me: User) -> bool:
    """Whether a message is meant for us: written in private, a command, naming us or answering us."""
    if message.chat.type == ChatType.PRIVATE:
        return True
    command = _COMMAND.match(_words(message, me))
    if command is not None:
        return not command["bot"]  # ours has lost its @ in _words
    if any(_names(entity, _raw(message), me) for entity in message.entities or message.caption_entities):
        return True
    replied = message.reply_to_message
    if replied is None or replied.forum_topic_created is not None or replied.from_user is None:
        return False
    return replied.from_user.id == me.id


def _raw(message: Message) -> str:
    emoji = message.sticker.emoji if message.sticker else None
    return message.text or message.caption or emoji or ""


def _words(message: Message, me: User) -> str:
    """The words of a message without our name, others' names spelt out, a command to us without its @."""
    raw = _raw(message)
    text = raw
    for entity in sorted(message.entities or message.caption_entities, key=lambda entity: -entity.offset):
        if _names(entity, raw, me):
            text = _without(text, entity)
        elif entity.type == MessageEntity.TEXT_MENTION and entity.user is not None:
            text = _units(text, 0, entity.offset) + entity.user.full_name + _units(text, _end(entity), None)
    text = clean(text.strip() if text != raw else raw)
    command = _COMMAND.match(text)
    if command is not None and _same_name(command["bot"], me):
        return f"/{command['name']}{text[command.end() :]}"
    return text if text.strip() else clean(raw)  # somebody who says our name and nothing else still says that


def _same_name(name: str | None, me: User) -> bool:
    return name is not None and me.username is not None and name.casefold() == me.username.casefold()


def _names(entity: MessageEntity, text: str, me: User) -> bool:
    if entity.type == MessageEntity.TEXT_MENTION:
        return entity.user is not None and entity.user.id == me.id
    return entity.type == MessageEntity.MENTION and _same_name(
        _units(text, entity.offset, _end(entity)).removeprefix("@"), me
    )


def _without(text: str, entity: MessageEntity) -> str:
    before, after = _units(text, 0, entity.offset), _units(text, _end(entity), None)
    return f"{before.rstrip(' ')} {after.lstrip(' ')}"


def _end(entity: MessageEntity) -> int:
    return entity.offset + entity.length


def _units(text: str, start: int, end: int | None) -> str:
    """Slice by UTF-16 units, in which the platform counts offsets."""
    coded = text.encode("utf-16-le", "surrogatepass")
    return coded[2 * start : None if end is None else 2 * end].decode("utf-16-le", "surrogatepass")


def _quote(message: Message) -> Quote | None:
    """Read what a message answers; a part picked out by hand counts before the whole."""
    replied = message.reply_to_message
    picked = clean(message.quote.text) if message.quote else ""
    if replied is None or replied.forum_topic_created is not None:
        origin = clean(_origin(message.external_reply.origin)) if message.external_reply else ""
        return Quote(picked, origin) if picked else None
    quote = Quote(picked or clean(_raw(replied)), message_id=str(replied.message_id))
    if replied.forward_origin is not None:
        return replace(quote, name=clean(_origin(replied.forward_origin)), user_id=_origin_id(replied.forward_origin))
    if replied.sender_chat is not None:  # somebody who speaks as the group or as a channel
        return replace(quote, name=clean(replied.sender_chat.effective_name or ""))
    if replied.from_user is None:
        return quote
    return replace(quote, name=clean(replied.from_user.full_name), user_id=str(replied.from_user.id))


def _origin(origin: MessageOrigin) -> str:
    """Name whose words were forwarded, as far as the platform tells."""
    match origin:
        case MessageOriginUser():
            return origin.sender_user.full_name
        case MessageOriginHiddenUser():
            return origin.sender_user_name
        case MessageOriginChat():
            return origin.sender_chat.effective_name or origin.type
        case MessageOriginChannel():
            return origin.chat.effective_name or origin.type
        case _:
            return origin.type


def _origin_id(origin: MessageOrigin) -> str | None:
    return str(origin.sender_user.id) if isinstance(origin, MessageOriginUser) else None
