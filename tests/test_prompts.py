from __future__ import annotations

from importlib.resources import files

import pytest

from config import locales, prompts
from config.templates import PromptError, Template, written

SYSTEM = {"person": "Lin", "now": "Tuesday, 2025-03-11, 14:00 (Asia/Shanghai)", "persona": "Be dry."}
TONGUE = {"fixed": False, "tongue": "Latin"}


def test_a_variable_without_a_value_is_an_error_that_names_file_and_variable() -> None:
    with pytest.raises(PromptError, match=r"system\.en\.md: no value for person, persona"):
        prompts.render("system", "en", now="noon", **TONGUE)


def test_a_value_without_a_use_is_an_error_that_names_file_and_variable() -> None:
    with pytest.raises(PromptError, match=r"system\.zh\.md: never uses mood"):
        prompts.render("system", "zh", **SYSTEM, **TONGUE, mood="good")


def test_a_prompt_that_does_not_exist_is_an_error_that_names_the_file() -> None:
    with pytest.raises(PromptError, match=r"nowhere\.en\.md is missing"):
        prompts.render("nowhere", "en")


def test_a_broken_template_names_its_line() -> None:
    with pytest.raises(PromptError, match="broken, line 2"):
        Template("broken", "fine\n{{ not")


def test_an_attribute_that_is_not_there_is_an_error() -> None:
    with pytest.raises(PromptError, match="odd: "):
        Template("odd", "{{ thing.missing }}").render({"thing": "text"})


def test_a_value_is_never_read_as_a_template() -> None:
    assert Template("t", "{{ said }}").render({"said": "{{ 7 * 7 }} <b>"}) == "{{ 7 * 7 }} <b>"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_system_prompt_holds_person_time_and_persona(language: str) -> None:
    text = prompts.render("system", language, **SYSTEM, **TONGUE)
    assert all(value in text for value in SYSTEM.values())
    assert "/forget" in text


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_system_prompt_has_no_gap_where_a_value_is_empty(language: str) -> None:
    text = prompts.render("system", language, person="", now="noon", persona="", **TONGUE)
    assert "\n\n\n" not in text
    assert "noon" in text


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_system_prompt_names_the_language_that_a_person_fixed(language: str) -> None:
    text = prompts.render("system", language, **SYSTEM, fixed=True, tongue="Latin")
    assert "Latin" in text
    assert text != prompts.render("system", language, **SYSTEM, **TONGUE)


@pytest.mark.parametrize(
    ("tag", "language"),
    [
        ("zh", "zh"),
        ("zh-TW", "zh"),
        ("zh_Hans_CN", "zh"),
        ("ZH-cn", "zh"),
        ("en-GB", "en"),
        ("fr", "en"),
        ("", "en"),
    ],
)
def test_a_language_tag_falls_back_to_what_we_write(tag: str, language: str) -> None:
    assert written(tag) == language


def test_every_prompt_exists_in_both_languages_with_the_same_variables() -> None:
    names = {path.name for path in files("config").joinpath("prompts").iterdir() if path.name.endswith(".md")}
    for stem in {name.split(".")[0] for name in names}:
        english, chinese = f"{stem}.en.md", f"{stem}.zh.md"
        assert {english, chinese} <= names
        assert prompts._template(english).variables == prompts._template(chinese).variables, stem


def test_phrases_have_the_same_keys_and_variables_in_both_languages() -> None:
    english, chinese = locales.catalogue("en"), locales.catalogue("zh")
    assert english.keys() == chinese.keys()
    assert {k: v.variables for k, v in english.items()} == {k: v.variables for k, v in chinese.items()}


def test_a_phrase_is_said_in_the_language_of_the_person() -> None:
    values = {"date": "2025-03-11", "weekday": "星期二", "time": "14:00", "zone": "Asia/Shanghai"}
    assert locales.phrase("time.moment", "zh-TW", **values) == "2025-03-11 星期二 14:00（Asia/Shanghai）"
    assert locales.phrase("time.weekdays", "fr").startswith("Monday,")


def test_an_unknown_phrase_and_a_phrase_left_incomplete_are_errors() -> None:
    with pytest.raises(PromptError, match=r"en\.toml: there is no time\.never"):
        locales.phrase("time.never", "en")
    with pytest.raises(PromptError, match=r"zh\.toml: time\.moment: no value for date"):
        locales.phrase("time.moment", "zh", weekday="", time="", zone="")
