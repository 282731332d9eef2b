"""There is no way into a memory without saying whose it is: the public face and every store are walked."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

import memory.access
import memory.accounts
import memory.answering
import memory.apart
import memory.consenting
import memory.consents
import memory.cooling
import memory.copying
import memory.corrections
import memory.departures
import memory.disclosing
import memory.distill
import memory.echoes
import memory.embedding
import memory.erasing
import memory.erasures
import memory.exporting
import memory.facts
import memory.fleeting
import memory.forget
import memory.forget_together
import memory.importing
import memory.journal
import memory.ledger
import memory.linking
import memory.lists
import memory.merging
import memory.moving
import memory.origins
import memory.overview
import memory.pages
import memory.pauses
import memory.persons
import memory.profile
import memory.promises
import memory.reach
import memory.reasons
import memory.recall
import memory.reconcile
import memory.restoring
import memory.revising
import memory.rezoning
import memory.rooms
import memory.sealed
import memory.sessions
import memory.sharing
import memory.timeline
import memory.together
import memory.traces
import memory.usage
import memory.waiting
from memory import Memory

WALKED: tuple[type, ...] = (
    Memory,
    memory.access.Access,
    memory.accounts.Chats,
    memory.answering.Answering,
    memory.copying.Copies,
    memory.corrections.Corrections,
    memory.consenting.Consenting,
    memory.consents.Consents,
    memory.reserve.Reserve,
    memory.apart.Apart,
    memory.cooling.Cooling,
    memory.merging.Merging,
    memory.disclosing.Disclosures,
    memory.distill.Distiller,
    memory.echoes.Echoes,
    memory.embedding.Embeddings,
    memory.exporting.Exports,
    memory.erasing.Erasing,
    memory.erasures.Erasures,
    memory.facts.Facts,
    memory.forget.Forgetting,
    memory.forget_together.ForgettingTogether,
    memory.fleeting.Fleeting,
    memory.freshness.Freshness,
    memory.importing.Imports,
    memory.journal.Journal,
    memory.ledger.Ledger,
    memory.lists.Lists,
    memory.moving.Moves,
    memory.origins.Origins,
    memory.overview.Overviews,
    memory.profile.Profile,
    memory.promises.Promises,
    memory.reach.Reach,
    memory.reasons.Reasons,
    memory.recall.Recall,
    memory.reconcile.Gate,
    memory.restoring.Reapplying,
    memory.revising.Revising,
    memory.rezoning.Rezoning,
    memory.pages.Pages,
    memory.pauses.Pauses,
    memory.sealed.Segments,
    memory.departures.Departures,
    memory.rooms.Rooms,
    memory.linking.Linking,
    memory.persons.Persons,
    memory.together.Together,
    memory.sessions.Sessions,
    memory.sharing.Sharing,
    memory.timeline.Timeline,
    memory.traces.Traces,
    memory.usage.Usage,
    memory.waiting.Waits,
)

WITHOUT_OWNER = {
    ("Memory", "open"): "opens the file",
    ("Memory", "close"): "closes the file",
    ("Memory", "account"): "this is where an owner comes from",
    ("Memory", "known_account"): "this is where an owner comes from",
    ("Memory", "acquainted"): "this is where an owner comes from",
    ("Memory", "job_runs"): "names of jobs, times and counts, no memory",
    ("Memory", "run_due"): "housekeeping goes owner by owner inside",
    ("Memory", "leave_off"): "the end of all housekeeping, whosever",
    ("Memory", "notices"): "gives each notice with its owner",
    ("Memory", "author_of"): "this is where an owner comes from: a deletion names a message, not who wrote it",
    ("Memory", "waiting"): "gives each message that waits with its owner, at a start",
    ("Memory", "moved"): "a group is nobody's own: its chats get another key, no memory is read",
    ("Memory", "newest_heard"): "returns platform's numbers of messages by chat, no memory",
    ("Copies", "cycle_hours"): "reads names of files, no memory",
    ("Copies", "run"): "copies the whole file, and erases owner by owner in copies",
    ("Ledger", "open"): "begins to listen",
    ("Ledger", "flush"): "goes owner by owner inside, numbers only",
    ("Ledger", "settle"): "goes owner by owner inside, numbers only",
    ("Reapplying", "all"): "goes owner by owner inside",
    ("Reapplying", "forget"): "goes owner by owner inside",
    ("Access", "standing"): "who may talk, by the platform's number: strangers have no account, and none is made",
    ("Access", "ask"): "a stranger has no account, and none is made",
    ("Access", "unasked"): "a stranger has no account, and none is made",
    ("Access", "approve"): "a code does not say whose it is; no memory",
    ("Access", "refuse"): "a code does not say whose it is; no memory",
    ("Access", "allow"): "names of people and groups by the platform's number, no memory",
    ("Access", "remove"): "names of people and groups by the platform's number, no memory",
    ("Access", "everyone"): "names of people and groups by the platform's number, no memory",
    ("Access", "asking"): "names of strangers by the platform's number, no memory",
    ("Answering", "waiting"): "gives each message that waits with its owner, at a start",
    ("Fleeting", "owners"): "returns account numbers, no memory",
    ("Fleeting", "sweep"): "goes owner by owner inside",
    ("Reserve", "answering"): "marks the reply it is handed, reads nothing",
    ("Journal", "newest_heard"): "returns platform's numbers of messages by chat, no memory",
    ("Moves", "move"): "a group is nobody's own: its chats get another key, no memory is read",
    ("Rooms", "moved"): "as for seen: a group goes on under another key, no memory is read",
    ("Rooms", "seen"): "who may see a room is nobody's own; memories are kept to private chats, none is read",
    ("Rooms", "removed"): "the bot itself is gone: every member of the group in turn, no memory is read",
    ("Persons", "forget_who_is_who"): "lets go of what is at hand, no memory",
    ("Persons", "open_codes"): "hashes of codes, no memory: who types one does not say whose it is",
    ("Persons", "use"): "takes a code away, no memory",
    ("Persons", "private_chat"): "returns the number of a chat, no memory",
    ("Together", "joined"): "each part comes with its account",
    ("Together", "overtaken"): "takes the accounts of one person",
    ("Departures", "members"): "returns account numbers, no memory",
    ("Usage", "owners_pending"): "returns account numbers, no memory",
    ("Waits", "owners_waiting"): "returns account numbers, no memory",
    ("Promises", "owners_owed"): "returns account numbers, no memory",
    ("Promises", "owners_due"): "returns account numbers, no memory",
    ("Sessions", "idle_since"): "reckons a moment, reads nothing",
    ("Sessions", "owners_due"): "returns account numbers, no memory",
    ("Freshness", "may_be_due"): "looks at a number and a time, reads no memory",
    ("Sessions", "astray"): "looks at times alone, nobody's words",
    ("Sessions", "set_right"): "sets times right that a wrong clock wrote, nobody's words",
    ("Embeddings", "owners_waiting"): "returns account numbers, no memory",
    ("Embeddings", "probes"): "vectors of shipped texts, nobody's memory",
    ("Recall", "centre"): "the mean of shipped texts, nobody's memory",
    ("Recall", "warm"): "embeds shipped texts, nobody's memory",
}


def methods() -> Iterator[tuple[str, str, inspect.Signature]]:
    for kind in WALKED:
        for name, method in inspect.getmembers(kind, callable):
            if not name.startswith("_"):
                yield kind.__name__, name, inspect.signature(method)


@pytest.mark.parametrize(("kind", "name", "signature"), list(methods()))
def test_every_public_method_takes_the_owner_first(kind: str, name: str, signature: inspect.Signature) -> None:
    names = [n for n in signature.parameters if n not in ("self", "cls")]
    if (kind, name) in WITHOUT_OWNER:
        assert "owner" not in names, f"{kind}.{name} takes an owner now: take it off the list"
        return
    assert names[:1] == ["owner"], f"{kind}.{name} must take the owner as its first argument"
    assert signature.parameters["owner"].default is inspect.Parameter.empty, f"{kind}.{name}: no default owner"


def test_the_list_of_exceptions_names_only_what_exists() -> None:
    assert set(WITHOUT_OWNER) <= {(kind, name) for kind, name, _ in methods()}
