"""What a collector of OpenTelemetry is sent, read by OpenTelemetry's own definition of its
protocol."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from deskhand.config.config import Config, Home, Settings
from deskhand.config.sections import TracesConfig, check_traces, parse_headers
from deskhand.config.statements import load_statements
from deskhand.models.base import Request
from deskhand.runtime.app import App, Parts, open_app
from deskhand.secrets.redaction import Redactor
from deskhand.store.sqlite import SqliteStore
from deskhand.supervision import trace_export
from deskhand.supervision.trace_export import Collector, TraceExporter, read_refusal
from deskhand.testing.bench import ANN, PLACE, said
from deskhand.testing.channel import MemoryChannel
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.testing.site import LocalSite
from deskhand.types.commit import Commit
from deskhand.types.errors import ConfigError, NetError
from deskhand.types.events import MessageReceived, ModelReplied, TurnEnded
from deskhand.types.identity import Principal
from deskhand.types.messages import Message, ToolCall, Usage

SECRET_WORD = "canary"
HEADERS = "authorization=Bearer%20x"
SERVICE = {"service.name": "deskhand"}
PATH = "/v1/traces"


def use_tools(request: Request) -> Message:
    """Read a file that is there and one that is not, and then answer."""
    if request.messages[-1].message.role == "tool":
        return say(f"It says {SECRET_WORD}.")
    calls = [
        ToolCall(name, "read_file", msgspec.Raw(json.dumps({"path": name}).encode()))
        for name in (f"{SECRET_WORD}.txt", "missing.txt")
    ]
    return say("", *calls)


def received(number: int) -> MessageReceived:
    return MessageReceived(number, ANN, PLACE, said(f"word {number}").message, str(number))


def replied() -> ModelReplied:
    return ModelReplied(say("word " * 3_000), "scripted/x", "stop", Usage())


class Desk:
    """A service on whose traces a collector at `site` waits."""

    def __init__(self, home: Path, site: LocalSite, **traces: Any) -> None:
        self.site = site
        self.channel = MemoryChannel()
        config = {
            "defaults": {"models": ["scripted/x"]},
            "traces": {"endpoint": site.url("/"), **traces},
        }
        self.settings = Settings(
            Home(home),
            msgspec.convert(config, Config),
            (),
            {"COLLECTOR": "authorization=Bearer%20x"},
        )
        workspace = self.settings.home.workspace("default")
        workspace.mkdir(parents=True, exist_ok=True)
        (workspace / f"{SECRET_WORD}.txt").write_text("hello")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[App]:
        parts = Parts(
            lambda name: ScriptedModel(use_tools, remember=False),
            channels=(self.channel,),
            authorize=lambda inbound: Principal("ann", ("owner",)),
            net=self.site.net(),
        )
        async with open_app(self.settings, parts) as app, anyio.create_task_group() as tasks:
            tasks.start_soon(app.run)
            yield app
            tasks.cancel_scope.cancel()

    async def say(self, number: int) -> None:
        self.channel.write("hello", "1", f"{id(self)}-{number}", sender="ann")
        await self.until(lambda: len(self.channel.sent) >= number)

    async def until(self, holds: Callable[[], object]) -> None:
        with anyio.fail_after(60):
            while not holds():
                await anyio.sleep(0.01)

    def bodies(self) -> list[bytes]:
        return [each.body for each in self.site.requests if each.method == "POST"]


def read_spans(*bodies: bytes) -> list[Span]:
    """Strictly: a name or a type that is not in the definition is an error. The ids are hexadecimal
    in OTLP's JSON, unlike other bytes."""
    found = list[Span]()
    for body in bodies:
        data = json.loads(body)
        for span in data["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            for key in ("traceId", "spanId", "parentSpanId"):
                if key in span:
                    span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
        parsed = ParseDict(data, ExportTraceServiceRequest())
        (resource,) = parsed.resource_spans
        assert attributes_of(resource.resource)["service.name"] == "deskhand"
        (scope,) = resource.scope_spans
        found += scope.spans
    return found


def attributes_of(carrier: Any) -> dict[str, Any]:
    found = dict[str, Any]()
    for each in carrier.attributes:
        kind = each.value.WhichOneof("value")
        value = getattr(each.value, kind)
        found[each.key] = [v.string_value for v in value.values] if kind == "array_value" else value
    return found


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_export, "PAGE", 3)
    monkeypatch.setattr(trace_export, "EXPORT_EVERY_S", 0.05)


