"""The page about the API says what the table says."""

from __future__ import annotations

import re
from pathlib import Path

from starlette.routing import Match, Route

from deskhand.web.endpoints import ENDPOINTS, SOCKETS

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
ROW = re.compile(
    r"^\| `(?:(GET|POST|PUT|PATCH|DELETE) )?(/[^`]*)` \| (\w+) \| (.*) \|$", re.MULTILINE
)


def test_every_address_is_there_with_its_scope() -> None:
    rows = {
        (method or "WS", path): (needs, said) for method, path, needs, said in ROW.findall(PAGE)
    }
    table: dict[tuple[str, str], tuple[str, str]] = {
        ("WS", each.path): (each.needs, each.summary) for each in SOCKETS
    }
    for each in ENDPOINTS:
        table[each.method, each.path.replace(":path}", "}")] = (each.needs, each.summary)
    assert rows == table
    assert len(ROW.findall(PAGE)) == len(table), "a row stands twice"


def test_every_command_in_it_is_an_address() -> None:
    commands = re.findall(r"^curl (?:.*\\\n)*.*$", PAGE, re.MULTILINE)
    assert len(commands) >= 7
    for command in commands:
        match = re.search(r"http://127\.0\.0\.1:8000(/[^\s\"?]*)", command)
        assert match is not None, command
        method = (
            "PATCH"
            if "-X PATCH" in command
            else "POST"
            if "-X POST" in command or " -d " in command
            else "GET"
        )
        scope = {"type": "http", "method": method, "path": match[1]}
        routes = [
            Route(each.path, lambda request: None, methods=[each.method]) for each in ENDPOINTS
        ]
        assert any(route.matches(scope)[0] is Match.FULL for route in routes), command
