"""The slash commands as Discord takes them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from bot.message import CommandSpec

OPTION: Final = "text"
"""Name of the one option of a slash command; what a person writes there follows the command's name."""
OPTION_NAMES: Final = {"zh": "内容", "zh-TW": "內容"}
"""What people see of that name; Discord sends the plain one all the same."""
DESCRIBED: Final = 100
"""Characters in a description (Discord API reference, Create Global Application Command)."""

_LOCALES: Final = {"zh-CN": ("zh",), "zh-TW": ("zh-TW", "zh")}
"""Discord's locales, and our languages for each, best first; English is what Discord falls back to."""
_CHAT_INPUT: Final = 1
_STRING: Final = 3
_SERVERS: Final = 0
_BOT_DM: Final = 1


def menu(commands: Iterable[CommandSpec]) -> list[dict[str, Any]]:
    """Return the payload that registers these commands for everyone: private ones in private chats alone."""
    return [
        {
            "name": command.name,
            "type": _CHAT_INPUT,
            "contexts": [_BOT_DM] if command.private else [_SERVERS, _BOT_DM],
            "options": [
                {
                    "name": OPTION,
                    "name_localizations": _localised(OPTION_NAMES),
                    "type": _STRING,
                    "required": False,
                    **_described(command),
                }
            ],
            **_described(command),
        }
        for command in commands
    ]


def is_current(present: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]]) -> bool:
    """Whether Discord has what is wanted already, whatever it adds of its own and whatever empty it leaves out."""
    has, wants = ({command["name"]: _bare(command) for command in commands} for commands in (present, wanted))
    return has == wants


def typed(data: Mapping[str, Any]) -> str:
    """Return a slash command as if it had been typed; ``data`` is that of the interaction."""
    words = (str(option["value"]) for option in data.get("options", ()) if option["name"] == OPTION)
    return " ".join((f"/{data['name']}", *words))


def _described(command: CommandSpec) -> dict[str, Any]:
    described = {language: text[:DESCRIBED] for language, text in command.descriptions.items() if text}
    return {
        "description": described.get("en", command.name),
        "description_localizations": _localised(described),
    }


def _localised(texts: Mapping[str, str]) -> dict[str, str]:
    """Discord's locales with the best text there is for each."""
    best = {locale: next((texts[one] for one in ours if one in texts), None) for locale, ours in _LOCALES.items()}
    return {locale: text for locale, text in best.items() if text is not None}


def _bare(command: Mapping[str, Any]) -> dict[str, Any]:
    """What we say of a command or of an option of it, and nothing else."""
    return {
        "name": command["name"],
        "description": command["description"],
        "contexts": sorted(command.get("contexts") or ()),
        "names": command.get("name_localizations") or {},
        "descriptions": command.get("description_localizations") or {},
        "options": [_bare(option) for option in command.get("options") or ()],
    }
