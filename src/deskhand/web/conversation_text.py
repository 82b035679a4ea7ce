"""What was said in a conversation, to take along or to show to others: Markdown, or a page of its
own. Pure.

Calls, thoughts and the content of files are not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from html import escape
from typing import Any

import msgspec
from markdown_it import MarkdownIt
from msgspec.structs import replace

from ..languages.catalogue import ENGLISH, Language
from ..types import events as e
from ..types.identity import Principal
from ..types.marked_texts import mark_text
from ..types.messages import Audio, File, Image, Message, Part, Text

MAX_MARKDOWN_CHARS = 100_000
"""A longer text is shown as it is: nobody reads it for its looks."""
LINK_SCHEMES = ("https://", "http://", "mailto:")


class NamedFile(msgspec.Struct, frozen=True):
    """A file that stands in a conversation. `mime` is what its sender says that it is."""

    name: str
    blob: str
    mime: str


class Utterance(msgspec.Struct, frozen=True):
    """What somebody said at once, and the files beside it. `n` is the number of its event, `at`
    seconds since the epoch; `name` is '' for the agent."""

    n: int
    at: float
    name: str
    text: str
    files: tuple[NamedFile, ...] = ()


def list_utterances(
    log: Sequence[e.Recorded],
    name_of: Callable[[Principal], str],
    last_n: int | None = None,
    language: Language = ENGLISH,
) -> list[Utterance]:
    """What was said and holds: without what was undone or taken back. With `last_n`, only what was
    said until that event, as it holds by the end of the log."""
    found = dict[int, Utterance]()
    said_as = dict[str, int]()
    heard_in = dict[str, int]()
    for recorded in log:
        n = recorded.n
        match recorded.event:
            case e.MessageReceived(message=message, principal=who, external_id=external_id):
                if message.role == "user" and who.kind == "person":
                    found[n] = _make_utterance(recorded, message, name_of(who), language)
                    said_as[external_id] = n
                    heard_in |= {part.blob: n for part in message.parts if isinstance(part, Audio)}
            case e.Transcribed(blob=blob, text=text) if text and heard_in.get(blob) in found:
                heard = found[heard_in[blob]]
                found[heard.n] = replace(heard, text=f"{heard.text}\n{text}".strip())
            case e.MessageEdited(of=of, message=message) if said_as.get(of) in found:
                edited = found[said_as[of]]
                found[edited.n] = replace(edited, text=_read_text(message))
            case e.MessageDeleted(of=of):
                found.pop(said_as.get(of, 0), None)
            case e.ModelReplied(message=message):
                found[n] = _make_utterance(recorded, message, "", language)
            case e.Undone(to_n=to_n):
                found = {n: utterance for n, utterance in found.items() if n <= to_n}
            case _:
                pass
    return [
        utterance
        for utterance in found.values()
        if (utterance.text or utterance.files) and (last_n is None or utterance.n <= last_n)
    ]


def _make_utterance(
    recorded: e.Recorded, message: Message, name: str, language: Language
) -> Utterance:
    files = list_files(message.parts, language)
    return Utterance(recorded.n, recorded.at, name, _read_text(message), files)


def list_files(parts: Sequence[Part], language: Language = ENGLISH) -> tuple[NamedFile, ...]:
    """The files, pictures and recordings among these. What has no name is named in this
    language."""
    recording, picture = language.say(mark_text("recording")), language.say(mark_text("picture"))
    return tuple(
        NamedFile(
            recording if isinstance(part, Audio) else part.name or picture, part.blob, part.mime
        )
        for part in parts
        if isinstance(part, File | Image | Audio)
    )


def _read_text(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text)).strip()


def render_markdown(
    title: str, utterances: Sequence[Utterance], agent: str, zone: tzinfo | None
) -> str:
    """The conversation as one Markdown document."""
    blocks = [f"# {title}"]
    for utterance in utterances:
        when = _format_time(utterance.at, zone)
        blocks.append(f"## {utterance.name or agent}, {when}")
        if utterance.text:
            blocks.append(utterance.text)
        blocks += [f"- file: {file.name}" for file in utterance.files]
    return "\n\n".join(blocks) + "\n"


STYLE = """
:root { color-scheme: light dark; --line: #d8ddd8; --tint: #eef2ef; --soft: #5f6a64; }
@media (prefers-color-scheme: dark) { :root { --line: #333b37; --tint: #212826; --soft: #97a29c; } }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere;
  font: 1rem/1.6 Inter, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.5rem; }
.note, .who { color: var(--soft); font-size: 0.85rem; }
article { margin: 1.5rem 0; }
.person { background: var(--tint); border-radius: 12px; padding: 0.6rem 1rem; }
img { display: block; max-width: 100%; height: auto; border-radius: 8px; }
pre { overflow-x: auto; padding: 0.8rem; border: 1px solid var(--line); border-radius: 8px; }
pre, code { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 0.9em; }
.plain { white-space: pre-wrap; }
table { border-collapse: collapse; }
th, td { border: 1px solid var(--line); padding: 0.3rem 0.6rem; }
blockquote { margin-inline: 0; padding-inline-start: 1rem;
  border-inline-start: 3px solid var(--line); }
"""
"""The look of a conversation that stands alone, with no other file."""


def show_file_name(utterance: Utterance, number: int) -> str:
    """The file of that number, as HTML that loads nothing."""
    return escape(utterance.files[number].name)


class PageLook(msgspec.Struct, frozen=True):
    """How the agent is called on a page, and the time zone and the language of it."""

    agent: str
    zone: tzinfo | None
    language: Language = ENGLISH


def render_page(
    title: str,
    utterances: Sequence[Utterance],
    look: PageLook,
    note: str = "",
    show_file: Callable[[Utterance, int], str] = show_file_name,
) -> str:
    """The conversation as one page without scripts. `note` is HTML below the title. The page loads
    nothing but what `show_file` writes, as HTML, for the file of an utterance."""
    parser = make_parser()
    articles = []
    for utterance in utterances:
        who = escape(utterance.name or look.agent)
        kind = "person" if utterance.name else "agent"
        files = "".join(f"<li>{show_file(utterance, i)}</li>" for i in range(len(utterance.files)))
        articles.append(
            f'<article class="{kind}">'
            f'<p class="who">{who}, {_format_time(utterance.at, look.zone)}</p>'
            f"{render_text(parser, utterance)}{f'<ul>{files}</ul>' if files else ''}"
            "</article>"
        )
    language = look.language
    nothing = escape(language.say(mark_text("Nothing was said here.")))
    body = "\n".join(articles) or f'<p class="note">{nothing}</p>'
    told = f'<p class="note">{note}</p>' if note else ""
    return _wrap_page(title, f"{told}\n{body}", language)


def render_notice(title: str, text: str, language: Language = ENGLISH) -> str:
    """A page of the same look that says one thing, in this language."""
    return _wrap_page(language.say(title), f"<p>{escape(language.say(text))}</p>", language)


def _wrap_page(title: str, body: str, language: Language) -> str:
    """`body` is HTML."""
    heading = escape(title)
    return (
        f'<!doctype html>\n<html lang="{language.code}" dir="{language.dir}">'
        '<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="robots" content="noindex, nofollow">'
        f"<title>{heading}</title><style>{STYLE}</style></head>\n"
        f"<body><main><h1>{heading}</h1>\n{body}\n</main></body></html>\n"
    )


def render_text(parser: MarkdownIt, utterance: Utterance) -> str:
    """What was said, as HTML: an answer is Markdown, what a person wrote stays as it was
    written."""
    if utterance.name or len(utterance.text) > MAX_MARKDOWN_CHARS:
        return f'<div class="plain">{escape(utterance.text)}</div>' if utterance.text else ""
    return str(parser.render(utterance.text))


def make_parser() -> MarkdownIt:
    """Markdown without HTML, with links to web and mail addresses alone. A picture becomes a link:
    whoever reads loads nothing."""
    parser = MarkdownIt("commonmark", {"html": False})
    parser.enable(["table", "strikethrough"])
    parser.validateLink = lambda url: url.strip().lower().startswith(LINK_SCHEMES)  # type: ignore[method-assign]
    parser.add_render_rule("image", _render_picture)
    parser.add_render_rule("link_open", _render_link)
    return parser


def _render_picture(self: Any, tokens: Sequence[Any], at: int, options: Any, env: Any) -> str:
    token = tokens[at]
    address = escape(str(token.attrGet("src") or ""))
    return f'<a href="{address}" rel="noreferrer noopener">{escape(token.content or "picture")}</a>'


def _render_link(self: Any, tokens: Sequence[Any], at: int, options: Any, env: Any) -> str:
    tokens[at].attrSet("rel", "noreferrer noopener")
    return str(self.renderToken(tokens, at, options, env))


def _format_time(at: float, zone: tzinfo | None) -> str:
    return f"{datetime.fromtimestamp(at, zone):%Y-%m-%d %H:%M}"
