"""People talk to the real bot on both platforms while everything breaks; in the end each chat shows what it must.

    python -m tests.faults --seed 7 --kills 60

The bot is a process of its own that is killed at moments a seed chooses and started again over the same data.
Every message holds one word of its own and the model's answers hold the words they answer, so that what a chat
shows tells who was answered, how often and in which order. The seed settles who does what and what breaks, the
machine how these fall together.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self
from unittest.mock import patch

from tests.faults_verdict import (
    KILL,
    SILENCE,
    Chat,
    Left,
    Remains,
    Verdict,
    judge_chat,
    judge_journal,
    judge_log,
    words,
)
from tests.faults_weather import Moment, Sent, Skies, is_whole
from tests.servers import telegram_chats
from tests.servers.discord_server import Place, User

ROOT: Final = Path(__file__).parent.parent
KEY: Final = "sk-secret-of-the-model"
MARA, TOMAS = User("900000000000002001", "Mara"), User("900000000000000777", "Tomas")
ANNA, BERT, GROUP = 1001, 1002, -500
PATIENCE: Final = 45.0
"""Seconds after which what is not quiet never will be."""
SETTINGS: Final = """
[embedder]
kind = "none"
[recall]
max_tokens = 0
[conversation]
quiet_seconds = {quiet}
turns_a_minute = 0
[jobs]
every_seconds = 0.5
[telegram]
base_url = "{telegram}"
[privacy]
first_notice = false
[access]
open = "everybody"
"""
STARTING: Final = Moment("the bot starts", r"^telegram getMe", delay=0.15)
MOMENTS: Final = (
    Moment("the model speaks", r"^model speaks", nth=12),
    Moment("the model has spoken", r"^model ends", delay=0.01),
    Moment("updates are fetched", r"^telegram getUpdates hands over"),
    Moment("updates are being journaled", r"^telegram getUpdates hands over", delay=0.02),
    Moment("Telegram: a first message leaves", r"^telegram sendMessage arrives", lost=True),
    Moment("Telegram: a first message is made", r"^telegram sendMessage hands over"),
    Moment("Telegram: a first message is shown", r"^telegram sendMessage hands over", delay=0.3),
    Moment("Telegram: an edit leaves", r"^telegram editMessageText arrives", lost=True),
    Moment("Telegram: an edit is made", r"^telegram editMessageText hands over"),
    Moment("Discord: a message leaves", r"^discord POST messages arrives", lost=True),
    Moment("Discord: a message is made", r"^discord POST messages is done"),
    Moment("Discord: a message is shown", r"^discord POST messages is done", delay=0.3),
    Moment("Discord: an edit is made", r"^discord PATCH messages is done"),
    Moment("Discord: people are heard", r"^discord event MESSAGE_CREATE", delay=0.005),
    Moment("Discord: the history is read", r"^discord GET messages is done"),
    STARTING,
)


@dataclass(frozen=True, slots=True)
class Kill:
    """A line of the table: when it was, and how many messages waited, with which progress of their answer."""

    moment: str
    after: float
    waiting: int
    begun: int
    shown: int
    given: int


class Nursery:
    """A process that has everything imported and starts bots, one at a time; ``module`` is what it runs."""

    def __init__(self, module: str = "tests.faults_bot") -> None:
        ours = ("OPENAI_", "TELEGRAM_", "DISCORD_", "RECOLLECT_")
        surroundings = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        surroundings |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            env=surroundings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()

    async def bear(self, order: str) -> int:
        """Start a bot and return its pid."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{order}\n")
        return await self.number()

    async def number(self) -> int:
        """The next number that is told: a pid, or an exit code once the bot has ended."""
        assert self._process.stdout is not None
        return int(await asyncio.to_thread(self._process.stdout.readline))


