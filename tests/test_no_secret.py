"""One secret in every setting that takes one, everything that can happen with them, and a search through all that
is left: logs, files, traces, exports, errors, what commands print and what people see.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from unittest.mock import patch
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

from bot import logs
from bot.check import examine
from bot.cli import cli
from bot.message import AdapterError
from bot.platforms import whose
from config.settings import AccessSettings, Credentials, Settings, SettingsError, load
from memory import DATABASE_NAME, Memory
from tests.conftest import Clock
from tests.servers.discord_server import DiscordServer
from tests.servers.telegram_server import TelegramServer
from tests.stages.stage import MARA, Hours
from tests.stages.world import STAGES, Model, World, world_on
from tests.talk import EVERYBODY
from tests.telegram_world import Time
from tests.test_contract_adapters import approved, code_in

PLANTED = {
    "telegram_bot_token": "987654321:CANARYtelegramCANARYtokenCANARY0123",
    "telegram_webhook_secret": "CANARY-webhook-secret_0123",
    "discord_bot_token": "CANARYdiscordMTIz.CANARYx.CANARYtoken-0123",
    "openai_api_key": "sk-CANARY-openai-key-0123456789",
    "recollect_key": "ca" * 31 + "0a",
    "recollect_new_key": "ca" * 31 + "0b",
}
PASSWORDS = {"telegram": "CANARYproxy/te@le", "discord": "CANARYproxy:di%s", "endpoint": "CANARYbase?url"}
"""Of the addresses that may hold one, with signs that are written otherwise in an address."""


def forms() -> set[str]:
    """Every secret in every form it may be met in."""
    found = set(PLANTED.values())
    for password in PASSWORDS.values():
        found |= {password, quote(password, safe=""), b64encode(f"user:{password}".encode()).decode()}
    return found | {json.dumps(secret)[1:-1] for secret in found}


def leaks(where: str, text: str | bytes) -> list[str]:
    """The secrets found in something, by the place they were found in."""
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    return [f"{where}: {form}" for form in forms() if form.encode() in data or form.encode("utf-16-le") in data]


def planted(data_dir: Path, base_url: str, *, proxies: bool) -> Settings:
    """Settings with a secret everywhere; at the ``proxies`` nobody listens."""
    address = "http://user:{}@127.0.0.1:9"
    proxied = {
        name: {"proxy": address.format(quote(PASSWORDS[name], safe="")) if proxies else None}
        for name in ("telegram", "discord")
    }
    endpoint = base_url.replace("://", f"://user:{quote(PASSWORDS['endpoint'], safe='')}@") if proxies else base_url
    return Settings.model_validate({
        **PLANTED, **proxied, "data_dir": data_dir, "zone": "UTC", "openai_base_url": endpoint,
        "openai_model": "scripted", "embedder": {"kind": "none"}, "privacy": {"first_notice": False},
        "model": {"timeout_seconds": 5.0, "retries": 0}, "access": {"open": "everybody"},
    })  # fmt: skip


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)


def test_every_setting_that_takes_a_secret_has_one_here() -> None:
    takes = {name for name, field in Credentials.model_fields.items() if "SecretStr" in str(field.annotation)}
    assert takes == set(PLANTED)
    assert all(len(secret) > 16 for secret in PLANTED.values())


def test_no_secret_is_shown_by_a_setting_or_by_what_is_wrong_with_one(tmp_path: Path) -> None:
    settings = planted(tmp_path, "http://127.0.0.1:9/v1", proxies=True)
    hidden = set(logs.secrets_of(settings))
    assert set(PLANTED.values()) <= hidden
    assert set(PASSWORDS.values()) <= hidden
    for shown in (repr(settings), str(settings), f"{settings!r:>9}", repr(settings.telegram), repr(settings.discord)):
        assert leaks("repr", shown) == []
    spoilt = {
        "TELEGRAM_BOT_TOKEN": f"{PLANTED['telegram_bot_token']} x",
        "OPENAI_API_KEY": f"{PLANTED['openai_api_key']}\u00e9",
        "RECOLLECT_KEY": PLANTED["recollect_key"] + "zz", "OPENAI_BASE_URL": f"ftp://user:{PASSWORDS['endpoint']}@x",
    }  # fmt: skip
    for name, value in spoilt.items():
        (tmp_path / ".env").write_text(f'{name}="{value}"\n', encoding="utf-8")
        with pytest.raises(SettingsError, match=name) as refused:
            load(cwd=tmp_path)
        assert leaks(name, f"{refused.value}{refused.value!r}{refused.value.__cause__}") == []
    (tmp_path / ".env").unlink()
    (tmp_path / "recollect.toml").write_text(f'telegram_bot_token = "{PLANTED["telegram_bot_token"]}"\n')
    with pytest.raises(SettingsError) as refused:
        load(cwd=tmp_path)
    assert leaks("toml", str(refused.value)) == []


@contextlib.asynccontextmanager
async def up(name: str, data_dir: Path, clock: Clock, settings: Settings, model: Model) -> AsyncIterator[World]:
    """The bot on a platform, with a secret in each setting and the platform's token among them."""
    hours = Hours(clock, Time())
    begins = {"telegram": TelegramServer.__init__, "discord": DiscordServer.__init__}[name]
    with patch.object(begins, "__defaults__", (PLANTED[f"{name}_bot_token"],)):
        set_stage = STAGES[name](hours)
        stage = await set_stage.__aenter__()
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_exit(set_stage)
        world = World(stage, model, data_dir, hours, EVERYBODY)
        world._settings = settings
        await world.start()
        try:
            yield world
        finally:
            await world.stop(killed=True)


