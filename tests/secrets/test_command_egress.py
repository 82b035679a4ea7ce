"""What commands may reach is asked of people and remembered; what they may use they never have."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from deskhand.net.egress_secrets import SecretRule
from deskhand.runtime.app import App
from deskhand.secrets.keyring import Keyring
from deskhand.secrets.redaction import Redactor
from deskhand.secrets.secrets import Secrets
from deskhand.supervision.logs import logging_to_file
from deskhand.testing.egress import EchoServer
from deskhand.types.commit import Change
from deskhand.types.errors import ConfigError
from deskhand.types.labels import Label
from deskhand.types.messages import Text
from deskhand.types.secrets import list_secret_forms

from .world import HOST, World, curl

CANARIES = {f"service-{at}": f'canary/{at:02}+of-20 "äß" {at * 7919:x}' for at in range(20)}
pytestmark = pytest.mark.timeout(240)


async def test_a_person_is_asked_and_what_they_say_holds(world: World) -> None:
    world.secrets.set("github", "canary-of-the-host", "file")
    async with world.running() as app:
        world.secrets.add_rule("github", SecretRule(world.where))
        text = await world.shell(app, "one", curl(world))
        assert (
            f"[not reachable: {HOST} can be reached on the ports 443 and 80, not on "
            f"{world.server.port}; call"
        ) in text
        assert f'request_host(host="{world.where}")' in text and not world.server.accepted

        assert "may reach" not in await world.request(app, "one", "no")
        assert "not reachable" in await world.shell(app, "one", curl(world))

        assert "may reach" in await world.request(app, "one", "once")
        assert "answered" in await world.shell(app, "one", curl(world))
        assert "not reachable" in await world.shell(app, "two", curl(world)), "another conversation"
        assert "may reach" in await world.request(app, "two", "always")
        assert "answered" in await world.shell(app, "three", curl(world)), "any other, from now on"

        rows = await app.store.query("egress_grants", ())
        assert [(row[1], row[2]) for row in rows] == [
            ("default/terminal:one", world.where),
            ("default/terminal:two", world.where),
        ]
        await app.store.change([Change("call_grant_drop", ("",))])
        assert "not reachable" in await world.shell(app, "four", curl(world)), "taken back"
        await world.request(app, "four", "never")
        text = await world.shell(app, "five", curl(world))
        assert f"a person has denied access to {HOST}" in text
        assert "answered never" in await world.request(app, "five", "once"), "it is not asked again"
        uses = {row[1:4] + row[4:5] for row in await app.store.query("egress_uses", (100,))}
        assert {use[0] for use in uses} == {HOST} and any(use[2] == "" for use in uses)


async def test_after_something_from_outside_was_read_it_is_asked_again(world: World) -> None:
    async with world.running() as app:
        world.config["egress"] = {"allow": [world.where]}
        app.current.settings = world.settings
        (first,) = await world.results(
            app, "one", ("shell", {"command": f"{curl(world, more='-k')}"})
        )
        assert "answered" in first.text
        label = first.parts[0].label
        assert (label.integrity, label.source) == ("untrusted", f"https://{HOST}/")
        text = await world.shell(app, "one", curl(world, more="-k"))
        assert f"needs approval, because this conversation has read https://{HOST}/" in text
        assert len(world.server.requests) == 1
        assert "may reach" in await world.request(app, "one", "once")
        assert "answered" in await world.shell(app, "one", curl(world, more="-k"))


async def test_a_yes_holds_that_was_given_when_something_private_had_been_read(
    world: World,
) -> None:
    """The person was told of it. What comes from outside later they did not know, so they are asked
    again."""
    async with world.running() as app:
        (read,) = await world.results(app, "one", ("shell", {"command": "cat memory/MEMORY.md"}))
        assert read.parts[0].label.readers == ("role:owner",)
        assert "not reachable" in await world.shell(app, "one", curl(world, more="-k"))
        assert "may reach" in await world.request(app, "one", "once")
        (first,) = await world.results(app, "one", ("shell", {"command": curl(world, more="-k")}))
        assert "answered" in first.text
        assert first.parts[0].label.integrity == "untrusted"
        text = await world.shell(app, "one", curl(world, more="-k"))
        assert "needs approval, because this conversation has read" in text
        assert f"https://{HOST}/" in text
        assert "may reach" in await world.request(app, "one", "once")
        assert "answered" in await world.shell(app, "one", curl(world, more="-k"))


READS = {
    "a file": "cat received/letter.txt",
    "a part of one": "head -c 1 received/letter.txt",
    "a script": "bash received/letter.txt",
    "a copy": "cp received/letter.txt a.txt",
    "a link": "ln received/letter.txt b.txt; cat b.txt",
    "its name": "ls received",
    "all there is": "grep -r nothing . ; true",
}


@pytest.mark.parametrize("reads", READS.values(), ids=READS)
async def test_a_command_that_reads_what_came_from_outside_is_asked_about(
    world: World, reads: str
) -> None:
    """The conversation has read nothing when the command begins: what it reads itself counts."""
    async with world.running() as app:
        world.config["egress"] = {"allow": [world.where]}
        app.current.settings = world.settings
        await outside(world, app, "received/letter.txt", "#!/bin/bash\ntrue\n")
        text = await world.shell(app, "one", f"{reads} > /dev/null; {curl(world, more='-k')}")
        assert "needs approval, because this command has read" in text and "letter.txt" in text
        assert not world.server.requests
        assert "answered" in await world.shell(app, "two", curl(world, more="-k")), (
            "who reads nothing is not asked"
        )


ALREADY_OPEN = """
import http.client, os, ssl
proxy = os.environ["https_proxy"].split("//")[1].split(":")
open_ = ssl._create_unverified_context()
way = http.client.HTTPSConnection(proxy[0], int(proxy[1]), context=open_, timeout=9)
way.set_tunnel("{host}", {port})
way.request("GET", "/first")
print(way.getresponse().read())
words = open("received/letter.txt").read()
way.request("POST", "/second", words)
print(way.getresponse().read())
"""


async def test_a_connection_that_is_open_already_is_asked_about_anew(world: World) -> None:
    world.server = EchoServer(
        lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nanswered", keep=True
    )
    async with world.running() as app:
        world.config["egress"] = {"allow": [world.where]}
        app.current.settings = world.settings
        await outside(world, app, "received/letter.txt", "canary of the letter")
        program = ALREADY_OPEN.format(host=HOST, port=world.server.port)
        text = await world.shell(app, "one", f"python3 - <<'END'\n{program}\nEND")
        assert "b'answered'" in text and "because this command has read" in text, text
        assert len(world.server.requests) == 1 and not any(
            b"canary" in each for each in world.server.requests
        )


CUSTOM_TOOL = """
import http.client, os, ssl
from deskhand.customtools import tool

