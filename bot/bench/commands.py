"""``bench``: the command line of every measurement."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from bot.bench import abstain as bench_abstain
from bot.bench import cost as bench_cost
from bot.bench import delivery as bench_delivery
from bot.bench import forgetting as bench_forgetting
from bot.bench import load as bench_load
from bot.bench import peers as bench_peers
from bot.bench import recall as bench_recall
from bot.bench import speed as bench_speed
from bot.bench import write as bench_write
from bot.border import Json, look

bench = typer.Typer(
    help="Measure recall, silence, writing, speed, load, delivery or cost on this machine.", no_args_is_help=True
)


@bench.command(name="recall")
def recall_bench(
    *,
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="Folder with the question sets.")],
    as_json: Json = False,
    embedder: Annotated[
        Literal["auto", "endpoint", "local", "none"], typer.Option("--embedder", help="Where vectors come from.")
    ] = "local",
    ablate: Annotated[bool, typer.Option("--ablation", help="Also without each term of the score.")] = False,
    bare: Annotated[bool, typer.Option("--bare", help="Also without an embedder.")] = False,
    sample: Annotated[
        int | None, typer.Option("--sample", min=1, help="Only so many questions of each set, always the same.")
    ] = None,
    plots: Annotated[
        Path | None, typer.Option("--plot", metavar="DIR", help="Folder for pictures: recall by places and by tokens.")
    ] = None,
    trace: Annotated[
        str | None, typer.Option("--trace", metavar="ID", help="Tell how the question of this id is answered.")
    ] = None,
) -> None:
    """Measure how well recall finds what a question needs."""
    plan = bench_recall.Plan(ablate=ablate, bare=bare, sample=sample)
    look(lambda: bench_recall.main(data, as_json=as_json, embedder=embedder, plan=plan, plots=plots, trace=trace))


@bench.command(name="abstain")
def abstain_bench(
    *,
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="Folder with the question sets.")],
    as_json: Json = False,
    embedder: Annotated[
        Literal["auto", "endpoint", "local", "none"], typer.Option("--embedder", help="Where vectors come from.")
    ] = "local",
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="DIR", help="Folder for the curve as a picture.")
    ] = None,
) -> None:
    """Measure how well recall keeps silent about what it was never told, and for small talk."""
    look(lambda: bench_abstain.main(data, as_json=as_json, embedder=embedder, plot=plot))


@bench.command(name="peers")
def peers_bench(
    *,
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="Folder with the question sets.")],
    venvs: Annotated[
        Path, typer.Option("--venvs", metavar="DIR", help="Folder in which each peer gets a Python of its own.")
    ],
    sets: Annotated[str | None, typer.Option("--sets", metavar="A,B", help="Only the sets of these names.")] = None,
    conversations: Annotated[
        int | None, typer.Option("--conversations", min=1, help="Only the first so many conversations of each set.")
    ] = None,
    as_json: Json = False,
    embedder: Annotated[
        Literal["auto", "endpoint", "local"],
        typer.Option("--embedder", help="Where the vectors of everybody come from."),
    ] = "local",
) -> None:
    """Measure recall beside mem0, LangGraph's store and chromadb, which are installed apart from the bot."""
    look(
        lambda: bench_peers.main(
            data, venvs=venvs, as_json=as_json, embedder=embedder, sets=sets, conversations=conversations
        )
    )


@bench.command(name="speed")
def speed_bench(
    *,
    as_json: Json = False,
    plots: Annotated[
        Path | None, typer.Option("--plot", metavar="DIR", help="Folder for a picture: time by facts and by people.")
    ] = None,
) -> None:
    """Measure how fast recall is, against a plain loop and against numpy."""
    look(lambda: bench_speed.main(as_json=as_json, plots=plots))


@bench.command(name="delivery")
def delivery_bench(
    *,
    chats: Annotated[int, typer.Option("--chats", min=1, help="Chats that write at once.")] = 200,
    frames: Annotated[int, typer.Option("--frames", min=1, help="Pieces in which the model streams an answer.")] = 50,
    as_json: Json = False,
) -> None:
    """Measure how answers reach many chats at once, some of them flooded."""
    look(lambda: bench_delivery.main(chats=chats, frames=frames, as_json=as_json))


@bench.command(name="load")
def load_bench(
    *,
    chats: Annotated[int, typer.Option("--chats", min=1, help="People who write.")] = 1_000,
    rate: Annotated[float, typer.Option("--rate", min=0.1, help="Messages a second from all of them.")] = 50.0,
    seconds: Annotated[float, typer.Option("--seconds", min=1, help="How long they write.")] = 600.0,
    soak: Annotated[bool, typer.Option("--soak", help="For an hour, whatever --seconds says.")] = False,
    embedder: Annotated[
        Literal["scripted", "local", "none"], typer.Option("--embedder", help="Where vectors come from.")
    ] = "scripted",
    index_mb: Annotated[
        int, typer.Option("--index-mb", min=1, help="Bound of the indexes; small, they are soon full.")
    ] = bench_load.INDEX_MB,
    as_json: Json = False,
) -> None:
    """Have many people write to the whole bot at once: nothing lost, order, memory, how late it is."""
    lasting = bench_load.SOAK_SECONDS if soak else seconds
    plan = bench_load.Plan(chats=chats, rate=rate, seconds=lasting, embedder=embedder, index_mb=index_mb)
    look(lambda: bench_load.main(plan, as_json=as_json))


@bench.command(name="forget")
def forget_bench(
    people: Annotated[int, typer.Option(min=0, help="Other people in the file.")] = 1_000,
    each: Annotated[int, typer.Option(min=1, help="Facts of each of them.")] = 1_000,
    facts: Annotated[int, typer.Option(min=1, help="Facts of the one who is erased.")] = 10_000,
    *,
    as_json: Json = False,
) -> None:
    """Erase one person with a large memory beside many others: seconds, bytes, and a search for what is left."""
    look(lambda: bench_forgetting.main(people=people, each=each, facts=facts, as_json=as_json))


@bench.command(name="write")
def write_bench(
    *,
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="Folder that holds writepath.")],
    as_json: Json = False,
) -> None:
    """Measure what is written of what people say, what is not, and what it replaces."""
    look(lambda: bench_write.main(data, as_json=as_json))


@bench.command(name="cost")
def cost_bench(*, as_json: Json = False) -> None:
    """Measure how often the models are asked in a day of several people, and for how many tokens."""
    look(lambda: bench_cost.main(as_json=as_json))
