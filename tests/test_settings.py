"""Settings: where they come from, what wins, and how a wrong one is explained."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from config.complaints import keys
from config.reference import example_env, example_toml
from config.settings import Credentials, Section, Settings, SettingsError, load

ROOT = Path(__file__).parent.parent
TOKEN = "123456789:AAH-a_token_nobody_must_ever_see_x1"


def written(folder: Path, *, toml: str = "", env: str = "") -> Path:
    """Write both files into ``folder`` and return it."""
    (folder / "recollect.toml").write_text(toml, encoding="utf-8")
    (folder / ".env").write_text(env, encoding="utf-8")
    return folder


def complaint(folder: Path, *, toml: str = "", env: str = "") -> str:
    """Return the text of the SettingsError these files raise."""
    with pytest.raises(SettingsError) as raised:
        load(cwd=written(folder, toml=toml, env=env))
    return str(raised.value)


def test_an_empty_folder_gives_the_defaults(tmp_path: Path) -> None:
    assert load(cwd=tmp_path) == Settings()


def test_each_source_gives_what_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_MODEL", "from-environment")
    written(tmp_path, toml="[recall]\nmax_tokens = 77\n", env=f"TELEGRAM_BOT_TOKEN={TOKEN}\n")
    settings = load(cwd=tmp_path)
    assert settings.openai_model == "from-environment"
    assert settings.recall.max_tokens == 77
    assert settings.telegram_bot_token is not None
    assert settings.telegram_bot_token.get_secret_value() == TOKEN


def test_overrides_win_over_the_environment_and_that_over_the_env_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, env="OPENAI_MODEL=file\nOPENAI_BASE_URL=http://file/v1\nOPENAI_EMBEDDING_MODEL=file\n")
    monkeypatch.setenv("OPENAI_MODEL", "environment")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://environment/v1")
    settings = load(cwd=tmp_path, overrides={"openai_model": "override"})
    assert settings.openai_model == "override"
    assert settings.openai_base_url == "http://environment/v1"
    assert settings.openai_embedding_model == "file"


@pytest.mark.parametrize("blank", ["", "   ", '""'])
def test_an_empty_name_counts_as_not_given(tmp_path: Path, blank: str) -> None:
    lines = "".join(f"{name.upper()}={blank}\n" for name in Credentials.model_fields)
    assert load(cwd=written(tmp_path, env=lines)) == Settings()


def test_an_empty_name_in_the_environment_does_not_hide_the_env_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_MODEL", "")
    assert load(cwd=written(tmp_path, env="OPENAI_MODEL=file\n")).openai_model == "file"


def test_other_peoples_variables_are_never_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MODEL", "SESSION", "TRACE", "PERSONA", "DATA_DIR", "JOBS"):
        monkeypatch.setenv(name, "not ours")
    assert load(cwd=written(tmp_path, env="PERSONA=not ours\nEDITOR=vi\n")) == Settings()


def test_spaces_around_a_pasted_token_are_cut_off(tmp_path: Path) -> None:
    token = load(cwd=written(tmp_path, env=f'TELEGRAM_BOT_TOKEN=" {TOKEN}\n"\n')).telegram_bot_token
    assert token is not None
    assert token.get_secret_value() == TOKEN


def test_a_file_saved_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"\xef\xbb\xbfOPENAI_MODEL=qwen3\r\n")
    assert load(cwd=tmp_path).openai_model == "qwen3"


def test_settings_cannot_be_changed_afterwards() -> None:
    with pytest.raises(ValidationError):
        Settings().persona = "another"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        Settings().recall.max_tokens = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("[recall]\nmax_tokens = -5", "recollect.toml: [recall] max_tokens = -5: must be at least 0"),
        ('[recall]\nmax_tokens = "5"', '[recall] max_tokens = "5": must be a whole number, without quotes'),
        ("[recall]\nmax_tokens = 0.5", "[recall] max_tokens = 0.5: must be a whole number"),
        ("[recall]\nfalse_positives = 1", "[recall] false_positives = 1: must be less than 1"),
        ("[model]\ntimeout_seconds = 0", "[model] timeout_seconds = 0: must be more than 0"),
        ("[model]\ntimeout_seconds = inf", "[model] timeout_seconds = inf: must be a number that is neither"),
        ("[model]\ntimeout_seconds = 'x'", '[model] timeout_seconds = "x": must be a number'),
        ("[model]\nretries = 11", "[model] retries = 11: must be at most 10"),
        ("[model]\nretries = true", "[model] retries = true: must be a whole number"),
        ("[embedder]\nkind = 'gpu'", "must be one of 'auto', 'endpoint', 'local' or 'none'"),
        ("[telegram]\nbase_url = 'api.telegram.org'", '[telegram] base_url = "api.telegram.org": must be a'),
        ("[discord]\nproxy = 'socks5://127.0.0.1:1080'", "must be a whole address that begins with http://"),
        ("zone = 'Mars/Base'", 'zone = "Mars/Base": must be the name of a time zone, like Asia/Shanghai'),
        ("zone = '../x'", "must be the name of a time zone"),
        ("persona = 3", "recollect.toml: persona = 3: must be text in quotes"),
        (
            "[personas]\n'telegram' = 'x'",
            'recollect.toml: [personas] telegram = "telegram": must be a platform and a number',
        ),
        (
            "[personas]\n'signal:1' = 'x'",
            '[personas] signal:1 = "signal:1": must be a platform and a number, like tele',
        ),
        ("[personas]\n'telegram:-1' = ' '", '[personas] telegram:-1 = " ": must say who the bot is there'),
        ("[personas]\n'telegram:-1' = 3", "[personas] telegram:-1 = 3: must be text in quotes"),
        ("personas = 3", "recollect.toml: personas"),
        ("data_dir = 3", "data_dir = 3: must be the name of a folder"),
        (
            "recall = 3",
            "recollect.toml: recall = 3: must be a table of its own: begin it with a line [recall]",
        ),
        ("[recall]\nmax_token = 5", "[recall] max_token is not a setting; did you mean max_tokens?"),
        ("[recal]\nmax_tokens = 5", "recal is not a setting; did you mean [recall]?"),
        ("max_tokens = 5", "max_tokens is not a setting of this table; it belongs under [recall]"),
        ("[recall]\npersona = 'x'", "[recall] persona is not a setting; move it to the top"),
        ("[trace]\nzzz = 1", "[trace] zzz is not a setting; known here: keep_days"),
        ("OPENAI_API_KEY = 'x'", "recollect.toml: OPENAI_API_KEY belongs in .env, not here"),
        ("[recall\n", "recollect.toml cannot be read as TOML: "),
        ("[model]\ncontext_tokens = 2048", "must be at most 60 % of [model] context_tokens (1228)"),
    ],
)
def test_a_wrong_key_is_named_with_the_fix(tmp_path: Path, toml: str, said: str) -> None:
    assert said in complaint(tmp_path, toml=toml)


def test_every_fault_is_told_at_once(tmp_path: Path) -> None:
    lines = complaint(tmp_path, toml="[recall]\nmax_tokens = -5\n[model]\nretries = 11\n").splitlines()
    assert len(lines) == 2


@pytest.mark.parametrize("url", ["localhost:1234", "ftp://host/v1", "http://", "http://host:99999", "http://[::1"])
def test_a_base_url_that_is_no_web_address_is_refused_by_its_name(tmp_path: Path, url: str) -> None:
    said = complaint(tmp_path, env=f"OPENAI_BASE_URL={url}\n")
    assert said.startswith("OPENAI_BASE_URL must be a whole address that begins with http:// or https://")


@pytest.mark.parametrize("name", ["TELEGRAM_BOT_TOKEN", "DISCORD_BOT_TOKEN", "OPENAI_API_KEY"])
def test_a_secret_with_a_foreign_sign_is_refused_without_showing_it(tmp_path: Path, name: str) -> None:
    said = complaint(tmp_path, env=f"{name}=“{TOKEN}”\n")
    assert said.startswith(f"{name} holds a space, a line break or a sign no key has")
    assert TOKEN not in said


def test_a_secret_is_in_no_text_of_the_settings() -> None:
    proxy = "http://someone:hidden@127.0.0.1:3128"
    settings = Settings.model_validate({"openai_api_key": TOKEN, "telegram": {"proxy": proxy}})
    for text in (repr(settings), str(settings), settings.model_dump_json(exclude={"telegram"})):
        assert TOKEN not in text
        assert "hidden" not in text


def test_a_password_in_a_url_is_not_repeated(tmp_path: Path) -> None:
    assert "hidden" not in complaint(tmp_path, toml="[telegram]\nproxy = 'socks5://someone:hidden@host'")


def test_a_file_that_is_no_text_is_explained(tmp_path: Path) -> None:
    (tmp_path / "recollect.toml").write_bytes(b"persona = '\xff'")
    with pytest.raises(SettingsError, match=r"recollect\.toml cannot be read as TOML"):
        load(cwd=tmp_path)
    (tmp_path / "recollect.toml").unlink()
    (tmp_path / ".env").write_bytes(b"OPENAI_MODEL=\xff\n")
    with pytest.raises(SettingsError, match=r"\.env is not UTF-8 text"):
        load(cwd=tmp_path)


@example({"[key]": None})
@given(st.dictionaries(st.text(max_size=8), st.none() | st.integers() | st.floats() | st.text(max_size=9)))
def test_no_table_ends_in_another_error(table: dict[str, object]) -> None:
    for overrides in (table, {"recall": table}):
        try:
            load(cwd=ROOT / "tests", overrides=overrides)
        except SettingsError as error:
            assert str(error)  # noqa: PT017 - either outcome is right; only its kind is checked


def test_the_example_names_every_key_and_is_what_the_models_say() -> None:
    example = (ROOT / "recollect.example.toml").read_text(encoding="utf-8")
    assert example == example_toml(), "run: python -m config.reference > recollect.example.toml"
    assert (ROOT / ".env.example").read_text(encoding="utf-8") == example_env()
    own = [(table, key) for table, key in keys(Settings) if key not in Credentials.model_fields]
    uncommented = tomllib.loads("\n".join(line.removeprefix("#") for line in example.splitlines() if line[:2] != "# "))
    assert [(t, k) for t, k in own if k not in (uncommented[t] if t else uncommented)] == []


def test_the_example_can_be_used_as_it_is_and_with_every_line_switched_on(tmp_path: Path) -> None:
    example = example_toml()
    assert load(cwd=written(tmp_path, toml=example, env=example_env())) == Settings()
    lines = [line for line in example.splitlines() if not line.startswith("# ") and "unset by default" not in line]
    assert load(cwd=written(tmp_path, toml="\n".join(line.removeprefix("#") for line in lines))) == Settings()
    every = [line.removeprefix("#") for line in example.splitlines() if not line.startswith("# ")]
    assert load(cwd=written(tmp_path, toml="\n".join(every))).embedder.dimensions == 1024


def test_every_key_says_what_it_means() -> None:
    tables = [f.annotation for f in Settings.model_fields.values() if f.annotation is not None]
    sections = [table for table in tables if isinstance(table, type) and issubclass(table, Section)]
    assert len(sections) > 14
    models: list[type[BaseModel]] = [Credentials, *sections]
    for model in models:
        assert [name for name, field in model.model_fields.items() if not field.description] == []
        assert ": " in (model.__doc__ or "") or model is Credentials
