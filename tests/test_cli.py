"""The command line: what people type, what they read, and the exit code that scripts get."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import dotenv
import pytest
from typer.testing import CliRunner, Result

import bot
from bot import app as composition
from bot import calibrate as calibration
from bot import check as checks
from bot import discovery, heartbeat, logs, setup
from bot.bench import abstain as bench_abstain
from bot.bench import cost as bench_cost
from bot.bench import delivery as bench_delivery
from bot.bench import peers as bench_peers
from bot.bench import recall as bench_recall
from bot.bench import speed as bench_speed
from bot.bench import write as bench_write
from bot.cli import cli
from bot.discovery import Found
from bot.finding import Finding
from bot.message import AdapterError
from config.settings import Settings, load
from memory import DatabaseError
from tests.servers.discord_server import DiscordServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.telegram_server import TelegramServer

KEY = "sk-a-key-nobody-must-ever-see"
ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in an empty folder, and give the log back afterwards."""
    monkeypatch.chdir(tmp_path)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield tmp_path
    for handler in set(root.handlers) - set(handlers):
        handler.close()
    root.handlers, root.level = handlers, level


def typed(*words: str, keys: str = "") -> Result:
    """Run a command line with ``keys`` typed at its questions."""
    return CliRunner().invoke(cli, list(words), input=keys)


class Session:
    """Stands in for the composition root's ``chat`` and ``run``: notes the settings, then ends as told."""

    def __init__(self, ends: int | BaseException = 0) -> None:
        self.ends = ends
        self.settings = Settings()
        self.options: dict[str, object] = {}

    async def __call__(self, settings: Settings, **options: object) -> int:
        self.settings, self.options = settings, options
        if isinstance(self.ends, BaseException):
            raise self.ends
        return self.ends


def test_the_version_is_one_line() -> None:
    result = typed("--version")
    assert (result.exit_code, result.output) == (0, f"recollect {bot.__version__}\n")


@pytest.mark.parametrize("words", [[], ["bench"]])
def test_no_command_shows_them_all_and_is_misuse(words: list[str]) -> None:
    result = typed(*words)
    assert result.exit_code == 2
    assert "Usage" in result.output


@pytest.mark.parametrize("words", [["talk"], ["chat", "--nonsense"], ["replay"], ["replay", "missing.jsonl"]])
def test_wrong_usage_is_exit_code_two(words: list[str]) -> None:
    assert typed(*words).exit_code == 2


def test_chat_hands_over_user_data_and_debug(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()
    monkeypatch.setattr(composition, "chat", session)
    assert typed("chat", "--user", "mara", "--data", "elsewhere", "--debug").exit_code == 0
    assert session.options == {"user": "mara", "debug": True}
    assert session.settings.data_dir == Path("elsewhere")


def test_the_exit_code_is_what_the_bot_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composition, "chat", Session(1))
    assert typed("chat").exit_code == 1


def test_wrong_settings_are_told_by_key_and_are_exit_code_two(folder: Path) -> None:
    (folder / "recollect.toml").write_text("[recall]\nmax_tokens = -5\n")
    for command in ("chat", "run", "init"):
        result = typed(command)
        assert result.exit_code == 2
        assert result.output == "recollect.toml: [recall] max_tokens = -5: must be at least 0\n"
    assert not (folder / "data").exists()


@pytest.mark.parametrize("trouble", [AdapterError("TELEGRAM_BOT_TOKEN is wrong"), DatabaseError("the file is damaged")])
def test_known_trouble_is_told_in_its_own_words(monkeypatch: pytest.MonkeyPatch, trouble: Exception) -> None:
    monkeypatch.setattr(composition, "chat", Session(trouble))
    result = typed("chat")
    assert (result.exit_code, result.output) == (1, f"{trouble}\n")


