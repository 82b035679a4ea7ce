"""Web pages: the part that people come for, as Markdown, with links that work from anywhere."""

from __future__ import annotations

from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from .found import ExtractedText, Unreadable
from .hidden_html import remove_unseen
from .markdown import Markdown

_BOILERPLATE = (
    "nav, footer, aside, dialog, [role=navigation], [role=banner], [role=contentinfo], "
    "[role=complementary], "
    "[role=search]"
)
_MIN_CONTENT_CHARS = 200
_MAX_TITLE_CHARS = 300


def read_html(page: str, url: str, selector: str, found: ExtractedText) -> None:
    """The readable part of a page at `url`; with a CSS `selector` what it chooses, and nothing
    else.

    Raises Unreadable, where the selector is wrong or finds nothing too, and Full.
    """
    tree = LexborHTMLParser(page)
    title = tree.css_first("title")
    found.title = " ".join((title.text() if title is not None else "").split())[:_MAX_TITLE_CHARS]
    base = tree.css_first("base[href]")
    address = (
        absolute_url(url, (base.attributes.get("href") or "") if base is not None else "") or url
    )
    if (body := tree.body) is None:
        raise Unreadable("is a web page without content")
    remove_unseen(tree, body, found)
    if selector:
        for node in _select_nodes(tree, selector):
            Markdown(found, address).write(node)
            found.add("\n")
    else:
        Markdown(found, address).write(_find_content(body))


def absolute_url(base: str, to: str) -> str:
    """`to` as an absolute address; "" for what leads to no page: scripts, data, files."""
    try:
        whole = urljoin(base, to.strip()) if to else ""
    except ValueError:
        return ""
    return whole if whole.lower().startswith(("http://", "https://", "mailto:")) else ""


def _select_nodes(tree: LexborHTMLParser, selector: str) -> list[LexborNode]:
    try:
        nodes = tree.css(selector)
    except SelectolaxError:
        raise Unreadable(
            f"was not searched: {selector!r} is not a supported CSS selector"
        ) from None
    if not nodes:
        raise Unreadable(
            f"has nothing that matches the selector {selector!r}; leave it out to read the whole "
            "page"
        )
    chosen = {node.mem_id for node in nodes}
    inside: set[int] = set()
    ordered = []
    for node in tree.root.traverse() if tree.root is not None else ():
        if (
            node.mem_id in chosen and node.mem_id not in inside
        ):  # what lies in a chosen one comes with it
            ordered.append(node)
            inside.update(each.mem_id for each in node.traverse())
    return ordered


def _find_content(body: LexborNode) -> LexborNode:
    """What says itself that it is the content, where that is most of the words; else all but what
    stands beside it."""
    for choice in ("main, [role=main]", "article"):
        nodes = body.css(choice)
        if len(nodes) == 1 and _count_text_chars(nodes[0]) >= _MIN_CONTENT_CHARS:
            _remove_matching(
                nodes[0], "nav, aside, dialog, [role=navigation], [role=complementary]"
            )
            return nodes[0]
    everything = _count_text_chars(body)
    beside = [
        node for node in body.css(f"{_BOILERPLATE}, body > header") if node.parent is not None
    ]
    if everything - sum(_count_text_chars(node) for node in beside) >= _MIN_CONTENT_CHARS:
        _remove_matching(body, f"{_BOILERPLATE}, body > header")
    return body


def _remove_matching(node: LexborNode, selector: str) -> None:
    for each in node.css(selector):
        if each.mem_id != node.mem_id:
            each.remove()


def _count_text_chars(node: LexborNode) -> int:
    """The characters of text that lead nowhere else."""
    return len(node.text(deep=True)) - sum(len(link.text(deep=True)) for link in node.css("a"))
