"""A provider of mail on loopback: SMTP that people log in to, and a real IMAP server that shows
what arrived.

What SMTP takes for an address of the provider is in that person's mailbox at once. Replies are
those of https://www.rfc-editor.org/rfc/rfc5321 and https://www.rfc-editor.org/rfc/rfc4954, the
refusals those of Postfix.
"""

from __future__ import annotations

import asyncio
import ssl
from email.parser import BytesParser
from email.policy import SMTP as SMTP_POLICY
from email.utils import getaddresses
from itertools import count
from typing import Any, Literal

import anyio
import anyio.lowlevel
import msgspec
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from .dovecot import Dovecot
from .person import DATE, Mailbox, Verdict

DOMAIN = "home.test"
AUTHORITY = "mx.home.test"
"""Under which name the provider says what it found of a sender (RFC 8601)."""
PASSWORD = "correct horse"
LIMIT_BYTES = 25 * 2**20
Step = Literal["MAIL", "RCPT", "DATA"]
Command = Step | Literal["AUTH"]


class Taken(msgspec.Struct):
    """A mail that SMTP took: from whom and to whom by the envelope, and its bytes."""

    sender: str
    recipients: list[str]
    data: bytes


class PlannedFault(msgspec.Struct):
    """What is to go wrong at the next `times` commands. `then` is what happens once the work is
    done: the connection is cut, or nothing is ever said; without it the work is not done and
    `reply` is said."""

    command: Command
    times: int = 1
    reply: str = ""
    then: str = ""
    after: int = 0


