"""Any frames under any floods, lost confirmations and refusals: what a reader sees in the end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.delivery import MOST_PARTS, Delivery, Errands, Gate
from bot.message import Button, DeliveryError, Reply
from tests.outlets import Fate, Shown, SimulatedChat, StillTime, cut

YES, NO = Button("yes", "Yes"), Button("no", "No")


def fates(*kinds: Fate) -> st.SearchStrategy[list[Fate]]:
    """What becomes of requests; more often than not all is well."""
    return st.lists(st.one_of(st.just("done"), st.sampled_from(kinds)), max_size=40)


TEXTS = st.lists(st.sampled_from(["a", "ab", "abc", "*", "*b", "z"]), min_size=1, max_size=MOST_PARTS).map("|".join)
FRAMES = st.lists(st.tuples(TEXTS, st.sampled_from([0.0, 0.1, 1.0, 2.5, 9.0])), max_size=12)
KINDS: tuple[Fate, ...] = ("flood", "lost", "never", "unsent", "formatting", "gone", "refused")


async def run(chat: SimulatedChat, frames: Sequence[tuple[str, float]], reply: Reply) -> bool:
    """Stream and send a reply in a chat; tell whether it was confirmed."""
    errands = Errands()
    delivery = Delivery(chat, Gate(chat.time.tempo, 1.0), errands)
    delivery.type()
    for text, pause in frames:
        await delivery.show(text)
        await chat.time.pass_by(pause)
    chat.refusing = False
    sending = asyncio.create_task(delivery.send(reply))
    await chat.time.until(sending)
    await delivery.done()
    await chat.time.pass_by(300)
    await errands.finish(0)
    assert chat.faults == []
    assert chat.requests.count("edit") <= (len(frames) + 1) * MOST_PARTS + len(chat.troubles)
    error = sending.exception()
    assert error is None or isinstance(error, DeliveryError)
    assert error is None or error.unknown
    return error is None


def wanted(reply: Reply) -> list[Shown]:
    """What a chat shows in the end."""
    *parts, last = cut(reply.text, markdown=reply.markdown)
    return [*(Shown(part.text) for part in parts), Shown(last.text, tuple(button.id for button in reply.buttons))]


@given(frames=FRAMES, text=TEXTS, script=fates(*KINDS), drafts=st.booleans())
@settings(max_examples=150, deadline=None)
async def test_with_repeatable_posts_the_final_text_is_there_once_whatever_happens(
    frames: list[tuple[str, float]],
    text: str,
    script: list[Fate],
    drafts: bool,  # noqa: FBT001
) -> None:
    chat = SimulatedChat(StillTime(), script, repeatable_slots=True, drafts=drafts)
    reply = Reply(text, (YES, NO), markdown=True)
    assert await run(chat, frames, reply)
    assert chat.visible == wanted(reply)


@given(frames=FRAMES, text=TEXTS, script=fates(*KINDS), drafts=st.booleans())
@settings(max_examples=150, deadline=None)
async def test_elsewhere_only_a_message_of_unknown_outcome_may_be_missing_or_too_much(
    frames: list[tuple[str, float]],
    text: str,
    script: list[Fate],
    drafts: bool,  # noqa: FBT001
) -> None:
    chat = SimulatedChat(StillTime(), script, drafts=drafts)
    reply = Reply(text, (YES, NO), markdown=True)
    confirmed = await run(chat, frames, reply)
    known = [shown for shown in chat.visible if shown.known]
    if confirmed:
        assert known == wanted(reply)
        assert len(chat.visible) - len(known) <= 1  # a first frame nobody was told of
    else:
        left = iter(wanted(reply))
        assert all(shown in left for shown in known)  # in order, each once
        assert len(wanted(reply)) - len(known) <= chat.doubtful_posts
        assert len(chat.visible) - len(known) <= chat.doubtful_posts
