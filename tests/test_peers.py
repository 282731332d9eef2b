"""``bench peers``: everybody gets the same messages and vectors, and who fails is named and left out."""

from __future__ import annotations

import importlib.metadata
import io
import json
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bot.bench import evalset, peer, peering, peers
from bot.bench.peering import KINDS, Home, Kind, PeerFailed
from bot.bench.shared import SharedVectors
from memory.ports import Vector
from tests.servers import peer_double
from tests.test_bench import question, talk, written

MEM0, LANGGRAPH, CHROMADB = KINDS
HELLO: dict[str, Any] = {"say": {"version": "9.9"}}
LARDER, CAT, TEA = "Ann: The marmalade is in the larder", "Ann: The cat sleeps", "Bob: Tea at four"
WHERE, WHEN = "Where is the marmalade?", "When is tea?"


class Flat:
    """An embedder that knows one direction and is asked for no text twice."""

    model = "flat"
    dimensions = 2

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.closed = False

    async def embed(self, texts: Sequence[str]) -> list[Vector | None]:
        assert not set(texts) & set(self.asked), "a text was embedded twice"
        self.asked += texts
        return [None if text == "blank" else np.array([1, 0], np.float32) for text in texts]

    async def aclose(self) -> None:
        self.closed = True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(
        tmp_path / "sets" / "mine",
        [
            talk("a", ("Ann", "The marmalade is in the larder"), ("Ann", "The cat sleeps")),
            talk("b", ("Bob", "Tea at four")),
        ],
        [question("a", WHERE, "a:0"), question("b", WHEN, "b:0")],
    )


def added(person: str, *texts: str) -> dict[str, Any]:
    items = [[f"{person}/{place}", text] for place, text in enumerate(texts)]
    return {"hear": {"add": items, "person": person}}


def found(person: str, text: str, limit: int) -> dict[str, Any]:
    return {"hear": {"find": text, "person": person, "limit": limit}}


def done(*ids: str, ms: float = 1.0) -> dict[str, Any]:
    return {"say": {"ms": ms, "ids": list(ids)}}


FILLED = [HELLO, added("a", LARDER, CAT), done(ms=3), added("b", TEA), done(ms=6)]


def doubled(tmp_path: Path, name: str, steps: Sequence[dict[str, Any]]) -> list[str]:
    """The command of a peer that goes through ``steps``."""
    queue = tmp_path / f"{name}.queue"
    queue.write_text(json.dumps(list(steps)))
    return [sys.executable, peer_double.__file__, str(queue)]


def commands(tmp_path: Path, **queues: Sequence[dict[str, Any]]) -> Callable[[Kind], Awaitable[Sequence[str]]]:
    async def command(kind: Kind) -> Sequence[str]:
        if kind.name not in queues:
            raise PeerFailed("it is not here")
        return doubled(tmp_path, kind.name, queues[kind.name])

    return command


async def failure(tmp_path: Path, *steps: dict[str, Any], patience: float = 30) -> str:
    """Why a peer that goes through ``steps`` failed, which is started, filled with a text and asked."""
    try:
        async with peering.running(MEM0, doubled(tmp_path, "it", steps), Flat(), patience=patience) as here:
            await here.add("a", [("a/0", LARDER)])
            await here.find("a", WHERE, 10)
    except PeerFailed as failed:
        return str(failed)
    pytest.fail("it went well")


# ---- the whole comparison ----------------------------------------------------------------------------


