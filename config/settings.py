"""Every setting, its default and its meaning. Read once, frozen, handed on by section.

Secrets come from the environment or ``.env`` under the names people know; everything else from
``recollect.toml``, one table a section.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class Section(BaseModel):
    """A frozen table of ``recollect.toml``; an unknown key is an error, not a silence."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ModelSettings(Section):
    """``[model]``: the chat model behind OPENAI_BASE_URL."""

    context_tokens: int = Field(32_768, ge=1_024, description="Context length of the model, tokens.")
    reply_tokens: int = Field(1_024, ge=64, description="Kept free for the answer, tokens.")
    timeout_seconds: float = Field(60.0, gt=0, description="Silence after which a request is given up.")
    retries: int = Field(2, ge=0, le=10, description="Retries of a request that failed in passing.")
    temperature: float | None = Field(
        None, ge=0, le=2, description="Sampling temperature; unset = the endpoint's."
    )


class EmbedderSettings(Section):
    """``[embedder]``: where vectors come from."""

    kind: Literal["auto", "endpoint", "local", "none"] = Field(
        "auto",
        description="auto = endpoint if OPENAI_EMBEDDING_MODEL is set, else the bundled model, else none.",
    )
    batch: int = Field(
        10, ge=1, le=2_048, description="Texts in one request; halved when refused, and remembered."
    )
    dimensions: int | None = Field(None, ge=1, description="Asked for only if set; few endpoints know it.")
    timeout_seconds: float = Field(20.0, gt=0, description="Time for one embedding request.")


class SessionSettings(Section):
    """``[session]``: when a stretch of talk ends."""

    idle_minutes: float = Field(
        30.0, gt=0, description="Silence that ends a session; it is then distilled once."
    )


class RecallSettings(Section):
    """``[recall]``: what may be put in front of the model."""

    max_tokens: int = Field(1_000, ge=0, description="Budget of the recalled block, tokens.")
    false_positives: float = Field(
        0.05, gt=0, lt=1, description="Share of unrelated questions that may recall something in full."
    )
    timeout_seconds: float = Field(
        2.0, gt=0, description="Longest wait for the question's vector; then words alone."
    )


class JournalSettings(Section):
    """``[journal]``: how long the words themselves are kept."""

    keep_days: int = Field(180, ge=0, description="Days a journal line is kept; 0 = for ever.")


class TraceSettings(Section):
    """``[trace]``: how long the record behind each reply is kept."""

    keep_days: int = Field(30, ge=0, description="Days a trace is kept; 0 = for ever.")


class ForgetSettings(Section):
    """``[forget]``."""

    undo_minutes: float = Field(
        10.0, ge=0, description="Time between /forget and the erasure; undo works until then."
    )


class DistilSettings(Section):
    """``[distil]``: the one model call after a session."""

    max_messages: int = Field(60, ge=4, description="Messages in one call; a longer session is cut.")
    attempts: int = Field(3, ge=1, description="Tries before a batch is set aside with its reason.")
    at_once: int = Field(2, ge=1, description="Sessions distilled at the same time.")


class JobSettings(Section):
    """``[jobs]``: how often housekeeping looks for work, seconds."""

    every_seconds: float = Field(30.0, gt=0, description="Pause between two looks for due work.")


class TelegramSettings(Section):
    """``[telegram]``."""

    base_url: str = Field(
        "https://api.telegram.org", description="Bot API server; change it for one of your own."
    )
    proxy: str | None = Field(None, description="Proxy URL for this platform alone.")


class DiscordSettings(Section):
    """``[discord]``."""

    proxy: str | None = Field(None, description="Proxy URL for this platform alone.")


class Settings(BaseSettings):
    """All of it. Build it with :func:`load`, which words the errors."""

    model_config = SettingsConfigDict(
        frozen=True, extra="ignore", env_file=".env", env_file_encoding="utf-8", toml_file="recollect.toml"
    )

    telegram_bot_token: SecretStr | None = Field(None, description="From @BotFather.")
    discord_bot_token: SecretStr | None = Field(
        None, description="From the Discord developer portal, page Bot."
    )
    openai_api_key: SecretStr | None = Field(
        None, description="Key of the endpoint; local servers need none."
    )
    openai_base_url: str | None = Field(None, description="Any OpenAI-compatible endpoint.")
    openai_model: str | None = Field(None, description="Chat model, as the endpoint names it.")
    openai_embedding_model: str | None = Field(None, description="Embedding model; unset = the bundled one.")

    data_dir: Path = Field(Path("data"), description="Folder of the database.")
    persona: str = Field("", description="Extra system prompt of the operator.")
    model: ModelSettings = ModelSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    session: SessionSettings = SessionSettings()
    recall: RecallSettings = RecallSettings()
    journal: JournalSettings = JournalSettings()
    trace: TraceSettings = TraceSettings()
    forget: ForgetSettings = ForgetSettings()
    distil: DistilSettings = DistilSettings()
    jobs: JobSettings = JobSettings()
    telegram: TelegramSettings = TelegramSettings()
    discord: DiscordSettings = DiscordSettings()
