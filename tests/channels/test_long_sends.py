"""What takes several messages goes on behind what has arrived, and only what is in doubt is
marked."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

from deskhand.channels.discord.channel import FORM as DISCORD
from deskhand.channels.guides import GUIDES, find_variable
from deskhand.channels.long_sends import LongSends
from deskhand.channels.pieces import MessageForm, Piece, find_attachment_name, make_pieces
from deskhand.channels.settings import ChannelConfig
from deskhand.channels.twitch.channel import FORM as TWITCH
from deskhand.gateway.channel_loader import ENTRY_POINTS
from deskhand.types.commit import Choices, Outgoing
from deskhand.types.errors import ChannelError
from deskhand.types.identity import Address
from deskhand.types.messages import Audio, File, Text

FORM = MessageForm(text=100)
HERE = Address("x", chat="1")
LONG = Outgoing("k", HERE, (Text(" ".join(f"word{i}" for i in range(40))),))


class Wire:
    """Takes messages; before message `at` something goes wrong once."""

    def __init__(self, at: int, *, unsent: bool) -> None:
        self.taken: list[str] = []
        self._at = at
        self._unsent = unsent

    async def send(self, i: int, piece: Piece) -> str:
        if i == self._at:
            self._at = -1
            if not self._unsent:
                self.taken.append(piece.words.text)
            raise ChannelError("gone", unsent=self._unsent)
        self.taken.append(piece.words.text)
        return str(i)


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("unsent", [True, False])
async def test_it_goes_on_where_it_was(at: int, unsent: bool) -> None:
    sends = LongSends(FORM)
    wire = Wire(at, unsent=unsent)
    with pytest.raises(ChannelError) as caught:
        await sends.send(LONG, "", wire.send)
    assert caught.value.unsent == (unsent and at == 0)
    assert await sends.send(LONG, "may be a duplicate", wire.send) == "0"
    marked = [text for text in wire.taken if text.startswith("(may be")]
    assert len(marked) == (0 if unsent and at else 1)
    plain = [text.removeprefix("(may be a duplicate)\n") for text in wire.taken]
    wanted = [piece.words.text for piece in make_pieces(LONG, FORM)]
    assert list(dict.fromkeys(plain)) == wanted
    assert len(plain) - len(wanted) == (0 if unsent else 1)


def test_buttons_stand_beneath_the_last_words() -> None:
    ask = Choices("ask_1", "Which? " * 40, ("red", "blue"))
    asked = Outgoing("k", HERE, (Text("Which?"),), ask=ask)
    pieces = make_pieces(asked, FORM)
    assert [piece.asks for piece in pieces] == [False] * (len(pieces) - 1) + [True]


def test_without_buttons_the_words_are_named() -> None:
    ask = Choices("ask_1", "rm -rf build", ("once", "no"), approval=True)
    asked = Outgoing("k", HERE, (Text("Allow?"),), ask=ask)
    (piece,) = make_pieces(asked, MessageForm(text=1000, buttons=False))
    assert piece.words.text == (
        "Allow this?\nrm -rf build\n\nAnswer with one of these words: once, no"
    )
    assert not piece.asks


def test_words_stand_with_the_first_file_where_there_is_room() -> None:
    file = File("sha256:1", "a.txt", "text/plain", 1)
    said = Outgoing("k", HERE, (Text("see this"), file, file))
    with_room = make_pieces(said, MessageForm(text=1000, caption=200))
    assert [(each.words.text, each.file is not None) for each in with_room] == [
        ("see this", True),
        ("", True),
    ]
    without = make_pieces(said, FORM)
    assert [(each.words.text, each.file is not None) for each in without] == [
        ("see this", False),
        ("", True),
        ("", True),
    ]


def test_words_stand_before_a_recording() -> None:
    said = Outgoing("k", HERE, (Text("see this"), Audio("sha256:1", "audio/ogg")))
    pieces = make_pieces(said, MessageForm(text=1000, caption=200))
    assert [(each.words.text, each.file is not None) for each in pieces] == [
        ("see this", False),
        ("", True),
    ]


@pytest.mark.parametrize(
    ("part", "name"),
    [
        (Audio("sha256:1", "audio/ogg"), "voice.ogg"),
        (Audio("sha256:1", "audio/wav"), "voice.wav"),
        (Audio("sha256:1", "audio/flac"), "voice"),
        (File("sha256:1", "a.txt", "text/plain", 1), "a.txt"),
        (File("sha256:1", "", "text/plain", 1), "file"),
    ],
)
def test_the_name_of_what_is_sent(part: Audio | File, name: str) -> None:
    assert find_attachment_name(part) == name


@pytest.mark.parametrize("kind", GUIDES)
def test_a_guide_asks_for_what_there_is(kind: str) -> None:

    assert kind in {entry.name for entry in entry_points(group=ENTRY_POINTS)}
    for need in GUIDES[kind].needs:
        assert hasattr(ChannelConfig(), need.setting)
        if need.variable:
            assert find_variable(need, kind, kind) == need.variable
            assert find_variable(need, kind, "my-own").startswith("MY_OWN_")


PROSE = " ".join(f"This is sentence {i} (of many), with a remark - and so on." for i in range(70))
MARKED = {
    "code": "```\n" + "\n".join(f"line {i}" for i in range(600)) + "\n```",
    "prose": PROSE,
    "a link": f"{PROSE[:550]} [the page](https://good.test/some/path) {PROSE[:550]}",
}


@pytest.mark.parametrize("name", MARKED)
@pytest.mark.parametrize("form", [DISCORD, TWITCH], ids=["discord", "twitch"])
def test_marks_do_not_make_pieces_small(name: str, form: MessageForm) -> None:
    """What its marks make too long is cut in two, and not into letters."""
    assert form.markup is not None
    text = MARKED[name]
    found = make_pieces(Outgoing("k", HERE, (Text(text),)), form)
    assert max(len(form.markup(piece.words)) for piece in found) <= form.text
    assert len(found) <= 3 * len(text) // form.text + 2
