"""Discord in breadth: the adapter's client inside simcord, which plays the platform in process.

What needs a socket (limits, lost answers, sessions, history) is tested against our own server. Here a second,
independent idea of Discord looks at the payloads; its clock and its errors are its own.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from simcord.actors import MemberActor
from simcord.builders import ChannelHandle
from simcord.env import Env

from bot.adapters.discord.client import Client, Work
from bot.delivery import Tempo
from bot.message import Button, ChatRef, CommandSpec, Deleted, Edited, Incoming, Press, Reply, Sighted, Sink, Update
from tests.conftest import Clock

COMMANDS = (
    CommandSpec("forget", {"en": "Forget something", "zh": "忘掉某件事"}),
    CommandSpec("link", {"en": "Link another account", "zh": "关联另一个账号"}, private=True),
)
LONG = "a line of a long answer\n" * 1_000


class Echo:
    """Answers each update at once with what it was."""

    def __init__(self) -> None:
        self.heard: list[Update] = []

    async def submit(self, update: Update, sink: Sink) -> None:
        if not isinstance(update, Sighted):
            self.heard.append(update)
        match update:
            case Incoming(text="long"):
                await sink.send(Reply(LONG))
            case Incoming(text=text):
                await sink.send(Reply(f"heard {text}", buttons=(Button("again", "Again"),)))
            case Press(button_id=button, name=name):
                await sink.send(Reply(f"{button} for {name}"))
            case _:
                pass
        await sink.done()

    async def seen(self) -> Mapping[ChatRef, str]:
        return {}


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def simcord_bot(echo: Echo) -> Client:
    work = Work(echo.submit, COMMANDS, echo.seen)
    return Client(work, proxy=None, tempo=Tempo(), now=Clock(), sees_all=True)


@pytest.fixture
def general(simcord_env: Env) -> ChannelHandle:
    return simcord_env.create_guild().create_text_channel("general")


@pytest.fixture
def mara(simcord_env: Env, general: ChannelHandle) -> MemberActor:
    [guild] = simcord_env._guilds
    return guild.add_member(simcord_env.create_user("mara"))


def me(env: Env) -> str:
    assert env.bot.user is not None
    return env.bot.user.mention


async def test_a_mention_is_answered_in_reply_and_chatter_is_not(
    simcord_env: Env, echo: Echo, general: ChannelHandle, mara: MemberActor
) -> None:
    await mara.send(general, "nice weather")
    asked = await mara.send(general, f"{me(simcord_env)} hello in {general.mention}")

    answer = general.last_message
    assert answer is not None
    assert (answer.content, len(echo.heard)) == ("heard hello in #general", 1)
    assert answer.reference is not None
    assert answer.reference.message_id == asked.id


async def test_a_reply_to_the_bot_needs_no_mention(
    simcord_env: Env, echo: Echo, general: ChannelHandle, mara: MemberActor
) -> None:
    await mara.send(general, f"{me(simcord_env)} hello")
    await mara.send(general, "and more", reply_to=general.last_message)

    said = echo.heard[-1]
    assert isinstance(said, Incoming)
    assert said.reply_to is not None
    assert (said.text, said.reply_to.text) == ("and more", "heard hello")


async def test_edits_and_deletions_are_heard(
    simcord_env: Env, echo: Echo, general: ChannelHandle, mara: MemberActor
) -> None:
    said = await mara.send(general, f"{me(simcord_env)} hello")
    await mara.edit(said, f"{me(simcord_env)} goodbye")
    await mara.delete(said)

    first, edited, deleted = echo.heard
    assert isinstance(edited, Edited)
    assert (edited.message.text, edited.chat) == ("goodbye", first.chat)
    assert isinstance(deleted, Deleted)
    assert (deleted.message_ids, deleted.chat) == ((str(said.id),), first.chat)


async def test_a_file_comes_along_and_forwarded_words_are_somebody_elses(
    simcord_env: Env, echo: Echo, general: ChannelHandle, mara: MemberActor
) -> None:
    note = await mara.send(general, f"{me(simcord_env)} look", attachments=[("list.txt", b"milk")])
    await mara.forward(note, mara.user.dm_channel)

    listed, forwarded = echo.heard
    assert isinstance(listed, Incoming)
    assert isinstance(forwarded, Incoming)
    assert [(media.name, await media.read(10)) for media in listed.media] == [("list.txt", b"milk")]
    assert forwarded.chat == ChatRef("discord", f"dm:{mara.id}")
    assert (forwarded.forward_from, [media.name for media in forwarded.media]) == ("?", ["list.txt"])


async def test_a_slash_command_is_answered_to_its_user_alone(general: ChannelHandle, mara: MemberActor) -> None:
    answer = await mara.slash(general, "forget", text="my phone")

    assert answer.response is not None
    assert answer.response.content == "heard /forget my phone"
    assert answer.ephemeral
    assert mara.available_commands(general) == ("forget",)
    assert set(mara.user.available_commands()) == {"forget", "link"}


async def test_a_button_answers_whoever_pressed_it(
    simcord_env: Env, echo: Echo, general: ChannelHandle, mara: MemberActor
) -> None:
    await mara.send(general, f"{me(simcord_env)} hello")
    assert general.last_message is not None
    pressed = await mara.click(general.last_message, label="Again")

    assert isinstance(echo.heard[-1], Press)
    assert [message.content for message in pressed.followups] == ["again for mara"]
    assert pressed.followups[0].ephemeral


async def test_a_very_long_answer_carries_its_file(mara: MemberActor) -> None:
    await mara.send_dm("long")

    last = mara.user.dm_channel.last_message
    assert last is not None
    assert [file.filename for file in last.attachments] == ["answer.txt"]
    assert await last.attachments[0].read() == LONG.encode()
