"""Parts of an answer as Discord's requests, and how each of them ended."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any, Final

import aiohttp
import discord

from bot.adapters.discord.reading import Interaction
from bot.delivery import Flood, Refused, Unconfirmed
from bot.markdown import Part, discord_parts, unopened
from bot.message import Button

FAILED: Final = (aiohttp.ClientError, OSError, discord.DiscordException)
"""What a request to Discord can end with, but for its answer."""
BROKEN: Final = (TypeError, AttributeError, LookupError, ValueError)
"""What the SDK raises over an answer that says it was done and does not say what."""

_UNKNOWN_MESSAGE: Final = 10008
_WORN_OFF: Final = frozenset({10015, 50027})
"""Unknown webhook, invalid webhook token: an interaction can be answered for 15 minutes."""
_TOLD: Final = 200
"""Characters of an error that are passed on; the front answers with whole pages."""
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500
_BAN_SECONDS: Final = 60.0
"""How long to wait when Discord's front refuses and does not say for how long."""
_UNREACHED: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_BEFORE_BRACKETS: Final = 1_600
"""Characters of a part before the addresses in it get their brackets: of the shortest, of nine, eleven are made."""
_LABEL: Final = 80
"""Characters on a button (Discord component reference)."""

Reach = Callable[[], Awaitable[discord.PartialMessageable]]
"""Finds the channel to write to."""


class WornOff(Refused):
    """The token of an interaction is no longer good."""


@contextmanager
def told(client: discord.Client) -> Iterator[None]:
    """Raise Flood, Refused or Unconfirmed for whatever a request of ``client`` ends with."""
    try:
        yield
    except discord.RateLimited as flood:
        raise Flood(flood.retry_after) from flood
    except discord.HTTPException as answer:
        raise _judged(answer) from answer
    except discord.DiscordException as refusal:
        raise Refused(f"Discord's library refuses: {type(refusal).__name__}") from refusal
    except _UNREACHED as unreached:
        raise Unconfirmed(f"Discord is not reached: {type(unreached).__name__}", left=False) from unreached
    except (aiohttp.ClientError, OSError) as silence:
        raise Unconfirmed(f"Discord did not answer: {type(silence).__name__}") from silence
    except RuntimeError as closed:  # aiohttp's word for a session that is no more
        if not client.is_closed():
            raise
        raise Refused("Discord is no longer connected") from closed
    except BROKEN as broken:
        raise Unconfirmed(f"Discord's answer cannot be read: {type(broken).__name__}") from broken


def is_passing(trouble: BaseException) -> bool:
    """Whether what a request ended with, one of FAILED, may be over when it is made again."""
    if isinstance(trouble, discord.HTTPException):
        return trouble.status == _TOO_MANY or trouble.status >= _SERVER_ERROR
    return isinstance(trouble, discord.RateLimited) or not isinstance(trouble, discord.DiscordException)


def _judged(answer: discord.HTTPException) -> Flood | Refused | Unconfirmed:
    if answer.status == _TOO_MANY:
        # The SDK waits out Discord's own limits; this comes from the front before it.
        return Flood(_seconds(answer.response.headers.get("Retry-After")))
    if answer.status >= _SERVER_ERROR:
        return Unconfirmed(f"Discord answered {answer.status}")
    if answer.code in _WORN_OFF:
        return WornOff(f"the interaction wore off ({answer.code})")
    return Refused(f"{answer.text[:_TOLD] or answer.status} ({answer.code})", gone=answer.code == _UNKNOWN_MESSAGE)


def _seconds(header: str | None) -> float:
    try:
        return float(header or _BAN_SECONDS)
    except ValueError:
        return _BAN_SECONDS


