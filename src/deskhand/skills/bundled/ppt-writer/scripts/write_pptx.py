"""Make a presentation of a file of Markdown."""

import argparse
import sys
from pathlib import Path

try:
    from pptx import Presentation
    from pptx.util import Emu, Inches, Pt
except ImportError:
    sys.exit("python-pptx is not installed: pip install 'deskhand[office]'")
from markdown_it import MarkdownIt

TITLE, CONTENT, TITLE_ONLY = 0, 1, 5
MAX_LEVEL = 4


class Slide:
    """What is on one: lines with their level, a table, pictures, and what is said to it."""

    def __init__(self, title):
        self.title = title
        self.lines = []
        self.table = []
        self.pictures = []
        self.notes = []


def read_slides(tokens, folder):
    slides = []
    level = -1
    quoted = 0
    for n, token in enumerate(tokens):
        if token.type == "heading_open" and int(token.tag[1]) <= 2:
            slides.append(Slide(plain(tokens[n + 1])))
        elif token.type in ("bullet_list_open", "ordered_list_open"):
            level += 1
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            level -= 1
        elif token.type in ("blockquote_open", "blockquote_close"):
            quoted += token.nesting
        elif token.type == "tr_open" and slides:
            slides[-1].table.append([])
        elif token.type in ("fence", "code_block") and slides:
            slides[-1].lines += [(0, [(line, False, False)]) for line in token.content.splitlines()]
        elif token.type == "inline" and tokens[n - 1].type != "heading_open":
            if not slides:
                sys.exit("the first line is to be a heading: # Title")
            add_inline(slides[-1], tokens[n - 1].type, token, max(level, 0), quoted, folder)
        elif token.type == "inline" and int(tokens[n - 1].tag[1]) > 2:
            slides[-1].lines.append((0, [(plain(token), True, False)]))
    return slides


def add_inline(slide, before, token, level, quoted, folder):
    if quoted:
        slide.notes.append(plain(token))
    elif before in ("th_open", "td_open"):
        slide.table[-1].append(plain(token))
    else:
        for child in token.children or []:
            if child.type == "image":
                path = folder / (child.attrGet("src") or "")
                if not path.is_file():
                    sys.exit(f"there is no picture {path}")
                slide.pictures.append(path)
        runs = list(iter_runs(token))
        if any(text.strip() for text, _, _ in runs):
            slide.lines.append((min(level, MAX_LEVEL), runs))


def iter_runs(token):
    bold = italic = False
    for child in token.children or []:
        if child.type in ("strong_open", "strong_close"):
            bold = child.nesting > 0
        elif child.type in ("em_open", "em_close"):
            italic = child.nesting > 0
        elif child.type in ("text", "code_inline"):
            yield child.content, bold, italic
        elif child.type in ("softbreak", "hardbreak"):
            yield " ", bold, italic


def plain(token):
    return "".join(text for text, _, _ in iter_runs(token)).strip()


def write_slide(presentation, slide, is_first):
    only_title = bool(slide.table or slide.pictures)
    kind = TITLE if is_first and not only_title else TITLE_ONLY if only_title else CONTENT
    made = presentation.slides.add_slide(presentation.slide_layouts[kind])
    made.shapes.title.text = slide.title
    if only_title:
        write_things(presentation, made, slide)
    elif slide.lines:
        frame = made.placeholders[1].text_frame
        for n, (level, runs) in enumerate(slide.lines):
            paragraph = frame.paragraphs[0] if n == 0 else frame.add_paragraph()
            paragraph.level = level
            write_runs(paragraph, runs)
    elif not is_first:
        empty = made.placeholders[1]
        empty._element.getparent().remove(empty._element)
    if slide.notes:
        made.notes_slide.notes_text_frame.text = "\n".join(slide.notes)


def write_things(presentation, made, slide):
    """The table and pictures below the title, and beneath them the lines."""
    margin = Inches(0.6)
    width = presentation.slide_width - 2 * margin
    top = Inches(1.6)
    height = presentation.slide_height - top - Inches(0.5)
    if slide.lines:
        box = made.shapes.add_textbox(
            margin, presentation.slide_height - Inches(1.4), width, Inches(1)
        )
        for n, (_, runs) in enumerate(slide.lines):
            frame = box.text_frame
            write_runs(frame.paragraphs[0] if n == 0 else frame.add_paragraph(), runs)
        height -= Inches(1)
    if slide.table:
        columns = max(map(len, slide.table))
        shape = made.shapes.add_table(
            len(slide.table), columns, margin, top, width, Inches(0.4) * len(slide.table)
        )
        for cells, row in zip(slide.table, shape.table.rows, strict=False):
            for text, cell in zip(cells, row.cells, strict=False):
                cell.text = text
                cell.text_frame.paragraphs[0].font.size = Pt(16)
    for n, path in enumerate(slide.pictures):
        room = Emu(int(width / len(slide.pictures)))
        picture = made.shapes.add_picture(str(path), margin + room * n, top)
        scale = min(room / picture.width, height / picture.height)
        picture.width, picture.height = int(picture.width * scale), int(picture.height * scale)
        picture.left = int(margin + room * n + (room - picture.width) / 2)


def write_runs(paragraph, runs):
    for text, bold, italic in runs:
        run = paragraph.add_run()
        run.text = text
        run.font.bold, run.font.italic = bold or None, italic or None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--template", type=Path)
    parser.add_argument("--narrow", action="store_true")
    given = parser.parse_args()

    presentation = Presentation(str(given.template) if given.template else None)
    if not given.template and not given.narrow:
        presentation.slide_width, presentation.slide_height = Inches(13.333), Inches(7.5)
        fit_layouts(presentation)
    parsed = MarkdownIt("commonmark").enable("table")
    slides = read_slides(
        parsed.parse(given.source.read_text(encoding="utf-8")), given.source.parent
    )
    for n, slide in enumerate(slides):
        write_slide(presentation, slide, n == 0)
    presentation.save(str(given.target))
    print(f"wrote {given.target}: {len(slides)} slides")


def fit_layouts(presentation):
    """The layouts that come with the library are for 4:3."""
    factor = presentation.slide_width / Inches(10)
    places = [
        (shape, shape.left, shape.top, shape.width, shape.height)
        for layout in (presentation.slide_master, *presentation.slide_layouts)
        for shape in layout.placeholders
    ]
    for shape, left, top, width, height in places:  # some of them inherit what is changed here
        shape.left, shape.width = int(left * factor), int(width * factor)
        shape.top, shape.height = top, height


if __name__ == "__main__":
    main()
