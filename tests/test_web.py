"""``/healthz``, ``/readyz``, ``/metrics``: yes or no and numbers, of this machine alone, and no word of anybody."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import ValidationError

from bot import metrics, web
from bot.endpoint import LLMError
from bot.llm import LLM
from bot.message import AdapterError
from bot.outlet import Gate, Tempo
from config.settings import HttpSettings, ModelSettings, SettingsError, load
from tests.busy import PRIVATE, busy
from tests.conftest import Clock
from tests.servers.openai_server import OpenAIServer
from tests.talk import Talk, talking


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def asked(talk: Talk) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of the pages of a running bot."""
    port = free_port()
    async with (
        web.pages(HttpSettings(port=port), talk.app.watching),
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
    ):
        yield client


def numbers(page: str) -> dict[str, float]:
    """The samples of a page by name and labels."""
    lines = (line.rsplit(" ", 1) for line in page.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, value in lines}


async def test_after_a_busy_time_the_metrics_are_what_the_database_says(data_dir: Path, clock: Clock) -> None:
    model = {"retries": 0, "price_in": 1_000_000.0, "price_out": 0.0, "currency": "EUR"}
    async with busy(data_dir, clock, model=model) as talk, asked(talk) as client:
        answer = await client.get("/metrics")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/plain")
        found = numbers(answer.text)
        for store in ("profile", "timeline", "facts"):
            rows = talk.rows(f"SELECT count(*) FROM {store}")[0][0]
            written = found.get(f'recollect_written_total{{store="{store}"}}', 0)
            assert rows == written - found.get(f'recollect_erased_total{{store="{store}"}}', 0)
        for kind, times, tokens_in in talk.rows("SELECT kind, sum(times), sum(tokens_in) FROM usage GROUP BY kind"):
            assert found[f'recollect_used_total{{kind="{kind}"}}'] == times
            assert found.get(f'recollect_tokens_in_total{{kind="{kind}"}}', 0) == tokens_in
        ((spent,),) = talk.rows("SELECT sum(tokens_in) FROM usage WHERE kind IN ('reply', 'distil', 'rewrite')")
        assert found['recollect_cost_total{currency="EUR"}'] == spent
        assert found['recollect_dropped_total{reason="secret"}'] == 2
        assert found['recollect_recalled_total{verdict="nothing"}'] >= 2
        assert found["recollect_forgotten_total"] == talk.rows("SELECT count(erased_at) FROM deletions")[0][0]
        assert found["recollect_notices_owed"] == talk.rows("SELECT count(*) FROM notices WHERE sent_at IS NULL")[0][0]
        assert found["recollect_queued"] == found["recollect_sessions_to_distil"] == 0


async def test_whatever_memory_counts_has_a_name_for_prometheus(data_dir: Path, clock: Clock) -> None:
    async with busy(data_dir, clock) as talk:
        await talk.app.memory.tallies.prove_writable(now=clock())
        counted = {name for name, _ in talk.app.memory.tallies.since_start}
    assert counted - metrics._TALLIED.keys() == {"probed"}


async def test_no_page_holds_a_word_an_account_or_a_chat(data_dir: Path, clock: Clock) -> None:
    async with busy(data_dir, clock) as talk, asked(talk) as client:
        told = "".join([(await client.get(page)).text for page in ("/metrics", "/readyz", "/healthz")])
    # The value of a sample may be any number: it names nobody.
    told = re.sub(r" [0-9.e+-]+$", "", told, flags=re.MULTILINE)
    assert not [word for word in (*PRIVATE, "hunter2", "1001", "2002", "dm:") if word.lower() in told.lower()]
    labels = set(re.findall(r'(\w+)="', told))
    assert labels <= {"store", "reason", "verdict", "kind", "platform", "outcome", "step", "le", "currency"}


async def test_it_is_ready_while_the_file_takes_writes_and_platforms_and_endpoint_are_there(
    data_dir: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk, asked(talk) as client:
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()) == (200, {"ready": True, "database": True, "endpoint": True})
        monkeypatch.setattr(LLM, "resting", property(lambda _: True))
        resting = await client.get("/readyz")
        assert (resting.status_code, resting.json()["endpoint"]) == (503, False)
        assert numbers((await client.get("/metrics")).text)["recollect_endpoint_resting"] == 1
        monkeypatch.undo()
        talk.alter("CREATE TRIGGER full BEFORE INSERT ON tallies BEGIN SELECT RAISE(ABORT, 'disk full'); END")
        full = await client.get("/readyz")
        assert (full.status_code, full.json()["database"]) == (503, False)
        assert (await client.get("/healthz")).status_code == 200


class Platform:
    """An adapter that is up when told to be, and loses its connection when told to."""

    name = "test"
    repeats_for = None

    def __init__(self) -> None:
        self.up, self.end, self.connected = asyncio.Event(), asyncio.Event(), True

    async def run(self, submit: Any, commands: Any, seen: Any) -> None:
        await seen()
        self.up.set()
        await self.end.wait()
        raise AdapterError("refused")