class ChannelOutlet:
    """Messages in a channel or private chat, the first as a reply to ``reference``.

    Their nonce is a function of ``origin`` and the slot, and the SDK has Discord enforce it: asked for again
    within minutes, also by another process, Discord returns the message it has (Create Message). That may be
    another answer to the same message, an apology of a minute ago: it is changed to what was asked for.
    """

    def __init__(
        self, client: discord.Client, reach: Reach, origin: str, *, reference: discord.MessageReference | None = None
    ) -> None:
        self._client = client
        self._reach = reach
        self._origin = origin
        self._reference = reference

    def parts(self, text: str, *, markdown: bool, most: int | None = None) -> Sequence[Part]:
        """Cut to Discord's 2,000 characters."""
        return discord_parts(text, markdown=markdown, most=most)

    def repeatable(self, slot: int) -> bool:  # noqa: ARG002
        """Every message has its nonce."""
        return True

    async def post(self, slot: int, part: Part, buttons: Sequence[Button]) -> str:
        """Send a message."""
        message = await self._send(slot, content=part.text, **_shown(buttons))
        if not _says(message, part.text, buttons):
            await self._change(message.id, content=part.text, attachments=[], view=view(buttons))
        return str(message.id)

    async def attach(self, slot: int, name: str, content: bytes) -> str:
        """Send a file."""
        message = await self._send(slot, file=_file(name, content))
        if [(file.filename, file.size) for file in message.attachments] != [(name, len(content))]:
            await self._change(message.id, content=None, attachments=[_file(name, content)], view=None)
        return str(message.id)

    async def edit(self, message_id: str, part: Part, buttons: Sequence[Button]) -> None:
        """Change a message."""
        await self._change(int(message_id), content=part.text, view=view(buttons))

    async def delete(self, message_id: str) -> None:
        """Take a message back."""
        with told(self._client):
            place = await self._reach()
            await place.get_partial_message(int(message_id)).delete()

    async def draft(self, part: Part) -> bool:  # noqa: ARG002
        """There are none."""
        return False

    async def typing(self) -> None:
        """Show the sign, which lasts ten seconds."""
        with told(self._client):
            await (await self._reach()).typing()

    async def _send(self, slot: int, **what: Any) -> discord.Message:
        nonce = hashlib.blake2b(f"{self._origin}/{slot}".encode(), digest_size=12).hexdigest()
        if self._reference is not None and slot == 0:
            what["reference"] = self._reference
        with told(self._client):
            # To show a preview Discord would fetch each address, with every word that a model was led to put into it.
            return await (await self._reach()).send(nonce=nonce, suppress_embeds=True, **what)

    async def _change(self, message_id: int, **how: Any) -> None:
        with told(self._client):
            place = await self._reach()
            await place.get_partial_message(message_id).edit(**how)


