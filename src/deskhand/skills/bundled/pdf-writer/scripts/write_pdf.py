"""Make a PDF of a file of Markdown."""

import argparse
import sys
from html import escape
from pathlib import Path

try:
    from reportlab.lib import colors
    from reportlab.lib.pagesizes import A4, LETTER, landscape
    from reportlab.lib.styles import ParagraphStyle
    from reportlab.lib.units import cm
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.ttfonts import TTFont
    from reportlab.platypus import (
        Image,
        ListFlowable,
        ListItem,
        PageBreak,
        Paragraph,
        Preformatted,
        SimpleDocTemplate,
        Spacer,
        Table,
        TableStyle,
    )
except ImportError:
    sys.exit("reportlab is not installed: pip install 'deskhand[office]'")
from markdown_it import MarkdownIt

FONTS = (
    (
        "/usr/share/fonts/truetype/dejavu/DejaVuSans{}.ttf",
        ("", "-Bold", "-Oblique", "-BoldOblique"),
    ),
    (
        "/usr/share/fonts/truetype/liberation/LiberationSans-{}.ttf",
        ("Regular", "Bold", "Italic", "BoldItalic"),
    ),
)
MARGIN = 2.2 * cm
GREY = colors.HexColor("#f2f2f2")


def choose_font():
    """A font of the system with letters of many scripts; else one that every reader has."""
    for pattern, styles in FONTS:
        paths = [pattern.format(style) for style in styles]
        if Path(paths[0]).is_file():
            names = ("Text", "Text-Bold", "Text-Italic", "Text-BoldItalic")
            found = [path if Path(path).is_file() else paths[0] for path in paths]
            for name, path in zip(names, found, strict=False):
                pdfmetrics.registerFont(TTFont(name, path))
            pdfmetrics.registerFontFamily("Text", *names)
            return "Text", "Text-Bold"
    return "Helvetica", "Helvetica-Bold"


def make_styles(size):
    plain, bold = choose_font()
    text = ParagraphStyle(
        "text", fontName=plain, fontSize=size, leading=size * 1.4, spaceAfter=size * 0.6
    )
    styles = {"text": text}
    for level, factor in enumerate((2.0, 1.5, 1.25, 1.1, 1.0, 1.0), 1):
        styles[f"h{level}"] = ParagraphStyle(
            f"h{level}",
            parent=text,
            fontName=bold,
            fontSize=size * factor,
            leading=size * factor * 1.25,
            spaceBefore=size * (1.2 if level > 1 else 0),
            keepWithNext=True,
        )
    styles["quote"] = ParagraphStyle(
        "quote", parent=text, leftIndent=size * 1.5, textColor=colors.HexColor("#555555")
    )
    styles["code"] = ParagraphStyle(
        "code",
        fontName="Courier",
        fontSize=size * 0.85,
        leading=size * 1.15,
        backColor=GREY,
        borderPadding=4,
    )
    styles["caption"] = ParagraphStyle(
        "caption", parent=text, fontSize=size * 0.85, textColor=colors.HexColor("#555555")
    )
    return styles


