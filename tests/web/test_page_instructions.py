"""A model on the page is told what is drawn there, and a small one is not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from deskhand.models.base import Request
from deskhand.testing.scripted import ScriptedModel, say
from deskhand.types.messages import Message
from deskhand.web.page_instructions import DRAWN

from .served import serving


@pytest.mark.parametrize(("model", "told"), [("fake/large", True), ("embedded/small", False)])
async def test_who_is_told(tmp_path: Path, model: str, told: bool) -> None:
    asked: list[Request] = []

    def script(request: Request) -> Message:
        asked.append(request)
        return say("Very well.")

    defaults = {"models": [model], "titles": False}
    async with serving(tmp_path, ScriptedModel(script), defaults=defaults) as served:
        status, _ = await served.owner.ask("POST", "/api/chat/talk", {"message": "hello"})
        assert status == 200
        assert (DRAWN in str(asked[-1].system)) is told


def test_its_example_is_a_chart() -> None:
    example = re.search(r"\{.*\}", DRAWN)
    assert example is not None
    chart = json.loads(example[0])
    assert len(chart["labels"]) == len(chart["series"][0]["values"])
