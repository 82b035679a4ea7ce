"""What the pages tell people to type exists, and what they point to is there."""

from __future__ import annotations

import ast
import re
import runpy
from collections import defaultdict
from pathlib import Path

import click
import pytest

from deskhand.cli.root import cli
from deskhand.web.endpoints import ENDPOINTS, SOCKETS

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(r"(?:^|[|&(] ?|\$ )(?:\.venv/bin/)?deskhand\b([^|`#]*)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
DECISION = re.compile(r"20\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01]) \*\*[^*]+\*\*")
MAX_DECISION_WORDS = 120
ROUTE = re.compile(
    r"(?:`(?:(GET|POST|PATCH|PUT|DELETE) "
    r")?|127\.0\.0\.1:8000)(/(?:api|v1|ws)/[^`?\s\"]*|/health|/openapi\.json)"
)


def typed(page: Path) -> list[list[str]]:
    """The words behind each `deskhand` that a person is told to type."""
    text = page.read_text()
    lines = [
        line
        for kind, block in FENCED.findall(text)
        if kind in ("", "sh", "console")
        for line in block.split("\n")
    ]
    lines += [span.replace("\n", " ") for span in SPAN.findall(FENCED.sub("", text))]
    found = [match[1] for line in lines for match in COMMAND.finditer(line.strip())]
    return [re.split(r"  +|\.\.\.|…|;", words)[0].split() for words in found]


def wrong(words: list[str]) -> str:
    """Which of these words mean nothing."""
    command: click.Command = cli
    context = click.Context(command, info_name="deskhand", **command.context_settings)
    for word in words[: words.index("--")] if "--" in words else words:
        if word.startswith("-"):
            known = {
                name
                for each in command.get_params(context)
                for name in (*each.opts, *each.secondary_opts)
            }
            if word.partition("=")[0] not in known:
                return word
        elif isinstance(command, click.Group) and word[0].islower():
            name, inner, _ = command.resolve_command(context, [word])
            if inner is None:
                return word
            command = inner
            context = click.Context(inner, parent=context, info_name=name)
    return ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_exists(page: Path) -> None:
    for words in typed(page):
        try:
            assert wrong(words) == "", f"deskhand {' '.join(words)}"
        except click.UsageError as error:
            raise AssertionError(f"deskhand {' '.join(words)}: {error.format_message()}") from error


def test_commands_are_found_where_they_stand() -> None:
    """Whoever writes them otherwise would not be checked."""
    assert ["pair", "approve", "K7TQ2MXB", "--user", "gavin", "--role", "approver"] in typed(
        ROOT / "docs/people.md"
    )
    assert ["service", "install"] in typed(ROOT / "docs/serve.md")
    assert (
        wrong(["pair", "approve", "--usre"]) == "--usre"
        and wrong(["service", "install", "--print"]) == ""
    )
    with pytest.raises(click.UsageError):
        wrong(["sevrice"])


def test_the_recording_types_commands_that_exist() -> None:
    """It is that of the script, and small and soon over, as everybody who opens the README loads
    it."""
    recording = (ROOT / "docs/screenshots/terminal.svg").read_text()
    script = (ROOT / "scripts/record_terminal.py").read_text()
    listed = re.search(r"^COMMANDS = (\(.*?\))$", script, re.MULTILINE | re.DOTALL)
    assert listed is not None
    commands = ast.literal_eval(listed[1])
    assert commands
    for command in commands:
        assert f">$ {command}</text>" in recording
        assert wrong(command.split()[1:]) == ""
    lasts_s = re.search(r"animation:([\d.]+)s", recording)
    assert lasts_s is not None and float(lasts_s[1]) <= 20
    assert len(recording.encode()) <= 150_000
    assert "<script" not in recording


def test_the_readme_counts_the_packages_of_the_core() -> None:
    locked = re.findall(r"^[a-z].*?==", (ROOT / "requirements/core.txt").read_text(), re.MULTILINE)
    assert f"a core of {len(locked)} packages" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    targets = [
        target.partition("#")[0] for target in LINK.findall(FENCED.sub("", page.read_text()))
    ]
    assert [
        target for target in targets if "://" not in target and not (page.parent / target).exists()
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_route_exists(page: Path) -> None:
    for method, path in ROUTE.findall(page.read_text()):
        told = re.sub(r"\{\w+(:path)?\}|[A-Z]{2,}", "X", path.rstrip(".,)"))
        routes = [(each.method, each.path) for each in ENDPOINTS] + [
            ("GET", each.path) for each in SOCKETS
        ]
        assert any(method in ("", known) and fits(told, route) for known, route in routes), (
            f"{method} {path}"
        )


def fits(told: str, route: str) -> bool:
    pattern = re.sub(
        r"\\{\w+(:path)?\\}", lambda match: ".+" if match[1] else "[^/]+", re.escape(route)
    )
    return re.fullmatch(pattern.replace("\\:path", ""), told) is not None


def test_every_room_stands_in_the_table() -> None:
    table = (ROOT / "docs/architecture.md").read_text()
    rooms = [
        folder.name
        for folder in (ROOT / "src/deskhand").iterdir()
        if (folder / "__init__.py").exists()
    ]
    told = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", table, re.MULTILINE)
    assert sorted(name for name, _ in told) == sorted(rooms)
    for room, begin in told:
        for file in re.findall(r"`(\w+\.\w+)`", begin):
            assert (ROOT / "src/deskhand" / room / file).exists(), f"{room}/{file}"


def defined() -> dict[str, set[str]]:
    """`name`, `Class` and `Class.method` -> the files below src/deskhand that define it."""
    found = defaultdict(set)
    source = ROOT / "src/deskhand"
    for path in source.rglob("*.py"):
        file = path.relative_to(source).as_posix()
        for node in ast.parse(path.read_text()).body:
            match node:
                case ast.ClassDef():
                    found[node.name].add(file)
                    for inner in node.body:
                        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                            found[f"{node.name}.{inner.name}"].add(file)
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    found[node.name].add(file)
                case ast.Assign(targets=[ast.Name(id=name)]):
                    found[name].add(file)
    return found


def test_what_the_architecture_names_exists() -> None:
    """Each `room/file.py`, and each `function()` and `Class`: where a cell names a file and then a
    name, in that file."""
    page = (ROOT / "docs/architecture.md").read_text()
    source = ROOT / "src/deskhand"
    names = defined()
    quoted = SPAN.findall(page)
    files = [span for span in quoted if re.fullmatch(r"\w+(/\w+)*/(\w+\.\w+)?", span)]
    assert [file for file in files if file != "triggers/" and not (source / file).exists()] == []
    told = [
        span.removesuffix("()")
        for span in quoted
        if re.fullmatch(r"\w+(\.\w+)?\(\)|[A-Z]\w+", span)
    ]
    assert len(files) > 15 and len(told) > 15
    assert [name for name in told if name not in names] == []
    placed = re.findall(r"`(\w+/\w+\.py)`: `([\w.]+)\(\)`", page)
    assert len(placed) >= 6
    assert [(file, name) for file, name in placed if file not in names[name]] == []


def wrong_decisions(page: str) -> list[str]:
    """The entries that do not begin with a day and a title, or are longer than a paragraph."""
    entries = [
        " ".join(entry.split())
        for entry in page.partition("\n## ")[2].split("\n\n")[1:]
        if not entry.startswith("## ")
    ]
    return [
        entry
        for entry in entries
        if not DECISION.match(entry) or len(entry.split()) > MAX_DECISION_WORDS
    ]


def test_each_decision_has_a_date_and_is_a_paragraph() -> None:
    page = (ROOT / "docs/decisions.md").read_text()
    assert len(re.findall(r"^\d{4}-\d\d-\d\d \*\*", page, re.MULTILINE)) > 150
    assert wrong_decisions(page) == []


@pytest.mark.parametrize(
    "entry",
    [
        "**No day.** Because.",
        "2026-13-01 **No such month.** Because.",
        "2026-11-21 No title.",
        "2026-11-21 **A paragraph.** " + "Because. " * MAX_DECISION_WORDS,
        "What goes on in a second paragraph.",
    ],
)
def test_what_is_no_decision_is_found(entry: str) -> None:
    page = f"# Decisions\n\n## store\n\n2026-11-21 **One log.** Two\nwould diverge.\n\n{entry}"
    assert wrong_decisions(page) == [" ".join(entry.split())]


def wrong_expectations(page: str) -> list[str]:
    """The rows that link no picture, or one that is not there, or that end with another verdict."""
    rows = page.partition("|---")[2].splitlines()[1:]
    return [
        row
        for row in rows
        if (cells := [cell.strip() for cell in row.strip("|").split(" | ")])
        and (
            len(cells) != 5
            or cells[4] not in ("`ahead`", "`level`", "`below`")
            or (picture := re.fullmatch(r"\[picture\]\((expectations/[\w-]+\.png)\)", cells[3]))
            is None
            or not (ROOT / "docs" / picture[1]).exists()
        )
    ]


def test_what_people_expect_is_shown_and_judged() -> None:
    """A row for each state that the script reaches, with its picture."""
    page = (ROOT / "docs/expectations.md").read_text()
    assert wrong_expectations(page) == []
    scripts = "\n".join(each.read_text() for each in (ROOT / "scripts/expected").glob("*.py"))
    reached = re.findall(r"^@row\(.*\)\ndef (\w+)", scripts, re.MULTILINE)
    shown = re.findall(r"\(expectations/([\w-]+)\.png\)", page)
    assert sorted(shown) == sorted(name.replace("_", "-") for name in reached)
    assert len(shown) == 42
    kept = {each.stem for each in (ROOT / "docs/expectations").iterdir()}
    assert kept == set(shown)


@pytest.mark.parametrize(
    ("picture", "verdict"),
    [
        ("[picture](expectations/nowhere.png)", "`level`"),
        ("none", "`level`"),
        ("[picture](expectations/start.png)", "best"),
    ],
)
def test_a_row_without_picture_or_verdict_is_found(picture: str, verdict: str) -> None:
    row = f"| a | b | c | {picture} | {verdict} |"
    good = "| a | b | c | [picture](expectations/start.png) | `level` |"
    assert wrong_expectations(f"|---|---|\n{good}\n{row}\n") == [row]


def test_generated_pages_are_up_to_date() -> None:
    script = runpy.run_path(str(ROOT / "scripts/make_references.py"))
    for name, make in script["PAGES"].items():
        assert (ROOT / "docs" / name).read_text() == make(), "run `make references`"
