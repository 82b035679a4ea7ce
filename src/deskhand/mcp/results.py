"""What an MCP server has answered, as the result of a call."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

import mcp_types
import msgspec

from ..models.pictures import detect_media_type, read_picture_size
from ..tools.base import Context, Done
from ..tools.documents.invisible_characters import escape_invisible
from ..tools.label_marks import mark_blob
from ..tools.output import make_bounded_result
from ..types.labels import Label
from ..types.messages import File, Image, ResultPart

MAX_FILES = 20
"""So many pictures and files of one answer are kept."""


async def make_tool_result(
    answer: mcp_types.CallToolResult, context: Context, label: Label
) -> Done:
    """The result of a call of a tool: its texts, and its pictures and files as such. Of structured
    content that stands in no text, the JSON."""
    done = await make_content_result(answer.content, context, label, answer)
    return msgspec.structs.replace(done, status="error") if answer.is_error else done


async def make_content_result(
    content: Iterable[mcp_types.ContentBlock],
    context: Context,
    label: Label,
    answer: mcp_types.CallToolResult | None = None,
) -> Done:
    """These pieces as a result."""
    texts: list[str] = []
    files: list[ResultPart] = []
    for block in content:
        text, data, mime = _read_block(block)
        if text:
            texts.append(escape_invisible(text))
        if data and len(files) < MAX_FILES:
            files.append(await _keep(data, mime, context, label))
    if not texts and answer is not None and answer.structured_content is not None:
        texts.append(escape_invisible(msgspec.json.encode(answer.structured_content).decode()))
    if not texts and files:
        texts.append(f"[{len(files)} file{'s' * (len(files) != 1)}]")
    done = await make_bounded_result("\n\n".join(texts), context, label)
    marks = tuple(
        row
        for file in files
        if isinstance(file, Image | File)
        for row in mark_blob(file.blob, label, context)
    )
    return msgspec.structs.replace(
        done, parts=(*done.parts, *files), changes=(*done.changes, *marks)
    )


def _read_block(block: mcp_types.ContentBlock) -> tuple[str, bytes, str]:
    """What it says, what it holds, and of which type that is."""
    match block:
        case mcp_types.TextContent(text=text):
            return text, b"", ""
        case (
            mcp_types.ImageContent(data=data, mime_type=mime)
            | mcp_types.AudioContent(data=data, mime_type=mime)
        ):
            return "", _decode(data), mime
        case mcp_types.ResourceLink(uri=uri, name=name, description=description):
            return f"[resource {uri} {name}: {description or ''}]".replace(": ]", "]"), b"", ""
        case mcp_types.EmbeddedResource(resource=resource):
            return _read_resource(resource)
        case _:
            return f"[content of an unknown type: {type(block).__name__}]", b"", ""


def _read_resource(
    resource: mcp_types.TextResourceContents | mcp_types.BlobResourceContents,
) -> tuple[str, bytes, str]:
    """As `_read_block`."""
    mime = resource.mime_type or "application/octet-stream"
    match resource:
        case mcp_types.TextResourceContents(text=text):
            return f"[resource {resource.uri}]\n{text}", b"", ""
        case mcp_types.BlobResourceContents(blob=blob):
            return f"[resource {resource.uri}]", _decode(blob), mime


def _decode(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (ValueError, binascii.Error):
        return b""


async def _keep(data: bytes, mime: str, context: Context, label: Label) -> ResultPart:
    """A picture by what its bytes are, whatever the server calls it: providers would refuse each
    request with one that is none."""
    blob = await context.reach.host.put_blob(data)
    picture = detect_media_type(data)
    if picture and read_picture_size(data) is not None:
        name = f"{blob[-12:]}.{picture.removeprefix('image/')}"
        return Image(blob, picture, name, label)
    plain = mime.partition(";")[0].strip().lower() or "application/octet-stream"
    return File(blob, f"{blob[-12:]}.bin", plain, len(data), label)
