"""What Prometheus reads."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import aiohttp
import anyio
import pytest
from prometheus_client.parser import text_string_to_metric_families

from deskhand.store.queries import last_event_number

from .served import Client, Served

DASHBOARD = Path(__file__).parents[2] / "docs" / "grafana.json"


async def scrape(client: Client) -> tuple[int, str, str]:
    async with client.http.get(f"{client.url}/metrics", headers=client.headers) as answer:
        return answer.status, answer.headers["content-type"], await answer.text()


async def last_event(served: Served) -> int:
    return await last_event_number(served.app.store, "default/web:owner:one")


async def test_the_state_of_the_house_in_numbers(served: Served) -> None:
    status, _ = await served.owner.ask("POST", "/api/sessions/one/messages", {"text": "hello"})
    assert status == 202
    with anyio.fail_after(20):
        while await served.app.store.open_sessions() or await last_event(served) < 3:
            await anyio.sleep(0.01)
    status, kind, text = await scrape(served.owner)
    assert status == 200 and kind.startswith("text/plain; version=0.0.4")
    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["deskhand_sessions",] == 1 and found["deskhand_open_sessions",] == 0
    assert found["deskhand_events_total",] >= 3
    assert found["deskhand_part_up", ("part", "store")] == 1
    model = ("model", "scripted/echo")
    assert found["deskhand_model_calls_total", model] == 1
    assert found["deskhand_model_tokens_total", ("kind", "output"), model] > 0
    assert found["deskhand_database_bytes",] > 0 and found["process_resident_memory_bytes",] > 0


async def test_the_dashboard_shows_what_there_is(served: Served) -> None:
    _, _, text = await scrape(served.owner)
    names = set(re.findall(r"\b(?:deskhand|process)_\w+", DASHBOARD.read_text()))
    assert len(names) > 10
    assert [name for name in names if f"# TYPE {name.removesuffix('_total')}" not in text] == []


async def test_it_is_for_owners(served: Served) -> None:
    async with aiohttp.ClientSession() as http, http.get(f"{served.url}/metrics") as answer:
        assert answer.status == 401
    await served.people.add_user("ann", "member")
    _, member = await served.token("ann")
    assert (await scrape(member))[0] == 403


async def test_without_the_extra_it_says_what_to_install(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "deskhand.runtime.metrics", None)
    status, _, text = await scrape(served.owner)
    assert status == 501 and "deskhand[metrics]" in text
