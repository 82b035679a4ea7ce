"""E-books (EPUB 3.3): their chapters, in the order of reading."""

from __future__ import annotations

from urllib.parse import unquote

from .archive import Archive, parse_xml, resolve_entry
from .encodings import decode_text
from .found import ExtractedText, Unreadable
from .html import read_html


def read_epub(archive: Archive, found: ExtractedText) -> None:
    """Every chapter. Raises Unreadable and Full."""
    roots: list[str] = []
    parse_xml(
        archive,
        "META-INF/container.xml",
        found,
        lambda _, given: roots.append(given.get("full-path", "")),
    )
    root = next((each for each in roots if each in archive), "")
    if not root:
        raise Unreadable("is damaged: its list of chapters is missing")
    files: dict[str, str] = {}
    order: list[str] = []
    title: list[str] = []
    inside = [""]

    def start(name: str, given: dict[str, str]) -> None:
        inside[0] = name.rpartition(" ")[2]
        if inside[0] == "item":
            files[given.get("id", "")] = resolve_entry(
                root.rpartition("/")[0], unquote(given.get("href", ""))
            )
        elif inside[0] == "itemref":
            order.append(given.get("idref", ""))

    def text(text: str) -> None:
        if inside[0] == "title":
            title.append(text)

    parse_xml(archive, root, found, start, lambda _: inside.__setitem__(0, ""), text)
    for each in order:
        if files.get(each, "") in archive:
            read_html(decode_text(archive.read(files[each])), "", "", found)
    found.title = " ".join("".join(title).split())[:300]
