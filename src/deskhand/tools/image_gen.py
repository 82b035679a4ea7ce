"""`image_gen`: a picture from words, by a provider that has OpenAI's images interface:
https://platform.openai.com/docs/api-reference/images. Offered where a model for it is set."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from functools import partial

import anyio.to_thread
import msgspec

from ..models.pictures import detect_media_type
from ..net.client import Net, NetLimits, OutboundRequest
from ..net.form import FormFile, encode_form
from ..net.url import parse_url
from ..types.commit import Change, Outgoing
from ..types.errors import NetError, ToolError
from ..types.identity import OWN_SURFACES
from ..types.messages import Image, Text, clean_text
from .base import Context, Done, Tool, call_label, label_errors
from .define import tool
from .label_marks import load_marks
from .watch import change_file

LIMITS = NetLimits(body_bytes=60_000_000, total_s=300.0, idle_s=240.0, redirects=0)
"""A picture takes a minute. An address that leads elsewhere is not followed: the key would go
along."""
MAX_PROMPT_CHARS = 8_000
MAX_IMAGES = 4
MAX_IMAGE_BYTES = 20 << 20


class ImageGenConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """`model` is `provider/name`, '' for no pictures. `url` is the base URL of another server that
    has the interface, `key_env` the variable with its key, `size` what is asked for."""

    model: str = ""
    url: str = ""
    key_env: str = ""
    size: str = ""


class ImageProvider(msgspec.Struct, frozen=True):
    """Where pictures are made: `base` is a base URL such as https://api.openai.com/v1, and `model`
    how the provider calls its model."""

    name: str
    model: str
    base: str
    key: str = ""
    size: str = ""


class _Made(msgspec.Struct, frozen=True):
    b64_json: str = ""
    url: str = ""


class _MadeImages(msgspec.Struct, frozen=True):
    data: tuple[_Made, ...] = ()


def make_image_tool(provider: ImageProvider) -> Tool:
    """The tool with this provider. The words, and the pictures that are given, go to it alone."""

    @tool(effect="network", replay="commit", timeout_s=320, hint="pictures")
    async def image_gen(
        prompt: str,
        context: Context,
        images: list[str] = [],  # noqa: B006 -- becomes a schema
        output_path: str = "",
        caption: str = "",
        send_result: bool = True,
    ) -> Done:
        """Make a picture from words, or from pictures and words.

        images: files of the workspace to change or to go by
        output_path: where to keep it in the workspace
        send_result: send it to this chat
        """
        if not prompt.strip() or len(prompt) > MAX_PROMPT_CHARS:
            raise ToolError(f"the prompt has 1 to {MAX_PROMPT_CHARS:,} characters")
        if len(images) > MAX_IMAGES:
            raise ToolError(f"at most {MAX_IMAGES} pictures can be given")
        given = [await _read_picture(path, context) for path in images]
        data = await _ask(provider, prompt, given, context.reach.net)
        return await _deliver(data, context, output_path, caption, send_result)

    return image_gen


async def _read_picture(path: str, context: Context) -> bytes:
    """Raises ToolError, also for what is one person's alone where others read along."""
    read = partial(context.reach.files.read_opened, path, MAX_IMAGE_BYTES + 1)
    opened = await anyio.to_thread.run_sync(read)
    marks = await load_marks(context)
    if marks.is_hidden_from(opened.place, context):
        raise ToolError(f"{path!r} is only for its owner")
    if len(opened.data) > MAX_IMAGE_BYTES or not detect_media_type(opened.data):
        raise ToolError(f"{path!r} is no picture of at most {MAX_IMAGE_BYTES >> 20} MB")
    return opened.data


async def _ask(provider: ImageProvider, prompt: str, given: Sequence[bytes], net: Net) -> bytes:
    """The picture. Raises ToolError with the provider's reason."""
    request = make_request(provider, prompt, given)
    # The word of whoever sets it: it may stand on this machine.
    allowed = net.with_allowed_host(request.url.host, request.url.port)
    try:
        fetched = await allowed.send(request, LIMITS)
    except NetError as error:
        raise ToolError(f"{provider.name} made no picture: {error}") from error
    if fetched.status != 200:
        said = clean_text(fetched.body[:500].decode(errors="replace"))
        raise ToolError(f"{provider.name} made no picture: {fetched.status} {said}")
    return read_answer(provider, fetched.body)


def read_answer(provider: ImageProvider, body: bytes) -> bytes:
    """The first picture of an answer. Raises ToolError."""
    try:
        answer = msgspec.json.decode(body, type=_MadeImages)
        data = base64.b64decode(answer.data[0].b64_json, validate=True)
    except (ValueError, RecursionError, IndexError, binascii.Error) as error:
        raise ToolError(f"{provider.name} answered something that is no picture") from error
    if not detect_media_type(data):
        raise ToolError(f"{provider.name} answered something that is no picture")
    return data


def make_request(
    provider: ImageProvider, prompt: str, given: Sequence[bytes] = ()
) -> OutboundRequest:
    """What is sent: to `images/edits` as a form where there are pictures, else to
    `images/generations` as JSON."""
    fields = {"model": provider.model, "prompt": prompt}
    if provider.size:
        fields["size"] = provider.size
    if not provider.model.startswith("gpt-image"):
        fields["response_format"] = "b64_json"  # the newer ones give nothing else
    headers = {"accept": "application/json"}
    if provider.key:
        headers["authorization"] = f"Bearer {provider.key}"
    base = provider.base.rstrip("/")
    if not given:
        headers["content-type"] = "application/json"
        body = msgspec.json.encode(fields)
        return OutboundRequest(parse_url(f"{base}/images/generations"), headers, "POST", body)
    field = "image[]" if len(given) > 1 else "image"
    files = [_make_file(field, number, data) for number, data in enumerate(given)]
    headers["content-type"], body = encode_form(fields, files)
    return OutboundRequest(parse_url(f"{base}/images/edits"), headers, "POST", body)


def _make_file(field: str, number: int, data: bytes) -> FormFile:
    kind = detect_media_type(data)
    return FormFile(field, f"{number}.{kind.removeprefix('image/')}", kind, data)


async def _deliver(
    data: bytes, context: Context, output_path: str, caption: str, send_result: bool
) -> Done:
    """Keep the picture, and send it where that is wanted."""
    label = call_label(context)
    kind = detect_media_type(data)
    blob = await context.reach.host.put_blob(data)
    name = f"picture.{kind.removeprefix('image/')}"
    picture = Image(blob, kind, name, label)
    rows: tuple[Change, ...] = ()
    said = ["made a picture"]
    if output_path:
        write = partial(context.reach.files.write, output_path, data)
        with label_errors(label):
            rows = await change_file(context, "image_gen", output_path, write, context.label)
        said.append(f"kept as {output_path}")
    outbox: tuple[Outgoing, ...] = ()
    if send_result and context.address.channel not in OWN_SURFACES:  # there it is shown
        words = (Text(clean_text(caption)),) if caption.strip() else ()
        outbox = (
            Outgoing(f"{context.key}:picture", context.address, (*words, Image(blob, kind, name))),
        )
        said.append("on its way to this chat")
    return Done((Text("; ".join(said), label), picture), changes=rows, outbox=outbox)
