"""The Slack of the tests is one that slack_sdk and slack_bolt take for the real one."""

from __future__ import annotations

import logging
import urllib.parse
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import anyio
import msgspec
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.signature import Clock as SignatureClock
from slack_sdk.signature import SignatureVerifier
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from deskhand.testing.clock import SetClock
from deskhand.testing.slack.server import SlackServer

ANN = "U0ANN"
YES = {
    "type": "button",
    "text": {"type": "plain_text", "text": "Yes"},
    "value": "a:1",
    "action_id": "answer",
}
ASKING: list[dict[str, Any]] = [
    {"type": "section", "text": {"type": "mrkdwn", "text": "*Really?*"}},
    {"type": "actions", "elements": [YES]},
]


@pytest.fixture
async def server() -> AsyncIterator[SlackServer]:
    async with SlackServer(ack_timeout_s=0.2, retry_pauses_s=(0.0, 0.0, 0.0)) as started:
        yield started


def web(server: SlackServer, token: str = "") -> AsyncWebClient:
    return AsyncWebClient(token or server.token, base_url=server.base_url, retry_handlers=[])


async def until(done: Callable[[], object]) -> None:
    with anyio.fail_after(10):
        while not done():
            await anyio.sleep(0.01)


class Heard:
    """What came over Socket Mode; `mute` acknowledges nothing."""

    def __init__(self) -> None:
        self.requests: list[SocketModeRequest] = []
        self.mute = False

    async def __call__(self, client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        self.requests.append(request)
        if not self.mute:
            await client.send_socket_mode_response(SocketModeResponse(request.envelope_id))

    @property
    def events(self) -> list[dict[str, Any]]:
        return [each.payload["event"] for each in self.requests if each.type == "events_api"]

    @property
    def texts(self) -> list[str]:
        return [each["text"] for each in self.events]


@asynccontextmanager
async def connected(server: SlackServer) -> AsyncIterator[Heard]:
    heard = Heard()
    client = SocketModeClient(
        server.app_token, web_client=web(server), ping_interval=0.2, logger=logging.getLogger("x")
    )
    client.socket_mode_request_listeners.append(heard)
    await client.connect()  # type: ignore[no-untyped-call]
    try:
        yield heard
    finally:
        await client.close()  # type: ignore[no-untyped-call]


async def refusal(call: Any) -> str:
    with pytest.raises(SlackApiError) as error:
        await call
    return str(error.value.response["error"])


# ---------------------------------------------------------------------- the Web API


async def test_saying_changing_and_deleting(server: SlackServer) -> None:
    here = server.workspace.im(ANN)
    bot = web(server)
    me = await bot.auth_test()
    assert (me["user_id"], me["bot_id"]) == (server.workspace.bot, server.workspace.bot_id)
    asked = server.workspace.says(ANN, "hello")
    sent = await bot.chat_postMessage(
        channel=here, text="a &lt; *b* `c_d`", thread_ts=asked.ts, unfurl_links=False
    )
    assert sent["message"]["thread_ts"] == asked.ts
    assert server.workspace.said(ANN) == ["a < b c_d"]
    assert server.workspace.last(ANN).unfurls == {"unfurl_links": False}
    await bot.chat_update(channel=here, ts=sent["ts"], text="Really?", blocks=ASKING)
    post = server.workspace.last(ANN)
    assert (post.text, post.buttons, post.edits) == ("Really?", ["Yes"], ["a < b c_d"])
    assert post.json["blocks"][1]["elements"] == [YES], "blocks are kept as given"
    await bot.chat_update(channel=here, ts=sent["ts"], text="bye")
    assert (post.text, post.buttons) == ("bye", []), "text without blocks takes them away"
    replies = await bot.conversations_replies(channel=here, ts=asked.ts)
    assert [each["text"] for each in replies["messages"]] == ["hello", "bye"]
    history = await bot.conversations_history(channel=here)
    assert [each["text"] for each in history["messages"]] == ["hello"]
    await bot.chat_delete(channel=here, ts=sent["ts"])
    assert server.workspace.said(ANN) == [] and server.workspace.removed == [post]


async def test_people_places_and_pages(server: SlackServer) -> None:
    workspace = server.workspace
    general = workspace.channel("general", members=[ANN])
    for number in range(5):
        workspace.says(ANN, f"message {number}", channel=general)
    bot = web(server)
    texts = []
    # Each page is the same object.
    async for page in await bot.conversations_history(channel=general, limit=2):
        texts += [each["text"] for each in page["messages"]]
    assert texts == [f"message {number}" for number in range(4, -1, -1)]
    since = workspace.messages(general)[2].ts
    newer = await bot.conversations_history(channel=general, oldest=since)
    assert len(newer["messages"]) == 2
    assert (await bot.users_info(user=ANN))["user"]["name"] == ANN.lower()
    assert len((await bot.users_list())["members"]) == 2
    assert [each["id"] for each in (await bot.conversations_list())["channels"]] == [general]
    assert (await bot.conversations_info(channel=general))["channel"]["is_member"]
    here = (await bot.conversations_open(users=ANN))["channel"]["id"]
    assert (await bot.chat_postMessage(channel=ANN, text="hi"))["channel"] == here
    marked = {"event_type": "key", "event_payload": {"key": "k1"}}
    await bot.chat_postMessage(channel=here, text="marked", metadata=marked)
    found = await bot.conversations_history(channel=here, include_all_metadata=True)
    assert found["messages"][0]["metadata"] == marked


async def test_what_needs_a_scope_or_an_invitation(server: SlackServer) -> None:
    workspace = server.workspace
    general = workspace.channel("general")
    other = workspace.channel("other", has_bot=False)
    asked = workspace.says(ANN, "hello", channel=general)
    bot = web(server)
    there: dict[str, Any] = {"channel": other, "ts": "1.0"}
    assert await refusal(bot.conversations_history(channel=other)) == "not_in_channel"
    assert await refusal(bot.conversations_replies(**there)) == "not_in_channel"
    workspace.scopes = {"groups:read"}
    for call in (
        bot.users_info(user=ANN),
        bot.conversations_list(),
        bot.conversations_history(channel=general),
        bot.conversations_replies(channel=general, ts=asked.ts),
    ):
        assert await refusal(call) == "missing_scope"
    with pytest.raises(SlackApiError) as error:
        await bot.conversations_list(types="private_channel,public_channel")
    assert error.value.response["needed"] == "channels:read"
    assert error.value.response["provided"] == "groups:read"


async def test_reactions_and_status(server: SlackServer) -> None:
    asked = server.workspace.says(ANN, "hello")
    where: dict[str, Any] = {"channel": asked.channel, "timestamp": asked.ts}
    bot = web(server)
    await bot.reactions_add(name="eyes", **where)
    assert asked.json["reactions"] == [{"name": "eyes", "users": ["U0BOT"], "count": 1}]
    assert await refusal(bot.reactions_add(name="eyes", **where)) == "already_reacted"
    await bot.reactions_remove(name="eyes", **where)
    assert await refusal(bot.reactions_remove(name="eyes", **where)) == "no_reaction"
    assert await refusal(bot.reactions_add(name="👀", **where)) == "invalid_name"
    await bot.assistant_threads_setStatus(
        channel_id=asked.channel, thread_ts=asked.ts, status="is thinking..."
    )
    assert server.workspace.statuses == [(asked.channel, asked.ts, "is thinking...")]


async def test_files(server: SlackServer) -> None:
    asked = server.workspace.sends_file(ANN, b"theirs", "ä b.txt", text="look")
    bot = web(server)
    done = await bot.files_upload_v2(
        channel=asked.channel, filename="a.txt", content="ours", initial_comment="here"
    )
    about = (await bot.files_info(file=done["file"]["id"]))["file"]
    shared = about["shares"]["private"][asked.channel]
    assert [each["ts"] for each in shared] == [server.workspace.last(ANN).ts]
    assert server.workspace.said(ANN) == ["here"] and "shares" not in done["file"]
    bearer = {"Authorization": f"Bearer {server.token}"}
    async with aiohttp.ClientSession() as session:
        for url, wanted in (
            (asked.json["files"][0]["url_private_download"], b"theirs"),
            (about["url_private_download"], b"ours"),
        ):
            async with session.get(url, headers=bearer) as answer:
                assert await answer.read() == wanted
            async with session.get(url, headers={"Authorization": "Bearer no"}) as answer:
                assert (answer.status, answer.content_type) == (200, "text/html")


async def test_what_is_refused(server: SlackServer) -> None:
    asked = server.workspace.says(ANN, "hello")
    here = asked.channel
    outside = server.workspace.channel("outside", has_bot=False)
    bot = web(server)
    post = bot.chat_postMessage
    long = [{"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}]
    many = [{"type": "section", "text": {"type": "mrkdwn", "text": "x" * 2900}}] * 4
    assert await refusal(post(channel="C0NOWHERE", text="x")) == "channel_not_found"
    assert await refusal(post(channel=outside, text="x")) == "not_in_channel"
    assert await refusal(bot.api_call("chat.postMessage", json={"channel": here})) == "no_text"
    assert await refusal(post(channel=here, text="x", blocks=long)) == "invalid_blocks"
    assert await refusal(post(channel=here, text="x", blocks=many)) == "msg_blocks_too_long"
    sent = await post(channel=here, text="x" * 40_001)
    assert sent["response_metadata"]["warnings"] == ["message_truncated"]
    assert len(server.workspace.last(ANN).text) == 40_000
    update = bot.chat_update
    assert await refusal(update(channel=here, ts=sent["ts"], text="x" * 4001)) == "msg_too_long"
    assert await refusal(update(channel=here, ts="1.1", text="x")) == "message_not_found"
    assert await refusal(update(channel=here, ts=asked.ts, text="x")) == "cant_update_message"
    assert await refusal(bot.chat_delete(channel=here, ts=asked.ts)) == "cant_delete_message"
    assert await refusal(web(server, "xoxb-other").auth_test()) == "invalid_auth"
    assert await refusal(web(server, server.app_token).auth_test()) == "not_allowed_token_type"
    opening = bot.apps_connections_open(app_token="xapp-other")
    assert await refusal(opening) == "invalid_auth"
    server.revoked = True
    assert await refusal(bot.auth_test()) == "token_revoked"


async def test_faults(server: SlackServer) -> None:
    here = server.workspace.im(ANN)
    bot = web(server)
    server.fail("chat.postMessage", 429, retry_after=7, after=1)
    await bot.chat_postMessage(channel=here, text="one")
    with pytest.raises(SlackApiError) as flood:
        await bot.chat_postMessage(channel=here, text="two")
    assert flood.value.response.status_code == 429
    assert flood.value.response.headers["Retry-After"] == "7"
    assert flood.value.response["error"] == "ratelimited"
    server.fail("chat.postMessage", 503)
    with pytest.raises(SlackApiError) as broken:
        await bot.chat_postMessage(channel=here, text="three")
    assert broken.value.response.status_code == 503 and broken.value.response["error"] is None
    server.lose("chat.postMessage")
    with pytest.raises(aiohttp.ClientError):
        await bot.chat_postMessage(channel=here, text="cut off")
    server.hang("chat.postMessage")
    bot.timeout = 1
    with pytest.raises(TimeoutError):
        await bot.chat_postMessage(channel=here, text="never answered")
    assert server.workspace.said(ANN) == ["one", "cut off", "never answered"]
    await server.stop()
    with pytest.raises(aiohttp.ClientError):
        await bot.auth_test()
    await server.start(server.port)
    await bot.auth_test()


async def test_slack_sdk_says_it_twice_if_the_answer_is_lost(server: SlackServer) -> None:
    """Its own retries must be off where a message may be said once only."""
    careless = AsyncWebClient(server.token, base_url=server.base_url)
    server.lose("chat.postMessage")
    await careless.chat_postMessage(channel=server.workspace.im(ANN), text="hi")
    assert server.workspace.said(ANN) == ["hi", "hi"]


# ---------------------------------------------------------------------- Socket Mode


async def test_events(server: SlackServer) -> None:
    workspace = server.workspace
    general = workspace.channel("general", members=[ANN])
    async with connected(server) as heard:
        asked = workspace.says(ANN, "a < b https://x.test/?a&b")
        workspace.edits(asked, "changed")
        workspace.reacts(ANN, asked, "eyes")
        workspace.reacts(ANN, asked, "eyes", remove=True)
        workspace.deletes(asked)
        workspace.says(ANN, f"{workspace.mention} hi", channel=general)
        workspace.sends_file(ANN, b"x", "notes.txt")
        workspace.bot_says("beep", channel=general)
        await until(lambda: len(server.socket_mode.acknowledged) == 9)
        await web(server).chat_postMessage(channel=general, text="our own")
        await until(lambda: len(heard.events) == 10)
    said, changed, added, removed, deleted, *rest = heard.events
    assert said["text"] == "a &lt; b <https://x.test/?a&amp;b>"
    assert (said["channel_type"], said["user"], said["ts"]) == ("im", ANN, asked.ts)
    assert changed["subtype"] == "message_changed" and changed["message"]["text"] == "changed"
    assert changed["message"]["ts"] == asked.ts != changed["ts"]
    assert (added["type"], removed["type"]) == ("reaction_added", "reaction_removed")
    assert added["item"] == {"type": "message", "channel": asked.channel, "ts": asked.ts}
    assert (deleted["subtype"], deleted["deleted_ts"]) == ("message_deleted", asked.ts)
    both, mention, file, bot, ours = rest
    assert (both["type"], mention["type"]) == ("message", "app_mention")
    assert both["ts"] == mention["ts"] and both["channel_type"] == "channel"
    assert file["subtype"] == "file_share" and file["files"][0]["name"] == "notes.txt"
    assert (bot["subtype"], bot["bot_id"]) == ("bot_message", "B0OTHER") and "user" not in bot
    assert (ours["user"], ours["bot_id"]) == (workspace.bot, workspace.bot_id)
    assert server.socket_mode.waiting == []


async def test_what_is_no_edit_and_who_is_no_person(server: SlackServer) -> None:
    workspace = server.workspace
    async with connected(server) as heard:
        asked = workspace.says(ANN, "see https://x.test")
        workspace.unfurls(asked, "https://x.test", "A page", "words of it")
        workspace.bot_says("in her name", channel=asked.channel, user=ANN)
        workspace.bot_says("in its own", channel=asked.channel, user="U0OTHER")
        await until(lambda: len(heard.events) == 4)
    said, unfurled, hers, its = heard.events
    assert unfurled["message"]["text"] == said["text"] and "edited" not in unfurled["message"]
    assert unfurled["message"]["attachments"][0]["title"] == "A page"
    assert (hers["user"], hers["bot_id"]) == (ANN, "B0OTHER")
    assert (its["user"], its["bot_id"]) == ("U0OTHER", "B0OTHER")
    assert workspace.users["U0OTHER"]["is_bot"]


async def test_several_connections(server: SlackServer) -> None:
    async with connected(server) as first, connected(server) as second:
        server.workspace.says(ANN, "one")
        await until(lambda: server.socket_mode.acknowledged)
        assert (first.texts, second.texts) == ([], ["one"])
        url = (await web(server).apps_connections_open(app_token=server.app_token))["url"]
        server.socket_mode.links *= 5
        async with aiohttp.ClientSession() as session, session.ws_connect(url) as socket:
            assert (await socket.receive_json())["reason"] == "too_many_websockets"
        server.socket_mode.links = server.socket_mode.links[:2]


async def test_what_is_not_acknowledged_comes_again(server: SlackServer) -> None:
    async with connected(server) as heard:
        heard.mute = True
        server.workspace.says(ANN, "one")
        await until(lambda: len(heard.requests) == 2)
    async with connected(server) as later:
        await until(lambda: server.socket_mode.acknowledged)
        server.swallow()
        server.workspace.says(ANN, "two")
        await until(lambda: len(later.requests) == 3 and not server.socket_mode.waiting)
    first, second = heard.requests
    assert (first.retry_attempt, first.retry_reason) == (0, "")
    assert (second.retry_attempt, second.retry_reason) == (1, "timeout")
    assert later.texts == ["one", "two", "two"]
    assert first.payload["event_id"] == later.requests[0].payload["event_id"]


async def test_what_is_never_acknowledged_is_lost(server: SlackServer) -> None:
    async with connected(server) as heard:
        heard.mute = True
        server.workspace.says(ANN, "one")
        await until(lambda: server.socket_mode.lost)
        assert len(heard.requests) == 4 and server.socket_mode.waiting == []


async def test_what_was_said_while_nobody_listened(server: SlackServer) -> None:
    server.workspace.says(ANN, "forgotten")
    assert server.forget() == 1
    for number in range(3):
        server.workspace.says(ANN, f"message {number}")
    async with connected(server) as heard:
        await until(lambda: len(heard.texts) == 3)
    assert heard.texts == [f"message {number}" for number in range(3)]
    assert heard.requests[0].retry_attempt == 1


@pytest.mark.parametrize("how", ["refresh", "warning", "drop", "deaf", "restart"])
async def test_a_new_connection(how: str, server: SlackServer) -> None:
    async with connected(server) as heard:
        server.workspace.says(ANN, "one")
        await until(lambda: len(server.socket_mode.acknowledged) == 1)
        (before,) = server.socket_mode.links
        if how in ("refresh", "warning"):
            await server.ask_to_reconnect("warning" if how == "warning" else "refresh_requested")
        elif how == "drop":
            server.drop()
        elif how == "deaf":
            server.go_deaf()
        else:
            await server.stop()
            await server.start(server.port)
        server.workspace.says(ANN, "two")
        await until(lambda: len(server.socket_mode.acknowledged) == 2)
        await until(lambda: before not in server.socket_mode.links)
    assert heard.texts[-1] == "two"


async def test_a_ticket_opens_one_connection(server: SlackServer) -> None:
    url = (await web(server).apps_connections_open(app_token=server.app_token))["url"]
    async with aiohttp.ClientSession() as session:
        async with session.ws_connect(url) as socket:
            assert (await socket.receive_json())["type"] == "hello"
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(url)


async def test_buttons(server: SlackServer) -> None:
    workspace = server.workspace
    bot = web(server)
    await bot.chat_postMessage(channel=workspace.im(ANN), text="Really?", blocks=ASKING)
    post = workspace.last(ANN)
    workspace.presses(ANN, post, "Yes")
    assert server.socket_mode.lost, "nobody is there: the person sees that it failed"
    async with connected(server) as heard:
        press = workspace.presses(ANN, post, "a:1")
        await until(lambda: press.acknowledged)
        payload = heard.requests[-1].payload
        assert (payload["type"], payload["user"]["id"]) == ("block_actions", ANN)
        assert payload["actions"][0]["value"] == "a:1" and payload["message"]["ts"] == post.ts
        answers = AsyncWebhookClient(payload["response_url"])
        answer = await answers.send(text="Noted.", replace_original=True)
        assert (answer.status_code, answer.body) == (200, "ok")
        assert (post.text, post.buttons) == ("Noted.", [])
        for _ in range(4):
            await answers.send(text="again", response_type="ephemeral")
        assert (await answers.send(text="too often")).status_code == 404
        view: dict[str, Any] = {"type": "modal", "blocks": []}
        await bot.views_open(trigger_id=payload["trigger_id"], view=view)
        reopened = bot.views_open(trigger_id=payload["trigger_id"], view=view)
        assert await refusal(reopened) == "exchanged_trigger_id"
    with pytest.raises(LookupError):
        workspace.presses(ANN, post, "Yes")


async def test_slack_bolt(server: SlackServer) -> None:
    """It answers to messages, mentions and presses, and leaves out what the bot itself said."""
    bolt = pytest.importorskip("slack_bolt.async_app")
    adapter = pytest.importorskip("slack_bolt.adapter.socket_mode.aiohttp")
    workspace = server.workspace
    app = bolt.AsyncApp(client=web(server), signing_secret=server.signing_secret)
    seen: list[str] = []

    async def message(event: dict[str, Any], say: Any) -> None:
        seen.append(event["text"])
        await say(text="Really?", blocks=ASKING)

    async def mentioned(event: dict[str, Any]) -> None:
        seen.append(f"mention in {event['channel']}")

    async def answered(ack: Any, respond: Any, action: dict[str, Any]) -> None:
        await ack()
        seen.append(action["value"])
        await respond(text="Noted.", replace_original=True)

    app.event("message")(message)
    app.event("app_mention")(mentioned)
    app.action("answer")(answered)
    handler = adapter.AsyncSocketModeHandler(app, server.app_token, ping_interval=0.2)
    await handler.connect_async()
    try:
        workspace.says(ANN, "hello")
        await until(lambda: workspace.said(ANN) == ["Really?"])
        workspace.presses(ANN, workspace.last(ANN), "answer")
        await until(lambda: workspace.said(ANN) == ["Noted."])
        workspace.subscribed = {"app_mention"}
        general = workspace.channel("general", members=[ANN])
        workspace.says(ANN, f"{workspace.mention} hi", channel=general)
        await until(lambda: len(seen) == 3)
        await until(lambda: not server.socket_mode.waiting)
    finally:
        await handler.close_async()
    assert seen == ["hello", "a:1", f"mention in {general}"]
    assert server.socket_mode.lost == []


# ---------------------------------------------------------------------- the webhook


async def test_signed_requests(server: SlackServer) -> None:
    clock = SetClock()

    class Now(SignatureClock):
        def now(self) -> float:
            return clock.now()

    verifier = SignatureVerifier(server.signing_secret, Now())
    server.workspace.says(ANN, "hello ä")
    await web(server).chat_postMessage(channel=ANN, text="Really?", blocks=ASKING)
    server.workspace.presses(ANN, server.workspace.last(ANN), "Yes")
    requests = server.take_requests(clock)
    assert all(verifier.is_valid_request(body, headers) for headers, body in requests)
    event, _, press = [body for _, body in requests]
    assert msgspec.json.decode(event)["event"]["text"] == "hello ä"
    form = urllib.parse.parse_qs(press.decode())
    assert msgspec.json.decode(form["payload"][0])["type"] == "block_actions"
    check = {"type": "url_verification", "challenge": "c"}
    headers, body = server.signed(check, clock, age_s=301)
    assert not verifier.is_valid_request(body, headers)
    headers, body = server.signed(check, clock, secret="forged")
    assert not verifier.is_valid_request(body, headers)


# ---------------------------------------------------------------------- what is seen


TEXTS = [
    ("a **b** *c* _d_ ~e~ `f`", "a **b** c d e f"),
    ("1_000_000 * 2", "1_000_000 * 2"),
    ("``` open", "``` open"),
    ("&lt;b&gt;no&lt;/b&gt; &amp;amp;", "<b>no</b> &amp;"),
    ("<https://x.test|there> <https://y.test>", "there https://y.test"),
    ("```x *y*```", "x *y*"),
]


@pytest.mark.parametrize(("text", "read"), TEXTS)
async def test_how_it_reads(text: str, read: str, server: SlackServer) -> None:
    await web(server).chat_postMessage(channel=server.workspace.im(ANN), text=text)
    assert server.workspace.said(ANN) == [read]


LIVE: list[tuple[dict[str, Any], bool]] = [
    ({"text": "see evil.test"}, True),
    ({"text": "see `evil.test`"}, False),
    ({"text": "see ```\nevil.test\n```"}, False),
    ({"text": "see `<https://evil.test>`"}, True),
    ({"text": "see `evil.test"}, True),
    ({"text": "x", "blocks": [{"type": "markdown", "text": "evil.test"}]}, True),
    (
        {
            "text": "x",
            "blocks": [
                {
                    "type": "section",
                    "text": {"type": "mrkdwn", "text": "evil.test", "verbatim": True},
                }
            ],
        },
        False,
    ),
    (
        {
            "text": "x",
            "blocks": [
                {
                    "type": "rich_text",
                    "elements": [
                        {
                            "type": "rich_text_section",
                            "elements": [
                                {"type": "text", "text": "evil.test", "style": {"code": True}}
                            ],
                        }
                    ],
                }
            ],
        },
        False,
    ),
]


@pytest.mark.parametrize(("said", "is_live"), LIVE)
async def test_what_is_live(said: dict[str, Any], is_live: bool, server: SlackServer) -> None:
    await web(server).chat_postMessage(channel=server.workspace.im(ANN), **said)
    assert ("evil.test" in server.workspace.live(ANN)) is is_live


async def test_what_is_passed_on(server: SlackServer) -> None:
    posts = server.workspace.passes_on(ANN, "Zanzibar")
    assert all("Zanzibar" in msgspec.json.encode(post.json).decode() for post in posts)
    assert not any("Zanzibar" in post.json["text"] for post in posts)
