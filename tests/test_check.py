"""``check``: each line over a real socket or a real file, right and wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from bot import check
from bot.embedders import choose_embedder
from bot.finding import Finding
from config.settings import Settings
from memory import DATABASE_NAME
from memory.ports import EmbedderUnavailable, Vector
from tests.conftest import Clock
from tests.servers.discord_server import DiscordServer
from tests.servers.openai_server import OpenAIServer
from tests.servers.telegram_server import TelegramServer

NOON = {"Date": "Mon, 02 Mar 2026 12:00:30 GMT"}
"""Half a minute after the test clock."""


@dataclass
class Widths:
    """An embedder whose vectors are as wide as told: None a refused text, 0 an endpoint that is away."""

    width: int | None
    model: str = "widths"
    closed: bool = False

    @property
    def dimensions(self) -> int | None:
        return self.width

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        if self.width == 0:
            raise EmbedderUnavailable("nobody answers there")
        return [None if self.width is None else np.ones(self.width, np.float32) for _ in texts]

    async def aclose(self) -> None:
        self.closed = True


def settings(**values: object) -> Settings:
    """Return settings with a model, unless told otherwise."""
    return Settings.model_validate({"openai_model": "scripted", **values})


def levels(findings: Sequence[Finding]) -> list[str]:
    """Return the levels of ``findings``, in order."""
    return [finding.level for finding in findings]


def test_a_finding_is_one_line_that_ends_with_the_fix() -> None:
    assert Finding("ok", "clock: right").line == "ok    clock: right"
    assert Finding("fail", "model: none", "set it").line == "fail  model: none — set it"


async def test_without_a_model_the_way_to_one_is_named(clock: Clock) -> None:
    (finding,) = await check.look_at_model(Settings())
    assert finding.level == "warn"
    assert "python -m bot init" in finding.fix


async def test_a_good_endpoint_is_right_in_every_line(clock: Clock) -> None:
    async with OpenAIServer() as server:
        server.on(reply='{"ok": true}')
        findings = await check.look_at_model(settings(openai_base_url=server.base_url))
    assert levels(findings) == ["ok", "ok"]
    assert [finding.what for finding in findings] == [
        f"endpoint: {server.base_url}",
        "model: scripted answers, in JSON when asked to",
    ]


async def test_a_model_that_is_not_listed_is_told_with_what_is(clock: Clock) -> None:
    async with OpenAIServer(models=["qwen3:8b", "llama3"]) as server:
        server.on(reply='{"ok": true}')
        findings = await check.look_at_model(settings(openai_base_url=server.base_url, openai_model="qwen3"))
    assert findings[1] == Finding("warn", "model: qwen3 is not in the endpoint's list", "it has qwen3:8b")


async def test_a_missing_model_name_is_told_with_an_example(clock: Clock) -> None:
    async with OpenAIServer() as server:
        findings = await check.look_at_model(settings(openai_base_url=server.base_url, openai_model=None))
    assert findings[1] == Finding("fail", "model: none named", "set OPENAI_MODEL, for example to scripted")


async def test_a_model_that_writes_no_json_is_a_warning(clock: Clock) -> None:
    async with OpenAIServer() as server:
        server.on(reply="Sure! Everything is fine.")
        findings = await check.look_at_model(settings(openai_base_url=server.base_url))
    assert findings[1].level == "warn"
    assert "not in JSON" in findings[1].what


@pytest.mark.parametrize(
    ("sees", "reply", "level", "said"),
    [
        (True, "Red.", "ok", "pictures: shown to scripted, which sees them"),
        (True, "I see nothing.", "warn", "which is blind to them — the model takes no pictures"),
        (False, "", "warn", "which takes none — no images (HTTP 400)"),
    ],
)
async def test_a_model_that_is_said_to_see_is_shown_a_picture(*, sees: bool, reply: str, level: str, said: str) -> None:
    async with OpenAIServer(sees=sees) as server:
        server.on("JSON", reply='{"ok": true}')
        server.on("colour", reply=reply)
        findings = await check.look_at_model(settings(openai_base_url=server.base_url, media={"images": True}))
    assert levels(findings) == ["ok", "ok", level]
    assert said in findings[2].line


async def test_a_model_that_does_not_answer_is_shown_no_picture() -> None:
    async with OpenAIServer() as server:
        server.fault(match="/chat/completions", status=402, times=9)
        there = settings(openai_base_url=server.base_url, media={"images": True}, model={"retries": 0})
        assert levels(await check.look_at_model(there)) == ["ok", "fail"]


async def test_a_picture_that_fails_for_another_reason_is_told_with_it() -> None:
    async with OpenAIServer(sees=True) as server:
        server.fault(match="colour", status=402, body={"error": {"message": "pay first"}})
        server.on("JSON", reply='{"ok": true}')
        there = settings(openai_base_url=server.base_url, media={"images": True}, model={"retries": 0})
        findings = await check.look_at_model(there)
    assert levels(findings) == ["ok", "ok", "fail"]
    assert "pay first" in findings[2].fix


async def test_a_refused_key_fails_by_its_name_and_is_not_shown(clock: Clock) -> None:
    async with OpenAIServer() as server:
        server.fault(status=401, body={"error": {"message": "Incorrect API key: sk-hidden"}}, times=9)
        there = settings(openai_base_url=server.base_url, openai_api_key="sk-hidden")
        findings = await check.look_at_model(there)
    assert levels(findings)[:2] == ["fail", "fail"]
    assert "OPENAI_API_KEY" in findings[0].fix
    assert not any("sk-hidden" in finding.line for finding in findings)


async def test_an_endpoint_that_lists_nothing_may_still_answer(clock: Clock) -> None:
    async with OpenAIServer() as server:
        server.fault(match="/models", status=404, times=2)
        server.on(reply='{"ok": true}')
        findings = await check.look_at_model(settings(openai_base_url=server.base_url))
    assert levels(findings)[:2] == ["ok", "ok"]


async def test_an_endpoint_that_is_away_fails_without_a_traceback(clock: Clock, unused_tcp_port: int) -> None:
    away = Settings.model_validate(
        {"openai_base_url": f"http://127.0.0.1:{unused_tcp_port}/v1", "openai_model": "x", "model": {"retries": 0}}
    )
    findings = await check.look_at_model(away)
    assert levels(findings) == ["fail", "fail"]
    assert "OPENAI_BASE_URL" in findings[0].fix
    assert away.openai_base_url is not None
    assert away.openai_base_url in findings[0].fix
    finding = await check.look_at_clock(away, clock=clock)
    assert finding.level == "ok"
    assert "nothing to compare" in finding.what


async def test_what_the_endpoint_says_to_our_own_words_is_told() -> None:
    async with OpenAIServer() as server:
        server.fault(match="/chat/completions", status=400, body={"error": {"message": "no such colour"}}, times=9)
        findings = await check.look_at_model(settings(openai_base_url=server.base_url))
        server.fault(match="/embeddings", status=402, body={"error": {"message": "pay first"}}, times=9)
        there = settings(
            openai_base_url=server.base_url, openai_embedding_model="e", model={"retries": 0}, embedder={"kind": "auto"}
        )
        finding = await check.look_at_embedder(lambda: choose_embedder(there))
    assert "no such colour" in findings[1].fix
    assert "pay first" in finding.fix


async def test_the_time_is_told_in_the_zone_of_the_settings_with_and_without_an_endpoint(clock: Clock) -> None:
    async with OpenAIServer() as server:
        server.fault(match="/models", status=200, headers=NOON)
        there = settings(openai_base_url=server.base_url, zone="Europe/Berlin")
        assert await check.look_at_clock(there, clock=clock) == Finding(
            "ok", "clock: 2026-03-02 13:00 local time, zone Europe/Berlin"
        )
    for alone in (Settings(zone="Asia/Shanghai"), settings(openai_base_url="http://h/v1?x=1", zone="Asia/Shanghai")):
        finding = await check.look_at_clock(alone, clock=clock)
        assert finding.what.startswith("clock: 2026-03-02 20:00 local time, zone Asia/Shanghai")


async def test_a_clock_that_is_wrong_is_told_with_both_times(clock: Clock) -> None:
    clock.advance(hours=-3)
    async with OpenAIServer() as server:
        server.fault(match="/models", status=200, headers=NOON)
        finding = await check.look_at_clock(settings(openai_base_url=server.base_url, zone="UTC"), clock=clock)
    assert finding.level == "warn"
    assert "2026-03-02 09:00 local time, zone UTC, but 2026-03-02 12:00 at the endpoint" in finding.what


@pytest.mark.parametrize(
    ("embedder", "level", "said"),
    [
        (Widths(384), "ok", "widths, 384 numbers a text"),
        (Widths(None), "fail", "no usable vector"),
        (Widths(0), "fail", "nobody answers there"),
        (None, "warn", "by words alone"),
    ],
)
async def test_the_width_of_the_vectors_is_told(embedder: Widths | None, level: str, said: str) -> None:
    finding = await check.look_at_embedder(lambda: embedder)
    assert finding.level == level
    assert said in finding.line


async def test_an_embedder_that_lacks_a_setting_is_told_by_its_name() -> None:
    lacking = settings(embedder={"kind": "endpoint"})
    finding = await check.look_at_embedder(lambda: choose_embedder(lacking))
    assert finding.level == "fail"
    assert "OPENAI_EMBEDDING_MODEL is missing" in finding.fix


def test_a_new_folder_is_fine_and_stays_empty(data_dir: Path) -> None:
    finding = check.look_at_database(data_dir / DATABASE_NAME)
    assert finding.level == "ok"
    assert "made at the first message" in finding.what
    assert list(data_dir.iterdir()) == []


def test_a_damaged_database_fails_and_is_not_touched(data_dir: Path) -> None:
    file = data_dir / DATABASE_NAME
    file.write_bytes(b"this was never a database" * 100)
    before = file.read_bytes()
    finding = check.look_at_database(file)
    assert finding.level == "fail"
    assert "damaged" in finding.fix
    assert file.read_bytes() == before
    assert [path.name for path in data_dir.iterdir()] == [DATABASE_NAME]


def test_a_file_where_the_folder_should_be_fails(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    assert check.look_at_database(tmp_path / "data" / DATABASE_NAME).level == "fail"


def test_an_env_file_others_can_read_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / ".env").touch(mode=0o600)
    assert levels(check.look_at_files(tmp_path, Settings())) == ["ok"]
    (tmp_path / ".env").chmod(0o644)
    assert "chmod 600" in check.look_at_files(tmp_path, Settings())[1].fix


async def test_tokens_are_tried_at_their_platforms() -> None:
    async with TelegramServer() as telegram, DiscordServer() as discord:
        with discord.reached():
            there = settings(
                telegram_bot_token=telegram.token,
                discord_bot_token=discord.token,
                telegram={"base_url": telegram.base_url},
            )
            assert levels(await check.look_at_platforms(there)) == ["ok", "ok"]
            wrong = there.model_copy(
                update={"telegram_bot_token": settings(telegram_bot_token="123:no").telegram_bot_token}
            )
            findings = await check.look_at_platforms(wrong)
    assert levels(findings) == ["fail", "ok"]
    assert "@BotFather" in findings[0].fix


async def test_a_webhook_without_a_secret_is_named_with_its_fix() -> None:
    async with TelegramServer() as telegram:
        there = {"base_url": telegram.base_url, "webhook_url": "https://bot.example.org/telegram"}
        given = settings(telegram_bot_token=telegram.token, telegram=there)
        (finding,) = await check.look_at_platforms(given)
        ready = settings(telegram_bot_token=telegram.token, telegram_webhook_secret="good-one", telegram=there)
        assert levels(await check.look_at_platforms(ready)) == ["ok"]
    assert finding.level == "fail"
    assert "Set TELEGRAM_WEBHOOK_SECRET" in finding.fix


async def test_without_a_token_the_names_are_told() -> None:
    (finding,) = await check.look_at_platforms(Settings())
    assert finding.level == "warn"
    assert "TELEGRAM_BOT_TOKEN" in finding.fix


async def test_wrong_settings_are_a_finding_each(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "recollect.toml").write_text("[recall]\nmax_tokens = -5\nfoo = 1\n")
    findings = await check.examine(tmp_path, clock=clock, embedder=lambda _: None)
    assert levels(findings) == ["fail", "fail"]
    assert "[recall] max_tokens = -5: must be at least 0" in findings[0].fix


async def test_everything_is_looked_at_and_the_embedder_is_closed(tmp_path: Path, clock: Clock) -> None:
    embedder = Widths(8)
    findings = await check.examine(tmp_path, clock=clock, embedder=lambda _: embedder, data_dir=tmp_path / "data")
    begins = [finding.what.split(":")[0] for finding in findings]
    assert begins == ["settings", "disk", "log", "database", "model", "clock", "embeddings", "platforms"]
    assert embedder.closed
    assert not (tmp_path / "data").exists()
