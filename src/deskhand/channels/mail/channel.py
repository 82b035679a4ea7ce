"""Mail: a mailbox that is read by IMAP, and answers that go out by SMTP.

Up to where the mailbox is read is saved when the next inbound is asked for, and never before. Mail
keeps its place in the mailbox, and is not marked as read.
"""

from __future__ import annotations

import logging
import re
import smtplib  # noqa: TID251 -- the person's own mail server
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, suppress
from email.errors import MessageError
from email.headerregistry import Address as Mailbox
from email.message import EmailMessage
from email.policy import SMTP
from functools import partial
from hashlib import sha256
from urllib.parse import SplitResult, unquote, urlsplit

import anyio.to_thread
import msgspec

from ...languages.sentences import say_notice
from ...types.commit import Outgoing
from ...types.errors import BlobMissing, ChannelError, ConfigError, LoginRefused, SendRefused
from ...types.identity import Address, Inbound
from ...types.marked_texts import mark_text
from ..base import (
    Allowing,
    Channel,
    ChannelContext,
    ChannelHealth,
    Healthy,
    Instructing,
    Introducing,
    Introduction,
    Speaking,
)
from ..health_record import HealthRecord
from ..markup import write_html, write_plain
from ..only_reader import only_reader
from ..pieces import (
    GONE,
    Attachment,
    MessageForm,
    find_attachment_name,
    is_long,
    prepend_note,
    render_texts,
)
from ..rich_text import Rich
from .imap import FoundMail, Imap, ImapGone, ImapRefused, MailCursor, connect_imap
from .reader import Letter, parse_mail, parse_mail_id, read_letter, read_mail, read_subject

log = logging.getLogger(__name__)


class NotSent(Exception):
    """The connection broke before the mail was handed over."""


