"""Documents become text, whoever made them: in the sandbox, within bounds, without what nobody
would see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from deskhand.sandbox.base import Exit, Sandbox, SandboxCommand
from deskhand.tools.convert import (
    MAX_ANSWER_BYTES,
    MAX_DOCUMENT_BYTES,
    ConversionRequest,
    convert_document,
)
from deskhand.tools.documents.kinds import detect_kind
from deskhand.types.errors import SandboxUnavailable, ToolError
from deskhand.workspace.scope import SandboxProvider

from . import documents as make

PAGE = """<!doctype html><html><head><title>The  title</title><base href="https://site.test/dir/"></head><body>
<header>Site name</header><nav><a href="/a">A menu</a></nav>
<main><h1>Head <em>line</em></h1>
<p>Some <b>bold </b>words,<br>a <a href="page?x=1#y">link</a> and <code>code</code>.</p>
<ul><li>one<li>two<ol start=3><li>three<li>four</ol></ul>
<blockquote><p>said</p><p>again</p></blockquote>
<pre>def f():
    return "```"</pre>
<table><caption>Numbers</caption><tr><th>a<th>b<tr><td>1<td>2|<b>3</b></table>
<p><img src="cat.png" alt="a cat">
<a href="javascript:alert(1)">no link</a> <a href="file:///etc/passwd">nor this</a></p>
<dl><dt>term<dd>meaning</dl><p>{filler}</p></main>
<aside>Buy now</aside><footer>Imprint</footer></body></html>""".replace(
    "{filler}", "Enough words to be the content. " * 10
)
MARKDOWN = """# Head line

