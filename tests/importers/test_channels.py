"""What comes in of the platforms of other systems: each of their bots is a channel that can be
opened, with its secrets, and its chats go on."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from deskhand.channels.guides import GUIDES, find_variable
from deskhand.config.config import read_settings
from deskhand.gateway.channel_loader import Unopened, open_channels
from deskhand.importers.chat_addresses import Bot, Bots, ForeignChat, find_bot_id, parse_chat
from deskhand.importers.model import ImportedHome
from deskhand.importers.plan import make_plan
from deskhand.importers.platform_settings import _join_url
from deskhand.importers.settings import section_at
from deskhand.store.blobs import Blobs
from deskhand.testing.clock import SetClock
from deskhand.types.identity import Address
from tests.importers.moving import HOMES, NOW, home_of, move, read, settings_in, with_store

BOT = "80351110224678912"
DISCORD = "ODAzNTExMTAyMjQ2Nzg5MTI.none.none"

CHANNELS: dict[str, dict[str, Any]] = {
    "operator-use": {
        "discord": {"allow_from": ["4711"]},
        "slack": {"allow_from": ["U0ANN"]},
        "twitch": {"rooms": ["olga"], "user": "deskbot"},
        "mqtt": {
            "base_url": "mqtts://broker.example.org:8884",
            "user": "desk",
            "prefix": "house",
            "allow_from": ["sensor1"],
        },
        "discord-scout": {
            "type": "discord",
            "token_env": "DISCORD_SCOUT_BOT_TOKEN",
            "enabled": False,
        },
    },
    "nanobot": {
        "discord": {"groups": "all", "allow_from": ["4711"]},
        "slack": {"allow_from": ["U0ANN", "U0BEN"]},
        "matrix": {
            "base_url": "https://matrix.example.org",
            "user": "@desk:example.org",
            "streaming": False,
            "allow_from": ["@ann:example.org"],
        },
        "mail": {
            "user": "desk@example.org",
            "base_url": "imaps://imap.example.org",
            "send_url": "smtp://smtp.example.org",
            "verified_by": "mx.example.org",
            "allow_from": ["ann@example.org"],
        },
    },
    "hermes": {
        "discord": {"groups": "all", "allow_from": ["4711"]},
        "slack": {"allow_from": ["U0ANN"]},
        "matrix": {
            "base_url": "https://matrix.example.org",
            "user": "@desk:example.org",
            "allow_from": ["@ann:example.org"],
        },
        "mail": {
            "user": "desk@gmail.com",
            "base_url": "imaps://imap.gmail.com",
            "send_url": "smtp://smtp.gmail.com",
            "verified_by": "mx.google.com",
            "allow_from": ["ann@example.org"],
        },
    },
    "openclaw": {
        "discord": {"groups": "all", "allow_from": ["4711"]},
        "slack": {"streaming": False, "allow_from": ["U0ANN"]},
        "matrix": {
            "base_url": "https://matrix.example.org",
            "user": "@desk:example.org",
            "allow_from": ["@ann:example.org"],
        },
        "twitch": {"rooms": ["olga"], "user": "deskbot", "allow_from": ["123"]},
    },
}
SECRETS = {
    "discord": {"DISCORD_BOT_TOKEN": DISCORD},
    "slack": {"SLACK_BOT_TOKEN": "xoxb-none", "SLACK_APP_TOKEN": "xapp-none"},
    "matrix": {"MATRIX_ACCESS_TOKEN": "none"},
    "mail": {"MAIL_PASSWORD": "none"},
    "mqtt": {"MQTT_PASSWORD": "none"},
    "twitch": {"TWITCH_ACCESS_TOKEN": "none"},
}


@pytest.mark.parametrize("name", CHANNELS)
async def test_each_bot_is_a_channel_that_opens(name: str, tmp_path: Path) -> None:
    found = read(platform_home(name, tmp_path))
    assert found.system == name and not found.broken
    assert found.config["channels"] == CHANNELS[name]
    for kind, secrets in SECRETS.items():
        if kind in CHANNELS[name]:
            assert found.secrets.items() >= secrets.items()

    settings = settings_in(tmp_path)
    await move(tmp_path / f"platforms/{name}", settings)
    now = read_settings(settings.file, settings.started_with)
    assert not now.warnings
    assert {each for each, config in now.config.channels.items() if config.enabled} == {
        each for each, given in CHANNELS[name].items() if given.get("enabled", True)
    }
    opened = open_channels(now, Blobs(now.home.blobs), SetClock(NOW))
    assert {each.name for each in opened} >= {
        each for each, config in now.config.channels.items() if config.enabled
    }
    assert not [each.why for each in opened if isinstance(each, Unopened)]
    answering = {each.channel: each.agent for each in now.config.bindings if not each.chat}
    assert set(answering) == set(CHANNELS[name])


def platform_home(name: str, tmp_path: Path) -> Path:
    """The home with all its platforms. Its tokens of Slack look like tokens only here, so that
    nobody takes those of the repository for some."""
    home = home_of(f"platforms/{name}", tmp_path)
    for file in (home / name for name in ("config.json", ".env", "openclaw.json")):
        if file.exists():
            text = (
                file.read_text().replace("BOT-none", "xoxb-none").replace("APP-none", "xapp-none")
            )
            file.write_text(text)
    return home


def places(found: ImportedHome) -> dict[str, Address | None]:
    return {talk.key: talk.place for talk in found.conversations}


def why_past(found: ImportedHome) -> dict[str, str]:
    """Why conversations do not go on, by their names."""
    start = "it becomes a past conversation: "
    return {
        each.what: each.why.removeprefix(start)
        for each in found.changed
        if each.why.startswith(start)
    }


def test_chats_of_operator_use(tmp_path: Path) -> None:
    found = read(platform_home("operator-use", tmp_path))
    assert places(found) == {
        "discord:9001": Address("discord", BOT, "9001", group=True),
        "slack:D0ANN": Address("slack", "", "D0ANN"),
        "slack:C0HOUSE": None,
        "twitch:olga": None,
        "mqtt:sensor1": Address("mqtt", "", "sensor1"),
    }
    assert why_past(found) == {
        "slack:C0HOUSE": "in a channel of Slack each thread is a conversation here",
        "twitch:olga": "its chat has a name there, and Deskhand knows chats by the platform's own "
        "ids",
    }
    (job,) = (each.job for each in found.jobs)
    assert job.to == Address("slack", "", "C0HOUSE", group=True)
    assert found.config["bindings"][:2] == [
        {"agent": "scout", "channel": "discord", "chat": "9002"},
        {"agent": "scout", "channel": "discord-scout", "chat": "9002"},
    ]


def test_chats_of_nanobot(tmp_path: Path) -> None:
    found = read(platform_home("nanobot", tmp_path))
    room = "!room:example.org"
    assert places(found) == {
        "discord:9001": Address("discord", BOT, "9001", group=True),
        "discord:9001:thread:9100": Address("discord", BOT, "9100", group=True),
        "slack:D0ANN": Address("slack", "", "D0ANN"),
        "slack:C0HOUSE:1764.0001": Address("slack", "", "C0HOUSE", "1764.0001", group=True),
        f"matrix:{room}": Address("matrix", "@desk:example.org", room, group=True),
        f"matrix:{room}:thread:$event": Address(
            "matrix", "@desk:example.org", room, "$event", group=True
        ),
        "email:ann@example.org": None,
        "whatsapp:49170": None,
    }
    assert why_past(found) == {
        "email:ann@example.org": "in mail each thread is a conversation here, and the home does "
        "not tell them apart",
        "whatsapp:49170": "Deskhand has no channel for WhatsApp",
    }
    mail = next(talk for talk in found.conversations if talk.key.startswith("email:"))
    assert mail.lines[0].by == "mail:ann@example.org"
    left = {each.what: each.why for each in found.left_out}
    assert left["channel whatsapp of nanobot (enabled, bridge_token, allow_from)"] == (
        "Deskhand has no channel for WhatsApp"
    )
    assert left["e2ee_enabled of channel matrix of nanobot"] == "Deskhand reads no encrypted rooms"
    assert "that ben may write to matrix of nanobot" in left


def test_chats_of_openclaw(tmp_path: Path) -> None:
    found = read(platform_home("openclaw", tmp_path))
    assert places(found) == {
        "one": Address("discord", BOT, "9100", group=True),
        "two": Address("slack", "", "C0HOUSE", "1764.0001", group=True),
        "three": Address("matrix", "@desk:example.org", "!Room:example.org", group=True),
        "four": None,
        "five": None,
    }
    reasons = why_past(found)
    assert "named by its person there" in reasons["agent:main:slack:direct:u0ann"]
    assert reasons["agent:main:whatsapp:direct:+49170"] == "Deskhand has no channel for WhatsApp"
    (direct,) = (talk for talk in found.conversations if talk.key == "four")
    assert direct.lines[0].by == "slack:U0ANN"
    index = tmp_path / "platforms/openclaw/agents/main/sessions/sessions.json"
    index.write_text(index.read_text().replace("room:!Room:example.org", "room:!other:example.org"))
    again = read(tmp_path / "platforms/openclaw")
    assert places(again)["three"] is None and "exact id" in "".join(why_past(again).values())


def test_platforms_of_hermes_that_are_not_here_are_named(tmp_path: Path) -> None:
    found = read(platform_home("hermes", tmp_path))
    left = {each.what: each.why for each in found.left_out}
    assert left["the platform mattermost"] == "Deskhand has no channel for Mattermost"
    assert left["the platform whatsapp"] == "Deskhand has no channel for WhatsApp"
    assert "platforms.email: skip_attachments" in left
    assert "EMAIL_PASSWORD" not in found.secrets


def change_config(home: Path, **channel: Any) -> Path:
    """The same home, with other settings of its mailbox."""
    config = json.loads((home / "config.json").read_text())
    config["channels"]["email"] |= channel
    (home / "config.json").write_text(json.dumps(config))
    return home


def test_a_channel_that_lacks_something_is_switched_off(tmp_path: Path) -> None:
    home = platform_home("nanobot", tmp_path)
    found = read(change_config(home, trustedAuthservIds=[], imapPassword=""))
    channel = found.config["channels"]["mail"]
    assert channel["enabled"] is False and "verified_by" not in channel
    todo = {each.what: each.todo for each in found.left_out}
    assert todo["Who vouches for senders of email of nanobot"] == (
        "deskhand config set channels.mail.verified_by VALUE, then deskhand config set "
        "channels.mail.enabled true"
    )
    assert todo["Password of email of nanobot"].startswith("put MAIL_PASSWORD into Deskhand's .env")


async def test_no_secret_that_is_here_is_sent_elsewhere(tmp_path: Path) -> None:
    """A file from elsewhere may name a server, and our own secret would go there."""

    settings = settings_in(tmp_path)
    settings.home.env.write_text("MATRIX_ACCESS_TOKEN=ours\n")
    settings.home.env.chmod(0o600)
    settings = read_settings(None, settings.started_with)
    home = platform_home("nanobot", tmp_path)
    plan = await with_store(settings, lambda store: make_plan(read(home), settings, store))
    (left,) = [each for each in plan.left_out if each.what == "channels.matrix"]
    assert "MATRIX_ACCESS_TOKEN exists here already" in left.why

    await move(home, settings)
    now = read_settings(settings.file, settings.started_with)
    assert set(now.config.channels) == {"discord", "slack", "mail"}
    assert {each.channel for each in now.config.bindings} == {"discord", "slack", "mail"}


def test_chats_of_hermes(tmp_path: Path) -> None:
    home = platform_home("hermes", tmp_path)
    shutil.copy(HOMES / "hermes/state.db", home / "state.db")
    chats = [
        ("a", "discord", "4711", "9001", "dm", ""),
        ("b", "discord", "4711", "9002", "thread", "9100"),
        ("c", "slack", "U0ANN", "C0HOUSE", "group", "1764.0001"),
        ("d", "matrix", "@ann:example.org", "!room:example.org", "dm", ""),
        ("e", "email", "ann@example.org", "ann@example.org", "dm", ""),
        ("f", "mattermost", "x", "y", "dm", ""),
    ]
    with sqlite3.connect(home / "state.db") as db:
        db.execute("DELETE FROM messages")
        db.execute("DELETE FROM sessions")
        for number, (id_, source, user, chat, kind, thread) in enumerate(chats, 1):
            db.execute(
                "INSERT INTO sessions (id, source, user_id, session_key, chat_id, chat_type,"
                " thread_id, started_at) VALUES (?, ?, ?, ?, ?, ?, ?, 1.0)",
                (id_, source, user, id_, chat, kind, thread),
            )
            db.execute(
                "INSERT INTO messages (session_id, role, content, timestamp, active)"
                " VALUES (?, 'user', 'hello', ?, 1)",
                (id_, float(number)),
            )
    db.close()
    found = read(home)
    room = Address("matrix", "@desk:example.org", "!room:example.org")
    assert places(found) == {
        "a": Address("discord", BOT, "9001"),
        "b": Address("discord", BOT, "9100", group=True),
        "c": Address("slack", "", "C0HOUSE", "1764.0001", group=True),
        "d": room,
        "e": None,
        "f": None,
    }
    assert why_past(found)["f"] == "Deskhand has no channel for Mattermost"
    said = {talk.key: talk.lines[0].by for talk in found.conversations}
    assert said["a"] == "discord:4711" and said["e"] == "mail:ann@example.org" and not said["c"]


@pytest.mark.parametrize(
    ("kind", "token", "user", "id_"),
    [
        ("telegram", "700001:abc", "", "700001"),
        ("telegram", "abc", "", ""),
        ("discord", DISCORD, "", BOT),
        ("discord", "x", "", ""),
        ("discord", "aGk.none.none", "", ""),
        ("matrix", "t", "@desk:example.org", "@desk:example.org"),
        ("mail", "t", "Desk@example.org", "desk@example.org"),
        ("slack", "xoxb-none", "", ""),
    ],
)
def test_the_id_of_a_bot(kind: str, token: str, user: str, id_: str) -> None:
    assert find_bot_id(kind, token, user) == id_


@pytest.mark.parametrize(
    ("name", "chat"),
    [
        ("telegram:-100:topic:7", ForeignChat("telegram", "-100", "7")),
        ("telegram:-100:7", ForeignChat("telegram", "-100", "7")),
        ("slack:C1:12.3", ForeignChat("slack", "C1", "12.3")),
        ("matrix:!r:example.org:thread:$e", ForeignChat("matrix", "!r:example.org", "$e")),
        ("matrix:!r:example.org", ForeignChat("matrix", "!r:example.org")),
        ("mqtt:sensor", ForeignChat("mqtt", "sensor")),
        ("all", ForeignChat("all", "")),
        ("", ForeignChat("", "")),
    ],
)
def test_the_parts_of_a_chats_name(name: str, chat: ForeignChat) -> None:
    assert parse_chat(name) == chat


@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("discord", "DISCORD_BOT_TOKEN"),
        ("discord-scout", "DISCORD_SCOUT_BOT_TOKEN"),
        ("discord-my.agent 2", "DISCORD_MY_AGENT_2_BOT_TOKEN"),
    ],
)
def test_the_variable_of_a_channel_has_only_letters(name: str, variable: str) -> None:
    (need,) = GUIDES["discord"].needs
    assert find_variable(need, "discord", name) == variable


def test_sections_are_found_whatever_the_case_of_their_keys() -> None:
    raw = {"tools": {"mediaFiles": {"audio": {"echoTranscript": True}}, "web": ["none"]}}
    assert section_at(raw, "tools", "media_files", "audio") == {"echo_transcript": True}
    assert section_at(raw, "tools", "web", "search") == {}
    assert section_at(raw, "none") == {}


def test_a_thread_that_is_none_leads_nowhere() -> None:
    bots = Bots()
    bots.add("a", Bot("slack", "slack"))
    thread = parse_chat("slack:C1:1.2")
    assert bots.find_chat("a", thread).place == Address("slack", "", "C1", "1.2", group=True)
    assert bots.find_chat("a", parse_chat("slack:C1:../x")).place is None
    assert bots.find_chat("a", parse_chat("slack:c1:1.2")).place is None
    assert bots.find_chat("b", thread).why == "no bot of b with a token is in this home"
    assert bots.find_target("b", parse_chat("slack:C1")) is None


def test_a_port_of_thousands_of_digits_is_none() -> None:
    assert _join_url("mqtt", "broker.example", "9" * 5000, usual=1883) == "mqtt://broker.example"
    assert _join_url("mqtt", "broker.example", 8883, usual=1883) == "mqtt://broker.example:8883"
