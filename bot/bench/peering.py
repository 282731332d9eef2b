"""Peers as processes: a Python of its own for each, and JSON lines to it (:mod:`bot.bench.peer` says which)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, NonNegativeFloat, TypeAdapter, ValidationError

from bot.bench import peer
from memory.ports import Embedder

PATIENCE: Final = 900.0
"""Seconds for one answer; the slowest is a whole conversation that is added text by text."""
_NO_NEIGHBOURS: Final = "-P"
"""The files beside the one that runs must not pass for modules of the library."""
_LONGEST_LINE: Final = 2**26
_SHOWN: Final = 200
"""Characters of what went wrong that are told."""
_PASSED_ON: Final = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT")
_QUIET: Final = {
    "ANONYMIZED_TELEMETRY": "False",
    "MEM0_TELEMETRY": "False",
    "LANGSMITH_TRACING": "false",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
    "PYTHONIOENCODING": "utf-8",
    **dict.fromkeys(("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9"),
}
"""Nothing is reported, nothing leaves this machine (no proxy listens there), and algebra has one thread as ours has."""


class PeerFailed(Exception):
    """A peer cannot be measured; the text says why."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A peer: its name in :data:`bot.bench.peer.PEERS`, and what pip installs for it."""

    name: str
    requirements: tuple[str, ...]


KINDS: Final = (
    Kind("mem0", ("mem0ai==2.2.1",)),
    # Its store multiplies number by number where it finds no numpy.
    Kind("langgraph", ("langgraph==1.2.24", "numpy>=2.0")),
    Kind("chromadb", ("chromadb==1.5.9",)),
)


class _Message(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Hello(_Message):
    version: str


class _Wanted(_Message):
    embed: list[str]


class _Done(_Message):
    ms: NonNegativeFloat
    ids: list[str]


_Answer = TypeVar("_Answer", bound=_Message)
_HEARD: Final[TypeAdapter[_Hello | _Wanted | _Done]] = TypeAdapter(_Hello | _Wanted | _Done)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a peer found, the ids best first, and its milliseconds without embedding."""

    ids: tuple[str, ...]
    ms: float


@dataclass(frozen=True, slots=True)
class Home:
    """The venv of one peer."""

    kind: Kind
    folder: Path

    @property
    def python(self) -> Path:
        """Its Python."""
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    @property
    def ready(self) -> bool:
        """Whether the peer is in it, in the version that is wanted."""
        return self._note.is_file() and self._note.read_text() == self._wanted and self.python.exists()

    def settle(self) -> None:
        """Note that everything is installed; one that was broken off on the way has no such note."""
        self._note.write_text(self._wanted)

    @property
    def _wanted(self) -> str:
        return "\n".join(self.kind.requirements)

    @property
    def _note(self) -> Path:
        return self.folder / "holds.txt"


async def installed(home: Home) -> Path:
    """The Python that has a peer, in a venv of its own; made on first use. Raises PeerFailed."""
    if not home.ready:
        await _run(sys.executable, "-m", "venv", "--clear", str(home.folder))
        pip = (str(home.python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
        await _run(*pip, *home.kind.requirements)
        home.settle()
    return home.python


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE)
    printed, complaint = await process.communicate()
    if process.returncode:
        raise PeerFailed(f"it cannot be installed: {_last_line(complaint) or _last_line(printed)}")


class Running:
    """A peer that runs. ``version`` is what it says of itself."""

    def __init__(self, process: Process, embedder: Embedder, *, errors: IO[bytes], patience: float) -> None:
        self.version = ""
        self._process = process
        self._embedder = embedder
        self._errors = errors
        self._patience = patience

    async def greet(self) -> None:
        """Wait until the library is open. Raises PeerFailed."""
        self.version = (await self._answered(_Hello)).version

    async def add(self, person: str, items: Sequence[tuple[str, str]]) -> float:
        """Have texts of one person kept, each with its id; the milliseconds. Raises PeerFailed."""
        return (await self._asked({"add": items, "person": person})).ms

    async def find(self, person: str, text: str, limit: int) -> Answer:
        """Ask for the texts of a person that fit best. Raises PeerFailed."""
        done = await self._asked({"find": text, "person": person, "limit": limit})
        return Answer(tuple(done.ids), done.ms)

    async def _asked(self, request: Mapping[str, Any]) -> _Done:
        await self._say(request)
        return await self._answered(_Done)

    async def _answered(self, kind: type[_Answer]) -> _Answer:
        """The next answer of that kind, vectors handed out until then."""
        try:
            async with asyncio.timeout(self._patience):
                while isinstance(heard := await self._hear(), _Wanted):
                    await self._say({"vectors": await self._vectors(heard.embed)})
        except TimeoutError as late:
            raise PeerFailed(f"it did not answer within {self._patience:g} s") from late
        if not isinstance(heard, kind):
            raise PeerFailed(f"it answered out of turn: {heard!r}"[:_SHOWN])
        return heard

    async def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """Our vectors; a text that has none lies in no direction."""
        vectors = await self._embedder.embed(texts)
        blank = [0.0] * (self._embedder.dimensions or 0)
        return [blank if vector is None else vector.tolist() for vector in vectors]

    async def _say(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            await self._process.stdin.drain()
        except ConnectionError as gone:
            raise await self._ended() from gone

    async def _hear(self) -> _Hello | _Wanted | _Done:
        assert self._process.stdout is not None
        try:
            line = await self._process.stdout.readline()
            if not line:
                raise await self._ended()
            return _HEARD.validate_json(line)
        except ValidationError as rubbish:
            raise PeerFailed(f"it answered what is no answer: {line[:_SHOWN]!r}") from rubbish
        except ValueError as endless:
            raise PeerFailed(f"it answered a line of more than {_LONGEST_LINE} bytes") from endless

    async def _ended(self) -> PeerFailed:
        code = await self._process.wait()
        self._errors.seek(0)
        return PeerFailed(f"it ended by itself ({code}): {_last_line(self._errors.read()) or 'no word why'}")


@contextlib.asynccontextmanager
async def running(
    kind: Kind, command: Sequence[str], embedder: Embedder, *, patience: float = PATIENCE
) -> AsyncIterator[Running]:
    """A peer with an empty store in a folder of its own, gone afterwards with its process. Raises PeerFailed.

    ``command`` is the Python of the peer and the file it runs. ``patience`` are the seconds to wait for one answer.
    """
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as errors:
        process = await asyncio.create_subprocess_exec(
            *command,
            kind.name,
            folder,
            str(embedder.dimensions),
            stdin=PIPE,
            stdout=PIPE,
            stderr=errors,
            limit=_LONGEST_LINE,
            cwd=folder,
            env=_environment(folder),
        )
        try:
            here = Running(process, embedder, errors=errors, patience=patience)
            await here.greet()
            yield here
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.communicate()


async def command_of(kind: Kind, venvs: Path) -> list[str]:
    """What starts a peer, installed under ``venvs``, an absolute path, if need be. Raises PeerFailed."""
    return [str(await installed(Home(kind, venvs / kind.name))), _NO_NEIGHBOURS, peer.__file__]


def _environment(folder: str) -> dict[str, str]:
    """Next to nothing: no key and no address of ours reaches a peer, and its files stay in its folder."""
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return passed | _QUIET | dict.fromkeys(("HOME", "TMPDIR", "TEMP", "MEM0_DIR", "USERPROFILE"), folder)


def _last_line(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1].strip()[:_SHOWN] if lines else ""
