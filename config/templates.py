"""Texts with holes, strict both ways: a hole nobody fills and a value nobody asked for are errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import jinja2
import jinja2.meta

Language = Literal["en", "zh"]
"""What we write texts in."""
Spoken = Literal["en", "zh", "zh-TW"]
"""What people read: traditional Chinese ("zh-TW") is made of the simplified texts."""

_TRADITIONAL: Final = frozenset({"hant", "tw", "hk", "mo"})

# Nothing here is HTML: escaping would only garble what people said. Values are data, never templates.
_ENVIRONMENT = jinja2.Environment(
    undefined=jinja2.StrictUndefined,
    autoescape=False,  # noqa: S701
    trim_blocks=True,
    lstrip_blocks=True,
)


class PromptError(Exception):
    """A text of ours and its caller do not fit; names the text and the variable."""


def written(language: str) -> Language:
    """Return the language our texts are written in that serves a BCP 47 tag: "zh" for Chinese, else "en"."""
    return "zh" if _parts(language)[0] == "zh" else "en"


def spoken(language: str) -> Spoken:
    """Return what serves a BCP 47 tag best: "zh-TW" for traditional Chinese (zh-Hant, zh-HK ...), "zh", else "en"."""
    tongue, *rest = _parts(language)
    if tongue != "zh":
        return "en"
    return "zh-TW" if "hans" not in rest and not _TRADITIONAL.isdisjoint(rest) else "zh"


def _parts(language: str) -> list[str]:
    """The parts of a tag or a POSIX locale (zh_TW.UTF-8)."""
    return language.partition(".")[0].lower().replace("_", "-").split("-")


class Template:
    """One text, compiled. ``name`` is what errors call it; ``variables`` are the values it takes."""

    def __init__(self, name: str, source: str) -> None:
        """Compile ``source``. Raises PromptError when it is no Jinja2 template."""
        try:
            syntax = _ENVIRONMENT.parse(source, name=name)
        except jinja2.TemplateSyntaxError as error:
            raise PromptError(f"{name}, line {error.lineno}: {error.message}") from error
        self.name = name
        self.variables = frozenset(jinja2.meta.find_undeclared_variables(syntax))
        self._compiled = jinja2.Template.from_code(_ENVIRONMENT, _ENVIRONMENT.compile(syntax, name=name), {})

    def render(self, values: Mapping[str, object]) -> str:
        """Fill in ``values``. Raises PromptError for a variable without a value or a value without a use."""
        if missing := sorted(self.variables - values.keys()):
            raise PromptError(f"{self.name}: no value for {', '.join(missing)}")
        if unused := sorted(values.keys() - self.variables):
            raise PromptError(f"{self.name}: never uses {', '.join(unused)}")
        try:
            return self._compiled.render(values)
        except jinja2.TemplateError as error:
            raise PromptError(f"{self.name}: {error.message}") from error
