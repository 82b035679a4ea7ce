"""Whatever a server answers, each part of it and each file that is kept of it is its word."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import anyio
import mcp_types
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deskhand.mcp.results import make_tool_result
from deskhand.testing.temporary_home import TemporaryHome
from deskhand.tools.base import Context, Done
from deskhand.types.identity import Address, Principal
from deskhand.types.labels import Label
from deskhand.types.messages import File, Image

LABEL = Label("untrusted", None, "mcp:test")
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)
_texts = st.text(max_size=60) | st.just("x" * 40_000)
_data = st.binary(max_size=40).map(lambda each: base64.b64encode(each).decode())
_data |= st.sampled_from([PIXEL, "%", ""])
_mimes = st.sampled_from(["image/png", "text/plain", "", "application/x\n"])
_blocks: st.SearchStrategy[dict[str, Any]] = st.one_of(
    _texts.map(lambda text: {"type": "text", "text": text}),
    st.builds(lambda d, m: {"type": "image", "data": d, "mimeType": m}, _data, _mimes),
    st.builds(lambda d, m: {"type": "audio", "data": d, "mimeType": m}, _data, _mimes),
    _texts.map(lambda name: {"type": "resource_link", "uri": "a://b", "name": name}),
    _texts.map(lambda text: {"type": "resource", "resource": {"uri": "a://b", "text": text}}),
    _data.map(lambda data: {"type": "resource", "resource": {"uri": "a://b", "blob": data}}),
)
_answers = st.builds(
    lambda content, failed, more: mcp_types.CallToolResult.model_validate(
        {"content": content, "isError": failed, "structuredContent": more}
    ),
    st.lists(_blocks, max_size=5),
    st.booleans(),
    st.none() | st.dictionaries(st.text(max_size=5), _texts, max_size=2),
)


async def result(home: Path, answer: mcp_types.CallToolResult) -> Done:
    desk = TemporaryHome(home)
    async with desk.running() as app:
        context = Context(
            session="default/terminal:1",
            principal=Principal("ann"),
            address=Address("terminal", chat="1"),
            agent="default",
            reach=await app.current.agent("default").workspace.open_scope(),
            clock=app.parts.clock,
            ids=app.parts.ids,
            key="k",
        )
        return await make_tool_result(answer, context, LABEL)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(answer=_answers)
def test_each_part_and_each_kept_file_has_the_label(
    tmp_path: Path, answer: mcp_types.CallToolResult
) -> None:
    done = anyio.run(result, tmp_path, answer)
    assert done.parts and all(getattr(part, "label", None) == LABEL for part in done.parts)
    kept = {part.blob for part in done.parts if isinstance(part, Image | File)}
    marked = str([row.args for row in done.changes])
    assert all(blob in marked for blob in kept)
    assert (done.status == "error") == answer.is_error
