"""Finds secrets in text whatever they are wrapped in: encoded, split by markup, cut into halves.

Three readings of a text are searched. The first is the text as it is, for the forms that
`secrets.forms` lists. The second is its skeleton: character references, percent and backslash
escapes are decoded, and then only ASCII letters and digits are left, without case. What a renderer
takes away or adds (emphasis, quotes, line ends, invisible characters, spaces between letters) makes
no difference there, so what is hidden before Markdown or HTML is rendered is hidden afterwards too.
The third are runs of base64 and hexadecimal digits, decoded as often as they were encoded.

Of a value that looks random, half of it counts as the whole. The time is linear in the text.
"""

from __future__ import annotations

import binascii
import codecs
import html
import re
import unicodedata
from base64 import a85encode, b16decode, b32decode, b64decode, b64encode, b85encode
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate
from urllib.parse import unquote_to_bytes

import msgspec

from .secrets import list_secret_forms

GRAM = 5
STEP = 4
"""Every stretch of GRAM + STEP - 1 characters has a piece of GRAM that begins at a multiple of
STEP."""
PIECE_CHARS = GRAM + STEP - 1
"""The shortest part of a secret that can be found."""
MIN_VALUE_CHARS = 10
"""A value with fewer letters and digits is only looked for as it is: words of a text would be taken
for it."""
HALVED_CHARS = 16
"""From here on half of a random value is a secret as well, and of one of LONG_CHARS a third."""
LONG_CHARS = 24
PREFIX_CHARS = 12
"""What a provider puts before each of its keys is shorter, and no secret."""
TARGET_CHARS = 512
"""Of a longer value, such as a private key, each line counts by itself."""
MAX_PLACES = 8
"""So many places of one piece are tried in the secrets that contain it."""
PARTIAL_CHARS = 4
"""So many letters and digits of a secret, one after the other, may be followed by the rest of
it."""
MAX_HELD_CHARS = 2_000
"""No more than this is held back."""
SHOWN_CHARS = 64
"""So much of what was shown is remembered, to see that a secret has begun in it."""
RUN_CHARS = 16
MAX_DECODE_DEPTH = 3
"""So often an encoded run is decoded again."""
MAX_DECODE_ROUNDS = 3
"""So often escapes are decoded: what is escaped may be escaped again."""

_KEPT = bytes(code for code in range(128) if chr(code).isalnum())
_DROPPED = bytes(sorted(set(range(256)) - set(_KEPT)))
_LOWER = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz")
_CODE = re.compile(
    r"\\(?:u[0-9A-Fa-f]{4}|u\{[0-9A-Fa-f]{1,6}\}|x[0-9A-Fa-f]{2}|U[0-9A-Fa-f]{8}|[0-7]{3}|n|r|t)"
)
_TAG = re.compile(r"<[!/a-zA-Z][^<>]{0,400}>")
_ESCAPE = re.compile(
    r"(?P<percent>%[0-9A-Fa-f]{2})"
    r"|(?P<entity>&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});?)"
    rf"|(?P<code>{_CODE.pattern})"
    rf"|(?P<tag>{_TAG.pattern})"
    r"|(?P<wide>[^\x00-\x7f]+)"
)
_MAY_ESCAPE = re.compile(r"[%&\\<]|[^\x00-\x7f]")
_RUN = re.compile(
    rf"[A-Za-z0-9+/_-]{{{RUN_CHARS},}}(?:[ \t]*\r?\n[ \t>]*[A-Za-z0-9+/_-]{{4,}})*={{0,6}}"
)
_BASE32 = re.compile(r"[A-Z2-7]+")
_BLANK = re.compile(r"[\s>]+")
_URL_SAFE = str.maketrans("-_", "+/")
_NUMBERS = (
    "0x{:02x}",
    "0x{:x}",
    "{}",
    "{:03}",
    "0{:o}",
    "0o{:o}",
    "{:o}",
    "{:03o}",
    "{:b}",
    "{:08b}",
    "0b{:b}",
    "0b{:08b}",
)
"""How a program or a person writes a byte among others, without what stands between them."""
_Z85 = bytes.maketrans(
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
)
"""From the alphabet of RFC 1924 to that of https://rfc.zeromq.org/spec/32/."""


