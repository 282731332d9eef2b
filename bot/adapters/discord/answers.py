"""Where answers go: the chat, the private chat, or the eyes of whoever used a command."""

from __future__ import annotations

import logging
import secrets
from contextlib import suppress
from functools import partial
from typing import Final

import discord

from bot.adapters.discord import reading
from bot.adapters.discord.chats import Chats
from bot.adapters.discord.outlet import ChannelOutlet, InteractionOutlet
from bot.delivery import (
    Budget,
    Delivery,
    Discreet,
    Errands,
    Flood,
    Gate,
    Gates,
    InPlace,
    Outlet,
    Refused,
    Tempo,
    Unconfirmed,
)
from bot.message import ChatRef, DeliveryError, Incoming, Sink

FRAMES_A_SECOND: Final = 30.0
"""Frames of all growing answers together: Discord takes 50 requests a second from a bot (API, Rate Limits, Global)."""
FRAME_PAUSE: Final = 1.2
"""Seconds between two edits of a growing answer; Discord bears about five in five seconds in a channel."""
TYPING_PAUSE: Final = 8.0
"""Seconds between two typing signs; one is shown for ten."""

log: Final = logging.getLogger(__name__)


class Answers:
    """Makes the sinks of one ``client``; what they send is finished as ``errands``."""

    def __init__(self, client: discord.Client, chats: Chats, tempo: Tempo, errands: Errands) -> None:
        self._client = client
        self._chats = chats
        self._errands = errands
        self._gates: Gates[ChatRef] = Gates(tempo, Budget(tempo, FRAMES_A_SECOND))

    def to_message(
        self,
        said: Incoming,
        *,
        version: str = "",
        shown: tuple[str, ...] = (),
        begun: bool = False,
        typing: bool = False,
    ) -> Sink:
        """Where the answer to a message goes; in a server what is private of it goes to the private chat.

        The answer to the same message and ``version`` of it is the same to Discord: what is sent of it
        again, by a later process too, is there once.
        """
        origin = said.message_id + version
        outlet = self._outlet(said.chat, origin, _reference(said))
        answer = self._delivery(outlet, said.chat, shown=shown, begun=begun)
        if typing:
            answer.type()
        if said.chat.private:
            return answer
        person = reading.private_chat(int(said.user_id))
        return Discreet(answer, self._delivery(self._outlet(person, f"{origin}/aside"), person, begun=begun))

    def to_interaction(self, interaction: reading.Interaction, chat: ChatRef) -> Sink:
        """Where the answer to a slash command or a press goes: in a server to that person's eyes alone."""
        is_command = interaction.type is discord.InteractionType.application_command
        person = reading.private_chat(interaction.user.id)
        beside = self._outlet(person, str(interaction.id))
        pressed = None if is_command or interaction.message is None else str(interaction.message.id)
        if chat.private and pressed is not None:
            there = self._delivery(self._outlet(person, f"{interaction.id}/there"), person, shown=(pressed,))
            return InPlace(self._delivery(beside, person), there)
        gate = self._gates.get(chat, FRAME_PAUSE)
        answer = Following(InteractionOutlet(interaction, deferred=is_command, beside=beside), gate, self._errands)
        if pressed is None or interaction.message is None or not interaction.message.flags.ephemeral:
            return answer  # what others see never gives its place to what is for one person
        outlet = InteractionOutlet(interaction, deferred=False, beside=beside, pressed=pressed)
        return InPlace(answer, Delivery(outlet, gate, self._errands, shown=(pressed,)))

    def unasked(self, chat: ChatRef) -> Sink:
        """Where something goes that answers no message."""
        return self._delivery(self._outlet(chat, secrets.token_hex(8)), chat)

    def _outlet(self, chat: ChatRef, origin: str, reference: discord.MessageReference | None = None) -> ChannelOutlet:
        return ChannelOutlet(self._client, partial(self._chats.place, chat), origin, reference=reference)

    def _delivery(self, outlet: Outlet, chat: ChatRef, *, shown: tuple[str, ...] = (), begun: bool = False) -> Delivery:
        gate = self._gates.get(chat, FRAME_PAUSE)
        return Delivery(outlet, gate, self._errands, shown=shown, begun=begun, typing_pause=TYPING_PAUSE)


class Following(Delivery):
    """The answer to an interaction: in the end the message that a command left open is filled, or gone."""

    def __init__(self, outlet: InteractionOutlet, gate: Gate, errands: Errands) -> None:
        super().__init__(outlet, gate, errands, typing_pause=TYPING_PAUSE)
        self._interaction = outlet

    async def done(self) -> None:
        """End, and take back in the background what would say for ever that an answer is thought about."""
        await super().done()
        with suppress(DeliveryError):  # shut down
            self._errands.start(self._close())

    async def _close(self) -> None:
        async with self._lock:  # a reply that was given up waiting for may be under way
            try:
                await self._interaction.withdraw()
            except (Flood, Refused, Unconfirmed) as trouble:
                log.info("An open answer stays: %s", trouble)


def _reference(said: Incoming) -> discord.MessageReference | None:
    """In a channel an answer says which message it answers, also when that is gone meanwhile."""
    if said.chat.private:
        return None
    return discord.MessageReference(
        message_id=int(said.message_id), channel_id=reading.channel_id_of(said.chat), fail_if_not_exists=False
    )
