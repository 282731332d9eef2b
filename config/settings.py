"""Every setting, its default and its meaning. Read once, frozen, handed on by section.

Names people already know come from the environment or ``.env``; everything else from
``recollect.toml``, one table a section. :mod:`config.reference` prints the commented example of it.
"""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from config.complaints import complaints, misplaced

TOML_FILE: Final = "recollect.toml"
ENV_FILE: Final = ".env"
OPENAI_API: Final = "https://api.openai.com/v1"
"""Where a key without an address belongs."""


class SettingsError(Exception):
    """Settings that cannot be used. The text names each key and the fix, a line each, and no secret."""


def _given(value: object) -> object:
    """Strip what was pasted with a name; an empty value is no value."""
    return (value.strip() or None) if isinstance(value, str) else value


def _sendable(secret: SecretStr) -> SecretStr:
    text = secret.get_secret_value()
    if not (text.isascii() and text.isprintable()) or " " in text:
        raise ValueError("holds a space, a line break or a sign no key has: copy it again, without quotes")
    return secret


def _key(secret: SecretStr) -> SecretStr:
    if re.fullmatch(r"[0-9a-fA-F]{64}", secret.get_secret_value()) is None:
        raise ValueError("must be 64 hexadecimal digits: `python -m bot rekey --new` makes one")
    return secret


