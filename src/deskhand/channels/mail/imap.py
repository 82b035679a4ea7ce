"""A mailbox that is read by IMAP: what is new in it, in order, as soon as it is there.

https://www.rfc-editor.org/rfc/rfc9051, and rfc2177 for IDLE. Only what that takes is here. The
libraries that there are lose what arrives between two commands, cannot be cancelled, or have a
licence that ours does not allow.
"""

from __future__ import annotations

import re
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import anyio
import msgspec
from anyio.abc import ByteStream

CALL_S = 60.0
CONNECT_S = 20.0
IDLE_S = 4 * 60.0
"""After so long without news the server is asked whether it is still there."""
POLL_S = 60.0
"""How often a server is asked that knows no IDLE."""
MAX_LINE_BYTES = 2**20
MAX_MAIL_BYTES = 50 * 2**20
_LITERAL = re.compile(rb"\{(\d{1,12})\}$")
_DAY_S = 86_400.0


class ImapGone(Exception):
    """The connection is lost, and another may be made."""


class ImapRefused(Exception):
    """The server answered NO or BAD."""


class Response(msgspec.Struct, frozen=True):
    """One answer of the server: its text, with literals left out, and these."""

    text: bytes
    literals: tuple[bytes, ...] = ()


class MailCursor(msgspec.Struct, frozen=True, array_like=True):
    """Up to where a mailbox is read. `validity` is which numbering the server uses, 0 at first;
    `uid` is the last mail that was taken, `at` when that was."""

    validity: int = 0
    uid: int = 0
    at: float = 0.0


class FoundMail(msgspec.Struct, frozen=True):
    """A mail, and the cursor that is right once it is taken. Of one that is too large there is only
    the head: then it is not whole."""

    data: bytes
    cursor: MailCursor
    is_whole: bool = True


