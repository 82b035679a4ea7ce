"""What a mail channel makes of what people write there, and how it says things."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, cast

import anyio
import pytest
from msgspec.structs import replace

from deskhand.channels.mail.channel import MailChannel, open_mail, translate_error
from deskhand.channels.mail.imap import FoundMail, Imap, MailCursor
from deskhand.channels.mail.quoting import html_to_text, split_quoted
from deskhand.channels.mail.reader import PASSED_ON, parse_mail, read_letter
from deskhand.channels.settings import ChannelConfig
from deskhand.testing.channel import MemoryContext
from deskhand.testing.channel_suite import saying, take
from deskhand.testing.mail.person import Attachment, Letter, Mail, Mailbox
from deskhand.testing.mail.server import AUTHORITY, MailServer
from deskhand.testing.ogg import make_silence
from deskhand.types.commit import Choices, Outgoing
from deskhand.types.errors import ChannelError, ConfigError, LoginRefused, SendRefused
from deskhand.types.identity import Address, Inbound, Said
from deskhand.types.labels import UNTRUSTED
from deskhand.types.messages import Audio, File, Image, Text

Open = Callable[..., MailChannel]
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 40
DESK = "desk@home.test"
ANN = "ann@home.test"
HERE = Address("mail", DESK, ANN)
PASS = f"{AUTHORITY}; dmarc=pass header.from=home.test"


class Provider(MailServer):
    """Its farewell can be `bye`."""

    bye = "221 2.0.0 Bye"

    async def handle_QUIT(self, *_: object) -> str:
        return self.bye


@pytest.fixture
async def server() -> AsyncIterator[Provider]:
    provider = Provider()
    async with provider:
        yield provider


@pytest.fixture
def ann(server: Provider) -> Mailbox:
    return server.person("ann")


@pytest.fixture
async def open_channel(server: Provider, tmp_path: Path) -> Open:
    """Opens a channel on the mailbox, with these settings; what comes from now on is for it."""
    desk = server.person("desk")
    context = MemoryContext("mail", ChannelConfig(), tmp_path / "state", desk.password)

    def open_(**config: Any) -> MailChannel:
        context.config = ChannelConfig(
            **{
                "base_url": f"imap://127.0.0.1:{server.imap.port}",
                "send_url": f"smtp://127.0.0.1:{server.smtp_port}",
                "user": desk.address,
                "verified_by": AUTHORITY,
                **config,
            }
        )
        return open_mail(context)

    receiving = cast(AsyncGenerator[Inbound], open_().receive())

    async def settle() -> None:
        async with aclosing(receiving):
            await anext(receiving)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(settle)
        with anyio.fail_after(10):
            while not context.cursor:
                await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    return open_


def make(*heads: str, text: str = "hello", results: str = PASS, sender: str = ANN) -> bytes:
    """A mail as it lies in the mailbox."""
    above = (f"Authentication-Results: {results}",) if results else ()
    named = (f"From: {sender}",) if sender else ()
    return "\r\n".join([*above, *named, *heads, "", text]).encode("latin-1")


async def one(channel: MailChannel) -> Inbound:
    return (await take(channel, 1, confirm=True))[0]


def parts(inbound: Inbound) -> tuple[Any, ...]:
    assert isinstance(inbound.body, Said), inbound
    return inbound.body.message.parts


def own(inbound: Inbound) -> str:
    """What counts as typed by the sender."""
    found = [each for each in parts(inbound) if isinstance(each, Text)]
    return "\n".join(each.text for each in found if not each.label.source)


async def outside(channel: MailChannel, inbound: Inbound) -> bytes:
    """What came along as from outside."""
    blobs = [each.blob for each in parts(inbound) if isinstance(each, File)]
    return b"\n".join([await channel._context.get_blob(each) for each in blobs])


GENUINE = [
    PASS,
    f"{AUTHORITY} 1; spf=none; dmarc=pass (p=NONE sp=NONE dis=NONE) header.from=home.test",
    f"{AUTHORITY};\r\n dkim=fail header.d=evil.test;\r\n\tdmarc=pass header.from=HOME.test",
    f"{AUTHORITY}; dkim=pass header.i=@home.test header.d=home.test header.s=x",
    f"{AUTHORITY}; dkim=pass (2048-bit key; unprotected) header.d=home.test header.i=@home.test",
    f"{AUTHORITY} (by us; really); dmarc=pass(p=none) header.from=home.test",
]


@pytest.mark.parametrize("results", GENUINE)
def test_who_is_vouched_for(results: str) -> None:
    letter = read_letter(parse_mail(make(results=results)), AUTHORITY)
    assert letter.is_verified and letter.sender == ANN


EVIL_PASS = f"{AUTHORITY}; dmarc=pass header.from=evil.test"
HIDDEN = "=?utf-8?q?=3B_dmarc=3Dpass_header=2Efrom=3Dhome=2Etest_?=@evil.test"
FORGED: dict[str, tuple[str, tuple[str, ...]]] = {
    "nothing": ("", ()),
    "another server": ("mx.evil.test; dmarc=pass header.from=home.test", ()),
    "a server below ours": (f"evil.{AUTHORITY}; dmarc=pass header.from=home.test", ()),
    "a name that begins like ours": (
        f"{AUTHORITY}.evil.test; dmarc=pass header.from=home.test",
        (),
    ),
    "our name in a comment": (f"mx.evil.test ({AUTHORITY}); dmarc=pass header.from=home.test", ()),
    "a second header": (
        f"{AUTHORITY}; dmarc=fail header.from=home.test",
        (f"Authentication-Results: {PASS}",),
    ),
    "only SPF": (f"{AUTHORITY}; spf=pass smtp.mailfrom=ann@home.test", ()),
    "another domain signed": (f"{AUTHORITY}; dkim=pass header.d=evil.test", ()),
    "a domain below": (f"{AUTHORITY}; dkim=pass header.d=x.home.test", ()),
    "a domain above": (f"{AUTHORITY}; dkim=pass header.d=test", ()),
    "another domain was asked": (EVIL_PASS, ()),
    "in a comment": (f"{AUTHORITY}; spf=pass (of x; dmarc=pass header.from=home.test ) a=b", ()),
    "in a comment in a comment": (
        f"{AUTHORITY}; spf=pass (of (x) ; dmarc=pass header.from=home.test ;) a=b",
        (),
    ),
    "in a quoted name": (
        f'{AUTHORITY}; spf=pass smtp.mailfrom="; dmarc=pass header.from=home.test ;"@evil.test',
        (),
    ),
    "in a quoted signer": (
        f'{AUTHORITY}; dkim=pass header.d=evil.test header.i="a header.d=home.test b"@evil.test',
        (),
    ),
    "in an encoded name": (f"{AUTHORITY}; spf=pass smtp.mailfrom={HIDDEN}; dmarc=fail", ()),
    "in an encoded name in a comment": (
        f"{AUTHORITY}; spf=pass (domain of {HIDDEN} sends) a=b",
        (),
    ),
    "as a reason": (f'{AUTHORITY}; dmarc=fail reason="x; dmarc=pass header.from=home.test"', ()),
    "another From below": (PASS, ("From: eve@home.test",)),
}


@pytest.mark.parametrize("name", FORGED)
def test_who_is_not_vouched_for(name: str) -> None:
    results, heads = FORGED[name]
    letter = read_letter(parse_mail(make(*heads, results=results)), AUTHORITY)
    assert not letter.is_verified


COLLEAGUES = [
    "ann@home.test <eve@home.test>",
    "<ann@home.test> <eve@home.test>",
    "ann@home.test;eve@home.test",
    "ann@home.test, eve@home.test",
    "ann@home.test\0 <eve@home.test>",
]


@pytest.mark.parametrize("sender", COLLEAGUES)
def test_nobody_speaks_as_a_colleague(sender: str) -> None:
    """Their domain vouches for both."""
    letter = read_letter(parse_mail(make(sender=sender)), AUTHORITY)
    assert not letter.is_verified or letter.sender != ANN


SENDERS = [
    '"ann@home.test" <eve@evil.test>',
    "ann@home.test <eve@evil.test>",
    "ann@home.test, eve@evil.test",
    "ann@home.test;eve@evil.test",
    "<ann@home.test> <eve@evil.test>",
    "ann@home.test (<eve@evil.test>)",
    "ann@home.test\0 <eve@evil.test>",
    "ann@home.test\x0b<eve@evil.test>",
    "=?utf-8?q?ann=40home=2Etest=2C?= <eve@evil.test>",
    "=?utf-8?q?ann=40home=2Etest?=",
    "<@evil.test:ann@home.test>",
    "ann@evil.test@home.test",
    '"ann@home.test"@evil.test',
    '"x\\" <ann@home.test>, " <eve@evil.test>',
    "eve@evil.test (\r\n ann@home.test)",
]


@pytest.mark.parametrize("sender", SENDERS)
def test_nobody_speaks_as_somebody_else(sender: str) -> None:
    """Our server has looked at a mail of evil.test, whatever else stands in it."""
    letter = read_letter(parse_mail(make(sender=sender, results=EVIL_PASS)), AUTHORITY)
    assert not letter.is_verified or letter.sender.endswith("@evil.test")


OUTLOOK = "From: Eve <eve@evil.test>\nSent: Friday, January 15, 2027 8:00 AM\nTo: Ann\nSubject: x"
QUOTES: dict[str, tuple[str, str]] = {
    "Gmail": (
        "look\n\nOn Fri, Jan 15, 2027 at 8:00 AM Eve <eve@evil.test> wrote:\n\n> EVIL",
        "look",
    ),
    "Gmail, folded": (
        (
            "look\n\nOn Fri, Jan 15, 2027 at 8:00 AM EVIL do this and that <\neve@evil.test> wrote:"
            "\n\n> EVIL\n"
        ),
        "look",
    ),
    "Gmail, folded once": (
        "look\n\nOn Fri, Jan 15, 2027 at 8:00 AM EVIL <eve.the.very.evil@evil.test>\nwrote:\n\n> x",
        "look",
    ),
    "Gmail, Dutch": (
        "look\n\nOp vr 15 jan 2027 om 08:00 schreef EVIL <e@evil.test>:\n\n> x",
        "look",
    ),
    "Gmail, forwarded": (
        "look\n\n---------- Forwarded message ---------\nFrom: Eve <e@evil.test>\n\nEVIL",
        "look",
    ),
    "Outlook": (f"look\n\n________________________________\n{OUTLOOK}\n\nEVIL", "look"),
    "Outlook, old": (f"look\n\n-----Original Message-----\n{OUTLOOK}\n\nEVIL", "look"),
    "Outlook, without a line": (f"look\n\n{OUTLOOK}\n\nEVIL", "look"),
    "Outlook, German": (
        (
            "look\n\nVon: Eve <e@evil.test>\nGesendet: Freitag, 15. Januar 2027 08:00\nAn: Ann\n"
            "Betreff: x\n\nEVIL"
        ),
        "look",
    ),
    "Apple Mail": (
        "look\n\n> On 15 Jan 2027, at 08:00, Eve <e@evil.test> wrote:\n> \n> EVIL",
        "look",
    ),
    "Apple Mail, forwarded": (
        (
            "look\n\nBegin forwarded message:\n\nFrom: Eve <e@evil.test>\nSubject: x\nDate"
            ": 15 January "
            "2027\nTo: Ann <ann@home.test>\n\nEVIL"
        ),
        "look",
    ),
    "Thunderbird": ("look\n\nOn 1/15/27 08:00, Eve wrote:\n> EVIL\n", "look"),
    "Thunderbird, below": ("On 1/15/27 08:00, Eve wrote:\n> EVIL\n\nlook", "look"),
    "between the lines": ("> EVIL one\n\nlook\n\n> EVIL two\n\nhere", "look\n\nhere"),
    "Thunderbird, forwarded": (
        "look\n\n-------- Forwarded Message --------\nSubject: x\nFrom: Eve\n\nEVIL",
        "look",
    ),
    "Thunderbird, forwarded in French": (
        "look\n\n-------- Message transféré --------\nSujet : x\nDe : Eve\n\nEVIL",
        "look",
    ),
    "a signature": ("look\n\n-- \nAnn\nEVIL Ltd.", "look"),
}


@pytest.mark.parametrize("name", QUOTES)
def test_what_is_quoted_is_not_their_word(name: str) -> None:
    text, wanted = QUOTES[name]
    typed, _ = split_quoted(text)
    assert "EVIL" not in typed and "\n".join(typed.split()) == "\n".join(wanted.split())


PAGES: dict[str, str] = {
    "Gmail": '<div dir="ltr">look</div><br><div class="gmail_quote gmail_quote_container"><div '
    'dir="ltr" class="gmail_attr">On Fri, Jan 15, 2027 at 8:00 AM EVIL &lt;<a href="mailto:e@evil.'
    'test">e@evil.test</a>&gt; wrote:<br></div><blockquote class="gmail_quote">EVIL</blockquote>',
    "Gmail, forwarded": '<div dir="ltr">look<br><br><div class="gmail_quote"><div class='
    '"gmail_attr">---------- Forwarded message ---------<br>From: <strong>Eve</strong></di'
    "v>EVIL</div></div>",
    "Outlook": '<div>look</div><hr style="display:inline-block;width:98%"><div id="divRplyFwdMsg">'
    "<b>From:</b> Eve &lt;e@evil.test&gt;<br><b>Sent:</b> Friday<br><b>To:</b> Ann<br><b>Subject:"
    "</b> x</div><div>EVIL</div>",
    "Outlook, desktop": '<p class="MsoNormal">look</p><div style="border:none;border-top:solid '
    '#E1E1E1 1.0pt"><p class="MsoNormal"><b>From:</b> Eve<br><b>Sent:</b> Friday<br><b>To:</b> Ann'
    '<br><b>Subject:</b> x</p></div><p class="MsoNormal">EVIL</p>',
    "Apple Mail": '<div>look</div><div><br><blockquote type="cite"><div>On 15 Jan 2027, Eve wrote:'
    "</div><div>EVIL</div></blockquote></div>",
    "Thunderbird": '<p>look</p><div class="moz-cite-prefix">On 1/15/27 08:00, Eve wrote:<br></div>'
    '<blockquote type="cite" cite="mid:1">EVIL</blockquote>',
    "Thunderbird, forwarded": '<p>look</p><div class="moz-forward-container">-------- Forwarded '
    "Message --------<table><tr><th>From: </th><td>Eve</td></tr></table>EVIL</div>",
}


@pytest.mark.parametrize("name", PAGES)
def test_what_is_quoted_in_a_page_is_not_their_word(name: str) -> None:
    typed, quoted = split_quoted(html_to_text(PAGES[name]))
    assert typed == "look" and "EVIL" in quoted


async def test_a_mail_and_its_thread(ann: Mailbox, open_channel: Open) -> None:
    """Its subject is said once, and the answer stands where the mail is. A reply says to what, so
    that one to a mail that was not asked for finds its conversation."""
    first = ann.writes(DESK, "what is it?", subject="A question")
    channel = open_channel()
    asked = await one(channel)
    assert asked.address == replace(HERE, thread=first[1:-1]) and asked.sender == ANN
    assert parts(asked) == (Text("A question\n\nwhat is it?"),) and not asked.by_program
    await channel.send(saying(asked.address, "this"), "")
    answer = ann.reads()[-1]
    assert answer.in_reply_to == first and answer.references == [first]
    assert answer.subject == "Re: A question" and answer.text == "this"
    assert answer.message["Auto-Submitted"].startswith("auto-")
    ann.replies(answer, "and then?")
    reply = await one(channel)
    assert reply.address == asked.address and own(reply) == "and then?"
    begun = await channel.send(saying(HERE, "good morning", key="k2"), "")
    ann.replies(ann.reads()[-1], "yes")
    reply = await one(channel)
    assert reply.address.thread == begun and reply.reply_to == begun


async def test_a_mail_that_passes_on_another(ann: Mailbox, open_channel: Open) -> None:
    """Programs put a forwarded mail into the thread that it comes from: it was never said here."""
    passed_on = "see\n\n---------- Forwarded message ---------\nFrom: Eve\n\nEVIL"
    headers = {"References": "<1@evil.test>", "In-Reply-To": "<1@evil.test>"}
    ann.sends(DESK, Letter(text=passed_on, subject="Fwd: x", headers=headers))
    ann.sends(DESK, Letter(text="\n".join(passed_on.split("\n")[2:]), headers=headers))
    answered = "see\n\nOn 1/15/27 08:00, Eve <eve@evil.test> wrote:\n> EVIL"
    ann.sends(DESK, Letter(text=answered, headers=headers))
    channel = open_channel()
    for inbound in await take(channel, 3, confirm=True):
        assert b"EVIL" in await outside(channel, inbound) and "EVIL" not in own(inbound)


async def test_a_reply_below_the_quote_is_heard(ann: Mailbox, open_channel: Open) -> None:
    channel = open_channel()
    await channel.send(saying(HERE, "shall I?"), "")
    begun = ann.reads()[-1]
    text = "On 1/15/27 08:00, Desk wrote:\n> shall I?\n\nyes"
    ann.sends(DESK, Letter(text=text, answers=begun, quote=False))
    ann.replies(begun, "end")
    assert [own(each) for each in await take(channel, 2, confirm=True)] == ["yes", "end"]


FILES: list[tuple[bytes, str, str, type]] = [
    (b"one,two", "Ünï.csv", "text/csv", File),
    (PNG, "a.png", "image/png", Image),
    (b"OggS", "a.ogg", "audio/ogg", Audio),
    (b"mpeg", "a.mp4", "video/mp4", File),
]


async def test_files(ann: Mailbox, open_channel: Open) -> None:
    files = [Attachment(name, mime, data) for data, name, mime, _ in FILES]
    ann.sends(DESK, Letter(text="look", subject="", files=files))
    channel = open_channel()
    *found, words = parts(await one(channel))
    assert words == Text("look") and [type(each) for each in found] == [each[3] for each in FILES]
    kept = [await channel._context.get_blob(each.blob) for each in found]
    assert [each.rstrip() for each in kept] == [each[0] for each in FILES]


PDF = "Content-Type: application/pdf\r\nContent-Disposition: {}; filename=a.pdf\r\n\r\n%PDF"
SHAPES: dict[str, str] = {
    "Apple Mail": "Content-Type: multipart/alternative; boundary=x\r\n\r\n--x\r\n\r\nlook\r\n--x"
    "\r\nContent-Type: multipart/mixed; boundary=y\r\n\r\n--y\r\nContent-Type: text/html"
    "\r\n\r\n<p>look"
    f"\r\n--y\r\n{PDF.format('inline')}\r\n--y--\r\n--x--",
    "signed": "Content-Type: multipart/signed; boundary=x\r\n\r\n--x\r\nContent-Type: multipart/"
    f"mixed; boundary=y\r\n\r\n--y\r\n\r\nlook\r\n--y\r\n{PDF.format('attachment')}\r\n--y"
    f"--\r\n--x\r\n"
    "Content-Type: application/pgp-signature\r\n\r\nsig\r\n--x--",
    "Outlook": "Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Type: multipart/"
    "related; boundary=y\r\n\r\n--y\r\nContent-Type: text/html\r\n\r\n<p>look\r\n--y\r\n"
    f"{PDF.format('inline')}\r\n--y--\r\n--x--",
    "a scanner": PDF.format("attachment"),
    "words around it": "Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\nlook\r\n--x\r\n"
    f"{PDF.format('inline')}\r\n--x\r\n\r\nthere\r\n--x--",
}
WORDS = {"a scanner": [], "words around it": ["look", "there"]}


async def test_a_file_anywhere_in_a_mail(server: Provider, open_channel: Open) -> None:
    channel = open_channel()
    for number, shape in enumerate(SHAPES.values()):
        mail = make(f"Message-ID: <{number}@x>", text=shape)
        server.imap.put(DESK, mail.replace(b"\r\n\r\n", b"\r\n", 1))
    found = dict(zip(SHAPES, await take(channel, len(SHAPES), confirm=True), strict=True))
    for name, inbound in found.items():
        assert b"%PDF" in await outside(channel, inbound), name
        assert own(inbound).split() == WORDS.get(name, ["look"]), name


ODD: dict[str, bytes] = {
    "comments": make(sender="(" * 2000 + ")" * 2000 + ANN),
    "parts": make(
        *(f'Content-Type: multipart/mixed; boundary="{i}"\r\n\r\n--{i}' for i in range(1500))
    ),
    "mails": make(*["Content-Type: message/rfc822\r\n"] * 1500),
    "senders": make(sender="a," * 60_000 + ANN),
    "nothing": b"\0\r\n\r\n\xff",
    "lines": make("Subject: " + "=?utf-8?q?a?= " * 5000, "Message-ID: <"),
    "charset": make('Content-Type: text/plain; charset="\0"', "Date: 99 Foo 9999999", text="\xff"),
    "results": make(results="(" * 5000 + PASS),
}


async def test_a_mail_that_cannot_be_read_holds_up_nothing(
    server: Provider, open_channel: Open
) -> None:
    for odd in ODD.values():
        server.imap.put(DESK, odd)
    server.imap.put(DESK, make(text="the end"))
    begun = process_time()
    receiving = cast(AsyncGenerator[Inbound], open_channel().receive())
    async with aclosing(receiving):
        with anyio.fail_after(10):
            while "the end" not in own(await anext(receiving)):
                pass
    assert process_time() - begun < 5, "all others wait for it"


@pytest.mark.parametrize("page", ["<a " * 10_000, '<a href="' * 10_000, "<!--" * 10_000])
def test_a_page_is_read_in_time(page: str) -> None:
    """Also one that was made to take long: everybody can send one, and all wait for it."""
    begun = process_time()
    html_to_text(page)
    assert process_time() - begun < 1


async def test_a_mail_that_is_too_large(server: Provider, open_channel: Open) -> None:
    """It is said that there is more than what is seen."""
    server.imap.put(DESK, make("Subject: all of it", text="look" + "\r\n" + "x" * (51 * 2**20)))
    inbound = await one(open_channel())
    texts = [each.text for each in parts(inbound) if isinstance(each, Text)]
    assert "all of it" in "\n".join(texts) and "50 MB" in "\n".join(texts)


PROGRAMS = [
    "Auto-Submitted: auto-replied",
    "Auto-Submitted: auto-generated (a report)",
    "Precedence: bulk",
    "List-Id: <all.home.test>",
    "X-Auto-Response-Suppress: All",
    "Return-Path: <>",
    "Precedence: auto_reply",
    "X-Autoreply: yes",
    "Content-Type: multipart/report; report-type=disposition-notification; boundary=x",
]


async def test_programs_and_ourselves(server: Provider, open_channel: Open) -> None:
    """Everybody says what they are, but what we sent ourselves is not read."""
    for number, head in enumerate(PROGRAMS):
        text = "--x\r\n\r\nread\r\n--x--" if "boundary" in head else "read"
        server.imap.put(DESK, make(f"Message-ID: <{number}@x>", head, text=text))
    server.imap.put(DESK, make(sender=f"Desk <{DESK.upper()}>"))
    server.imap.put(DESK, make("Auto-Submitted: no", "Message-ID: <end@x>"))
    *programs, person = await take(open_channel(), len(PROGRAMS) + 1, confirm=True)
    assert not person.by_program and person.external_id.endswith("end@x")
    heard = zip(PROGRAMS, programs, strict=True)
    assert [head for head, each in heard if not each.by_program] == []


async def test_nobody_takes_the_name_of_a_mail(
    server: Provider, ann: Mailbox, open_channel: Open
) -> None:
    """Two mails with one id are two: what is named alike is dropped as known."""
    for person in ("eve", "ann"):
        data = make("Message-ID: <1@home.test>", sender=f"{person}@home.test")
        server.imap.put(DESK, data)
    server.imap.put(DESK, make("Message-ID: <2@home.test>"))
    found = await take(open_channel(), 3, confirm=True)
    assert [each.sender for each in found] == ["eve@home.test", ANN, ANN]


async def test_how_it_is_said(server: Provider, ann: Mailbox, open_channel: Open) -> None:
    """Whatever the mail is called that is answered: programs find the thread by that."""
    name = f"<{'A' * 60}.{'b' * 30}@outlook.home.test>"
    subject = "Grüße und noch viel mehr Worte, " * 6
    ann.sends(DESK, Letter(text="hi", subject=subject, headers={"Message-ID": name}))
    asked = await one(open_channel())
    fresh = open_channel()
    said = "**so** [x](https://a.test) <img src=x>"
    await fresh.send(saying(asked.address, said), "may be a duplicate")
    mail = ann.reads()[-1]
    assert mail.subject.split() == f"Re: {subject}".split()
    assert mail.text == "(may be a duplicate)\nso x (https://a.test) <img src=x>"
    assert "<strong>so</strong>" in mail.html and "<img" not in mail.html
    raw = server.taken[-1].data.replace(b"\r\n", b"").decode()
    assert f"In-Reply-To: {name}" in raw and f"References: {name}" in raw
    await fresh.send(replace(saying(asked.address, "https://evil.test", key="k2"), links=()), "")
    assert "//evil.test" not in ann.reads()[-1].text


async def test_files_out(ann: Mailbox, open_channel: Open) -> None:
    channel = open_channel()
    keep = channel._context.put_blob
    items = (
        Image(await keep(PNG), "image/png", "a.png"),
        File(await keep(b"text"), 'Ünï "1"\n.txt', "text/plain", 4),
        File(await keep(b"odd"), "odd", "text", 3),
        File("sha256:" + "0" * 64, "gone.txt", "text/plain", 1),
    )
    await channel.send(saying(HERE, "**see**", *items), "")
    mail: Mail = ann.reads()[-1]
    assert [each.data.strip() for each in mail.files] == [PNG, b"text", b"odd"]
    assert "gone.txt" in mail.text and "see" in mail.text
    large = File(await keep(b"x" * (21 * 2**20)), "big.iso", "application/octet-stream", 1)
    await channel.send(saying(HERE, large, key="k2"), "")
    assert "big.iso" in ann.reads()[-1].text and not ann.reads()[-1].files


async def test_voice_messages_out(ann: Mailbox, open_channel: Open) -> None:
    channel = open_channel()
    sound = make_silence(1.0)
    audio = Audio(await channel._context.put_blob(sound), "audio/ogg")
    await channel.send(saying(HERE, audio), "")
    (file,) = ann.reads()[-1].files
    assert file == Attachment("voice.ogg", "audio/ogg", sound)


async def test_a_voice_that_is_passed_on_is_not_theirs(ann: Mailbox, open_channel: Open) -> None:
    """Of a mail that is forwarded, all that is attached was."""
    forwarded = "look\n\n---------- Forwarded message ---------\nFrom: x\n\nhear this"
    for text in ("hear me", forwarded):
        ann.speaks(DESK, b"OggS", text)
    theirs, passed_on = [
        each
        for mail in await take(open_channel(), 2, confirm=True)
        for each in parts(mail)
        if isinstance(each, Audio)
    ]
    assert theirs.label == UNTRUSTED and passed_on.label == PASSED_ON


async def test_what_surely_did_not_arrive(
    server: Provider, ann: Mailbox, open_channel: Open
) -> None:
    channel = open_channel()
    faults: list[tuple[str, Callable[[], object], bool]] = [
        ("later", lambda: server.fail("DATA", "451 4.3.0 Try again later"), True),
        ("greylist", lambda: server.fail("RCPT", "450 4.2.0 Greylisted"), True),
        ("flood", lambda: server.fail("MAIL", "421 4.7.0 Too many messages"), True),
        ("cut before", lambda: server.lose("RCPT"), True),
        ("cut", lambda: server.lose("DATA"), False),
    ]
    for key, plan, unsent in faults:
        plan()
        with pytest.raises(ChannelError) as fault:
            await channel.send(saying(HERE, "x", key=key), "")
        assert not isinstance(fault.value, SendRefused) and fault.value.unsent == unsent, key
    assert len(ann.reads()) == 1
    server.hang("DATA")
    with anyio.move_on_after(0.3) as scope:
        await channel.send(saying(HERE, "hung", key="k"), "")
    assert scope.cancelled_caught
    await server.stop_smtp()
    with pytest.raises(ChannelError) as away:
        await channel.send(saying(HERE, "x"), "")
    assert away.value.unsent
    await server.start_smtp()


@pytest.mark.parametrize("reply", ["421 4.7.0 Too many messages", "450 4.2.0 Greylisted"])
async def test_a_server_that_asks_to_wait(
    reply: str, server: Provider, ann: Mailbox, open_channel: Open
) -> None:
    """SMTP does not say for how long."""
    channel = open_channel()
    server.fail("RCPT", reply)
    with pytest.raises(ChannelError) as wait:
        await channel.send(saying(HERE, "hello"), "")
    assert wait.value.unsent and wait.value.retry_after_s == 60
    await channel.send(saying(HERE, "hello"), "")
    assert [each.text for each in ann.reads()] == ["hello"]


async def test_a_mail_that_was_taken_was_sent(
    server: Provider, ann: Mailbox, open_channel: Open
) -> None:
    """However the server ends what follows."""
    server.bye = "421 4.4.2 Timeout"
    await open_channel().send(saying(HERE, "x"), "")
    assert len(ann.reads()) == 1


async def test_an_answer_does_not_wait_for_the_mailbox(
    server: Provider, ann: Mailbox, open_channel: Open
) -> None:
    """Its subject stands there, and nothing else that is needed."""
    there = replace((await one_of(ann, open_channel)).address)
    await server.stop_imap()
    try:
        await open_channel().send(saying(there, "x"), "")
    except ChannelError as fault:
        assert fault.unsent, "it was not even tried"
    await server.start_imap()


async def one_of(ann: Mailbox, open_channel: Open) -> Inbound:
    ann.writes(DESK, "hello")
    return await one(open_channel())


async def test_nobody_there(open_channel: Open) -> None:
    channel = open_channel()
    for to in ("nobody@home.test", "12345", "a b@home.test", "jörg@home.test"):
        with pytest.raises(SendRefused):
            await channel.send(saying(replace(HERE, chat=to), "x", key=to), "")


async def test_questions_in_words(ann: Mailbox, open_channel: Open) -> None:
    channel = open_channel()
    ask = Choices("ask_0", "Which **one**?", ("red", "blue"))
    asking = Outgoing("k", HERE, (Text(ask.text),), ask=ask)
    await channel.send(asking, "")
    question = 'shell {"command":"echo **a** <b> [c](d) https://evil.test"}'
    approval = Choices("ask_1", question, ("once", "no"), approval=True)
    await channel.send(replace(asking, key="k2", ask=approval), "")
    await channel.send(replace(asking, key="k3", ask=replace(approval, decided="no, says Ann")), "")
    which, allow, decided = [each.text for each in ann.reads()]
    assert "red" in which and "blue" in which and "once" in allow and "no, says Ann" in decided
    assert question.replace("https://evil.test", "https[:]//evil[.]test") in allow


async def test_where_it_goes_on(server: Provider, ann: Mailbox, open_channel: Open) -> None:
    """After a connection that was cut, and where the server counts anew; nothing is marked."""
    ann.writes(DESK, "one", subject="")
    channel = open_channel()
    cursor = channel._context.load_cursor()
    async with aclosing(cast(AsyncGenerator[Inbound], channel.receive())) as inbounds:
        assert own(await anext(inbounds)) == "one"
        assert channel._context.load_cursor() == cursor, "it may not be safe yet"
        with pytest.raises(ChannelError, match="each channel its own"):
            await one(open_channel())
        await anyio.to_thread.run_sync(partial(server.imap.kick, DESK))
        with pytest.raises(ChannelError):
            await anext(inbounds)
    ann.writes(DESK, "two", subject="")
    assert own(await one(channel)) == "two"
    await anyio.to_thread.run_sync(partial(server.imap.renumber, DESK))
    ann.writes(DESK, "three", subject="")
    assert "three" in [own(each) for each in await take(channel, 3, confirm=True)]
    assert not any(each.seen for each in server.person("desk").reads())


async def test_a_login_that_is_refused(open_channel: Open) -> None:
    channel = open_channel(user="nobody@home.test")
    with pytest.raises(LoginRefused, match="app password") as refused:
        await channel.send(saying(HERE, "x"), "")
    assert refused.value.unsent
    with pytest.raises(LoginRefused):
        await one(channel)
    assert "app password" in channel.health().error


async def test_a_mailbox_that_falls_silent_is_given_up(
    server: Provider, open_channel: Open
) -> None:
    """Its connection stays, so that nothing but the silence shows it."""
    desk = server.person("desk")
    stream = await anyio.connect_tcp("127.0.0.1", server.imap.port)
    imap = Imap(stream, call_s=3.0, idle_s=1.0)
    await imap.log_in(desk.address, desk.password)
    reading = cast(AsyncGenerator[FoundMail], imap.read_new(MailCursor()))

    async def freeze() -> None:
        await anyio.sleep(0.5)  # it waits for news by then
        server.imap.freeze()

    async with aclosing(reading), anyio.create_task_group() as tasks:
        await anext(reading)
        tasks.start_soon(freeze)
        try:
            with anyio.fail_after(10), pytest.raises(TimeoutError):
                await anext(reading)
        finally:
            server.imap.thaw()
            await imap.close()
    assert isinstance(translate_error(TimeoutError()), ChannelError)


WRONG: list[tuple[dict[str, str], str]] = [
    ({"base_url": "imap://imap.example.org"}, "in the open"),
    ({"base_url": "https://imap.example.org"}, "imaps://"),
    ({"send_url": ""}, "smtps://"),
    ({"user": "desk"}, "address of the mailbox"),
    ({"verified_by": ""}, "verified_by is not set"),
]


@pytest.mark.parametrize(("config", "why"), WRONG)
def test_what_cannot_work(config: dict[str, str], why: str, tmp_path: Path) -> None:
    right = {
        "base_url": "imaps://imap.example.org",
        "send_url": "smtps://smtp.example.org",
        "user": DESK,
        "verified_by": AUTHORITY,
    }
    settings = ChannelConfig(**{**right, **config})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=why):
        open_mail(MemoryContext("mail", settings, tmp_path, "secret"))