class InteractionOutlet:
    """Messages that follow an interaction, in a server for that person's eyes alone.

    The first one fills the message a ``deferred`` command left open; that one can be asked for again,
    follow-ups cannot: they take no nonce. When the interaction wears off under a long answer, the answer
    goes on ``beside`` it, in the private chat: nobody else sees that either. Only what may have filled the
    open message already does not go there, too. ``pressed`` is the message whose button was pressed, which the
    interaction may change, whoever else may see it.
    """

    def __init__(
        self, interaction: Interaction, *, deferred: bool, beside: ChannelOutlet, pressed: str | None = None
    ) -> None:
        self._interaction = interaction
        self._pressed = pressed
        self._client = interaction.client
        self._deferred = deferred
        self._beside = beside
        self._worn_off = False
        self._thinking = deferred
        self._lost: set[str] = set()
        self._ids: set[str] = set()

    def parts(self, text: str, *, markdown: bool, most: int | None = None) -> Sequence[Part]:
        """Cut to Discord's 2,000 characters; the message a command left open has no flag against previews."""
        return [unopened(part) for part in discord_parts(text, markdown=markdown, most=most, limit=_BEFORE_BRACKETS)]

    def repeatable(self, slot: int) -> bool:
        """Only the message a command left open, and what is no longer part of the interaction."""
        return self._worn_off or self._fills(slot)

    async def post(self, slot: int, part: Part, buttons: Sequence[Button]) -> str:
        """Fill the open message, or follow up."""
        shown = _shown(buttons)
        if self._fills(slot):
            made = self._filled(part.text, content=part.text, view=shown.get("view"))
        else:
            made = self._made(lambda: self._follow_up(content=part.text, **shown))
        return await made or await self._beside.post(slot, part, buttons)

    async def attach(self, slot: int, name: str, content: bytes) -> str:
        """Fill the open message with a file, or follow up with one."""
        file = _file(name, content)
        if self._fills(slot):
            made = self._filled(name, attachments=[file])
        else:
            made = self._made(lambda: self._follow_up(file=file))
        return await made or await self._beside.attach(slot, name, content)

    async def edit(self, message_id: str, part: Part, buttons: Sequence[Button]) -> None:
        """Change a message; one that can no longer be reached counts as gone."""
        if message_id == self._pressed:
            with self._reached():
                await self._interaction.edit_original_response(content=part.text, view=view(buttons))
            return
        if message_id not in self._ids:
            await self._beside.edit(message_id, part, buttons)
            return
        shown = view(buttons)
        with self._reached():
            await self._interaction.followup.edit_message(int(message_id), content=part.text, view=shown)

    async def delete(self, message_id: str) -> None:
        """Take a message back."""
        if message_id not in self._ids:
            await self._beside.delete(message_id)
            return
        with self._reached():
            await self._interaction.followup.delete_message(int(message_id))

    async def draft(self, part: Part) -> bool:  # noqa: ARG002
        """There are none."""
        return False

    async def typing(self) -> None:
        """Discord shows by itself that a deferred command is being worked on."""

    async def withdraw(self) -> None:
        """Take back the message a command left open, if nothing can have filled it."""
        if self._thinking:
            self._thinking = False
            with self._reached():
                await self._interaction.delete_original_response()

    def _fills(self, slot: int) -> bool:
        return self._deferred and slot == 0

    async def _made(self, request: Callable[[], Awaitable[discord.Message]]) -> str | None:
        """Make a message of the interaction; None when it has worn off."""
        if self._worn_off:
            return None
        try:
            with told(self._client):
                message = await request()
        except WornOff:
            self._worn_off = True
            return None
        self._ids.add(str(message.id))
        return str(message.id)

    async def _filled(self, words: str, **what: Any) -> str | None:
        """Fill the open message; None when it has worn off without these ``words``."""
        try:
            made = await self._made(lambda: self._interaction.edit_original_response(**what))
        except Unconfirmed as silence:
            if silence.left:
                self._lost.add(words)
                self._thinking = False
            raise
        self._thinking = False
        if made is None and words in self._lost:
            raise Unconfirmed("the interaction wore off under an answer that may be there")
        return made

    async def _follow_up(self, **what: Any) -> discord.Message:
        ephemeral = self._interaction.guild_id is not None
        message: discord.Message = await self._interaction.followup.send(ephemeral=ephemeral, wait=True, **what)
        return message

    @contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            with told(self._client):
                yield
        except WornOff as worn_off:
            self._worn_off = True
            raise Refused(str(worn_off), gone=True) from worn_off


def view(buttons: Sequence[Button]) -> discord.ui.View | None:
    """Return buttons that outlive a restart: a press comes as an interaction with the button's id.

    The view is stopped so that the SDK does not keep it and answer presses by itself.
    """
    if not buttons:
        return None
    shown = discord.ui.View(timeout=None)
    for button in buttons:
        shown.add_item(discord.ui.Button(label=button.label[:_LABEL], custom_id=button.id))
    shown.stop()
    return shown


def _file(name: str, content: bytes) -> discord.File:
    return discord.File(BytesIO(content), filename=name)


def _says(message: discord.Message, text: str, buttons: Sequence[Button]) -> bool:
    """Whether a message is what was asked for, and no earlier one; Discord trims what it is sent."""
    rows = (row.children for row in message.components if isinstance(row, discord.ActionRow))
    pressed = [button.custom_id for row in rows for button in row if isinstance(button, discord.Button)]
    same_words = message.content.strip() == text.strip() and not message.attachments
    return same_words and pressed == [button.id for button in buttons]


def _shown(buttons: Sequence[Button]) -> dict[str, Any]:
    """The argument for a new message, which takes a view but no None."""
    return {"view": view(buttons)} if buttons else {}
