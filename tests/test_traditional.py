"""Somebody who writes traditional Chinese: the whole bot speaks as they write, and memory works as for all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Clock
from tests.servers.openai_server import OpenAIServer
from tests.talk import talking


async def test_the_platform_tells_the_script_before_a_word_is_written(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        told = await talk.say("/start", language="zh-hant")
        assert told.splitlines()[0] == "你好，我是 Recollect。你告訴我的關於你自己的事，我會記住，只為你一個人。"
        assert (await talk.owner()).language == "zh-TW"


async def test_what_somebody_writes_tells_the_script_whatever_the_platform_says(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        assert "記下了：我對花粉過敏。" in await talk.say("我對花粉過敏", language="zh-hans")
        assert "1. 過敏：花粉（2026-03-02 你說的）" in await talk.say("/whatdoyouknow", language="zh-hans")
        assert "没有" in await talk.say("这个问题没有关系吗？那我们说说别的", language="zh-hans")


async def test_rules_read_traditional_words_the_chinese_way_and_keep_them_as_written(
    data_dir: Path, clock: Clock
) -> None:
    async with talking(data_dir, clock) as talk:
        for said in ("我叫陳小明", "我對蝦子過敏", "我住在臺北", "我最喜歡的顏色是藍色", "我妹妹對貓過敏"):
            await talk.say(said)
        assert await talk.texts() == [
            "我的名字叫陳小明",
            "我對蝦子過敏",
            "我住在臺北",
            "我最喜歡的顏色是藍色",
            "妹妹對貓過敏",
        ]
        await talk.say("我不住在臺北了，我搬到高雄了")
        assert "我住在高雄" in await talk.texts()


async def test_recall_finds_the_same_whichever_script_the_question_is_in(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        for said in ("我對花生過敏", "我住在臺北", "/remember 我的自行車放在地下室"):
            await talk.say(said)
        await talk.say("/new")
        for asked in ("我的自行車在哪裡？", "我的自行车在哪里？"):
            told = await talk.say(asked)
            assert "我的自行車放在地下室" in told, asked
        await talk.say("/language 繁體")
        assert "關於這件事，我記得：" in await talk.say("我的自行车在哪里？")


async def test_the_model_is_told_which_script_to_answer_in(data_dir: Path, clock: Clock) -> None:
    async with OpenAIServer() as server, talking(data_dir, clock, server) as talk:
        server.on(reply="ok")

        async def told(said: str) -> str:
            await talk.say(said)
            return str(server.chats[-1].messages[0]["content"])

        assert "写中文时用简体中文" in await told("我们说说天气吧")
        assert "写中文时用繁體中文" in await told("我們說說天氣吧")
        await talk.say("/language english")
        assert "Always in English, whatever language a message is in" in await told("我們說說天氣吧")
        await talk.say("/language zh-TW")
        assert "一律用繁體中文" in await told("Let us talk of the weather, please")


@pytest.mark.parametrize(
    ("words", "language", "said"),
    [
        ("繁體", "zh-TW", "從現在起我用中文回答你。"),
        ("繁体", "zh-TW", "從現在起我用中文回答你。"),
        ("Traditional", "zh-TW", "從現在起我用中文回答你。"),
        ("zh-TW", "zh-TW", "從現在起我用中文回答你。"),
        ("简体", "zh", "从现在起我用中文回答你。"),
        ("中文", "zh", "从现在起我用中文回答你。"),
    ],
)
async def test_a_script_can_be_chosen_and_stays(
    data_dir: Path, clock: Clock, words: str, language: str, said: str
) -> None:
    async with talking(data_dir, clock) as talk:
        assert await talk.say(f"/language {words}") == said
    async with talking(data_dir, clock) as talk:
        await talk.say("Let us talk about the weather now")
        owner = await talk.owner()
        assert (owner.language, owner.language_fixed) == (language, True)


async def test_a_button_chooses_the_script_and_chinese_alone_keeps_the_one_somebody_has(
    data_dir: Path, clock: Clock
) -> None:
    async with talking(data_dir, clock) as talk:
        (offer,) = await talk.ask("/language")
        labels = {button.id: button.label for button in offer.buttons}
        assert labels["language:zh-TW"] == "繁體中文"
        assert await talk.press("language:zh-TW") == "從現在起我用中文回答你。"
        assert await talk.say("/language 中文") == "從現在起我用中文回答你。"
        assert (await talk.owner()).language == "zh-TW"


async def test_the_receipt_of_an_erasure_comes_in_the_script_of_its_reader(data_dir: Path, clock: Clock) -> None:
    async with talking(data_dir, clock) as talk:
        await talk.say("我對花生過敏")
        assert "將會忘掉：" in await talk.say("/forget 花生")
        assert "已經立刻藏起來：1 條記憶、你的 1 條訊息" in await talk.say("/forget 是")
