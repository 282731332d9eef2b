"""The composition: platforms side by side, receipts delivered once, a stop that ends cleanly."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr

from bot import adapters, app
from bot.app import chat_model, run
from bot.message import (
    Adapter,
    AdapterError,
    ChatRef,
    CommandSpec,
    DeliveryError,
    Incoming,
    Reply,
    Seen,
    Sink,
    Submit,
)
from config.settings import Settings, SettingsError
from memory import DATABASE_NAME, engine
from tests.conftest import Clock
from tests.servers.telegram_server import TelegramServer
from tests.talk import EVERYBODY, NO_EMBEDDER, PLATFORM, Screen, Talk, talking

ROOT = Path(__file__).parent.parent


class Platform:
    """An adapter whose runs go as told: an exception is raised, None serves until cancelled.

    The first notices meet ``refusals``, one each.
    """

    def __init__(self, name: str, *runs: Exception | None, refusals: Sequence[Exception] = ()) -> None:
        self.name = name
        self.runs = list(runs)
        self.refusals = list(refusals)
        self.begun = asyncio.Event()
        self.cancelled = False
        self.notices: list[tuple[str, str]] = []
        self.submit: Submit | None = None
        self.repeats_for = timedelta(0)
        self.taken_up: dict[str, tuple[Screen, tuple[str, ...], bool]] = {}

    async def run(self, submit: Submit, commands: tuple[CommandSpec, ...], seen: Seen) -> None:
        assert commands
        await seen()
        self.submit = submit
        outcome = self.runs.pop(0)
        if outcome is not None:
            raise outcome
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise

    def sink(self, incoming: Incoming, *, shown: tuple[str, ...] = (), begun: bool = False) -> Sink:
        screen = Screen()
        self.taken_up[incoming.message_id] = (screen, shown, begun)
        return screen

    async def notify(self, chat: ChatRef, reply: Reply) -> None:
        if self.refusals:
            raise self.refusals.pop(0)
        self.notices.append((chat.key, reply.text))


def settings(data_dir: Path, **more: object) -> Settings:
    """Settings without model and embedder."""
    return Settings(data_dir=data_dir, zone="UTC", embedder=NO_EMBEDDER, access=EVERYBODY, **more)  # type: ignore[arg-type]


async def test_running_without_a_token_names_the_two_and_the_way(data_dir: Path) -> None:
    with pytest.raises(AdapterError, match=r"init.*TELEGRAM_BOT_TOKEN and DISCORD_BOT_TOKEN"):
        await run(settings(data_dir))
    assert not (data_dir / DATABASE_NAME).exists()


def test_a_model_without_a_name_is_refused_with_the_fix(data_dir: Path) -> None:
    with pytest.raises(SettingsError, match="OPENAI_MODEL is missing"):
        chat_model(settings(data_dir, openai_base_url="http://127.0.0.1:9/v1"))
    with pytest.raises(SettingsError, match="OPENAI_BASE_URL"):
        chat_model(settings(data_dir, openai_base_url="http://127.0.0.1:9/v1?x=1", openai_model="m"))
    assert chat_model(settings(data_dir)) is None


async def test_a_key_alone_means_openai_itself(data_dir: Path) -> None:
    model = chat_model(settings(data_dir, openai_api_key=SecretStr("sk-x"), openai_model="gpt-4o"))
    assert model is not None
    assert model.base_url == "https://api.openai.com/v1"
    await model.aclose()


async def stopped(data_dir: Path, monkeypatch: pytest.MonkeyPatch, chosen: list[Adapter], when: asyncio.Event) -> int:
    """Run these platforms and send SIGTERM to ourselves when ``when`` is set; returns the exit code."""
    monkeypatch.setattr(adapters, "configured", lambda *_: chosen)
    monkeypatch.setattr(app, "RESTART_SECONDS", (0.0,))
    running = asyncio.create_task(run(settings(data_dir)))
    async with asyncio.timeout(20):
        waiting = asyncio.create_task(when.wait())
        await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            os.kill(os.getpid(), signal.SIGTERM)
        waiting.cancel()
        return await running


async def test_a_platform_that_breaks_down_is_started_again_and_the_other_goes_on(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shaky = Platform("shaky", RuntimeError("boom"), RuntimeError("boom again"), None)
    steady = Platform("steady", None)
    assert await stopped(data_dir, monkeypatch, [shaky, steady], shaky.begun) == 0
    assert shaky.runs == []
    assert (shaky.cancelled, steady.cancelled) == (True, True)
    assert caplog.text.count("shaky broke down") == 2


async def test_a_platform_set_up_wrong_is_given_up_and_the_other_goes_on(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wrong, steady = Platform("wrong", AdapterError("the token is refused: ask again")), Platform("steady", None)
    assert await stopped(data_dir, monkeypatch, [wrong, steady], steady.begun) == 0
    assert "wrong is given up: the token is refused" in caplog.text


async def test_when_every_platform_is_given_up_the_program_ends_with_an_error(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = [Platform(name, AdapterError("no")) for name in ("one", "two")]
    assert await stopped(data_dir, monkeypatch, [*wrong], asyncio.Event()) == 1


async def test_a_message_of_a_platform_is_answered_before_the_stop_ends(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    platform, asked, screen = Platform(PLATFORM, None), asyncio.Event(), Screen()

    async def ask() -> None:
        await platform.begun.wait()
        assert platform.submit is not None
        ref = ChatRef(PLATFORM, "dm:1001")
        await platform.submit(Incoming(ref, "1001", "Kim", "1", "I live in Oslo", clock()), screen)
        asked.set()

    asking = asyncio.create_task(ask())
    assert await stopped(data_dir, monkeypatch, [platform], asked) == 0
    await asking
    assert screen.replies[0].text.startswith("Noted: I live in Oslo.")


async def owing(talk: Talk, user: str = "1001") -> None:
    """Forget something and let the time for undo pass; the receipt is then owed."""
    for words in ("I live in Oslo", "/forget Oslo", "/forget yes"):
        await talk.say(words, user=user)
    talk.clock.advance(minutes=10)


async def test_a_receipt_is_delivered_once(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        talk.app.adapters[PLATFORM] = platform = Platform(PLATFORM)
        await owing(talk)
        for _ in range(3):
            await talk.app.tick()
        ((key, text),) = platform.notices
        assert key == "dm:1001"
        assert text.startswith("Erased for good: 1 memory, 1 of your messages, ")


async def test_a_receipt_of_what_was_forgotten_in_a_group_goes_to_its_owner_alone(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        talk.app.adapters[PLATFORM] = platform = Platform(PLATFORM)
        for words in ("I live in Oslo", "/forget Oslo", "/forget yes"):
            await talk.say(words, chat="group:-5")
        talk.clock.advance(minutes=10)
        await talk.app.tick()
        assert [key for key, _ in platform.notices] == ["dm:1001"]


async def test_a_receipt_its_reader_has_closed_the_door_to_is_given_up(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        talk.app.adapters[PLATFORM] = Platform(PLATFORM, refusals=[DeliveryError("blocked")])
        await owing(talk)
        await talk.app.tick()
        assert await talk.app.memory.notices() == []


async def test_a_receipt_that_is_not_taken_stays_owed(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await owing(talk)
        await talk.app.tick()
        assert len(await talk.app.memory.notices()) == 1
    async with talking(data_dir, clock) as talk:
        refusals = [DeliveryError("away", later=True), RuntimeError("a fault of the platform")]
        talk.app.adapters[PLATFORM] = platform = Platform(PLATFORM, refusals=refusals)
        for _ in range(4):
            await talk.app.tick()
        assert len(platform.notices) == 1
        assert await talk.app.memory.notices() == []


async def test_a_platform_that_breaks_keeps_no_other_receipt_from_its_reader(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await owing(talk)
        await owing(talk, user="1002")
        platform = Platform(PLATFORM, refusals=[RuntimeError("a fault of the platform")])
        talk.app.adapters[PLATFORM] = platform
        await talk.app.tick()
        assert [key for key, _ in platform.notices] == ["dm:1002"]
        await talk.app.tick()
        assert [key for key, _ in platform.notices] == ["dm:1002", "dm:1001"]


async def test_a_receipt_that_may_have_arrived_is_not_sent_again(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await owing(talk)
        unknown = DeliveryError("no answer in time", unknown=True)
        talk.app.adapters[PLATFORM] = platform = Platform(PLATFORM, refusals=[unknown])
        for _ in range(2):
            await talk.app.tick()
        assert (platform.refusals, platform.notices) == ([], [])
        assert await talk.app.memory.notices() == []


async def test_sigterm_ends_the_process_cleanly(tmp_path: Path) -> None:
    async with TelegramServer() as server:
        (tmp_path / "recollect.toml").write_text(
            f'[embedder]\nkind = "none"\n[access]\nopen = "everybody"\n[telegram]\nbase_url = "{server.base_url}"\n',
            encoding="utf-8",
        )
        surroundings = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
        surroundings |= {"PYTHONPATH": str(ROOT), "TELEGRAM_BOT_TOKEN": server.token}
        process = subprocess.Popen(  # noqa: ASYNC220 - it is waited for in a thread
            [sys.executable, "-m", "bot", "run"],
            cwd=tmp_path,
            env=surroundings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            deadline = time.monotonic() + 30
            while not server.sent("getUpdates"):
                assert time.monotonic() < deadline
                assert process.poll() is None
                await asyncio.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            _, errors = await asyncio.to_thread(process.communicate, timeout=30)
        finally:
            process.kill()
    assert process.returncode == 0
    assert b"Traceback" not in errors
    database = tmp_path / "data" / "recollect.db"
    assert not database.with_name("recollect.db-wal").exists()
    with engine.connect(database) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
