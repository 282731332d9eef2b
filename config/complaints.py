"""Says what is wrong with a setting in the words of whoever wrote it: file, table, key, value, fix."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import BaseModel, ValidationError

MUST: Final[Mapping[str, str]] = {
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be at most {le}",
    "less_than": "must be less than {lt}",
    "int_type": "must be a whole number, without quotes",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number, without quotes",
    "finite_number": "must be a number that is neither nan nor inf",
    "literal_error": "must be one of {expected}",
    "string_type": "must be text in quotes",
    "bool_type": "must be true or false, without quotes",
    "tuple_type": 'must be a list in brackets, like [] or ["..."]',
    "mapping_type": "must be a table of its own",
    "path_type": "must be the name of a folder in quotes",
    "model_type": "must be a table of its own: begin it with a line [{name}]",
    "value_error": "{error}",
}
"""What the value has to be, by pydantic's error type; the braces are filled from the error's context."""

SHOWN: Final = 80
"""Longest value that is repeated in a complaint, characters."""


def complaints(error: ValidationError, model: type[BaseModel], *, file: str, names: Iterable[str]) -> list[str]:
    """Return one line for each fault ``error`` holds about ``model``, a model of tables in ``file``.

    ``names`` are the fields that come from the environment; their values are never shown, for they may
    be secrets.
    """
    named = set(names)
    return [
        _of_name(str(fault["loc"][0]), fault) if fault["loc"][0] in named else _of_key(fault, model, file)
        for fault in error.errors(include_url=False)
    ]


def misplaced(table: Mapping[str, Any], names: Iterable[str], *, file: str) -> list[str]:
    """Return one line for each name of the environment that was written into ``file`` instead."""
    named = set(names)
    return [f"{file}: {key} belongs in .env, not here" for key in table if key.lower() in named]


def _must(fault: Mapping[str, Any]) -> str:
    pattern = MUST.get(fault["type"])
    if pattern is None:
        return str(fault["msg"])
    return pattern.format(**{**fault.get("ctx", {}), "name": fault["loc"][-1]})


def _of_name(name: str, fault: Mapping[str, Any]) -> str:
    return f"{name.upper()} {_must(fault)}"


def _of_key(fault: Mapping[str, Any], model: type[BaseModel], file: str) -> str:
    place = fault["loc"]
    # pydantic's own mark behind a key that is wrong itself; an unknown key may be spelt so, too.
    marked = place[-1] == "[key]" and fault["type"] != "extra_forbidden"
    *tables, key = map(str, place[:-1] if marked else place)
    where = f"{file}: [{tables[0]}] {key}" if tables else f"{file}: {key}"
    if fault["type"] == "extra_forbidden":
        return f"{where} is not a setting{_closest(key, tables, model, fault['input'])}"
    return f"{where}{_shown(fault['input'])}: {_must(fault)}"


def _shown(value: object) -> str:
    """Return `` = value`` as it is written in TOML, unless it is long or may hold a password."""
    if not isinstance(value, bool | int | float | str) or "@" in str(value) or len(str(value)) > SHOWN:
        return ""
    return f" = {value if isinstance(value, float) else json.dumps(value, ensure_ascii=False)}"


def _closest(key: str, tables: list[str], model: type[BaseModel], value: object) -> str:
    """Return a hint at the known key that looks most like ``key``, in its own table or in another."""
    known = keys(model)
    if isinstance(value, Mapping):
        found = difflib.get_close_matches(key, {table for table, _ in known if table}, n=1)
        return f"; did you mean [{found[0]}]?" if found else ""
    here = [name for table, name in known if table == (tables[0] if tables else "")]
    if found := difflib.get_close_matches(key, here, n=1):
        return f"; did you mean {found[0]}?"
    elsewhere = [table for table, name in known if name == key]
    if elsewhere:
        return f" of this table; it belongs under [{elsewhere[0]}]" if elsewhere[0] else "; move it to the top"
    return f"; known here: {', '.join(sorted(here))}"


def keys(model: type[BaseModel]) -> list[tuple[str, str]]:
    """Return every (table, key) of a model of tables; the table of a key at the top is ``""``."""
    found: list[tuple[str, str]] = []
    for name, field in model.model_fields.items():
        table = field.annotation
        if isinstance(table, type) and issubclass(table, BaseModel):
            found += [(name, key) for key in table.model_fields]
        else:
            found.append(("", name))
    return found