class Imap:
    """A connection, used by one task. A server that answers nothing for `call_s` is given up; it is
    asked after `idle_s` without news."""

    def __init__(
        self, stream: ByteStream, *, call_s: float = CALL_S, idle_s: float = IDLE_S
    ) -> None:
        self._stream = stream
        self._call_s = call_s
        self._idle_s = idle_s
        self._buffer = bytearray()
        self._number = 0
        self._is_news = False
        self._knows_idle = True

    async def log_in(self, user: str, password: str) -> None:
        """Raises ImapRefused, ImapGone, TimeoutError."""
        with anyio.fail_after(self._call_s):
            await self._read_response()  # the greeting
        tag = await self._begin("AUTHENTICATE PLAIN")
        with anyio.fail_after(self._call_s):
            answer = await self._read_response()
            if answer.text.startswith(b"+"):
                secret = b64encode(f"\0{user}\0{password}".encode())
                await self._send(secret + b"\r\n")
                answer = await self._read_response()
            while not answer.text.startswith(tag + b" "):
                answer = await self._read_response()
        if not answer.text.startswith(tag + b" OK"):
            raise ImapRefused(_read_text(answer.text, tag))
        abilities = await self.call("CAPABILITY")
        self._knows_idle = any(b" IDLE" in each.text.upper() for each in abilities)

    async def call(self, command: str) -> list[Response]:
        """All that the server answers. Raises ImapRefused, ImapGone, TimeoutError."""
        tag = await self._begin(command)
        found: list[Response] = []
        with anyio.fail_after(self._call_s):
            while True:
                answer = await self._read_response()
                found.append(answer)
                if answer.text.startswith(tag + b" "):
                    break
        if not answer.text.startswith(tag + b" OK"):
            raise ImapRefused(_read_text(answer.text, tag))
        return found

    async def wait_for_news(self) -> None:
        """Until something may have arrived. Raises ImapGone, TimeoutError."""
        if self._is_news:
            return
        if not self._knows_idle:
            await anyio.sleep(POLL_S)
            return
        tag = await self._begin("IDLE")
        with anyio.fail_after(self._call_s):
            while not (await self._read_response()).text.startswith(b"+"):
                pass
        with anyio.move_on_after(self._idle_s):  # what was received of a line stays in the buffer
            while not self._is_news:
                await self._read_response()
        with anyio.fail_after(self._call_s):
            await self._send(b"DONE\r\n")
            while not (await self._read_response()).text.startswith(tag + b" "):
                pass

    async def read_new(self, cursor: MailCursor) -> AsyncIterator[FoundMail]:
        """Each mail, for ever; with the first of all cursors an empty one and where the mailbox
        ends now.

        Where the server has numbered its mails anew, those of the last day come again. Raises
        ImapRefused, ImapGone, TimeoutError.
        """
        found = await self.call("SELECT INBOX")
        validity, following = _find_number(found, b"UIDVALIDITY"), _find_number(found, b"UIDNEXT")
        if not cursor.validity:
            cursor = MailCursor(validity, max(following - 1, 0))
            yield FoundMail(b"", cursor)
        wanted = f"UID {cursor.uid + 1}:*"
        if cursor.validity != validity:
            day = datetime.fromtimestamp(max(cursor.at - _DAY_S, 0.0), UTC)
            wanted = f"SINCE {day.day}-{day:%b-%Y}"
            cursor = MailCursor(validity, 0, cursor.at)
        while True:
            self._is_news = False
            await self.call("NOOP")  # the server looks at the mailbox now
            for uid in await self._search(wanted):
                if uid > cursor.uid:  # a range always has the last one
                    mail, whole = await self._fetch(uid)
                    cursor = MailCursor(validity, uid, cursor.at)
                    if mail is not None:  # else it was deleted meanwhile
                        yield FoundMail(mail, cursor, is_whole=whole)
            wanted = f"UID {cursor.uid + 1}:*"
            await self.wait_for_news()

    async def find_subject(self, message_id: str) -> bytes:
        """The line with the subject of the mail with this id, or b"". Raises ImapRefused, ImapGone,
        TimeoutError."""
        if not re.fullmatch(r"[^\s\"\\\x00-\x1f\x7f-\U0010ffff]{1,900}", message_id):
            return b""
        await self.call("EXAMINE INBOX")
        found = await self._search(f'HEADER Message-ID "<{message_id}>"')
        for uid in found[-1:]:
            about = await self.call(f"UID FETCH {uid} (BODY.PEEK[HEADER.FIELDS (SUBJECT)])")
            return b"".join(each.literals[0] for each in about if each.literals)
        return b""

    async def close(self) -> None:
        with anyio.CancelScope(shield=True), anyio.move_on_after(1):
            await self._stream.aclose()

    async def _search(self, wanted: str) -> list[int]:
        answers = await self.call(f"UID SEARCH {wanted}")
        lists = [each.text.split()[2:] for each in answers if each.text.startswith(b"* SEARCH")]
        return sorted(int(uid) for found in lists for uid in found if uid.isdigit())

    async def _fetch(self, uid: int) -> tuple[bytes | None, bool]:
        """A mail, or only the head of a large one; and whether it is whole."""
        about = await self.call(f"UID FETCH {uid} (RFC822.SIZE)")
        size = _find_number(about, b"RFC822.SIZE")
        whole = size <= MAX_MAIL_BYTES
        part = "BODY.PEEK[]" if whole else "BODY.PEEK[HEADER]"
        answers = await self.call(f"UID FETCH {uid} ({part})")
        mails = (each.literals[0] for each in answers if each.literals and b" FETCH " in each.text)
        return next(mails, None), whole

    async def _begin(self, command: str) -> bytes:
        self._number += 1
        tag = f"d{self._number}".encode()
        await self._send(tag + b" " + command.encode() + b"\r\n")
        return tag

    async def _read_response(self) -> Response:
        text = await self._read_line()
        literals: list[bytes] = []
        while found := _LITERAL.search(text):
            literals.append(await self._read_exactly(int(found[1])))
            text = text[: found.start()] + await self._read_line()
        if text.startswith(b"* BYE"):
            raise ImapGone(_read_text(text, b"* BYE"))
        if text.startswith(b"* ") and text.endswith(b" EXISTS"):
            self._is_news = True
        return Response(text, tuple(literals))

    async def _read_line(self) -> bytes:
        start = 0
        while (at := self._buffer.find(b"\r\n", start)) < 0:
            start = max(len(self._buffer) - 1, 0)
            if start > MAX_LINE_BYTES:
                raise ImapGone("a line is too long")
            await self._receive()
        return self._take(at + 2)[:-2]

    async def _read_exactly(self, size: int) -> bytes:
        if size > MAX_MAIL_BYTES:
            raise ImapGone(f"the server sends {size:,} bytes at once")
        while len(self._buffer) < size:
            await self._receive()
        return self._take(size)

    def _take(self, size: int) -> bytes:
        found = bytes(self._buffer[:size])
        del self._buffer[:size]
        return found

    async def _receive(self) -> None:
        try:
            self._buffer += await self._stream.receive(2**16)
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise ImapGone("the server has closed the connection") from error

    async def _send(self, data: bytes) -> None:
        try:
            with anyio.fail_after(self._call_s):
                await self._stream.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise ImapGone("the server has closed the connection") from error


async def connect_imap(host: str, port: int, tls: ssl.SSLContext | None) -> Imap:
    """Raises OSError, TimeoutError."""
    with anyio.fail_after(CONNECT_S):
        if tls is None:
            return Imap(await anyio.connect_tcp(host, port))  # noqa: TID251 -- the person's own
        return Imap(
            await anyio.connect_tcp(  # noqa: TID251 -- the person's own mail server
                host, port, tls=True, ssl_context=tls, tls_standard_compatible=False
            )
        )


def _find_number(answers: list[Response], name: bytes) -> int:
    for each in answers:
        if found := re.search(rb"\b" + re.escape(name) + rb" (\d{1,20})\b", each.text):
            return int(found[1])
    return 0


def _read_text(text: bytes, begins: bytes) -> str:
    return text.removeprefix(begins).decode(errors="replace").strip()[:300]
