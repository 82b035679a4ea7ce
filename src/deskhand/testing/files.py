"""A web server on loopback with one file, which can break in the ways that downloads meet."""

from __future__ import annotations

import asyncio
import re


class FileServer:
    """Serves `data` at `url`. `ranges` are the Range headers that it got. `cut_after` bytes of an
    answer it hangs up, after `dies_after` answers at once; `silent` sends headers and nothing
    else."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.ranges: list[str] = []
        self.status = 200
        self.cut_after = 0
        self.dies_after = 0
        self.ranges_work = True
        self.silent = False
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/file"

    async def __aenter__(self) -> FileServer:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            found = re.search(r"(?im)^range: (bytes=(\d+)-)", head)
            self.ranges.append(found[1] if found else "")
            if self.dies_after and len(self.ranges) > self.dies_after:
                return
            start = int(found[2]) if found and self.ranges_work else 0
            body = self.data[start:]
            status = self.status if self.status != 200 else 206 if start else 200
            lines = [f"HTTP/1.1 {status} File", f"Content-Length: {len(body)}", "Connection: close"]
            if start:
                lines.append(f"Content-Range: bytes {start}-{len(self.data) - 1}/{len(self.data)}")
            writer.write("\r\n".join([*lines, "", ""]).encode())
            if self.silent:
                await writer.drain()
                await reader.read()
            else:
                writer.write(body[: self.cut_after] if self.cut_after else body)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