Some **bold** words,
a [link](https://site.test/dir/page?x=1#y) and `code`.

- one
- two
  3. three
  4. four

> said

> again

````
def f():
    return "```"
````

Numbers

| a | b |
| --- | --- |
| 1 | 2\\|**3** |

![a cat](https://site.test/dir/cat.png) no link nor this

term

  meaning"""

PERSIAN = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
"""A word that is written with a joiner that takes no room."""


@pytest.fixture(scope="module")
def room() -> SandboxProvider:
    return SandboxProvider()


async def test_a_page_becomes_markdown(room: SandboxProvider) -> None:
    found = await convert_document(
        PAGE.encode(),
        room,
        ConversionRequest("text/html; charset=utf-8", url="https://other.test/"),
    )
    text, _, rest = found.text.partition("\n\nEnough words")
    assert (found.title, text, found.kind) == ("The title", MARKDOWN, "html")
    assert rest.count("Enough words") == 9 and "Buy now" not in rest and "Imprint" not in rest
    assert found.remarks == ""


async def test_a_selector_chooses_what_is_given(room: SandboxProvider) -> None:
    page = ConversionRequest(
        "text/html", url="https://site.test/a/", selector="td, ul > li:first-child"
    )
    assert (await convert_document(PAGE.encode(), room, page)).text == "- one\n\n1\n\n2|**3**"
    for selector, why in (
        ("p[", "is not a supported CSS selector"),
        ("video", "nothing that matches the selector 'video'"),
    ):
        with pytest.raises(ToolError, match=why):
            await convert_document(
                PAGE.encode(), room, ConversionRequest("text/html", selector=selector)
            )
    with pytest.raises(ToolError, match=r"is not a web page \(PDF file\): leave out the selector"):
        await convert_document(make.pdf([""]), room, ConversionRequest(selector="p"))


HIDDEN = [
    '<p style="display:none">evil</p>',
    '<p style="VISIBILITY : hidden !important">evil</p>',
    '<div style="position:absolute;left:-9999px">evil</div>',
    '<span style="font-size:0">evil</span>',
    '<span style="font-size:1px">evil</span>',
    '<div style="opacity:0.01"><p>evil</p></div>',
    '<div style="height:0;overflow:hidden">evil</div>',
    '<p style="color:#fff">evil</p>',
    '<font color="white">evil</font>',
    '<p style="background:#123;color:#123">evil</p>',
    "<p hidden>evil</p>",
    "<style>.x, #y { display : none }</style><p id=y>evil</p>",
    (
        "<style>/* } */ @media print { p { display: none } } .z{text-indent:-9999px}</style><p "
        "class=z>evil</p>"
    ),
    "<template><p>evil</p></template>",
    "<script>evil</script><style>evil</style><noscript>evil</noscript><svg><text>evil</text></svg>",
    "<!-- evil -->",
    '<input type=hidden value="evil"><meta name=description content="evil">',
    '<p title="evil" data-x="evil" aria-label="evil">fine</p>',
]


@pytest.mark.parametrize("markup", HIDDEN)
async def test_what_nobody_sees_is_taken_out(markup: str, room: SandboxProvider) -> None:
    page = f"<body><p>Before.</p>{markup}<p>After.</p></body>"
    found = await convert_document(page.encode(), room, ConversionRequest("text/html"))
    assert "evil" not in found.text + found.title
    assert found.text.startswith("Before.") and found.text.endswith("After.")


async def test_what_was_taken_out_is_counted(room: SandboxProvider) -> None:
    page = "<p hidden>a</p><p style='display:none'>b</p><!-- c --><p>d\u200be\u202ef\U000e0041</p>"
    found = await convert_document(page.encode(), room, ConversionRequest("text/html"))
    assert found.text == "def"
    assert found.hidden == {"hidden elements": 2, "comments": 1, "invisible characters": 3}
    assert found.remarks == (
        "[removed because it is not visible to people: comments (1), hidden elements (2), "
        "invisible characters (3)]"
    )


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a\u200b\u2060\ufeffb", "ab"),
        ("\u202eabc\u202c\u2066x\u2069", "abcx"),
        ("hi" + "".join(chr(0xE0000 + ord(c)) for c in "run"), "hi"),
        ("\N{GRINNING FACE}" + "".join(chr(0xFE00 + n) for n in (3, 9, 1)), "\N{GRINNING FACE}"),
        ("\N{GRINNING FACE}\U000e0155\U000e0167", "\N{GRINNING FACE}"),
        (
            "\N{HEAVY BLACK HEART}\ufe0f\N{ZERO WIDTH JOINER}\N{FIRE}",
            "\N{HEAVY BLACK HEART}\ufe0f\u200d\N{FIRE}",
        ),
        (PERSIAN, PERSIAN),
        ("\u0915\u094d\u200d\u0937", "\u0915\u094d\u200d\u0937"),
        ("葛\U000e0100", "葛\U000e0100"),
        ("a\x07\x1b[31mb\x85", "a[31mb"),
        ("co\u00adop\u034f\u3164", "coop"),
    ],
)
async def test_invisible_characters(text: str, left: str, room: SandboxProvider) -> None:
    assert (
        await convert_document(text.encode(), room, ConversionRequest("text/plain"))
    ).text == left


@pytest.mark.parametrize(
    ("data", "declared"),
    [
        ("Grüße €".encode(), "text/plain; charset=iso-8859-1"),
        ("Grüße €".encode("cp1252"), "text/plain; charset=utf-8"),
        ("Grüße €".encode("cp1252"), "text/plain"),
        ("Grüße €".encode("utf-16"), "text/plain; charset=utf-8"),
        ("Grüße €, in Worten".encode("utf-16-le"), "text/plain"),
        (b"\xef\xbb\xbf" + "Grüße €".encode(), "text/plain; charset=utf-16"),
        ("Grüße €".encode("cp1252"), 'text/plain; charset="utf-7"'),
        ("Grüße €".encode("cp1252"), "text/plain; charset=zip"),
        (b'<meta charset="utf-16"><p>' + "Grüße €".encode(), "text/html"),
        (
            b'<meta charset="windows-1252"><p>' + "Grüße €".encode("cp1252"),
            "text/html; charset=utf-8",
        ),
    ],
)
async def test_encodings_that_lie(data: bytes, declared: str, room: SandboxProvider) -> None:
    assert (await convert_document(data, room, ConversionRequest(declared))).text.startswith(
        "Grüße €"
    )


@pytest.mark.parametrize(
    ("text", "charset"),
    [
        ("Привет", "koi8-r"),
        ("Привет", "windows-1251"),
        ("日本語", "shift_jis"),
        ("日本語", "iso-2022-jp"),
        ("中文", "gbk"),
    ],
)
async def test_declared_encodings_are_read(text: str, charset: str, room: SandboxProvider) -> None:
    declared = await convert_document(
        text.encode(charset), room, ConversionRequest(f"text/plain; charset={charset}")
    )
    said = await convert_document(
        f'<meta charset="{charset}"><p>{text}'.encode(charset), room, ConversionRequest("text/html")
    )
    assert (declared.text, said.text) == (text, text)


async def test_utf7_stays_as_it_is(room: SandboxProvider) -> None:
    assert (
        await convert_document(
            b"+ADw-script+AD4-", room, ConversionRequest("text/plain; charset=utf-7")
        )
    ).text == "+ADw-script+AD4-"


async def test_word(room: SandboxProvider) -> None:
    table = "<w:tbl><w:tr><w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr><w:tr><w:tc>{}</w:tc><w:tc/></w:tr></w:tbl>"  # noqa: E501
    cells = (make.paragraph(each) for each in ("a", "b|c", "1"))
    link = "<w:p><w:hyperlink r:id='l'><w:r><w:t>here</w:t></w:r></w:hyperlink></w:p>"
    body = (
        make.paragraph("Top", "Heading1")
        + make.paragraph("plain ")
        + make.paragraph("evil", run="<w:vanish/>")
        + make.paragraph("item", "ListBullet")
        + table.format(*cells)
        + link
        + link.replace("'l'", "'f'")
        + "<w:p><w:del><w:r><w:delText>evil</w:delText></w:r></w:del></w:p>"
    )
    links = (("l", "hyperlink", "https://site.test/"), ("f", "hyperlink", "file:///etc/passwd"))
    found = await convert_document(make.word(body, *links), room)
    table_shown = "| a | b\\|c |\n| --- | --- |\n| 1 |  |"
    assert (
        found.text
        == f"# Top\n\nplain\n\n- item\n\n{table_shown}\n\n[here](https://site.test/)\n\nhere"
    )
    assert (found.kind, found.title, found.hidden) == ("docx", "Top", {"hidden text": 1})


async def test_sheets(room: SandboxProvider) -> None:
    rows = (
        "<row><c t='s'><v>0</v></c><c t='inlineStr'><is><t>when</t></is></c><c "
        "r='XFD1'><v>9</v></c></row>"
        "<row r='9'><c r='A9'><v>1.5</v></c><c r='B9' s='1'><v>45351.5</v></c><c "
        "t='b'><v>1</v></c></row>"
        "<row hidden='1'><c><v>666</v></c></row>"
    )
    styles = (
        "<numFmts><numFmt numFmtId='170' formatCode='dd/mm/yy'/></numFmts>"
        "<cellXfs><xf numFmtId='0'/><xf numFmtId='170'/></cellXfs>"
    )
    sheets = [
        ("One", "visible", f"<sheetData>{rows}</sheetData>"),
        ("Two", "veryHidden", rows),
        ("Three", "visible", ""),
    ]
    found = await convert_document(make.workbook(sheets, ["what"], styles), room)
    assert found.text == (
        "## One\n\n| what | when |\n| --- | --- |\n| 1.5 | 2024-02-29 12:00:00 | TRUE "
        "|\n\n## Three\n\n(empty)"
    )
    assert found.hidden == {"hidden rows": 1, "hidden sheets": 1}


HIDDEN_COLUMNS = ["hidden='1'", "hidden='true'", "width='0'", "width='0.0'"]


@pytest.mark.parametrize("how", HIDDEN_COLUMNS)
async def test_columns_and_rows_that_nobody_sees(how: str, room: SandboxProvider) -> None:
    row = how.replace("width", "ht")
    text = "<c t='inlineStr'><is><t>{}</t></is></c>"
    cells = "".join(text.format(each) for each in ("a", "evil", "evil", "d"))
    sheet = (
        f"<cols><col min='1' max='1' width='9'/><col min='2' max='3' {how}/></cols><sheetData>"
        f"<row ht='12'>{cells}</row><row {row}>{cells}</row></sheetData>"
    )
    found = await convert_document(make.workbook([("One", "visible", sheet)]), room)
    assert found.text == "## One\n\n| a | d |\n| --- | --- |"
    assert found.hidden == {"hidden cells": 2, "hidden rows": 1}


async def test_columns_of_opendocument_that_nobody_sees(room: SandboxProvider) -> None:
    columns = (
        "<table:table-column/><table:table-column-group><table:table-column "
        "table:visibility='{}' table:number-columns-repeated='2'/></table:table-column-group>"
        "<table:table-column table:number-columns-repeated='16381'/>"
    )
    cell = "<table:table-cell><text:p>{}</text:p></table:table-cell>"
    nested = (
        "<table:table-cell><table:table table:is-sub-table='true'><table:table-column/>"
        "</table:table></table:table-cell>"
    )
    row = f"<table:table-row>{cell.format('a')}{cell.format('evil') * 2}{cell.format('d')}</table:table-row>"  # noqa: E501
    inner = (
        f"<table:table-row>{nested}{cell.format('evil') * 2}{cell.format('e')}</table:table-row>"
    )
    for how in ("collapse", "filter"):
        sheet = f"<table:table>{columns.format(how)}{row}{inner}</table:table>"
        plain = f"<table:table>{row.replace('evil', 'b')}</table:table>"
        found = await convert_document(make.opendocument("spreadsheet", sheet + plain), room)
        assert "evil" not in found.text and "| a | d |" in found.text
        assert "| a | b | b | d |" in found.text, "the next sheet has columns of its own"
        assert found.hidden == {"hidden cells": 4}


async def test_a_cell_far_away_costs_nothing(room: SandboxProvider) -> None:
    far = "<sheetData><row r='1'><c r='A1'><v>1</v></c></row><row r='1048576'><c r='XFD1048576'><v>2</v></c></row></sheetData>"  # noqa: E501
    found = await convert_document(make.workbook([("One", "visible", far)]), room)
    assert found.text == "## One\n\n| 1 |\n| --- |"


async def test_slides(room: SandboxProvider) -> None:
    found = await convert_document(
        make.slides([("First", True), ("evil", False), ("Third", True)], "say it slowly"), room
    )
    said = "Notes: say it slowly"
    assert found.text == f"## Slide 1\n\nFirst\n\n{said}\n\n## Slide 3\n\nThird\n\n{said}"
    assert found.hidden == {"hidden slides": 1}


async def test_opendocument(room: SandboxProvider) -> None:
    text = (
        "<text:h text:outline-level='2'>Top</text:h><text:p>a<text:s text:c='3'/>b<text:tab/>"
        "<text:a "
        "x:href='https://site.test/'>link</text:a><offic:annotation><text:p>evil</text:p></offic:annotation></text:p>"
        "<text:list><text:list-item><text:p>item</text:p></text:list-item></text:list>"
    )
    found = await convert_document(make.opendocument("text", text), room)
    assert found.text == "## Top\n\na   b [link](https://site.test/)\n\n- item"
    cells = "<table:table-cell><text:p>{}</text:p></table:table-cell>"
    sheet = (
        f"<table:table table:name='S'><table:table-row>{cells.format('x')}{cells.format('y')}"
        "<table:table-cell table:number-columns-repeated='16384'/></table:table-row>"
        "<table:table-row "
        "table:number-rows-repeated='1048576'><table:table-cell/></table:table-row>"
        "<table:table-row "
        f"table:visibility='collapse'>{cells.format('evil')}</table:table-row></table:table>"
    )
    found = await convert_document(make.opendocument("spreadsheet", sheet), room)
    assert found.text == "## S\n\n| x | y |\n| --- | --- |"
    assert found.hidden == {"hidden rows": 1}


async def test_books(room: SandboxProvider) -> None:
    found = await convert_document(
        make.ebook({"b": "<h1>Second</h1>", "a": "<h1>First</h1><p hidden>evil"}), room
    )
    assert (found.title, found.text) == ("A book", "# First\n\n# Second")


async def test_rich_text(room: SandboxProvider) -> None:
    text = (
        rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 evil;}}caf\'e9 \u8364?\par {\v "
        rb"evil}\u-10179?\u-8704?{\*\x evil}}"
    )
    found = await convert_document(text, room)
    assert (found.text, found.hidden) == ("café €\n\n\N{GRINNING FACE}", {"hidden text": 1})


async def test_pdf(room: SandboxProvider) -> None:
    unseen = (
        make.shown("evil", (70, -400)) + make.shown("evil", mode=3) + make.shown("evil", size=0.5)
    )
    found = await convert_document(
        make.pdf([make.shown("Hello there") + unseen, "", make.shown("Bye")], "About it"), room
    )
    assert found.text == "[page 1 of 3]\nHello there\n\n[page 2 of 3]\n[page 3 of 3]\nBye"
    assert found.title == "About it"
    assert found.hidden == {"hidden text": 2, "characters beyond the page": 4}
    assert found.notes == ("1 of 3 pages have no text: pictures or scans",)


async def test_the_recognised_text_of_a_scan_is_given(room: SandboxProvider) -> None:
    """Programs that scan lay it invisibly over the picture."""
    found = await convert_document(make.pdf([make.shown("Recognised", mode=3)]), room)
    assert "Recognised" in found.text


async def test_archives_are_listed_and_not_unpacked(room: SandboxProvider) -> None:
    inner = make.archive({"0.txt": b"\0" * (8 << 20)})
    found = await convert_document(make.archive({f"lib {n}.zip": inner for n in range(16)}), room)
    assert found.text.startswith(
        "A zip archive. It was not unpacked; these are the names in it:\n\n- lib 0.zip ("
    )
    assert found.text.count("\n- ") == 16


LETTERS = "abcdefghij"
LAUGHS = "".join(
    f"<!ENTITY {each} '" + f"&{LETTERS[n]};" * 10 + "'>" for n, each in enumerate(LETTERS[1:])
)


def _swollen_word() -> bytes:
    return make.archive(
        {"[Content_Types].xml": "", "word/document.xml": b"<a>" + b" " * (200 << 20)}
    )


def _many_parts() -> bytes:
    """None of them grows beyond what one may."""
    sheet = " " * (7 << 20)
    return make.workbook([(f"n{n}", "visible", sheet) for n in range(40)])


BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "204 KB that become 200 MB": (
        _swollen_word,
        "is a decompression bomb: 'word/document.xml' grows to over 200 times",
    ),
    "many parts": (_many_parts, "unpacks to more than 200 MB: a decompression bomb"),
    "entities of entities": (
        lambda: make.word(make.paragraph("&j;"), before=f"<!DOCTYPE x [<!ENTITY a 'ha'>{LAUGHS}]>"),
        "declares XML entities, which office programs do not use",
    ),
    "an entity that is a file": (
        lambda: make.word(
            make.paragraph("&a;"), before="<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>"
        ),
        "declares XML entities",
    ),
    "too many entries": (
        lambda: make.archive(
            {f"word/{n}": "" for n in range(20_001)} | {"[Content_Types].xml": ""}
        ),
        "holds 20,002 entries, more than the 20,000 that are read",
    ),
    "a PDF whose page becomes 900 MB": (
        lambda: make.pdf([make.swollen(900, make.shown("a" * 90).encode())]),
        "needs more than 512 MB of memory to be read|crashed the program that reads it",
    ),
    "too large": (lambda: bytes(MAX_DOCUMENT_BYTES + 1), "is larger than 20 MB"),
    "a broken archive": (lambda: make.word("")[:-40], "is damaged: File is not a zip file"),
    "a broken part": (
        lambda: make.word("<w:p>"),
        "is damaged: 'word/document.xml': mismatched tag",
    ),
    "a broken PDF": (lambda: b"%PDF-1.7 nothing", "is damaged"),
    "an old Office file": (
        lambda: b"\xd0\xcf\x11\xe0" + bytes(600),
        "is in an old Office format; save it as docx",
    ),
    "a huge picture": (lambda: b"\x89PNG\r\n\x1a\n" + bytes(4_000_000), "is a picture"),
}


def peak_bytes() -> int:
    """The most memory that this process held since `forget_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def forget_peak() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return peak_bytes()


@pytest.mark.parametrize("bomb", BOMBS)
async def test_bombs_end_in_a_sentence_and_touch_nothing(bomb: str, room: SandboxProvider) -> None:
    made, why = BOMBS[bomb]
    data = made()
    await room()
    before = forget_peak()
    with pytest.raises(ToolError, match=f"^'it' {why}"):
        await convert_document(data, room, ConversionRequest(name="it"))
    assert peak_bytes() - before < 50_000_000


async def test_a_zip_bomb_is_given_up_within_two_seconds(room: SandboxProvider) -> None:
    """The best of three counts: this machine may have other things to do."""
    bomb = _swollen_word()
    took = list[float]()
    assert len(bomb) < 250_000
    await room()
    for _ in range(3):
        began = anyio.current_time()
        with pytest.raises(ToolError, match="is a decompression bomb"):
            await convert_document(bomb, room, ConversionRequest(name="it"))
        took.append(anyio.current_time() - began)
    assert min(took) <= 2, took


async def test_ten_thousand_pages_are_read_as_far_as_is_sensible(room: SandboxProvider) -> None:
    pages = make.pdf([make.shown("x" * 80)] * 10_000)
    before = forget_peak()
    found = await convert_document(pages, room)
    assert found.text.startswith("[page 1 of 10000]\nxxx")
    assert any("pages are given" in note or "pages 1-" in note for note in found.notes)
    assert peak_bytes() - before < 50_000_000


async def test_a_long_text_is_cut_and_says_so(room: SandboxProvider) -> None:
    found = await convert_document(
        b"<p>" + b"word " * 400_000, room, ConversionRequest("text/html")
    )
    assert len(found.text) <= 1_000_000
    assert found.notes == ("only the first 1,000,000 characters are given",)


async def test_what_takes_too_long_is_killed(room: SandboxProvider) -> None:
    with pytest.raises(ToolError, match="took longer than 1 s to read and was stopped"):
        await convert_document(b"<div>" * 150_000, room, ConversionRequest("text/html"), 1.0)


class Owned:
    """A sandbox in which the document has taken over the program that reads it."""

    name = "owned"
    has_egress = False

    def __init__(self, said: bytes, ended: Exit) -> None:
        self._said = said
        self._ended = ended
        self.asked: list[SandboxCommand] = []

    async def run(self, command: SandboxCommand, output: Callable[[bytes, bool], None]) -> Exit:
        self.asked.append(command)
        for start in range(0, len(self._said), 1 << 16):
            output(self._said[start : start + (1 << 16)], False)
        return self._ended

    async def __call__(self) -> Sandbox:
        return self


@pytest.mark.parametrize(
    ("said", "ended", "why"),
    [
        (b"x" * (MAX_ANSWER_BYTES + 1), Exit(0), "it was stopped|could not be read"),
        (b'{"text": 7}', Exit(0), "could not be read"),
        (b"\xff\xfe", Exit(1), "could not be read"),
        (
            b"",
            Exit(None, signal=11),
            "crashed the program that reads it .signal 11.; nothing else was affected",
        ),
        (b"", Exit(None, signal=9, limit="memory"), "needs more than 512 MB of memory"),
        (b'{"unreadable": "is odd"}', Exit(0), "the document is odd"),
        (
            b'{"missing": "selectolax"}',
            Exit(0),
            "is a web page, and support for this format is not installed: pip install",
        ),
    ],
)
async def test_what_the_program_says_is_not_believed(said: bytes, ended: Exit, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        await convert_document(b"<p>", Owned(said, ended), ConversionRequest("text/html"))


async def test_it_sees_nothing_of_the_machine_but_its_libraries() -> None:
    owned = Owned(b"{}", Exit(0))
    await convert_document(b"x", owned)
    (command,) = owned.asked
    assert not any(mount.write for mount in command.mounts)
    assert not any(Path.home().is_relative_to(mount.path) for mount in command.mounts)
    assert command.env == () and command.processes <= 16


async def test_without_a_sandbox_nothing_is_read() -> None:
    async def none() -> Sandbox:
        raise SandboxUnavailable("no sandbox here")

    with pytest.raises(ToolError, match="documents are only read in the sandbox: no sandbox here"):
        await convert_document(b"<p>", none)


@pytest.mark.parametrize(
    ("data", "declared", "name", "kind"),
    [
        (b"%PDF-1.7", "text/html", "a.txt", "pdf"),
        (b"\n\n%PDF-1.4", "", "", "pdf"),
        (b"rubbish%PDF-1.4", "", "a.PDF", "pdf"),
        (b"START = b'%PDF-'", "", "a.py", "text"),
        (make.word(""), "application/pdf", "a.pdf", "docx"),
        (make.archive({"a": "b"}), "", "a.docx", "zip"),
        (b"<p>x", "text/plain", "", "text"),
        (b"<!DOCTYPE html><p>x", "", "", "html"),
        (b"<!-- x --> <html>", "application/octet-stream", "", "html"),
        (b"<html>", "", "page.py", "text"),
        (b"a,b\n1,2", "text/csv", "", "text"),
        (b"\x00\x01\x02", "text/plain", "", ""),
        (b"\x89PNG\r\n", "text/html", "", ""),
        (b"{\\rtf1}", "", "", "rtf"),
    ],
)
def test_the_first_bytes_say_what_it_is(data: bytes, declared: str, name: str, kind: str) -> None:
    assert detect_kind(data, declared, name) == kind
