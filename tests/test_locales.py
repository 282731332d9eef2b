"""What people read is there in every language and script, and in the right script."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from config import locales
from config.templates import spoken
from config.traditional import OVERRIDES, _converter, traditional
from memory.script import _script_of, chinese

ROOT = Path(__file__).parent.parent
SPOKEN = ("en", "zh", "zh-TW")
OWN_NAMES = {"language.button_zh", "language.button_zh-TW"}
"""A script is named in itself, whoever reads it."""
LATIN_ONLY = {"language.button_en", "help", "time.moment"}


def source(language: str) -> dict[str, str]:
    """The phrases as they stand in the file, converted where the language is."""
    table = tomllib.loads((ROOT / f"config/locales/{language[:2]}.toml").read_text(encoding="utf-8"))
    found = {key: str(text) for key, text in locales._flatten(table)}
    return {key: traditional(text) for key, text in found.items()} if language == "zh-TW" else found


def asked_for() -> tuple[set[str], set[str]]:
    """The keys that code asks for: whole ones, and beginnings of those that are put together."""
    whole: set[str] = set()
    begun: set[str] = set()
    for path in [*(ROOT / "bot").rglob("*.py"), *(ROOT / "memory").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                whole.add(node.value)
            if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
                begun.add(str(node.values[0].value))
    return whole, {start for start in begun if re.fullmatch(r"[a-z_]+\.[a-z_]*", start)}


def keys_in_calls() -> set[str]:
    """The keys that stand in a call of phrase()."""
    found = set()
    for path in (ROOT / "bot").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "phrase":
                asked = node.args[0]
                either = [asked.body, asked.orelse] if isinstance(asked, ast.IfExp) else [asked]
                found |= {str(key.value) for key in either if isinstance(key, ast.Constant)}
    return found


@pytest.mark.parametrize("language", SPOKEN)
def test_every_key_that_code_asks_for_is_in_every_language(language: str) -> None:
    known = set(locales.catalogue(spoken(language)))
    asked = keys_in_calls()
    assert len(asked) > 40
    assert asked - known == set()


def test_every_phrase_is_asked_for_somewhere() -> None:
    whole, begun = asked_for()
    unused = {key for key in locales.catalogue("en") if key not in whole and not key.startswith(tuple(begun))}
    assert unused == set()


@pytest.mark.parametrize("language", ["zh", "zh-TW"])
def test_chinese_has_every_phrase_of_english_with_the_same_values(language: str) -> None:
    english, chinese_ = locales.catalogue("en"), locales.catalogue(spoken(language))
    assert {k: v.variables for k, v in chinese_.items()} == {k: v.variables for k, v in english.items()}


@pytest.mark.parametrize(("language", "sign"), [("zh", 1), ("zh-TW", -1)])
def test_no_phrase_holds_a_character_of_the_other_script(language: str, sign: int) -> None:
    wrong = {
        key: "".join(character for character in text if _script_of(character) == sign)
        for key, text in source(language).items()
        if key not in OWN_NAMES
    }
    assert {key: signs for key, signs in wrong.items() if signs} == {}


def test_no_chinese_phrase_was_left_in_english_nor_the_other_way_round() -> None:
    english, simplified = source("en"), source("zh")
    assert {key for key, text in simplified.items() if not re.search(r"[\u4e00-\u9fff]", text)} <= LATIN_ONLY
    assert {key for key, text in english.items() if re.search(r"[\u4e00-\u9fff]", text)} == OWN_NAMES


@pytest.mark.parametrize(
    "odd",
    ["東西里", "這里", "那里", "里面", "以后", "后來", "最后", "回復", "干什麼", "一只", "“",
     "連線", "視頻", "信息"],
)  # fmt: skip
def test_traditional_phrases_hold_none_of_the_usual_slips(odd: str) -> None:
    assert [key for key, text in source("zh-TW").items() if odd in text] == []


def test_every_correction_of_the_conversion_is_needed() -> None:
    converted = "\n".join(_converter().convert(text) for text in source("zh").values())
    assert [wrong for wrong in OVERRIDES if wrong not in converted] == []


def test_the_words_of_people_in_a_phrase_stay_as_they_wrote_them() -> None:
    said = locales.phrase("forget.none", "zh-TW", words="软件", private=True)
    assert said == "沒有找到含有「软件」的內容；什麼都沒有刪。/whatdoyouknow 可以看有哪些。"


@pytest.mark.parametrize(
    ("tag", "tongue"),
    [("zh", "zh"), ("zh-CN", "zh"), ("zh-Hans-TW", "zh"), ("zh-hans", "zh"), ("zh-hant", "zh-TW"),
     ("zh_TW.UTF-8", "zh-TW"), ("zh-HK", "zh-TW"), ("zh-MO", "zh-TW"), ("zh-Hant-CN", "zh-TW"),
     ("tw", "en"), ("en-HK", "en"), ("", "en")],
)  # fmt: skip
def test_a_tag_of_a_platform_tells_the_script(tag: str, tongue: str) -> None:
    assert spoken(tag) == tongue


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("我對花粉過敏", "zh-TW"),
        ("我对花粉过敏", "zh"),
        ("你好", None),
        ("我住在台北的群里", None),
        ("皇后飯店", "zh-TW"),
        ("乾隆", None),
        ("I said hello", None),
        ("她說这个", "zh"),
        ("说說", None),
    ],
)
def test_a_text_shows_its_script_by_what_only_one_of_them_has(text: str, script: str | None) -> None:
    assert chinese(text) == script
