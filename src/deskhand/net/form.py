"""Forms with files, as they are sent: RFC 7578."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

import msgspec


class FormFile(msgspec.Struct, frozen=True):
    """A file of a form. Its `field` and its `name` are ours, and so is its `mime` type: nothing in
    them is quoted."""

    field: str
    name: str
    mime: str
    data: bytes


def encode_form(fields: Mapping[str, str], files: Sequence[FormFile]) -> tuple[str, bytes]:
    """The content type and the body of a form."""
    boundary = uuid.uuid4().hex
    pieces = []
    for name, value in fields.items():
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
        pieces.append(head.encode() + value.encode() + b"\r\n")
    for file in files:
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="{file.field}"; '
            f'filename="{file.name}"\r\nContent-Type: {file.mime}\r\n\r\n'
        )
        pieces.append(head.encode() + file.data + b"\r\n")
    pieces.append(f"--{boundary}--\r\n".encode())
    return f"multipart/form-data; boundary={boundary}", b"".join(pieces)
