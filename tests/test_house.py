"""The rules of docs/style.md that a machine can check."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

from deskhand.config.statements import PACKAGES

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "deskhand"
FILES = sorted(SOURCE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
VAGUE = ("manager", "helper", "util", "service", "common", "misc")


def test_names_say_what_a_thing_is() -> None:
    """And not its role: a manager, a helper."""
    vague = [str(path) for path in FILES + TESTS if any(word in path.stem for word in VAGUE)]
    for path in FILES + TESTS:
        nodes = ast.walk(ast.parse(path.read_text()))
        names = [node.name for node in nodes if isinstance(node, ast.ClassDef)]
        vague += [name for name in names if name.lower().rstrip("s").endswith(VAGUE)]
    assert vague == []


def test_broad_excepts_stand_in_eight_kinds_of_places() -> None:
    broad = {
        path.relative_to(SOURCE).as_posix()
        for path in FILES
        if "except Exception" in path.read_text()
    }
    allowed = {
        "agent/ask_model.py",  # a model call
        "models/side_completion.py",  # a model call
        "tools/attempt.py",  # a tool run
        "supervision/restart_with_backoff.py",  # a supervised child
        "gateway/dispatch.py",  # a supervised child
        "gateway/outbox.py",  # a send
        "gateway/publisher.py",  # a listener
        "runtime/worker.py",  # a supervised child
        "jobs/runs.py",  # a supervised child
        "assembly/judge.py",  # a call that cannot be judged is asked about
        "assembly/plugins.py",  # a plugin
        "tools/hooks.py",  # and its handlers
        "store/writer.py",  # handed to the caller, who raises it
    }
    assert broad <= allowed


def test_each_room_with_statements_is_read() -> None:
    """They are listed, as to look for them imports every room; the store has its own."""
    rooms = {path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.sql")} - {"store"}
    assert rooms == set(PACKAGES)


def test_fewer_than_five_mocks_per_hundred_tests() -> None:
    mocks = tests = 0
    for path in TESTS:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(
                "test_"
            ):
                tests += 1
            elif isinstance(node, ast.Name | ast.Attribute):
                name = node.id if isinstance(node, ast.Name) else node.attr
                mocks += name in {"Mock", "MagicMock", "AsyncMock", "patch", "setattr"}
    assert tests > 0
    assert mocks / tests < 0.05


def test_folders_are_made_for_their_owner_alone() -> None:
    """`mkdir(parents=True, mode=…)` gives its mode to the last folder only: `make_private` to
    all."""
    own = ("testing/", "tools/program/inside/")
    found = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if "mkdir(parents=True" in path.read_text()
        and not str(path.relative_to(SOURCE)).startswith(own)
    ]
    assert found == []


def test_importing_does_nothing() -> None:
    """Every module is imported with sockets, processes, threads and writing closed."""
    names = [
        ".".join(("deskhand", *path.relative_to(SOURCE).with_suffix("").parts)) for path in FILES
    ]
    wanted = [
        name.removesuffix(".__init__")
        for name in names
        if not name.startswith("deskhand.models.local")
    ]
    script = """
import sys
def audit(event, args):
    if event in ("socket.connect", "socket.bind", "subprocess.Popen", "os.mkdir", "_thread.start_new_thread"):
        raise RuntimeError(f"{event} while importing")
    if event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"):
        raise RuntimeError(f"writing {args[0]} while importing")
sys.dont_write_bytecode = True
sys.addaudithook(audit)
for name in sys.argv[1:]:
    __import__(name)
"""  # noqa: E501
    done = subprocess.run(
        [sys.executable, "-c", script, *wanted], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_core_stays_light() -> None:
    """At most 30 distributions without extras."""
    pinned = (ROOT / "requirements" / "core.txt").read_text().splitlines()
    assert sum("==" in line for line in pinned) <= 30


def test_every_dependency_has_an_upper_bound() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = [
        project["project"]["dependencies"],
        *project["project"]["optional-dependencies"].values(),
    ]
    assert all("<" in requirement for group in groups for requirement in group)


def test_slow_tests_exist() -> None:
    """One that was renamed would run with the quick ones, and nobody would know."""
    there = {
        f"{path.relative_to(ROOT / 'tests').as_posix()}::{node.name}"
        for path in TESTS
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {*(ROOT / "tests" / "slow.txt").read_text().split()} <= there
