"""How something is said on Slack, and what it answers, in our words.

Text goes as blocks of `rich_text`: what is bold, code or a link stands beside the words and not
among them, so that nothing has to be escaped and no address becomes a link by itself.
https://docs.slack.dev/reference/block-kit/blocks/rich-text-block
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from ...types.addresses import find_live_spans
from ...types.errors import ChannelError, LoginRefused, SendRefused
from ..buttons import Button
from ..markup import find_block, find_link, is_code, write_plain
from ..rich_text import Rich, Span, iter_runs
from ..web_api import ApiFault, WebApi
from .reader import ANSWER_ACTION, Json

_LOGIN_ERRORS = frozenset(
    ("invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive")
)
_WAIT_ERRORS = frozenset(
    ("internal_error", "fatal_error", "service_unavailable", "request_timeout", "ratelimited")
)
_STYLES = {"bold": "bold", "italic": "italic", "strikethrough": "strike", "code": "code"}
_SECTIONS = {"pre": "rich_text_preformatted", "blockquote": "rich_text_quote"}
_MAX_VALUE = 2000
MAX_LABEL_CHARS = 75
MAX_FALLBACK_CHARS = 600
_WEB = ("https://", "http://")


async def call_slack(api: WebApi, method: str, about: Mapping[str, object] | None = None) -> Json:
    """What a method of Slack's answers; what is empty is not said. Raises ApiFault, also where
    Slack answers that something is wrong."""
    fields = {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in (about or {}).items()
        if value != ""
    }
    answer: Json = await api.post_form(f"/{method}", fields)
    if not answer.get("ok"):
        raise ApiFault(str(answer.get("error", "it does not say why")), 200, answer)
    return answer


def translate_error(error: Exception) -> ChannelError:
    """What came of a call, in our words."""
    if not isinstance(error, ApiFault) or (error.status < 300 and not error.body):
        unsent = isinstance(error, ApiFault) and error.unsent
        why = str(error) or type(error).__name__
        return ChannelError(f"Slack could not be reached: {why}", unsent=unsent)
    name = str(error.body.get("error", ""))
    if error.status == 429 or name == "ratelimited":
        wait = error.find_wait_s()
        return ChannelError(f"Slack asks to wait {wait:.0f} s", wait, unsent=True)
    if name in _LOGIN_ERRORS:
        return LoginRefused(
            f"Slack does not accept this token ({name}): install the app again, and copy its token",
            300,
            unsent=True,
        )
    if name == "missing_scope":
        return SendRefused(
            f"the Slack app lacks the scope {error.body.get('needed', '')}: add it under OAuth & "
            "Permissions, and install the app again"
        )
    if error.status >= 500 or name in _WAIT_ERRORS:
        return ChannelError(f"Slack has a fault: {name or error}")
    return SendRefused(f"Slack refuses: {name or error}")


def make_blocks(rich: Rich, buttons: Sequence[Button] = ()) -> list[dict[str, Any]]:
    """The words, and the buttons below them."""
    sections = []
    for kind, runs in groupby(iter_runs(rich), key=lambda run: find_block(run[1])):
        elements = [each for text, spans in runs for each in _make_elements(text, spans)]
        if elements:
            sections.append(
                {"type": _SECTIONS.get(kind, "rich_text_section"), "elements": elements}
            )
    blocks: list[dict[str, Any]] = []
    if sections:
        blocks.append({"type": "rich_text", "elements": sections})
    return [*blocks, *make_button_blocks(buttons)]


def make_button_blocks(buttons: Sequence[Button]) -> list[dict[str, Any]]:
    """The block of these buttons; none without a button."""
    if not buttons:
        return []
    return [{"type": "actions", "elements": _make_buttons(buttons)}]


def _make_elements(text: str, spans: tuple[Span, ...]) -> list[dict[str, Any]]:
    """A stretch of text with its style. An address that stands there by itself is a link, but not
    in code."""
    if not text:
        return []
    style = {_STYLES[span.kind]: True for span in spans if span.kind in _STYLES}
    about = {"style": style} if style and not any(span.kind == "pre" for span in spans) else {}
    if link := find_link(spans):
        return [{"type": "link", "url": link, "text": text, **about}]
    found: list[dict[str, Any]] = []
    at = 0
    for start, end in () if is_code(spans) else find_live_spans(text):
        if text.startswith(_WEB, start):
            found += [
                {"type": "text", "text": text[at:start], **about},
                {"type": "link", "url": text[start:end], **about},
            ]
            at = end
    found.append({"type": "text", "text": text[at:], **about})
    return [each for each in found if each.get("text") != ""]


def _make_buttons(buttons: Sequence[Button]) -> list[dict[str, Any]]:
    return [
        {
            "type": "button",
            "action_id": f"{ANSWER_ACTION}_{i}",
            "text": {"type": "plain_text", "text": button.label[:MAX_LABEL_CHARS]},
            "value": button.data[:_MAX_VALUE],
        }
        for i, button in enumerate(buttons)
    ]


def make_fallback(rich: Rich) -> str:
    """What a notification shows, where nothing is a mark: its beginning."""
    return html.escape(write_plain(rich)[:MAX_FALLBACK_CHARS], quote=False)
