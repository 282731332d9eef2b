"""The real bot as a process of its own, as often as asked for: ``python -m tests.faults_bot``.

Everything is imported once. Each line read is a JSON object that starts ``bot run`` in a fork: its ``folder``, its
``surroundings`` (the environment) and the addresses of ``rest`` and ``gateway`` of Discord. Its pid is printed at
once, its exit code (negative: the signal) when it has ended. Discord's addresses are attributes of SDK classes:
they are set here and nowhere in the product.
"""

from __future__ import annotations

import json
import os
import sys

import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

import bot.adapters.discord
import bot.adapters.telegram  # noqa: F401 - what `run` would load
from bot.cli import main


def serve() -> None:
    """Start a bot for each line of the standard input, one at a time."""
    for line in os.fdopen(os.dup(0), "rb", buffering=0):
        pid = os.fork()
        if pid == 0:
            be(**json.loads(line))
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def be(folder: str, surroundings: dict[str, str], rest: str, gateway: str) -> None:
    """Be the bot."""
    Route.BASE = rest
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(gateway)
    os.chdir(folder)
    os.environ.update(surroundings)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    printed = os.open("stderr.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    sys.argv = ["recollect", "run"]
    main()


if __name__ == "__main__":
    serve()
