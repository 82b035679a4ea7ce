"""Zip archives and the XML in them, read with bounds that hold whatever their directory says."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from xml.parsers import expat

from .found import ExtractedText, Unreadable

MAX_UNPACKED_BYTES = 200 << 20
"""What may be unpacked of one archive, in all."""
MAX_RATIO = 200
RATIO_FROM_BYTES = 8 << 20
"""How many times larger than packed an entry may become, once it is larger than this."""
MAX_ENTRIES = 20_000
_PIECE_BYTES = 1 << 16


class Archive:
    """An archive of which the entries are read one by one. Raises Unreadable for what cannot be,
    and for bombs."""

    def __init__(self, data: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError) as error:
            raise Unreadable(f"is damaged: {error}") from error
        entries = self._zip.infolist()
        if len(entries) > MAX_ENTRIES:
            raise Unreadable(
                f"holds {len(entries):,} entries, more than the {MAX_ENTRIES:,} that are read"
            )
        self.entries = {entry.filename: entry for entry in entries}
        self._left = MAX_UNPACKED_BYTES

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    def iter_pieces(self, name: str) -> Iterator[bytes]:
        """The bytes of an entry, bounded as they come."""
        entry = self.entries.get(name)
        if entry is None:
            raise Unreadable(f"is damaged: {name!r} is missing in it")
        if entry.flag_bits & 1:
            raise Unreadable("is protected with a password")
        seen = 0
        try:
            with self._zip.open(entry) as file:
                while piece := file.read(_PIECE_BYTES):
                    seen += len(piece)
                    self._left -= len(piece)
                    if self._left < 0:
                        raise Unreadable(
                            f"unpacks to more than {MAX_UNPACKED_BYTES >> 20} MB: a decompression "
                            "bomb, or too large"
                        )
                    if seen > RATIO_FROM_BYTES and seen > MAX_RATIO * max(entry.compress_size, 1):
                        grows = (
                            f"{name!r} grows to over {MAX_RATIO} times its size when it is unpacked"
                        )
                        raise Unreadable(f"is a decompression bomb: {grows}")
                    yield piece
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            OSError,
            NotImplementedError,
            RuntimeError,
        ) as error:
            raise Unreadable(f"is damaged: {name!r}: {error}") from error

    def read(self, name: str, most_bytes: int = 16 << 20) -> bytes:
        """A whole entry that must fit into memory."""
        whole = bytearray()
        for piece in self.iter_pieces(name):
            whole += piece
            if len(whole) > most_bytes:
                raise Unreadable(
                    f"cannot be read: {name!r} in it is larger than {most_bytes >> 20} MB"
                )
        return bytes(whole)


def parse_xml(
    archive: Archive,
    name: str,
    found: ExtractedText,
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None] = lambda _: None,
    text: Callable[[str], None] = lambda _: None,
) -> None:
    """Read an entry as XML, piece by piece. Names come as `namespace name`. What declares entities
    is refused.

    Raises Unreadable and Full.
    """
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.EntityDeclHandler = _reject_entity
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    try:
        for piece in archive.iter_pieces(name):
            parser.Parse(piece, False)
            found.check_time()
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise Unreadable(f"is damaged: {name!r}: {error}") from error


def _reject_entity(*_: object) -> None:
    raise Unreadable(
        "declares XML entities, which office programs do not use and decompression bombs do"
    )


def read_relations(archive: Archive, part: str, found: ExtractedText) -> dict[str, tuple[str, str]]:
    """The relations of an Office Open XML part: by id, the target (a part's name, or an address)
    and its kind."""
    folder, _, file = part.rpartition("/")
    name = f"{folder}/_rels/{file}.rels" if folder else f"_rels/{file}.rels"
    known: dict[str, tuple[str, str]] = {}

    def start(_: str, given: dict[str, str]) -> None:
        target = given.get("Target", "")
        if given.get("TargetMode") != "External":
            target = resolve_entry(folder, target)
        known[given.get("Id", "")] = (target, given.get("Type", "").rpartition("/")[2])

    if name in archive:
        parse_xml(archive, name, found, start)
    return known


def resolve_entry(folder: str, target: str) -> str:
    """A path relative to a folder of the archive, as an entry's name."""
    parts = [] if target.startswith("/") else [each for each in folder.split("/") if each]
    for each in target.split("/"):
        if each == "..":
            del parts[-1:]
        elif each not in ("", "."):
            parts.append(each)
    return "/".join(parts)
