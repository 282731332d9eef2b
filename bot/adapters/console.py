"""The reference adapter: one person at a terminal, or a file of lines piped in. Read it first."""

from __future__ import annotations

import asyncio
import os
import sys
import uuid
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.shortcuts import print_formatted_text

from bot.message import (
    Button,
    ChatRef,
    CommandSpec,
    DeliveryError,
    File,
    Incoming,
    Posted,
    Press,
    Reply,
    Seen,
    Sink,
    Submit,
)
from bot.text import clean

LEAVE = frozenset({"/exit", "/quit"})


class ConsoleAdapter:
    """Talks with ``user`` over ``lines`` and ``out``; on a TTY with line editing, colour and growing answers.

    ``now`` is the clock (aware UTC), ``language`` a BCP 47 hint until the person has written something, ``folder``
    where files are put that somebody asked for (by default where the program was started).
    """

    name = "console"
    repeats_for = timedelta(0)

    def __init__(
        self,
        user: str,
        *,
        now: Callable[[], datetime],
        language: str | None = None,
        lines: TextIO | None = None,
        out: TextIO | None = None,
        folder: Path | None = None,
    ) -> None:
        self._user = user
        self._now = now
        self._language = language
        self._lines = lines or sys.stdin
        self._out = out or sys.stdout
        self._folder = folder or Path()
        self._tty = self._lines.isatty() and self._out.isatty()
        self._chat = ChatRef(self.name, f"dm:{user}")
        self._buttons: tuple[Button, ...] = ()

    async def run(self, submit: Submit, commands: tuple[CommandSpec, ...], seen: Seen) -> None:
        """Read a line, wait for its answer, read the next, until the input ends or the person leaves."""
        await seen()
        read = self._prompted(commands) if self._tty else self._piped
        while (line := await read()) is not None:
            text = clean(line).strip()
            if text in LEAVE:
                return
            if not text and self._tty:
                continue
            sink = ConsoleSink(self)
            await submit(self._update(text), sink)
            await sink.finished.wait()

    async def notify(self, chat: ChatRef, reply: Reply) -> None:
        """Print something nobody asked for just now."""
        if chat == self._chat:
            self.print(reply)

    def sink(self, incoming: Incoming, *, shown: tuple[str, ...] = (), begun: bool = False) -> Sink:
        """Answer a message of the past in this terminal; what its last one showed is gone."""
        del shown, begun
        if incoming.chat != self._chat:
            raise DeliveryError("another person's chat", later=True)
        return ConsoleSink(self)

    def print(self, reply: Reply, *, shown: str = "") -> None:
        """Print a reply, or what of it is not ``shown`` yet, and number its buttons."""
        if shown and reply.text.startswith(shown):
            self.write(reply.text[len(shown) :] + "\n")
        else:
            self.write(("\n" if shown else "") + reply.text + "\n")
        for file in reply.files:
            self.write(f"  {_put(file, self._folder)}\n", dim=True)
        if reply.buttons:
            self._buttons = reply.buttons
        for number, button in enumerate(reply.buttons, 1):
            self.write(f"  [{number}] {button.label}\n", dim=True)

    def write(self, text: str, *, dim: bool = False) -> None:
        """Write at once; what the terminal's encoding lacks is replaced, never an error."""
        if self._tty:
            style = "ansibrightblack" if dim else "ansicyan"
            print_formatted_text(FormattedText([(style, text)]), end="", flush=True)
            return
        encoding = self._out.encoding or "utf-8"
        self._out.write(text.encode(encoding, "replace").decode(encoding))
        self._out.flush()

    @property
    def grows(self) -> bool:
        """Whether answers are shown as they grow."""
        return self._tty

    def _update(self, text: str) -> Incoming | Press:
        """A typed number stands for the button it is printed with, while there are buttons."""
        number = int(text) if text.isdecimal() and len(text) < 4 else 0  # noqa: PLR2004 - no list is that long
        buttons, self._buttons = self._buttons, ()
        if 0 < number <= len(buttons):
            return Press(self._chat, self._user, "", buttons[number - 1].id, self._now(), self._language)
        return Incoming(self._chat, self._user, "", uuid.uuid4().hex, text, self._now(), self._language)

    async def _piped(self) -> str | None:
        line = await asyncio.to_thread(self._lines.readline)
        return line.rstrip("\r\n") if line else None

    def _prompted(self, commands: tuple[CommandSpec, ...]) -> Callable[[], Awaitable[str | None]]:
        session: PromptSession[str] = PromptSession(
            completer=WordCompleter([f"/{command.name}" for command in commands], sentence=True)
        )

        async def read() -> str | None:
            try:
                with patch_stdout(raw=True):
                    return await session.prompt_async(FormattedText([("bold ansigreen", "› ")]))
            except (EOFError, KeyboardInterrupt):
                return None

        return read


def _put(file: File, folder: Path) -> Path:
    """Put a file into a folder, readable by its owner alone and never over another; returns where it is.

    Raises DeliveryError when it cannot be written.
    """
    try:
        place = folder.resolve() / file.name
        number = 1
        while place.exists():
            number += 1
            place = place.with_name(f"{Path(file.name).stem}-{number}{Path(file.name).suffix}")
        with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as written:
            written.write(file.content)
    except OSError as error:
        raise DeliveryError(f"{file.name} cannot be written to {folder.resolve()}: {error.strerror}") from error
    return place


class ConsoleSink:
    """Where one answer goes."""

    def __init__(self, console: ConsoleAdapter) -> None:
        self._console = console
        self._shown = ""
        self.finished = asyncio.Event()

    def watch(self, posted: Posted) -> None:
        """A terminal keeps no messages that an answer could go on in."""

    async def show(self, text: str) -> None:
        """Print what has grown; text that was withdrawn is printed anew below."""
        if not self._console.grows:
            return
        if not text.startswith(self._shown):
            self._console.write("\n")
            self._shown = ""
        self._console.write(text[len(self._shown) :])
        self._shown = text

    async def send(self, reply: Reply) -> str | None:
        """Print the rest of the reply."""
        self._console.print(reply, shown=self._shown)
        self._shown = ""
        return None

    async def abandon(self, *, keep: bool) -> bool:
        """Stop: what is printed is printed, but no more of it comes."""
        del keep
        return True

    async def done(self) -> None:
        """Let the next line be read."""
        self.finished.set()