@tool
def ask_there() -> str:
    "Ask there."
    proxy = os.environ["https_proxy"].split("//")[1].split(":")
    open_ = ssl._create_unverified_context()
    way = http.client.HTTPSConnection(proxy[0], int(proxy[1]), context=open_, timeout=9)
    way.set_tunnel("{host}", {port})
    way.request("GET", "/first")
    return way.getresponse().read().decode()
"""


async def test_what_a_custom_tool_hears_is_from_outside_while_the_connection_is_open(
    world: World,
) -> None:
    """Its process lives on, and so may the connection: the server decides when it ends."""
    world.server = EchoServer(
        lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nanswered", keep=True, linger_s=20
    )
    async with world.running() as app:
        folder = world.home.workspace("default") / "tools"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "ask.py"
        file.write_text(
            CUSTOM_TOOL.replace("{host}", HOST).replace("{port}", str(world.server.port))
        )
        os.utime(file, (1e9, 1e9))
        world.config["egress"] = {"allow": [world.where]}
        app.current.settings = world.settings
        await app.features.own_tools.describe(app.settings)
        app.current.remake_agents()
        (result,) = await world.results(app, "one", ("ask_there", {}))
        (part,) = result.parts
        assert isinstance(part, Text) and part.text == "answered"
        assert part.label == Label("untrusted", None, f"https://{HOST}/")


async def outside(world: World, app: App, name: str, text: str) -> None:
    """A file in the workspace whose words came from outside."""
    path = world.home.workspace("default").resolve() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    label = msgspec.json.encode(Label("untrusted", source=f"file {name}"))
    await app.store.change([Change("file_label_set", (str(path), label, "default/x", 1.0))])


LOOKS = (
    "env; cat /proc/self/environ /proc/1/environ /proc/*/environ /proc/*/cmdline; cat "
    "/proc/$PPID/environ; ps auxeww;"
    "grep -ra canary . /tmp /run /var /home /root /etc /dev/shm $HOME; find / -xdev -name "
    "'*secret*' 2>/dev/null;"
    "cat /run/deskhand/ca.pem; env | grep -i -e proxy -e cert"
)


async def test_twenty_secrets_are_used_and_found_nowhere(world: World) -> None:
    world.environment = {"SERVICE_0_API_KEY": CANARIES["service-0"]}
    for name, value in CANARIES.items():
        if name != "service-0":
            world.secrets.set(name, value, "file")
    world.secrets.set("service-0", "", "env", "SERVICE_0_API_KEY")
    world.server.answer = lambda request: (
        b"HTTP/1.1 200 OK\r\nX-Echo: %s\r\nContent-Length: %d\r\n\r\n"
        % (request[-9:-5], len(request))
        + request
    )
    with logging_to_file(world.settings):
        async with world.running() as app:
            for name in CANARIES:
                header = f"X-{name}: {{basic:{name}}}" if name.endswith("3") else f"X-{name}: {{}}"
                world.secrets.add_rule(name, SecretRule(world.where, header))
            await world.request(app, "one", "once")
            echoed = await world.shell(app, "one", curl(world, more="-i"))
            looked = await world.shell(app, "one", LOOKS)
            asked = await world.results(
                app, "one", ("write_file", {"path": "f", "content": "k: {{secret:service-1}}"})
            )
            exported = b"".join(
                msgspec.json.encode(each) for each in await app.store.events("default/terminal:one")
            )
            prompts = repr(list(world.model.requests)).encode()
    sent = world.server.requests[0].decode()
    missing = [
        name for name, value in CANARIES.items() if value not in sent and not name.endswith("3")
    ]
    assert not missing and sent.count("X-service-") == 20
    assert "{{secret:service-1}}" in echoed and "stands for a secret" in asked[0].text
    assert not (world.home.workspace("default") / "f").exists()
    heard = (echoed + looked).encode() + exported + prompts
    own = {world.home.secrets}
    kept = b"".join(
        path.read_bytes()
        for path in world.home.root.rglob("*")
        if path.is_file() and path not in own
    )
    for value in CANARIES.values():
        assert not [form for form in list_secret_forms(value) if form.encode() in heard + kept]


async def test_only_whom_a_rule_names_may_use_it(world: World) -> None:
    world.secrets.set("github", "canary-of-the-owner", "file")
    async with world.running() as app:
        world.secrets.add_rule("github", SecretRule(world.where, who=("role:admin", "bob")))
        await world.request(app, "one", "once")
        assert "answered" in await world.shell(app, "one", curl(world, more="-k"))
        world.secrets.add_rule("github", SecretRule(world.where))
        await world.request(app, "two", "once")
        assert "answered" in await world.shell(app, "two", curl(world))
    assert [b"canary-of-the-owner" in request for request in world.server.requests] == [False, True]


async def test_a_secret_that_is_added_is_hidden_at_once(world: World) -> None:
    async with world.running() as app:
        assert "canary-added-late" in await world.shell(app, "one", "echo canary-added-late")
        world.secrets.set("late", "canary-added-late", "file")
        assert await world.shell(app, "one", "echo canary-added-late") == "{{secret:late}}\n"
        world.secrets.set("late", "canary-added-later", "file")
        assert "canary" not in await world.shell(
            app, "one", "echo canary-added-late; echo canary-added-later"
        )
        long = await world.shell(app, "one", "yes canary-added-late | head -c 200000")
        assert "canary" not in long and "read_output" in long
    kept = b"".join(path.read_bytes() for path in world.home.blobs.rglob("*") if path.is_file())
    assert b"canary-added" not in kept and b"{{secret:late}}" in kept


def test_the_file_is_its_owners_alone(world: World) -> None:
    secrets = world.secrets
    secrets.set("github", "canary-in-a-file", "file")
    assert world.home.secrets.stat().st_mode & 0o777 == 0o600
    hidden = Redactor(world.settings)
    assert hidden("a canary-in-a-file") == "a {{secret:github}}"
    world.home.secrets.chmod(0o644)
    with pytest.raises(ConfigError, match=r"others can read .* chmod 600"):
        secrets.read_entries()
    assert "chmod 600" in (secrets.list_secrets(), secrets.problem)[1]
    assert hidden("a canary-in-a-file") == "a {{secret:github}}", "what was known stays hidden"
    assert "canary" not in repr(secrets.list_secrets()) + repr(secrets)


def test_what_is_no_secret(world: World) -> None:
    for name, value in (
        ("a b", "long enough"),
        ("x", "short"),
        ("x", "{{secret:y}} is a handle"),
        ("../x", "long enough"),
    ):
        with pytest.raises(ConfigError):
            world.secrets.set(name, value, "file")
    with pytest.raises(ConfigError, match="there is no secret 'x'; there are no secrets yet"):
        world.secrets.add_rule("x", SecretRule(HOST))
    assert not world.home.secrets.exists()


class Ring:
    """A keyring in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}

    def get(self, name: str) -> str | None:
        return self.kept.get(name)

    def set(self, name: str, value: str) -> None:
        self.kept[name] = value

    def delete(self, name: str) -> None:
        del self.kept[name]


def test_the_keyring_and_the_environment_hold_values(world: World) -> None:
    ring = Ring()
    environment = {"A_TOKEN": "canary-of-the-environment"}
    secrets = Secrets(world.home, lambda: environment, lambda: ring)
    secrets.set("one", "canary-of-the-ring", "keyring")
    secrets.set("two", "", "env", "A_TOKEN")
    secrets.set("three", "", "env", "NOT_SET")
    assert {each.name: each.value for each in secrets.list_secrets()} == {
        "one": "canary-of-the-ring",
        "two": "canary-of-the-environment",
    }
    assert "the secret 'three': NOT_SET is not set" in secrets.problem
    assert b"canary" not in world.home.secrets.read_bytes()
    secrets.set("one", "canary-in-the-file", "file")
    assert not ring.kept, "it is in one place alone"
    secrets.remove("two")
    assert [each.name for each in secrets.list_secrets()] == ["one"]


def test_a_keyring_that_does_not_answer_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={tmp_path / 'none'}")
    with pytest.raises(ConfigError, match=r"no keyring is available .*; store it in the home"):
        Keyring("home").get("x")