def test_the_unexpected_is_one_line_and_its_traceback_is_in_the_log_without_the_key(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(composition, "chat", Session(RuntimeError(f"no luck with {KEY}")))
    result = typed("chat", "--data", "here")
    assert result.exit_code == 1
    assert len(result.output.splitlines()) == 1
    assert "here/recollect.log" in result.output
    log = folder / "here/recollect.log"
    assert "Traceback" in log.read_text()
    assert "no luck with ***" in log.read_text()
    assert KEY not in log.read_text() + result.output
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_an_interrupted_chat_leaves_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composition, "chat", Session(KeyboardInterrupt()))
    result = typed("chat")
    assert (result.exit_code, result.output) == (130, "")


def test_a_data_folder_that_is_a_file_is_told(folder: Path) -> None:
    (folder / "file").touch()
    result = typed("chat", "--data", "file")
    assert result.exit_code == 1
    assert result.output.startswith("file cannot be written")


def test_check_prints_a_line_each_and_fails_when_one_does(folder: Path) -> None:
    (folder / "recollect.toml").write_text("[embedder]\nkind = 'none'\n")
    lines = typed("check").output.splitlines()
    assert [line[:4] for line in lines] == ["ok  "] * 4 + ["warn", "ok  ", "warn", "warn"]
    assert typed("check").exit_code == 0
    assert typed("check", "--strict").exit_code == 1
    assert len(typed("check", "--quiet").output.splitlines()) == 3
    (folder / "data").touch()
    assert typed("check").exit_code == 1


LOOKS = {
    "check": (checks, "examine", ["check", "--data", "here"]),
    "init": (setup, "main", ["init"]),
    "bench recall": (bench_recall, "main", ["bench", "recall", "--data", "sets"]),
    "bench peers": (bench_peers, "main", ["bench", "peers", "--data", "sets", "--venvs", "venvs"]),
    "bench speed": (bench_speed, "main", ["bench", "speed"]),
    "bench delivery": (bench_delivery, "main", ["bench", "delivery"]),
    "bench write": (bench_write, "main", ["bench", "write", "--data", "sets"]),
    "bench cost": (bench_cost, "main", ["bench", "cost"]),
    "bench abstain": (bench_abstain, "main", ["bench", "abstain", "--data", "sets"]),
    "calibrate": (calibration, "main", ["calibrate", "--sample", "en"]),
}


