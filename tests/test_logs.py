"""What never gets into the log."""

from __future__ import annotations

import asyncio
import errno
import io
import json
import logging
from base64 import b64encode
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest

from bot import correlation, heartbeat, logs
from config.settings import Credentials, LogSettings, Settings


@pytest.mark.parametrize("section", ["telegram", "discord"])
@pytest.mark.parametrize("password", ["hunter2pw", "p@ss:w/rd%"])
def test_the_password_of_a_proxy_is_blotted_out_however_it_is_written(
    tmp_path: Path, section: str, password: str
) -> None:
    written = quote(password, safe="")
    settings = Settings.model_validate({section: {"proxy": f"http://user:{written}@127.0.0.1:3128"}})
    console = io.StringIO()
    logs.start(tmp_path, secrets=logs.secrets_of(settings), console=console)
    basic = b64encode(f"user:{password}".encode()).decode()
    logging.getLogger("bot.test").info("http://user:%s@host %s Basic %s", written, password, basic)

    assert "http://user:***@host *** Basic ***" in console.getvalue()


def test_an_address_without_a_password_hides_nothing() -> None:
    settings = Settings.model_validate({"discord": {"proxy": "http://127.0.0.1:3128"}})
    assert logs.secrets_of(settings) == []


def test_the_tokens_of_bare_credentials_are_secrets() -> None:
    assert logs.secrets_of(Credentials.model_validate({"discord_bot_token": "token-of-it"})) == ["token-of-it"]


def logged(folder: Path, how: LogSettings, *, secrets: list[str] | None = None) -> tuple[str, str]:
    """Log one failure inside a turn; returns the file and the console."""
    console = io.StringIO()
    file = logs.start(folder, secrets=secrets or [], console=console, how=how)
    with correlation.turn("0badcafe"):
        try:
            int('no key-with-"quotes"-in-it')
        except ValueError:
            logging.getLogger("httpx").exception("it %s", "broke", extra={"ms": 12.5, "words": "private"})
    return file.read_text(), console.getvalue()


def test_a_line_of_json_tells_when_who_what_and_to_which_turn_it_belongs(tmp_path: Path) -> None:
    written, shown = logged(tmp_path, LogSettings(format="json"))
    (line,) = written.splitlines()
    told = json.loads(line)
    assert list(told)[:4] == ["at", "level", "logger", "event"]
    assert (told["level"], told["logger"], told["event"]) == ("error", "httpx", "it broke")
    assert (told["turn"], told["ms"]) == ("0badcafe", 12.5)
    assert "key-with" in told["exception"]
    assert datetime.fromisoformat(told["at"]).utcoffset() == timedelta(0)
    assert "words" not in told
    assert "ERROR httpx: it broke [turn=0badcafe ms=12.5]\nTraceback" in shown


def test_a_line_of_text_reads_the_same_in_the_file_as_on_the_console(tmp_path: Path) -> None:
    written, shown = logged(tmp_path, LogSettings())
    assert written == shown
    assert "ERROR httpx: it broke [turn=0badcafe ms=12.5]\nTraceback" in written
    assert "private" not in written


@pytest.mark.parametrize("how", ["text", "json"])
def test_a_secret_is_blotted_out_of_a_traceback_in_either_form(tmp_path: Path, how: str) -> None:
    settings = LogSettings.model_validate({"format": how})
    written, shown = logged(tmp_path, settings, secrets=['key-with-"quotes"-in-it'])
    assert "quotes" not in written + shown
    assert "***" in written
    assert "***" in shown


def test_a_turn_has_one_number_and_what_was_begun_in_it_keeps_that() -> None:
    assert correlation.current() == ""
    with correlation.turn("11111111"):
        assert (correlation.current(), correlation.here()) == ("11111111", "11111111")
    assert correlation.here() != correlation.here()


def test_the_level_of_the_settings_is_the_least_that_is_written(tmp_path: Path) -> None:
    file = logs.start(tmp_path, secrets=[], how=LogSettings(level="warning"))
    logging.getLogger("bot.test").info("quiet")
    logging.getLogger("bot.test").warning("loud")
    assert "loud" in file.read_text()
    assert "quiet" not in file.read_text()


class FullDisk(io.TextIOWrapper):
    """A stream on a full disk, as long as it is ``full``."""

    full = True

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")

    def flush(self) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().flush()


@pytest.mark.parametrize("what", ["the file", "the console"])
def test_a_line_that_cannot_be_written_is_not_printed_instead(
    tmp_path: Path, what: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full: Python's own handlers would print each line with its arguments, and where it came from."""
    disk = FullDisk()
    if what == "the file":
        monkeypatch.setattr(logs._Private, "_open", lambda _: disk)
    logs.start(tmp_path, secrets=["sk-hush"], console=disk if what == "the console" else None)
    logger = logging.getLogger("bot.test")
    for _ in range(3):
        logger.warning("the key is %s", "sk-hush")
    lost = "The log cannot be written, lines are lost (OSError: No space left on device)\n"
    assert capsys.readouterr().err == lost
    disk.full = False
    logger.warning("there is room again")
    disk.seek(0)
    assert "there is room again" in disk.read()
    disk.full = True
    logger.warning("the key is %s", "sk-hush")
    assert capsys.readouterr().err == lost
    disk.full = False


def test_a_line_that_cannot_be_formed_shows_none_of_its_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = logs.start(tmp_path, secrets=["sk-hush"])
    logging.getLogger("bot.test").warning("%d keys", "sk-hush")
    logging.getLogger("bot.test").warning("heard")
    printed = capsys.readouterr().err
    assert printed == "The log cannot be written, lines are lost (TypeError)\n"
    assert "sk-hush" not in file.read_text()
    assert "heard" in file.read_text()


async def test_the_heart_goes_on_beating_when_the_disk_is_full_and_heals_with_it(
    data_dir: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats: list[bool] = []
    touch = Path.touch

    def refused(path: Path, mode: int = 0o666, *, exist_ok: bool = True) -> None:
        if len(beats) < 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        touch(path, mode, exist_ok)

    async def counted(seconds: float) -> None:
        assert seconds == heartbeat.EVERY_SECONDS
        beats.append((data_dir / heartbeat.FILE).exists())
        if len(beats) == 4:
            raise asyncio.CancelledError

    monkeypatch.setattr(Path, "touch", refused)
    with pytest.raises(asyncio.CancelledError):
        await heartbeat.beat(data_dir, sleep=counted)
    assert beats == [False, False, False, True]
    told = [record.message for record in caplog.records]
    assert told == ["the heartbeat cannot be written, it is tried again: No space left on device"]


async def test_a_heartbeat_that_cannot_be_taken_away_keeps_no_stop_from_its_end(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    async def stopped(_: float) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(asyncio.CancelledError):
        await heartbeat.beat(data_dir, sleep=stopped)
