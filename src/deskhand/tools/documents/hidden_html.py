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
_MEDIA = re.compile(
    r"""
    @ [^{};]*
    (?:
        ;                               # @import ...;
      | \{
        (?: [^{}]* \{ [^{}]* \} )*       # @media ... { rules }
        [^{}]*
        \}
    )
    """,
    re.VERBOSE | re.DOTALL,
)
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
    for node in body.css("font[color]") if not styled else ():
        color = _normalize_value(node.attributes.get("color") or "")
        if color in _WHITE and not _has_background(node):
            _remove_hidden(node, found)
    _remove_comments(body, found)


def is_hidden_style(declared: dict[str, str]) -> bool:
    """Whether somebody who looks at the page sees nothing of what is declared so."""
    return (
        _is_switched_off(declared)
        or _is_invisible(declared)
        or _is_cut_away(declared)
        or any(_is_far_away(declared.get(name)) for name in _PLACES)
    )


def _is_switched_off(declared: dict[str, str]) -> bool:
    return (
        declared.get("display") == "none"
        or declared.get("visibility") in ("hidden", "collapse")
        or declared.get("content-visibility") == "hidden"
    )


def _is_invisible(declared: dict[str, str]) -> bool:
    """Whether it is there, but too pale or too small to be read."""
    if _is_near_zero(declared.get("opacity"), 0.05):
        return True
    if _is_near_zero(declared.get("font-size"), 1.0):
        return True
    color = declared.get("color")
    if color is None:
        return False
    behind = (declared.get("background-color"), declared.get("background"))
    return color == "transparent" or color in behind


def _is_cut_away(declared: dict[str, str]) -> bool:
    """Whether nothing is left of the box in which it is shown."""
    clips = declared.get("overflow", "").startswith("hidden")
    if clips and any(_is_near_zero(declared.get(side), 1) for side in _SIDES):
        return True
    return any(declared.get(name, "").startswith(starts) for name, starts in _CUTS.items())


_SIDES = ("width", "height", "max-width", "max-height")
_PLACES = ("left", "top", "right", "bottom", "text-indent", "margin-left", "margin-top")
_CUTS = {
    "clip": ("rect(0", "rect(1px,1px"),
    "clip-path": ("inset(50%", "inset(100%", "circle(0", "polygon(00"),
    "transform": ("scale(0)", "scale(0,", "scalex(0)", "scaley(0)"),
}
"""How values begin that leave nothing to be seen, without blanks."""


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
        if ":" in selector or selector.lower() in ("html", "body", "*"):
            continue
        if is_hidden_style(_parse_style(rule[2])):
            rules.append(selector)
    return rules


def _parse_style(style: str) -> dict[str, str]:
    lowered = style[:4000].lower().replace("!important", "")
    return {name: _normalize_value(value) for name, value in _DECLARED.findall(lowered)}


def _normalize_value(value: str) -> str:
    return "".join(value.lower().split())


def _is_near_zero(value: str | None, bound: float) -> bool:
    number, unit = _parse_length(value)
    if number is None:
        return False
    return abs(number) <= (bound if unit in ("", "px", "pt", "%") else 0.1)


def _is_far_away(value: str | None) -> bool:
    number, unit = _parse_length(value)
    if number is None:
        return False
    return number <= (-40 if unit in ("em", "rem", "vw", "vh") else -500)


def _parse_length(value: str | None) -> tuple[float | None, str]:
    """The number and its unit; None for what is no length."""
    match = _LENGTH.match(value or "")
    if match is None:
        return None, ""
    try:
        return float(match[1]), match[2] or ""
    except ValueError:
        return None, ""


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
