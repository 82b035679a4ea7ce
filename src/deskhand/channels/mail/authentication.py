"""Who vouches for the sender of a mail: what our own mail server wrote into it, and nothing else.

https://www.rfc-editor.org/rfc/rfc8601. Senders choose what stands in comments, in quoted texts and
in encoded words of such a header, so nothing of those is looked at.
"""

from __future__ import annotations

import re
from email.message import EmailMessage

_HEADER = "authentication-results"
_ADDRESS = re.compile(r"[!#-\x27*+\-./0-9=?A-Z^-~]{1,64}@[A-Za-z0-9.-]{1,255}")
_STRUCTURE = frozenset("<>@,;:")
_EQUALS = re.compile(r" {0,3}= {0,3}")
MAX_CHARS = 20_000


def read_sender(mail: EmailMessage) -> str:
    """The one address in `From`, in small letters; '' where it can be read in more than one way."""
    raw = [str(value) for name, value in mail.raw_items() if name.lower() == "from"]
    if len(raw) != 1 or len(raw[0]) > MAX_CHARS:
        return ""
    shown = strip_free_text(raw[0]).strip()
    name, begins, rest = shown.partition("<")
    address, _, after = rest.partition(">") if begins else (shown, "", "")
    if after.strip() or not _ADDRESS.fullmatch(address):
        return ""
    if _STRUCTURE & set(name) and name.strip().lower() != address.lower():
        return ""
    return address.lower()


def is_vouched_for(mail: EmailMessage, sender: str, verified_by: str) -> bool:
    """Whether the first such header is of the server `verified_by`, and says that the domain of the
    sender has sent the mail. What strangers wrote into a mail stands below that, or names another
    server."""
    raw = [(name.lower(), str(value)) for name, value in mail.raw_items()]
    values = [value for name, value in raw if name == _HEADER]
    if not values or not sender:
        return False
    server, *results = strip_free_text(values[0][:MAX_CHARS]).split(";")
    words = server.split()
    if not words or words[0].lower() != verified_by.lower():
        return False
    domain = sender.rpartition("@")[2]
    return any(_vouches(_EQUALS.sub("=", result).split(), domain) for result in results)


def _vouches(words: list[str], domain: str) -> bool:
    """Whether this result says that the domain of the sender sent it."""
    said = [word.lower().partition("=") for word in words]
    if not said or said[0][2] != "pass":
        return False
    wanted = {"dmarc": ("header.from",), "dkim": ("header.d", "header.i")}.get(said[0][0], ())
    return domain in [value.rpartition("@")[2] for key, _, value in said[1:] if key in wanted]


def strip_free_text(value: str) -> str:
    """A header without its comments, which may stand in each other, and with a mark for each quoted
    text."""
    kept: list[str] = []
    depth = 0
    quoted = escaped = False
    for char in value:
        if escaped:
            escaped = False
        elif char == "\\" and (depth or quoted):
            escaped = True
        elif quoted:
            quoted = char != '"'
        elif depth or char == "(":
            depth += (char == "(") - (char == ")")
            kept.append(" ")
        elif char == '"':
            quoted = True
            kept.append("\0")
        else:
            kept.append(" " if char in "\r\n\t" else char)
    return "".join(kept)
