"""The files of a shared conversation: which those are, how its page shows them, and how they are
sent to whoever has the link."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Sequence
from html import escape

import anyio.to_thread
import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from ..languages.catalogue import ENGLISH, Language
from ..types import events as e
from ..types.errors import BlobMissing
from ..types.identity import Principal
from ..types.messages import ToolCall
from ..types.shares import Share
from .conversation_text import NamedFile, Utterance, list_files, list_utterances
from .media import file_response
from .protocols import Web
from .redacted import Redact

FILE_TOOLS = frozenset({"send_file", "image_gen"})
"""What they give is shown in the conversation. Other tools read files and take pictures of screens,
which nobody meant to show."""
INLINE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"})
"""Shown where they stand. A drawing (SVG) is not: it could be a page with scripts."""
FILE_HEADERS = {"x-robots-tag": "noindex, nofollow"}
_KEY = re.compile(r"([0-9]{1,15})-([0-9]{1,5})")
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class _Destination(msgspec.Struct, frozen=True):
    """Where a file was sent; '' is the conversation itself."""

    channel: str = ""
    chat: str = ""


def list_shared(
    log: Sequence[e.Recorded],
    name_of: Callable[[Principal], str],
    shared: Share,
    language: Language = ENGLISH,
) -> list[Utterance]:
    """What this link shows, in its order: what was said, and with `files` also the files that the
    agent sent. What has no name is named in this language."""
    found = list_utterances(log, name_of, shared.last_n, language)
    if shared.files:
        found += _list_sent_files(log, shared.last_n, language)
    return sorted(found, key=lambda utterance: utterance.n)


def _list_sent_files(log: Sequence[e.Recorded], last_n: int, language: Language) -> list[Utterance]:
    """The files that the agent sent here until event `last_n`, as it holds by the end of the
    log."""
    calls = dict[str, ToolCall]()
    found = list[Utterance]()
    for recorded in log:
        match recorded.event:
            case e.ModelReplied(message=message):
                calls |= {call.id: call for call in message.calls}
            case e.ToolFinished(result=result) if result.status == "ok":
                files = list_files(result.parts, language)
                if files and _is_sent_here(calls.get(result.call_id)):
                    found.append(Utterance(recorded.n, recorded.at, "", "", files))
            case e.Undone(to_n=to_n):
                found = [each for each in found if each.n <= to_n]
            case _:
                pass
    return [each for each in found if each.n <= last_n]


def _is_sent_here(call: ToolCall | None) -> bool:
    if call is None or call.name not in FILE_TOOLS:
        return False
    try:
        to = msgspec.json.decode(call.arguments, type=_Destination)
    except (msgspec.DecodeError, RecursionError):
        return False
    return not to.channel and not to.chat


def redact_utterance(utterance: Utterance, redact: Redact) -> Utterance:
    """The same without secrets in its text and in the names of its files."""
    files = tuple(replace(file, name=redact(file.name)) for file in utterance.files)
    return replace(utterance, text=redact(utterance.text), files=files)


def make_file_html(secret: str) -> Callable[[Utterance, int], str]:
    """How the page under this secret shows a file: a picture where it stands, all else as a
    link."""

    def show_file(utterance: Utterance, number: int) -> str:
        file = utterance.files[number]
        address = escape(f"/share/{secret}/files/{utterance.n}-{number}")
        name = escape(file.name)
        if file.mime not in INLINE_TYPES:
            return f'<a href="{address}" download>{name}</a>'
        return f'<a href="{address}"><img src="{address}" alt="{name}" loading="lazy"></a>'

    return show_file


def find_file(utterances: Sequence[Utterance], key: str) -> NamedFile | None:
    """The file with this name in the address of its page: the event and the place in it. No digest
    is asked for, so nothing else than these files can be."""
    wanted = _KEY.fullmatch(key)
    if wanted is None:
        return None
    n, number = int(wanted[1]), int(wanted[2])
    for utterance in utterances:
        if utterance.n == n and number < len(utterance.files):
            return utterance.files[number]
    return None


async def send_shared_file(web: Web, file: NamedFile) -> Response | None:
    """None where its bytes are not kept any more."""
    try:
        data = await web.blobs.get(file.blob)
    except BlobMissing:
        return None
    shown = await anyio.to_thread.run_sync(redact_file, data, web.redact)
    response = file_response(shown, file.name)
    response.headers.update(FILE_HEADERS)
    return response


def redact_file(data: bytes, redact: Redact) -> bytes:
    """A text without secrets; all else as it is."""
    if data.startswith(_UTF_16):
        encoding = "utf-16"
    elif b"\0" in data:
        return data
    else:
        encoding = "utf-8"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        if encoding == "utf-16" or _is_binary(data):
            return data
        encoding = "latin-1"
        text = data.decode(encoding)
    kept = redact(text)
    return data if kept == text else kept.encode(encoding, errors="replace")


def _is_binary(data: bytes) -> bool:
    """Whether bytes that are not UTF-8 are no text of an older encoding either: those have no
    control characters but white space."""
    return re.search(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]", data) is not None
