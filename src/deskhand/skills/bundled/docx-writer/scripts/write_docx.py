"""Make a Word document of a file of Markdown."""

import argparse
import sys
from pathlib import Path

try:
    from docx import Document
    from docx.enum.section import WD_ORIENT
    from docx.opc.constants import RELATIONSHIP_TYPE
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn
    from docx.shared import Cm, Pt
except ImportError:
    sys.exit("python-docx is not installed: pip install 'deskhand[office]'")
from markdown_it import MarkdownIt

MONOSPACE = "Consolas"
MAX_LIST_DEPTH = 3


class Writer:
    def __init__(self, document, folder):
        self.document = document
        self.folder = folder
        self.lists = []
        self.quoted = 0

    def write(self, tokens):
        position = 0
        while position < len(tokens):
            token = tokens[position]
            if token.type == "heading_open":
                level = int(token.tag[1])
                is_title = level == 1 and not self.document.paragraphs
                self.write_inline(
                    self.document.add_heading("", 0 if is_title else min(level, 9)),
                    tokens[position + 1],
                )
            elif token.type == "paragraph_open":
                self.write_inline(self.add_paragraph(), tokens[position + 1])
            elif token.type in ("bullet_list_open", "ordered_list_open"):
                self.lists.append("List Bullet" if token.tag == "ul" else "List Number")
            elif token.type in ("bullet_list_close", "ordered_list_close"):
                self.lists.pop()
            elif token.type == "blockquote_open":
                self.quoted += 1
            elif token.type == "blockquote_close":
                self.quoted -= 1
            elif token.type in ("fence", "code_block"):
                self.write_code(token.content)
            elif token.type == "hr":
                self.document.add_page_break()
            elif token.type == "table_open":
                end = next(
                    n for n in range(position, len(tokens)) if tokens[n].type == "table_close"
                )
                self.write_table(tokens[position:end])
                position = end
            position += 1

    def add_paragraph(self):
        if self.lists:
            depth = min(len(self.lists), MAX_LIST_DEPTH)
            return self.document.add_paragraph(
                style=self.lists[-1] + (f" {depth}" if depth > 1 else "")
            )
        return self.document.add_paragraph(style="Quote" if self.quoted else None)

    def write_code(self, text):
        paragraph = self.document.add_paragraph()
        run = paragraph.add_run(text.rstrip("\n"))
        run.font.name = MONOSPACE
        run.font.size = Pt(9)
        paragraph.paragraph_format.left_indent = Cm(0.5)

    def write_table(self, tokens):
        rows = []
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                rows[-1].append(token)
        table = self.document.add_table(len(rows), max(map(len, rows)))
        table.style = "Light Grid Accent 1"
        for row, cells in zip(table.rows, rows, strict=False):
            for cell, token in zip(row.cells, cells, strict=False):
                self.write_inline(cell.paragraphs[0], token)
        mark = OxmlElement("w:tblHeader")  # the heading row stands on each page
        mark.set(qn("w:val"), "true")
        table.rows[0]._tr.get_or_add_trPr().append(mark)
        self.document.add_paragraph()

    def write_inline(self, paragraph, inline):
        bold = italic = struck = False
        address = ""
        for child in inline.children or []:
            if child.type in ("strong_open", "strong_close"):
                bold = child.nesting > 0
            elif child.type in ("em_open", "em_close"):
                italic = child.nesting > 0
            elif child.type in ("s_open", "s_close"):
                struck = child.nesting > 0
            elif child.type == "link_open":
                address = child.attrGet("href") or ""
            elif child.type == "link_close":
                address = ""
            elif child.type == "image":
                self.write_picture(child)
            elif child.type == "hardbreak":
                paragraph.add_run().add_break()
            elif child.type in ("text", "code_inline", "softbreak"):
                run = paragraph.add_run(" " if child.type == "softbreak" else child.content)
                run.bold, run.italic = bold or None, italic or None
                run.font.strike = struck or None
                if child.type == "code_inline":
                    run.font.name = MONOSPACE
                if address:
                    link(paragraph, run, address)

    def write_picture(self, child):
        path = self.folder / (child.attrGet("src") or "")
        if not path.is_file():
            sys.exit(f"there is no picture {path}")
        section = self.document.sections[-1]
        width = section.page_width - section.left_margin - section.right_margin
        picture = self.document.add_picture(str(path))
        if picture.width > width:
            picture.height = int(picture.height * width / picture.width)
            picture.width = width
        if child.content:
            self.document.add_paragraph(child.content, style="Caption")


def link(paragraph, run, address):
    target = paragraph.part.relate_to(address, RELATIONSHIP_TYPE.HYPERLINK, is_external=True)
    element = OxmlElement("w:hyperlink")
    element.set(qn("r:id"), target)
    run.font.underline = True
    element.append(run._r)
    paragraph._p.append(element)


def add_contents(document):
    """A field that Word fills when the document is opened."""
    run = document.add_paragraph().add_run()
    for kind, text in (
        ("begin", ""),
        ("", 'TOC \\o "1-3" \\h \\z \\u'),
        ("separate", ""),
        ("end", ""),
    ):
        if kind:
            part = OxmlElement("w:fldChar")
            part.set(qn("w:fldCharType"), kind)
        else:
            part = OxmlElement("w:instrText")
            part.text = text
        run._r.append(part)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--font", default="")
    parser.add_argument("--size", type=float, default=0)
    parser.add_argument("--author", default="")
    parser.add_argument("--landscape", action="store_true")
    parser.add_argument("--toc", action="store_true")
    parser.add_argument("--template", type=Path)
    given = parser.parse_args()

    document = Document(str(given.template) if given.template else None)
    if given.font:
        document.styles["Normal"].font.name = given.font
    if given.size:
        document.styles["Normal"].font.size = Pt(given.size)
    if given.landscape:
        section = document.sections[0]
        section.orientation = WD_ORIENT.LANDSCAPE
        section.page_width, section.page_height = section.page_height, section.page_width
    document.core_properties.author = given.author
    if given.toc:
        add_contents(document)
    parsed = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    Writer(document, given.source.parent).write(
        parsed.parse(given.source.read_text(encoding="utf-8"))
    )
    document.save(str(given.target))
    counts = f"{len(document.paragraphs)} paragraphs, {len(document.tables)} tables"
    print(f"wrote {given.target}: {counts}")


if __name__ == "__main__":
    main()
