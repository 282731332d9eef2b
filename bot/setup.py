"""``init``: asks for what is missing, tests each answer at once, writes what works to ``.env``."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import dotenv
import typer

from bot import discovery, logs
from bot.llm import LLM, LLMError
from bot.message import AdapterError
from bot.platforms import Platform, whose
from config.settings import ENV_FILE, Settings

Answers = dict[str, str]
"""What was found out: name in ``.env`` to value."""


def main(folder: Path, settings: Settings) -> int:
    """Ask for what ``settings`` lack and add it to ``folder``/.env. Returns the exit code."""
    answers = {
        **_model(settings),
        **_token(settings, "telegram", "Telegram bot token, from @BotFather"),
        **_token(settings, "discord", "Discord bot token, from the developer portal"),
    }
    if answers:
        write(folder / ENV_FILE, answers)
        typer.echo(f"Wrote {', '.join(answers)} to {folder / ENV_FILE}.")
    else:
        typer.echo("Nothing to write.")
    platforms = {"TELEGRAM_BOT_TOKEN", "DISCORD_BOT_TOKEN"} & answers.keys()
    serves = platforms or settings.telegram_bot_token or settings.discord_bot_token
    if serves and not settings.access.admins and settings.access.open == "no":
        typer.echo("Then write to your bot. It shows you a code: python -m bot access approve CODE lets you in.")
    typer.echo(f"Next: python -m bot {'run' if serves else 'chat'}")
    return 0


def write(file: Path, answers: Answers) -> None:
    """Set names in an env file that only its owner can read (mode 0600); every other line stays as it is."""
    os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))
    file.chmod(0o600)
    for name, value in answers.items():
        dotenv.set_key(file, name, value, quote_mode="auto")


def _model(settings: Settings) -> Answers:
    """Ask for address, key and model until they work together or nothing is entered."""
    if settings.endpoint and settings.openai_model:
        return {}
    while address := settings.endpoint or _address():
        key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else ""
        if not key and not _on_this_machine(address):
            key = _ask("API key", hidden=True)
        try:
            models = asyncio.run(_models(address, key, settings))
        except (LLMError, ValueError) as error:
            typer.echo(error.told if isinstance(error, LLMError) else str(error), err=True)
            if settings.endpoint:
                return {}
            continue
        if model := settings.openai_model or _choose("Model", models):
            found = {"OPENAI_BASE_URL": address, "OPENAI_API_KEY": key, "OPENAI_MODEL": model}
            return {name: value for name, value in found.items() if value and not getattr(settings, name.lower())}
        return {}
    typer.echo("No model: the bot answers from its memory alone.")
    return {}


def _address() -> str:
    """Offer the model servers of this machine, or take an address."""
    found = asyncio.run(discovery.find())
    for number, server in enumerate(found, 1):
        typer.echo(f"  {number}  {server.name} at {server.base_url} ({', '.join(server.models) or 'no model loaded'})")
    hint = "its number, or the address of another endpoint" if found else "address, like https://api.openai.com/v1"
    answer = _ask(f"Model endpoint ({hint})")
    return found[int(answer) - 1].base_url if answer.isdecimal() and 0 < int(answer) <= len(found) else answer


def _choose(what: str, names: Sequence[str]) -> str:
    """Let one of ``names`` be picked by number, or another be typed; a single one needs no question."""
    if len(names) == 1:
        typer.echo(f"{what}: {names[0]}")
        return names[0]
    for number, name in enumerate(names, 1):
        typer.echo(f"  {number}  {name}")
    answer = _ask(f"{what} (its number or its name)" if names else f"{what} (its name)")
    return names[int(answer) - 1] if answer.isdecimal() and 0 < int(answer) <= len(names) else answer


def _token(settings: Settings, platform: Platform, question: str) -> Answers:
    """Ask for a token until the platform knows it or nothing is entered."""
    name = f"{platform}_bot_token"
    if getattr(settings, name):
        return {}
    while token := _ask(question, hidden=True):
        try:
            typer.echo(f"That is {asyncio.run(whose(platform, token, settings))}.")
        except AdapterError as error:
            typer.echo(str(error), err=True)
        else:
            return {name.upper(): token}
    return {}


async def _models(address: str, key: str, settings: Settings) -> list[str]:
    async with LLM(address, key or None, settings.openai_model or "", settings.model) as llm:
        return await llm.models()


def _on_this_machine(address: str) -> bool:
    return any(f"//{host}" in address for host in ("127.0.0.1", "localhost", "[::1]"))


def _ask(question: str, *, hidden: bool = False) -> str:
    """Ask; Enter alone skips. What is typed unseen is kept out of the log from then on."""
    answer: str = typer.prompt(f"{question}; Enter skips", default="", show_default=False, hide_input=hidden)
    if hidden:
        logs.hide(answer.strip())
    return answer.strip()
