"""What a model is told of the page, on which it talks: what is drawn there."""

from __future__ import annotations

from ..types.identity import Address

DRAWN = (
    "Text is Markdown. Code blocks are drawn, where that says more than words: `mermaid` as a "
    'diagram, `chart` as a chart from JSON such as {"type": "bar", "title": "Rent", "unit": "€", '
    '"labels": ["May", "June"], "series": [{"name": "Flat", "values": [700, 720]}]}; `line` and '
    "`pie` are further types. A file `.jsx` or `.tsx` that exports a React component as default, "
    "and imports nothing but `react`, is shown as it runs; so is `.html`."
)


class PageInstructions:
    """Implements `channels.base.Instructing` for the page."""

    def instructions(self, address: Address) -> str:
        return DRAWN
