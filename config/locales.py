"""What people read: phrases by dotted key in ``config/locales/{en,zh}.toml``, each a small template.

Traditional Chinese is made of zh.toml (:mod:`config.traditional`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from config.templates import PromptError, Spoken, Template, spoken, written
from config.traditional import traditional

__all__ = ["PromptError", "catalogue", "phrase"]


def _flatten(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


@cache
def catalogue(language: Spoken) -> Mapping[str, Template]:
    """Return every phrase of a language by its dotted key. Raises PromptError for a broken or odd phrase."""
    filename = f"{written(language)}.toml"
    table = tomllib.loads(files("config").joinpath("locales", filename).read_text(encoding="utf-8"))
    phrases = {}
    for key, text in _flatten(table):
        if not isinstance(text, str):
            raise PromptError(f"{filename}: {key} is no text")
        phrases[key] = Template(f"{filename}: {key}", traditional(text) if language == "zh-TW" else text)
    return phrases


def phrase(key: str, language: str, **values: object) -> str:
    """Say ``key`` ("forget.none") in the language of a BCP 47 tag (Chinese of either script, else English).

    Raises PromptError, which names file, key and variable, for an unknown key, a variable without a value
    and a value without a variable.
    """
    found = catalogue(spoken(language)).get(key)
    if found is None:
        raise PromptError(f"{written(language)}.toml: there is no {key}")
    return found.render(values).strip("\n")
