"""The strict Bot API server itself: what it must refuse, or the tests of the adapter prove little."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.servers.telegram_server import TelegramServer
from tests.telegram_world import ANNA, GROUP, NEW_GROUP

BOLD = {"type": "bold", "offset": 0, "length": 2}
LINK = BOLD | {"type": "text_link"}


@dataclass
class Api:
    """Raw requests, without an SDK between."""

    server: TelegramServer
    session: aiohttp.ClientSession

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        async with self.session.post(f"/bot{self.server.token}/{method}", json=params) as answer:
            body: dict[str, Any] = await answer.json()
        assert body["ok"] == (answer.status == 200)
        return body


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    """Yield a server with a message of Anna (1), one of ours (2) and a forum."""
    async with TelegramServer() as server, aiohttp.ClientSession(server.base_url) as session:
        api = Api(server, session)
        server.say(ANNA, "theirs")
        server.group(GROUP, 42, 43).threads[43] = False
        await api.call("sendMessage", chat_id=ANNA, text="ours")
        yield api


@pytest.mark.parametrize(
    ("method", "params", "refusal"),
    [
        ("sendMessage", {"chat_id": ANNA, "text": " \n"}, "message text is empty"),
        ("sendMessage", {"chat_id": ANNA, "text": "a" * 4_097}, "message is too long"),
        ("sendMessage", {"chat_id": ANNA, "text": "汉" * 4_097}, "message is too long"),
        ("sendMessage", {"chat_id": ANNA, "text": "😀" * 2_048 + "a"}, "message is too long"),
        ("sendMessage", {"chat_id": ANNA, "text": "a\ud83d"}, "strings must be encoded in UTF-8"),
        ("sendMessage", {"chat_id": 9, "text": "hi"}, "chat not found"),
        ("sendMessage", {"chat_id": ANNA, "text": "hi", "parse_mode": "HTML"}, "this server knows no parameter"),
        ("sendMessage", {"chat_id": GROUP, "text": "hi", "message_thread_id": 1}, "message thread not found"),
        ("sendMessage", {"chat_id": GROUP, "text": "hi", "message_thread_id": 43}, "TOPIC_CLOSED"),
        ("sendChatAction", {"chat_id": GROUP, "action": "typing", "message_thread_id": 7}, "message thread not found"),
        ("sendMessage", {"chat_id": ANNA, "text": "hi", "reply_parameters": {"message_id": 999}}, "to be replied"),
        ("editMessageText", {"chat_id": ANNA, "message_id": 1, "text": "mine"}, "message can't be edited"),
        ("editMessageText", {"chat_id": ANNA, "message_id": 999, "text": "hi"}, "message to edit not found"),
        ("editMessageText", {"chat_id": ANNA, "message_id": 2, "text": "ours "}, "message is not modified"),
        ("editMessageText", {"chat_id": ANNA, "message_id": 2, "text": "a" * 4_097}, "MESSAGE_TOO_LONG"),
        ("deleteMessage", {"chat_id": ANNA, "message_id": 999}, "message to delete not found"),
        ("sendMessageDraft", {"chat_id": GROUP, "draft_id": 1, "text": "hi"}, "private chats only"),
        ("sendMessageDraft", {"chat_id": ANNA, "draft_id": 0, "text": "hi"}, "DRAFT_ID_INVALID"),
        ("answerCallbackQuery", {"callback_query_id": "77"}, "query is too old"),
        ("setMyCommands", {"commands": []}, "BOT_COMMANDS_TOO_MUCH"),
        ("setMyCommands", {"commands": [{"command": "Help", "description": "x"}]}, "BOT_COMMAND_INVALID"),
        ("setMyCommands", {"commands": [{"command": "a", "description": ""}]}, "BOT_COMMAND_DESCRIPTION_INVALID"),
        ("getMyCommands", {"language_code": "zh-TW"}, "LANGUAGE_CODE_INVALID"),
        ("getUpdates", {"limit": 101}, "limit must be"),
        ("getFile", {"file_id": "no"}, "wrong file_id"),
        ("setWebhook", {"url": "http://bot.example"}, "An HTTPS URL must be provided"),
        ("setWebhook", {"url": "https://bot.example", "secret_token": "ü"}, "unallowed characters"),
        ("getChat", {"chat_id": ANNA}, "Not Found"),
    ],
)
async def test_it_refuses_what_the_platform_refuses(
    api: Api, method: str, params: dict[str, Any], refusal: str
) -> None:
    assert refusal in (await api.call(method, **params))["description"]
    assert api.server.chat(ANNA).texts == ["ours"]


@pytest.mark.parametrize("text", ["a" * 4_096, "汉" * 4_096, "😀" * 2_048, "a" * 4_095])
async def test_it_takes_a_text_up_to_the_limit(api: Api, text: str) -> None:
    assert (await api.call("sendMessage", chat_id=ANNA, text=text))["result"]["text"] == text


@pytest.mark.parametrize(
    ("entities", "refusal"),
    [
        ([BOLD | {"offset": 1}], "middle of a UTF-16 symbol"),
        ([BOLD | {"length": 1}], "middle of a UTF-16 symbol"),
        ([BOLD | {"length": 5}], "ENTITY_BOUNDS_INVALID"),
        ([BOLD | {"length": 0}], "ENTITY_BOUNDS_INVALID"),
        ([BOLD | {"offset": -1}], "ENTITY_BOUNDS_INVALID"),
        ([BOLD | {"type": "blink"}], "unsupported entity type blink"),
        ([LINK], "ENTITY_TEXTURL_INVALID"),
        ([BOLD | {"length": 3}, BOLD | {"type": "italic", "offset": 2}], "overlap without being nested"),
        ([BOLD | {"type": "code"}, BOLD | {"type": "italic"}], "italic inside of code"),
    ],
)
async def test_it_refuses_entities_that_are_wrong(api: Api, entities: list[dict[str, Any]], refusal: str) -> None:
    answer = await api.call("sendMessage", chat_id=ANNA, text="😀ab", entities=entities)
    assert refusal in answer["description"]


async def test_it_looks_at_a_hundred_entities_and_shows_an_edit_that_changes_only_them(api: Api) -> None:
    wrong = {"type": "bold", "offset": 90_000, "length": 1}
    marks = [{"type": "bold", "offset": number, "length": 1} for number in range(100)]
    sent = await api.call("sendMessage", chat_id=ANNA, text="a" * 100, entities=[*marks, wrong])
    assert len(sent["result"]["entities"]) == 100
    edited = await api.call(
        "editMessageText", chat_id=ANNA, message_id=sent["result"]["message_id"], text="a" * 100, entities=marks[:1]
    )
    assert len(edited["result"]["entities"]) == 1


async def test_a_button_has_at_most_64_bytes(api: Api) -> None:
    for data, taken in (("a" * 64, True), ("好" * 22, False), ("", False)):
        markup = {"inline_keyboard": [[{"text": "a", "callback_data": data}]]}
        answer = await api.call("sendMessage", chat_id=ANNA, text="hi", reply_markup=markup)
        assert answer["ok"] is taken


async def test_people_it_cannot_write_to_are_told_apart(api: Api) -> None:
    anna, group = api.server.chat(ANNA), api.server.chat(GROUP)
    anna.blocked = group.blocked = True
    answers = [await api.call("sendMessage", chat_id=chat_id, text="hi") for chat_id in (ANNA, GROUP)]
    api.server.chat(7).started = False
    answers.append(await api.call("sendMessage", chat_id=7, text="hi"))
    assert [answer["error_code"] for answer in answers] == [403, 403, 403]
    assert [answer["description"].removeprefix("Forbidden: bot ") for answer in answers] == [
        "was blocked by the user",
        "was kicked from the supergroup chat",
        "can't initiate conversation with a user",
    ]


async def test_a_group_that_moved_names_its_new_id(api: Api) -> None:
    api.server.migrate(GROUP, NEW_GROUP)
    answer = await api.call("sendMessage", chat_id=GROUP, text="hi")
    assert (answer["error_code"], answer["parameters"]) == (400, {"migrate_to_chat_id": NEW_GROUP})
    notices = [update["message"] for update in (await api.call("getUpdates"))["result"]][1:]
    assert [(notice["chat"]["id"], notice.get("migrate_to_chat_id")) for notice in notices] == [
        (GROUP, NEW_GROUP),
        (NEW_GROUP, None),
    ]


async def test_a_flood_holds_for_its_chat_and_method_until_it_is_over(api: Api) -> None:
    api.server.fault("sendMessage", retry_after=30)
    for _ in range(2):
        answer = await api.call("sendMessage", chat_id=ANNA, text="hi")
        assert (answer["error_code"], answer["parameters"]) == (429, {"retry_after": 30})
    assert (await api.call("sendMessage", chat_id=GROUP, text="hi"))["ok"]
    assert (await api.call("sendChatAction", chat_id=ANNA, action="typing"))["ok"]


async def test_updates_come_again_until_they_are_confirmed(api: Api) -> None:
    async def poll(**params: int) -> list[str]:
        return [update["message"]["text"] for update in (await api.call("getUpdates", **params))["result"]]

    for text in "bc":
        api.server.say(ANNA, text)
    assert await poll() == await poll(limit=100) == ["theirs", "b", "c"]
    assert await poll(offset=api.server.updates.waiting[1]["update_id"], limit=1) == ["b"]
    assert await poll(offset=-1) == ["c"]
    assert await poll(offset=api.server.updates.waiting[-1]["update_id"] + 1) == []


async def test_only_the_kinds_of_updates_that_were_asked_for_last_are_kept(api: Api) -> None:
    await api.call("getUpdates", offset=-1, allowed_updates=["callback_query"])
    api.server.say(ANNA, "unheard")
    assert len((await api.call("getUpdates"))["result"]) == 1


async def test_a_second_poll_and_a_webhook_end_a_poll(api: Api) -> None:
    await api.call("getUpdates", offset=9_999)
    for interrupting in (api.call("getUpdates"), api.call("setWebhook", url="https://bot.example/hook")):
        waiting = asyncio.create_task(api.call("getUpdates", timeout=5))
        await api.server.until(lambda: "timeout" in api.server.requests[-1].params)
        assert (await interrupting)["ok"]
        assert (await waiting)["error_code"] == 409
    assert "webhook is active" in (await api.call("getUpdates"))["description"]
    assert (await api.call("getWebhookInfo"))["result"]["url"] == "https://bot.example/hook"
    await api.call("deleteWebhook")
    assert (await api.call("getWebhookInfo"))["result"]["url"] == ""


async def test_a_webhook_gets_each_update_with_its_secret_until_it_says_2xx(api: Api) -> None:
    seen: list[tuple[str, str]] = []

    async def hook(request: web.Request) -> web.Response:
        text = (await request.json())["message"]["text"]
        seen.append((request.headers["X-Telegram-Bot-Api-Secret-Token"], text))
        return web.Response(status=503 if len(seen) < 3 else 200)

    app = web.Application()
    app.router.add_post("/hook", hook)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    api.server.updates.webhook_at = f"http://127.0.0.1:{runner.addresses[0][1]}"
    api.server.say(ANNA, "second")
    await api.call("setWebhook", url="https://bot.example/hook", secret_token="s")
    await api.server.until(lambda: not api.server.updates.waiting)
    await runner.cleanup()
    assert seen == [("s", "theirs"), ("s", "theirs"), ("s", "theirs"), ("s", "second")]


@pytest.mark.parametrize("by_name", [False, True])
async def test_a_file_arrives_whole_and_can_be_fetched(api: Api, by_name: bool) -> None:  # noqa: FBT001
    form = aiohttp.FormData({"chat_id": str(ANNA)})
    form.add_field("thing" if by_name else "document", b"abc", filename="a.txt")
    if by_name:
        form.add_field("document", "attach://thing")
    async with api.session.post(f"/bot{api.server.token}/sendDocument", data=form) as answer:
        document = (await answer.json())["result"]["document"]
    assert (document["file_name"], document["file_size"]) == ("a.txt", 3)
    path = (await api.call("getFile", file_id=document["file_id"]))["result"]["file_path"]
    async with api.session.get(f"/file/bot{api.server.token}/{path}") as answer:
        assert await answer.read() == b"abc"
    huge = api.server.upload(b"", size=20_000_001)
    assert "file is too big" in (await api.call("getFile", file_id=huge["file_id"]))["description"]


async def test_a_form_and_json_say_the_same(api: Api) -> None:
    form = {"chat_id": str(ANNA), "text": "12", "entities": json.dumps([BOLD])}
    async with api.session.post(f"/bot{api.server.token}/sendMessage", data=form) as answer:
        assert (await answer.json())["result"]["entities"] == [BOLD]


@pytest.mark.parametrize(("token", "status"), [("123456789:" + "a" * 35, 401), ("nonsense", 404)])
async def test_wrong_tokens_are_told_apart(api: Api, token: str, status: int) -> None:
    async with api.session.post(f"/bot{token}/getMe") as answer:
        assert answer.status == status
