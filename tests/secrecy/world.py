"""People, rooms and what happens between them, through the whole bot over a real file; looked at after each step."""

from __future__ import annotations

import logging
import re
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Literal, cast

from bot.agent import Agent
from bot.llm import LLM
from bot.message import (
    ChatRef,
    Deleted,
    Edited,
    Incoming,
    Left,
    Moved,
    Posted,
    Press,
    Reply,
    Sight,
    Sighted,
    Update,
)
from bot.turn import Apology
from config.settings import AccessSettings, DistilSettings, PrivacySettings, Settings
from memory import DATABASE_NAME, Memory
from memory.model import Account, Chat
from tests.conftest import Clock
from tests.secrecy.model import Buckets, Echo
from tests.secrecy.oracle import WORD, Marker, Oracle, Violation

ACCOUNTS = (("pa", "1001"), ("pa", "1002"), ("pb", "1001"), ("pb", "2002"))
"""Two platforms; the same number on both is not the same person."""
GROUPS = ("group:-1", "group:-2")
TOPIC = "7"
MOVED = "~"
"""Stands in the key of a group before the number of its moves."""
SIGHTS = (
    Sight(everybody=True),
    Sight(everybody=False, by=frozenset({"role:1"})),
    Sight(everybody=True, but=frozenset({"role:2"})),
    Sight(everybody=False, by=frozenset({"role:2"})),
)
SEERS: dict[Sight, set[str]] = dict(zip(SIGHTS, ({"1", "2", "rest"}, {"1"}, {"1", "rest"}, {"2"}), strict=True))
"""Who of a server may see a room, worked out by hand."""
CODE = re.compile(r"/link ([A-Z0-9]{4}-[A-Z0-9]{4})")
SAYINGS = (
    "I like {} tea",
    "My dog is called {}.",
    "I am allergic to {}",
    "I live in {}",
    "Remember that my bicycle stands at {}",
    "My sister works for {} and is content there",
    "On Saturday we went to {} and it rained",
    "我喜欢{}茶",
    "我的猫叫{}",
    "I will meet {} tomorrow at 5 pm",
    "Until Friday I am staying at the {}",
)
LASTS_UNTIL_FRIDAY = "Until Friday"
IS_OF_HEALTH = "I am allergic to"
FRIDAY = 4
QUESTIONS = (
    "What tea do I like?",
    "What is my dog called?",
    "What am I allergic to?",
    "Where do I live?",
    "Where does my bicycle stand?",
    "Who does my sister work for?",
    "What do you know about me?",
    "我喜欢喝什么茶？",
    "Whom am I meeting tomorrow?",
    "Where am I staying?",
)


@dataclass(frozen=True)
class Place:
    """Who speaks where."""

    account: tuple[str, str]
    key: str
    thread: str | None = None

    @property
    def private(self) -> bool:
        return self.key.startswith("dm:")

    @property
    def room(self) -> str:
        """What the room is called for good: under whatever key it goes on, it is the same."""
        return f"{self.account[0]}/{self.key.partition(MOVED)[0]}"

    @property
    def ref(self) -> ChatRef:
        return ChatRef(self.account[0], self.key, private=self.private, thread=self.thread)