class SecretHit(msgspec.Struct, frozen=True, gc=False):
    """Where a secret stands in a text, and what is to stand there instead."""

    start: int
    end: int
    instead: str


class SecretSearch:
    """Looks for these values. The second of each pair of `named` is what stands in its place."""

    def __init__(self, named: Mapping[str, str]) -> None:
        self._instead = {
            form: instead for value, instead in named.items() for form in list_secret_forms(value)
        }
        ordered = sorted(self._instead, key=len, reverse=True)
        self._exact = re.compile("|".join(map(re.escape, ordered))) if ordered else None
        self._targets: list[tuple[bytes, int, str]] = []
        self._places: dict[bytes, list[tuple[int, int]]] = {}
        self._begun: set[bytes] = set()
        for value, instead in named.items():
            for part in _split_value(value):
                for target in _iter_targets(part):
                    self._add(target, instead, halved=_looks_random(part))

    def _add(self, target: bytes, instead: str, *, halved: bool) -> None:
        # In a stream, its first letters may have been shown already.
        whole = max(PIECE_CHARS, len(target) - PARTIAL_CHARS + 1)
        least = _min_match_chars(len(target)) if halved else whole
        number = len(self._targets)
        self._targets.append((target, least, instead))
        self._begun.update(
            target[at : at + PARTIAL_CHARS] for at in range(len(target) - PARTIAL_CHARS + 1)
        )
        for at in range(len(target) - GRAM + 1):
            places = self._places.setdefault(target[at : at + GRAM], [])
            if len(places) < MAX_PLACES:
                places.append((number, at))

    def redact(self, text: str) -> str:
        """The text with every secret replaced; the very same text where there is none."""
        if self._exact is None:
            return text
        found = self._exact.sub(lambda match: self._instead[match[0]], text)
        hits = self._find_hits(found, MAX_DECODE_DEPTH) if self._places else []
        return _replace_hits(found, hits) if hits else found

    def has_secret(self, text: str) -> bool:
        """Whether a secret stands in the text, however it is wrapped."""
        return self.redact(text) is not text

    def count_partial_chars(self, text: str) -> int:
        """How many characters at the end of the text may be the beginning or the middle of a secret
        that goes on."""
        tail = text[-MAX_HELD_CHARS:]
        held = len(tail) - max(tail.rfind(blank) for blank in " \n\t") - 1
        word = tail[len(tail) - held :]
        if word.isalpha() and (len(word) == 1 or word[1:].islower()):
            held = 0
        skeleton = _skeleton(tail)
        count = 0
        while (
            skeleton[len(skeleton) - count - PARTIAL_CHARS : len(skeleton) - count] in self._begun
        ):
            count += 1
        if count == 0:
            return held
        letters = [at for at, char in enumerate(tail) if char.isascii() and char.isalnum()]
        return max(held, len(tail) - letters[-(count + PARTIAL_CHARS - 1)])

    def _find_hits(self, text: str, depth: int) -> list[SecretHit]:
        reading = DecodedText.from_text(text)
        hits = list(self._find_in_skeleton(reading))
        if any(self._find_spans(_skeleton(plain)) for plain in _iter_decoded(text)):
            # Rare, and slower: this time the origin of every stretch is tracked.
            for _ in range(MAX_DECODE_ROUNDS):
                decoded = reading.decode_once()
                if decoded is None:
                    break
                reading = decoded
                hits += self._find_in_skeleton(reading)
            hits = hits or [SecretHit(0, len(text), self._targets[0][2])]
        if depth > 0:
            hits += self._find_in_runs(text, depth)
        return hits

    def _find_in_skeleton(self, reading: DecodedText) -> list[SecretHit]:
        """What stands in the letters and digits of the text."""
        stretches = self._find_spans(_skeleton(reading.text))
        if not stretches:
            return []
        places = reading.find_origins([(start, end) for start, end, _ in stretches])
        return [
            SecretHit(start, end, instead)
            for (start, end), (_, _, instead) in zip(places, stretches, strict=True)
        ]

    def _find_spans(self, skeleton: bytes) -> list[tuple[int, int, str]]:
        """Where secrets stand in a skeleton, from left to right."""
        pieces = [skeleton[at : at + GRAM] for at in range(0, len(skeleton) - GRAM + 1, STEP)]
        if self._places.keys().isdisjoint(pieces):
            return []
        found: list[tuple[int, int, str]] = []
        over = 0
        for index, piece in enumerate(pieces):
            at = index * STEP
            if at < over or piece not in self._places:
                continue
            start, end, instead = self._find_longest_span(skeleton, at, piece)
            if end > start:
                over = end
                found.append((start, end, instead))
        return found

    def _find_longest_span(self, skeleton: bytes, at: int, piece: bytes) -> tuple[int, int, str]:
        """The longest stretch around this place that is long enough a part of a secret."""
        best = 0
        found = (0, 0, "")
        for number, offset in self._places[piece]:
            target, least, instead = self._targets[number]
            start = at
            end = at + GRAM
            back = offset
            ahead = offset + GRAM
            while start > 0 and back > 0 and skeleton[start - 1] == target[back - 1]:
                start -= 1
                back -= 1
            while end < len(skeleton) and ahead < len(target) and skeleton[end] == target[ahead]:
                end += 1
                ahead += 1
            if end - start >= least and end - start > best:
                best = end - start
                found = (start, end, instead)
        return found

    def _find_in_runs(self, text: str, depth: int) -> Iterator[SecretHit]:
        """What stands in runs of digits that encode something."""
        for run in _RUN.finditer(text):
            for inner in _decode_run(run[0]):
                hits = self._find_hits(inner, depth - 1)
                exact = self._exact.search(inner) if self._exact is not None else None
                if hits:
                    instead = hits[0].instead
                elif exact is not None:
                    instead = self._instead[exact[0]]
                else:
                    continue
                if instead:
                    yield SecretHit(run.start(), run.end(), instead)
                    break


