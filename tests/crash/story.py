"""A story: people talk to the real bot, it is killed at an instant within each kind of work, and started again.

After each kill the file is compared with what the platform was told; then the bot starts, comes to rest, and
everything is compared with everything that was said.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, Literal
from unittest.mock import patch

from memory import DATABASE_NAME
from memory.accounts import Accounts
from memory.clock import stamp
from memory.db import Database
from memory.facts import Facts
from memory.journal import Journal
from memory.model import Candidate, Citation
from tests.crash.instants import Agreement, Event, Instant, Phase
from tests.crash.people import SAYINGS, Model, Statement, word
from tests.crash.verdict import Folder, judge, judge_copies
from tests.faults import KEY, Nursery, Process
from tests.servers import telegram_chats
from tests.servers.telegram_server import TelegramServer

Work = Literal[
    "replying",
    "starting",
    "distilling",
    "merging",
    "forgetting",
    "undoing",
    "erasing",
    "rewriting",
    "backing up",
    "migrating",
]
WORKS: Final[tuple[Work, ...]] = (
    "replying",
    "distilling",
    "forgetting",
    "erasing",
    "starting",
    "replying",
    "merging",
    "distilling",
    "undoing",
    "rewriting",
    "backing up",
)
"""What the bot is killed at, in any order."""
PHASES: Final[Mapping[Work, Phase]] = {
    "distilling": Phase.DISTILLING,
    "merging": Phase.MERGING,
    "erasing": Phase.ERASING,
    "rewriting": Phase.REWRITING,
    "backing up": Phase.BACKING_UP,
}
PEOPLE: Final = (1001, 1002, 1003)
GROUP: Final = -500
PATIENCE: Final = 120.0
"""Seconds after which what is not at rest never will be."""
IDLE: Final = 3600.0
"""Seconds that end a session, and the lease of a distillation that a kill cut off."""
MOST_ROUNDS: Final = 8
"""Rests after which what is due is done."""
UNTIL_ERASED: Final = 900.0
"""Seconds after which a deletion cannot be undone, and no session has ended."""
DAY: Final = 90_000.0
SETTINGS: Final = """
[embedder]
kind = "none"
[conversation]
quiet_seconds = 0
turns_a_minute = 0
[jobs]
every_seconds = 5
[journal]
keep_days = 0
[trace]
keep_days = 0
[memory]
cool_days = 0
[telegram]
base_url = "{telegram}"
[backup]
folder = "copies"
[privacy]
first_notice = false
[access]
open = "everybody"
"""
CARRIED_OUT: Final = "SELECT id FROM deletions WHERE erased_at IS NOT NULL"
LEASED: Final = "SELECT session, account, attempts FROM session_members WHERE not_before > 0 OR attempts > 0"
RECEIPT: Final = "Erased for good"
"""How the bot says that an erasure is done, and a search has found nothing."""
INTERRUPTED: Final = "I was stopped before"
"""How the bot says that a command got lost: people send it again."""


@dataclass(frozen=True, slots=True)
class Most:
    """How many events there are of each kind in a piece of work, about, and how long it takes."""

    statements: int
    commits: int
    files: int
    micros: int


MOSTS: Final[Mapping[Work, Most]] = {
    "replying": Most(60, 22, 0, 250_000),
    "starting": Most(30, 15, 1, 900_000),
    "distilling": Most(12, 5, 0, 100_000),
    "merging": Most(17, 3, 0, 20_000),
    "forgetting": Most(30, 12, 0, 80_000),
    "undoing": Most(26, 12, 0, 80_000),
    "erasing": Most(60, 5, 0, 120_000),
    "rewriting": Most(6, 250, 15, 120_000),
    "backing up": Most(1, 1, 14, 400_000),
}


@dataclass(frozen=True, slots=True)
class Kill:
    """A line of the record: what the bot was doing, at which instant it was killed, and what was wrong after it.

    ``hit`` is False when the instant did not come, so that the bot was killed when it had done everything.
    """

    work: Work
    instant: Instant
    hit: bool
    wrong: tuple[str, ...]


def instants(work: Work, dice: random.Random) -> Instant:
    """An instant within a piece of work."""
    most, phase = MOSTS[work], PHASES.get(work, Phase.REPLYING)
    events = [Event.STATEMENT, Event.COMMIT, Event.COMMITTED] + [Event.FILE] * bool(most.files)
    match dice.choice((*events, "later", "during")):
        case Event.STATEMENT:
            return Instant(phase, Event.STATEMENT, dice.randint(1, most.statements))
        case Event.FILE:
            return Instant(phase, Event.FILE, dice.randint(1, most.files), dice.choice((0, dice.randint(1, 3_000))))
        case Event() as event:
            return Instant(phase, event, dice.randint(1, most.commits))
        case "during":
            return Instant(phase, Event.COMMIT, dice.randint(1, most.commits), dice.randint(1, 2_000))
        case _:
            begins = Event.BEGUN if work in ("starting", "backing up") else Event.STATEMENT
            return Instant(phase, begins, 1, dice.randint(1, most.micros))


@dataclass
class Story:
    """The people, the platform, the model, the folder and the bot."""

    folder: Path
    seed: int
    nursery: Nursery
    sabotage: str = ""
    """What the bot does wrong, one of :data:`tests.crash.sabotage.SABOTAGES`."""
    kills: list[Kill] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self.remains = Folder(self.folder)
        self.agreement = Agreement.beside(self.folder)
        self.telegram = TelegramServer()
        self.telegram.group(GROUP)
        self.model = Model(known=self.remains.known)
        self.said: list[Statement] = []
        self._messages: list[tuple[int, int]] = []
        self._forgetful: set[int] = set()
        self._asked: dict[int, tuple[str, int]] = {}
        self.bot: Process
        self._helper: Nursery | None = None

    # ---- what people do ------------------------------------------------------------------------------

    def _send(self, person: int, text: str, chat: int | None = None) -> None:
        at = int(time.time() + self.agreement.shift)
        with patch.object(telegram_chats, "DATE", at):
            number = self.telegram.say(person, f"@recollect_bot {text}" if chat == GROUP else text, chat)
        self._messages.append((person if chat is None else chat, number))

    def say(self, person: int, chat: int | None = None, *, rule: bool = False) -> None:
        """Let somebody make a statement, in their private chat or in another one."""
        made = Statement(word(len(self.said)), person, chat or person, rule=rule)
        self.said.append(made)
        self._send(person, made.text, chat)

    def talk(self) -> None:
        """Let people make statements, each in one chat, so that each is a turn of its own."""
        for person in self.dice.sample(PEOPLE, self.dice.randint(1, len(PEOPLE))):
            self.say(person, rule=self.dice.random() < 0.2)
        if self.dice.random() < 0.5:
            self.say(self.dice.choice(PEOPLE), GROUP)

    def command(self, person: int, text: str) -> None:
        """Let somebody give a command, and again if the bot says that it got lost."""
        self._asked[person] = (text, len(self.telegram.chat(person).texts))
        self._send(person, text)

    def _repeat(self) -> bool:
        """Send again what got lost; whether anything did."""
        lost = [
            (person, text)
            for person, (text, seen) in self._asked.items()
            if any(INTERRUPTED in told for told in self.telegram.chat(person).texts[seen:])
        ]
        for person, text in lost:
            self.command(person, text)
        return bool(lost)

    # ---- the bot -------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def begun(self) -> AsyncIterator[None]:
        """Have platform, model and bot there; in the end the bot is stopped as an operator would."""
        async with self.telegram, self.model.server:
            (self.folder / "recollect.toml").write_text(SETTINGS.format(telegram=self.telegram.base_url), "utf-8")
            surroundings = {
                "TELEGRAM_BOT_TOKEN": self.telegram.token,
                "OPENAI_BASE_URL": self.model.server.base_url,
                "OPENAI_MODEL": "scripted",
                "OPENAI_API_KEY": KEY,
            }
            self._surroundings = surroundings
            order = {"folder": str(self.folder), "surroundings": surroundings, "words": ["run"], "phase": 0}
            self.bot = Process(self.nursery, order | {"sabotage": self.sabotage})
            await self.bot.start()
            try:
                yield
            finally:
                await self.bot.stop()
                if self._helper is not None:
                    self._helper.__exit__()

    async def rest(self) -> list[str]:
        """Wait until everybody is answered and two rounds of housekeeping found nothing more; else what is not."""
        deadline = time.monotonic() + PATIENCE
        while True:
            rounds = self.agreement.rounds
            while time.monotonic() < deadline and not self.bot.ending.done():
                if not self.telegram.updates.waiting and self.agreement.rounds >= rounds + 2:
                    break
                self.agreement.want_round()
                await asyncio.wait({self.bot.ending}, timeout=0.03)
            if self.bot.ending.done():
                return ["it ended"]
            if time.monotonic() > deadline:
                return [f"not at rest: {len(self.telegram.updates.waiting)} updates"]
            if not (self.telegram.updates.waiting or self._repeat() or self.remains.rows("SELECT * FROM waiting")):
                return []

    async def pass_(self, seconds: float) -> list[str]:
        """Let time pass, and what is due then be done."""
        self.agreement.shift += seconds
        wrong = await self.rest()
        for _ in range(MOST_ROUNDS):
            # After a kill fewer lines are tried at a time.
            if wrong or not self.remains.rows("SELECT 1 FROM session_members WHERE waiting = 1"):
                break
            wrong = await self.rest()
        return wrong

    # ---- one kill ------------------------------------------------------------------------------------

    async def strike(self, work: Work, instant: Instant) -> Kill:
        """Have the bot killed at an instant of some work, and compare everything; what was wrong is in the record."""
        wrong = list(await self._made_ready(work))
        self.agreement.arm(instant)
        if work == "backing up":
            self.talk()
            hit = await self._back_up() != 0
        else:
            await self._do(work)
            trouble = await self.rest()
            hit = trouble == ["it ended"]
            wrong += [] if hit else trouble
        self.agreement.arm(None)
        self.bot.kill()
        await self.bot.ending
        if instant.gently and hit:
            wrong += self._stopped(work)
        wrong += [f"it ended by itself: {self.bot.codes}"] * bool(self.bot.codes)
        wrong += self.remains.acknowledged(self.telegram.updates.waiting, self._messages)
        if work in ("forgetting", "erasing", "rewriting"):
            wrong += self._marked_too_early()
        for statement in self.said:
            statement.older = frozenset()
        await self.bot.start()
        wrong += [*await self.rest(), *await self.pass_(IDLE), *await self._settled(work)]
        kill = Kill(work, instant, hit, tuple(wrong))
        self.kills.append(kill)
        return kill

    def _stopped(self, work: Work) -> list[str]:
        """What a bot that was asked to stop left undone: nobody waits for an answer that was begun, nothing is held."""
        codes, self.bot.codes = self.bot.codes, []
        wrong = [f"it stopped with {codes}"] * (codes != [0])
        open_ = [file.name for file in self.remains.data.iterdir() if file.name.endswith(("-wal", "-journal", ".new"))]
        wrong += [f"{name} was left open" for name in open_]
        begun = self.remains.of_a_copy("SELECT * FROM waiting WHERE begun = 1")
        wrong += [f"{row} was left half answered" for row in begun]
        leased = self.remains.of_a_copy(LEASED) if work == "distilling" else []
        return wrong + [f"{row} is leased by nobody" for row in leased]

    async def _made_ready(self, work: Work) -> Sequence[str]:
        """Have there be what the work needs."""
        match work:
            case "distilling":
                self.talk()
                return await self.rest()
            case "merging":
                return await self._double()
            case "starting":
                self.bot.kill()
                await self.bot.ending
                self.talk()
            case "forgetting":
                return await self._forget(confirmed=False)
            case "undoing" | "erasing" | "rewriting":
                return await self._forget(confirmed=True)
        return []

    async def _double(self) -> list[str]:
        """Have people say something twice, and the file hold a memory of each time."""
        made = [
            Statement(word(len(self.said) + place), person, person, twice=True)
            for place, person in enumerate(self.dice.sample(PEOPLE, 2))
        ]
        self.said += made
        wrong = []
        for statement in (*made, *made):
            self._send(statement.person, statement.text)
            wrong += await self.rest()
        wrong += await self.pass_(IDLE)
        self.bot.kill()
        await self.bot.ending
        for statement in made:
            await remember_again(self.remains.data, statement)
        await self.bot.start()
        return [*wrong, *await self.rest()]

    async def _forget(self, *, confirmed: bool) -> list[str]:
        if not any(self._is_known(statement) for statement in self.said):
            self.talk()
            return [*await self.rest(), *await self.pass_(IDLE), *await self._forget(confirmed=confirmed)]
        chosen = self.dice.choice(list(filter(self._is_known, self.said)))
        self._chosen, self._receipts = chosen, self._receipts_of(chosen.person)
        self._carried_out = len(self.remains.rows(CARRIED_OUT))
        self.command(chosen.person, f"/forget {chosen.word}")
        wrong = await self.rest()
        if confirmed:
            self.command(chosen.person, "/forget yes")
            wrong += await self.rest()
            self._mark(chosen, "hidden")
        return wrong

    def _receipts_of(self, person: int) -> int:
        return sum(text.startswith(RECEIPT) for text in self.telegram.chat(person).texts)

    def _marked_too_early(self) -> list[str]:
        """What bears the mark of an erasure that is done, and stands in a file; nothing must, at any instant."""
        if len(self.remains.of_a_copy(CARRIED_OUT)) <= self._carried_out:
            return []
        chosen = self._chosen
        files = self.remains.holding(chosen.word, but=frozenset(self.remains.backups()))
        return [f"{chosen.word} is marked as erased and stands in {files}"] * bool(files)

    async def _back_up(self) -> int:
        """Make a backup in a process of its own; returns its exit code, -9 when it was killed."""
        if self._helper is None:
            self._helper = Nursery("tests.crash.victim")
        order = {"folder": str(self.folder), "surroundings": self._surroundings, "phase": int(Phase.BACKING_UP)}
        copying = Process(self._helper, order | {"words": ["backup", "--to", "copies", "--keep", "3"]})
        await copying.start()
        await copying.ending
        return copying.codes[0] if copying.codes else -9

    async def _copied(self) -> list[str]:
        """Make a backup that nobody kills; all that are there are whole then, and nothing else is there."""
        code = await self._back_up()
        if code == 1:  # One of this very second was finished before the kill, and is not written over.
            await asyncio.sleep(1)
            code = await self._back_up()
        wrong = [f"a backup ended with {code}"] * (code != 0)
        return wrong + judge_copies(self.remains, self.said)

    def _is_known(self, statement: Statement) -> bool:
        """Whether somebody may forget it in their private chat; every session so far is over."""
        return statement.state == "kept" and statement.chat == statement.person and not statement.rule

    def _mark(self, statement: Statement, state: str) -> None:
        statement.state = state
        if state == "erased":
            statement.older = frozenset(self.remains.backups())
        self._forgetful.add(statement.person)
        (self.model.gone.discard if state == "kept" else self.model.gone.add)(statement.word)

    async def _do(self, work: Work) -> None:
        """Begin what the bot is to be killed at."""
        match work:
            case "replying":
                self.talk()
            case "starting":
                await self.bot.start()
            case "distilling":
                self.agreement.shift += IDLE
            case "merging":
                self.agreement.shift += DAY
            case "forgetting":
                self.command(self._chosen.person, "/forget yes")
            case "undoing":
                self.model.gone.discard(self._chosen.word)
                self.command(self._chosen.person, "/undo")
            case "erasing" | "rewriting":
                self.agreement.shift += UNTIL_ERASED

    async def _settled(self, work: Work) -> list[str]:
        """Bring what was expected up to date, the bot being at rest after an hour, and compare."""
        wrong: list[str] = []
        match work:
            case "merging":
                wrong += await self.pass_(DAY)
                for statement in self.said:
                    statement.merged = statement.twice
            case "forgetting" | "erasing" | "rewriting":
                self._mark(self._chosen, "erased")
                if self._receipts_of(self._chosen.person) <= self._receipts:
                    wrong.append(f"{self._chosen.person} was never told that {self._chosen.word} is erased")
            case "undoing":
                self._mark(self._chosen, "kept")
            case "backing up":
                wrong += await self._copied()
        now = stamp(datetime.now(UTC) + timedelta(seconds=self.agreement.shift))
        wrong += judge(self.remains, self.said, now=now, over=True, forgetful=self._forgetful)
        wrong += self.model.wrong
        self.model.wrong.clear()
        return wrong

    def _works(self, count: int) -> Iterator[Work]:
        for done in range(0, count, len(WORKS)):
            yield from self.dice.sample(WORKS, min(len(WORKS), count - done))

    async def play(self, count: int, *, gently: float = 0.0) -> list[Kill]:
        """Kill so many times; a share of them ``gently``, as an operator stops it."""
        async with self.begun():
            self.talk()
            await self.rest()
            for work in self._works(count):
                instant = instants(work, self.dice)
                if work != "backing up" and self.dice.random() < gently:
                    instant = replace(instant, gently=True)
                kill = await self.strike(work, instant)
                if kill.wrong:
                    break  # What comes after is not to be judged.
        if self.bot.codes != [0]:
            last = self.kills[-1]
            self.kills[-1] = Kill(last.work, last.instant, last.hit, (*last.wrong, f"stopped with {self.bot.codes}"))
        return self.kills


async def remember_again(data: Path, statement: Statement) -> None:
    """Write a second memory of something into the file, from the second time that it was said."""
    db = await Database.open(data / DATABASE_NAME)
    try:
        accounts = Accounts(db)
        owner = await accounts.find("telegram", str(statement.person))
        assert owner is not None
        said = [line for line in await Journal(db, accounts).said(owner) if line.text == statement.text]
        facts = Facts(db, accounts)
        (known,) = [fact for fact in await facts.history(owner) if statement.word in fact.text]
        cited = (Citation(said[-1].id, SAYINGS[0].format(statement.word), said[-1].at),)
        again = Candidate("fact", cited, "en", text=known.text, expires_at=known.provenance.expires_at)
        async with db.transaction():
            await facts.add(owner, again, audience=known.provenance.audience, now=said[-1].at)
    finally:
        await db.close()
