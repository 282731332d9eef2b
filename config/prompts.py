"""What the model is told: one Markdown file a prompt and language, in ``config/prompts``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from config.templates import PromptError, Template, written

__all__ = ["PromptError", "render"]


@cache
def _template(filename: str) -> Template:
    try:
        source = files("config").joinpath("prompts", filename).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise PromptError(f"config/prompts/{filename} is missing") from error
    return Template(filename, source)


def render(name: str, language: str, **values: object) -> str:
    """Fill in the prompt ``name`` in the language of a BCP 47 tag (Chinese, else English).

    Returns the text without outer blank lines. Raises PromptError, which names the file and the variable,
    for a missing file, a variable without a value and a value without a variable.
    """
    return _template(f"{name}.{written(language)}.md").render(values).strip()
