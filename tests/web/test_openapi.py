"""The published description against the server: generated requests, with a fixed seed, and every
check there is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import schemathesis
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, Phase, given, seed, settings, strategies
from schemathesis.config import (
    ChecksConfig,
    GenerationConfig,
    PositiveDataAcceptanceConfig,
    ProjectConfig,
    ProjectsConfig,
    SchemathesisConfig,
)
from schemathesis.generation import GenerationMode

from deskhand.config.clock import SystemClock
from deskhand.web.endpoints import ENDPOINTS
from deskhand.web.openapi import build_document
from deskhand.web.routing import Nothing

from .served import Served, serving

EXAMPLES = 6
LEFT_OUT = {
    "GET /api/sessions/{name}/events": "it never ends",
    "GET /api/watch": "it never ends",
    "POST /api/logout": "it would end the credential of the test",
    "POST /api/setup/model": "it fetches a model from the network",
    "POST /api/setup/key": "it asks a provider in the network",
    "POST /api/setup/probe": "it asks a provider in the network",
    "POST /api/setup/channel": "it asks the platform",
    "GET /api/setup/checks": "it opens the sandbox, which takes seconds",
}
TRIED = [endpoint for endpoint in ENDPOINTS if endpoint.name not in LEFT_OUT]


class Hurried(SystemClock):
    """Its minutes are short, so that the wrong tokens of one check are forgiven before the next."""

    def monotonic(self) -> float:
        return super().monotonic() * 100_000


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home: Path = tmp_path_factory.mktemp("home")
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(serving(home, clock=Hurried())) as served,
    ):
        yield served


@pytest.fixture(scope="module")
def schema(running: Served) -> Any:
    token = running.owner.headers["authorization"]
    # What fits the schema may still be refused: a role that does not exist, a path that leads out.
    accepted = PositiveDataAcceptanceConfig(
        expected_statuses=["2xx", "400", "401", "403", "404", "409", "413", "415"]
    )
    project = ProjectConfig(
        base_url=running.url,
        headers={"Authorization": token},
        request_timeout=20,
        checks=ChecksConfig(positive_data_acceptance=accepted),
        generation=GenerationConfig(deterministic=True, database="none"),
    )
    config = SchemathesisConfig(projects=ProjectsConfig(default=project))
    return schemathesis.openapi.from_dict(build_document(ENDPOINTS, "1"), config=config)


@pytest.mark.parametrize("endpoint", TRIED, ids=lambda endpoint: endpoint.name)
def test_generated_requests(schema: Any, running: Served, endpoint: Any) -> None:
    path = endpoint.path.replace(":path}", "}")
    operation = schema[path][endpoint.method]

    cases = operation.as_strategy()
    if not endpoint.raw and (
        endpoint.parameters or endpoint.query is not Nothing or endpoint.body is not None
    ):
        cases = strategies.one_of(cases, operation.as_strategy(GenerationMode.NEGATIVE))

    @seed(7)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def holds(case: Any) -> None:
        case.call_and_validate()

    holds()


async def test_the_document_is_served_and_says_all(served: Served) -> None:
    found = await served.client().get("/openapi.json")
    assert found["openapi"] == "3.1.0"
    said = {
        (method.upper(), path)
        for path, operations in found["paths"].items()
        for method in operations
    }
    assert said == {(each.method, each.path.replace(":path}", "}")) for each in ENDPOINTS}
    ids = [
        operation["operationId"]
        for operations in found["paths"].values()
        for operation in operations.values()
    ]
    assert len(ids) == len(set(ids))
    for operations in found["paths"].values():
        for operation in operations.values():
            assert {"400", "401", "403", "404", "421", "429", "500", "503"} <= set(
                operation["responses"]
            )
            assert "security" in operation
    text = msgspec.json.encode(found).decode()
    refs = {each.partition('"')[0] for each in text.split('"#/components/schemas/')[1:]}
    assert refs <= set(found["components"]["schemas"])
