"""Nothing is left out in silence: every field and file that another system has comes in, or the
report names it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apsw
import pytest
import yaml

from deskhand.config.foreign_keys import to_snake_case
from tests.importers.marks import SECRET, Marks, imported
from tests.importers.moving import home_of, looks

CHANNEL = {"enabled": True, "account_id": "", "media_dir": str, "use_webhook": True, "webhook_url": str,
    "webhook_path": str, "webhook_port": int}  # fmt: skip


def check(marks: Marks, home: Path, tmp_path: Path, *args: str) -> None:
    before = None
    for path in (home, *home.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o700 if path.is_dir() else 0o600)
    before = looks(home)
    report, said = imported(home, tmp_path, *args)
    lost = marks.lost(tmp_path / "desk", report, said)
    assert not lost, "\n".join(f"{each.text} {' '.join(each.words)}" for each in lost)
    assert looks(home) == before


# ---------------------------------------------------------------------- operator-use

OPERATOR_USE: dict[str, Any] = {
    "agents": {
        "defaults": {"maxToolIterations": int, "streaming": True, "llmConfig": {"provider": "openai", "model": str},
            "subagent": {"maxIterations": int}},
    },
    "stt": {"enabled": True, "provider": str, "model": str},
    "tts": {"enabled": True, "provider": str, "model": str, "voice": str},
    "image": {"provider": str, "model": str},
    "search": {"provider": str, "apiKey": SECRET},
    "providers": {
        "openai": {"apiKey": SECRET, "apiBase": "http://127.0.0.1:1/v1"},
        "open_router": {"apiKey": SECRET},
        "azureOpenai": {"apiKey": SECRET, "apiBase": str},
    },
    "heartbeat": {"enabled": True, "llmConfig": {"provider": "openai", "model": str}},
    "acpAgents": {"far": {"baseUrl": str, "agentId": str, "authToken": SECRET, "timeout": int, "description": str}},
    "acpServer": {"enabled": True, "host": str, "port": int, "agentId": str, "agentName": str,
        "agentDescription": str, "authToken": SECRET, "publicUrl": str},
    "mcpServers": {"one": {"command": str, "args": [], "env": {"A": str}}},
    "plugins": [],
}  # fmt: skip
OPERATOR_USE_AGENT: dict[str, Any] = {
    "description": str, "llmConfig": {"provider": "openai", "model": str}, "maxToolIterations": int,
    "promptMode": "minimal", "systemPrompt": str, "acpToken": SECRET,
    "tools": {"profile": "coding", "alsoAllow": str, "deny": str},
    "computerUse": False, "browserUse": True,
    "channels": {
        "telegram": CHANNEL | {"proxy": str, "replyToMessage": True, "allowFrom": ["4711"]},
        "discord": CHANNEL | {"token": SECRET, "replyToMessage": True, "allowFrom": ["1"]},
        "slack": CHANNEL | {"bot_token": SECRET, "app_token": SECRET, "signing_secret": SECRET},
        "twitch": {"enabled": False, "token": SECRET, "nick": str, "channel_name": str, "prefix": str},
        "mqtt": {"enabled": True, "brokerHost": str, "brokerPort": int, "username": str, "password": SECRET,
            "topicPrefix": str, "client_id": str, "tls": True, "keepalive": int, "allowFrom": ["sensor"]},
    },
}  # fmt: skip


OUR_NAMES = {
    "agents.defaults.maxToolIterations": "defaults.steps",
    "agents.defaults.llmConfig.model": "defaults.models",
    "reflection.model_id": "reflection.models",
    "reflection.max_tokens": "reflection.output_tokens",
    "agent.deep_work.token_budget": "deep_work.tokens",
    "ALLOWED_COMMANDS": "defaults.commands",
}


def under_our_name(path: str) -> tuple[str, ...]:
    """Keys that the report calls by our names, since they are not taken for what they set."""
    return (OUR_NAMES[path],) if path in OUR_NAMES else ()


def of_a_channel(path: str) -> tuple[str, ...]:
    """How the report names a key of a channel."""
    parts = path.split(".")
    if "channels" not in parts:
        return ()
    return parts[parts.index("channels") + 1], parts[-1]


def of_an_agent(path: str) -> tuple[str, ...]:
    return of_a_channel(path) or (f"agents.list.operator.{path}",)


def a_session(marks: Marks, key: str) -> str:
    about = {
        "user_id": "4711",
        "video": marks.text("video"),
        "message_id": marks.number("message_id"),
    }
    lines = [
        {"type": "metadata", "id": key, "created_at": "2026-11-20T10:00:00", "updated_at": "2026-11-20T10:00:00",
         "metadata": {"mode": marks.text("sessions: the field metadata")}},
        {"role": "system", "content": marks.text("messages of the role system")},
        {"role": "human", "content": marks.text(), "metadata": about},
        {"role": "human", "content": marks.text(),
         "images": [marks.text("images")], "mime_type": marks.text("mime_type")},
        {"role": "tool", "id": "c1", "name": "web_search", "params": {"query": marks.text()}, "content": marks.text(),
         "thinking": marks.text("thinking"), "usage": {"prompt_tokens": marks.number("usage")}},
        {"role": "ai", "content": marks.text(),
         "thinking": marks.text("thinking"), "metadata": {"x": marks.text("field x")},
         "thinking_signature": marks.text("thinking_signature")},
    ]  # fmt: skip
    return "\n".join(map(json.dumps, lines))


def a_cron_job(marks: Marks) -> dict[str, Any]:
    return {
        "id": marks.text("field id"), "name": marks.text(), "enabled": True,
        "schedule": {"mode": "cron", "expr": "0 19 * * 3", "tz": "Europe/Berlin", "jitter": marks.text("jitter")},
        "payload": {"message": marks.text(), "deliver": True, "channel": "telegram", "chat_id": "4711:7",
            "account_id": "operator", "style": marks.text("style")},
        "state": {"last_error": marks.text("state")}, "created_at_ms": marks.number("created_at_ms"),
        "delete_after_run": False,
    }  # fmt: skip


def an_agents_files(marks: Marks, work: Path, home: Path) -> None:
    """All that the document puts into a workspace."""
    for name in ("SOUL.md", "RULES.md", "USER.md", "CODE.md", "AGENTS.md", "HEARTBEAT.md"):
        marks.file(work / name, home)
    marks.file(work / "memory/MEMORY.md", home, "# Memory\n- ")
    marks.file(work / "memory/2026-11-20.md", home)
    marks.file(work / "memory/2026-11-19/summary.md", home)
    marks.file(work / "memory/loose.txt", home)
    skill = work / "skills/look-up"
    marks.file(skill / "SKILL.md", home, "---\nname: look-up\ndescription: Look it up.\n---\n")
    for name in ("scripts/run.sh", "references/api.md", "assets/page.html", ".history/1.md"):
        marks.file(skill / name, home)
    marks.file(work / "tools/scan.py", home)
    marks.file(work / "knowledge/printer/context.md", home)
    marks.file(work / "knowledge/flat.md", home)
    marks.file(work / "notes/own.md", home)


@pytest.mark.parametrize("layout", ["workspaces/operator", "workspace"])
def test_operator_use(layout: str, tmp_path: Path) -> None:
    """In the layout of its program, and in that of its document."""
    marks = Marks()
    home = tmp_path / ".operator-use"
    work = home / layout
    sessions = (work if "/" in layout else home) / "sessions"
    sessions.mkdir(parents=True)
    config = marks.filled(OPERATOR_USE, also=under_our_name)
    agent = marks.filled(OPERATOR_USE_AGENT, also=of_an_agent)
    agent["channels"]["telegram"]["token"] = f"700001:{marks.secret('TELEGRAM_BOT_TOKEN')}"
    config["agents"]["list"] = [{"id": "operator", **agent}]
    config["bindings"] = [{"agentId": "operator", "match": {"channel": marks.text()}}]
    (home / "config.json").write_text(json.dumps(config))
    (home / "crons.json").write_text(json.dumps({"version": 1, "jobs": [a_cron_job(marks)]}))
    (sessions / "telegram_4711.jsonl").write_text(a_session(marks, "telegram:4711"))
    (sessions / "telegram_-100_7.jsonl").write_text(a_session(marks, "telegram:-100:7"))
    (sessions / "discord_1.jsonl").write_text(a_session(marks, "discord:1"))
    an_agents_files(marks, work, home)
    for name in ("restart.json", "acp_sessions.json", "operator.log", "media/photo.jpg", "odd.bin"):
        marks.file(home / name, home)
    (home / ".env").write_text(
        f"GROQ_API_KEY={marks.secret()}\nOPERATOR_VERBOSE={marks.text('OPERATOR_VERBOSE')}\n"
    )
    check(marks, home, tmp_path)


# ---------------------------------------------------------------------- platforms and speech

NANOBOT_CHANNELS: dict[str, Any] = {
    "discord": {"enabled": True, "token": SECRET, "allowFrom": ["4711"], "allowChannels": [str], "intents": int,
        "groupPolicy": "open", "readReceiptEmoji": str, "proxy": str, "proxyPassword": SECRET},
    "slack": {"enabled": True, "mode": str, "webhookPath": str, "botToken": SECRET, "appToken": SECRET,
        "reactEmoji": str, "groupPolicy": str, "groupAllowFrom": [str], "dm": {"policy": str}},
    "matrix": {"enabled": True, "homeserver": str, "userId": str, "password": SECRET, "accessToken": SECRET,
        "deviceId": str, "e2eeEnabled": True, "maxMediaBytes": int, "groupPolicy": str, "groupAllowFrom": [str]},
    "email": {"enabled": True, "imapHost": str, "imapPort": int, "imapUsername": "desk@example.org",
        "imapPassword": SECRET, "imapMailbox": str, "smtpHost": str, "smtpPort": int, "smtpPassword": SECRET,
        "postAction": str, "subjectPrefix": str, "trustedAuthservIds": [str]},
    "whatsapp": {"enabled": True, "bridgeUrl": str, "bridgeToken": SECRET, "allowFrom": [str]},
    "feishu": {"enabled": False, "appId": str, "appSecret": SECRET},
}  # fmt: skip


def by_field(path: str) -> tuple[str, ...]:
    """The report has names in snake_case, and of a list or a map its name alone."""
    platform, field = path.split(".")[:2]
    return platform, to_snake_case(field)


def fill_lists(marks: Marks, channels: dict[str, Any]) -> dict[str, Any]:
    """The lists of a template with marks in them."""
    for platform, settings in channels.items():
        for name, value in settings.items():
            if value == [str]:
                settings[name] = [marks.text(platform, to_snake_case(name))]
    return channels


def test_platforms_of_nanobot(tmp_path: Path) -> None:
    marks = Marks()
    home = home_of("platforms/nanobot", tmp_path)
    config = json.loads((home / "config.json").read_text())
    config["channels"] = fill_lists(marks, marks.filled(NANOBOT_CHANNELS, also=by_field))
    config["transcription"] = {
        "enabled": True,
        "provider": marks.text(),
        "model": marks.text(),
        "language": marks.text(),
        "maxUploadMb": marks.number("transcription", "maxUploadMb"),
    }
    (home / "config.json").write_text(json.dumps(config))
    check(marks, home, tmp_path)


HERMES_SPEECH: dict[str, Any] = {
    "stt": {"provider": str, "language": str, "local": {"model": str}},
    "tts": {"provider": "elevenlabs", "speed": int, "edge": {"voice": str},
        "elevenlabs": {"voice_id": str, "model_id": str, "max_text_length": int}},
    "voice": {"record_key": str, "auto_tts": False},
}  # fmt: skip


def test_platforms_of_hermes(tmp_path: Path) -> None:
    marks = Marks()
    home = home_of("platforms/hermes", tmp_path)
    config = marks.filled(HERMES_SPEECH, also=lambda path: tuple(path.split(".")))
    config["discord"] = {"free_response_channels": marks.text("discord", "free_response_channels")}
    config["platforms"] = {
        "slack": {"reply_to_mode": marks.text("platforms.slack", "reply_to_mode")},
        "signal": {"token": marks.secret("the platform signal")},
    }
    config["matrix"] = {
        "allowed_users": [marks.text()],
        "session_scope": marks.text("session_scope"),
    }
    (home / "config.yaml").write_text(yaml.safe_dump(config))
    names = ("DISCORD_BOT_TOKEN", "SLACK_APP_TOKEN", "MATRIX_ACCESS_TOKEN", "EMAIL_PASSWORD")
    variables = {name: marks.secret() for name in names}
    variables["MATRIX_PASSWORD"] = marks.secret("password of channel matrix")
    variables["DISCORD_ALLOWED_USERS"] = marks.text()
    variables["EMAIL_ADDRESS"] = f"{marks.text()}@example.org"
    variables["EMAIL_POLL_INTERVAL"] = marks.text("EMAIL_POLL_INTERVAL")
    variables["SIGNAL_ACCOUNT"] = marks.text("SIGNAL_ACCOUNT")
    text = "".join(f"{name}={value}\n" for name, value in variables.items())
    (home / ".env").write_text(f"{text}SLACK_BOT_TOKEN=none\nEMAIL_IMAP_HOST=imap.example.org\n")
    check(marks, home, tmp_path)


OPENCLAW_CHANNELS: dict[str, Any] = {
    "defaults": {"groupPolicy": str},
    "discord": {"token": SECRET, "dmPolicy": str, "guilds": {"1": {"requireMention": False}}, "allowBots": str},
    "slack": {"botToken": SECRET, "appToken": SECRET, "userToken": SECRET, "signingSecret": SECRET, "mode": str},
    "matrix": {"accessToken": SECRET, "homeserver": str, "userId": str, "encryption": True, "threadReplies": str,
        "accounts": {"work": {"deviceName": str, "homeserver": str}}},
    "twitch": {"accessToken": SECRET, "username": str, "channel": str, "clientId": str, "clientSecret": SECRET},
    "signal": {"account": str},
}  # fmt: skip
OPENCLAW_SPEECH: dict[str, Any] = {
    "messages": {"tts": {"auto": "always", "provider": "openai", "summaryModel": str, "maxTextLength": int,
        "openai": {"apiKey": SECRET, "model": str, "voice": str}, "edge": {"voice": str}}},
    "tools": {"media": {"audio": {"enabled": True, "maxBytes": int, "language": str}}},
}  # fmt: skip


def by_openclaw_field(path: str) -> tuple[str, ...]:
    parts = path.split(".")
    if "accounts" in parts:
        return parts[0], parts[-2], to_snake_case(parts[-1])
    return parts[0], to_snake_case(parts[1]) if parts[0] != "defaults" else "group_policy"


def test_platforms_of_openclaw(tmp_path: Path) -> None:
    marks = Marks()
    home = home_of("platforms/openclaw", tmp_path)
    config = marks.filled(OPENCLAW_SPEECH, also=lambda path: tuple(path.split(".")))
    config["channels"] = marks.filled(OPENCLAW_CHANNELS, also=by_openclaw_field)
    engine = {"provider": marks.text(), "model": marks.text(), "prompt": marks.text("field prompt")}
    config["tools"]["media"]["audio"]["models"] = [engine]
    (home / "openclaw.json").write_text(json.dumps(config))
    check(marks, home, tmp_path)


# ---------------------------------------------------------------------- agent_computer

AGENT_COMPUTER: dict[str, Any] = {
    "gateway": {"host": str, "port": 8123},
    "agent": {
        "id": "main", "name": str, "workspace": "./workspace",
        "model": {"provider": "lmstudio", "model_id": str, "base_url": "http://127.0.0.1:1/v1", "max_tokens": int},
        "tools": {"allow": ["shell", "read_file"], "require_approval": ["shell"],
            "non_interactive_approval_policy": "auto_approve", "shell_allow_absolute_paths": True,
            "verification_tools": str},
        "max_loop_iterations": int,
        "deep_work": {"max_iterations": int, "token_budget": int, "warning_threshold": 0.7, "max_dag_nodes": int},
    },
    "sessions": {"directory": "./sessions", "max_history_tokens": int},
    "reflection": {"enabled": True, "model_id": str, "max_tokens": int, "max_sessions_per_startup": 11},
    "memory": {"enabled": True, "embedding_base_url": str, "embedding_model": str, "top_k": 7},
    "lmstudio": {"base_url": "http://127.0.0.1:1/v1", "api_key": SECRET},
    "pinchtab": {"enabled": True, "base_url": str, "token": SECRET, "default_profile": str, "headless": True},
    "openrouter_api_key": SECRET,
}  # fmt: skip


def test_agent_computer(tmp_path: Path) -> None:
    marks = Marks()
    home = home_of("agent-computer", tmp_path)
    config = marks.filled(AGENT_COMPUTER, also=under_our_name)
    refused = marks.text()
    config["agent"]["tools"]["shell_blocked_commands"] = [
        refused,
        f"{marks.text('shell_blocked_commands')} --force",
    ]
    (home / "config.json").write_text(json.dumps(config))
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "shell", "arguments": json.dumps({"command": marks.text()})},
    }
    lines = [
        {"role": "system", "content": marks.text("messages of the role system")},
        {"role": "user", "content": marks.text(), "timestamp": 1795346843.1, "source": marks.text("source")},
        {"role": "meta", "content": {"usage": {"prompt_tokens": marks.number()}, "model": marks.text(), "iteration": 1,
            "note": marks.text("note")}},
        {"role": "assistant", "content": {"role": "assistant", "content": marks.text(), "tool_calls": [call],
            "reasoning": marks.text("reasoning")}},
        {"role": "tool", "content": marks.text(), "tool_call_id": "c1", "tool_name": "shell"},
        {"role": "assistant", "content": marks.text()},
    ]  # fmt: skip
    (home / "sessions/main.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (home / "sessions/cron-tidy.jsonl").write_text(
        json.dumps({"role": "user", "content": marks.text()})
    )
    task = {"id": 1, "title": marks.text(), "description": marks.text(), "status": "completed", "result": marks.text(),
        "created_at": marks.number("created_at"), "node_type": marks.text(), "config": {"a": marks.text()},
        "inputs": {"a": marks.text("inputs")}, "output_schema": {"a": marks.text("output_schema")},
        "output": {"a": marks.text("field output")}, "position": {"x": marks.number("position")}}  # fmt: skip
    (home / "sessions/main.tasks.json").write_text(json.dumps({"next_id": 2, "tasks": [task]}))
    job = {"id": marks.text(), "name": marks.text(), "schedule": "daily 09:00", "prompt": marks.text(),
        "session_id": marks.text(), "enabled": True, "approval_policy": marks.text("approval_policy")}  # fmt: skip
    (home / "workspace/cron.json").write_text(json.dumps([job]))
    memory = home / "workspace/memory"
    (memory / "knowledge.md").write_text(
        f"# Agent Knowledge\n\n## {marks.text()}\n*Source: session main*\n\n{marks.text()}\n"
    )
    (memory / "learnings.md").write_text(f"## {marks.text()}\n\n**Mistake**: {marks.text()}\n")
    (memory / "index.json").write_text(
        json.dumps({"sessions": {"main": {"summary": marks.text("index.json")}}})
    )
    with apsw.Connection(str(memory / "memory.db")) as db:
        rows = [("knowledge", "only-here", marks.text(), marks.text(), b"1"),
            ("session_summary", "other", "Session: other",
            marks.text("sessions", "memory.db"), marks.text("embeddings").encode())]  # fmt: skip
        db.executemany(
            (
                "INSERT INTO memories(source_type, source_id, title, content, embedding, "
                "created_at) VALUES(?,?,?,?,?,1.0)"
            ),
            rows,
        )
    (memory / "skills/scan.py").write_text(
        f'async def scan() -> str:\n    """{marks.text()}"""\n    return "{marks.text()}"\n'
    )
    for name in ("SOUL.md", "USER.md", "own/report.md"):
        marks.file(home / "workspace" / name, home)
    for name in (
        "gateway.py",
        "tools/web.py",
        "web/index.html",
        "sessions/main.archive.md",
        "start_gateway.sh",
    ):
        marks.file(home / name, home)
    (home / ".env").write_text(f"OPENAI_API_KEY={marks.secret()}\nPORT={marks.text('PORT')}\n")
    check(marks, home, tmp_path)


# ---------------------------------------------------------------------- operator-ai

OPERATOR_AI: dict[str, dict[str, Any]] = {
    "operator-ai-0.4": {
        "defaults": {"max_iterations": int, "context_ratio": 0.5, "max_output_tokens": int,
            "timezone": "America/Vancouver", "env_file": "keys.env"},
        "settings": {"reject_response": "announce"},
        "memory": {"harvester": {"enabled": True, "schedule": "1 2 * * *", "model": str},
            "cleaner": {"enabled": True, "schedule": "3 4 * * *", "model": str}},
    },
    "operator-ai-0.7": {
        "runtime": {"timezone": "America/Vancouver", "env_file": "keys.env", "show_usage": True,
            "reject_response": "announce"},
        "defaults": {"thinking": "high", "max_iterations": int, "context_ratio": 0.5, "max_output_tokens": int},
        "memory": {"harvester": {"enabled": True, "schedule": "1 2 * * *", "model": str}, "candidate_ttl_days": int,
            "cleaner": {"enabled": True, "schedule": "3 4 * * *", "model": str}},
    },
}  # fmt: skip
BOTH: dict[str, Any] = {
    "embed_model": str, "embed_dimensions": int, "max_memories": int, "inject_top_k": 7, "inject_min_relevance": 0.2,
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATOR_AI)
def test_operator_ai(name: str, tmp_path: Path) -> None:
    marks = Marks()
    home = home_of(name, tmp_path)
    config = marks.filled(OPERATOR_AI[name])
    config["memory"] |= marks.filled(BOTH, at="memory")
    config["defaults"]["models"] = [f"openai/{marks.text()}"]
    hermes = {"max_iterations": int, "sandbox": False, "transport": {"type": "slack", "bot_token_env": str,
        "app_token_env": str}, "permissions": {"tools": ["run_shell"]}, "odd": str}  # fmt: skip
    config["agents"] = {
        "hermes": marks.filled(hermes, at="agents.hermes"),
        "scout": {"models": [marks.text()]},
    }
    config["agents"]["hermes"]["permissions"]["skills"] = [marks.text()]
    config["roles"] = {"garden": {"agents": ["hermes"]}}
    config["odd"] = marks.text("odd")
    (home / "operator.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    (home / "keys.env").write_text(
        f"ANTHROPIC_API_KEY={marks.secret()}\nPROXY={marks.text('PROXY')}\n"
    )
    (home / ".env").write_text(f"SLACK_BOT_TOKEN={marks.secret()}\n")
    fill_database(marks, home / "state/operator.db", name)
    for file in ("SYSTEM.md", "logs/operator.log", "shared/list.md", "agents/hermes/AGENT.md",
        "agents/hermes/workspace/draft.md", "agents/hermes/workspace/RULES.md", "agents/third/AGENT.md",
        "skills/skill-creator/SKILL.md", "odd/file.txt", "service.pid"):  # fmt: skip
        marks.file(home / file, home)
    (home / "agents/hermes/workspace/shared").symlink_to(home / "shared")
    job = {"description": marks.text(), "schedule": "0 9 * * *", "agent": "hermes", "model": f"openai/{marks.text()}",
        "hooks": {"prerun": "scripts/check.sh", "postrun": "scripts/notify.sh"},
        "enabled": True, "odd": marks.text()}  # fmt: skip
    marks.file(
        home / "jobs/brief/JOB.md", home, f"---\n{yaml.safe_dump({'name': 'brief', **job})}---\n\n"
    )
    marks.file(home / "jobs/brief/scripts/check.sh", home, "#!/bin/sh\n")
    marks.file(home / "jobs/brief/scripts/notify.sh", home, "#!/bin/sh\n")
    marks.file(home / "jobs/no-job/notes.md", home)
    front = f"---\nname: look-up\ndescription: {marks.text()}\n---\n"
    marks.file(home / "skills/look-up/SKILL.md", home, front)
    for file in ("scripts/run.sh", "references/api.md", "assets/page.html"):
        marks.file(home / "skills/look-up" / file, home)
    check(marks, home, tmp_path)


HEAD_COLUMNS = (
    "conversation_id, transport_name, channel_id, root_thread_id, updated_at, metadata_json"
)


def fill_database(marks: Marks, file: Path, name: str) -> None:
    """A mark in every column that is a text."""
    db = apsw.Connection(str(file))
    db.execute("PRAGMA foreign_keys = OFF")
    for table in (
        "messages",
        "conversations",
        "memories",
        "agent_kv",
        "users",
        "user_identities",
        "user_roles",
    ):
        db.execute(f"DELETE FROM {table}")
    user = fill_users(marks, db)
    fill_conversations(marks, db)
    fill_memories(marks, db, user, with_dates=name != "operator-ai-0.4")
    db.execute(
        "INSERT OR REPLACE INTO job_state(job_name, last_error) VALUES('brief', ?)",
        (marks.text("job_state"),),
    )
    db.execute("CREATE TABLE runs(id INTEGER PRIMARY KEY, said TEXT)")
    db.execute("INSERT INTO runs(said) VALUES(?)", (marks.text("the table runs"),))
    db.execute("ALTER TABLE users ADD COLUMN email TEXT")
    db.execute("UPDATE users SET email = ?", (marks.text("the column email of the table users"),))
    db.close()


def fill_users(marks: Marks, db: apsw.Connection) -> str:
    """Returns the name of the one that there is."""
    user = marks.text()
    ghost = marks.text()
    db.execute("INSERT INTO users(username) VALUES(?)", (user,))
    db.executemany(
        "INSERT INTO user_identities(platform_id, username) VALUES(?, ?)",
        [(f"telegram:{marks.number()}", user), (f"slack:{marks.text()}", ghost)],
    )
    for role in ("garden", "admin", marks.text()):
        db.execute("INSERT INTO user_roles(username, role) VALUES(?, ?)", (user, role))
    return user


def fill_conversations(marks: Marks, db: apsw.Connection) -> None:
    about = {
        "agent": "hermes",
        "user_id": "slack:U1",
        "is_private": True,
        "topic": marks.text("topic"),
    }
    heads = [
        (f"slack:hermes:D1:{marks.text()}", json.dumps(about)),
        (f"slack:hermes:D2:{marks.text()}", json.dumps(about)),  # without a message
    ]
    db.executemany(
        (
            f"INSERT INTO conversations({HEAD_COLUMNS}) VALUES(?, 'hermes', 'D1', "
            "'1760000101.000100', 1795346843.0, ?)"
        ),
        heads,
    )
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "run_shell", "arguments": json.dumps({"command": marks.text()})},
    }
    memories = (
        "<context_snapshot "
        f'source="memories">{marks.text("messages of people")}</context_snapshot>\n'
    )
    messages = [
        {"role": "system", "content": marks.text("messages of the role system")},
        {"role": "user", "content": [{"type": "text", "text": f"{memories}{marks.text()}"},
            {"type": "image_url", "image_url": {"url": marks.text("pictures and files")}}]},
        {"role": "assistant", "content": marks.text(),
            "tool_calls": [call], "reasoning_content": marks.text("reasoning_content")},
        {"role": "tool", "tool_call_id": "c1", "content": marks.text()},
        {"role": "assistant", "content": marks.text()},
    ]  # fmt: skip
    rows = [(heads[0][0], json.dumps(each)) for each in messages]
    rows += [(heads[0][0], f"no json {marks.text('1 message')}"), ("slack:gone", json.dumps({"role": "user",
        "content": marks.text("1 message")}))]  # fmt: skip
    db.executemany("INSERT INTO messages(conversation_id, message_json) VALUES(?, ?)", rows)


def fill_memories(marks: Marks, db: apsw.Connection, user: str, *, with_dates: bool) -> None:
    """Those of 0.4 have no end."""
    kept = [
        (marks.text(), "user", user, None), (marks.text(), "agent", "hermes", None), (marks.text(), "global", "", None),
        (marks.text("1 memory"), "global", "", "2020-01-01T00:00:00Z"), (marks.text(), "planet", "", None),
        ("  ", "global", "", None),
    ]  # fmt: skip
    if not with_dates:
        db.executemany(
            "INSERT INTO memories(content, scope, scope_id) VALUES(?, ?, ?)",
            [row[:3] for row in kept],
        )
    else:
        db.executemany(
            (
                "INSERT INTO memories(content, scope, scope_id, retention, expires_at) "
                "VALUES(?, ?, ?, 'candidate', ?)"
            ),
            kept,
        )
    db.execute(
        "INSERT INTO agent_kv(agent, ns, key, value) VALUES('hermes', ?, ?, ?)",
        tuple(marks.text() for _ in range(3)),
    )
    db.execute(
        (
            "INSERT INTO agent_kv(agent, ns, key, value, expires_at) VALUES('hermes', '', ?, "
            "'x', '2020-01-01T00:00:00Z')"
        ),
        (marks.text(),),
    )


# ---------------------------------------------------------------------- openagent-core

OPENAGENT: dict[str, Any] = {
    "ANTHROPIC_API_KEY": SECRET, "OPENAI_API_KEY": SECRET, "ANTHROPIC_BASE_URL": "https://proxy.example",
    "OPENAI_BASE_URL": str, "LLM_PROVIDER": str, "MODEL": str, "MAX_TURNS": int, "MAX_TOKEN_BUDGET": int,
    "MAX_OUTPUT_TOKENS": int, "CONTEXT_WINDOW": int, "COMPACT_THRESHOLD": 0.6, "LLM_MAX_RETRIES": int,
    "LLM_RETRY_BASE_DELAY": int, "LLM_RETRY_MAX_DELAY": int, "SKILLS_DIR": "abilities", "PROMPTS_DIR": "presets",
    "WORKSPACE_DIR": "work", "WORKSPACE_CLEANUP_DELAY": int, "BASH_TIMEOUT": 91, "BACKGROUND_TIMEOUT": int,
    "ALLOWED_COMMANDS": str, "MAX_TEAMMATES": int, "ENABLE_MEMORY": "false", "SUBAGENT_MODEL": str,
    "TEAMMATE_MODEL": str, "COMPACT_MODEL": str, "TEMPERATURE": 0.9, "THINKING_ENABLED": "true",
    "THINKING_EFFORT": str, "DEFAULT_PRESET": "garden", "GOOGLE_CLIENT_ID": str, "MCP_SERVERS_FILE": str,
    "DATABASE_URL": "sqlite+aiosqlite:///./agent.db", "ODD": str,
}  # fmt: skip


def test_openagent(tmp_path: Path) -> None:
    marks = Marks()
    home = home_of("openagent", tmp_path)
    (home / "workspace").rename(home / "work")
    (home / "skills").rename(home / "abilities")
    settings = marks.filled(OPENAGENT, also=under_our_name)
    (home / ".env").write_text("\n".join(f"{name}={value}" for name, value in settings.items()))
    db = apsw.Connection(str(home / "agent.db"))
    db.execute("DELETE FROM messages")
    db.execute("DELETE FROM conversations")
    head = ("one", marks.text(), marks.text(), "garden", 1, 1, 1, 1, 1, "high")
    columns = (
        "id, title, system_prompt, preset, enable_teams, enable_tracing, enable_approval, "
        "enable_plan_mode,"
        " enable_thinking, thinking_effort"
    )
    db.execute(f"INSERT INTO conversations({columns}) VALUES(?,?,?,?,?,?,?,?,?,?)", head)
    other = ("two", marks.text(), None, marks.text(), 0, 0, 1, 0, 1, marks.text("thinking_effort"))
    db.execute(f"INSERT INTO conversations({columns}) VALUES(?,?,?,?,?,?,?,?,?,?)", other)
    db.execute("ALTER TABLE conversations ADD COLUMN mood TEXT")
    db.execute("UPDATE conversations SET mood = ?", (marks.text("the column mood"),))
    said = [
        ("one", "user", marks.text()),
        ("one", "assistant", [{"type": "text", "text": marks.text()},
            {"type": "thinking", "thinking": marks.text("field thinking")},
            {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": marks.text()}}]),
        ("one", "user", [{"type": "tool_result", "tool_use_id": "c1", "content": marks.text()}]),
        ("one", "user", [{"type": "image", "source": {"data": marks.text("field image")}}]),
        ("one", "assistant", [{"type": "text", "text": marks.text()}]),
        ("two", "user", marks.text()),
        ("gone", "user", marks.text("1 message")),
    ]  # fmt: skip
    db.execute("PRAGMA foreign_keys = OFF")
    db.executemany(
        "INSERT INTO messages(conversation_id, role, content) VALUES(?, ?, ?)",
        [(key, role, json.dumps(content)) for key, role, content in said],
    )
    db.execute("UPDATE token_usage SET model = ?", (marks.text("token_usage"),))
    db.close()
    task = {"id": 1, "subject": marks.text(), "description": marks.text(), "status": "pending",
        "activeForm": marks.text(),
        "owner": marks.text(), "blockedBy": [], "blocks": [], "metadata": {"a": marks.text()},
        "odd": marks.text("field odd")}  # fmt: skip
    (home / "work/.tasks").mkdir(exist_ok=True)
    (home / "work/.tasks/task_1.json").write_text(json.dumps(task))
    marks.file(home / "work/.agent/memory.md", home, "## Decisions\n- ")
    marks.file(home / "presets/garden/PROMPT.md", home, "---\nname: garden\ndescription: x\n---\n")
    marks.file(
        home / "abilities/look-up/SKILL.md",
        home,
        "---\nname: look-up\ndescription: Look it up.\n---\n",
    )
    for name in ("work/.transcripts/transcript_1.jsonl", "work/.team/config.json", "work/.team/inbox/a.jsonl",
        "work/report.md", "mcp_servers.json", "odd/file.txt"):  # fmt: skip
        marks.file(home / name, home)
    check(marks, home, tmp_path)
