"""What never gets into the log."""

from __future__ import annotations

import io
import logging
from base64 import b64encode
from pathlib import Path
from urllib.parse import quote

import pytest

from bot import logs
from config.settings import Credentials, Settings


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
