"""Takes out of a page what no reader would see: comments, and what its own markup and style sheets
hide."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from .found import ExtractedText

_TEXTLESS_TAGS = (
    "script, style, noscript, template, iframe, object, embed, svg, canvas, audio, video, map, "
    "datalist, input, head"
)
_MAX_RULES = 3000
_RULE = re.compile(r"([^{}@;]{1,300})\{([^{}]{0,2000})\}")
_CSS_COMMENT = re.compile(r"/\*.*?\*/", re.S)
_MEDIA = re.compile(r"@[^{};]*(?:;|\{(?:[^{}]*\{[^{}]*\})*[^{}]*\})", re.S)
_DECLARED = re.compile(r"([a-z-]+)\s*:\s*([^;]+)")
_LENGTH = re.compile(r"^(-?[\d.]+)(px|pt|em|rem|%|vw|vh|ch|in|cm)?$")
_WHITE = frozenset(
    ("white", "#fff", "#ffff", "#ffffff", "#ffffffff", "rgb(255,255,255)", "rgba(255,255,255,1)")
)


def remove_unseen(tree: LexborHTMLParser, body: LexborNode, found: ExtractedText) -> None:
    """Remove it, and count what had words in it."""
    rules = _find_hiding_rules(tree)
    styled = bool(rules) or tree.css_first("style, link[rel~=stylesheet]") is not None
    for node in body.css(_TEXTLESS_TAGS):
        node.remove()
    for selector in rules:
        try:
            nodes = body.css(selector)
        except SelectolaxError:
            continue  # newer CSS than is known here
        for node in nodes:
            _remove_hidden(node, found)
    for node in body.css("[hidden]:not([hidden=until-found]), [type=hidden]"):
        _remove_hidden(node, found)
    for node in body.css("[style]"):
        declared = _parse_style(node.attributes.get("style") or "")
        if is_hidden_style(declared) or (not styled and _is_white_on_white(node, declared)):
            _remove_hidden(node, found)
    for node in body.css("font[color]"):
        if (
            not styled
            and _normalize_value(node.attributes.get("color") or "") in _WHITE
            and not _has_background(node)
        ):
            _remove_hidden(node, found)
    _remove_comments(body, found)


def is_hidden_style(declared: dict[str, str]) -> bool:
    """Whether somebody who looks at the page sees nothing of what is declared so."""
    value = declared.get
    return (
        value("display") == "none"
        or value("visibility") in ("hidden", "collapse")
        or value("content-visibility") == "hidden"
        or _is_near_zero(value("opacity"), 0.05)
        or _is_near_zero(value("font-size"), 1.0)
        or value("color") == "transparent"
        or (
            "color" in declared
            and value("color") in (value("background-color"), value("background"))
        )
        or (
            value("overflow", "").startswith("hidden")
            and any(_is_near_zero(value(side), 1) for side in _SIDES)
        )
        or any(
            _is_far_away(value(way))
            for way in (
                "left",
                "top",
                "right",
                "bottom",
                "text-indent",
                "margin-left",
                "margin-top",
            )
        )
        or value("clip", "").startswith(("rect(0", "rect(1px,1px"))
        or value("clip-path", "").startswith(("inset(50%", "inset(100%", "circle(0", "polygon(00"))
        or value("transform", "").startswith(("scale(0)", "scale(0,", "scalex(0)", "scaley(0)"))
    )


_SIDES = ("width", "height", "max-width", "max-height")


def _find_hiding_rules(tree: LexborHTMLParser) -> list[str]:
    """The selectors of the page's own style sheets that hide, but for those of one medium or size
    of screen."""
    sheets = "\n".join(node.text() for node in tree.css("style"))[: 1 << 20]
    plain = _MEDIA.sub(" ", _CSS_COMMENT.sub(" ", sheets))
    rules = []
    for number, rule in enumerate(_RULE.finditer(plain)):
        if number > _MAX_RULES:
            break
        selector = rule[1].strip()
        if (
            ":" not in selector
            and selector.lower() not in ("html", "body", "*")
            and is_hidden_style(_parse_style(rule[2]))
        ):
            rules.append(selector)
    return rules


def _parse_style(style: str) -> dict[str, str]:
    lowered = style[:4000].lower().replace("!important", "")
    return {name: _normalize_value(value) for name, value in _DECLARED.findall(lowered)}


def _normalize_value(value: str) -> str:
    return "".join(value.lower().split())


def _is_near_zero(value: str | None, bound: float) -> bool:
    match = _LENGTH.match(value or "")
    try:
        return match is not None and abs(float(match[1])) <= (
            bound if match[2] in (None, "px", "pt", "%") else 0.1
        )
    except ValueError:
        return False


def _is_far_away(value: str | None) -> bool:
    match = _LENGTH.match(value or "")
    try:
        return match is not None and float(match[1]) <= (
            -40 if match[2] in ("em", "rem", "vw", "vh") else -500
        )
    except ValueError:
        return False


def _is_white_on_white(node: LexborNode, declared: dict[str, str]) -> bool:
    return declared.get("color") in _WHITE and not _has_background(node)


def _has_background(node: LexborNode) -> bool:
    """Whether it, or what it lies in, has a colour behind it."""
    at: LexborNode | None = node
    for _ in range(200):
        if at is None:
            return False
        given = at.attributes
        if "bgcolor" in given or "background" in (given.get("style") or "").lower():
            return True
        at = at.parent
    return True


def _remove_hidden(node: LexborNode, found: ExtractedText) -> None:
    if node.tag in ("html", "body") or node.parent is None:
        return
    if node.text(deep=True).strip():
        found.hidden["hidden elements"] += 1
    node.remove()


def _remove_comments(body: LexborNode, found: ExtractedText) -> None:
    for node in [each for each in body.traverse(include_text=True) if each.is_comment_node]:
        found.hidden["comments"] += 1
        node.remove()
