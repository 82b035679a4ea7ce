"""The skills that come with Deskhand: by the specification, short, and what the documents' writers
make can be read."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from docx import Document
from openpyxl import load_workbook
from pptx import Presentation
from skills_ref.validator import validate

from deskhand.skills.skill import BUNDLED, FILE_NAME, Skills, SkillSource, split_front_matter
from deskhand.testing.temporary_home import TemporaryHome

from ..examples import ALL

NAMES = sorted(each.name for each in BUNDLED.iterdir() if each.is_dir())
MARKDOWN = """# The tent

It stands in the **garden**, *mostly*. See [the shop](https://example.org/tents?a=1&b=2) — çağ
Привет.

## What it needs
- Poles
    - long ones
- Ropes & pegs

1. Unfold
2. Fix

| Part | Price |
|---|---|
| Pole | 12 <€> |
| Rope | `3` |

> Not in the rain.

```
tent --up
```

---

![A tent](tent.png)
"""
SHEETS = {
    "sheets": [
        {
            "name": "Sales",
            "columns": [
                {"name": "Month"},
                {"name": "Amount", "format": "#,##0.00"},
                "Share",
                "Day",
            ],
            "rows": [
                ["May", 1200.5, "=B2/SUM(B$2:B$3)", "2026-05-31"],
                {"Month": "June", "Amount": 900, "Share": "=B3/SUM(B$2:B$3)", "Day": None},
            ],
            "totals": {"Amount": "sum"},
            "chart": {"kind": "bar", "title": "Sales", "labels": "Month", "values": ["Amount"]},
        }
    ]
}
TALK = """# Half the time goes into waiting
What we found

## Two of three orders wait
- 640 of **960** stand in one inbox
    - for four days
> Pause here.

## Where the days go
| Step | Days |
|---|---|
| Check | 4 |

## The tent
![A tent](tent.png)
"""


@pytest.mark.parametrize("name", NAMES)
def test_each_is_by_the_specification(name: str) -> None:
    found = Skills((SkillSource("bundled", BUNDLED),)).find()[name]
    text = (BUNDLED / name / FILE_NAME).read_text()
    body = split_front_matter(text)[1]
    assert found.problem == "" and len(body.splitlines()) < 200
    assert validate(BUNDLED / name) == [], "the validator of the specification"
    for path in (BUNDLED / name).rglob("*.py"):
        assert str(path.relative_to(BUNDLED / name)) in text, "it says how each program is run"


def test_there_is_one_for_each_of_these() -> None:
    assert {*NAMES} >= {
        *("skill-creator", "job-creator", "code-review", "api-design", "design", "github"),
        *("dockerfile-builder", "research-report"),
        *("docx-writer", "excel-writer", "ppt-writer", "pdf-writer"),
    }


@pytest.fixture
def desk(tmp_path: Path) -> TemporaryHome:
    made = TemporaryHome(tmp_path / "h")
    workspace = made.settings.home.workspace("default")
    workspace.mkdir(parents=True)
    (workspace / "report.md").write_text(MARKDOWN)
    (workspace / "sales.json").write_text(json.dumps(SHEETS))
    (workspace / "sales.csv").write_text("Name;Amount;Day\n=1+1;1200,5;2026-05-31\n007;3;\n")
    (workspace / "talk.md").write_text(TALK)
    (workspace / "tent.png").write_bytes(make_png())
    return made


def make_png() -> bytes:
    from io import BytesIO

    from PIL import Image

    file = BytesIO()
    Image.new("RGB", (3000, 900), "green").save(file, "PNG")
    return file.getvalue()


async def write(desk: TemporaryHome, skill: str, command: str, target: str) -> tuple[str, str]:
    """What the program says, and what `read_file` says of the file."""
    async with desk.running() as app:
        said = await desk.call(app, "run_skill", skill=skill, command=command)
        return said, await desk.call(app, "read_file", path=target)


def opened_by_libreoffice(file: Path, tmp_path: Path) -> str:
    """Its text, as LibreOffice has it."""
    profile = f"-env:UserInstallation=file://{tmp_path}/profile"
    kind = "csv" if file.suffix == ".xlsx" else "txt" if file.suffix == ".docx" else "pdf"
    command = ["soffice", profile, "--headless", "--convert-to", kind, "--outdir", str(tmp_path)]
    subprocess.run([*command, str(file)], check=True, capture_output=True, timeout=170)
    made = tmp_path / f"{file.stem}.{kind}"
    assert made.stat().st_size
    return "" if kind == "pdf" else made.read_text(errors="replace")


LONG = pytest.mark.timeout(240)


@LONG
async def test_a_word_document(desk: TemporaryHome, tmp_path: Path) -> None:
    said, read = await write(
        desk,
        "docx-writer",
        "python scripts/write_docx.py report.md report.docx --toc --landscape --size 11",
        "report.docx",
    )
    assert said.startswith("wrote report.docx: ")
    for words in (
        "The tent",
        "garden",
        "Привет",
        "long ones",
        "Ropes & pegs",
        "12 <€>",
        "tent --up",
    ):
        assert words in read
    file = desk.settings.home.workspace("default") / "report.docx"
    document = Document(str(file))
    assert [p.style.name for p in document.paragraphs if p.style and p.text == "Poles"] == [
        "List Bullet"
    ]
    assert len(document.inline_shapes) == 1 and document.tables[0].cell(2, 0).text == "Rope"
    section = document.sections[0]
    assert section.page_width > section.page_height  # type: ignore[operator]
    assert document.inline_shapes[0].width <= section.page_width
    if ALL:
        assert "Not in the rain." in opened_by_libreoffice(file, tmp_path)


@LONG
async def test_a_pdf(desk: TemporaryHome, tmp_path: Path) -> None:
    said, read = await write(
        desk,
        "pdf-writer",
        "python scripts/write_pdf.py report.md report.pdf --numbers --title 'A tent'",
        "report.pdf",
    )
    assert said == "wrote report.pdf: 2 pages\n"
    for words in (
        "The tent",
        "garden",
        "long ones",
        "Ropes & pegs",
        "tent --up",
        "Not in the rain.",
    ):
        assert words in read


@LONG
async def test_a_workbook(desk: TemporaryHome, tmp_path: Path) -> None:
    said, read = await write(
        desk, "excel-writer", "python scripts/write_xlsx.py sales.json sales.xlsx", "sales.xlsx"
    )
    assert said == "wrote sales.xlsx: Sales (4 rows)\n" and "June" in read
    file = desk.settings.home.workspace("default") / "sales.xlsx"
    sheet = load_workbook(file)["Sales"]
    assert [cell.value for cell in sheet[1]] == ["Month", "Amount", "Share", "Day"]
    assert sheet["B2"].value == 1200.5 and sheet["B2"].number_format == "#,##0.00"
    assert sheet["C2"].value == "=B2/SUM(B$2:B$3)" and sheet["B4"].value == "=SUM(B2:B3)"
    assert sheet["D2"].is_date and sheet.freeze_panes == "A2" and len(sheet._charts) == 1
    if ALL:
        assert "2100.5" in opened_by_libreoffice(file, tmp_path), "it calculates"


async def test_a_workbook_of_csv_calculates_nothing(desk: TemporaryHome) -> None:
    said, _ = await write(
        desk, "excel-writer", "python scripts/write_xlsx.py sales.csv sales.xlsx", "sales.xlsx"
    )
    assert said.startswith("wrote sales.xlsx: sales (3 rows)")
    sheet = load_workbook(desk.settings.home.workspace("default") / "sales.xlsx")["sales"]
    assert sheet["A2"].value == "=1+1" and sheet["A2"].data_type == "s", "words of others stay text"
    assert sheet["A3"].value == "007" and sheet["B3"].value == 3 and sheet["C2"].is_date


@LONG
async def test_a_presentation(desk: TemporaryHome, tmp_path: Path) -> None:
    said, read = await write(
        desk, "ppt-writer", "python scripts/write_pptx.py talk.md talk.pptx", "talk.pptx"
    )
    assert said == "wrote talk.pptx: 4 slides\n"
    for words in ("Half the time goes into waiting", "What we found", "Where the days go", "Check"):
        assert words in read
    file = desk.settings.home.workspace("default") / "talk.pptx"
    _, second, third, fourth = Presentation(str(file)).slides
    assert second.notes_slide.notes_text_frame.text == "Pause here."
    lines = second.placeholders[1].text_frame.paragraphs
    assert [(each.text, each.level) for each in lines] == [
        ("640 of 960 stand in one inbox", 0),
        ("for four days", 1),
    ]
    assert any(shape.has_table for shape in third.shapes)
    picture = fourth.shapes[-1]
    assert picture.left >= 0 and picture.left + picture.width <= 12192000
    if ALL:
        opened_by_libreoffice(file, tmp_path)


@pytest.mark.parametrize(
    ("skill", "command", "why"),
    [
        (
            "docx-writer",
            "python scripts/write_docx.py bad.md x.docx",
            "there is no picture",
        ),
        ("pdf-writer", "python scripts/write_pdf.py bad.md x.pdf", "there is no picture"),
        ("ppt-writer", "python scripts/write_pptx.py bad.md x.pptx", "the first line is to be a"),
        ("excel-writer", "python scripts/write_xlsx.py x", "usage: write_xlsx.py"),
    ],
)
async def test_what_cannot_be_written(
    desk: TemporaryHome, skill: str, command: str, why: str
) -> None:
    (desk.settings.home.workspace("default") / "bad.md").write_text("![x](not.png)")
    async with desk.running() as app:
        assert why in await desk.call(app, "run_skill", skill=skill, command=command)
