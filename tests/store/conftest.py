"""A PostgreSQL server for the tests of a module, and an empty schema in it for each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from deskhand.testing.postgres import PostgresServer, open_schema, running_server


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def url(server: PostgresServer) -> Iterator[str]:
    with open_schema(server) as url:
        yield url
