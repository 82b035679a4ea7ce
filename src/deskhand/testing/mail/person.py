"""Somebody with a mailbox, who writes as mail programs do and reads what arrived.

Headers: https://www.rfc-editor.org/rfc/rfc5322, automatic replies:
https://www.rfc-editor.org/rfc/rfc3834."""

from __future__ import annotations

from collections.abc import Sequence
from email.message import EmailMessage, MIMEPart
from email.parser import BytesParser
from email.policy import SMTP
from email.utils import formataddr, getaddresses
from itertools import count
from typing import Literal, Protocol

import msgspec

Verdict = Literal["pass", "fail", "none"]
DATE = "Fri, 15 Jan 2027 08:00:00 +0000"


class Attachment(msgspec.Struct):
    name: str
    mime: str
    data: bytes


class Mail(msgspec.Struct, kw_only=True):
    """A mail as it arrived. `id`, `in_reply_to` and `references` are with their angle brackets.
    `message` is all of it."""

    message: EmailMessage
    id: str
    subject: str
    sender: str
    to: list[str]
    text: str
    html: str
    files: list[Attachment]
    in_reply_to: str
    references: list[str]
    seen: bool


class Letter(msgspec.Struct, kw_only=True):
    """What somebody is going to send. `answers` is the mail that it is a reply to; `quote`, whether
    the text of that is below. `headers` are added, and replace those of the same name."""

    text: str = ""
    subject: str = "Hello"
    html: str = ""
    files: Sequence[Attachment] = ()
    answers: Mail | None = None
    quote: bool = True
    headers: dict[str, str] = {}


class Shelf(Protocol):
    """Where mail lies, by address."""

    def list_mail(self, address: str, folder: str = "INBOX") -> list[tuple[bytes, bool]]: ...


class Post(Protocol):
    """Who brings mail."""

    @property
    def imap(self) -> Shelf: ...

    def deliver(
        self, data: bytes, to: str, *, sender: str = "", verdict: Verdict | None = "pass"
    ) -> None: ...


class Mailbox:
    """One person. What they send is there at once and meets no fault of SMTP. Each way of sending
    returns the Message-ID."""

    _numbers = count(1)

    def __init__(self, post: Post, name: str, address: str, password: str) -> None:
        self._post = post
        self.name = name
        self.address = address
        self.password = password

    # ------------------------------------------------------------------ writing

    def writes(self, to: str, text: str, *, subject: str = "Hello", html: str = "") -> str:
        return self.sends(to, Letter(text=text, subject=subject, html=html))

    def sends_file(self, to: str, data: bytes, name: str, mime: str, text: str = "") -> str:
        return self.sends(to, Letter(text=text, files=[Attachment(name, mime, data)]))

    def speaks(self, to: str, data: bytes, text: str = "") -> str:
        """Send a recording, without a subject. To a mail program it is a file as any other."""
        file = Attachment("recording.ogg", "audio/ogg", data)
        return self.sends(to, Letter(text=text, subject="", files=[file]))

    def replies(self, mail: Mail, text: str, *, quote: bool = True) -> str:
        """Answer a mail as mail programs do: its text quoted below, and In-Reply-To and References
        as RFC 5322, section 3.6.4, has them."""
        return self.sends(mail.sender, Letter(text=text, answers=mail, quote=quote))

    def answers_by_itself(self, mail: Mail, text: str = "I am on holiday.") -> str:
        """Send what a mailbox sends when its owner is away."""
        headers = {
            "Auto-Submitted": "auto-replied",
            "X-Auto-Response-Suppress": "All",
            "Precedence": "bulk",
        }
        return self.sends(mail.sender, Letter(text=text, answers=mail, headers=headers))

    def bounces(self, mail: Mail) -> str:
        """Send what a server sends that could not deliver: from nobody, so that none answers."""
        headers = {
            "From": "Mail Delivery System <MAILER-DAEMON@home.test>",
            "Auto-Submitted": "auto-replied",
        }
        text = f"Your message {mail.id} could not be delivered."
        letter = Letter(text=text, answers=mail, quote=False, headers=headers)
        message = self._make(mail.sender, letter)
        self._post.deliver(message.as_bytes(), mail.sender, sender="", verdict=None)
        return str(message["Message-ID"])

    def forges(self, to: str, claimed: str, text: str, verdict: Verdict = "fail") -> str:
        """Write in the name of somebody else. They claim that it was checked, too."""
        headers = {
            "From": claimed,
            "Authentication-Results": "mx.home.test; spf=pass; dkim=pass; dmarc=pass",
        }
        return self.sends(to, Letter(text=text, headers=headers), verdict)

    def sends(self, to: str, letter: Letter, verdict: Verdict | None = "pass") -> str:
        message = self._make(to, letter)
        self._post.deliver(message.as_bytes(), to, sender=self.address, verdict=verdict)
        return str(message["Message-ID"])

    # ------------------------------------------------------------------ reading

    def reads(self, folder: str = "INBOX") -> list[Mail]:
        """All that lies there, in the order in which it came."""
        return [parse(*each) for each in self._post.imap.list_mail(self.address, folder)]

    def said(self, by: str) -> list[str]:
        """The texts of one sender."""
        return [each.text for each in self.reads() if each.sender == by]

    # ------------------------------------------------------------------ inside

    def _make(self, to: str, letter: Letter) -> EmailMessage:
        message = EmailMessage(SMTP)
        message["From"] = formataddr((self.name, self.address))
        message["To"] = to
        message["Date"] = DATE
        message["Message-ID"] = f"<{next(self._numbers)}.{self.address}>"
        message["Subject"] = letter.subject
        text = letter.text
        if (asked := letter.answers) is not None:
            del message["Subject"]
            subject = asked.subject.removeprefix("Re: ")
            message["Subject"] = f"Re: {subject}"
            message["In-Reply-To"] = asked.id
            message["References"] = " ".join([*asked.references, asked.id])
            if letter.quote:
                quoted = "\n".join(f"> {line}" for line in asked.text.splitlines())
                text = f"{text}\n\nOn Fri, 15 Jan 2027, {asked.sender} wrote:\n{quoted}"
        message.set_content(text)
        if letter.html:
            message.add_alternative(letter.html, subtype="html")
        for file in letter.files:
            kind, _, subtype = file.mime.partition("/")
            message.add_attachment(file.data, kind, subtype, filename=file.name)
        for name, value in letter.headers.items():
            del message[name]
            message[name] = value
        return message


def parse(data: bytes, seen: bool = False) -> Mail:
    """What is in the bytes of a mail."""
    message = BytesParser(EmailMessage, policy=SMTP).parsebytes(data)
    assert isinstance(message, EmailMessage)
    plain = message.get_body(("plain",))
    html = message.get_body(("html",))
    senders = getaddresses([str(message["From"] or "")])
    return Mail(
        message=message,
        id=str(message["Message-ID"] or ""),
        subject=str(message["Subject"] or ""),
        sender=senders[0][1] if senders else "",
        to=[address for _, address in getaddresses([str(message["To"] or "")])],
        text=_text(plain),
        html=_text(html),
        files=[_attachment(each) for each in message.iter_attachments()],
        in_reply_to=str(message["In-Reply-To"] or ""),
        references=str(message["References"] or "").split(),
        seen=seen,
    )


def _text(part: MIMEPart | None) -> str:
    return "" if part is None else str(part.get_content()).replace("\r\n", "\n").rstrip("\n")


def _attachment(part: MIMEPart) -> Attachment:
    data = part.get_content()
    raw = data.encode() if isinstance(data, str) else bytes(data)
    return Attachment(part.get_filename() or "", part.get_content_type(), raw)