async def test_a_turn_is_a_tree_of_spans(tmp_path: Path) -> None:
    async with LocalSite() as site:
        site.page(PATH, b"{}")
        desk = Desk(tmp_path / "home", site, headers_env="COLLECTOR")
        async with desk.running():
            await desk.say(1)
            await desk.until(lambda: b"invoke_agent" in b"".join(desk.bodies()))
    spans = read_spans(*desk.bodies())
    turn = next(span for span in spans if span.name == "invoke_agent default")
    chats = [span for span in spans if span.name == "chat x"]
    tools = [span for span in spans if span.name == "execute_tool read_file"]
    assert len(spans) == 5 and len(chats) == len(tools) == 2
    assert len({span.trace_id for span in spans}) == 1 and len(turn.trace_id) == 16
    assert len({span.span_id for span in spans}) == 5 and not turn.parent_span_id
    assert {span.parent_span_id for span in chats} == {turn.span_id}
    assert {span.parent_span_id for span in tools} == {chats[0].span_id}
    for span in spans:
        assert turn.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
        assert attributes_of(span)["gen_ai.conversation.id"] == "default/memory:1"
    assert turn.kind == Span.SPAN_KIND_INTERNAL and chats[0].kind == Span.SPAN_KIND_CLIENT
    asked = attributes_of(chats[0])
    assert asked["gen_ai.operation.name"] == "chat" and asked["gen_ai.provider.name"] == "scripted"
    assert asked["gen_ai.request.model"] == "x" and asked["gen_ai.usage.output_tokens"] >= 0
    assert asked["gen_ai.response.finish_reasons"] == ["calls"]
    assert sorted(span.status.code for span in tools) == [
        Status.STATUS_CODE_UNSET,
        Status.STATUS_CODE_ERROR,
    ]
    failed = max(tools, key=lambda span: span.status.code)
    assert attributes_of(failed)["error.type"] == "error"
    assert SECRET_WORD.encode() not in b"".join(desk.bodies()), "no content unless it is asked for"
    assert {each.headers["authorization"] for each in site.requests} == {"Bearer x"}


async def test_content_is_sent_where_it_is_wanted(tmp_path: Path) -> None:
    async with LocalSite() as site:
        site.page(PATH, b"{}")
        desk = Desk(tmp_path / "home", site, content=True)
        async with desk.running():
            await desk.say(1)
            await desk.until(lambda: b"invoke_agent" in b"".join(desk.bodies()))
    tools = [span for span in read_spans(*desk.bodies()) if span.name.startswith("execute_tool")]
    assert attributes_of(tools[0])["gen_ai.tool.call.arguments"] == '{"path": "canary.txt"}'
    assert "hello" in attributes_of(tools[0])["gen_ai.tool.call.result"]


async def test_what_happens_while_the_collector_is_away_is_sent_later(tmp_path: Path) -> None:
    """Also after a restart; and it is sent once."""
    async with LocalSite() as site:
        site.page(PATH, b"{}")
        home = tmp_path / "home"
        desk = Desk(home, site)
        async with desk.running():
            await desk.say(1)
            await desk.until(lambda: b"invoke_agent" in b"".join(desk.bodies()))
            site.page(PATH, b"busy", 503)
            site.requests.clear()
            await desk.say(2)
            await desk.until(desk.bodies)
        site.page(PATH, b"{}")
        site.requests.clear()
        again = Desk(home, site)
        async with again.running() as app:
            await again.say(1)
            await again.until(lambda: b"".join(again.bodies()).count(b"invoke_agent default") == 2)
            health = await app.health()
    spans = read_spans(*again.bodies())
    assert len({span.span_id for span in spans}) == len(spans) == 10
    assert {fact.name: fact.state for fact in health.facts}["traces"] == "ok"


async def test_a_turn_that_was_open_at_a_restart_is_one_trace(tmp_path: Path) -> None:
    async with LocalSite() as site:
        site.page(PATH, b"{}")
        desk = Desk(tmp_path / "home", site)
        async with desk.running() as app:
            await desk.say(1)
            await desk.until(lambda: b"invoke_agent" in b"".join(desk.bodies()))
            whole = {span.span_id: span for span in read_spans(*desk.bodies())}
            last = app.store.last_seq()
            first = (await app.store.events("default/memory:1"))[0].seq
            cursor = tmp_path / "cursor"
            collector = Collector(
                site.url(), {}, site.net(), {"service.name": "deskhand"}, content=False
            )
            for at in range(first, last):
                site.requests.clear()
                cursor.write_text(str(at))
                await TraceExporter(app.store, collector, str, cursor).export()
                for span in read_spans(*desk.bodies()):
                    assert whole[span.span_id] == span
                assert cursor.read_text() == str(app.store.last_seq())


