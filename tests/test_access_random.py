"""Random people at the door, let in, put out, refused, left waiting in any order: nothing of a stranger stays."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from bot.message import ChatRef, Edited, Incoming
from config.settings import AccessSettings
from memory.access import LASTS, REFUSED_FOR
from tests.conftest import Clock
from tests.seeds import SEED
from tests.servers.openai_server import OpenAIServer
from tests.talk import Screen, Talk, talking
from tests.test_access import code_in

ADMIN = "1"
PEOPLE = ("2", "3", "4")
GROUPS = ("-7", "-8")
PLATFORM = "telegram"
STEPS = 150


@dataclass
class Model:
    """Who is in, as it ought to be. ``codes``: what somebody was shown, until when; ``quiet``: until when in vain."""

    people: set[str] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    codes: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    quiet: dict[str, datetime] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)

    def permits(self, user: str, group: str | None) -> bool:
        return user == ADMIN or user in self.people or group in self.groups


class World:
    """A bot, the model beside it, and what people do."""

    def __init__(self, talk: Talk, server: OpenAIServer, random: Random) -> None:
        self.talk, self.server, self.random = talk, server, random
        self.model = Model()
        self.words = 0
        self.refused: list[str] = []
        self.kept: list[str] = []

    def fresh(self) -> str:
        """A word that was never said before."""
        self.words += 1
        return f"quince{self.words:04}x"

    async def write(self) -> None:
        """Somebody says, edits, presses or commands something, in private or in a group."""
        user = self.random.choice(PEOPLE)
        group = self.random.choice((None, None, *GROUPS))
        chat = f"dm:{user}" if group is None else f"group:{group}"
        word, asked, now = self.fresh(), len(self.server.chats), self.talk.clock()
        text = self.random.choice(("I like {}", "/remember I like {}", "{}", "/retry {}", "/approve {}")).format(word)
        permitted = self.model.permits(user, group)
        if self.random.random() < 0.15:  # an edit, which never runs a command
            text = f"I like {word}"
            said = Incoming(ChatRef(PLATFORM, chat, private=group is None), user, "n", f"e{word}", text, now)
            screen = Screen()
            await self.talk.app.conversation.submit(Edited(said, now), screen)
            await screen.finished.wait()
            told = "\n".join(reply.text for reply in screen.replies)
        else:
            told = await self.talk.say(text, user=user, chat=chat)
        if permitted:
            self.model.known.add(user)
            if not text.startswith("/") and "pass this code" not in told:
                self.kept.append(word)
            return
        assert len(self.server.chats) == asked
        self.refused.append(word)
        now = self.talk.clock()
        waits = self.model.quiet.get(user, now) > now
        assert bool(told) == (group is None and not waits), (user, group, told)
        if told:
            self.model.codes[user] = (code_in(told), now + LASTS)
            self.model.quiet[user] = now + LASTS
            assert ("stays yours" in told) == (user in self.model.known)

    async def rule(self) -> None:
        """An admin approves or refuses a code, an old one, too; or lets in and puts out by number."""
        user, now = self.random.choice(PEOPLE), self.talk.clock() + timedelta(minutes=1)
        way = self.random.choice(("approve", "approve", "deny", "put out", "by number", "from the terminal"))
        code, until = self.model.codes.get(user, ("AAAA-AAAA", now))
        works = until > now
        if way in ("approve", "deny"):
            told = await self.talk.say(f"/{way} {code}", user=ADMIN)
            if "Too many" in told:
                return
            assert ("no code that works" in told) != works, (way, told)
            if works:
                del self.model.codes[user]
                self.model.quiet[user] = now + REFUSED_FOR
            if works and way == "approve":
                self._let_in(user)
        elif way == "by number":
            await self.talk.say(f"/approve {PLATFORM}:{user}", user=ADMIN)
            self._let_in(user, asked=self.model.quiet.get(user, now) > now)
        else:
            was_in = user in self.model.people
            if way == "put out":
                await self.talk.say(f"/deny {PLATFORM}:{user}", user=ADMIN)
            else:
                await self.talk.app.memory.access.remove(f"{PLATFORM}:{user}")
            self.model.people.discard(user)
            if was_in:
                self.model.codes.pop(user, None)
                self.model.quiet.pop(user, None)

    def _let_in(self, user: str, *, asked: bool = True) -> None:
        self.model.people.add(user)
        if asked:
            self.model.known.add(user)
            self.model.codes.pop(user, None)
            self.model.quiet.pop(user, None)

    async def open_a_group(self) -> None:
        """An admin has everybody in a group let in, or no more."""
        group = self.random.choice(GROUPS)
        if self.random.random() < 0.5:
            await self.talk.say("/approve", user=ADMIN, chat=f"group:{group}")
            self.model.groups.add(group)
        else:
            await self.talk.say("/deny", user=ADMIN, chat=f"group:{group}")
            self.model.groups.discard(group)

    async def wait(self) -> None:
        """Time passes, now and then more than a code lasts; housekeeping goes on."""
        self.talk.clock.advance(hours=self.random.choice((1, 5, 25, 24 * 31)))
        await self.talk.app.tick()

    def look(self) -> None:
        """Nothing that was refused is anywhere; whoever was never let in has no line and no account."""
        stored = self.talk.everything_stored()
        asked = "\n".join(request.prompt for request in self.server.chats)
        assert [word for word in self.refused if word in stored or word in asked] == []
        accounts = {user for (user,) in self.talk.rows("SELECT user_id FROM accounts")}
        assert accounts - {ADMIN} <= self.model.known


@pytest.mark.parametrize("seed", [1, 2, SEED])
async def test_nobody_who_is_not_let_in_is_ever_written_down_or_shown_to_a_model(
    data_dir: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("tests.talk.PLATFORM", PLATFORM)
    random = Random(seed)
    access = AccessSettings(admins=(f"{PLATFORM}:{ADMIN}",))
    async with OpenAIServer() as server, talking(data_dir, clock, server, access=access) as talk:
        server.on(reply="I see.")
        world = World(talk, server, random)
        for step in range(STEPS):
            deeds = (world.write, world.write, world.write, world.rule, world.open_a_group, world.wait)
            await random.choice(deeds)()
            if step % 10 == 0:
                world.look()
        world.look()
        assert len(world.refused) > STEPS // 10
        assert len(world.kept) > STEPS // 20
