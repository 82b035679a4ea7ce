"""All wires keep what every Model keeps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from deskhand.models.base import Model
from deskhand.models.transport import Transport, TransportLimits
from deskhand.testing import model_suite
from deskhand.testing.llm import FakeLLM
from deskhand.testing.llm_script import Behaviour
from deskhand.testing.model_suite import Check, ModelScenario

from .tools import WIRES, open_wire


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("check", model_suite.CHECKS, ids=lambda check: check.__name__)
async def test_conformance(check: Check, wire: str) -> None:
    @asynccontextmanager
    async def opened(scenario: ModelScenario) -> AsyncIterator[Model]:
        async with FakeLLM() as fake, Transport(TransportLimits()) as transport:
            fake.script(
                Behaviour(
                    text=scenario.text,
                    thinking=scenario.thinking,
                    calls=scenario.calls,
                    finish="length" if scenario.finish == "length" else "",
                    fault="hang_mid" if scenario.hangs else "reset" if scenario.fails else "",
                )
            )
            yield open_wire(wire, transport, fake.url)

    await check(opened)
