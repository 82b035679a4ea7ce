"""What a mail says, as a channel hands it in.

Only what its sender typed is their word: not what they quote, pass on or attach. And it is theirs
only where our own mail server vouches for it, since everybody can write any name into a mail.

https://www.rfc-editor.org/rfc/rfc5322, rfc8601 (Authentication-Results), rfc3834 (automatic ones)
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from email.utils import getaddresses, parsedate_to_datetime
from hashlib import sha256
from html.parser import HTMLParser

import msgspec

from ...types.identity import Address, Inbound, Said
from ...types.labels import Label
from ...types.messages import Audio, File, Image, Message, Part, Text

PASSED_ON = Label("untrusted", source="something quoted in a mail")
MAX_TEXT_CHARS = 200_000
MAX_FILES = 50
_PICTURES = ("image/png", "image/jpeg", "image/webp", "image/gif")
_SIGNERS = ("header.d", "header.i")
_ID = re.compile(r"<([^<>\s]{1,900})>")
_QUOTE_HEAD = re.compile(
    r"^(On|Am|Le|El|Il|Op|Em) .{5,200}(wrote|schrieb|écrit|escribió)[^\n]{0,80}:$"
)
_PASSED_ON = re.compile(
    r"^-{2,}\s?(Forwarded message|Original Message|Weitergeleitete Nachricht"
    r"|Ursprüngliche Nachricht|Begin forwarded message)\b",
    re.IGNORECASE,
)

PutBlob = Callable[[bytes], Awaitable[str]]


class Letter(msgspec.Struct, frozen=True):
    """What is known of a mail without its text. `sender` is the address that it gives."""

    id: str
    root: str
    sender: str
    subject: str
    is_verified: bool
    by_program: bool
    is_answer: bool


def parse_mail(data: bytes) -> EmailMessage:
    """Whatever it is: a broken mail is read as far as it can be."""
    message = BytesParser(policy=default).parsebytes(data)
    assert isinstance(message, EmailMessage)
    return message


def read_letter(mail: EmailMessage, verified_by: str) -> Letter:
    """Who writes, and in which thread. `verified_by` is the name under which our own mail server
    says what it found out about a sender."""
    found = _ID.findall(_header(mail, "Message-ID"))
    name = found[0] if found else sha256(mail.as_bytes()).hexdigest()
    before = _ID.findall(_header(mail, "References")) or _ID.findall(_header(mail, "In-Reply-To"))
    addresses = getaddresses([_header(mail, "From")])
    sender = addresses[0][1].lower() if len(addresses) == 1 else ""
    return Letter(
        name,
        before[0] if before else name,
        sender,
        " ".join(_header(mail, "Subject").split())[:500],
        bool(sender) and _is_verified(mail, sender, verified_by),
        _is_by_program(mail),
        bool(before),
    )


def _header(mail: EmailMessage, name: str) -> str:
    """'' where it is missing, or cannot be read."""
    try:
        return str(mail.get(name, ""))
    except (ValueError, IndexError, AttributeError):  # malformed, and the library trips over it
        return ""


def _is_verified(mail: EmailMessage, sender: str, verified_by: str) -> bool:
    """Whether our server says that the domain of the sender vouches for the mail. What a stranger
    wrote into such a header stands below ours, or names another server."""
    for value in (mail.get_all("Authentication-Results") or ())[:1]:
        text = " ".join(str(value).split())
        server, _, results = text.partition(";")
        if not server.split() or server.split()[0].lower() != verified_by.lower():
            return False
        domain = sender.rpartition("@")[2]
        return any(_vouches(result.split(), domain) for result in results.split(";"))
    return False


def _vouches(words: list[str], domain: str) -> bool:
    """Whether this result says that the domain of the sender sent it."""
    said = [word.lower().partition("=") for word in words]
    if not said or said[0][2] != "pass":
        return False
    if said[0][0] == "dmarc":
        return True
    signers = [value.rpartition("@")[2] for key, _, value in said if key in _SIGNERS]
    return said[0][0] == "dkim" and domain in signers


def _is_by_program(mail: EmailMessage) -> bool:
    automatic = _header(mail, "Auto-Submitted").lower()
    return (
        (bool(automatic) and not automatic.startswith("no"))
        or _header(mail, "Precedence").lower() in ("bulk", "list", "junk")
        or bool(mail.get("List-Id"))
        or bool(mail.get("X-Auto-Response-Suppress"))
        or _header(mail, "Return-Path").strip() == "<>"
    )


async def read_mail(
    mail: EmailMessage, letter: Letter, here: Address, keep: PutBlob, now: float
) -> Inbound | None:
    """What there is in it for an agent; None for an empty one."""
    parts = [*await _read_files(mail, keep)]
    own, quoted = split_quoted(_read_text(mail)[:MAX_TEXT_CHARS])
    if quoted and not letter.is_answer:  # in an answer it is what was said here before
        data = quoted.encode()
        parts.append(File(await keep(data), "quoted mail.txt", "text/plain", len(data)))
    subject = "" if letter.is_answer else letter.subject
    if text := "\n\n".join(each for each in (subject, own) if each):
        parts.append(Text(text))
    if not parts:
        return None
    address = Address(here.channel, here.account, letter.sender, letter.root)
    return Inbound(
        letter.id,
        address,
        letter.sender,
        _read_date(mail, now),
        Said(Message("user", tuple(parts))),
        by_program=letter.by_program,
    )


def _read_date(mail: EmailMessage, now: float) -> float:
    try:
        return min(parsedate_to_datetime(_header(mail, "Date")).timestamp(), now)
    except (ValueError, TypeError, OverflowError):
        return now


def _read_text(mail: EmailMessage) -> str:
    """The plain text, or else that of the page."""
    for kind in ("plain", "html"):
        body = mail.get_body((kind,))
        text = _decode(body) if isinstance(body, EmailMessage) else ""
        if text.strip():
            return html_to_text(text) if kind == "html" else text
    return ""


def _decode(body: EmailMessage) -> str:
    try:
        return str(body.get_content())
    except (LookupError, ValueError, KeyError):  # an encoding that nobody knows
        data = body.get_payload(decode=True)
        return data.decode(errors="replace") if isinstance(data, bytes) else ""


def split_quoted(text: str) -> tuple[str, str]:
    """What was typed, without a signature; and what stands below it of others."""
    own: list[str] = []
    lines = text.replace("\r\n", "\n").split("\n")
    for i, line in enumerate(lines):
        bare = line.strip()
        if bare.startswith(">") or _PASSED_ON.match(bare) or _QUOTE_HEAD.match(bare):
            return "\n".join(own).strip(), "\n".join(lines[i:]).strip()
        if line.rstrip("\n") in ("-- ", "--"):
            rest = [at for at in range(i, len(lines)) if lines[at].lstrip().startswith(">")]
            return "\n".join(own).strip(), "\n".join(lines[rest[0] :]).strip() if rest else ""
        own.append(line)
    return "\n".join(own).strip(), ""


class _TextOfHtml(HTMLParser):
    """The words of a page in lines; what is quoted begins with `>`."""

    _BLOCKS = frozenset(("p", "div", "br", "li", "tr", "h1", "h2", "h3", "blockquote", "pre"))
    _HIDDEN = frozenset(("script", "style", "head", "title", "template"))

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._words: list[str] = []
        self._hidden = 0
        self._quotes = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in self._HIDDEN
        quotes = tag == "blockquote" or (tag == "div" and ("class", "gmail_quote") in attrs)
        if quotes and not self._quotes:
            self._words.append("\n> ")
        self._quotes += quotes
        if tag in self._BLOCKS:
            self._words.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in self._HIDDEN and self._hidden > 0
        if tag in self._BLOCKS:
            self._words.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._words.append(" ".join(data.split()) + (" " if data[-1:].isspace() else ""))

    @property
    def text(self) -> str:
        lines = (line.strip() for line in "".join(self._words).split("\n"))
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def html_to_text(html: str) -> str:
    parser = _TextOfHtml()
    parser.feed(html)
    parser.close()
    return parser.text


async def _read_files(mail: EmailMessage, keep: PutBlob) -> list[Part]:
    found: list[Part] = []
    for part in list(mail.iter_attachments())[:MAX_FILES]:
        name = part.get_filename() or "attached"
        if part.get_content_maintype() == "message":
            data = b"".join(each.as_bytes() for each in part.iter_parts()) or part.as_bytes()
            name = part.get_filename() or "forwarded mail.eml"
        else:
            payload = part.get_payload(decode=True)
            data = payload if isinstance(payload, bytes) else b""
        mime = part.get_content_type()
        blob = await keep(data)
        if mime in _PICTURES:
            found.append(Image(blob, mime, name))
        elif mime.startswith("audio/"):
            found.append(Audio(blob, mime))
        else:
            found.append(File(blob, name, mime, len(data)))
    return found
