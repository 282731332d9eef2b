"""``check``: whether everything is ready, a line each, and what to do where it is not."""

from __future__ import annotations

import asyncio
import difflib
import os
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final, Protocol
from zoneinfo import ZoneInfo

import httpx2
from pydantic import SecretStr

from bot import logs
from bot.endpoint import HINTS
from bot.finding import Finding
from bot.llm import LLM, LLMError, PicturesRefused, normalise_base_url
from bot.message import AdapterError
from bot.platforms import Platform, whose
from bot.premises import look_at_premises
from bot.tokens import token_counter
from bot.zone import zone_of
from config.settings import ENV_FILE, Settings, SettingsError, load
from memory import DATABASE_NAME, DatabaseError, inspect, last_runs, loose_files
from memory.ports import Clock, Embedder, EmbedderUnavailable

SKEW: Final = timedelta(minutes=1)
"""A clock further off than this puts wrong dates into memories."""
PERSONA_SHARE: Final = 0.1
"""Of the context: a persona that takes more than this leaves the talk too little."""
PATIENCE: Final = 10.0
"""Longest wait for the date of the endpoint, seconds."""


class ClosableEmbedder(Embedder, Protocol):
    """An embedder that holds connections."""

    async def aclose(self) -> None:
        """Close them."""


async def examine(
    folder: Path,
    *,
    clock: Clock,
    embedder: Callable[[Settings], ClosableEmbedder | None],
    data_dir: Path | None = None,
) -> list[Finding]:
    """Look at everything the settings of ``folder`` name; ``embedder`` builds what they ask for."""
    try:
        settings = load(cwd=folder, overrides={"data_dir": data_dir} if data_dir else None)
    except SettingsError as error:
        return [Finding("fail", "settings", line, settings=True) for line in str(error).splitlines()]
    return [
        *look_at_files(folder, settings),
        *look_at_persona(settings),
        *await asyncio.to_thread(look_at_premises, settings, clock=clock),
        *look_at_access(settings),
        await asyncio.to_thread(look_at_database, settings.data_dir / DATABASE_NAME),
        *await asyncio.to_thread(look_at_jobs, settings.data_dir / DATABASE_NAME),
        *await look_at_model(settings),
        await look_at_clock(settings, clock=clock),
        await look_at_embedder(lambda: embedder(settings)),
        *await look_at_platforms(settings),
    ]


def look_at_files(folder: Path, settings: Settings) -> list[Finding]:
    """Whether the settings are read, and by their owner alone."""
    sealed = "" if settings.recollect_key is None else ", encrypted"
    findings = [Finding("ok", f"settings: data in {settings.data_dir.absolute()}{sealed}")]
    for loose in loose_files(settings.data_dir):
        fix = f"chmod {700 if loose.is_dir() else 600} {loose}"
        findings.append(Finding("warn", f"{loose} can be read by others on this machine", fix))
    env = folder / ENV_FILE
    if env.exists() and stat.S_IMODE(env.stat().st_mode) & (stat.S_IRWXG | stat.S_IRWXO):
        findings.append(Finding("warn", f"{env} can be read by others on this machine", f"chmod 600 {env}"))
    return findings


def look_at_persona(settings: Settings) -> list[Finding]:
    """For whom there is a persona, and whether one leaves the talk its room; nothing where there is none."""
    texts = [text for text in (settings.persona, *settings.personas.values()) if text]
    if not texts:
        return []
    places = [*(["everywhere else"] if settings.persona else []), *settings.personas]
    longest = max(map(token_counter(settings.openai_model), texts))
    told = f"persona: {', '.join(places) if settings.personas else 'one for all'}, at most {longest:,} tokens"
    if longest > settings.model.context_tokens * PERSONA_SHARE:
        return [
            Finding(
                "warn", told, f"it goes with every request; {settings.model.context_tokens:,} tokens is all there is"
            )
        ]
    return [Finding("ok", told)]