class Process:
    """A process that is started by an order again and again. ``codes`` are exit codes but for kills."""

    def __init__(self, nursery: Nursery, order: Mapping[str, Any]) -> None:
        self._order = json.dumps(order)
        self._nursery = nursery
        self._pid = 0
        self.codes: list[int] = []
        self.ending: asyncio.Task[None]

    async def start(self) -> None:
        """Start it."""
        self._pid = await self._nursery.bear(self._order)
        self.ending = asyncio.create_task(self._end())

    def kill(self) -> None:
        """Kill it, wherever it is."""
        self._signal(signal.SIGKILL)

    async def stop(self) -> None:
        """Stop it as an operator would; one that does not stop is killed."""
        self._signal(signal.SIGTERM)
        await asyncio.wait({self.ending}, timeout=PATIENCE)
        self.kill()
        await self.ending

    def _signal(self, number: signal.Signals) -> None:
        if self._pid:
            os.kill(self._pid, number)

    async def _end(self) -> None:
        code = await self._nursery.number()
        self._pid = 0
        if code != -signal.SIGKILL:
            self.codes.append(code)


class Bot(Process):
    """The bot's process; every one of a story works in the same folder."""

    def __init__(self, nursery: Nursery, folder: Path, skies: Skies, quiet_seconds: float) -> None:
        told = SETTINGS.format(telegram=skies.telegram.base_url, quiet=quiet_seconds)
        (folder / "recollect.toml").write_text(told, encoding="utf-8")
        rest, gateway = skies.discord.addresses
        surroundings = {
            "TELEGRAM_BOT_TOKEN": skies.telegram.token,
            "DISCORD_BOT_TOKEN": skies.discord.token,
            "OPENAI_BASE_URL": skies.model.base_url,
            "OPENAI_MODEL": "scripted",
            "OPENAI_API_KEY": KEY,
        }
        order = {"folder": str(folder), "surroundings": surroundings, "rest": rest, "gateway": gateway}
        super().__init__(nursery, order)


