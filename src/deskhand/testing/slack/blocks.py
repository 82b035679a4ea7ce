"""What a message of Slack shows: its words, what of it is live, and which blocks Slack refuses.

The formats: https://docs.slack.dev/messaging/formatting-message-text (mrkdwn) and
https://docs.slack.dev/reference/block-kit/blocks. Block limits are the documented ones, but for the
length of all blocks together: people report 9,597 characters taken and 11,341 refused
(https://github.com/slackapi/bolt-js/issues/2867).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import Any

Json = dict[str, Any]
MAX_BLOCKS = 50
MAX_BLOCK_CHARACTERS = 10_000
_LIMITS = {"section": 3000, "header": 150, "context": 3000, "markdown": 12_000}
_BLOCKS = {"section", "header", "context", "markdown", "actions", "divider", "image", "rich_text"}
_BLOCKS |= {"input", "file", "video", "table", "context_actions"}
_FENCE = re.compile(r"```(.+?)```", re.DOTALL)
_CODE = re.compile(r"(?<![\w`])`([^`\n]+)`(?![\w`])")
_TARGET = re.compile(r"<([^<>\n]+)>")
_SPECIAL = re.compile(r"<(?:[@#!][^<>\n]*)>")
_ADDRESS = re.compile(r"https?://[^\s<>]+")


def escaped(text: str) -> str:
    """What people typed, as Slack hands it to apps: `&`, `<` and `>` are escaped, addresses are in
    angle brackets; mentions (`<@U1>`) are kept as they are."""
    found = []
    start = 0
    for special in _SPECIAL.finditer(text):
        found += [_linked(text[start : special.start()]), special.group()]
        start = special.end()
    return "".join([*found, _linked(text[start:])])


def _linked(text: str) -> str:
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _ADDRESS.sub(lambda each: f"<{each.group()}>", safe)


def unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


# ---------------------------------------------------------------------- what it reads like


def words(message: Json) -> str:
    """What a reader sees of a message, without formatting. Blocks are shown in place of the
    text."""
    blocks = message.get("blocks")
    if blocks:
        return "\n".join(filter(None, (_block_words(each) for each in blocks)))
    return plain(str(message.get("text", "")))


def plain(mrkdwn: str) -> str:
    """mrkdwn without its marks. What is in code is left as it is."""
    pieces = []
    for is_code, piece in _by_code(mrkdwn):
        shown = _TARGET.sub(_label, piece)
        pieces.append(shown if is_code else _without_marks(shown))
    return unescaped("".join(pieces))


def _without_marks(text: str) -> str:
    for mark in ("*", "_", "~"):
        sign = re.escape(mark)
        inner = (
            rf"(?<![\w{sign}]){sign}(?=[^\s{sign}])([^{sign}\n]*?[^\s{sign}]){sign}(?![\w{sign}])"
        )
        text = re.sub(inner, r"\1", text)
    return text


def _label(target: re.Match[str]) -> str:
    address, bar, label = target.group(1).partition("|")
    return label if bar else address


def _by_code(mrkdwn: str) -> Iterator[tuple[bool, str]]:
    """The pieces of a text, and whether each is in code."""
    start = 0
    for fence in _FENCE.finditer(mrkdwn):
        yield from _by_inline_code(mrkdwn[start : fence.start()])
        yield True, fence.group(1)
        start = fence.end()
    yield from _by_inline_code(mrkdwn[start:])


def _by_inline_code(mrkdwn: str) -> Iterator[tuple[bool, str]]:
    start = 0
    for code in _CODE.finditer(mrkdwn):
        yield False, mrkdwn[start : code.start()]
        yield True, code.group(1)
        start = code.end()
    yield False, mrkdwn[start:]


def _block_words(block: Json) -> str:
    match block["type"]:
        case "rich_text":
            return _rich_words(block.get("elements", []))
        case "markdown":
            return re.sub(r"(\*\*|__|`)(.+?)\1", r"\2", str(block.get("text", "")))
        case _:
            return "\n".join(_object_words(each) for each in _texts(block))


def _object_words(text: Json) -> str:
    shown = str(text["text"])
    return plain(shown) if text["type"] == "mrkdwn" else shown


def _texts(block: Json) -> Iterator[Json]:
    """The text objects that a block shows; the words on buttons are not among them."""
    inner = block.get("elements", []) if block["type"] == "context" else []
    candidates = [block.get("text"), block.get("title"), *block.get("fields", []), *inner]
    for each in candidates:
        if isinstance(each, dict) and each.get("type") in ("mrkdwn", "plain_text"):
            yield each


def _rich_words(elements: Iterable[Json]) -> str:
    """https://docs.slack.dev/reference/block-kit/blocks/rich-text-block"""
    shown = ""
    for each in elements:
        match each["type"]:
            case "text":
                shown += each["text"]
            case "link":
                shown += each.get("text") or each["url"]
            case "user":
                shown += f"@{each['user_id']}"
            case "emoji":
                shown += f":{each['name']}:"
            case "rich_text_list":
                shown += "".join(f"{_rich_words([item])}\n" for item in each["elements"])
            case _:
                shown += _rich_words(each.get("elements", ()))
    return shown