async def test_peers_are_measured_beside_ours_and_who_is_missing_or_dies_is_left_out_with_the_reason(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-for-them")
    sound = [
        HELLO,
        added("a", LARDER, CAT),
        {"say": {"embed": [LARDER, CAT, "blank"]}},
        {"hear": {"vectors": [[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]}},
        *[done(ms=3), added("b", TEA), done(ms=6)],
        *[found("a", WHERE, 100), done("a/1", "a/0", ms=50), found("a", WHERE, 10), done("a/1", ms=2)],
        *[found("b", WHEN, 100), done("b/0", ms=50), found("b", WHEN, 10), done("b/0", ms=4)],
    ]
    dying = [*FILLED, found("a", WHERE, 100), {"end": "out of memory"}]
    vectors = SharedVectors(Flat())
    figures = await peers.compare(evalset.load(folder), vectors, commands(tmp_path, mem0=sound, chromadb=dying))
    assert json.loads(json.dumps(figures)) == figures
    assert figures["left_out"] == {
        "langgraph": "it is not here",
        "chromadb": "it ended by itself (1): out of memory",
    }
    assert list(figures["systems"]) == ["recollect", "mem0"]
    assert figures["systems"]["mem0"] == {
        "version": "9.9",
        "R@1": 50.0,
        "R@10": 100.0,
        "T@1000": 100.0,
        "ms a recall": 3.0,
        "ms an item added": 3.0,
    }
    ours = figures["systems"]["recollect"]
    assert ours["R@10"] == 100.0
    assert ours["ms a recall"] > 0
    assert (figures["n"], figures["items"]) == (2, 3)
    assert peers.table("mine", figures).row_count == 2


@pytest.mark.parametrize(
    ("ids", "reason"),
    [
        (("b/0",), "it listed what a never said: b/0"),
        (("a/0", "a/0"), "it listed a text twice"),
    ],
)
async def test_a_peer_that_lists_what_somebody_else_said_is_left_out(
    folder: Path, tmp_path: Path, ids: tuple[str, ...], reason: str
) -> None:
    leaking = [*FILLED, found("a", WHERE, 100), done(*ids)]
    vectors = SharedVectors(Flat())
    figures = await peers.compare(evalset.load(folder), vectors, commands(tmp_path, langgraph=leaking))
    assert figures["left_out"]["langgraph"] == reason
    assert list(figures["systems"]) == ["recollect"]


def test_the_command_goes_on_without_a_peer_and_says_so(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    flat = Flat()

    async def missing(kind: Kind, venvs: Path) -> list[str]:
        assert venvs == tmp_path / "venvs", "a peer starts elsewhere, so its Python is named in full"
        raise PeerFailed(f"no {kind.name}")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(peers, "choose_embedder", lambda _settings: flat)
    monkeypatch.setattr(peers, "command_of", missing)
    assert peers.main(folder.parent, venvs=Path("venvs"), as_json=True, sets="mine", conversations=1) == 1
    printed = capsys.readouterr()
    result = json.loads(printed.out)
    assert result["embedder"] == "flat"
    assert (result["sets"]["mine"]["n"], list(result["sets"]["mine"]["systems"])) == (1, ["recollect"])
    assert printed.err.splitlines() == [f"mine: {kind.name} is left out: no {kind.name}" for kind in KINDS]
    assert flat.closed
    flat.asked.clear()
    assert peers.main(folder, venvs=Path("venvs"), as_json=False) == 1
    assert "recollect" in capsys.readouterr().out


def test_a_set_that_is_not_there_and_no_embedder_are_said(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert peers.main(folder.parent, venvs=tmp_path, as_json=True, sets="mine,yours") == 2
    assert capsys.readouterr().err == f"{folder.parent} holds no set yours: there are mine\n"
    monkeypatch.setattr(peers, "choose_embedder", lambda _settings: None)
    assert peers.main(folder.parent, venvs=tmp_path, as_json=True) == 2
    assert "no embedder" in capsys.readouterr().err


@pytest.mark.parametrize(("questions", "code"), [([], 1), ([{"question": "in another layout"}], 2)])
def test_a_set_that_cannot_be_measured_is_said_and_spoils_no_other(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    questions: list[dict[str, Any]],
    code: int,
) -> None:
    async def missing(kind: Kind, _venvs: Path) -> list[str]:
        raise PeerFailed(f"no {kind.name}")

    written(folder.parent / "another", [talk("a", ("Ann", "Tea"))], questions)
    monkeypatch.chdir(folder.parent.parent)
    monkeypatch.setattr(peers, "choose_embedder", lambda _settings: Flat())
    monkeypatch.setattr(peers, "command_of", missing)
    assert peers.main(folder.parent, venvs=folder.parent.parent, as_json=True) == code
    printed = capsys.readouterr()
    assert list(json.loads(printed.out)["sets"]) == ["mine"]
    assert str(folder.parent / "another") in printed.err


# ---- one process -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("Traceback, or so", "it answered what is no answer: b'Traceback, or so"),
        ('{"ms": 1, "ids": [7]}', "it answered what is no answer"),
        ('{"ms": -1, "ids": []}', "it answered what is no answer"),
        ('{"version": "2"}', "it answered out of turn"),
    ],
)
async def test_rubbish_is_no_answer(tmp_path: Path, said: str, told: str) -> None:
    steps = [HELLO, added("a", LARDER), done(), found("a", WHERE, 10), {"say": said}]
    assert (await failure(tmp_path, *steps)).startswith(told)


async def test_a_peer_that_never_starts_dies_or_keeps_silent_is_told_apart(tmp_path: Path) -> None:
    assert (
        await failure(tmp_path, {"end": "No module named 'mem0'"}) == "it ended by itself (1): No module named 'mem0'"
    )
    assert await failure(tmp_path, HELLO, added("a", LARDER), {"end": ""}) == "it ended by itself (1): no word why"
    assert await failure(tmp_path, patience=0.2) == "it did not answer within 0.2 s"


async def test_a_peer_that_cannot_be_installed_says_why_and_is_not_taken_for_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: deque[tuple[str, ...]] = deque()

    async def run(*command: str) -> None:
        runs.append(command)
        if "pip" in command:
            raise PeerFailed("it cannot be installed: no such thing")
        home.python.parent.mkdir(parents=True)
        home.python.touch()

    home = Home(Kind("mem0", ("mem0ai==0", "numpy")), tmp_path / "venv")
    monkeypatch.setattr(peering, "_run", run)
    with pytest.raises(PeerFailed, match="no such thing"):
        await peering.installed(home)
    assert not home.ready
    assert [command[-1] for command in runs] == [str(home.folder), "numpy"]
    home.settle()
    assert await peering.installed(home) == home.python
    assert len(runs) == 2, "what is there is not installed again"
    assert not Home(Kind("mem0", ("mem0ai==1", "numpy")), home.folder).ready


async def test_what_fails_to_run_is_told_by_its_last_words() -> None:
    with pytest.raises(PeerFailed, match="it cannot be installed: sorry"):
        await peering._run(sys.executable, "-c", "import sys; sys.exit('so\\nsorry')")


# ---- what runs on the other side ---------------------------------------------------------------------


class Strict:
    """An object of a library: every call by name, from a queue of (name, arguments, result)."""

    def __init__(self, *calls: tuple[str, dict[Any, Any], Any]) -> None:
        self.calls = deque(calls)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def called(*positional: Any, **named: Any) -> Any:
            given: dict[int | str, Any] = {**dict(enumerate(positional)), **named}  # type: ignore[dict-item]
            expected, arguments, result = self.calls.popleft()
            assert (name, given) == (expected, arguments)
            return result

        return called


def served(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, Any]]:
    """What a peer says when it is given two texts of "a" and asked for one, vectors handed out on the way."""
    monkeypatch.setattr(importlib.metadata, "version", lambda package: f"{package} 1")
    told = [
        {"add": [["a/0", LARDER], ["a/1", CAT]], "person": "a"},
        {"vectors": [[1.0, 0.0], [0.0, 1.0]]},
        {"find": WHERE, "person": "a", "limit": 1},
        *([] if name == "langgraph" else [{"vectors": [[1.0, 1.0]]}]),
    ]
    spoken = io.StringIO()
    heard = io.StringIO("".join(json.dumps(message) + "\n" for message in told))
    peer.serve(name, tmp_path, 2, peer.Line(heard, spoken))
    said = [json.loads(line) for line in spoken.getvalue().splitlines()]
    assert all(message.pop("ms", 0) >= 0 for message in said)
    return said


EMBEDS = [{"embed": [LARDER, CAT]}, {"ids": []}, {"embed": [WHERE]}, {"ids": ["a/0"]}]


def test_mem0_takes_texts_one_by_one_without_a_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Embedding(Strict):
        embedding_model: Any

        def search(self, text: str, *, top_k: int, filters: dict[str, str]) -> dict[str, Any]:
            assert (top_k, filters, self.embedding_model.embed(text, "search")) == (1, {"user_id": "a"}, [1.0, 1.0])
            return {"results": [{"metadata": {"ours": "a/0"}}]}

    adds: list[tuple[str, dict[Any, Any], Any]] = [
        ("add", {0: text, "user_id": "a", "metadata": {"ours": id_}, "infer": False}, None)
        for id_, text in (("a/0", LARDER), ("a/1", CAT))
    ]
    memory = Embedding(*adds)

    def from_config(config: dict[str, Any]) -> Embedding:
        store = {"path": str(tmp_path / "qdrant"), "embedding_model_dims": 2}
        assert config["vector_store"] == {"provider": "qdrant", "config": store}
        return memory

    monkeypatch.setitem(sys.modules, "mem0", SimpleNamespace(Memory=SimpleNamespace(from_config=from_config)))
    assert served("mem0", monkeypatch, tmp_path) == [{"version": "mem0ai 1"}, *EMBEDS]
    assert not memory.calls


def test_langgraph_has_a_namespace_for_each_person(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = Strict(
        ("put", {0: ("a",), 1: "a/0", 2: {"text": LARDER}}, None),
        ("put", {0: ("a",), 1: "a/1", 2: {"text": CAT}}, None),
        ("search", {0: ("a",), "query": WHERE, "limit": 1}, [SimpleNamespace(key="a/0")]),
    )

    def opened(*, index: dict[str, Any]) -> Strict:
        assert (index["dims"], index["fields"]) == (2, ["text"])
        return store

    monkeypatch.setitem(sys.modules, "langgraph.store.memory", SimpleNamespace(InMemoryStore=opened))
    said = served("langgraph", monkeypatch, tmp_path)
    assert said == [{"version": "langgraph 1"}, {"embed": [LARDER, CAT]}, {"ids": []}, {"ids": ["a/0"]}]
    assert not store.calls


def test_chromadb_filters_by_person(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def batch(id_: str, text: str, vector: list[float]) -> tuple[str, dict[Any, Any], None]:
        given: dict[Any, Any] = {
            "ids": [id_],
            "documents": [text],
            "embeddings": [vector],
            "metadatas": [{"person": "a"}],
        }
        return "add", given, None

    query: dict[Any, Any] = {"query_embeddings": [[1.0, 1.0]], "n_results": 1, "where": {"person": "a"}}
    texts = Strict(
        batch("a/0", LARDER, [1.0, 0.0]), batch("a/1", CAT, [0.0, 1.0]), ("query", query, {"ids": [["a/0"]]})
    )
    made: dict[Any, Any] = {0: "texts", "embedding_function": None, "configuration": {"hnsw": {"space": "cosine"}}}
    client = Strict(("create_collection", made, texts), ("get_max_batch_size", {}, 1))
    monkeypatch.setitem(sys.modules, "chromadb", SimpleNamespace(PersistentClient=lambda **_where: client))
    assert served("chromadb", monkeypatch, tmp_path) == [{"version": "chromadb 1"}, *EMBEDS]
    assert not texts.calls
    assert not client.calls


def test_every_peer_that_is_measured_can_be_run() -> None:
    assert [kind.name for kind in KINDS] == list(peer.PEERS)
    for kind in KINDS:
        package, _ = peer.PEERS[kind.name]
        assert kind.requirements[0].startswith(f"{package}==")