def look_at_access(settings: Settings) -> list[Finding]:
    """Who may talk on the platforms; nothing where none is set up."""
    if settings.telegram_bot_token is None and settings.discord_bot_token is None:
        return []
    if settings.access.open == "everybody":
        told = "access: everybody who finds the bot may talk to it, at your cost"
        return [Finding("warn", told, "take [access] open out, unless the bot is meant to be public")]
    return [Finding("ok", "access: only who is let in; `python -m bot access list` shows who that is")]


def look_at_database(file: Path) -> Finding:
    """Whether the database is whole, of a version we know, and writable. Changes nothing."""
    nearest = next(path for path in (file, *file.absolute().parents) if path.exists())
    if nearest != file and not nearest.is_dir():
        return Finding("fail", f"database: {nearest} is no folder", "set data_dir to a folder")
    if not os.access(nearest, os.W_OK):
        return Finding("fail", f"database: {nearest} cannot be written", "give it to the user the bot runs as")
    try:
        version = inspect(file)
    except DatabaseError as error:
        return Finding("fail", "database", str(error))
    return Finding("ok", f"database: {file}, {f'version {version}' if version else 'made at the first message'}")


def look_at_jobs(file: Path) -> list[Finding]:
    """What the housekeeping did last, and what of it fails; nothing before it has run. Changes nothing."""
    try:
        runs = last_runs(file)
    except DatabaseError:
        return []  # it is told of the file itself
    findings = []
    for run in runs:
        if run.failures:
            fix = f"see {logs.FILE}; it is tried again by itself"
            findings.append(Finding("warn", f"job {run.name}: broke off, {run.failures} times in a row", fix))
        elif run.did_at is not None:
            counts = ", ".join(f"{name} {count}" for name, count in run.counts.items() if count)
            findings.append(Finding("ok", f"job {run.name}: {counts}, {run.did_at:%Y-%m-%d %H:%M} UTC"))
    return findings


async def look_at_model(settings: Settings) -> list[Finding]:
    """Whether the endpoint answers, knows the model, which can write JSON and sees if it is said to."""
    if settings.endpoint is None:
        fix = "run `python -m bot init`, or set OPENAI_BASE_URL and OPENAI_MODEL"
        return [Finding("warn", "model: none, replies come from memory alone", fix)]
    key = settings.openai_api_key.get_secret_value() if settings.openai_api_key else None
    try:
        async with LLM(settings.endpoint, key, settings.openai_model or "", settings.model) as llm:
            listed = await look_at_list(llm, settings.openai_model)
            answers = await look_at_json(llm) if settings.openai_model else []
            answering = bool(answers) and answers[0].level != "fail"
            sights = await look_at_sight(llm) if answering and settings.media.images else []
            return [*listed, *answers, *sights]
    except ValueError as error:
        return [Finding("fail", "endpoint", str(error))]


async def look_at_list(llm: LLM, model: str | None) -> list[Finding]:
    """Whether the endpoint lists the model that is asked for; not every endpoint lists all it serves."""
    try:
        names = await llm.models()
    except LLMError as error:
        if error.kind != "not_found":
            return [Finding("fail", f"endpoint: {llm.base_url}", error.told)]
        names = []
    findings = [Finding("ok", f"endpoint: {llm.base_url}")]
    some = ", ".join(difflib.get_close_matches(model or "", names, n=3, cutoff=0.3) or names[:3])
    if model is None:
        hint = f"set OPENAI_MODEL, for example to {some}" if some else "set OPENAI_MODEL"
        findings.append(Finding("fail", "model: none named", hint))
    elif names and model not in names:
        findings.append(Finding("warn", f"model: {model} is not in the endpoint's list", f"it has {some}"))
    return findings


async def look_at_json(llm: LLM) -> list[Finding]:
    """Whether the model answers, and in JSON when asked to (sessions are distilled that way)."""
    try:
        able = await llm.probe_json()
    except LLMError as error:
        return [Finding("fail", f"model: {llm.model}", error.told)]
    if able:
        return [Finding("ok", f"model: {llm.model} answers, in JSON when asked to")]
    return [
        Finding("warn", f"model: {llm.model} answers, but not in JSON", "less is kept of each session; try another")
    ]


