"""The gate that no rule opens: what untrusted words have touched reaches outward only with a
person. Pure.

It assumes that the model obeys whoever wrote what it reads, and looks at labels alone, never at
words.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from ..types.addresses import find_live_spans
from ..types.commit import SayPart
from ..types.effects import OUTWARD, Effect
from ..types.identity import Principal, responsible_person
from ..types.labels import LOCAL, UNNAMED_SOURCE, Label
from ..types.marked_texts import mark_text
from ..types.messages import Message, ResultPart, Text, ToolCall, ToolResult
from .links import defang_text, find_known_links, is_address_in

SEARCH_TOOL = "web_search"
FETCH_TOOL = "web_fetch"
FETCH_ANSWER_PREFIX = "[web_fetch: answered"
"""So begins the answer to a question about a page: words of a model, which may repeat those of the
question."""
ADDRESS_ARGUMENTS = frozenset({"url", "urls", "uri", "href", "link", "links", "address"})
"""Arguments that name what is fetched."""
STEERING_FILES = frozenset(
    (
        *(
            "system.md",
            "agent.md",
            "rules.md",
            "soul.md",
            "user.md",
            "code.md",
            "agents.md",
            "heartbeat.md",
            "job.md",
        ),
        *("memory.md", "memory/*", "knowledge/*", "skills/*", "tools/*", "jobs/*", "prompts/*"),
    )
)
"""Files of a workspace that tell an agent what to do or what is known, and folders of them: the
next conversation reads them."""
READ_REASON = mark_text("this conversation has read {sources_text}")
MAX_NAMED_SOURCES = 3
AUTHOR_SOURCE = mark_text("what {name} wrote")
MAX_ADDRESSES = 20
"""So many addresses of a call are looked for in what was read."""


def apply_trust(label: Label, trusted: Collection[str]) -> Label:
    """The label where a person trusts these hosts and sources: what came from nowhere else is no
    longer untrusted."""
    if label.integrity != "untrusted" or not trusted or not label.sources:
        return label
    if all(source in trusted or source_host(source) in trusted for source in label.sources):
        return replace(label, integrity="tool_local")
    return label


def downgrade_label(label: Label, principal: Principal) -> Label:
    """The label as it counts for who acts here. What others wrote is from outside, for an owner
    what no owner wrote: it may not act in the name of this one."""
    if not label.by or label.integrity == "untrusted":
        return label
    people = list_other_authors(label, principal)
    return (
        replace(
            label,
            integrity="untrusted",
            source="\n".join(AUTHOR_SOURCE.format(name=each) for each in people),
        )
        if people
        else label
    )


def list_other_authors(label: Label, principal: Principal) -> tuple[str, ...]:
    """The people on whose word it was written and whose word says nothing to this one: for an owner
    that of nobody else, for all others that of anybody but themselves."""
    own = () if "owner" in principal.roles else (responsible_person(principal),)
    return tuple(each for each in label.by if each not in own)


def source_host(source: str) -> str:
    """The host of a source that is a URL; '' for any other."""
    try:
        return (urlsplit(source).hostname or "").rstrip(".") if "://" in source else ""
    except ValueError:
        return ""


class Given(msgspec.Struct, frozen=True):
    """Words whose addresses the model did not put together. Those of a page count for the host that
    it came from; '' is anywhere: what people wrote, and what a search found."""

    host: str
    text: str


def collect_known_texts(
    messages: Iterable[Message], reads: Callable[[str], bool]
) -> tuple[Given, ...]:
    """What people wrote, what a search found and what pages said, as far as the conversation still
    holds it. What other tools return is not counted, nor are answers about a page: a model can have
    any of them repeat its own words. `reads` tells of a tool's name whether it fetches."""
    words: list[Given] = []
    fetched: dict[str, str] = {}
    for message in messages:
        for part in message.parts:
            match part:
                case ToolCall(id=call_id, name=name) if reads(name):
                    fetched[call_id] = name
                case ToolResult(call_id=call_id, parts=pieces, status="ok") if call_id in fetched:
                    for piece in pieces:
                        host = source_host(piece.label.source)
                        if not isinstance(piece, Text) or piece.text.startswith(
                            FETCH_ANSWER_PREFIX
                        ):
                            continue
                        if host or fetched[call_id] == SEARCH_TOOL:
                            words.append(
                                Given("" if fetched[call_id] == SEARCH_TOOL else host, piece.text)
                            )
                case Text(text=text, label=label) if message.role == "user" and label.integrity in (
                    "owner",
                    "member",
                ):
                    words.append(Given("", text))
                case _:
                    pass
    return tuple(words)