# ---------------------------------------------------------------------- what is live in it


def live(message: Json) -> str:
    """All of a message that Slack may turn into a link or a preview: what is in no code, and where
    links lead. Slack takes names of hosts for links too, so that this is all of the text. In text
    with `verbatim`, only what is in angle brackets becomes a link. The text beside blocks is shown
    in notifications, and counts."""
    found = [_live_mrkdwn(str(message.get("text", "")))]
    for block in message.get("blocks") or ():
        if block["type"] == "rich_text":
            found += _live_rich(block.get("elements", []))
        elif block["type"] == "markdown":
            found.append(_live_mrkdwn(str(block.get("text", ""))))
        else:
            found += [_live_object(each) for each in _texts(block)]
        buttons = [*block.get("elements", []), block.get("accessory") or {}, block]
        found += [
            str(each[key]) for each in buttons for key in ("url", "image_url") if each.get(key)
        ]
    return "\n".join(found)


def _live_object(text: Json) -> str:
    if text["type"] == "mrkdwn" and text.get("verbatim"):
        return "\n".join(_TARGET.findall(text["text"]))
    return _live_mrkdwn(text["text"]) if text["type"] == "mrkdwn" else str(text["text"])


def _live_mrkdwn(mrkdwn: str) -> str:
    """A link in angle brackets is one in code as well."""
    pieces = [
        "\n".join(_TARGET.findall(piece)) if is_code else piece
        for is_code, piece in _by_code(mrkdwn)
    ]
    return unescaped("\n".join(pieces))


def _live_rich(elements: Iterable[Json]) -> Iterator[str]:
    for each in elements:
        in_code = each.get("style", {}).get("code") if isinstance(each.get("style"), dict) else None
        if each["type"] == "link":
            yield str(each["url"])
        elif each["type"] == "text" and not in_code:
            yield str(each["text"])
        elif each["type"] == "rich_text_preformatted":
            inner = each.get("elements", ())
            yield from _live_rich(one for one in inner if one["type"] != "text")
        else:
            yield from _live_rich(each.get("elements", ()))


# ---------------------------------------------------------------------- what is refused


def block_error(blocks: object) -> str:
    """The error that Slack answers to these blocks, '' if it takes them."""
    if not isinstance(blocks, list) or any(not isinstance(each, dict) for each in blocks):
        return "invalid_blocks_format"
    if len(blocks) > MAX_BLOCKS or not all(_fits(each) for each in blocks):
        return "invalid_blocks"
    ids = [each["block_id"] for each in blocks if each.get("block_id")]
    if len(ids) != len(set(ids)):
        return "invalid_blocks"
    if sum(len(each) for each in _strings(blocks)) > MAX_BLOCK_CHARACTERS:
        return "msg_blocks_too_long"
    return ""


def _fits(block: Json) -> bool:
    kind = block.get("type")
    if kind not in _BLOCKS or len(block.get("block_id", "")) > 255:
        return False
    limit = _LIMITS.get(kind)
    texts = [str(each["text"]) for each in _texts(block)]
    if kind == "markdown":
        texts = [str(block.get("text", ""))]
    if limit is not None and any(not 0 < len(each) <= limit for each in texts):
        return False
    if len(block.get("elements", [])) > {"actions": 25, "context": 10}.get(kind, 10_000):
        return False
    if kind == "section" and not texts:
        return False
    return all(_button_fits(each) for each in buttons([block]))


def _button_fits(button: Json) -> bool:
    text = button.get("text", {})
    return (
        text.get("type") == "plain_text"
        and 0 < len(text.get("text", "")) <= 75
        and len(button.get("value", "")) <= 2000
        and len(button.get("action_id", "")) <= 255
        and len(button.get("url", "")) <= 3000
    )


def _strings(value: object) -> Iterator[str]:
    """All that is text in blocks, as the length of them together is counted."""
    if isinstance(value, list):
        for each in value:
            yield from _strings(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if key == "text" and isinstance(each, str):
                yield each
            else:
                yield from _strings(each)


def buttons(blocks: Iterable[Json]) -> list[Json]:
    """The buttons in blocks, in order; each knows the id of its block."""
    found: list[Json] = []
    for block in blocks:
        inner = block.get("elements", []) if block["type"] == "actions" else []
        shown = [*inner, block.get("accessory") or {}]
        id = block.get("block_id", "")
        found += [{**each, "block_id": id} for each in shown if each.get("type") == "button"]
    return found


def named(blocks: list[Json], numbers: itertools.count[int]) -> list[Json]:
    """The blocks with the ids that Slack gives to those without one; all else stays as it is."""
    done = []
    for block in blocks:
        inner: Json = {}
        if block["type"] == "actions":
            inner["elements"] = [
                {"action_id": f"a{next(numbers)}", **each} for each in block.get("elements", [])
            ]
        done.append({"block_id": f"b{next(numbers)}", **block, **inner})
    return done