async def everything_goes_wrong(world: World, model: Model, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Failures of every kind, each of which tells the secrets it knows."""
    told = " ".join(sorted(forms()))
    seen = []
    for trouble in (
        {"status": 401, "body": {"error": {"message": f"Incorrect API key provided: {told}"}}},
        {"status": 403, "body": f"<html>{told}</html>"},
        {"status": 404, "body": {"error": {"message": told, "code": told}}},
        {"status": 429, "body": {"error": {"message": told}}, "headers": {"Retry-After": "0"}},
        {"status": 500, "body": told},
        {"status": 200, "body": {"error": {"message": told}}},
        {"drop": True},
    ):
        model.fault(match="/chat/completions", **trouble)
        seen += await world.ask("What do you think of it?")
        world.passes(90)

    async def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"broken by {told}")

    with monkeypatch.context() as breaking:
        breaking.setattr(Memory, "mark", broken)
        seen += await world.ask("And now?")
        world.passes(90)
    server = world.stage.server  # type: ignore[attr-defined]
    if world.stage.name == "telegram":
        server.fault(match="sendMessage", status=400, description=f"Bad Request: {told}")
        seen += await world.ask("Are you there?")
        world.passes(90)
    else:
        server.fault("POST .*messages", status=400, body={"message": told, "code": 50_035})
        seen += await world.ask("Are you there?")
        world.passes(90)
    return seen


@pytest.mark.parametrize("name", ["telegram", "discord"])
async def test_no_secret_is_in_anything_that_is_left(
    name: str, data_dir: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    console = io.StringIO()
    async with Model() as model:
        model.on(reply="Quite so.")
        settings = planted(data_dir, model.base_url, proxies=False)
        logs.start(data_dir, secrets=logs.secrets_of(planted(data_dir, model.base_url, proxies=True)), console=console)
        logging.getLogger().setLevel(logging.DEBUG)
        async with up(name, data_dir, clock, settings, model) as world:
            seen = await world.ask("I am allergic to pollen")
            for command in ("/whatdoyouknow", "/privacy", "/usage", "/why", "/why full", "/export", "/help"):
                seen += await world.ask(command)
            seen += await everything_goes_wrong(world, model, monkeypatch)
            files = world.stage.files(MARA)
            stored = world.stored()
            asked = "\n".join(request.prompt for request in model.chats)
        findings = await examine(data_dir, clock=clock, embedder=lambda _: None, data_dir=data_dir)
    assert seen
    found = [
        *(leak for text in seen for leak in leaks("a message", text)),
        *(leak for content in files for leak in leaks("a file that was sent", content)),
        *leaks("the database", stored),
        *leaks("a prompt", asked),
        *leaks("the console", console.getvalue()),
        *leaks("what was printed", "".join(capfd.readouterr())),
        *(leak for finding in findings for leak in leaks("check", finding.line)),
        *(leak for file in _files(data_dir) for leak in leaks(file.name, file.read_bytes())),
    ]
    assert found == []
    assert "***" in console.getvalue()  # They came by, and were blotted out.


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", ["telegram", "discord"])
async def test_no_secret_is_in_what_is_said_of_a_platform_that_cannot_be_had(
    name: str, data_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = planted(data_dir, "http://127.0.0.1:9/v1", proxies=True)
    with caplog.at_level(logging.DEBUG), pytest.raises(AdapterError) as error:
        await whose(name, PLANTED[f"{name}_bot_token"], settings)  # type: ignore[arg-type]
    chain: BaseException | None = error.value
    assert leaks("the error", str(chain)) == []


@pytest.mark.parametrize("name", ["telegram", "discord"])
async def test_a_code_that_lets_in_or_links_is_in_nothing_that_is_left(name: str, data_dir: Path, clock: Clock) -> None:
    """Whoever reads a log, a backup or an export must not get in by it; the one who is shown a code is."""
    logs.start(data_dir, secrets=[])
    logging.getLogger().setLevel(logging.DEBUG)
    async with world_on(name, data_dir, clock, access=AccessSettings()) as world:
        world.model.on(reply="Quite so.")
        (told,) = await world.ask("hello, may I come in?")
        admitting = code_in(told)
        await approved(world, MARA, told)
        (shown,) = await world.ask("/link")
        (linking,) = re.findall(r"/link (\S{4}-\S{4})", shown)
        await world.ask(f"/link {linking}")  # her own: it links nothing, and stands in what she wrote
        for command in ("What do you know?", "/why", "/privacy", "/whatdoyouknow", "/export"):
            await world.ask(command)
        handed_over = b"".join(world.stage.files(MARA))
        asked = "\n".join(request.prompt for request in world.model.chats)
        left = {file.name: file.read_bytes() for file in _files(data_dir)}
    left |= {file.name: file.read_bytes() for file in _files(data_dir)} | {
        "export": handed_over,
        "prompts": asked.encode(),
    }
    assert {"export", "prompts", logs.FILE, DATABASE_NAME} <= set(left)
    for code in (admitting, linking):
        for form in (code, code.replace("-", ""), code.lower()):
            assert [where for where, data in left.items() if form.encode() in data] == []


async def test_check_and_a_crash_tell_no_secret(
    tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f'{key.upper()}="{value}"' for key, value in PLANTED.items()]
    lines.append(f"OPENAI_BASE_URL=http://user:{quote(PASSWORDS['endpoint'], safe='')}@127.0.0.1:9/v1")
    lines.append("OPENAI_MODEL=scripted")
    _write(tmp_path / ".env", "\n".join(lines))
    proxies = "".join(
        f'[{name}]\nproxy = "http://user:{quote(PASSWORDS[name], safe="")}@127.0.0.1:9"\n'
        for name in ("telegram", "discord")
    )
    _write(tmp_path / "recollect.toml", f"[model]\nretries = 0\n{proxies}")

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"broken by {' '.join(sorted(forms()))}")

    shown = await asyncio.to_thread(CliRunner().invoke, cli, ["check", "--data", str(data_dir)])
    assert shown.exit_code == 1
    monkeypatch.setattr("bot.check.look_at_files", broken)
    crashed = await asyncio.to_thread(CliRunner().invoke, cli, ["check", "--data", str(data_dir)])
    assert "Something went wrong" in crashed.output
    left = {file.name: file.read_bytes() for file in _files(data_dir)}
    assert b"***" in left[logs.FILE]
    found = [
        *leaks("check", shown.output), *leaks("the crash", crashed.output),
        *(leak for where, data in left.items() for leak in leaks(where, data)),
    ]  # fmt: skip
    assert found == []


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