class Story:
    """People, a bot that is killed, and what must have come of it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.seed = seed
        self.skies = Skies(seed)
        self.remains = Remains(folder)
        self.kills: list[Kill] = []
        self._folder = folder
        self._dice = random.Random(seed + 1)
        self._unsure: list[Sent] = []
        self._excused: set[str] = set()
        self._codes: list[int] = []
        self._numbers = iter(range(10**5))
        self.anna = self._private_telegram("Telegram Anna", ANNA)
        self.mara = self._private_discord(MARA)
        self.chats = [
            self.anna,
            self._private_telegram("Telegram Bert", BERT),
            self._group(),
            self.mara,
            self._private_discord(TOMAS),
            self._channel(self.skies.discord.guild("general")),
        ]

    # Who talks where

    def _private_telegram(self, name: str, person: int) -> Chat:
        async def say(text: str) -> None:
            self._say_on_telegram(person, text)

        return Chat(name, say, lambda: self._shown_on_telegram(person))

    def _group(self) -> Chat:
        self.skies.telegram.group(GROUP)

        async def say(text: str) -> None:
            addressed = text if text.startswith("By the way") else f"@recollect_bot {text}"
            self._say_on_telegram(self._dice.choice((ANNA, BERT)), addressed, GROUP)

        return Chat("Telegram group", say, lambda: self._shown_on_telegram(GROUP))

    def _say_on_telegram(self, person: int, text: str, chat: int | None = None) -> None:
        with patch.object(telegram_chats, "DATE", int(time.time())):
            self.skies.telegram.say(person, text, chat)

    def _shown_on_telegram(self, chat: int) -> list[tuple[str, str]]:
        return [(str(message["message_id"]), message["text"]) for message in self.skies.telegram.chat(chat).ours]

    def _private_discord(self, person: User) -> Chat:
        discord = self.skies.discord

        async def say(text: str) -> None:
            await discord.say(person, text)

        return Chat(f"Discord {person.name}", say, lambda: _shown(discord.answers(person)))

    def _channel(self, place: Place) -> Chat:
        discord = self.skies.discord

        async def say(text: str) -> None:
            addressed = text if text.startswith("By the way") else f"<@{discord.bot.id}> {text}"
            await discord.say(self._dice.choice((MARA, TOMAS)), addressed, place=place)

        return Chat("Discord channel", say, lambda: _shown(discord.answers(place[1])))

    async def ask(self, chat: Chat, *, aside: bool = False) -> None:
        """Let somebody ask, or say something ``aside`` to the others there."""
        word = f"kumquat{next(self._numbers):05}"
        (chat.aside if aside else chat.asked).append(word)
        await chat.say(f"By the way, {word}" if aside else f"Tell me of {word}, please")

    async def talk(self, *, share: float = 0.7, most: int = 3) -> None:
        """Let people write in a ``share`` of the chats, one or several messages each."""

        async def write(chat: Chat) -> None:
            for _ in range(self._dice.randint(1, most)):
                shared = chat.name.endswith(("group", "channel"))
                await self.ask(chat, aside=shared and self._dice.random() < 0.2)
                await asyncio.sleep(self._dice.choice((0.0, 0.05, 0.3)))

        await asyncio.gather(*(write(chat) for chat in self.chats if self._dice.random() < share))

    # What happens

    @contextlib.asynccontextmanager
    async def begun(self, nursery: Nursery, *, quiet_seconds: float = 0.15) -> AsyncIterator[Bot]:
        """Start the bot in calm weather. Each chat is known to it when this is entered.

        On Discord the bot reads what it missed in chats it has heard of, so that a kill before that loses messages.
        At the end it is stopped, not killed.
        """
        skies = self.skies
        skies.weather.calm, skies.model.pause = True, 0.0
        async with skies.telegram, skies.discord, skies.model:
            bot = Bot(nursery, self._folder, skies, quiet_seconds)
            await bot.start()
            try:
                await skies.discord.online()
                await asyncio.gather(*(self.ask(chat) for chat in self.chats))
                await self.quiet(bot)
                yield bot
                await self.quiet(bot)
            finally:
                await bot.stop()
                self._codes = bot.codes

    async def play(self, nursery: Nursery, kills: int) -> Verdict:
        """Kill the bot so many times in bad weather, then let it come to rest."""
        async with self.begun(nursery) as bot:
            self.skies.weather.calm, self.skies.model.pause = False, None
            for moment in self._moments(kills):
                await self.quiet(bot, self._dice.choice((0.0, 0.0, 3.0)))
                await self._strike(bot, moment)
            await asyncio.gather(self.talk(share=1.0), self._break_gateway())
        return self.verdict()

    def _moments(self, count: int) -> Iterator[Moment]:
        for done in range(0, count, len(MOMENTS)):
            yield from self._dice.sample(MOMENTS, min(len(MOMENTS), count - done))

    async def _strike(self, bot: Bot, moment: Moment) -> None:
        """Kill the bot in the middle of talk that goes on while it is down, and start it again."""
        if moment is STARTING:
            await self.kill(bot)
            await bot.start()
        talking = asyncio.gather(self.talk(), self._break_gateway())
        await self.kill(bot, moment)
        await talking
        await self.talk(share=0.4, most=2)
        self.skies.telegram.lose_confirmation(self._dice.randint(0, 3))
        await bot.start()

    async def kill(self, bot: Bot, moment: Moment | None = None) -> None:
        """Wait for the moment, kill the bot and note what it left; a moment that does not come is not waited for."""
        begun = time.monotonic()
        if moment is not None:
            self.skies.fate.choose(moment, bot.kill)
            await asyncio.wait({bot.ending}, timeout=6)
        if not bot.ending.done():
            moment = None
            bot.kill()
        self.skies.fate.choose(None, bot.kill)
        await bot.ending
        left = self.remains.waiting()
        progress = [sum(map(bool, some)) for some in zip(*((w.begun, w.shown, w.reply) for w in left), strict=True)]
        name = "at any time" if moment is None else moment.name
        self.kills.append(Kill(name, time.monotonic() - begun, len(left), *(progress or (0, 0, 0))))
        self._note_doubts(left)

    def _note_doubts(self, left: Sequence[Left]) -> None:
        """Note what nobody knows after a kill: whether the first message of an answer was made on Telegram."""
        known = {message_id for one in left for message_id in one.shown}
        for one in left:
            if one.platform != "telegram" or not one.begun or one.shown:
                continue
            self._excused |= set(words(one.reply or ""))
            chat = int(one.key.partition(":")[2])
            newest = [(n, text) for n, text in self._shown_on_telegram(chat) if int(n) > int(one.message_id)][-1:]
            self._unsure += [Sent(chat, text, int(number)) for number, text in newest if number not in known]

    async def _break_gateway(self) -> None:
        """Break Discord's gateway connection in one of its ways, or not."""
        gateway, way = self.skies.discord.gateway, self._dice.choice(("none", "reconnect", "close", "invalidate"))
        await asyncio.sleep(self._dice.uniform(0.1, 0.6))
        if way == "none" or not gateway.sockets:
            return
        self.skies.weather.seen[f"discord: gateway, {way}"] += 1
        with contextlib.suppress(ConnectionError):
            match way:
                case "reconnect":
                    await self.skies.discord.reconnect()
                case "close":
                    await gateway.close(4000)
                case _:
                    await gateway.invalidate()

    async def quiet(self, bot: Bot, seconds: float = PATIENCE) -> None:
        """Wait until everybody is heard and answered, at most for a while: what is not, the verdict tells."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not (self._is_quiet() or bot.ending.done()):
            await asyncio.wait({bot.ending}, timeout=0.1)

    def _is_quiet(self) -> bool:
        if self.skies.telegram.updates.waiting or self.remains.rows("SELECT id FROM waiting"):
            return False
        return {word for chat in self.chats for word in chat.asked} <= self.remains.heard()

    # What must have come of it

    def verdict(self) -> Verdict:
        """Compare everything with what it must be."""
        found, telegram = Verdict(), self.skies.telegram
        doubts = [*self._unsure, *telegram.unsure]
        excused = self._excused | {word for sent in doubts if is_whole(sent.text) for word in words(sent.text)}
        unsure = {str(sent.message_id): SILENCE for sent in telegram.unsure}
        unsure |= {str(sent.message_id): KILL for sent in self._unsure}
        for chat in self.chats:
            judge_chat(chat, unsure if chat.name.startswith("Telegram") else {}, excused, found)
        judge_journal(self.remains, self.chats, found)
        judge_log(self.remains, (telegram.token, self.skies.discord.token, KEY), found)
        if self._codes != [0]:
            found.wrong.append(f"the bot ended by itself, or not when it was stopped: {self._codes}")
        if telegram.updates.waiting:
            found.wrong.append(f"{len(telegram.updates.waiting)} updates are unconfirmed")
        # A process that was killed takes what it knew of a flood along: the next one may ask once too early.
        if telegram.impatient > len(self.kills):
            found.wrong.append(f"{telegram.impatient} requests came during a flood")
        return found

    def table(self, found: Verdict) -> str:
        """The story as a table for people."""
        lines = [
            f"seed {self.seed}",
            f"{'killed when':36} {'after':>7} {'waiting':>8} {'begun':>6} {'shown':>6} {'given':>6}",
        ]
        lines += [
            f"{kill.moment:36} {kill.after:6.2f}s {kill.waiting:8} {kill.begun:6} {kill.shown:6} {kill.given:6}"
            for kill in self.kills
        ]
        gateway = self.skies.discord.gateway
        counts = {"kills": len(self.kills), "redelivered updates": self.skies.telegram.redelivered}
        counts |= {"gateway: identified": len(gateway.identified), "gateway: resumed": gateway.resumed}
        counts |= dict(sorted(self.skies.weather.seen.items())) | dict(found.figures)
        lines += ["", *(f"{name:36} {count:7}" for name, count in counts.items())]
        return "\n".join([*lines, "", *(found.wrong or ["everything is as it must be"])])


def _shown(messages: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(str(message["id"]), str(message["content"])) for message in messages]


def main() -> int:
    """Play one story of any length and print its table."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=str(__doc__).partition("\n")[0])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="a new folder to leave data and log in")
    options = parser.parse_args()
    folder = options.keep or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)  # a kill cuts requests off
    story = Story(folder, options.seed)
    with Nursery() as nursery:
        found = asyncio.run(story.play(nursery, options.kills))
    sys.stdout.write(f"{story.table(found)}\n")
    if options.keep is None:
        shutil.rmtree(folder)
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