def _web_address(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable or " " in url:
        raise ValueError("must be a whole address that begins with http:// or https://, like http://127.0.0.1:11434/v1")
    return url


def _time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise ValueError("must be the name of a time zone, like Asia/Shanghai or Europe/Berlin") from None
    return name


def _account(name: str) -> str:
    platform, _, number = name.partition(":")
    if not platform.isalpha() or not number or number != number.strip():
        raise ValueError('must be a platform and the number of an account on it, like "telegram:1001"')
    return name


def _listed(value: object) -> object:
    """A list of TOML as the tuple that a frozen setting is."""
    return tuple(value) if isinstance(value, list) else value


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


PLACE: Final = re.compile(r"(?P<platform>telegram|discord|console):(?P<place>-?\w+(?:/\d+)?)")
"""How a place to talk is named in the settings: by its platform and the number it has there."""


def _place(name: str) -> str:
    if PLACE.fullmatch(name) is None:
        raise ValueError(
            "must be a platform and a number, like telegram:-1001234567890, telegram:-1001234567890/12 (a topic) or "
            "discord:112233445566 (a channel, a thread or a server)"
        )
    return name


def _persona(text: str) -> str:
    if not text.strip():
        raise ValueError("must say who the bot is there; take the line out to leave it as everywhere")
    return text


Place = Annotated[str, AfterValidator(_place)]
Persona = Annotated[str, AfterValidator(_persona)]
Text = Annotated[str | None, BeforeValidator(_given)]
Secret = Annotated[Annotated[SecretStr, AfterValidator(_sendable)] | None, BeforeValidator(_given)]
Key = Annotated[Annotated[SecretStr, AfterValidator(_key)] | None, BeforeValidator(_given)]
Url = Annotated[str, AfterValidator(_web_address)]
OptionalZone = Annotated[Annotated[str, AfterValidator(_time_zone)] | None, BeforeValidator(_given)]
AccountNames = Annotated[tuple[Annotated[str, AfterValidator(_account)], ...], BeforeValidator(_listed)]
Places = Annotated[tuple[Place, ...], BeforeValidator(_listed)]
OptionalUrl = Annotated[Url | None, BeforeValidator(_given)]


class Section(BaseModel):
    """A frozen table of ``recollect.toml``; an unknown key is an error, not a silence."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, hide_input_in_errors=True)


class ModelSettings(Section):
    """``[model]``: the chat model behind OPENAI_BASE_URL."""

    context_tokens: int = Field(32_768, ge=1_024, description="Context length of the model, tokens.")
    reply_tokens: int = Field(1_024, ge=64, description="Kept free for the answer, tokens.")
    timeout_seconds: float = Field(60.0, gt=0, description="Silence after which a request is given up.")
    retries: int = Field(2, ge=0, le=10, description="Retries of a request that failed in passing.")
    temperature: float | None = Field(
        None, ge=0, le=2, description="Sampling temperature; unset = the endpoint's.", examples=[0.7]
    )
    price_in: float | None = Field(
        None, ge=0, description="Price of a million tokens read, for /usage; unset = no prices.", examples=[0.15]
    )
    price_out: float | None = Field(None, ge=0, description="Price of a million tokens written.", examples=[0.6])
    currency: str = Field("USD", min_length=1, max_length=8, description="What the prices are in.")


class EmbedderSettings(Section):
    """``[embedder]``: where vectors come from."""

    kind: Literal["auto", "endpoint", "local", "none"] = Field(
        "auto",
        description="auto = endpoint if OPENAI_EMBEDDING_MODEL is set, else the bundled model, else none.",
    )
    batch: int = Field(10, ge=1, le=2_048, description="Texts in one request; halved when refused, and remembered.")
    dimensions: int | None = Field(
        None, ge=1, description="Asked for only if set; few endpoints know it.", examples=[1024]
    )
    timeout_seconds: float = Field(20.0, gt=0, description="Time for one embedding request.")


class SessionSettings(Section):
    """``[session]``: when a stretch of talk ends."""

    idle_minutes: float = Field(30.0, gt=0, description="Silence that ends a session; it is then distilled once.")


class RecallSettings(Section):
    """``[recall]``: what may be put in front of the model."""

    max_tokens: int = Field(1_000, ge=0, description="Budget of the recalled block, tokens.")
    false_positives: float = Field(
        0.05, gt=0, lt=1, description="Share of unrelated questions that may recall something in full."
    )
    timeout_seconds: float = Field(2.0, gt=0, description="Longest wait for the question's vector; then words alone.")
    rewrite: bool = Field(
        default=False,
        description="Let the model reword a question that is short, points back or is in doubt (one more call).",
    )
    rewrite_seconds: float = Field(3.0, gt=0, description="Longest wait for these words; then the question alone.")
    index_mb: int = Field(
        256,
        ge=1,
        description="Memory for the indexes of those who talked last, MB; who is not among them waits a moment.",
    )


class RerankSettings(Section):
    """``[rerank]``: a model that puts the best memories in order."""

    model: Text = Field(
        None, description="Reranking model of the endpoint (/rerank); unset = none.", examples=["bge-reranker-v2-m3"]
    )
    timeout_seconds: float = Field(1.0, gt=0, description="Longest wait for it; then the order stays.")


class MemorySettings(Section):
    """``[memory]``: what becomes of memories that nobody asks for."""

    cool_days: int = Field(
        365, ge=0, description="Days unrecalled after which a memory of no importance rests; 0 = never."
    )


class JournalSettings(Section):
    """``[journal]``: how long the words themselves are kept."""

    keep_days: int = Field(180, ge=0, description="Days a journal line is kept; 0 = for ever.")


class TraceSettings(Section):
    """``[trace]``: how long the record behind each reply is kept."""

    keep_days: int = Field(30, ge=0, description="Days a trace is kept; 0 = for ever.")


class ForgetSettings(Section):
    """``[forget]``: how long a /forget can be taken back."""

    undo_minutes: float = Field(10.0, ge=0, description="Time between /forget and the erasure; undo works until then.")


class DistilSettings(Section):
    """``[distil]``: the one model call after a session."""

    max_messages: int = Field(60, ge=4, description="Messages in one call; a longer session is cut.")
    attempts: int = Field(3, ge=1, description="Tries before a batch is set aside with its reason.")
    at_once: int = Field(2, ge=1, description="Sessions distilled at the same time.")
    tokens_per_person_a_day: int = Field(
        0, ge=0, description="Tokens after which one person's sessions wait for the next day (UTC); 0 = no limit."
    )
    tokens_a_day: int = Field(
        0, ge=0, description="Tokens after which everybody's sessions wait for the next day (UTC); 0 = no limit."
    )


class PrivacySettings(Section):
    """``[privacy]``: what people are told and asked."""

    first_notice: bool = Field(
        default=True, description="Tell each person once, with the first answer, what is remembered."
    )
    sensitive: Literal["keep", "ask", "skip"] = Field(
        "keep",
        description="Of health, money, faith, sexuality and children: keep, ask before keeping, or skip all of it.",
    )
    ask_days: float = Field(
        7.0, gt=0, le=365, description="Days that what waits for such a consent is held; then it is erased."
    )


class LogSettings(Section):
    """``[log]``: what is written into recollect.log."""

    format: Literal["text", "json"] = Field("text", description="text = lines for people; json = one object a line.")
    level: Literal["debug", "info", "warning", "error"] = Field("info", description="The least grave lines it gets.")


class HttpSettings(Section):
    """``[http]``: pages for whoever watches the bot: /healthz, /readyz, /metrics."""

    port: int = Field(0, ge=0, le=65_535, description="Port they are served on; 0 = not at all.")
    beyond_loopback: bool = Field(
        default=False, description="Allow a host that others can reach, too; the pages ask for no password."
    )
    host: str = Field("127.0.0.1", description="Address they are served on; as it is, for this machine alone.")

    @field_validator("host")
    @classmethod
    def _stays_here(cls, host: str, info: ValidationInfo) -> str:
        """Refuse an address that others can reach unless that is said in so many words."""
        if not (info.data.get("beyond_loopback") or _is_loopback(host)):
            raise ValueError(
                "can be reached from other machines, and the pages ask for no password: use 127.0.0.1, or say "
                "beyond_loopback = true"
            )
        return host


class JobSettings(Section):
    """``[jobs]``: how often housekeeping looks for work."""

    every_seconds: float = Field(30.0, gt=0, description="Pause between two looks for due work.")


class ConversationSettings(Section):
    """``[conversation]``: how messages become turns."""

    quiet_seconds: float = Field(
        1.0, ge=0, le=30, description="Quiet after which quick messages of one person are answered as one; 0 = none."
    )
    turns_a_minute: int = Field(
        20, ge=0, description="Turns of one person in one chat; more is taken for two bots in a loop; 0 = no limit."
    )
    turns_at_once: int = Field(
        500, ge=1, description="Turns of everybody that the model answers at the same time; others wait for theirs."
    )
    waiting_at_most: int = Field(
        2_000,
        ge=1,
        description="Messages of everybody that may wait; one beyond them is kept and answered with a word.",
    )
    redo_seconds: float = Field(
        120.0, ge=0, description="Age up to which an edit of the last message is answered anew; 0 = never."
    )
    recover_hours: float = Field(
        24.0, ge=0, description="Age up to which a message that a stop left unanswered is answered at the next start."
    )


class AccessSettings(Section):
    """``[access]``: who may talk to the bot. With nothing set: the terminal, and whoever's code an admin approves."""

    admins: AccountNames = Field(
        (),
        description='Accounts that may let others in and see whole traces, like ["telegram:1001"]; the terminal may.',
    )
    allow: AccountNames = Field((), description='Accounts that may talk without a code, like ["telegram:1001"].')
    groups: Places = Field(
        (), description='Chats or Discord servers in which every member may talk, like ["telegram:-1001234567890"].'
    )
    open: Literal["no", "everybody"] = Field(
        "no", description="everybody = whoever finds the bot may talk to it, at your cost; for a bot that is public."
    )


class BudgetSettings(Section):
    """``[budget]``: how much people may use; admins and the terminal are not held to a day's budget."""

    messages_per_person_a_day: int = Field(
        0, ge=0, description="Messages of one person, in all chats, in a day (UTC); 0 = no limit."
    )
    tokens_per_person_a_day: int = Field(
        0, ge=0, description="Tokens of the chat model for one person in a day (UTC), read and written; 0 = no limit."
    )
    messages_per_group_a_day: int = Field(
        0, ge=0, description="Messages of all members together in one group in a day (UTC); 0 = no limit."
    )
    tokens_per_group_a_day: int = Field(
        0, ge=0, description="Tokens of the answers in one group in a day (UTC), read and written; 0 = no limit."
    )
    messages_per_person_a_minute: int = Field(
        60, ge=0, description="Messages of one person in a minute; more are not read; 0 = no limit."
    )
    messages_per_chat_a_minute: int = Field(
        240, ge=0, description="Messages in one chat in a minute; more are not read; 0 = no limit."
    )


class MediaSettings(Section):
    """``[media]``: what may come beside the words."""

    images: bool = Field(default=False, description="Whether OPENAI_MODEL sees pictures; they are then shown to it.")
    image_bytes: int = Field(5_000_000, ge=1_000, description="Largest picture passed on, bytes.")
    image_tokens: int = Field(1_000, ge=0, description="What one picture is counted as, tokens.")
    text_bytes: int = Field(200_000, ge=0, description="Largest text file that is read, bytes; 0 = none.")
    text_tokens: int = Field(4_000, ge=0, description="Most of a text file that goes along with the question, tokens.")


class BackupSettings(Section):
    """``[backup]``: copies the bot makes by itself."""

    every_hours: float = Field(0.0, ge=0, description="Hours between two backups; 0 = none by itself.")
    keep: int = Field(7, ge=1, description="Backups that stay in the folder; older ones go.")
    folder: Path | None = Field(
        None,
        strict=False,
        description='Folder they are put in; unset = "backups" in data_dir. Another disk is better.',
        examples=["/mnt/backup/recollect"],
    )

    @property
    def cycle_hours(self) -> float:
        """Hours within which what is erased is gone from the bot's own backups, too."""
        return self.every_hours or 24.0


class TelegramSettings(Section):
    """``[telegram]``: how to reach it."""

    base_url: Url = Field("https://api.telegram.org", description="Bot API server; change it for one of your own.")
    proxy: OptionalUrl = Field(
        None, repr=False, description="Proxy for this platform alone.", examples=["http://127.0.0.1:3128"]
    )
    drafts: bool = Field(
        default=False, description="Show growing answers in private chats as drafts instead of edits of a message."
    )
    webhook_url: OptionalUrl = Field(
        None,
        description="Public https address of a webhook; unset = long polling. Needs TELEGRAM_WEBHOOK_SECRET.",
        examples=["https://bot.example.org/telegram"],
    )
    webhook_host: str = Field("127.0.0.1", description="Address the webhook listens on, behind your TLS proxy.")
    webhook_port: int = Field(8443, ge=1, le=65_535, description="Port the webhook listens on.")


class DiscordSettings(Section):
    """``[discord]``: how to reach it."""

    proxy: OptionalUrl = Field(
        None, repr=False, description="Proxy for this platform alone.", examples=["http://127.0.0.1:3128"]
    )


class Credentials(BaseSettings):
    """The names people already know, from the environment or ``.env`` and nowhere else."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="ignore",
        env_ignore_empty=True,
        env_file_encoding="utf-8-sig",
        dotenv_filtering="only_existing",
        hide_input_in_errors=True,
    )

    telegram_bot_token: Secret = Field(None, description="From @BotFather.")
    telegram_webhook_secret: Secret = Field(None, description="1-256 of A-Z a-z 0-9 _ -; for webhook_url only.")
    discord_bot_token: Secret = Field(None, description="From the Discord developer portal, page Bot.")
    openai_api_key: Secret = Field(None, description="Key of the endpoint; local servers need none.")
    openai_base_url: OptionalUrl = Field(None, repr=False, description="Any OpenAI-compatible endpoint.")
    openai_model: Text = Field(None, description="Chat model, as the endpoint names it.")
    openai_embedding_model: Text = Field(None, description="Embedding model; unset = the bundled one.")
    recollect_key: Key = Field(None, description="Encrypts the memory on disk; `rekey --new` makes one.")
    recollect_new_key: Key = Field(None, description="The key that `rekey` changes to.")


class Settings(Credentials):
    """All of it. :func:`load` reads it from outside; ``Settings()`` is the defaults alone."""

    model_config = SettingsConfigDict(extra="forbid")

    data_dir: Path = Field(Path("data"), description="Folder of the database and the log.")
    persona: str = Field("", description="Who the bot is, in your words; added to its instructions.")
    personas: Mapping[Place, Persona] = Field(
        {},
        description="who the bot is in a chat, a topic, a Discord channel, thread or server, by its number.",
        examples=[{"telegram:-1001234567890": "You are the dry wit of this group."}],
    )
    zone: OptionalZone = Field(
        None,
        description="Time zone of people who named none; unset = this machine's.",
        examples=["Europe/Berlin"],
    )
    model: ModelSettings = ModelSettings()
    embedder: EmbedderSettings = EmbedderSettings()
    session: SessionSettings = SessionSettings()
    recall: RecallSettings = RecallSettings()
    rerank: RerankSettings = RerankSettings()
    memory: MemorySettings = MemorySettings()
    journal: JournalSettings = JournalSettings()
    trace: TraceSettings = TraceSettings()
    forget: ForgetSettings = ForgetSettings()
    distil: DistilSettings = DistilSettings()
    privacy: PrivacySettings = PrivacySettings()
    jobs: JobSettings = JobSettings()
    log: LogSettings = LogSettings()
    http: HttpSettings = HttpSettings()
    conversation: ConversationSettings = ConversationSettings()
    access: AccessSettings = AccessSettings()
    budget: BudgetSettings = BudgetSettings()
    media: MediaSettings = MediaSettings()
    backup: BackupSettings = BackupSettings()
    telegram: TelegramSettings = TelegramSettings()
    discord: DiscordSettings = DiscordSettings()

    @property
    def backup_dir(self) -> Path:
        """Where the bot's own backups are."""
        return self.backup.folder or self.data_dir / "backups"

    @property
    def endpoint(self) -> str | None:
        """Address of the chat model: OPENAI_BASE_URL, else OpenAI's own if there is a key, else None."""
        return self.openai_base_url or (OPENAI_API if self.openai_api_key else None)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take what is passed and nothing else, so that no test meets the files of whoever runs it."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)


def load(*, cwd: Path | None = None, overrides: Mapping[str, Any] | None = None) -> Settings:
    """Read the settings of folder ``cwd`` (default: where we are); what comes later in this list wins.

    ``recollect.toml``, ``.env``, the environment (an empty value counts as none), ``overrides`` (by field
    name, a table as a whole). Raises SettingsError, which names everything that is wrong, a line each.
    """
    folder = cwd or Path()
    faults: list[str] = []
    table = _read(lambda: _read_toml(folder / TOML_FILE), faults)
    faults += misplaced(table, Credentials.model_fields, file=TOML_FILE)
    table = {key: value for key, value in table.items() if key.lower() not in Credentials.model_fields}
    env = _read(lambda: _read_env(folder / ENV_FILE), faults)
    told = {**table, **env, **EnvSettingsSource(Credentials)(), **(overrides or {})}
    settings = None
    try:
        settings = Settings(**told)
    except ValidationError as error:
        faults += complaints(error, Settings, file=TOML_FILE, names=Credentials.model_fields)
    faults += _crowded(settings or _what_can_be_read(told))
    if faults or settings is None:
        raise SettingsError("\n".join(faults))
    return settings


def _read(reading: Callable[[], dict[str, Any]], faults: list[str]) -> dict[str, Any]:
    """What a file says; nothing, and one more fault, where it cannot be read."""
    try:
        return reading()
    except SettingsError as error:
        faults.append(str(error))
        return {}


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return dict(TomlConfigSettingsSource(Settings, toml_file=path).toml_data)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path.name} cannot be read as TOML: {error}") from None
    except OSError as error:
        raise SettingsError(f"{path.name} cannot be opened: {error.strerror}") from None


def _read_env(path: Path) -> dict[str, Any]:
    try:
        return DotEnvSettingsSource(Credentials, env_file=path)()
    except UnicodeDecodeError:
        raise SettingsError(f"{path.name} is not UTF-8 text: save it as UTF-8") from None
    except OSError as error:
        raise SettingsError(f"{path.name} cannot be opened: {error.strerror}") from None


def _what_can_be_read(told: Mapping[str, Any]) -> Settings:
    """The settings with the tables that are right, so that what does not go together is told with what is wrong."""
    right: dict[str, Any] = {}
    for name in ("model", "recall"):
        with contextlib.suppress(ValidationError):
            right |= {name: Settings.model_validate({name: told.get(name, {})}).model_dump()[name]}
    return Settings(**right)


def _crowded(settings: Settings) -> list[str]:
    """Complain of budgets that leave the conversation itself less than 40 % of the context."""
    taken = settings.model.reply_tokens + settings.recall.max_tokens
    room = int(settings.model.context_tokens * 0.6)
    if taken <= room:
        return []
    told = (
        f"{TOML_FILE}: [model] reply_tokens and [recall] max_tokens together ({taken}) must be at most "
        f"60 % of [model] context_tokens ({room}), or no room is left for the conversation"
    )
    return [told]