FORM = MessageForm(text=500_000, buttons=False)
SMTP_S = 50.0
MAX_MAIL_BYTES = 20 * 2**20
"""Most servers take 25 MB, as sent."""
MAX_SUBJECTS = 1_000
FAULTS = (ImapGone, ImapRefused, NotSent, OSError)  # what smtplib raises is one
_PORTS = {"imaps": 993, "imap": 143, "smtps": 465, "smtp": 587}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
UNREADABLE = (
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    MessageError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What the library raises for mails that are broken on purpose."""
_ADDRESS = re.compile(r"[!-;=?A-~]{1,64}@[A-Za-z0-9.-]{1,255}")
_POLICY = SMTP.clone(max_line_length=998)
"""Folded, a long id would be written in a way that other programs do not read."""
_TOO_LARGE = mark_text("{file} makes the mail larger than 20 MB, so it is left out")
_INSTRUCTIONS = (
    "This is mail: answer in whole, with everything that is needed, as people read it later. "
    "Text is Markdown."
)


class MailServers(msgspec.Struct, frozen=True):
    """Where mail is read and sent, and as whom."""

    imap: SplitResult
    smtp: SplitResult
    user: str
    password: str
    verified_by: str


def open_mail(context: ChannelContext) -> MailChannel:
    """The mailbox of this configuration. Raises ConfigError where it cannot work, with what to
    do."""
    config = context.config
    where = f"channels.{context.name}"
    variable = config.token_env or "MAIL_PASSWORD"
    imap, smtp = urlsplit(config.base_url), urlsplit(config.send_url)
    if imap.scheme not in ("imap", "imaps") or not imap.hostname:
        raise ConfigError(f"{where}.base_url has to be like imaps://imap.example.org")
    if smtp.scheme not in ("smtp", "smtps") or not smtp.hostname:
        raise ConfigError(
            f"{where}.send_url has to be like smtps://smtp.example.org, or smtp:// for port 587"
        )
    if imap.scheme == "imap" and imap.hostname not in _LOOPBACK:
        raise ConfigError(f"{where}.base_url would send the password in the open: write imaps://")
    if not _ADDRESS.fullmatch(config.user):
        raise ConfigError(f"{where}.user has to be the address of the mailbox")
    if not context.secret(variable):
        raise ConfigError(
            f"{variable} is not set: put the password of {config.user} into .env; most providers "
            "want an app password"
        )
    if not config.verified_by:
        raise ConfigError(
            f"{where}.verified_by is not set, and everybody can write any name into a mail: open "
            "one in your mailbox, show its source, and write the name with which "
            "Authentication-Results begins (at Gmail: mx.google.com)"
        )
    servers = MailServers(
        imap, smtp, config.user.lower(), context.secret(variable), config.verified_by
    )
    return MailChannel(context, servers)


class MailChannel:
    """One mailbox. Each thread is a conversation with the one who began it."""

    idempotent = False
    takes_voice = True

    def __init__(self, context: ChannelContext, servers: MailServers) -> None:
        self.name = context.name
        self._context = context
        self._servers = servers
        self._subjects: dict[str, str] = {}
        self._record = HealthRecord(context.now)

    # ------------------------------------------------------------------ in

    async def receive(self) -> AsyncIterator[Inbound]:
        with only_reader(self._context.state, f"{self._servers.imap.netloc} {self._servers.user}"):
            async with self._translate_errors():
                imap = await self._log_in()
            try:
                async with self._translate_errors():
                    async for found in imap.read_new(self._load_cursor()):
                        self._record.note_answer()
                        inbound = await self._read(found) if found.data else None
                        if inbound is not None:
                            yield inbound
                        self._save_cursor(found.cursor)
            finally:
                await imap.close()

    def _load_cursor(self) -> MailCursor:
        try:
            return msgspec.json.decode(self._context.load_cursor() or "[]", type=MailCursor)
        except (msgspec.DecodeError, RecursionError):
            return MailCursor()

    def _save_cursor(self, cursor: MailCursor) -> None:
        kept = MailCursor(cursor.validity, cursor.uid, self._context.now())
        self._context.save_cursor(msgspec.json.encode(kept).decode())

    async def _log_in(self) -> Imap:
        place = self._servers.imap
        tls = ssl.create_default_context() if place.scheme == "imaps" else None
        port = place.port or _PORTS[place.scheme]
        imap = await connect_imap(str(place.hostname), port, tls)
        try:
            user = unquote(place.username or "") or self._servers.user
            await imap.log_in(user, self._servers.password)
        except ImapRefused as error:
            await imap.close()
            raise LoginRefused(_wrong_password(str(place.hostname), str(error)), 300) from error
        except BaseException:
            await imap.close()
            raise
        return imap

    async def _read(self, found: FoundMail) -> Inbound | None:
        """What a mail says; a broken one is left out, so that those behind it are read."""
        try:
            return await self._read_mail(found)
        except UNREADABLE as error:
            log.warning("%s: a mail cannot be read (%s).", self.name, type(error).__name__)
            return None

    async def _read_mail(self, found: FoundMail) -> Inbound | None:
        """Nothing of a mail for which nobody vouches reaches anybody, and it is not answered: its
        sender may be somebody else."""
        mail = parse_mail(found.data)
        letter = read_letter(mail, self._servers.verified_by)
        if letter.sender == self._servers.user:
            return None
        if not letter.is_verified:
            log.warning(
                "%s: a mail from %s was left out, as %s does not vouch for its sender.",
                self.name,
                letter.sender or "nobody",
                self._servers.verified_by,
            )
            return None
        self._remember_subject(letter)
        if not found.is_whole:
            mail.set_content("[The rest was not fetched: the mail is larger than 50 MB]")
        here = Address(self.name, self._servers.user)
        return await read_mail(mail, letter, here, self._context.put_blob, self._context.now())

    def _remember_subject(self, letter: Letter) -> None:
        self._subjects[letter.id] = letter.subject
        if len(self._subjects) > MAX_SUBJECTS:
            del self._subjects[next(iter(self._subjects))]

    # ------------------------------------------------------------------ out

    async def send(self, outgoing: Outgoing, mark: str) -> str:
        to = outgoing.address.chat
        if not _ADDRESS.fullmatch(to):
            raise SendRefused(f"{to!r} is no mail address")
        mail = await self._write(outgoing, mark, to)
        async with self._translate_errors():
            await anyio.to_thread.run_sync(
                partial(send_mail, self._servers, mail), abandon_on_cancel=True
            )
        return str(mail["Message-ID"])[1:-1]

    async def _write(self, outgoing: Outgoing, mark: str, to: str) -> EmailMessage:
        """One mail with all of it. Its id is made of its key, so that a mail that comes twice is
        known as the same one."""
        render = partial(render_texts, outgoing, FORM)
        pieces = await anyio.to_thread.run_sync(render) if is_long(outgoing) else render()
        topic = " ".join("".join(each.text for each in pieces[:1]).split())
        notes: list[str] = [mark] if mark else []
        files: list[tuple[Attachment, bytes]] = []
        size = 0
        for part in outgoing.parts:
            if isinstance(part, Attachment):
                data, why = await self._load(part, size)
                size += len(data)
                notes += [say_notice(why, outgoing.language)] if why else []
                files += [] if why else [(part, data)]
        first, *others = pieces or [Rich("", guarded=outgoing.links is not None)]
        for note in reversed(notes):
            first = prepend_note(first, note)
        mail = EmailMessage(policy=_POLICY)
        user = self._servers.user
        mail["From"] = Mailbox("Deskhand", *user.split("@", 1))
        mail["To"] = Mailbox("", *to.split("@", 1))
        mail["Message-ID"] = _make_id(outgoing.key, user)
        mail["Auto-Submitted"] = "auto-replied"
        await self._place(mail, outgoing, topic)
        mail.set_content("\n".join(map(write_plain, (first, *others))) or " ")
        if first.text:
            page = "".join(map(write_html, (first, *others)))
            mail.add_alternative(page, subtype="html")
        for file, data in files:
            kind, _, sub = (file.mime or "").partition("/")
            name = "".join(char for char in find_attachment_name(file) if char.isprintable())
            if not (kind and sub):
                kind, sub = "application", "octet-stream"
            mail.add_attachment(data, maintype=kind, subtype=sub, filename=name)
        return mail

    async def _place(self, mail: EmailMessage, outgoing: Outgoing, topic: str) -> None:
        """In which thread it stands. Some programs want the same subject for that, too; a thread
        that begins is called by its `topic`."""
        root, reply = outgoing.address.thread, parse_mail_id(outgoing.reply_to)
        subject = await self._find_subject(reply or root) if root else ""
        if not subject:
            subject = topic[:60].rsplit(" ", 1)[0] if len(topic) > 60 else topic or "A file"
        bare = re.sub(r"(?i)^(re|aw):\s*", "", subject)
        mail["Subject"] = f"Re: {bare}" if root else subject
        if root:
            mail["In-Reply-To"] = f"<{reply or root}>"
            mail["References"] = " ".join(
                f"<{each}>" for each in dict.fromkeys((root, reply)) if each
            )

    async def _find_subject(self, message_id: str) -> str:
        if message_id not in self._subjects:
            with suppress(*FAULTS, ChannelError):  # it is a nicety
                imap = await self._log_in()
                try:
                    head = await imap.find_subject(message_id)
                    self._subjects[message_id] = read_subject(parse_mail(head))
                finally:
                    await imap.close()
        return self._subjects.get(message_id, "")

    async def _load(self, file: Attachment, before: int) -> tuple[bytes, str]:
        """A file, or b"" and why it is not there."""
        name = find_attachment_name(file)
        try:
            data = await self._context.get_blob(file.blob)
        except BlobMissing:
            return b"", GONE.format(file=name)
        if before + len(data) > MAX_MAIL_BYTES:
            return b"", _TOO_LARGE.format(file=name)
        return data, ""

    # ------------------------------------------------------------------ facts

    def instructions(self, address: Address) -> str:
        return _INSTRUCTIONS

    async def introduce(self) -> Introduction:
        """Logs in to both servers."""
        async with self._translate_errors():
            await (await self._log_in()).close()
            await anyio.to_thread.run_sync(partial(send_mail, self._servers, None))
        return Introduction(self._servers.user, f"mailto:{self._servers.user}")

    def health(self) -> ChannelHealth:
        return self._record.current

    @property
    def allow_from(self) -> tuple[str, ...]:
        return tuple(str(each).lower() for each in self._context.config.allow_from)

    def _translate_errors(self) -> AbstractAsyncContextManager[None]:
        """What the servers answer inside is noted, and raised as ours."""
        return self._record.watch(FAULTS, translate_error)


def send_mail(servers: MailServers, mail: EmailMessage | None) -> None:
    """Hand it to the server that sends; None only logs in. Blocks. Raises NotSent, SMTPException,
    OSError; but for the first, a mail may have been taken where the connection broke."""
    try:
        server = _log_in_to_send(servers)
    except smtplib.SMTPResponseException:
        raise
    except OSError as error:
        raise NotSent(str(error) or type(error).__name__) from error
    try:
        if mail is not None:
            _hand_over(server, servers.user, mail)
        with suppress(OSError):  # it is taken, whatever comes now
            server.quit()
    finally:
        server.close()


def _log_in_to_send(servers: MailServers) -> smtplib.SMTP:
    place = servers.smtp
    host, port = str(place.hostname), place.port or _PORTS[place.scheme]
    context = ssl.create_default_context()
    if place.scheme == "smtps":
        server: smtplib.SMTP = smtplib.SMTP_SSL(host, port, timeout=SMTP_S, context=context)
    else:
        server = smtplib.SMTP(host, port, timeout=SMTP_S)
    try:
        if place.scheme == "smtp" and host not in _LOOPBACK:
            server.starttls(context=context)
        server.login(unquote(place.username or "") or servers.user, servers.password)
    except BaseException:
        server.close()
        raise
    return server


def _hand_over(server: smtplib.SMTP, user: str, mail: EmailMessage) -> None:
    to = mail["To"].addresses[0].addr_spec
    try:
        for code, why in (server.mail(user), server.rcpt(to)):
            if code >= 300:
                raise smtplib.SMTPResponseException(code, why)
    except smtplib.SMTPServerDisconnected as error:
        raise NotSent(str(error)) from error
    code, why = server.data(mail.as_bytes())
    if code >= 300:
        raise smtplib.SMTPDataError(code, why)


def translate_error(error: Exception) -> ChannelError:
    """What came of it, in our words. Where a connection broke, the mail may have been sent."""
    match error:
        case smtplib.SMTPAuthenticationError():
            return LoginRefused(_wrong_password("the mail server", _say(error)), 300, unsent=True)
        case NotSent():
            return ChannelError(f"the mail server could not be reached: {error}", unsent=True)
        case smtplib.SMTPServerDisconnected():
            return ChannelError(f"the mail server broke off: {error}")
        case smtplib.SMTPResponseException():
            return _refuse(error.smtp_code, _say(error))
        case ImapRefused():
            return ChannelError(f"the mailbox cannot be read: {error}")
    return ChannelError(f"the mail server could not be reached: {error or type(error).__name__}")


def _refuse(code: int, said: str) -> ChannelError:
    if code >= 500:
        return SendRefused(f"the mail server refuses: {said}")
    return ChannelError(f"the mail server asks to wait: {said}", 60, unsent=True)


def _say(error: smtplib.SMTPResponseException) -> str:
    why = error.smtp_error
    return f"{error.smtp_code} {why.decode(errors='replace') if isinstance(why, bytes) else why}"


def _wrong_password(server: str, why: str) -> str:
    return (
        f"{server} does not accept the password ({why}): most providers want an app password, made "
        "in the settings of the account"
    )


def _make_id(key: str, user: str) -> str:
    return f"<{sha256(key.encode()).hexdigest()[:32]}@{user.rpartition('@')[2]}>"


_: type[Channel] = MailChannel
_others: tuple[type[Instructing], type[Allowing], type[Healthy], type[Introducing]] = (
    MailChannel,
    MailChannel,
    MailChannel,
    MailChannel,
)
_speaking: type[Speaking] = MailChannel
