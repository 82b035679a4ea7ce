"""The provider of mail for tests, as the standard library and two asynchronous clients see it."""

from __future__ import annotations

import imaplib
import smtplib
from collections.abc import AsyncIterator
from email.message import EmailMessage
from typing import Any

import aiosmtplib
import anyio
import pytest

from deskhand.channels.mail.imap import ImapRefused, connect_imap
from deskhand.testing.mail.person import Attachment, Letter, Mailbox
from deskhand.testing.mail.server import MailServer

HOST = "127.0.0.1"


@pytest.fixture
async def server() -> AsyncIterator[MailServer]:
    async with MailServer() as found:
        yield found


@pytest.fixture
def ann(server: MailServer) -> Mailbox:
    return server.person("Ann")


@pytest.fixture
def desk(server: MailServer) -> Mailbox:
    return server.person("Desk")


def letter(desk: Mailbox, to: str, text: str = "the answer") -> EmailMessage:
    message = EmailMessage()
    message["From"] = f"Desk <{desk.address}>"
    message["To"] = to
    message["Subject"] = "Re: Hello"
    message["Message-ID"] = "<1@desk>"
    message.set_content(text)
    return message


async def send(
    server: MailServer, desk: Mailbox, to: str, text: str = "the answer", **about: Any
) -> None:
    await aiosmtplib.send(
        letter(desk, to, text),
        hostname=HOST,
        port=server.smtp_port,
        username=desk.address,
        **{"password": desk.password, "timeout": 10, "start_tls": False, **about},
    )


async def test_the_standard_library(server: MailServer, ann: Mailbox, desk: Mailbox) -> None:
    ann.writes(desk.address, "hello", html="<p>hello</p>")

    def read() -> tuple[str, bytes]:
        with imaplib.IMAP4_SSL(
            HOST, server.imap.tls_port, ssl_context=server.client_tls(), timeout=10
        ) as client:
            client.login(desk.address, desk.password)
            client.select("INBOX")
            found = client.uid("SEARCH", "UID 1:*")[1][0].decode()
            parts = client.uid("FETCH", found, "(UID BODY.PEEK[])")[1]
            return found, parts[0][1]

    def answer() -> None:
        with smtplib.SMTP(HOST, server.smtp_port, timeout=10) as client:
            client.starttls(context=server.client_tls())
            client.login(desk.address, desk.password)
            client.send_message(letter(desk, ann.address))

    uid, data = await anyio.to_thread.run_sync(read)
    assert uid == "1" and b"hello" in data and b"dmarc=pass header.from=home.test" in data
    assert not desk.reads()[0].seen
    await anyio.to_thread.run_sync(answer)
    assert ann.said(desk.address) == ["the answer"]


async def test_what_people_send(server: MailServer, ann: Mailbox, desk: Mailbox) -> None:
    await send(server, desk, ann.address)
    asked = ann.reads()[-1]
    ann.replies(asked, "thanks")
    ann.answers_by_itself(asked)
    ann.bounces(asked)
    ann.forges(desk.address, "The boss <boss@home.test>", "pay them")
    file = Attachment("Ünï.csv", "text/csv", b"one,two\n")
    ann.sends(desk.address, Letter(text="see there", files=[file]))
    reply, automatic, bounce, forged, filed = desk.reads()
    assert reply.in_reply_to == "<1@desk>" and reply.references == ["<1@desk>"]
    assert "> the answer" in reply.text and reply.subject == "Re: Hello"
    assert automatic.message["Auto-Submitted"] == "auto-replied"
    assert bounce.message["Return-Path"] == "<>"
    results = forged.message.get_all("Authentication-Results", [])
    assert len(results) == 1 and "dmarc=fail" in str(results[0])
    assert forged.sender == "boss@home.test"
    assert (filed.files[0].name, filed.files[0].mime) == ("Ünï.csv", "text/csv")
    assert filed.files[0].data.split() == [b"one,two"]


async def test_what_smtp_refuses(server: MailServer, ann: Mailbox, desk: Mailbox) -> None:
    with pytest.raises(aiosmtplib.SMTPAuthenticationError) as login:
        await send(server, desk, ann.address, password="wrong")
    assert login.value.code == 535
    for to, code in (("nobody@home.test", 550), ("eve@elsewhere.test", 554)):
        with pytest.raises(aiosmtplib.SMTPRecipientsRefused) as refused:
            await send(server, desk, to)
        assert refused.value.recipients[0].code == code
    with pytest.raises(aiosmtplib.SMTPSenderRefused) as sender:
        await send(server, desk, ann.address, sender=ann.address)
    assert sender.value.code == 553
    assert ann.reads() == []
    with pytest.raises(aiosmtplib.SMTPSenderRefused) as stranger:
        await aiosmtplib.send(
            letter(desk, ann.address),
            hostname=HOST,
            port=server.smtp_tls_port,
            use_tls=True,
            tls_context=server.client_tls(),
        )
    assert stranger.value.code == 530


async def test_faults_of_smtp(server: MailServer, ann: Mailbox, desk: Mailbox) -> None:
    server.fail("DATA", "451 4.3.0 Try again later")
    with pytest.raises(aiosmtplib.SMTPDataError) as later:
        await send(server, desk, ann.address)
    assert later.value.code == 451
    server.fail("MAIL", "421 4.7.0 Too many messages")
    with pytest.raises(aiosmtplib.SMTPException):
        await send(server, desk, ann.address)
    assert ann.reads() == []
    server.lose()
    with pytest.raises(aiosmtplib.SMTPServerDisconnected):
        await send(server, desk, ann.address, "lost")
    server.hang()
    with pytest.raises(aiosmtplib.SMTPTimeoutError):
        await send(server, desk, ann.address, "hung", timeout=0.5)
    assert ann.said(desk.address) == ["lost", "hung"] and not server.fails_next("DATA")
    await server.stop()
    with pytest.raises(aiosmtplib.SMTPConnectError):
        await send(server, desk, ann.address)
    await server.start()
    await send(server, desk, ann.address, "back")
    assert ann.said(desk.address)[-1] == "back"


async def test_imap_says_nothing_any_more(server: MailServer, desk: Mailbox) -> None:
    client = await connect_imap(HOST, server.imap.port, None)
    await client.log_in(desk.address, desk.password)
    server.imap.freeze()
    with pytest.raises(TimeoutError), anyio.fail_after(0.5):
        await client.call("SELECT INBOX")
    server.imap.thaw()
    await client.close()
    tls = await connect_imap(HOST, server.imap.tls_port, server.client_tls())
    with pytest.raises(ImapRefused):
        await tls.log_in(desk.address, "wrong")
    await tls.close()
