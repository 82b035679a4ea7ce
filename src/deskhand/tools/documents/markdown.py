"""Writes a tree of HTML as Markdown, without recursion: pages may nest as deep as they like."""

from __future__ import annotations

import re
from urllib.parse import urljoin

from selectolax.lexbor import LexborNode

from .found import ExtractedText, format_cell

_SPACE = re.compile(r"[ \t\n\r\f\xa0]+")
_BLOCK_TAGS = """
address article aside blockquote body caption center details dialog dd div dl dt fieldset figcaption figure footer form
h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav ol optgroup option p pre search section summary table
tbody td tfoot th thead tr ul
"""  # noqa: E501
_BLOCKS = frozenset(_BLOCK_TAGS.split())
_MARKS = {
    "b": "**",
    "strong": "**",
    "em": "*",
    "i": "*",
    "del": "~~",
    "s": "~~",
    "code": "`",
    "kbd": "`",
    "samp": "`",
}
_MAX_DEPTH = 200
"""Deeper than this, elements are only looked through for their text."""
_MAX_COLUMNS = 60
_MAX_CELLS = 50_000


class Markdown:
    """Writes into `found`; links are made absolute at `base`."""

    def __init__(self, found: ExtractedText, base: str) -> None:
        self._found = found
        self._base = base
        self._line: list[str] = []
        self._open: list[
            tuple[str, int, str]
        ] = []  # marks and links: tag, where in the line it began, its address
        self._before: list[
            str
        ] = []  # what stands before each line: quotes and the indents of lists
        self._item = ""  # the sign of a list's item that has no line yet
        self._lists: list[int] = []  # the number of the next item; -1 where it has none
        self._heading = ""
        self._raw = 0  # how many <pre> are open
        self._rows: list[list[str]] | None = None  # of the table that is open
        self._cells = self._in_table = 0

    def write(self, root: LexborNode) -> None:
        """Write `root` with all that is in it. Raises Full."""
        node = root
        depth = 0
        while True:
            child = self._enter(node, depth)
            if child is not None:
                node = child
                depth = depth + 1
                continue
            while True:
                self._leave(node, depth)
                if node.mem_id == root.mem_id:
                    self._flush_block()
                    return
                following = node.next
                above = node.parent
                if following is not None:
                    node = following
                    break
                if above is None:
                    self._flush_block()
                    return
                node = above
                depth = depth - 1

    def _enter(self, node: LexborNode, depth: int) -> LexborNode | None:
        """Begin a node; what to go on with inside it."""
        tag = node.tag or ""
        if tag == "-text":
            self._add_text(node.text_content or "")
            return None
        if tag.startswith("-") or depth > _MAX_DEPTH:
            return node.child
        if tag in _BLOCKS:
            self._begin_block(tag, node)
        elif tag == "br":
            self._line.append("\n" if not self._in_table else " ")
        elif tag == "img":
            self._add_picture(node)
        elif tag == "a":
            self._open.append(
                (tag, len(self._line), self._absolute_url(node.attributes.get("href") or ""))
            )
        elif tag in _MARKS and not self._raw and not self._heading:
            self._open.append((tag, len(self._line), ""))
        return node.child

    def _leave(self, node: LexborNode, depth: int) -> None:
        tag = node.tag or ""
        if depth > _MAX_DEPTH or tag.startswith("-"):
            return
        if tag in _BLOCKS:
            self._finish_block(tag)
        elif self._open and self._open[-1][0] == tag:
            self._close_mark(*self._open.pop())

    def _add_text(self, text: str) -> None:
        self._line.append(text if self._raw else _SPACE.sub(" ", text))

    def _add_picture(self, node: LexborNode) -> None:
        words = " ".join((node.attributes.get("alt") or "").split())
        if not words:
            return
        source = self._absolute_url(node.attributes.get("src") or "")
        in_link = any(tag == "a" for tag, _, _ in self._open)
        if source and not in_link:
            self._line.append(f"![{_escape_link_text(words)}]({source})")
        else:
            self._line.append(f"[picture: {words}]")

    def _close_mark(self, tag: str, begin: int, address: str) -> None:
        """Put what came since `begin` into its marks; spaces at its ends stay outside."""
        inner = "".join(self._line[begin:])
        words = inner.strip()
        if not words or (tag == "a" and not address):
            return
        if tag == "a":
            marked = f"[{_escape_link_text(words)}]({address})"
        else:
            sign = _MARKS[tag]
            marked = f"{sign}{words}{sign}" if sign != "`" or "`" not in words else words
        lead = inner[: len(inner) - len(inner.lstrip())]
        tail = inner[len(inner.rstrip()) :]
        self._line[begin:] = [lead, marked, tail]

    def _begin_block(self, tag: str, node: LexborNode) -> None:
        if tag == "table" and self._rows is None and self._is_data_table(node):
            self._flush_block()
            self._rows = []
        if self._rows is not None:
            self._begin_in_table(tag)
            return
        self._flush_block()
        if tag[0] == "h" and tag[1:].isdigit():
            self._heading = "#" * int(tag[1:]) + " "
        elif tag == "pre":
            self._raw += 1
        elif tag == "blockquote":
            self._before.append("> ")
        elif tag == "ol":
            start = node.attributes.get("start") or "1"
            self._lists.append(int(start) if start.isdecimal() and len(start) < 7 else 1)
        elif tag in ("ul", "menu"):
            self._lists.append(-1)
        elif tag == "li":
            number = self._lists[-1] if self._lists else -1
            self._item = "- " if number < 0 else f"{number}. "
            if number >= 0:
                self._lists[-1] += 1
            self._before.append(" " * len(self._item))
        elif tag == "dd":
            self._before.append("  ")
        elif tag == "hr":
            self._line.append("---")

    def _finish_block(self, tag: str) -> None:
        if self._rows is not None:
            self._finish_in_table(tag)
            return
        self._flush_block()
        if tag == "pre":
            self._raw -= 1
        elif tag in ("blockquote", "li", "dd") and self._before:
            self._before.pop()
            self._item = ""
        elif tag in ("ul", "menu", "ol") and self._lists:
            self._lists.pop()
            if not self._lists:
                self._found.add("\n")
        self._heading = ""

    def _flush_block(self) -> None:
        """Write the line that was gathered, and go on with an empty one."""
        if not self._line:
            return
        for at, (tag, begin, address) in enumerate(reversed(self._open)):
            self._close_mark(tag, begin, address)
            self._open[-1 - at] = (tag, 0, "")  # it goes on in the next block, without marks
        text = "".join(self._line)
        self._line = []
        if self._raw:
            text = text.strip("\n")
            runs = re.findall(r"`{3,}", text)
            fence = "`" * max((len(run) + 1 for run in runs), default=3)
            lines = [fence, *text.split("\n"), fence] if text.strip() else []
        else:
            stripped = (_SPACE.sub(" ", each).strip() for each in text.split("\n"))
            lines = [line for line in stripped if line]
        if not lines:
            return
        if self._heading and not self._raw:
            lines = [self._heading + " ".join(lines)]
        before = "".join(self._before)
        first = before[: len(before) - len(self._item)] + self._item if self._item else before
        self._item = ""
        whole = first + lines[0] + "".join(f"\n{before}{line}" for line in lines[1:])
        self._found.add(whole + ("\n" if self._lists else "\n\n"))

    def _is_data_table(self, node: LexborNode) -> bool:
        """A table of values, rather than one that lays out a page."""
        cells = node.css("td, th")
        rows = len(node.css("tr"))
        blocks = node.css_first(
            "table table, ul, ol, pre, blockquote, form, h1, h2, h3, article, section"
        )
        is_small = len(cells) <= min(_MAX_CELLS, rows * _MAX_COLUMNS)
        has_columns = 0 < rows < len(cells)
        return is_small and has_columns and blocks is None

    def _begin_in_table(self, tag: str) -> None:
        rows = self._rows
        assert rows is not None
        self._in_table += tag == "table"
        if tag == "tr":
            rows.append([])
        elif tag in ("td", "th"):
            self._line = []
            self._open = []
        else:
            self._line.append(" ")

    def _finish_in_table(self, tag: str) -> None:
        rows = self._rows
        assert rows is not None
        if tag in ("td", "th") and rows:
            rows[-1].append("".join(self._line))
            self._line = []
        elif tag == "caption":
            caption = "".join(self._line)
            self._line = []
            self._found.add_block("".join(self._before) + format_cell(caption))
        elif tag == "table":
            self._in_table -= 1
            if not self._in_table:
                self._rows = None
                self._line = []
                self._found.add_table(row for row in rows if any(row))

    def _absolute_url(self, to: str) -> str:
        """See html.joined; fragments of this page lead nowhere else."""
        to = to.strip()
        if not to or to.startswith("#"):
            return ""
        try:
            whole = urljoin(self._base, to)
        except ValueError:
            return ""
        if not whole.lower().startswith(("http://", "https://", "mailto:")):
            return ""
        return re.sub(r"[\s()<>\x00-\x1f]", lambda found: f"%{ord(found[0]):02X}", whole)


def _escape_link_text(words: str) -> str:
    """The words of a link, on one line, that end where they should."""
    plain = " ".join(words.split())
    return plain if plain.startswith("![") else plain.replace("[", "\\[").replace("]", "\\]")
