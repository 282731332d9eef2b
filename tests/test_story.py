"""The product in one story, with the bundled embedder: said, started again, recalled by meaning, forgotten, gone."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bot.replay import replay
from config.settings import Settings
from memory.words import terms
from tests.servers.openai_server import OpenAIServer

Json = dict[str, Any]

BEGIN = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
STATEMENTS = (Path(__file__).parent / "cases" / "story_zh.txt").read_text(encoding="utf-8").split()
GYM, WHERE = "我每周三下午都在力健练背", "我一般去哪儿健身"
POLLEN, ALLERGIC = "我对花粉过敏", "我有什么过敏症状"


def said(*texts: str, hours: float = 0) -> list[Json]:
    """Messages of one person, a minute apart, from ``hours`` after the beginning on."""
    start = BEGIN + timedelta(hours=hours)
    return [
        {
            "at": (start + timedelta(minutes=n)).isoformat(),
            "platform": "console",
            "chat": "dm:1001",
            "user": "1001",
            "id": f"{hours}-{n}",
            "text": text,
        }
        for n, text in enumerate(texts)
    ]


async def play(data: Path, lines: list[Json], server: OpenAIServer | None = None) -> list[Json]:
    """Start the bot over ``data``, play lines, stop it; returns what came of each."""
    settings = Settings(
        data_dir=data,
        zone="Asia/Shanghai",
        openai_base_url=server.base_url if server else None,
        openai_model="scripted" if server else None,
    )
    out = io.StringIO()
    assert await replay(settings, io.StringIO("\n".join(map(json.dumps, lines))), out) == 0
    return [json.loads(line) for line in out.getvalue().splitlines()]


def files(folder: Path) -> dict[str, bytes]:
    """Every file of the data folder."""
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def runs(text: str) -> set[str]:
    """Every run of two characters."""
    return {text[n : n + 2] for n in range(len(text) - 1)}


async def test_a_second_start_recalls_the_first_by_meaning_without_a_model(tmp_path: Path) -> None:
    assert len(STATEMENTS) > 30
    assert not runs(GYM) & runs(WHERE)
    await play(tmp_path, said(*STATEMENTS))
    allergic, where, capital = await play(tmp_path, said(ALLERGIC, WHERE, "法国的首都是哪里", hours=24))

    assert POLLEN in allergic["replies"][0]
    assert GYM in where["replies"][0]
    assert GYM not in capital["replies"][0]
    asked_for = [unit for unit in where["trace"]["recalled"] if unit["band"] != "always"]
    assert asked_for[0]["text"] == GYM
    scores = asked_for[0]["scores"]
    assert scores["meaning"] > 3 * max(scores["words"], 0.0), "the vectors decided, not the words"
    assert set(terms(GYM)) & set(terms(WHERE)) <= {"我", "健"}


async def test_the_recalled_block_reaches_a_model_as_data(tmp_path: Path) -> None:
    await play(tmp_path, said(*STATEMENTS))
    async with OpenAIServer() as server:
        server.on("新的：", reply='{"items": []}')
        server.on("健身", reply="你一般在力健练。", when_prompt_contains=GYM)
        (where,) = await play(tmp_path, said(WHERE, hours=24), server)
        distilled, request = server.chats
    assert GYM in distilled.body["messages"][-1]["content"]
    assert where["replies"] == ["你一般在力健练。"]
    system, asked = request.body["messages"]
    assert GYM not in system["content"]
    assert asked["content"].count("<memories>") == 1
    assert GYM in asked["content"].split("</memories>")[0]
    assert asked["content"].endswith(WHERE)


async def test_what_is_forgotten_is_in_no_file_ten_minutes_later(tmp_path: Path) -> None:
    await play(tmp_path, said(*STATEMENTS))
    offer, hidden, after = await play(tmp_path, said("/forget 花粉", "/forget 是", ALLERGIC, hours=24))
    assert "过敏：花粉" in offer["replies"][0]
    assert "1 条记忆" in hidden["replies"][0]
    assert "花粉" not in json.dumps(after, ensure_ascii=False)

    erased, listed = await play(tmp_path, [{"advance": 0}, *said("/whatdoyouknow", hours=25)])
    assert "没有找到任何残留" in json.dumps([erased, listed], ensure_ascii=False)
    assert "花粉" not in json.dumps(listed, ensure_ascii=False)
    for name, content in files(tmp_path).items():
        assert "花粉".encode() not in content, name
    (dump,) = await play(tmp_path, [{"dump": "1001", "platform": "console"}])
    assert "绍兴" in json.dumps(dump, ensure_ascii=False)