async def test_a_platform_counts_as_connected_from_being_up_until_it_is_not(data_dir: Path, clock: Clock) -> None:
    platform: Any = Platform()
    async with talking(data_dir, clock) as talk, asked(talk) as client:
        serving = asyncio.create_task(talk.app.serve(platform))
        await platform.up.wait()
        assert (await client.get("/readyz")).json() == {"ready": True, "database": True, "platform_test": True}
        assert numbers((await client.get("/metrics")).text)["recollect_connected_test"] == 1
        platform.connected = False
        assert (await client.get("/readyz")).status_code == 503
        platform.connected = True
        platform.end.set()
        with pytest.raises(AdapterError):
            await serving
        assert (await client.get("/readyz")).json()["platform_test"] is False


async def test_what_takes_too_long_is_not_ready_and_nobody_waits(
    data_dir: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "PATIENCE", 0.01)
    stuck = asyncio.Event()

    async def never() -> dict[str, bool]:
        await stuck.wait()
        return {}

    async with talking(data_dir, clock) as talk, asked(talk) as client:
        monkeypatch.setattr(talk.app.watching, "readiness", never)
        late = await client.get("/readyz")
        assert (late.status_code, late.json()) == (503, {"ready": False, "in_time": False})
        stuck.set()


async def test_without_a_port_nothing_listens_and_a_taken_one_is_told_and_stops_nothing(
    data_dir: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    async with talking(data_dir, clock) as talk:
        async with web.pages(HttpSettings(), talk.app.watching):
            assert "cannot" not in caplog.text
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            async with web.pages(HttpSettings(port=port), talk.app.watching):
                assert f"nothing can be served on 127.0.0.1:{port}" in caplog.text


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])
def test_an_address_that_others_can_reach_has_to_be_wanted(tmp_path: Path, host: str) -> None:
    (tmp_path / "recollect.toml").write_text(f'[http]\nport = 9100\nhost = "{host}"\n')
    with pytest.raises(SettingsError, match=r"\[http\] host .*use 127.0.0.1, or say beyond_loopback = true"):
        load(cwd=tmp_path)
    wanted = f'[http]\nport = 9100\nhost = "{host}"\nbeyond_loopback = true\n'
    (tmp_path / "recollect.toml").write_text(wanted)
    assert load(cwd=tmp_path).http.host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "::1", "localhost"])
def test_an_address_of_this_machine_is_fine(host: str) -> None:
    assert HttpSettings(host=host).host == host
    with pytest.raises(ValidationError):
        HttpSettings(port=70_000)


def sample(name: str) -> float:
    """What is measured everywhere, by the name of the sample."""
    page = metrics.Page(metrics.Tallied(dict, (), lambda _in, _out: None, "")).text({}).decode()
    return numbers(page).get(name, 0.0)


async def test_floods_failures_of_the_endpoint_and_ends_of_turns_are_counted(data_dir: Path, clock: Clock) -> None:
    names = (
        "recollect_floods_total",
        "recollect_flood_seconds_total",
        'recollect_endpoint_errors_total{kind="overloaded"}',
        'recollect_turns_total{outcome="answered"}',
        'recollect_turns_total{outcome="apologised"}',
        'recollect_updates_total{platform="test"}',
        "recollect_reply_seconds_count",
    )
    before = [sample(name) for name in names]
    Gate(Tempo(), 1.0).close(7.0)
    async with OpenAIServer() as server, talking(data_dir, clock, server, model={"retries": 0}) as talk:
        server.on(reply="I see.")
        await talk.say("How is the weather today?")
        server.fault(match="/chat/completions", status=503, times=1)
        await talk.say("And how is the sea?")
    assert [sample(name) - old for name, old in zip(names, before, strict=True)] == [1, 7, 1, 1, 1, 2, 1]


async def test_a_failure_that_passes_two_borders_is_counted_once() -> None:
    name = 'recollect_endpoint_errors_total{kind="unreachable"}'
    before = sample(name)
    async with LLM("http://127.0.0.1:9/v1", None, "m", ModelSettings(retries=0, timeout_seconds=2.0)) as llm:
        picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
        with pytest.raises(LLMError):
            async for _ in llm.stream([{"role": "user", "content": picture}], max_tokens=9):
                pass
    assert sample(name) - before == 1


async def test_how_late_the_loop_is_is_measured() -> None:
    before = sample("recollect_loop_lag_seconds_count"), sample("recollect_loop_lag_seconds_sum")
    times = iter([0.0, metrics.LAG_EVERY + 0.25, 10.0])

    async def slept(seconds: float) -> None:
        assert seconds == metrics.LAG_EVERY
        if sample("recollect_loop_lag_seconds_count") > before[0]:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await metrics.watch_loop(ticks=lambda: next(times), sleep=slept)
    assert sample("recollect_loop_lag_seconds_sum") - before[1] == pytest.approx(0.25)


def test_a_label_that_is_no_word_of_ours_is_told_as_other() -> None:
    counts = {("dropped", "secret"): 2, ("dropped", "我的秘密"): 1, ("dropped", "Kim's secret\n"): 3}
    page = metrics.Page(metrics.Tallied(lambda: counts, (), lambda _in, _out: None, "")).text({}).decode()
    found = numbers(page)
    assert found['recollect_dropped_total{reason="secret"}'] == 2
    assert found['recollect_dropped_total{reason="other"}'] == 4
    assert "Kim" not in page


logging.getLogger("aiohttp").setLevel(logging.WARNING)
