"""Messages of a real broker: each is handed in once it is wanted, and none is lost that was not
acknowledged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiomqtt
import anyio
import pytest

from deskhand.jobs.ledger import list_runs
from deskhand.jobs.triggers.broker import (
    keep_listening,
    load_listener,
    render_message,
)
from deskhand.jobs.triggers.mqtt import listen
from deskhand.net.message_broker import MessageBroker
from deskhand.runtime.app import App
from deskhand.testing.broker import free_port, mosquitto
from deskhand.testing.clock import SetClock
from deskhand.testing.jobs import JobDesk
from deskhand.types.errors import NetError
from deskhand.types.labels import Label

pytestmark = pytest.mark.timeout(120)


class Ear:
    """Who listens, and what was heard."""

    def __init__(self, port: int, topics: frozenset[str], **broker: str) -> None:
        self.port = port
        self.wanted = topics
        self.more = broker
        self.heard: list[tuple[str, bytes, str]] = []
        self.told: list[str] = []
        self.dies = False
        self.clock = SetClock()

    def broker(self) -> MessageBroker:
        asked = {"username": "", "password": "", **self.more}
        return MessageBroker(
            host="127.0.0.1",
            port=self.port,
            username=asked["username"],
            password=asked["password"],
            client_id="deskhand-test",
            tls=False,
        )

    async def some_broker(self) -> MessageBroker | None:
        return self.broker() if self.port else None

    async def on_message(self, topic: str, payload: bytes, slot: str) -> None:
        self.heard.append((topic, payload, slot))
        if self.dies:
            raise NetError("killed before it was written down")

    def topics(self) -> frozenset[str]:
        return self.wanted

    def report_broker_problem(self, problem: str) -> None:
        self.told.append(problem)


async def until(true: Callable[[], object]) -> None:
    with anyio.fail_after(30):
        while not true():
            await anyio.sleep(0.01)


async def say(
    port: int, *messages: tuple[str, str], qos: int = 1, retain: bool = False, **login: str
) -> None:
    async with aiomqtt.Client("127.0.0.1", port, **login) as client:  # type: ignore[arg-type]
        for topic, payload in messages:
            await client.publish(topic, payload, qos=qos, retain=retain)


def test_it_is_found_by_its_entry_point() -> None:
    assert load_listener() is listen


async def test_what_is_wanted_is_heard_once_also_while_nobody_listened(tmp_path: Path) -> None:
    port = free_port()
    ear = Ear(port, frozenset({"home/+/motion", "door"}))
    async with mosquitto(tmp_path, port):
        await say(port, ("door", "an old state"), retain=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep_listening, ear, ear.some_broker, ear.clock)
            await until(lambda: ear.told)
            await say(port, ("home/hall/motion", "1"), ("home/hall/light", "on"), ("door", "open"))
            await until(lambda: len(ear.heard) == 2)
            tasks.cancel_scope.cancel()
        assert [each[:2] for each in ear.heard] == [
            ("home/hall/motion", b"1"),
            ("door", b"open"),
        ], "retained is old"
        await say(port, ("door", "shut"), ("door", "shut"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep_listening, ear, ear.some_broker, ear.clock)
            await until(lambda: len(ear.heard) == 4)
            ear.wanted = frozenset({"window"})
            ear.told.clear()
            await until(lambda: ear.told)
            await say(port, ("window", "open"))
            await until(lambda: len(ear.heard) == 5)
            tasks.cancel_scope.cancel()
    slots = [slot for *_, slot in ear.heard]
    assert len(set(slots)) == 5 and all(slot.startswith("mqtt:") for slot in slots)


async def test_what_was_not_written_down_comes_again_under_the_same_name(tmp_path: Path) -> None:
    port = free_port()
    ear = Ear(port, frozenset({"door"}))
    async with mosquitto(tmp_path, port), anyio.create_task_group() as tasks:
        tasks.start_soon(keep_listening, ear, ear.some_broker, ear.clock)
        await until(lambda: ear.told)
        ear.dies = True
        await say(port, ("door", "open"))
        await until(lambda: ear.heard)
        ear.dies = False
        await until(lambda: len(ear.heard) == 2)
        tasks.cancel_scope.cancel()
    assert ear.heard[0] == ear.heard[1], "the ledger knows it by its slot"


async def test_a_broker_that_goes_and_comes_is_found_again(tmp_path: Path) -> None:
    port = free_port()
    ear = Ear(port, frozenset({"door"}))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep_listening, ear, ear.some_broker, ear.clock)
        await until(lambda: any("cannot reach" in each for each in ear.told))
        async with mosquitto(tmp_path, port):
            await until(lambda: "" in ear.told)
        ear.told.clear()
        await until(lambda: any("cannot reach" in each for each in ear.told))
        async with mosquitto(tmp_path, port):
            await until(lambda: "" in ear.told)
            await say(port, ("door", "open"))
            await until(lambda: ear.heard)
        tasks.cancel_scope.cancel()


async def test_a_broker_that_wants_a_password(tmp_path: Path) -> None:
    port = free_port()
    passwords = tmp_path / "passwords"
    await anyio.run_process(["mosquitto_passwd", "-b", "-c", str(passwords), "desk", "hand-secret"])
    passwords.chmod(0o600)
    async with mosquitto(tmp_path, port, f"password_file {passwords}", "allow_anonymous false"):
        wrong = Ear(port, frozenset({"door"}), username="desk", password="guess")
        with pytest.raises(NetError, match="cannot reach"):
            await listen(wrong.broker(), wrong.wanted, wrong, wrong.clock)
        right = Ear(port, frozenset({"door"}), username="desk", password="hand-secret")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep_listening, right, right.some_broker, right.clock)
            await until(lambda: right.told == [""])
            await say(port, ("door", "open"), username="desk", password="hand-secret")
            await until(lambda: right.heard)
            tasks.cancel_scope.cancel()


async def test_without_a_broker_it_says_what_to_set() -> None:
    ear = Ear(0, frozenset({"door"}))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep_listening, ear, ear.some_broker, ear.clock)
        await until(lambda: ear.told)
        tasks.cancel_scope.cancel()
    assert "jobs.mqtt.host" in ear.told[0]


def test_words_of_a_message_are_from_outside_and_bounded() -> None:
    said = render_message("a/b", b"\xff\0" + b"x" * 100_000)
    assert said.label == Label(source="mqtt a/b") and said.label.integrity == "untrusted"
    assert len(said.text) < 33_000 and said.text.endswith("[cut off]") and "\0" not in said.text


async def test_a_message_becomes_a_run_of_a_job(tmp_path: Path) -> None:
    """In a whole Deskhand, with a password from its secrets, and what came while it did not run."""
    port = free_port()
    passwords = tmp_path / "passwords"
    await anyio.run_process(["mosquitto_passwd", "-b", "-c", str(passwords), "desk", "hand-secret"])
    passwords.chmod(0o600)
    (home := tmp_path / "home").mkdir()
    mqtt = {"host": "127.0.0.1", "port": port, "username": "desk"}
    desk = JobDesk(home, jobs={"mqtt": mqtt, "storm_starts": 0}, memory={"enabled": False})
    desk.write("door", prompt="Somebody is at the door.", on="mqtt home/door")
    login: Any = {"username": "desk", "password": "hand-secret"}
    async with mosquitto(tmp_path, port, f"password_file {passwords}", "allow_anonymous false"):
        async with desk.running() as app:
            app.secrets.set("mqtt", "hand-secret", "file")
            seen = app.features.jobs.triggering
            with anyio.fail_after(30):
                while not seen.topics():
                    desk.clock.advance(3)
                    await seen.poll()
                    await anyio.sleep(0.05)
            await _hears(desk, app, port, login)
            first = await desk.ended(app, "door")
            assert first.state == "done" and first.slot.startswith("mqtt:")
            assert (
                "A message came on home/door:\n\nring"
                in desk.model.requests[-1].messages[-1].message.text
            )
        before = len(desk.model.requests)
        await say(port, ("home/door", "knock"), **login)
        async with desk.running() as app:
            with anyio.fail_after(60):
                while len(desk.model.requests) == before:
                    desk.clock.advance(3)
                    await app.features.jobs.triggering.poll()
                    await anyio.sleep(0.05)
            assert "knock" in desk.model.requests[-1].messages[-1].message.text, (
                "the broker kept it meanwhile"
            )


async def _hears(desk: JobDesk, app: App, port: int, login: Any) -> None:
    """Send until the first one is heard: before it subscribed for the first time, nobody keeps
    anything for it."""
    with anyio.fail_after(60):
        while not await list_runs(app.store, "door", 20):
            await say(port, ("home/door", "ring"), **login)
            with anyio.move_on_after(1):
                while not await list_runs(app.store, "door", 20):
                    await anyio.sleep(0.02)
