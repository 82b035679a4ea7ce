"""What is to be said, cut into the messages that a platform takes. All of it pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from ..languages.sentences import say_notice
from ..types.commit import ActionName, Actions, Choices, Outgoing
from ..types.marked_texts import mark_text
from ..types.messages import Audio, File, Image, Text
from .markup import break_addresses
from .rich_text import Rich, Span, count_units, defang_links, render_markdown, split_text

NOTE_UNITS = 40
MAX_BUTTONS = 20
MAX_EASY_MESSAGES = 3
"""An answer of more messages is offered as a document."""
RENDER_IN_THREAD_CHARS = 5_000
"""What is longer is rendered in a thread: that may take most of a second."""
_ALLOW = mark_text("Allow this?")
_ALLOW_ALL = mark_text("Allow all of these?")
_WAITS = mark_text("This needs approval:")
_ANSWER_WORDS = mark_text("Answer with one of these words: {words}")
_BUTTON_LABELS = {
    "once": mark_text("Yes, once"),
    "always": mark_text("Always this"),
    "no": mark_text("No"),
    "never": mark_text("Never this"),
}
_CHOICE_WORDS = {
    "once": mark_text("once"),
    "always": mark_text("always"),
    "no": mark_text("no"),
    "never": mark_text("never"),
    "each": mark_text("each"),
}
_JOINT_BUTTON_LABELS = {
    "once": mark_text("Yes, all"),
    "each": mark_text("One by one"),
    "no": mark_text("No"),
}
_VOICE_NAMES = {"audio/ogg": "voice.ogg", "audio/wav": "voice.wav"}

GONE = mark_text("{file} is no longer there")
"""What stands in the place of a file whose bytes are deleted."""

Attachment = Image | File | Audio
"""What is sent as bytes beside the words."""


class MessageForm(msgspec.Struct, frozen=True):
    """What a platform takes as one message. Lengths count UTF-16 code units, which are never fewer
    than characters. `caption` is the most that stands with a file, 0 for nothing, `label` on a
    button. `markup` writes the text as it is sent, where that makes it longer."""

    text: int
    caption: int = 0
    buttons: bool = True
    label: int = 1000
    markup: Callable[[Rich], str] | None = None


class Piece(msgspec.Struct, frozen=True):
    """One message: words, or a file with its caption. `asks`: the buttons of the question stand
    below it. `actions` are the commands that are offered below it."""

    words: Rich = Rich("")
    file: Attachment | None = None
    asks: bool = False
    actions: tuple[ActionName, ...] = ()


def find_attachment_name(part: Attachment) -> str:
    """Under which name it is sent. A recording has none of its own."""
    if isinstance(part, Audio):
        return _VOICE_NAMES.get(part.mime, "voice")
    return part.name or "file"


def is_long(outgoing: Outgoing) -> bool:
    """Whether its pieces should be made in a thread."""
    texts = (part.text for part in outgoing.parts if isinstance(part, Text))
    return sum(map(len, texts)) > RENDER_IN_THREAD_CHARS


def make_pieces(outgoing: Outgoing, form: MessageForm, *, over: bool = False) -> list[Piece]:
    """The messages that it takes. The words stand with the first file, and go on behind it where
    they are too long for that; with `over` they are written over a message that is there, which
    takes no file. Words stand before a recording, as most voice messages take none."""
    ask = outgoing.ask
    files = [part for part in outgoing.parts if isinstance(part, Attachment)]
    takes_caption = bool(files and form.caption) and not isinstance(files[0], Audio)
    captioned = takes_caption and ask is None and not over
    texts = render_texts(
        outgoing, form, first=max(form.caption - NOTE_UNITS, 1) if captioned else 0
    )
    caption = texts.pop(0) if captioned and texts else Rich("", guarded=outgoing.links is not None)
    words = [Piece(text) for text in texts]
    if words and ask is not None and _takes_buttons(outgoing, ask, form):
        words[-1] = Piece(words[-1].words, asks=True)
    elif words and outgoing.actions is not None and form.buttons:
        names = _select_actions(outgoing.actions, len(words))
        words[-1] = Piece(words[-1].words, actions=names)
    bare = Rich("", guarded=outgoing.links is not None)
    with_files = [Piece(bare, file) for file in files]
    if not captioned:
        return words + with_files
    return [Piece(caption, files[0]), *words, *with_files[1:]]


def _select_actions(actions: Actions, count: int) -> tuple[ActionName, ...]:
    """Those that make sense below an answer of so many messages."""
    if count > MAX_EASY_MESSAGES:
        return actions.names
    return tuple(name for name in actions.names if name != "document")


def render_texts(outgoing: Outgoing, form: MessageForm, first: int = 0) -> list[Rich]:
    """The words, in pieces that leave room for a note, the first one of at most `first` units where
    that is given. What is to be allowed is shown byte for byte. Of a question that is decided it is
    the last piece, where its buttons were.
    """
    ask = outgoing.ask
    limit = max(form.text - NOTE_UNITS, NOTE_UNITS)
    if ask is None or not (ask.approval or ask.decided or _takes_buttons(outgoing, ask, form)):
        words = render_markdown(
            "".join(part.text for part in outgoing.parts if isinstance(part, Text))
        )
        return list(_split(defang_links(words, outgoing.links), form.markup, limit, first))
    rich = render_markdown(ask.question)
    links = outgoing.links
    if ask.approval:
        links = links or ()  # why it is asked may name the very address that is not to be followed
        asked = _WAITS if not ask.choices else _ALLOW_ALL if "each" in ask.choices else _ALLOW
        head = f"{say_notice(asked, outgoing.language)}\n"
        rich = Rich(
            head + ask.question, (Span("pre", len(head), len(head) + count_units(ask.question)),)
        )
    after = ask.decided or ask.note
    if not after and not form.buttons and ask.choices:
        say = partial(say_notice, language=outgoing.language)
        named = ", ".join(say(_CHOICE_WORDS.get(each, each)) for each in ask.choices)
        after = say(_ANSWER_WORDS).format(words=named)
    whole = defang_links(Rich(f"{rich.text}\n\n{after}".rstrip(), rich.spans), links)
    pieces = list(_split(whole, form.markup, limit))
    return pieces[-1:] if ask.decided else pieces


def _split(
    rich: Rich, markup: Callable[[Rich], str] | None, limit: int, first: int = 0, cut: int = 0
) -> Iterator[Rich]:
    """In pieces that are short enough once they are marked up: cut at `cut` units, or at the limit,
    and one that its marks make too long at half of that."""
    for i, piece in enumerate(split_text(rich, cut or limit, first)):
        most = first if first and i == 0 else limit
        size = most if first and i == 0 else cut or limit
        if markup is not None and size > 1 and count_units(markup(piece)) > most:
            yield from _split(piece, markup, most, cut=size // 2)
        else:
            yield piece


def prepend_note(rich: Rich, note: str) -> Rich:
    """The words, with this before them; where not every address may be followed, none in it may."""
    if not note:
        return rich
    head = f"({break_addresses(note) if rich.guarded else note})\n"
    moved = (
        Span(each.kind, each.start + len(head), each.end + len(head), each.detail)
        for each in rich.spans
    )
    return Rich(
        (head + rich.text).rstrip(), (Span("italic", 0, len(head) - 1), *moved), rich.guarded
    )


def _takes_buttons(outgoing: Outgoing, ask: Choices, form: MessageForm) -> bool:
    """Whether all of its answers can stand on buttons, word for word."""
    labels = (find_button_label(ask, choice, outgoing.language) for choice in ask.choices)
    return form.buttons and all(count_units(label) <= form.label for label in labels)


def has_buttons(ask: Choices) -> bool:
    """Whether its answers are few enough to be buttons, and still asked for."""
    return not ask.decided and 0 < len(ask.choices) <= MAX_BUTTONS


def find_button_label(ask: Choices, choice: str, language: str = "") -> str:
    """What stands on the button for this answer, in this language."""
    if not ask.approval:
        return choice
    named = _JOINT_BUTTON_LABELS if "each" in ask.choices else _BUTTON_LABELS
    return say_notice(named.get(choice, choice), language)
