"""The rules of docs/style.md that a machine can check."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Container, Iterator
from pathlib import Path

from deskhand.config.statements import PACKAGES
from deskhand.store.sql import load_sql

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "deskhand"
PROGRAMS = SOURCE / "skills" / "bundled"  # of skills: they are run, and not imported
FILES = sorted(each for each in SOURCE.rglob("*.py") if not each.is_relative_to(PROGRAMS))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
VAGUE = ("manager", "helper", "util", "service", "common", "misc")


def test_names_say_what_a_thing_is() -> None:
    """And not its role: a manager, a helper."""
    vague = [str(path) for path in FILES + TESTS if any(word in path.stem for word in VAGUE)]
    for path in FILES + TESTS:
        names = re.findall(r"^\s*class (\w+)", path.read_text(), re.MULTILINE)
        vague += [name for name in names if name.lower().rstrip("s").endswith(VAGUE)]
    assert vague == []


def test_broad_excepts_stand_in_nine_kinds_of_places() -> None:
    broad = {
        path.relative_to(SOURCE).as_posix()
        for path in FILES
        if "except Exception" in path.read_text()
    }
    allowed = {
        "agent/ask_model.py",  # a model call
        "models/side_completion.py",  # a model call
        "tools/execute_tool.py",  # a tool run
        "supervision/restart_with_backoff.py",  # a supervised child
        "gateway/dispatch.py",  # a supervised child
        "gateway/outbox.py",  # a send
        "gateway/publisher.py",  # a listener
        "runtime/worker.py",  # a supervised child
        "jobs/runs.py",  # a supervised child
        "mcp/servers.py",  # a supervised child
        "assembly/judge.py",  # a call that cannot be judged is asked about
        "assembly/plugins.py",  # a plugin
        "customtools/inside/main.py",  # somebody else's code, in the sandbox
        "tools/hooks.py",  # and its handlers
        "store/writer.py",  # handed to the caller, who raises it
    }
    assert broad <= allowed


def test_each_room_with_statements_is_read() -> None:
    """They are listed, as to look for them imports every room; the store has its own."""
    rooms = {path.relative_to(SOURCE).parts[0] for path in SOURCE.rglob("*.sql")} - {"store"}
    assert rooms == set(PACKAGES)


QUERY_MODULES = (
    "assembly/queries.py",
    "budgets/queries.py",
    "deepwork/queries.py",
    "gateway/queries.py",
    "importers/ledger.py",
    "jobs/ledger.py",
    "jobs/triggers/queries.py",
    "learning/proposals/queries.py",
    "mcp/queries.py",
    "memory/facts.py",
    "memory/queries.py",
    "secrets/queries.py",
    "store/branches.py",
    "store/projections.py",
    "store/queries.py",
    "store/read_queries.py",
    "store/sql_store.py",
    "store/sqlite.py",
    "subagents/queries.py",
    "teams/queries.py",
    "supervision/queries.py",
    "testing/tools.py",
    "tools/journal.py",
    "tools/queries.py",
    "tools/review.py",
    "users/queries.py",
    "webpush/queries.py",
    "workspace/queries.py",
)
"""Where statements are run: in the room whose `.sql` file has them. Others call typed functions."""


DATABASE_MODULES = (
    "store/connection.py",
    "store/move.py",
    "store/move_sides.py",
    "store/postgres.py",
    "store/postgres_schema.py",
)
"""What knows of rows and tables, and of no statement of another room."""


def _find_statements() -> dict[str, str]:
    """The room of each statement. No two have one name, or one text."""
    found: dict[str, str] = {}
    texts: dict[str, str] = {}
    for path in SOURCE.rglob("*.sql"):
        if path.parent.name == "migrations":
            continue
        package = ".".join(("deskhand", *path.parent.relative_to(SOURCE).parts))
        room = path.relative_to(SOURCE).parts[0]
        for name, text in load_sql(package, path.name).items():
            assert name not in found, f"two statements are called {name}"
            found[name] = room
            same = texts.setdefault(" ".join(text.split()), name)
            assert same == name, f"{same} and {name} are one statement"
    return found


def _named_statements(tree: ast.AST, names: Container[str]) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names:
            yield node.lineno, node.value


def _statement_runs(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Where statements are run, or handed to who runs them, however their names are made."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if (name := _last_name(node.func)) in ("Change", "query", "query_sync"):
                yield node.lineno, f"{name}()"
            given = [*node.args, *(each.value for each in node.keywords)]
            yield from ((each.lineno, "Change") for each in given if _last_name(each) == "Change")
        elif isinstance(node, ast.Attribute):
            is_reader = _last_name(node.value).endswith(("store", "reader"))
            if node.attr == "query_sync" or (node.attr == "query" and is_reader):
                yield node.lineno, f".{node.attr}"
        elif isinstance(node, ast.ImportFrom):
            for each in node.names:
                if (each.name == "Change" and each.asname) or (
                    each.name == "Row" and str(node.module).endswith("store.base")
                ):
                    yield node.lineno, f"import of {each.name}"


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def test_statements_are_named_and_run_in_query_modules() -> None:
    """Everywhere else the typed functions of these modules are called, so that nobody has to know
    the columns of a statement. Tests may ask the database what they like."""
    statements = _find_statements()
    unnamed = set(statements)
    found = []
    others = [path for name in ("bench", "scripts") for path in (ROOT / name).rglob("*.py")]
    for path in [*FILES, *sorted(others)]:
        place = path.relative_to(SOURCE if path.is_relative_to(SOURCE) else ROOT).as_posix()
        tree = ast.parse(path.read_text())
        if place in DATABASE_MODULES:
            continue
        if place not in QUERY_MODULES:
            uses = {*_named_statements(tree, statements), *_statement_runs(tree)}
            found += [f"{place}:{line}: {use}" for line, use in sorted(uses)]
            continue
        named = list(_named_statements(tree, statements))
        unnamed -= {name for _, name in named}
        found += [
            f"{place}:{line}: {name} is a statement of {statements[name]}"
            for line, name in named
            if statements[name] != place.partition("/")[0]
        ]
    assert found == []
    assert unnamed == set(), "statements that nobody runs"


def test_query_modules_return_typed_values() -> None:
    """A public function of theirs takes no name of a statement and returns no row of the
    database."""
    found = []
    for place in QUERY_MODULES:
        for node in ast.parse((SOURCE / place).read_text()).body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            arguments = node.args
            names = {
                each.arg
                for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            }
            returned = ast.unparse(node.returns) if node.returns else ""
            words = set(re.findall(r"\w+", returned))
            if not node.name.startswith("_") and ("statement" in names or words & {"Any", "Row"}):
                found.append(f"{place}:{node.lineno}: {node.name}")
    assert found == []


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
    own = ("testing/", "tools/program/inside/", "skills/archive.py")
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


def test_the_bench_knows_what_it_calls() -> None:
    """Nothing else runs it: a name that was changed would show at the next measurement."""
    script = "import bench, memory, page"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT / "bench",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