async def look_at_sight(llm: LLM) -> list[Finding]:
    """Whether the model sees pictures, which the settings say of it."""
    try:
        sees = await llm.probe_images()
    except PicturesRefused as refusal:
        return [Finding("warn", f"pictures: shown to {llm.model}, which takes none", refusal.told)]
    except LLMError as error:
        return [Finding("fail", f"pictures: shown to {llm.model}", error.told)]
    if sees:
        return [Finding("ok", f"pictures: shown to {llm.model}, which sees them")]
    return [Finding("warn", f"pictures: shown to {llm.model}, which is blind to them", HINTS["no_images"])]


async def look_at_clock(settings: Settings, *, clock: Clock) -> Finding:
    """What time it is here, and whether it is the endpoint's, by the Date header of whatever that answers."""
    zone = zone_of(settings)
    before = clock()
    theirs = await _endpoints_time(settings.endpoint)
    told = f"clock: {before.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M} local time, zone {zone}"
    if theirs is None:
        return Finding("ok", f"{told}, with nothing to compare it to")
    if abs(theirs - before) <= SKEW:
        return Finding("ok", told)
    theirs = theirs.astimezone(ZoneInfo(zone))
    return Finding("warn", f"{told}, but {theirs:%Y-%m-%d %H:%M} at the endpoint", "set this machine's time")


async def _endpoints_time(endpoint: str | None) -> datetime | None:
    """The time at an endpoint, None where it tells none."""
    if endpoint is None:
        return None
    try:
        async with httpx2.AsyncClient(timeout=PATIENCE) as client:
            header = (await client.get(f"{normalise_base_url(endpoint)}/models")).headers["Date"]
        return parsedate_to_datetime(header).replace(tzinfo=UTC)
    except (httpx2.HTTPError, httpx2.InvalidURL, KeyError, ValueError):
        return None


async def look_at_embedder(make: Callable[[], ClosableEmbedder | None]) -> Finding:
    """Whether an embedder can be made, whether vectors come, and how wide they are."""
    try:
        embedder = make()
    except (ValueError, EmbedderUnavailable) as error:
        return Finding("fail", "embeddings", str(error))
    if embedder is None:
        fix = 'set OPENAI_EMBEDDING_MODEL, or [embedder] kind = "auto" on a machine the bundled model runs on'
        return Finding("warn", "embeddings: none, recall goes by words alone", fix)
    try:
        (vector,) = await embedder.embed(["hello"])
    except EmbedderUnavailable as error:
        refusal = error.__cause__
        told = refusal.told if isinstance(refusal, LLMError) else str(error)
        return Finding("fail", f"embeddings: {embedder.model}", told)
    finally:
        await embedder.aclose()
    if vector is None:
        return Finding("fail", f"embeddings: {embedder.model} gives no usable vector", "choose another model")
    return Finding("ok", f"embeddings: {embedder.model}, {len(vector)} numbers a text")


async def look_at_platforms(settings: Settings) -> list[Finding]:
    """Whether each platform knows its token."""
    tokens: dict[Platform, SecretStr | None] = {
        "telegram": settings.telegram_bot_token,
        "discord": settings.discord_bot_token,
    }
    fix = "set TELEGRAM_BOT_TOKEN or DISCORD_BOT_TOKEN; `chat` works without"
    findings = [await look_at_token(name, token, settings) for name, token in tokens.items() if token]
    return findings or [Finding("warn", "platforms: no token", fix)]


async def look_at_token(platform: Platform, token: SecretStr, settings: Settings) -> Finding:
    """Whether a platform knows a token, and as whom."""
    try:
        return Finding("ok", f"{platform}: {await whose(platform, token.get_secret_value(), settings, serving=True)}")
    except AdapterError as error:
        return Finding("fail", platform, str(error))
