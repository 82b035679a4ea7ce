"""The command line as people run it: processes of their own, with nothing else running, and beside
what runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from deskhand.store.schema import connect

DESKHAND = (sys.executable, "-m", "deskhand")


class Shell:
    """Runs `deskhand` in a home, as from a shell."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = {
            "PATH": os.environ["PATH"],
            "DESKHAND_HOME": str(home),
            "HOME": str(home.parent),
        }

    def __call__(self, *args: str, code: int = 0, **env: str) -> str:
        done = subprocess.run(
            [*DESKHAND, *args],
            env=self.env | env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    made = Shell(tmp_path / "home")
    made("init")
    agents = "{main: {steps: 7}, coder: {tools: [read_file, shell]}, wide: {sandbox: false}}"
    config = f"defaults: {{models: [scripted/echo]}}\nagents: {agents}\n"
    (made.home / "deskhand.yaml").write_text(config)
    return made


def test_a_home_is_made_once(shell: Shell) -> None:
    for name in ("logs", "state", "shared", "skills", "jobs", "agents/default/workspace"):
        assert (shell.home / name).is_dir(), name
    assert (shell.home / ".env").stat().st_mode & 0o777 == 0o600
    assert (shell.home / "agents/default/workspace/shared").resolve() == (
        shell.home / "shared"
    ).resolve()
    before = (shell.home / "deskhand.yaml").read_text()
    (shell.home / ".env").write_text("A=1\n")
    shell("init")
    assert (shell.home / "deskhand.yaml").read_text() == before and (
        shell.home / ".env"
    ).read_text() == "A=1\n"


def test_key_values(shell: Shell) -> None:
    shell("values", "set", "cursor", "42", "--ns", "mail")
    assert shell("values", "get", "cursor", "-n", "mail") == "42\n"
    shell("values", "get", "cursor", code=1)
    shell("values", "get", "cursor", "-n", "mail", "--agent", "coder", code=1)
    shell(
        "values", "set", "cursor", "7", "-n", "mail", "--ttl", "0.0000001", DESKHAND_AGENT="coder"
    )
    shell("values", "get", "cursor", "-n", "mail", "-a", "coder", code=1)
    shell("values", "set", "soon", "1", "-n", "mail", "--ttl", "2", "-a", "coder")
    database = connect(shell.home / "state" / "deskhand.db", write=False)
    ((expires_at,),) = database.execute("SELECT expires_at FROM kv WHERE key = 'soon'").fetchall()
    database.close()
    assert 7_000 < float(str(expires_at)) - time.time() <= 7_200
    shell("values", "set", "other", "1", "-n", "mail")
    assert msgspec.json.decode(shell("values", "list", "-n", "mail", "--prefix", "cur")) == {
        "cursor": "42"
    }
    assert msgspec.json.decode(shell("values", "list", "-n", "mail", "-p", "o")) == {"other": "1"}
    shell("values", "delete", "cursor", "-n", "mail")
    shell("values", "get", "cursor", "-n", "mail", code=1)


def test_lists_and_settings(shell: Shell) -> None:
    folder = shell.home / "skills" / "brew"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: brew\ndescription: Makes tea.\n---\nBoil.\n")
    whole = msgspec.json.decode(shell("config"))
    assert (
        whole["agents"]["main"] | {"steps": 7, "models": ["scripted/echo"]}
        == whole["agents"]["main"]
    )
    assert shell("config", "get", "agents.coder.tools") == '["read_file","shell"]\n'
    shell("config", "set", "agents.main.steps", "9")
    assert shell("config", "get", "agents.main.steps") == "9\n"
    shell("config", "unset", "agents.main.steps")
    assert shell("config", "get", "agents.main.steps") == "50\n"
    main = msgspec.json.decode(shell("config"))["agents"]["main"]
    holds = {"tokens": 500_000, "context_ratio": 0.8, "shell_timeout_s": 120.0, "profile": "full"}
    assert main | holds | {"permission_mode": "workspace-free"} == main, (
        "what nobody has set, as it holds"
    )
    agents = shell("agents")
    assert "main" in agents and "coder" in agents and "scripted/echo" in agents
    assert [line.split("\t")[0] for line in shell("tools", "-a", "coder").splitlines()] == [
        "read_file",
        "shell",
    ]
    assert "shell\thost\t" in shell("tools", "-a", "wide"), (
        "whoever reaches everything is asked about"
    )
    assert "brew" in shell("skills") and "Makes tea." in shell("skills")


def test_an_answer_and_its_log(shell: Shell) -> None:
    assert shell("ask", "hello", "-s", "talk") == "You said: hello\n"
    assert shell("ask", "hello", "-a", "coder", "-s", "talk") == "You said: hello\n"
    sessions = shell("sessions", "list")
    lines = sessions.splitlines()
    assert len(lines) == 2 and any(line.startswith("coder/") for line in lines), (
        "of the first agent, and of the named"
    )
    exported = [
        msgspec.json.decode(line) for line in shell("sessions", "export", "talk").splitlines()
    ]
    assert [line["event"]["type"] for line in exported] == [
        "message_received",
        "model_replied",
        "turn_ended",
    ]
    assert [line["n"] for line in exported] == [1, 2, 3]
    log = shell.home / "logs" / "deskhand.log"
    log.write_text("".join(f"line {n}\n" for n in range(90)))
    assert shell("logs").splitlines() == [f"line {n}" for n in range(40, 90)]
    assert shell("logs", "--lines", "2") == "line 88\nline 89\n"


def test_a_conversation_is_taken_along(shell: Shell, tmp_path: Path) -> None:
    """Out as lines of role and content, into another home, once, and gone on with there."""
    shell("ask", "hello", "-s", "talk")
    lines = shell("sessions", "export", "talk", "--format", "jsonl")
    assert [msgspec.json.decode(line)["role"] for line in lines.splitlines()] == [
        "user",
        "assistant",
        "meta",
    ]
    file = tmp_path / "talk.jsonl"
    other = Shell(tmp_path / "other")
    file.write_text(
        lines + '{"role": "user", "content": "and then?"}\n{"role": "system", "content": "x"}\n'
    )
    other("init")
    other("model", "use", "scripted/echo")
    said = other("sessions", "import", str(file))
    assert said.startswith("Imported 3 messages.\n")
    name = said.split("--session ")[1].strip()
    assert name in other("sessions", "list") and "hello" in other("sessions", "list")
    assert other("sessions", "import", str(file)).startswith("This file was imported before.\n")
    assert other("ask", "go on", "-s", name) == "You said: go on\n"
    assert other("sessions", "import", str(file)).startswith("This file was imported before.\n")
    exported = other("sessions", "export", name, "--format", "jsonl")
    assert exported.startswith(lines) and exported.count("\n") == 7
    assert "all valid" in other("audit", "verify")
    file.write_text("no JSON")
    other("sessions", "import", str(file), code=2)


def test_a_cut_off_import_is_gone_on_with(shell: Shell, tmp_path: Path) -> None:
    """As if it had been killed after its second commit."""
    file = tmp_path / "talk.jsonl"
    file.write_text(
        "".join(f'{{"role": "{role}", "content": "w"}}\n' for role in ("user", "assistant") * 5)
    )
    name = shell("sessions", "import", str(file)).split("--session ")[1].strip()
    whole = shell("sessions", "export", name, "--format", "jsonl")
    database = connect(shell.home / "state" / "deskhand.db", write=True)
    database.execute("DELETE FROM event WHERE n > 2").fetchall()
    database.close()
    assert shell("sessions", "import", str(file)).startswith("Imported 10 messages.\n")
    again = shell("sessions", "export", name, "--format", "jsonl")
    assert [msgspec.json.decode(line)["content"] for line in again.splitlines()] == [
        msgspec.json.decode(line)["content"] for line in whole.splitlines()
    ]


def test_who_changes_the_log_is_found(shell: Shell) -> None:
    """One word changed, one row deleted, two swapped, the tail cut: each is found, and the first
    bad row is named."""
    for words in ("one", "two"):
        shell("ask", words, "-s", "talk")
    assert "all valid" in shell("audit", "verify")
    path = shell.home / "state" / "deskhand.db"
    whole = path.read_bytes()
    session = "main/terminal:talk"
    move = "UPDATE event SET n = {} WHERE n = {};".format
    attacks = {
        (
            "UPDATE event SET body = CAST(replace(CAST(body AS TEXT), 'two', 'six') AS BLOB) "
            "WHERE n = 4"
        ): 4,
        "DELETE FROM event WHERE n = 5": 5,
        move(-2, 2) + move(2, 3) + move(3, -2): 2,
        "DELETE FROM event WHERE n > 4": 6,
    }
    for attack, bad in attacks.items():
        path.write_bytes(whole)
        for name in ("-wal", "-shm"):
            path.with_name(path.name + name).unlink(missing_ok=True)
        database = connect(path, write=True)
        database.execute(attack).fetchall()
        database.close()
        assert f"{session}, event {bad}: " in shell("audit", "verify", code=1).splitlines()[0], (
            attack
        )


def test_it_works_beside_one_that_runs(shell: Shell) -> None:
    """While another process holds the driver lock and talks."""
    code = (
        "import fcntl, sys; lock = open(sys.argv[1], 'w'); fcntl.flock(lock, fcntl.LOCK_EX);"
        "print('held', flush=True); sys.stdin.read()"
    )
    argv = [sys.executable, "-c", code, str(shell.home / "state" / "driver.lock")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        shell("values", "set", "a", "b")
        assert shell("values", "get", "a") == "b\n"
        assert "main" in shell("agents")
        shell("audit", "verify")
        asked = subprocess.Popen(
            [*DESKHAND, "ask", "hello"], env=shell.env, stdout=subprocess.PIPE, text=True
        )
        with pytest.raises(subprocess.TimeoutExpired):
            asked.communicate(timeout=2)
        other.communicate("")
        assert asked.communicate(timeout=30)[0] == "You said: hello\n", (
            "it takes over when the other is gone"
        )
