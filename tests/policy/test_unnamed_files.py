"""What a small model may change without a question: what is new, and what the person named."""

from __future__ import annotations

from typing import Literal

import msgspec
import pytest

from deskhand.policy.unnamed_files import find_unnamed_change
from deskhand.types.intended_loss import is_file_mentioned

FILES = {"todo.md", "config.ini", "temp.log", "docs/letter.txt", "docs/temp.log", "report_old.md"}
FOLDERS = {"docs", "src"}


def kind(path: str) -> Literal["", "file", "folder"]:
    return "file" if path in FILES else "folder" if path.rstrip("/") in FOLDERS else ""


def shell(command: str, said: str) -> str:
    return find_unnamed_change("shell", msgspec.json.encode({"command": command}), said, kind)


@pytest.mark.parametrize(
    ("path", "said", "is_named"),
    [
        ("todo.md", "append 'call mum' to todo.md", True),
        ("todo.md", "add it to my todo list", True),
        ("todo.md", "add it to my TODOs", True),
        ("docs/letter.txt", "shorten the letter", True),
        ("report_old.md", "delete the old report", False),
        ("report_old.md", "delete report old", True),
        ("config.ini", "rename the file", False),
        ("src", "remove the src folder", True),
        ("a.txt", "delete that", False),
    ],
)
def test_named(path: str, said: str, is_named: bool) -> None:
    assert is_file_mentioned(path, said) is is_named


@pytest.mark.parametrize(
    ("command", "said", "changed"),
    [
        ("mv config.ini settings.ini", "rename the file", "config.ini"),
        ("mv config.ini settings.ini", "rename config.ini to settings.ini", ""),
        ("mv temp.log docs/", "move temp.log into the docs folder", ""),
        ("mv report_old.md temp.log", "rename report_old.md", "temp.log"),
        ("cp todo.md backup.md", "make a backup", ""),
        ("cp todo.md config.ini", "copy todo.md", "config.ini"),
        ("cp temp.log docs", "copy it", "docs/temp.log"),
        ("rm -rf docs", "delete that", "docs"),
        ("rm *.log", "delete the logs", "*.log"),
        ("wc -l todo.md && cat config.ini | grep port", "how long is it?", ""),
        ("echo hello > todo.md", "say hello", "todo.md"),
        ("echo hello >> new.md 2> /dev/null", "say hello", ""),
        ("sed -i s/a/b/ config.ini", "change a to b", "config.ini"),
        ("sed s/a/b/ config.ini", "show me", ""),
        ("ls; rm temp.log", "clean up", "temp.log"),
        ("echo a#b; rm temp.log", "clean up", "temp.log"),
        ("ls |& tee temp.log", "clean up", "temp.log"),
        ("cd docs && rm letter.txt", "delete it", "letter.txt"),
        ("find . -name '*.log' -delete", "clean up", "*"),
        ("LANG=C sudo rm temp.log", "clean up", "temp.log"),
        ("truncate -s 0 $FILE", "empty it", "$FILE"),
        ("echo 'unclosed", "x", "echo 'unclosed"),
        ("python3 src/hello.py", "run it", ""),
    ],
)
def test_shell(command: str, said: str, changed: str) -> None:
    assert shell(command, said) == changed


@pytest.mark.parametrize(
    ("tool", "path", "said", "changed"),
    [
        ("write_file", "todo.md", "write it down", "todo.md"),
        ("write_file", "new.md", "write it down", ""),
        ("edit_file", "config.ini", "turn debug on in the config", ""),
        ("edit_file", "config.ini", "turn debug on", "config.ini"),
        ("read_file", "config.ini", "what is it?", ""),
    ],
)
def test_files(tool: str, path: str, said: str, changed: str) -> None:
    assert find_unnamed_change(tool, msgspec.json.encode({"path": path}), said, kind) == changed


def test_what_is_no_object_is_left_to_the_tool() -> None:
    assert (
        find_unnamed_change("shell", b'"x', "", kind)
        == find_unnamed_change("shell", b"[]", "", kind)
        == ""
    )


def test_what_is_too_long_to_be_looked_at_counts_as_unnamed() -> None:
    assert shell("rm todo.md # " + "a" * 20_000, "remove todo.md")
    assert shell("rm " + "todo.md " * 51, "remove todo.md") == "*"
    assert shell("rm todo.md", "a " * 5_000 + "todo.md") == "todo.md"
    assert shell("sudo " * 3_000 + "rm todo.md", "hello") == "todo.md"