class MailServer:
    """The provider of `home.test`. `async with` it. Mail to others is refused, unless `relays`:
    then it is only in `taken`.

    SMTP listens on `smtp_port` and offers STARTTLS, and `smtp_tls_port` speaks TLS at once; IMAP on
    `imap.port` and `imap.tls_port`. All four know `certificate`, which clients must be told to
    trust. `logins` are the addresses that logged in to SMTP.
    """

    def __init__(self, *, relays: bool = False) -> None:
        self.imap = Dovecot()
        self.taken: list[Taken] = []
        self.logins: list[str] = []
        self.smtp_port = 0
        self.smtp_tls_port = 0
        self._relays = relays
        self._passwords: dict[str, str] = {}
        self._faults: list[PlannedFault] = []
        self._servers: list[asyncio.Server] = []
        self._sessions: set[Smtp] = set()
        self._numbers = count(1)

    # ------------------------------------------------------------------ running

    async def __aenter__(self) -> MailServer:
        await anyio.to_thread.run_sync(self.imap.create)
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        await anyio.to_thread.run_sync(self.imap.remove)

    async def start(self) -> None:
        """On the same ports as before."""
        await anyio.to_thread.run_sync(self.imap.start)
        await self.start_smtp()

    async def stop(self) -> None:
        """Nobody answers any more; `start` brings it back with all that it knows. One half alone:
        `stop_smtp`, and `stop_imap`."""
        await self.stop_smtp()
        await self.stop_imap()

    async def start_smtp(self) -> None:
        context = self._tls()
        loop = asyncio.get_running_loop()
        plain = await loop.create_server(self._open(context), "127.0.0.1", self.smtp_port)
        at_once = await loop.create_server(
            self._open(None), "127.0.0.1", self.smtp_tls_port, ssl=context
        )
        self._servers = [plain, at_once]
        self.smtp_port = plain.sockets[0].getsockname()[1]
        self.smtp_tls_port = at_once.sockets[0].getsockname()[1]

    async def stop_smtp(self) -> None:
        for server in self._servers:
            server.close()
        self._servers = []
        for session in list(self._sessions):
            session.cut()
        await anyio.lowlevel.checkpoint()

    async def stop_imap(self) -> None:
        await anyio.to_thread.run_sync(self.imap.stop)

    async def start_imap(self) -> None:
        await anyio.to_thread.run_sync(self.imap.start)

    def client_tls(self) -> ssl.SSLContext:
        """For clients: trusts this provider alone."""
        return ssl.create_default_context(cafile=self.imap.certificate)

    # ------------------------------------------------------------------ people

    def person(self, name: str, password: str = PASSWORD) -> Mailbox:
        """Give somebody a mailbox, or the same one another password."""
        address = f"{name.lower()}@{DOMAIN}"
        self._passwords[address] = password
        self.imap.add(address, password)
        return Mailbox(self, name, address, password)

    def deliver(
        self, data: bytes, to: str, *, sender: str = "", verdict: Verdict | None = "pass"
    ) -> None:
        """Put a mail into somebody's mailbox, with what the provider writes above it. `verdict` is
        what it found when it asked whether the sender may use the address in From, None that it
        did not ask."""
        number = next(self._numbers)
        parsed = BytesParser(policy=SMTP_POLICY).parsebytes(data, headersonly=True)
        froms = getaddresses([str(parsed["From"] or "")])
        domain = (froms[0][1] if froms else sender).rpartition("@")[2]
        above = [
            f"Return-Path: <{sender}>",
            f"Received: from client ([127.0.0.1]) by {AUTHORITY} with ESMTPSA id {number}; {DATE}",
        ]
        if verdict is not None:
            above.append(
                f"Authentication-Results: {AUTHORITY}; spf={verdict} smtp.mailfrom={sender};"
                f"\r\n dkim={verdict} header.d={domain}; dmarc={verdict} header.from={domain}"
            )
        self.imap.put(to, "\r\n".join([*above, ""]).encode() + without_ours(data))

    # ------------------------------------------------------------------ what goes wrong

    def fail(self, command: Command, reply: str, *, times: int = 1, after: int = 0) -> None:
        """Answer the next of these commands with a refusal, as "451 4.3.0 Try again later"."""
        self._faults.append(PlannedFault(command, times, reply, after=after))

    def lose(self, command: Step = "DATA", times: int = 1) -> None:
        """Do the next of these commands and cut the connection instead of answering."""
        self._faults.append(PlannedFault(command, times, then="cut"))

    def hang(self, command: Step = "DATA", times: int = 1) -> None:
        """Do the next of these commands and never answer."""
        self._faults.append(PlannedFault(command, times, then="hang"))

    def fails_next(self, command: Command) -> bool:
        """Whether something is planned that has not happened yet."""
        return any(each.command == command and each.times > 0 for each in self._faults)

    # ------------------------------------------------------------------ what aiosmtpd asks

    async def handle_MAIL(
        self, server: Smtp, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        fault = self._fault("MAIL")
        if fault is not None and fault.reply:
            return fault.reply
        if not session.authenticated:
            return "530 5.7.0 Authentication required"
        if address.lower() != session.auth_data:
            return f"553 5.7.1 <{address}>: Sender address rejected: not owned by user"
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return await self._say(server, fault, "250 2.1.0 Ok")

    async def handle_RCPT(
        self, server: Smtp, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        fault = self._fault("RCPT")
        if fault is not None and fault.reply:
            return fault.reply
        ours = address.lower().endswith(f"@{DOMAIN}")
        if ours and address.lower() not in self._passwords:
            return f"550 5.1.1 <{address}>: Recipient address rejected: User unknown"
        if not ours and not self._relays:
            return f"554 5.7.1 <{address}>: Relay access denied"
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(options)
        return await self._say(server, fault, "250 2.1.5 Ok")

    async def handle_DATA(self, server: Smtp, session: Session, envelope: Envelope) -> str:
        fault = self._fault("DATA")
        if fault is not None and fault.reply:
            return fault.reply
        data = envelope.original_content or b""
        sender = envelope.mail_from or ""
        parsed = BytesParser(policy=SMTP_POLICY).parsebytes(data, headersonly=True)
        froms = [address.lower() for _, address in getaddresses([str(parsed["From"] or "")])]
        for address in envelope.rcpt_tos:
            if address.lower() in self._passwords:
                verdict: Verdict = "pass" if froms == [sender.lower()] else "fail"
                self.deliver(data, address.lower(), sender=sender, verdict=verdict)
        self.taken.append(Taken(sender, list(envelope.rcpt_tos), data))
        return await self._say(server, fault, f"250 2.0.0 Ok: queued as {len(self.taken):08}")

    def authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any
    ) -> AuthResult:
        """Whether somebody may log in; 535 says that they may not."""
        fault = self._fault("AUTH")
        if fault is not None and fault.reply:
            return AuthResult(success=False, handled=False, message=fault.reply)
        if isinstance(data, LoginPassword):
            address = data.login.decode().lower()
            if self._passwords.get(address) == data.password.decode():
                self.logins.append(address)
                return AuthResult(success=True, auth_data=address)
        return AuthResult(success=False, handled=False)

    # ------------------------------------------------------------------ inside

    def _open(self, context: ssl.SSLContext | None) -> Any:
        def open_() -> Smtp:
            return Smtp(
                self,
                self._sessions,
                hostname=AUTHORITY,
                ident="ESMTP",
                data_size_limit=LIMIT_BYTES,
                tls_context=context,
                authenticator=self.authenticate,
                # On loopback a password may go in the clear, so that tests without TLS work.
                # `auth_required` would warn of that; `handle_MAIL` asks for a login instead.
                auth_require_tls=False,
            )

        return open_

    def _tls(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.imap.certificate)
        return context

    def _fault(self, command: Command) -> PlannedFault | None:
        for each in self._faults:
            if each.command == command and each.times > 0:
                if each.after:
                    each.after -= 1
                    return None
                each.times -= 1
                return each
        return None

    async def _say(self, server: Smtp, fault: PlannedFault | None, reply: str) -> str:
        if fault is not None and fault.then == "hang":
            await asyncio.Event().wait()
        if fault is not None:
            server.cut()
        return reply


class Smtp(SMTP):
    """One connection of a client."""

    def __init__(self, handler: MailServer, open_now: set[Smtp], **about: Any) -> None:
        self._open_now = open_now
        super().__init__(handler, **about)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._open_now.add(self)
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._open_now.discard(self)
        super().connection_lost(error)

    def cut(self) -> None:
        if isinstance(self.transport, asyncio.WriteTransport):
            self.transport.abort()


def without_ours(data: bytes) -> bytes:
    """The mail without results that only the provider may write (RFC 8601, section 5)."""
    parser = BytesParser(policy=SMTP_POLICY)
    parsed = parser.parsebytes(data, headersonly=True)
    results = [str(each) for each in parsed.get_all("Authentication-Results", [])]
    if not any(each.partition(";")[0].split()[:1] == [AUTHORITY] for each in results):
        return data
    whole = parser.parsebytes(data)
    del whole["Authentication-Results"]
    for each in results:
        if each.partition(";")[0].split()[:1] != [AUTHORITY]:
            whole["Authentication-Results"] = each
    return whole.as_bytes()