class Glass:
    """A sink that keeps what it was sent."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []

    def watch(self, posted: Posted) -> None:
        pass

    async def show(self, text: str) -> None:
        pass

    async def send(self, reply: Reply) -> str | None:
        self.replies.append(reply)
        return None

    async def abandon(self, *, keep: bool) -> bool:
        return True

    async def done(self) -> None:
        pass


class Ears(logging.Handler):
    """Every word of every log line."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []
        self.setFormatter(logging.Formatter())

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@dataclass
class World:
    """One file, its people, and the clock. ``step`` does one random thing and looks at everything."""

    folder: Path
    random: Random
    settings: Settings
    oracle: Oracle
    clock: Clock = field(default_factory=lambda: Clock(datetime(2026, 3, 2, 12, 0, tzinfo=UTC)))
    counts: Counter[str] = field(default_factory=Counter)
    ears: Ears = field(default_factory=Ears)
    place: Place | None = None
    sent: list[Incoming] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    threads: set[tuple[str, str | None]] = field(default_factory=set)
    """(word, thread) of what was said in a group: forgetting a chat is about the topic, not about the group."""
    keys: dict[str, str] = field(default_factory=dict)
    """The present key of each room that has moved."""
    sights: dict[str, Sight] = field(default_factory=dict)
    paused: set[tuple[tuple[str, str], str]] = field(default_factory=set)
    agreed: set[tuple[str, str]] = field(default_factory=set)
    """Accounts that agreed to have what is of their health kept, from then on."""
    _numbers: int = 0

    @classmethod
    async def made(cls, folder: Path, random: Random) -> World:
        """An empty world in a folder."""
        # One session at a time: with two, a request may be on its way while the other is told to forget.
        sensitive: Literal["keep", "ask"] = random.choice(("keep", "ask"))
        settings = Settings(
            data_dir=folder,
            zone="UTC",
            distil=DistilSettings(at_once=1),
            access=AccessSettings(open="everybody"),
            privacy=PrivacySettings(sensitive=sensitive),
        )
        world = cls(folder, random, settings, Oracle(random))
        logging.getLogger().addHandler(world.ears)
        world.echo = Echo(random, world.shown, world.meanwhile)
        await world.open()
        return world

    echo: Echo = field(init=False)
    memory: Memory = field(init=False)
    agent: Agent = field(init=False)

    async def open(self) -> None:
        """Start the program over the file."""
        self.memory = await Memory.open(
            self.folder / DATABASE_NAME,
            self.settings,
            clock=self.clock,
            count=len,
            embedder=Buckets(self.shown),
            completer=self.echo,
        )
        model = cast("LLM", self.echo)
        self.agent = Agent(self.memory, self.settings, clock=self.clock, count=len, model=model, zone="UTC")

    async def close(self) -> None:
        """Stop it."""
        await self.memory.close()
        logging.getLogger().removeHandler(self.ears)

    # ---- what is looked at ---------------------------------------------------------------------------

    def shown(self, kind: str, text: str) -> None:
        """A request on its way. What is wrong with it is told after the step: a job would only log it."""
        try:
            self._judge(kind, text)
        except Violation as violation:
            self.violations.append(violation)

    def _judge(self, kind: str, text: str) -> None:
        """Nothing forgotten, and for a reply nothing the room may not hold."""
        self.counts[f"request: {kind}"] += 1
        self.oracle.forgotten([text], states=("gone", "hidden", "withdrawn"), what=f"a request ({kind})")
        if kind == "chat":
            place = self.place
            assert place is not None
            self.oracle.check(
                text, account=place.account, room=place.room, private=place.private, what="a request for a reply"
            )
        if kind == "housekeeping":
            if fleeting := [marker for marker in self.oracle.found(text) if marker.fleeting]:
                raise Violation(f"what is off the record is distilled: {fleeting}\n{text}")
            self._one_room(text)

    def _one_room(self, text: str) -> None:
        """A session is one person's, in one room: all that is shown with it must be fit for both."""
        if "New:" not in text and "新的：" not in text:
            return  # two memories of one person side by side; there is no room in it
        # Only the person's own lines tell where they were said: an answer in private may speak of a group.
        lines = text.rsplit("New:", 1)[-1].rsplit("新的：", 1)[-1].splitlines()
        new = self.oracle.found("\n".join(line for line in lines if line.startswith("[")))
        if not new:
            return
        first = new[0]
        # What somebody said there before they left is distilled for them all the same.
        mine = {m.word for m in self.oracle.found(text) if (m.account, m.room) == (first.account, first.room)}
        if first.room != first.said_in:
            # The room was opened since: what is made of it is for private chats, and read with what is known there.
            mine |= {m.word for m in self.oracle.found(text) if m.room == first.room}
        rest = WORD.sub(lambda found: "" if found[0].capitalize() in mine else found[0], text)
        self.oracle.check(
            rest,
            account=first.account,
            room=first.room,
            private=first.private or first.room != first.said_in,
            what="a request to distil",
        )

    def look(self) -> None:
        """After each step: no wrong request, no words in the log."""
        if self.violations:
            raise self.violations[0]
        for line in self.ears.lines:
            if found := self.oracle.found(line):
                raise Violation(f"the log holds words: {found}\n{line}")
        self.ears.lines.clear()

    def look_at_files(self) -> None:
        """What is gone is in no byte of any file."""
        self.counts["files searched"] += 1
        for path in sorted(self.folder.rglob("*")):
            if path.is_file():
                self.oracle.forgotten([path.read_bytes().decode("latin-1")], what=f"the file {path.name}")

    async def look_into_memory(self) -> None:
        """Everybody's memory holds their own words alone, and nothing that was forgotten."""
        for platform, user in ACCOUNTS:
            owner = await self.memory.known_account(platform, user)
            if owner is None:
                continue
            for entry in await self.memory.history(owner):
                for marker in self.oracle.found(" ".join([entry.text, *(c.quote for c in entry.provenance.citations)])):
                    if marker.account != (platform, user) or marker.state != "live" or marker.fleeting:
                        raise Violation(f"the memory of {platform}/{user} holds {marker}: {entry}")
                    if marker.unasked:
                        raise Violation(f"nobody agreed to have this kept: {marker}: {entry}")

    # ---- what happens --------------------------------------------------------------------------------

    async def step(self) -> None:
        """One thing happens, at random."""
        names = list(self.operations)
        (name,) = self.random.choices(names, [self.operations[name][0] for name in names])
        self.counts[name] += 1
        self.clock.advance(seconds=self.random.choice((5, 40, 300)))
        await self.operations[name][1]()
        self.look()
        if self.random.random() < 0.02:
            await self.look_into_memory()

    @property
    def operations(self) -> dict[str, tuple[float, Callable[[], Awaitable[None]]]]:
        """What can happen, and how often."""
        return {
            "say": (30, self.say),
            "ask": (30, self.ask),
            "forget": (6, self.forget),
            "forget by picks": (2, self.forget_some),
            "forget everything": (0.5, self.forget_everything),
            "forget this chat": (1, self.forget_here),
            "retry": (3, self.retry),
            "link": (1.5, self.link),
            "a wrong code": (0.5, self.link_wrongly),
            "unlink": (1, self.unlink),
            "leave": (1, self.leave),
            "bot removed": (0.3, self.bot_removed),
            "migrate": (0.7, self.migrate),
            "others may see": (1, self.others_see),
            "forget the last": (1, self.forget_last),
            "forget by number": (1.5, self.forget_numbered),
            "remember": (3, self.remember),
            "that is wrong": (1, self.dispute),
            "undo": (3, self.undo),
            "wait": (4, self.wait),
            "housekeeping": (8, self.housekeeping),
            "edit": (2, self.edit),
            "delete": (2, self.delete),
            "again": (3, self.again),
            "list": (5, self.list_known),
            "export": (1, self.export),
            "consent": (2, self.consent),
            "share": (3, self.share),
            "unshare": (2, self.unshare),
            "off the record": (3, self.off_the_record),
            "pause": (1, self.pause),
            "resume": (1, self.resume),
            "why": (3, self.why),
            "new session": (2, self.new_session),
            "restart": (1, self.restart),
        }

    def somewhere(self) -> Place:
        """Somebody in some room."""
        account = self.random.choice(ACCOUNTS)
        where = self.random.random()
        if where < 0.5:
            return Place(account, f"dm:{account[1]}")
        group = self.random.choice(GROUPS)
        return self.placed(account, group, TOPIC if group == GROUPS[0] and where > 0.85 else None)

    def placed(self, account: tuple[str, str], group: str, thread: str | None = None) -> Place:
        """Somebody in a group, under the key it has now."""
        return Place(account, self.keys.get(f"{account[0]}/{group}", group), thread)

    def alone(self) -> Place:
        """Somebody in their private chat."""
        account = self.random.choice(ACCOUNTS)
        return Place(account, f"dm:{account[1]}")

    def incoming(self, place: Place, text: str, **more: Any) -> Incoming:
        """A message at a place."""
        self._numbers += 1
        return Incoming(
            chat=place.ref,
            user_id=place.account[1],
            name=f"Name{place.account[1]}",
            message_id=f"{self._numbers}",
            text=text,
            at=self.clock(),
            **more,
        )

    async def tell(self, place: Place, text: str, **more: Any) -> list[Reply]:
        """Somebody writes; what they and the room are shown is looked at."""
        message = self.incoming(place, text, **more)
        self.sent.append(message)
        self.oracle.left.discard((place.account, place.room))
        return await self.through(place, message)

    async def through(self, place: Place, update: Update) -> list[Reply]:
        """An update goes the way of a message; what it answers is looked at."""
        glass, before, self.place = Glass(), self.place, place
        try:
            heard = await self.agent.hear(update)
            if isinstance(heard, Press):
                await self.agent.press(heard, glass)
            elif heard is not None:
                await self.agent.answer([heard], glass)
        except Apology as apology:
            self.counts[f"apology: {apology.key}"] += 1
        finally:
            self.place = before
        for reply in glass.replies:
            try:
                self.seen(place, reply)
            except Violation as violation:
                self.violations.append(violation)
        return glass.replies

    def seen(self, place: Place, reply: Reply) -> None:
        """A reply as it is shown: one that is private reaches its person alone."""
        private = place.private or reply.private
        files = (file.content.decode() for file in reply.files)
        text = "\n".join([reply.text, *(button.label for button in reply.buttons), *files])
        self.oracle.check(text, account=place.account, room=place.room, private=private, what="a reply")
        if private and len(self.oracle.person(place.account)) > 1:
            # What a linked account was told stays in its talk when the link is taken back.
            self.oracle.told |= {(place.account, marker.word) for marker in self.oracle.found(text)}
        if not private:
            self.oracle.told |= {(place.account, marker.word) for marker in self.oracle.found(text)}
            self.oracle.spoken |= {(place.room, marker.word) for marker in self.oracle.found(text)}

    async def press(self, place: Place, button: str) -> list[Reply]:
        """Somebody presses a button."""
        ref = place.ref
        return await self.through(place, Press(ref, place.account[1], f"Name{place.account[1]}", button, self.clock()))

    async def say(self) -> None:
        place = self.somewhere()
        fleeting = (place.account, place.room) in self.paused
        marker = self.oracle.said(place.account, place.room, private=place.private, fleeting=fleeting)
        self.threads.add((marker.word, place.thread))
        await self.tell(place, self.saying(marker))

    def saying(self, marker: Marker) -> str:
        """A sentence about a word; what it says of time and of health is noted with the word."""
        saying = self.random.choice(SAYINGS)
        if saying.startswith(LASTS_UNTIL_FRIDAY):
            midnight = self.clock().replace(hour=0, minute=0, second=0, microsecond=0)
            # Said on a Friday it may mean this one or the next.
            ahead = (FRIDAY - midnight.weekday()) % 7 or 7
            marker.until = midnight + timedelta(days=ahead + 1)
        asks = self.settings.privacy.sensitive == "ask" and marker.account not in self.agreed
        marker.unasked = asks and saying.startswith(IS_OF_HEALTH)
        return saying.format(marker.word)

    async def off_the_record(self) -> None:
        place = self.somewhere()
        marker = self.oracle.said(place.account, place.room, private=place.private, fleeting=True)
        await self.tell(place, "/offrecord " + self.random.choice(SAYINGS).format(marker.word))

    async def pause(self) -> None:
        place = self.somewhere()
        await self.tell(place, "/pause")
        self.paused.add((place.account, place.room))

    async def resume(self) -> None:
        if not self.paused:
            return
        account, room = self.random.choice(sorted(self.paused))
        await self.tell(self.placed(account, room.removeprefix(f"{account[0]}/")), "/resume")
        self.paused.discard((account, room))

    async def share(self) -> None:
        """Somebody opens a memory to every place: what it quotes is open with it."""
        await self._opened("share", everywhere=True)

    async def unshare(self) -> None:
        """Somebody closes one again."""
        await self._opened("unshare", everywhere=False)

    async def _opened(self, way: str, *, everywhere: bool) -> None:
        place = self.alone()
        known = [m for m in self.mine(place.account) if m.everywhere != everywhere]
        if not known:
            return
        marker = self.random.choice(known)
        buttons = [b.id for r in await self.tell(place, f"/{way} {marker.word}") for b in r.buttons]
        if not buttons or not buttons[0].startswith(f"{way}:"):
            return
        if self.random.random() < 0.2:
            await self.press(Place(ACCOUNTS[0], f"dm:{ACCOUNTS[0][1]}"), buttons[0])  # mostly somebody else
            if ACCOUNTS[0] not in self.oracle.person(place.account):
                return
        else:
            await self.press(place, buttons[0])
        marker.everywhere = everywhere

    async def ask(self) -> None:
        await self.tell(self.somewhere(), self.random.choice(QUESTIONS))

    def mine(self, account: tuple[str, str], *, state: str = "live") -> list[Marker]:
        """What an account has said."""
        return [m for m in self.oracle.markers.values() if m.account == account and m.state == state and not m.fleeting]

    def hide(self, marker: Marker) -> None:
        """The person has said yes: it may be seen nowhere."""
        marker.state, marker.since = "hidden", self.clock()

    async def forget(self, place: Place | None = None) -> None:
        """Forget one word everywhere."""
        place = place or self.alone()
        if not (known := self.mine(place.account)):
            return
        marker = self.random.choice(known)
        replies = await self.tell(place, f"/forget {marker.word}")
        buttons = [b.id for reply in replies for b in reply.buttons if b.id.endswith(":all")]
        if not buttons:
            return  # it is in no line and no memory any more
        if self.random.random() < 0.2:
            await self.press(place, buttons[0].replace(":all", ":no"))
            return
        self.hide(marker)
        await self.press(place, buttons[0])

    async def forget_some(self) -> None:
        """Press somebody else's button: nothing happens."""
        place, other = self.alone(), self.alone()
        known = self.mine(place.account)
        if not known or other.account == place.account:
            return
        replies = await self.tell(place, f"/forget {self.random.choice(known).word}")
        for reply in replies:
            for button in reply.buttons:
                await self.press(other, button.id)
        await self.tell(place, "/forget no")

    async def forget_everything(self) -> None:
        """Forget all of an account; the words to be typed are shown."""
        place = self.alone()
        replies = await self.tell(place, "/forget everything")
        typed = [line for reply in replies for line in reply.text.splitlines() if line.startswith("/forget yes")]
        typed += [line for reply in replies for line in reply.text.splitlines() if line.startswith("/forget 是")]
        if not typed:
            return
        for account in self.oracle.person(place.account):
            for marker in self.mine(account):
                self.hide(marker)
        await self.tell(place, typed[0])

    async def forget_here(self) -> None:
        """Forget what was said in one chat, and what was made of it."""
        place = self.somewhere()
        replies = await self.tell(place, "/forget here")
        buttons = [b.id for reply in replies for b in reply.buttons if b.id.endswith(":all")]
        if not buttons:
            return
        for marker in self.mine(place.account):
            if marker.said_in == place.room and (place.private or (marker.word, place.thread) in self.threads):
                self.hide(marker)
        await self.press(place, buttons[0])

    async def retry(self) -> None:
        await self.tell(self.somewhere(), "/retry")

    async def link(self) -> None:
        """Somebody shows a code on one account and types it on another: from now on they are one person."""
        one, other = self.random.sample(ACCOUNTS, 2)
        shown = await self.tell(Place(one, f"dm:{one[1]}"), "/link")
        codes = [code for reply in shown for code in CODE.findall(reply.text)]
        if not codes:
            return
        if self.random.random() < 0.2:
            self.clock.advance(minutes=11)
        joined = self.oracle.person(one) | self.oracle.person(other)
        before = dict(self.oracle.persons)
        self.oracle.persons |= dict.fromkeys(joined, joined)
        await self.tell(Place(other, f"dm:{other[1]}"), f"/link {codes[0]}")
        owner, _ = await self.met(Place(one, f"dm:{one[1]}"))
        accounts = {
            (account.platform, account.user_id) for account in [owner, *await self.memory.linking.linked(owner)]
        }
        if other not in accounts:
            self.oracle.persons = before
            self.counts["no link"] += 1
        elif accounts != joined:
            raise Violation(f"{joined} should be one person, {accounts} are")

    async def link_wrongly(self) -> None:
        """Somebody guesses a code."""
        await self.tell(self.alone(), "/link AAAA-AAAA")

    async def unlink(self) -> None:
        place = self.alone()
        await self.tell(place, "/unlink")
        rest = self.oracle.person(place.account) - {place.account}
        self.oracle.persons |= dict.fromkeys(rest, rest) | {place.account: frozenset({place.account})}

    async def leave(self) -> None:
        """Somebody leaves a group; what they write there later brings them back."""
        place = self.somewhere()
        if not place.private:
            self.oracle.left.add((place.account, place.room))
            await self.through(place, Left(place.ref, place.account[1], self.clock()))

    async def bot_removed(self) -> None:
        """The bot has to leave a group: nobody is with it there until they write again."""
        place = self.somewhere()
        if not place.private:
            self.oracle.left |= {(each, place.room) for each in ACCOUNTS if each[0] == place.account[0]}
            await self.through(place, Left(place.ref, None, self.clock()))

    async def migrate(self) -> None:
        """A group gets another key; at times somebody has written there before that is told."""
        place = self.somewhere()
        if place.private:
            return
        base, _, number = place.key.partition(MOVED)
        new = Place(place.account, f"{base}{MOVED}{int(number or 0) + 1}", place.thread)
        self.keys[place.room] = new.key
        if self.random.random() < 0.4:
            marker = self.oracle.said(new.account, new.room, private=False)
            self.threads.add((marker.word, new.thread))
            await self.tell(new, self.saying(marker))
        told = Moved(ChatRef(place.account[0], place.key, private=False), new.key, self.clock())
        for _ in range(self.random.choice((1, 1, 2))):
            await self.through(place, told)

    async def others_see(self) -> None:
        """Who may see a group changes: what was said before is not for those who come to see it by that."""
        place = self.somewhere()
        if place.private:
            return
        before, now = self.sights.get(place.room), self.random.choice(SIGHTS)
        self.sights[place.room] = now
        if before is not None and SEERS[now] - SEERS[before]:
            self.oracle.opened(place.room)
        if before is not None and SEERS[before] - SEERS[now]:
            self.oracle.left |= {(each, place.room) for each in ACCOUNTS if each[0] == place.account[0]}
        server = ChatRef(place.account[0], "server", private=False)
        await self.through(place, Sighted(server, {place.key: now}, self.clock()))

    async def forget_last(self) -> None:
        """Somebody has what they said last forgotten."""
        place = self.alone()
        await self._obeyed(place, await self.tell(place, "/forget last"))

    async def forget_numbered(self) -> None:
        """Somebody looks at the list and has one of it forgotten by its number."""
        place = self.alone()
        await self.tell(place, "/whatdoyouknow")
        await self._obeyed(place, await self.tell(place, f"/forget {self.random.choice((1, 1, 2, 3))}"))

    async def _obeyed(self, place: Place, offered: list[Reply]) -> None:
        """Say yes to what is offered: the words that are named go."""
        buttons = [b.id for reply in offered for b in reply.buttons if b.id.endswith(":all")]
        if not buttons:
            return
        person = self.oracle.person(place.account)
        named = self.oracle.found("\n".join(reply.text for reply in offered))
        mine = [marker for marker in named if marker.account in person and not marker.fleeting]
        before = await self._remembered(person)
        for marker in mine:
            self.hide(marker)
        await self.press(place, buttons[0])
        left = await self._remembered(person)
        for marker in mine:
            # One memory was picked: another one that was made of the same message keeps its own words.
            if 0 < left[marker.word] < before[marker.word]:
                marker.state = "live"

    async def _remembered(self, person: Iterable[tuple[str, str]]) -> Counter[str]:
        """How many memories of somebody's accounts say each word."""
        owners = [(await self.met(Place(account, f"dm:{account[1]}")))[0] for account in sorted(person)]
        texts = [entry.text for owner in owners for entry in await self.memory.history(owner)]
        return Counter(marker.word for text in texts for marker in self.oracle.found(text))

    async def remember(self) -> None:
        """Somebody asks for something to be kept, which counts in a pause too."""
        place = self.somewhere()
        marker = self.oracle.said(place.account, place.room, private=place.private)
        self.threads.add((marker.word, place.thread))
        await self.tell(place, f"/remember my boat lies at {marker.word}")

    async def dispute(self) -> None:
        """Somebody says that what was used just now is wrong; they are shown what it may be, and nothing goes."""
        await self.tell(self.somewhere(), self.random.choice(("That is wrong.", "这不对")))

    async def undo(self) -> None:
        place = self.alone()
        accounts = sorted(self.oracle.person(place.account))
        hidden = [marker for account in accounts for marker in self.mine(account, state="hidden")]
        before = {m.word for m in hidden}
        if not before:
            return
        for marker in hidden:
            marker.state = "live"  # it may be named by the reply; what stays hidden is set back below
        await self.tell(place, "/undo")
        held: set[str] = set()
        for account in accounts:
            held |= await self.words_held((await self.met(Place(account, f"dm:{account[1]}")))[0])
        for marker in hidden:
            marker.state = "live" if marker.word in held else "hidden"

    async def words_held(self, owner: Account) -> set[str]:
        """The words that memory still holds of an owner and shows to them."""
        entries = await self.memory.history(owner)
        texts = [text for e in entries for text in (e.text, *(c.quote for c in e.provenance.citations))]
        texts += await self.lines_of(owner)
        return {marker.word for text in texts for marker in self.oracle.found(text)}

    async def lines_of(self, owner: Account) -> list[str]:
        """The owner's own visible lines, those that wait for an agreement among them."""
        with closing(sqlite3.connect(self.folder / DATABASE_NAME)) as file:
            rows = file.execute(
                "SELECT text FROM journal WHERE id BETWEEN ? AND ? AND hidden_by IS NULL",
                (owner.first_id, owner.last_id),
            )
            return [text for (text,) in rows]

    async def met(self, place: Place) -> tuple[Account, Chat]:
        owner = await self.memory.account(*place.account, name=f"Name{place.account[1]}", zone="UTC")
        return owner, await self.memory.chat(owner, place.key, private=place.private, thread=place.thread)

    async def wait(self) -> None:
        """Time passes, and every talk is over."""
        self.clock.advance(hours=self.random.choice((1, 5, 30)))
        self.talks_are_over()

    def talks_are_over(self) -> None:
        """What was off the record in them is never to be seen again."""
        for marker in self.oracle.markers.values():
            marker.over = marker.over or marker.fleeting

    async def housekeeping(self) -> None:
        """The jobs run; what was hidden long enough ago is erased, and must be in no file."""
        if self.random.random() < 0.5:
            self.clock.advance(minutes=31)
            self.talks_are_over()
        due = await self.due()
        await self.memory.run_due(now=self.clock())
        if due:
            # The file is rewritten, so that what was taken back on a platform leaves no byte either.
            for marker in [*due, *(m for m in self.oracle.markers.values() if m.state == "withdrawn")]:
                marker.state = "gone"
            self.look_at_files()

    async def due(self) -> list[Marker]:
        """Hidden words whose time for undo is over."""
        since = self.clock() - timedelta(minutes=self.settings.forget.undo_minutes)
        hidden = (m for m in self.oracle.markers.values() if m.state == "hidden")
        return [m for m in hidden if m.since is not None and m.since <= since]

    async def meanwhile(self) -> None:
        """While a session is distilled somebody forgets something, now and then."""
        if self.random.random() < 0.15:
            self.counts["forget while distilling"] += 1
            await self.forget()

    async def edit(self) -> None:
        """Somebody changes what they wrote: the old word was never said."""
        if (found := self._own_message()) is None:
            return
        place, message = found
        old = self.oracle.found(message.text)
        new = self.oracle.said(place.account, place.room, private=place.private)
        new.room = old[0].room  # The line stays where it was said, be that before the room was opened.
        self.threads.add((new.word, place.thread))
        text = self.saying(new)
        changed = Incoming(message.chat, message.user_id, message.name, message.message_id, text, message.at)
        for marker in old:
            marker.state = "withdrawn"
        await self.through(place, Edited(changed, self.clock()))
        self.sent.append(changed)

    async def delete(self) -> None:
        """Somebody takes back what they wrote."""
        if (found := self._own_message()) is None:
            return
        place, message = found
        for marker in self.oracle.found(message.text):
            marker.state = "withdrawn"
        await self.through(place, Deleted(message.chat, (message.message_id,), self.clock()))

    async def again(self) -> None:
        """The platform delivers a message once more."""
        if self.sent:
            message = self.random.choice(self.sent)
            if message.text.startswith("/"):
                return
            place = Place((message.chat.platform, message.user_id), message.chat.key, message.chat.thread)
            await self.through(place, message)

    def _own_message(self) -> tuple[Place, Incoming] | None:
        lately = [m for m in self.sent[-200:] if not m.text.startswith("/") and self.oracle.found(m.text)]
        lately = [m for m in lately if all(marker.state == "live" for marker in self.oracle.found(m.text))]
        if not lately:
            return None
        message = self.random.choice(lately)
        return Place((message.chat.platform, message.user_id), message.chat.key, message.chat.thread), message

    async def list_known(self) -> None:
        """Somebody looks at what is known; what has expired is no part of it, be the job late or not."""
        place = self.somewhere()
        for reply in await self.tell(place, "/whatdoyouknow"):
            for marker in self.oracle.found(reply.text):
                if marker.until is not None and marker.until <= self.clock():
                    raise Violation(f"what ended {marker.until} is shown at {self.clock()}: {marker}\n{reply.text}")

    async def export(self) -> None:
        """Somebody takes along all that is kept of them."""
        await self.tell(self.alone(), "/export")

    async def consent(self) -> None:
        """Somebody says whether what is of their health may be kept: always, what waits now, or not at all."""
        place = self.alone()
        choice = self.random.choice(("yes", "once", "no"))
        if choice == "yes":
            self.agreed.add(place.account)
        elif choice == "no":
            self.agreed.discard(place.account)
        if choice != "no":
            for marker in self.oracle.markers.values():
                if marker.account == place.account:
                    marker.unasked = False
        await self.press(place, f"consent:health:{choice}")

    async def why(self) -> None:
        await self.tell(self.somewhere(), "/why")

    async def new_session(self) -> None:
        await self.tell(self.somewhere(), "/new")

    async def restart(self) -> None:
        """The program stops and starts again."""
        await self.memory.close()
        await self.open()

    async def end(self) -> None:
        """All that was hidden, and all that was off the record, is erased at last and searched for."""
        self.clock.advance(days=2)
        await self.housekeeping()
        for marker in self.oracle.markers.values():
            if marker.fleeting:
                marker.state = "gone"
        await self.look_into_memory()
        self.look_at_files()