@pytest.mark.parametrize("command", LOOKS)
def test_every_command_ends_in_a_sentence_and_writes_the_traceback_down_without_the_key(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        logging.getLogger("bot.test").warning("seen %s", KEY)
        raise RuntimeError(f"no luck with {KEY}")

    module, name, words = LOOKS[command]
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(module, name, fail)
    result = typed(*words)
    warning, told = result.output.splitlines()
    assert result.exit_code == 1
    assert warning.endswith("bot.test: seen ***")
    file = folder / ("here" if command == "check" else "data") / logs.FILE
    assert told.startswith(f"Something went wrong; {file.relative_to(folder)} says what.")
    assert "no luck with ***" in file.read_text()
    assert KEY not in file.read_text() + result.output


@pytest.mark.parametrize("words", [[], ["test:1", "--sample", "en"]])
def test_calibrate_wants_one_person_or_the_sample(words: list[str]) -> None:
    result = typed("calibrate", *words)
    assert (result.exit_code, result.output) == (2, "Name one person as PLATFORM:ID, or --sample en (or zh).\n")


def test_where_no_log_can_be_written_the_unexpected_is_a_sentence_all_the_same(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> NoReturn:
        raise RuntimeError("no luck")

    (folder / "file").touch()
    monkeypatch.setattr(checks, "examine", fail)
    result = typed("check", "--data", "file")
    assert result.exit_code == 1
    assert result.output.startswith("Something went wrong (RuntimeError)")
    assert len(result.output.splitlines()) == 1


def test_a_warning_while_looking_shows_no_traceback_and_leaves_no_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look(*_: object, **__: object) -> list[Finding]:
        logging.getLogger("bot.test").error("odd", exc_info=RuntimeError("no luck"))
        return []

    monkeypatch.setattr(checks, "examine", look)
    result = typed("check")
    assert result.exit_code == 0
    assert len(result.output.splitlines()) == 1
    assert list(folder.iterdir()) == []


def test_wrong_settings_are_findings_of_check_and_no_hindrance_to_a_measurement(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "recollect.toml").write_text("[recall]\nmax_tokens = -5\n")
    result = typed("check")
    assert result.exit_code == 2
    assert result.output == "fail  settings — recollect.toml: [recall] max_tokens = -5: must be at least 0\n"
    monkeypatch.setattr(bench_speed, "main", lambda **_: 0)
    assert typed("bench", "speed").exit_code == 0


def test_run_without_a_token_says_so_once() -> None:
    result = typed("run")
    assert result.exit_code == 1
    assert result.output.count("No token is set") == 1
    assert len(result.output.splitlines()) == 1


def test_leaving_init_at_a_question_is_no_trouble(folder: Path) -> None:
    (folder / ".env").write_text("OPENAI_API_KEY=k\nOPENAI_MODEL=m\n")
    result = typed("init", keys="")
    assert result.exit_code == 1
    assert "went wrong" not in result.output


def test_a_secret_typed_at_a_question_is_kept_out_of_the_log(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    (folder / ".env").write_text("OPENAI_API_KEY=k\nOPENAI_MODEL=m\nDISCORD_BOT_TOKEN=y\n")

    async def whose(platform: str, token: str, _: Settings) -> str:
        logging.getLogger("bot.test").warning("GET https://host/bot%s/getMe", token)
        return platform

    monkeypatch.setattr(setup, "whose", whose)
    result = typed("init", keys=f"123:{KEY}\n")
    assert result.exit_code == 0
    assert "GET https://host/bot***/getMe" in result.output
    assert KEY not in result.output


def test_numpy_gets_one_thread_before_it_is_imported(tmp_path: Path) -> None:
    script = (
        "import os, sys\nsys.argv = ['recollect']\nimport bot.__main__\n"
        "print(os.environ['OMP_NUM_THREADS'], os.environ['OPENBLAS_NUM_THREADS'])"
    )
    env = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    run = [sys.executable, "-c", script]
    done = subprocess.run(run, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "1 1\n"


# init -------------------------------------------------------------------------------------------------


async def test_init_asks_tests_and_writes_a_file_for_its_owner_alone(folder: Path) -> None:
    (folder / ".env").write_text("# mine\nEDITOR=vi\nOPENAI_MODEL=\n")
    async with OpenAIServer(models=["qwen3", "llama3"]) as model, TelegramServer() as telegram:
        (folder / "recollect.toml").write_text(f"[telegram]\nbase_url = '{telegram.base_url}'\n")
        keys = f"{model.root}\n2\n1234:wrong\n{telegram.token}\n\n"
        result = await asyncio.to_thread(typed, "init", keys=keys)
    assert result.exit_code == 0, result.output
    assert "@recollect_bot" in result.output
    assert result.output.count("TELEGRAM_BOT_TOKEN") == 2, "the refusal, and what was written"
    assert result.output.endswith("Next: python -m bot run\n")
    assert telegram.token not in result.output
    assert dotenv.dotenv_values(folder / ".env") == {
        "EDITOR": "vi",
        "OPENAI_MODEL": "llama3",
        "OPENAI_BASE_URL": model.root,
        "TELEGRAM_BOT_TOKEN": telegram.token,
    }
    assert (folder / ".env").read_text().startswith("# mine\nEDITOR=vi\n")
    assert stat.S_IMODE((folder / ".env").stat().st_mode) == 0o600


async def test_init_offers_what_runs_on_this_machine_and_needs_no_key_for_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with OpenAIServer(models=["qwen3"]) as model:

        async def find() -> list[Found]:
            return [Found("Ollama", model.base_url, ("qwen3",))]

        monkeypatch.setattr(discovery, "find", find)
        result = await asyncio.to_thread(typed, "init", keys="1\n\n\n")
    assert f"1  Ollama at {model.base_url} (qwen3)" in result.output
    assert "API key" not in result.output
    assert dotenv.dotenv_values(folder / ".env") == {"OPENAI_BASE_URL": model.base_url, "OPENAI_MODEL": "qwen3"}


async def test_init_asks_again_when_nobody_answers_and_takes_no_for_an_answer(
    folder: Path, unused_tcp_port: int
) -> None:
    keys = f"http://127.0.0.1:{unused_tcp_port}\n\n\n\n"
    result = await asyncio.to_thread(typed, "init", keys=keys)
    assert result.exit_code == 0, result.output
    assert "nobody answers there" in result.output
    assert "Nothing to write." in result.output
    assert result.output.endswith("Next: python -m bot chat\n")
    assert not (folder / ".env").exists()


async def test_init_asks_only_for_what_is_missing(folder: Path) -> None:
    async with OpenAIServer(models=["qwen3"]) as model, DiscordServer() as discord:
        (folder / ".env").write_text(f"OPENAI_BASE_URL={model.base_url}\nTELEGRAM_BOT_TOKEN=1:x\n")
        with discord.reached():
            result = await asyncio.to_thread(typed, "init", keys=f"{discord.token}\n")
    assert result.exit_code == 0, result.output
    found = load(cwd=folder)
    assert found.openai_model == "qwen3"
    assert found.discord_bot_token is not None
    assert found.discord_bot_token.get_secret_value() == discord.token
    (folder / ".env").write_text("OPENAI_API_KEY=k\nOPENAI_MODEL=m\nTELEGRAM_BOT_TOKEN=1:x\nDISCORD_BOT_TOKEN=y\n")
    assert "Nothing to write." in (await asyncio.to_thread(typed, "init")).output


def test_a_value_survives_being_written_and_read(folder: Path) -> None:
    answers = {"OPENAI_MODEL": "a model: 'quoted' #1 \\ $HOME", "OPENAI_API_KEY": KEY}
    setup.write(folder / ".env", answers)
    found = load(cwd=folder)
    assert found.openai_model == answers["OPENAI_MODEL"]
    assert found.openai_api_key is not None
    assert found.openai_api_key.get_secret_value() == KEY


# log and heartbeat ------------------------------------------------------------------------------------


def test_a_token_in_an_address_or_an_argument_is_blotted_out(folder: Path) -> None:
    console = io.StringIO()
    settings = Settings.model_validate({"telegram_bot_token": "123:AB-c", "openai_api_key": KEY})
    file = logs.start(folder / "data", secrets=logs.secrets_of(settings), console=console)
    log = logging.getLogger("bot.test")
    log.info("GET https://host/bot123:AB-c/getMe")
    log.info("GET https://host/bot123%%3AAB-c/getMe with %s", KEY)
    for text in (console.getvalue(), file.read_text()):
        assert text.count("***") == 3
        assert "AB-c" not in text
        assert KEY not in text


def test_the_log_stays_small(folder: Path) -> None:
    file = logs.start(folder / "data", secrets=[])
    log = logging.getLogger("bot.test")
    for _ in range(60):
        log.info("x" * 100_000)
    files = list(file.parent.iterdir())
    assert len(files) == 4
    assert sum(path.stat().st_size for path in files) < 4_200_000


async def test_the_heart_beats_until_it_is_stopped(data_dir: Path) -> None:
    file = data_dir / heartbeat.FILE
    touched: list[float] = []

    async def twice(seconds: float) -> None:
        assert seconds == heartbeat.EVERY_SECONDS
        touched.append(file.stat().st_mtime)
        os.utime(file, (0, 0))
        if len(touched) == 2:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await heartbeat.beat(data_dir, sleep=twice)
    assert min(touched) > 0
    assert not file.exists()