async def test_a_message_to_an_open_turn_begins_none(tmp_path: Path) -> None:
    """Also where the exporter begins right before it, in a log of several pages."""
    async with LocalSite() as site:
        site.page(PATH, b"{}")
        store = SqliteStore(tmp_path / "log.db", load_statements())
        cursor = tmp_path / "cursor"
        cursor.write_text("0")
        collector = Collector(site.url(), {}, site.net(), SERVICE, content=False)
        turn = (received(1), replied(), received(2), replied(), TurnEnded("done", (1, 2)))
        for number in range(0, 15, len(turn)):
            await store.commit(Commit("default/x:1", number + 1, 1.0, turn))
        await TraceExporter(store, collector, str, cursor).export()
        whole = {span.span_id: span for span in read_spans(*[each.body for each in site.requests])}
        assert len(whole) == 9
        for at in range(1, 15):
            site.requests.clear()
            cursor.write_text(str(at))
            await TraceExporter(store, collector, str, cursor).export()
            for span in read_spans(*[each.body for each in site.requests]):
                assert whole[span.span_id] == span
        await store.close()


async def test_what_is_too_large_is_sent_in_halves(tmp_path: Path) -> None:
    async with LocalSite() as site:
        site.page(PATH, b"too large", 413)
        store = SqliteStore(tmp_path / "log.db", load_statements())
        cursor = tmp_path / "cursor"
        cursor.write_text("0")
        await store.commit(Commit("default/x:1", 1, 1.0, (received(1), replied(), replied())))
        collector = Collector(site.url(), {}, site.net(), SERVICE, content=False)
        await TraceExporter(store, collector, str, cursor).export()
        sent = [len(read_spans(each.body)) for each in site.requests]
        await store.close()
    assert sent == [2, 1, 1]


async def test_what_a_collector_never_takes_does_not_stop_the_rest(tmp_path: Path) -> None:
    async with LocalSite() as site:
        site.page(PATH, b"what is that", 400)
        desk = Desk(tmp_path / "home", site)
        async with desk.running() as app:
            await desk.say(1)
            await desk.until(lambda: len(desk.bodies()) >= 1)
            cursor = desk.settings.home.sent_traces
            await desk.until(lambda: int(cursor.read_text()) == app.store.last_seq())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"{}", ""),
        (b'{"partialSuccess": {}}', ""),
        (
            b'{"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too\\nold"}}',
            "2 rejected: too old",
        ),
        (b'{"partialSuccess": {"rejectedSpans": "2"}}', "2 rejected"),
        (b'{"partialSuccess": {"rejectedSpans": 2}}', "2 rejected"),
        (b'{"partialSuccess": {"rejectedSpans": 2, "errorMessage": null}}', "2 rejected"),
        (b'{"partialSuccess": {"errorMessage": "prefer protobuf"}}', ""),
        (b"", ""),
        (b"OK", ""),
        (b'{"partialSuccess": 7}', ""),
        (b"[" * 100_000, ""),
    ],
)
def test_what_is_not_taken_of_a_request(body: bytes, said: str) -> None:
    assert read_refusal(body) == said


async def test_a_collector_that_refuses_us_is_told_in_the_status(tmp_path: Path) -> None:
    async with LocalSite() as site:
        site.page(PATH, b"who are you", 401)
        desk = Desk(tmp_path / "home", site)
        async with desk.running() as app:
            await desk.say(1)
            await desk.until(lambda: desk.bodies())
            with anyio.fail_after(10):
                while not (
                    said := [fact for fact in (await app.health()).facts if fact.name == "traces"]
                )[0].last_error:
                    await anyio.sleep(0.01)
    assert "answered with status 401" in said[0].last_error


def test_the_key_of_the_collector_is_a_secret(tmp_path: Path) -> None:
    config = msgspec.convert({"traces": {"headers_env": "COLLECTOR"}}, Config)
    given = {"COLLECTOR": "authorization=Bearer%20abcdef0123456789"}
    hide = Redactor(Settings(Home(tmp_path), config, (), given))
    assert "abcdef" not in hide("I sent abcdef0123456789 to the collector")


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ("", {}),
        ("api-key=abc", {"api-key": "abc"}),
        (" A=b , c=d%20e=, ", {"a": "b", "c": "d e="}),
    ],
)
def test_headers(text: str, headers: dict[str, str]) -> None:
    assert parse_headers(text, "HEADERS") == headers


@pytest.mark.parametrize(
    "text", ["topsecret", "a b=topsecret", "a=topsecret%0d%0ab: c", "=topsecret"]
)
def test_headers_that_are_none(text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_headers(text, "HEADERS")
    assert "HEADERS must hold" in str(raised.value) and "topsecret" not in str(raised.value)


def test_an_address_that_is_none_is_refused_with_the_settings() -> None:
    check_traces(TracesConfig("http://127.0.0.1:4318"))
    with pytest.raises(ConfigError, match=r"traces\.endpoint is '127\.0\.0\.1:4318'"):
        check_traces(TracesConfig("127.0.0.1:4318"))


async def test_a_collector_that_is_not_there(tmp_path: Path) -> None:
    async with LocalSite() as site:
        url = site.url()
        net = site.net()
    collector = Collector(url, {}, net, {}, content=False)
    with pytest.raises(NetError):
        await collector.send([])