def find_objection(
    effect: Effect, arguments: bytes, label: Label, known: Collection[Given], owner: bool = True
) -> str:
    """Why a person has to be asked before this, whatever the rules say; '' where nothing speaks
    against it. `label` is the lowest of what the model has read, `known` the words of `given`,
    `owner` whether it is an owner who asks."""
    if label.integrity == "untrusted":
        if effect in OUTWARD:
            return mark_text(
                "it acts outside the workspace, and this conversation has read {sources_text}"
            ).format(sources_text=format_sources(label))
        if effect == "fetch" and (strange := _find_unknown_address(arguments, known)):
            return _describe_strange_address(strange, label)
    if effect == "local_write" and not (owner and label.integrity != "untrusted"):
        read = (
            READ_REASON.format(sources_text=format_sources(label))
            if label.integrity == "untrusted"
            else mark_text("no owner asks for it")
        )
        if path := find_steering_file(_decode_arguments(arguments)):
            return mark_text(
                "{file} tells the agent what to do from now on, and {why_text}"
            ).format(file=path, why_text=read)
    is_private = label.readers is not None
    if (
        is_private
        and effect == "fetch"
        and (strange := _find_unknown_address(arguments, [each for each in known if not each.host]))
    ):
        return _describe_strange_address(strange, label)
    if is_private and effect in OUTWARD:
        private_data = mark_text("private data of {readers_text}: {sources_text}").format(
            readers_text=_format_readers(label), sources_text=format_sources(label)
        )
        return READ_REASON.format(sources_text=private_data)
    return ""


def _describe_strange_address(url: str, label: Label) -> str:
    return mark_text(
        "nobody in this conversation mentioned the address {address}, and it has read "
        "{sources_text}"
    ).format(address=repr(url[:200]), sources_text=format_sources(label))


def _find_unknown_address(arguments: bytes, known: Collection[Given]) -> str:
    """The first address in these arguments that was not given, or that stands behind MOST others;
    '' for none."""
    urls = enumerate(extract_addresses(_decode_arguments(arguments)))
    return next(
        (
            url
            for number, url in urls
            if number >= MAX_ADDRESSES or not _is_known_address(url, known)
        ),
        "",
    )


def _is_known_address(url: str, known: Collection[Given]) -> bool:
    """Whether a person wrote this address, a search found it, or a page of the same host links to
    it as a whole."""
    host = source_host(url if "://" in url else f"https://{url}")
    return any(words.host in ("", host) and is_address_in(url, words.text) for words in known)


def defang_links(
    parts: tuple[SayPart, ...], label: Label, messages: Iterable[Message]
) -> tuple[tuple[SayPart, ...], tuple[str, ...] | None]:
    """What is said in a conversation of this label, which consists of these messages, and the only
    addresses in it that may lead anywhere: those that a person or a page named as they are. None
    where nothing came from outside."""
    if label.integrity != "untrusted":
        return parts, None
    text = "\n".join(part.text for part in parts if isinstance(part, Text))
    if next(find_live_spans(text), None) is None and "](" not in text and "]:" not in text:
        return parts, ()
    known = "\n".join(
        each.text
        for each in collect_known_texts(messages, lambda name: name in (SEARCH_TOOL, FETCH_TOOL))
    )
    live = find_known_links(text, known)
    quiet = tuple(
        replace(part, text=defang_text(part.text, live)) if isinstance(part, Text) else part
        for part in parts
    )
    return quiet, live


def format_sources(label: Label) -> str:
    """The sources in words."""
    named = [source for source in label.sources if source] or [UNNAMED_SOURCE]
    more = len(named) - MAX_NAMED_SOURCES
    shown = ", ".join(named[:MAX_NAMED_SOURCES])
    if more <= 0:
        return shown
    return mark_text("{sources_text} and {more_number} more").format(
        sources_text=shown, more_number=more
    )


def extract_addresses(arguments: Any) -> Iterator[str]:
    """The addresses that a call's arguments name."""
    if isinstance(arguments, dict):
        for name, value in arguments.items():
            if str(name).lower() in ADDRESS_ARGUMENTS:
                yield from (
                    str(each) for each in (value if isinstance(value, list) else [value]) if each
                )


def find_steering_file(arguments: Any) -> str:
    """The file that steers an agent and that these arguments write; '' for none."""
    named = (
        [arguments.get(name) for name in ("path", "to", "target")]
        if isinstance(arguments, dict)
        else []
    )
    for path in named:
        if isinstance(path, str) and is_steering_file(path):
            return path
    return ""


def is_steering_file(path: str) -> bool:
    """Whether this file of a workspace tells agents what to do; written as forgiving as file
    systems are."""
    parts = [part.casefold().rstrip(". ") for part in path.split("/") if part not in ("", ".")]
    return parts[-1:] != [] and (
        parts[-1] in STEERING_FILES or any(f"{part}/*" in STEERING_FILES for part in parts[:-1])
    )


def withhold_private_parts(
    audience: Collection[str], parts: tuple[ResultPart, ...]
) -> tuple[ResultPart, ...]:
    """The parts as this audience may see them: what is for others is withheld, and that is said."""
    return tuple(
        part if may_see(part.label, audience) else _make_withheld(part.label) for part in parts
    )


def may_see(label: Label, audience: Collection[str]) -> bool:
    """Whether all those who read a conversation may see this."""
    return label.readers is None or bool(set(label.readers) & set(audience))


def _make_withheld(label: Label) -> Text:
    who = _format_readers(label)
    return Text(f"[withheld: it is only for {who}, and others can read this conversation]", LOCAL)


def _format_readers(label: Label) -> str:
    names = [reader.replace("role:owner", mark_text("the owner")) for reader in label.readers or ()]
    return " and ".join(names) or "nobody here"


def _decode_arguments(arguments: bytes) -> Any:
    try:
        decoded = msgspec.json.decode(arguments)
        return (
            msgspec.json.decode(decoded)
            if isinstance(decoded, str) and decoded.startswith("{")
            else decoded
        )
    except (ValueError, RecursionError):
        return {}  # the tool refuses it