class Writer:
    def __init__(self, styles, folder, width):
        self.styles = styles
        self.folder = folder
        self.width = width

    def make(self, tokens, style="text"):
        """What stands in these."""
        found = []
        position = 0
        while position < len(tokens):
            token = tokens[position]
            if token.type == "heading_open":
                found.append(
                    Paragraph(self.inline(tokens[position + 1], found), self.styles[token.tag])
                )
            elif token.type == "paragraph_open":
                text = self.inline(tokens[position + 1], found)
                if text:
                    found.append(Paragraph(text, self.styles[style]))
            elif token.type in ("fence", "code_block"):
                found += [
                    Preformatted(token.content.rstrip("\n"), self.styles["code"]),
                    Spacer(1, 8),
                ]
            elif token.type == "hr":
                found.append(PageBreak())
            elif token.nesting == 1 and token.type in _BLOCKS:
                end = find_close(tokens, position)
                found += _BLOCKS[token.type](self, token, tokens[position + 1 : end])
                position = end
            position += 1
        return found

    def make_list(self, token, inner):
        items = []
        position = 0
        while position < len(inner):
            if inner[position].type == "list_item_open":
                end = find_close(inner, position)
                items.append(ListItem(self.make(inner[position + 1 : end])))
                position = end
            position += 1
        numbered = token.tag == "ol"
        return [
            ListFlowable(
                items, bulletType="1" if numbered else "bullet", start=None if numbered else "•"
            )
        ]

    def make_quote(self, token, inner):
        return self.make(inner, "quote")

    def make_table(self, token, inner):
        rows = []
        for each in inner:
            if each.type == "tr_open":
                rows.append([])
            elif each.type == "inline":
                rows[-1].append(Paragraph(self.inline(each, []), self.styles["text"]))
        columns = max(map(len, rows))
        table = Table(rows, colWidths=[self.width / columns] * columns, repeatRows=1)
        table.setStyle(
            TableStyle(
                [
                    ("GRID", (0, 0), (-1, -1), 0.5, colors.HexColor("#bbbbbb")),
                    ("BACKGROUND", (0, 0), (-1, 0), GREY),
                    ("VALIGN", (0, 0), (-1, -1), "TOP"),
                ]
            )
        )
        return [table, Spacer(1, 10)]

    def inline(self, token, before):
        """The text of a paragraph, in reportlab's markup; pictures go into `before`."""
        pieces = []
        for child in token.children or []:
            if child.type == "image":
                before += self.picture(child)
            elif child.type == "link_open":
                pieces.append(
                    f'<link href="{escape(child.attrGet("href") or "")}" color="#0645ad">'
                )
            elif child.type == "link_close":
                pieces.append("</link>")
            elif child.type in _MARKS:
                pieces.append(f"<{'' if child.nesting > 0 else '/'}{_MARKS[child.type]}>")
            elif child.type == "code_inline":
                pieces.append(f'<font face="Courier">{escape(child.content)}</font>')
            elif child.type == "hardbreak":
                pieces.append("<br/>")
            else:
                pieces.append(" " if child.type == "softbreak" else escape(child.content))
        return "".join(pieces).strip()

    def picture(self, child):
        path = self.folder / (child.attrGet("src") or "")
        if not path.is_file():
            sys.exit(f"there is no picture {path}")
        picture = Image(str(path))
        picture._restrictSize(self.width, 18 * cm)
        caption = (
            [Paragraph(escape(child.content), self.styles["caption"])] if child.content else []
        )
        return [picture, *caption]


_BLOCKS = {
    "bullet_list_open": Writer.make_list,
    "ordered_list_open": Writer.make_list,
    "blockquote_open": Writer.make_quote,
    "table_open": Writer.make_table,
}
_MARKS = {
    **dict.fromkeys(("strong_open", "strong_close"), "b"),
    **dict.fromkeys(("em_open", "em_close"), "i"),
    **dict.fromkeys(("s_open", "s_close"), "strike"),
}


def find_close(tokens, position):
    """Where what begins here ends."""
    depth = 0
    for n in range(position, len(tokens)):
        depth += tokens[n].nesting
        if depth == 0:
            return n
    return len(tokens)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--title", default="")
    parser.add_argument("--author", default="")
    parser.add_argument("--size", type=float, default=10.5)
    parser.add_argument("--landscape", action="store_true")
    parser.add_argument("--letter", action="store_true")
    parser.add_argument("--numbers", action="store_true")
    given = parser.parse_args()

    page = LETTER if given.letter else A4
    page = landscape(page) if given.landscape else page
    document = SimpleDocTemplate(
        str(given.target),
        pagesize=page,
        leftMargin=MARGIN,
        rightMargin=MARGIN,
        topMargin=MARGIN,
        bottomMargin=MARGIN,
        title=given.title or given.source.stem,
        author=given.author,
    )
    pages = []

    def number(canvas, shown):
        pages.append(shown.page)
        if given.numbers:
            canvas.setFont("Helvetica", 8)
            canvas.drawCentredString(page[0] / 2, 1.2 * cm, str(shown.page))

    parsed = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    writer = Writer(make_styles(given.size), given.source.parent, page[0] - 2 * MARGIN)
    blocks = writer.make(parsed.parse(given.source.read_text(encoding="utf-8")))
    document.build(blocks or [Spacer(1, 1)], onFirstPage=number, onLaterPages=number)
    print(f"wrote {given.target}: {len(pages)} pages")


if __name__ == "__main__":
    main()
