"""What a mail says, as a channel hands it in.

Only what its sender typed is their word: not what they quote, pass on or attach. And it is theirs
only where our own mail server vouches for it, since everybody can write any name into a mail.

https://www.rfc-editor.org/rfc/rfc5322, rfc8601 (Authentication-Results), rfc3834 (automatic ones)
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from email.utils import parsedate_to_datetime
from hashlib import sha256

import msgspec

from ...types.identity import Address, Inbound, Said
from ...types.labels import UNTRUSTED, Label
from ...types.marked_texts import mark_text
from ...types.messages import Audio, File, Image, Message, Part, Text
from .authentication import is_vouched_for, read_sender
from .quoting import html_to_text, is_forwarded, split_quoted

PASSED_ON = Label("untrusted", source=mark_text("something quoted in a mail"))
MAX_TEXT_CHARS = 200_000
MAX_FILES = 50
MAX_HEAD_BYTES = 2**16
MAX_HEADER = 2**13
_HEADERS = re.compile(rb"\r?\n(?![ \t])")
MAX_SUBJECT_CHARS = 500
_PICTURES = ("image/png", "image/jpeg", "image/webp", "image/gif")
_ID = re.compile(r"<([^<>\s]{1,900})>")
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
    answers: str


def parse_mail(data: bytes) -> EmailMessage:
    """Whatever it is: a broken mail is read as far as it can be. Raises ValueError for a head that
    nobody writes: the library takes minutes and gigabytes for some."""
    head = data[: data.find(b"\r\n\r\n")] if b"\r\n\r\n" in data else data[:MAX_HEAD_BYTES]
    if len(head) > MAX_HEAD_BYTES or max(map(len, _HEADERS.split(head)), default=0) > MAX_HEADER:
        raise ValueError("its head is too long")
    message = BytesParser(policy=default).parsebytes(data)
    assert isinstance(message, EmailMessage)
    return message


def read_letter(mail: EmailMessage, verified_by: str) -> Letter:
    """Who writes, and in which thread. `verified_by` is the name under which our own mail server
    says what it found out about a sender."""
    found = _ID.findall(_header(mail, "Message-ID"))
    name = found[0] if found else sha256(mail.as_bytes()).hexdigest()
    answered = _ID.findall(_header(mail, "In-Reply-To"))
    before = _ID.findall(_header(mail, "References")) or answered
    sender = read_sender(mail)
    return Letter(
        name,
        before[0] if before else name,
        sender,
        read_subject(mail),
        is_vouched_for(mail, sender, verified_by),
        _is_by_program(mail),
        bool(before),
        answered[-1] if answered else "",
    )


def read_subject(mail: EmailMessage) -> str:
    """In one line."""
    return " ".join(_header(mail, "Subject").split())[:MAX_SUBJECT_CHARS]


def _header(mail: EmailMessage, name: str) -> str:
    """'' where it is missing, or cannot be read."""
    try:
        return str(mail.get(name, ""))
    except (ValueError, IndexError, AttributeError):  # malformed, and the library trips over it
        return ""


def _is_by_program(mail: EmailMessage) -> bool:
    automatic = _header(mail, "Auto-Submitted").lower()
    return (
        (bool(automatic) and not automatic.startswith("no"))
        or _header(mail, "Precedence").lower() in ("bulk", "list", "junk", "auto_reply")
        or any(mail.get(name) for name in ("List-Id", "X-Auto-Response-Suppress", "X-Autoreply"))
        or _header(mail, "Return-Path").strip() == "<>"
        or mail.get_content_type() == "multipart/report"
    )


async def read_mail(
    mail: EmailMessage, letter: Letter, here: Address, keep: PutBlob, now: float
) -> Inbound | None:
    """What there is in it for an agent; None for an empty one."""
    own, quoted = split_quoted(_read_text(mail)[:MAX_TEXT_CHARS])
    passed_on = bool(quoted) and is_forwarded(quoted)
    parts = await _read_files(mail, keep, PASSED_ON if passed_on else UNTRUSTED)
    ours = re.fullmatch(
        rf"[0-9a-f]{{32}}@{re.escape(here.account.rpartition('@')[2])}", letter.answers
    )
    if quoted and (not ours or passed_on):
        # In an answer to us it is what was said here before.
        data = quoted.encode()
        parts.append(File(await keep(data), "quoted mail.txt", "text/plain", len(data)))
    subject = "" if letter.is_answer else letter.subject
    if text := "\n\n".join(each for each in (subject, own) if each):
        parts.append(Text(text))
    if not parts:
        return None
    address = Address(here.channel, here.account, letter.sender, letter.root)
    return Inbound(
        make_mail_name(letter.sender, letter.id),
        address,
        letter.sender,
        _read_date(mail, now),
        Said(Message("user", tuple(parts))),
        reply_to=letter.answers,
        by_program=letter.by_program,
    )


def make_mail_name(sender: str, message_id: str) -> str:
    """How a mail is called here: whoever writes one chooses its id, but not whose mail it is."""
    return f"{sender}:{message_id}"


def parse_mail_id(name: str) -> str:
    """The id of a mail that is called so; of one of ours it is its name."""
    return name.partition(":")[2] or name


def _read_date(mail: EmailMessage, now: float) -> float:
    try:
        return min(parsedate_to_datetime(_header(mail, "Date")).timestamp(), now)
    except (ValueError, TypeError, OverflowError):
        return now


def _list_leaves(mail: EmailMessage) -> Iterator[EmailMessage]:
    """The parts that hold something, in order; a mail in the mail is one."""
    if mail.get_content_maintype() == "multipart" and mail.is_multipart():
        for part in mail.iter_parts():
            if isinstance(part, EmailMessage):
                yield from _list_leaves(part)
    else:
        yield mail


def _is_file(part: EmailMessage) -> bool:
    named = part.get_content_disposition() == "attachment" or bool(part.get_filename())
    return named or part.get_content_maintype() != "text"


def _read_text(mail: EmailMessage) -> str:
    """All plain texts, as some programs write one before and one behind a picture; or else the
    first page."""
    leaves = [part for part in _list_leaves(mail) if not _is_file(part)]
    plain = [_decode(part) for part in leaves if part.get_content_type() == "text/plain"]
    if text := "\n".join(each for each in plain if each.strip()):
        return text
    pages = (_decode(part) for part in leaves if part.get_content_type() == "text/html")
    return next((html_to_text(page) for page in pages if page.strip()), "")


def _decode(body: EmailMessage) -> str:
    try:
        return str(body.get_content())
    except (LookupError, ValueError, KeyError):  # an encoding that nobody knows
        data = body.get_payload(decode=True)
        return data.decode(errors="replace") if isinstance(data, bytes) else ""


async def _read_files(mail: EmailMessage, keep: PutBlob, spoken: Label) -> list[Part]:
    """What is attached; `spoken` is the label of recordings. No mail says whether one is of a voice
    or of music."""
    found: list[Part] = []
    for part in [each for each in _list_leaves(mail) if _is_file(each)][:MAX_FILES]:
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
            found.append(Audio(blob, mime, label=spoken))
        else:
            found.append(File(blob, name, mime, len(data)))
    return found
