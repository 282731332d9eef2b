"""No request that is made for a group holds a private word: every one that reaches the endpoint is walked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import pytest

from bot.message import ChatRef, Left, Moved, Update
from config.settings import EmbedderSettings, RecallSettings, RerankSettings
from tests.conftest import Clock
from tests.servers.openai_server import OpenAIServer
from tests.talk import PLATFORM, Screen, Talk, talking

GROUP, NEW, OTHER, THREAD = "group:-500", "group:-100500", "group:-600", "guild:9/7"
WORD = re.compile(r"secret\d+")


class Told:
    """Gives out words and knows where each may be read."""

    def __init__(self) -> None:
        self.allowed: dict[str, set[str]] = {}

    def word(self, *places: str) -> str:
        """A word of its own, which may be read in these places and in private."""
        made = f"secret{1000 + len(self.allowed)}"
        self.allowed[made] = set(places)
        return made

    def astray(self, text: str, place: str) -> set[str]:
        """The words in a text that may not be read in a place."""
        return {word for word in WORD.findall(text) if place not in self.allowed[word]}


async def hand_in(talk: Talk, update: Update) -> None:
    await talk.app.conversation.submit(update, Screen())
    await talk.app.conversation.idle()


def distilled(word: str) -> str:
    """An answer of the model that keeps the first message as a fact, once more in other words."""
    cites = [{"message": 1, "quote": f"the plan is called {word}"}]
    item = {"kind": "fact", "subject": "self", "text": f"The plan is called {word}", "cites": cites, "confidence": 0.9}
    return json.dumps({"items": [item]})


@pytest.fixture
async def server() -> Any:
    async with OpenAIServer() as made:
        made.on(reply='{"items": []}')
        made.embed_with(bucketed)
        # Refused, not failing: an endpoint that fails is soon left alone, and every request is to be seen.
        made.fault(match="/rerank", status=400, body={}, times=10_000)
        yield made


def bucketed(text: str) -> list[float]:
    """A vector by the words of a text: texts that share words are near."""
    vector = [1.0] + [0.0] * 63
    for word in re.findall(r"\w+", text.casefold()):
        vector[crc32(word.encode()) % 63 + 1] += 1.0
    return vector


def walked(server: OpenAIServer, since: int) -> list[str]:
    """All that was sent from a moment on: for answers, distillation, doubts, other wordings, vectors, orders."""
    return [json.dumps(request.body, ensure_ascii=False) for request in server.requests[since:]]


SETTINGS: dict[str, Any] = {
    "embedder": EmbedderSettings(kind="endpoint"),
    "openai_embedding_model": "vectors",
    "recall": RecallSettings(rewrite=True),
    "rerank": RerankSettings(model="order"),
}


@pytest.mark.parametrize("seed", range(3))
async def test_no_request_for_a_group_holds_what_may_not_be_read_there(
    data_dir: Path, clock: Clock, server: OpenAIServer, seed: int
) -> None:
    chance, told = Random(seed), Told()
    async with talking(data_dir, clock, server, **SETTINGS) as talk:
        private = [told.word() for _ in range(6)]
        for word in private:
            await talk.say(f"Remember that my {chance.choice(('boat', 'plan', 'cat'))} is called {word}")
        await talk.say(f"I live in Berlin and my plan is called {told.word()}")
        elsewhere = [told.word(place) for place in (OTHER, THREAD)]
        for word, place in zip(elsewhere, (OTHER, THREAD), strict=True):
            await talk.say(f"Remember that the plan is called {word}", chat=place)
        here = told.word(GROUP, NEW)
        await talk.say(f"Remember that the boat is called {here}", chat=GROUP, thread="11")
        guest = told.word(GROUP, NEW)
        await talk.say(f"the cat of mine is called {guest}", user="1002", chat=GROUP)
        shared = private.pop()
        # What is over is distilled and embedded, so that from here on every request is one for the group.
        await talk.app.memory.run_due(now=clock.advance(minutes=45))
        owner = await talk.owner()
        for entry in await talk.known():
            if shared in entry.text:
                await talk.app.memory.sharing.share(owner, entry.id, now=clock())
                told.allowed[shared] = {GROUP, NEW, OTHER, THREAD}
        await talk.app.memory.run_due(now=clock.advance(minutes=1))
        began, place = len(server.requests), GROUP
        for step in range(10):
            thread = chance.choice((None, "11", "12")) if place == GROUP else None
            asked = chance.choice(
                (
                    "What is my boat called?",
                    "and what about it?",
                    "What is my plan called?",
                    "我的猫叫什么名字？",
                    "/whatdoyouknow",
                    "/why",
                    f"the plan is called {told.word(GROUP, NEW)}",
                )
            )
            await talk.say(asked, chat=place, thread=thread, user=chance.choice(("1001", "1002")))
            if step == 5:
                await hand_in(talk, Moved(ChatRef(PLATFORM, GROUP, private=False), NEW, clock()))
                place = NEW
        await talk.say("What is my boat called?", chat=place)
        await talk.say("and what was it?", chat=place)
        # The session of the group ends: it is distilled, and its doubts are settled.
        server.on("the plan is called", reply=distilled("secret1000"))
        await talk.app.memory.run_due(now=clock.advance(minutes=45))
        sent = walked(server, began)
        paths = {request.path for request in server.requests[began:]}
        assert {path.rpartition("/")[2] for path in paths} == {"completions", "embeddings", "rerank"}
        for kind in ("You are Recollect", "You read what a person wrote", "their own notes are searched"):
            assert any(kind in text for text in sent), kind
        assert [told.astray(text, GROUP) for text in sent if told.astray(text, GROUP)] == []
        assert not any("Berlin" in text for text in sent)
        assert any(shared in text for text in sent), "what is shared does come"


async def test_what_was_shared_is_in_no_request_for_a_group_once_it_is_not(
    data_dir: Path, clock: Clock, server: OpenAIServer
) -> None:
    async with talking(data_dir, clock, server) as talk:
        await talk.say("Remember that my boat is called secret1000")
        owner, (entry,) = await talk.owner(), await talk.known()
        for change, expected in ((talk.app.memory.sharing.share, True), (talk.app.memory.sharing.unshare, False)):
            await change(owner, entry.id, now=clock())
            await talk.say("/new", chat=GROUP)
            await talk.say("What is my boat called?", chat=GROUP)
            assert ("secret1000" in server.chats[-1].prompt) == expected


async def test_of_who_left_nothing_is_in_a_request_for_the_others(
    data_dir: Path, clock: Clock, server: OpenAIServer
) -> None:
    async with talking(data_dir, clock, server) as talk:
        await talk.say("my boat is called secret1000", chat=GROUP)
        await talk.say("and mine is called Osprey", user="1002", chat=GROUP)
        assert "secret1000" in server.chats[-1].prompt
        await hand_in(talk, Left(ChatRef(PLATFORM, GROUP, private=False), "1001", clock.advance(seconds=5)))
        await talk.say("What are our boats called?", user="1002", chat=GROUP)
        assert "secret1000" not in server.chats[-1].prompt
        assert "Osprey" in server.chats[-1].prompt
        await talk.say("What is my boat called?")
        assert "secret1000" in server.chats[-1].prompt