class SecretStream:
    """Hides secrets in a text that comes in pieces. What may be a part of a secret is held back
    until it is clear whether it is one: at most HELD_CHARS, and hardly ever more than a word."""

    def __init__(self, search: SecretSearch) -> None:
        self._search = search
        self._shown = ""
        self._held = ""

    def feed(self, piece: str) -> str:
        """What may be shown now."""
        text = self._held + piece
        held = min(self._search.count_partial_chars(self._shown + text), len(text))
        if held >= MAX_HELD_CHARS:
            held = 0
        self._held = text[len(text) - held :]
        shown = text[: len(text) - held]
        self._shown = (self._shown + shown)[-SHOWN_CHARS:]
        return self._search.redact(shown)

    def close(self) -> str:
        """What was held back, without secrets: no more comes."""
        rest = self._search.redact(self._held)
        self._held = ""
        return rest


class DecodedText(msgspec.Struct, frozen=True, gc=False):
    """A text, and where each stretch of it stood in the text that it was decoded from."""

    text: str
    starts: tuple[int, ...]
    origins: tuple[tuple[int, int, bool], ...]
    """Of each stretch: where it stood, and whether it was decoded as one piece."""

    @classmethod
    def from_text(cls, text: str) -> DecodedText:
        return cls(text, (0,), ((0, len(text), False),))

    def decode_once(self) -> DecodedText | None:
        """With its escapes decoded once more; None where it has none."""
        if _MAY_ESCAPE.search(self.text) is None:
            return None
        pieces: list[str] = []
        starts: list[int] = []
        stood: list[tuple[int, int, bool]] = []
        at = 0
        length = 0
        changed = False
        for found in _ESCAPE.finditer(self.text):
            plain = _decode_escape(found)
            if plain == found[0]:
                continue
            changed = True
            if found.start() > at:
                length = self._copy_spans(at, found.start(), (pieces, starts, stood), length)
            pieces.append(plain)
            starts.append(length)
            first, last = self._find_origin(found.start(), found.end())
            stood.append((first, last, True))
            length += len(plain)
            at = found.end()
        if not changed:
            return None
        if at < len(self.text):
            self._copy_spans(at, len(self.text), (pieces, starts, stood), length)
        return DecodedText("".join(pieces), tuple(starts), tuple(stood))

    def _copy_spans(
        self,
        start: int,
        end: int,
        to: tuple[list[str], list[int], list[tuple[int, int, bool]]],
        length: int,
    ) -> int:
        """Take over what stands between these places, stretch by stretch."""
        pieces, starts, stood = to
        index = bisect_right(self.starts, start) - 1
        while start < end:
            after = self.starts[index + 1] if index + 1 < len(self.starts) else len(self.text)
            stop = min(end, after)
            pieces.append(self.text[start:stop])
            starts.append(length)
            first, last, whole = self.origins[index]
            begun = first if whole else first + start - self.starts[index]
            stood.append((begun, last if whole else begun + stop - start, whole))
            length += stop - start
            start = stop
            index = index + 1
        return length

    def _find_origin(self, start: int, end: int) -> tuple[int, int]:
        """Where the characters from `start` up to `end` stood in the first text."""
        index = bisect_right(self.starts, start) - 1
        first, _, whole = self.origins[index]
        begun = first if whole else first + start - self.starts[index]
        index = bisect_right(self.starts, end - 1) - 1
        first, last, whole = self.origins[index]
        return begun, last if whole else first + end - self.starts[index]

    def find_origins(self, stretches: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Where the letters and digits from one number up to another stood in the first text."""
        words = [(found.start(), found.end()) for found in re.finditer("[0-9A-Za-z]+", self.text)]
        counted = list(accumulate((last - first for first, last in words), initial=0))
        found: list[tuple[int, int]] = []
        for start, end in stretches:
            one = bisect_right(counted, start) - 1
            other = bisect_right(counted, end - 1) - 1
            begun = words[one][0] + start - counted[one]
            over = words[other][0] + end - counted[other]
            found.append(self._find_origin(begun, over))
        return found


def _skeleton(text: str) -> bytes:
    """The ASCII letters and digits of a text, in lower case."""
    return text.encode("ascii", "ignore").translate(_LOWER, _DROPPED)


def _min_match_chars(length: int) -> int:
    """How much of a random value of this length is found by itself."""
    if length >= LONG_CHARS:
        return max(PREFIX_CHARS, length // 3)
    return max(PIECE_CHARS, length // 2 - 1)


def _iter_decoded(text: str) -> Iterator[str]:
    """The text with its escapes decoded once, twice, as often as there are any: without where they
    stood."""
    for _ in range(MAX_DECODE_ROUNDS):
        if _MAY_ESCAPE.search(text) is None:
            return
        plain = text
        if not plain.isascii():
            plain = unicodedata.normalize("NFKC", plain).encode("ascii", "ignore").decode()
        if "<" in plain:
            plain = _TAG.sub("", plain)
        if "%" in plain:
            plain = unquote_to_bytes(plain).decode("ascii", "ignore")
        if "&" in plain:
            plain = html.unescape(plain)
        if "\\" in plain:
            plain = _CODE.sub(lambda found: _decode_backslash(found[0]), plain)
        if plain == text:
            return
        yield plain
        text = plain


def _decode_escape(found: re.Match[str]) -> str:
    """What an escape stands for, as far as it is ASCII. A tag is nothing."""
    match found.lastgroup:
        case "percent":
            return chr(int(found[0][1:], 16))
        case "entity":
            return html.unescape(found[0])
        case "code":
            return _decode_backslash(found[0])
        case "tag":
            return ""
        case _:
            return unicodedata.normalize("NFKC", found[0]).encode("ascii", "ignore").decode()


def _decode_backslash(escape: str) -> str:
    digits = escape[2:].strip("{}") if escape[1] in "uUx" else ""
    if digits:
        code = int(digits, 16)
        return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else ""
    return chr(int(escape[1:], 8)) if escape[1].isdigit() else " "


def _split_value(value: str) -> Iterator[str]:
    """The value, or each of its lines where it is long."""
    if len(value) <= TARGET_CHARS:
        yield value
        return
    for line in value.splitlines() or (value,):
        yield line.strip()[:TARGET_CHARS]


def _looks_random(value: str) -> bool:
    """Whether half of it can hardly stand anywhere by chance."""
    if len(_skeleton(value)) < HALVED_CHARS or any(char.isspace() for char in value):
        return False
    kinds = (str.islower, str.isupper, str.isdigit)
    return sum(any(kind(char) for char in value) for kind in kinds) >= 2


def _iter_targets(value: str) -> Iterator[bytes]:
    """The skeletons of a value: as it is, backwards, rotated, and encoded once, wherever in a
    longer text; and of its bytes as numbers, which stand one by one."""
    skeleton = _skeleton(value)
    if len(skeleton) < MIN_VALUE_CHARS:
        return
    raw = value.encode(errors="surrogateescape")
    found = {skeleton, skeleton[::-1], _skeleton(codecs.encode(value, "rot13")), raw.hex().encode()}
    for before in range(3):  # where it begins within a group of three bytes
        core = b64encode(bytes(before) + raw).decode()[
            before + bool(before) : (before + len(raw)) * 8 // 6
        ]
        found.add(_skeleton(core))
        found.add(_skeleton(core)[::-1])
    for form in _NUMBERS:
        found.add("".join(form.format(code) for code in raw).encode())
    for before in range(4):  # where it begins within a group of four bytes
        padded = bytes(before) + raw
        groups = (before + len(raw)) // 4
        for encode in (b85encode, a85encode, _z85encode):
            found.add(_skeleton(encode(padded).decode()[5 * bool(before) : 5 * groups]))
    yield from sorted(each for each in found if len(each) >= PIECE_CHARS)


def _z85encode(data: bytes) -> bytes:
    return b85encode(data).translate(_Z85)


def _decode_run(run: str) -> Iterator[str]:
    """What a run of digits may encode, as text."""
    digits = _BLANK.sub("", run).rstrip("=")
    for start in range(4):  # other letters may stand before it
        piece = digits[start:].translate(_URL_SAFE)
        piece = piece[: len(piece) // 4 * 4 + (0 if len(piece) % 4 == 1 else len(piece) % 4)]
        yield from _try_decode(b64decode, piece + "=" * (-len(piece) % 4))
    even = digits[: len(digits) // 2 * 2].upper()
    yield from _try_decode(b16decode, even)
    if _BASE32.fullmatch(digits):
        for start in range(8):
            piece = digits[start:]
            piece = piece[: len(piece) // 8 * 8]
            yield from _try_decode(b32decode, piece)


def _try_decode(decode: Callable[[str], bytes], digits: str) -> Iterator[str]:
    try:
        raw = decode(digits)
    except (binascii.Error, ValueError):
        return
    if raw and raw.isascii():
        yield raw.decode()


def _replace_hits(text: str, hits: list[SecretHit]) -> str:
    """The text with what was found replaced; where two overlap, all of both."""
    out: list[str] = []
    at = 0
    merged: list[SecretHit] = []
    for hit in sorted(hits, key=lambda each: (each.start, -each.end)):
        if merged and hit.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = SecretHit(last.start, max(last.end, hit.end), last.instead)
        else:
            merged.append(hit)
    for hit in merged:
        out.append(text[at : hit.start])
        out.append(hit.instead)
        at = hit.end
    out.append(text[at:])
    return "".join(out)
