"""The real bot as a process of its own, as often as asked for: ``python -m tests.faults_bot``.

Everything is imported once. Each line read is a JSON object that starts ``bot run`` in a fork: its ``folder``, its
``surroundings`` (the environment) and the addresses of ``rest`` and ``gateway`` of Discord. Its pid is printed at
once, its exit code (negative: the signal) when it has ended. Discord's addresses are attributes of SDK classes:
they are set here and nowhere in the product.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import ssl
import sys
from collections.abc import Callable, Mapping, Sequence

import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

import bot.adapters.discord
import bot.adapters.telegram  # noqa: F401 - what `run` would load
from bot.app import utc_now
from bot.cli import main
from bot.commands import specs
from bot.llm import LLM
from bot.tokens import token_counter
from config.settings import ModelSettings
from memory import rules

_PR_SET_PDEATHSIG = 1


def warm() -> None:
    """Load what every bot loads when it is first needed: tables, phrases, rules, parts of the SDKs."""
    ssl.SSLContext.load_verify_locations = _trust_nobody  # type: ignore[method-assign]
    LLM("http://127.0.0.1:1/v1", None, "scripted", ModelSettings())
    specs()
    token_counter("scripted")("one")
    rules.candidates("I am allergic to nuts.", message_id=1, at=utc_now(), language_hint="en", zone="UTC")
    gc.collect()
    gc.freeze()


def _die_with_the_parent() -> None:
    """Leave no bot behind when a run is broken off."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _trust_nobody(*_: object, **__: object) -> None:
    """Load no certificates, which takes longer than all else: nothing here is encrypted."""


def serve(be: Callable[..., None]) -> None:
    """Fork a process for each line of the standard input, one at a time; it shall ``be`` what the line says."""
    _die_with_the_parent()
    for line in os.fdopen(os.dup(0), "rb", buffering=0):
        pid = os.fork()
        if pid == 0:
            _die_with_the_parent()
            be(**json.loads(line))
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def be(folder: str, surroundings: Mapping[str, str], rest: str, gateway: str) -> None:
    """Be the bot."""
    Route.BASE = rest
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway)
    obey(["run"], folder, surroundings)


def obey(words: Sequence[str], folder: str, surroundings: Mapping[str, str]) -> None:
    """Carry out a command line in ``folder``, as a process of its own would; what it prints goes into a file there."""
    os.chdir(folder)
    os.environ.update(surroundings)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    printed = os.open("stderr.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    sys.argv = ["recollect", *words]
    main()


if __name__ == "__main__":
    warm()
    serve(be)
