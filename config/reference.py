"""Prints the settings as files to copy: ``python -m config.reference > recollect.example.toml``.

``--env`` prints ``.env.example`` instead. Both are made from the models alone; a test compares them.
"""

from __future__ import annotations

import json
import sys

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from config.settings import Credentials, Section, Settings

TOML_HEAD = """\
# Copy this file to recollect.toml and take the "#" from the lines you change.
# Every key is here, with its default. Tokens and keys belong in .env.
"""
UNSET = "  # an example; unset by default"
ENV_HEAD = """\
# Copy this file to .env, or let `python -m bot init` write it. Every line may stay empty.
"""


def example_toml() -> str:
    """Return ``recollect.example.toml``: every key, commented out, with its default and its meaning."""
    own = {name: field for name, field in Settings.model_fields.items() if name not in Credentials.model_fields}
    free = {name: field for name, field in own.items() if field.default == {}}
    top = {name: field for name, field in own.items() if _section(field) is None and name not in free}
    parts = [TOML_HEAD, _lines(top)]
    for name, field in free.items():
        example: dict[str, str] = (field.examples or [{}])[0]
        given = "".join(f"#{json.dumps(key)} = {json.dumps(value)}{UNSET}\n" for key, value in example.items())
        parts.append(f"[{name}]  # {(field.description or '').rstrip('.')}\n{given}")
    for name, field in own.items():
        if (section := _section(field)) is not None:
            about = (section.__doc__ or "").partition(": ")[2]
            parts.append(f"[{name}]  # {about.rstrip('.')}\n{_lines(section.model_fields)}")
    return "\n".join(parts)


def example_env() -> str:
    """Return ``.env.example``: every name, empty, with its meaning."""
    lines = [f"# {field.description}\n{name.upper()}=\n" for name, field in Credentials.model_fields.items()]
    return "\n".join([ENV_HEAD, *lines])


def _section(field: FieldInfo) -> type[BaseModel] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def _lines(fields: dict[str, FieldInfo]) -> str:
    return "".join(f"# {field.description}\n#{name} = {_value(field)}\n" for name, field in fields.items())


def _value(field: FieldInfo) -> str:
    if field.default is None:
        return f"{json.dumps((field.examples or [''])[0])}{UNSET}"
    return json.dumps(field.default, default=str, ensure_ascii=False)


if __name__ == "__main__":
    sys.stdout.write(example_env() if "--env" in sys.argv else example_toml())
