"""What people read: phrases by dotted key in ``config/locales/{en,zh}.toml``, each a small template.

Traditional Chinese is made of zh.toml (:mod:`config.traditional`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from config.templates import Language, PromptError, Spoken, Template, spoken, written
from config.traditional import traditional

__all__ = ["PromptError", "catalogue", "phrase"]


def _flatten(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


@cache
def _texts(language: Language) -> Mapping[str, str]:
    """The source of every phrase of a file by its dotted key. Raises PromptError for what is no text."""
    filename = f"{language}.toml"
    table = tomllib.loads(files("config").joinpath("locales", filename).read_text(encoding="utf-8"))
    texts = {}
    for key, text in _flatten(table):
        if not isinstance(text, str):
            raise PromptError(f"{filename}: {key} is no text")
        texts[key] = text
    return texts


@cache
def _template(language: Spoken, key: str) -> Template:
    """One phrase, compiled when it is first said: all of them take half a second, in which nobody is answered.

    Raises PromptError for a key that is not there, and for a broken or odd phrase.
    """
    filename = f"{written(language)}.toml"
    text = _texts(written(language)).get(key)
    if text is None:
        raise PromptError(f"{filename}: there is no {key}")
    return Template(f"{filename}: {key}", traditional(text) if language == "zh-TW" else text)


def catalogue(language: Spoken) -> Mapping[str, Template]:
    """Return every phrase of a language by its dotted key. Raises PromptError for a broken or odd phrase."""
    return {key: _template(language, key) for key in _texts(written(language))}


def phrase(key: str, language: str, **values: object) -> str:
    """Say ``key`` ("forget.none") in the language of a BCP 47 tag (Chinese of either script, else English).

    Raises PromptError, which names file, key and variable, for an unknown key, a variable without a value
    and a value without a variable.
    """
    return _template(spoken(language), key).render(values).strip("\n")
