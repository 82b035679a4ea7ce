"""What is said in the pictures, and the files that it is about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw, ImageFont

Reply = dict[str, Any]

CODE = '''It goes through the receipts once and adds each to its month:

```python
from collections import defaultdict


def sum_by_month(receipts: list[Receipt]) -> dict[str, float]:
    """What was spent in each month, as "2026-11"."""
    months: dict[str, float] = defaultdict(float)
    for receipt in receipts:
        months[f"{receipt.day:%Y-%m}"] += receipt.total  # day is a date
    return dict(months)
```

Run it with `python receipts.py receipts/`.
'''
MATH = r"""With an interest rate $r$ per month and $n$ payments, each payment is

$$
A = P \cdot \frac{r\,(1 + r)^n}{(1 + r)^n - 1}
$$

For $P = 12{,}000$, $r = 0.004$ and $n = 48$ this gives $A \approx 275.15$. Over all payments you
pay $48A - P \approx 1{,}207$ in interest.
"""
FIGURES = """An order goes this way:

```mermaid
flowchart LR
  accTitle: From an order to a parcel
  A[Order] --> B{In stock?}
  B -- yes --> C[Pack]
  B -- no --> D[Order more]
  D --> C
  C --> E[Parcel]
```

```chart
{"type": "bar", "title": "Parcels a day", "labels": ["Mon", "Tue", "Wed", "Thu", "Fri"],
 "series": [{"name": "last week", "values": [42, 51, 38, 60, 72]},
            {"name": "this week", "values": [48, 55, 47, 66, 81]}]}
```
"""
TENTS = """| Tent | Sleeps | Weight | Price |
|:-----|:------:|-------:|------:|
| Alder 2 | 2 | 2.4 kg | 249.00 € |
| Birch 3 | 3 | 3.1 kg | 389.50 € |
| Cedar 4 | 4 | 5.8 kg | 1,049.00 € |

The **Birch 3** is the best for two people and a dog.
"""
FOOTNOTES = """A heat pump moves heat instead of making it, so one unit of power gives three to four
units of heat[^1]. Old houses need low flow temperatures for that[^2].

[^1]: This ratio is the *seasonal performance factor*.
[^2]: https://example.org/heat-pumps/old-houses
"""
BILL = """<!doctype html><title>Split the bill</title>
<style>body{font:16px system-ui;margin:2rem;max-width:24rem}label{display:block;margin:1rem 0}
input{font:inherit;width:100%;padding:.4rem}output{font-size:2rem;font-weight:600}</style>
<h1>Split the bill</h1>
<label>Total <input id="total" type="number" value="86.40"></label>
<label>People <input id="people" type="number" value="4"></label>
<p>Each pays</p><output id="each"></output>
<script>
const show = () => { each.value = (total.value / people.value).toFixed(2) + " €"; };
oninput = show; show();
</script>
"""
REPORT = """# Energy report, November

We used **312 kWh**, 9 % less than in October.

| Week | kWh |
|---|---:|
| 45 | 84 |
| 46 | 79 |
| 47 | 76 |
| 48 | 73 |
"""
PLAN = """# Tidy the receipts

1. Read the 42 PDFs in `receipts/`
2. Write **one table** of them, `receipts.csv`
3. Move the PDFs into a folder for each month

| Step | Changes |
|---|---|
| 2 | makes `receipts.csv` |
| 3 | moves 42 files; can be undone |
"""


def reply(text: str = "", *calls: tuple[str, dict[str, object]]) -> Reply:
    return {"text": text, "calls": [list(each) for each in calls]}


SCENES: dict[str, list[Reply]] = {
    "Sum my receipts by month, in Python": [reply(CODE)],
    "What do I pay a month for a loan of 12,000?": [reply(MATH)],
    "Show me how an order becomes a parcel": [reply(FIGURES)],
    "Compare these three tents": [reply(TENTS)],
    "Is a heat pump worth it in an old house?": [reply(FOOTNOTES)],
    "Draw the hike along the lake": [
        reply("", ("send_file", {"path": "hike.png", "text": "The hike: 11 km along the lake."})),
        reply("Here it is. The steep part is near the end."),
    ],
    "Where is the report of November?": [
        reply("It is in [the energy report](energy.md), its numbers in [prices.csv](prices.csv).")
    ],
    "Build a page that splits a bill": [
        reply("", ("write_file", {"path": "bill.html", "content": BILL})),
        reply("The page is ready: [bill.html](bill.html). It works without a network."),
    ],
    "Send me the contract": [
        reply("", ("send_file", {"path": "contract.pdf"})),
        reply("This is the contract of the flat, two pages."),
    ],
    "Which of these is the best for the cover?": [
        reply("The second one: it is calm, and the title would fit above the hills.")
    ],
    "Use the exact value of pi in area.py": [
        reply("", ("edit_file", {"path": "area.py", "edits": [
            {"old": "    return 3.14 * r * r", "new": "    return math.pi * r**2"}]})),
        reply("`area.py` uses `math.pi` now."),
    ],
    "Invite Ada to the river on Saturday": [
        reply("I would send this letter.", ("post_letter", {
            "to": "Ada", "text": "Come to the river on Saturday at three. We bring the cake."})),
        reply("The letter is on its way."),
    ],
    "Summarise the letters in my documents": [
        reply("", ("read_file", {"path": "/srv/documents/letters.txt"})),
        reply("I cannot read that folder yet."),
    ],
    "Plan how we tidy the receipts": [
        reply("", ("exit_plan_mode", {"plan": PLAN})),
        reply("The receipts are tidy."),
    ],
    "Write a short guide to the garden": [
        reply("## The garden in spring\n\nBegin with the beds that get the sun.\n\n⏸Then the rest.")
    ],
    "Tell me a joke": [reply("Why did the tent feel relaxed? It had been pitched perfectly.")],
    "Where is it warm in May?": [
        reply("Sicily, Crete and the Algarve: 22 to 26 °C, and the sea is cool but fit for a swim.")
    ],
    "Somewhere near the sea": [reply("**Cefalù** in Sicily: the old town is right at the beach.")],
    "And not too far by train": [reply("By train it is **Liguria**: Levanto is nine hours away.")],
    "Which tent do we take to the lake?": [
        reply("The Birch 3: the tent weighs 3.1 kg and has room for the dog.")
    ],
    "The roof leaks above the kitchen": [
        reply("Put a bucket there first. Then photograph the tiles from outside, for the roofer.")
    ],
    "Bread without kneading": [reply("Mix it tonight, fold it twice, bake it tomorrow at 240 °C.")],
    "Which papers for the tax return?": [reply("Wage slip, insurances, donations, trips to work.")],
    "Birthday of Grandma": [reply("She turns 80 on 14 December. Shall I plan the dinner?")],
    "Remember a few things about us": [
        reply("", *(("save_memory", {"content": fact}) for fact in (
            "The family has a dog called Rex.",
            "Grandma turns 80 on 14 December.",
            "The owner drinks green tea, not coffee.",
            "The car is at the garage Huber in the Lindenstraße.",
        ))),
        reply("I remember all four."),
    ],
    "Look at the notes, and pack": [
        reply("I look at the notes.", ("read_file", {"path": "notes.txt"})),
        reply("", ("write_file", {"path": "packing.md", "content": "- tent\n- milk\n- bread\n"})),
        reply("The list is in [packing.md](packing.md)."),
    ],
    "What is in my notes?": [reply("Milk, bread, and a new tent.")],
}  # fmt: skip
BEGUN = (
    "Birthday of Grandma",
    "Which papers for the tax return?",
    "Bread without kneading",
    "The roof leaks above the kitchen",
    "Which tent do we take to the lake?",
)
"""Conversations that there are already."""


def write_files(workspace: Path) -> None:
    """The files that the sentences are about."""
    (workspace / "energy.md").write_text(REPORT)
    (workspace / "prices.csv").write_text("week,kWh\n45,84\n46,79\n47,76\n48,73\n")
    (workspace / "area.py").write_text(
        "import math\n\n\ndef area(r: float) -> float:\n    return 3.14 * r * r\n"
    )
    for number, name in enumerate(("hike.png", "hills.png", "lake.png")):
        draw_hills(number).save(workspace / name)
    pages = [draw_page(1), draw_page(2)]
    pages[0].save(workspace / "contract.pdf", save_all=True, append_images=pages[1:])


def draw_hills(number: int) -> Image.Image:
    """A picture of hills below a sky; each number has other colours."""
    sky, hill, sun = (
        ((200, 225, 245), (92, 140, 96), (250, 210, 120)),
        ((245, 215, 190), (150, 110, 120), (255, 245, 220)),
        ((185, 215, 225), (70, 120, 150), (245, 240, 200)),
    )[number]
    made = Image.new("RGB", (960, 600), sky)
    pen = ImageDraw.Draw(made)
    pen.ellipse((700, 70, 800, 170), fill=sun)
    for row in range(3):
        color = tuple(max(0, part - 22 * row) for part in hill)
        top = 300 + 90 * row
        points = [(x, top + ((x // 120 + row) % 3) * 34) for x in range(0, 1081, 120)]
        pen.polygon([(0, 600), *points, (960, 600)], fill=color)
    return made


def draw_page(number: int) -> Image.Image:
    made = Image.new("RGB", (850, 1100), "white")
    pen = ImageDraw.Draw(made)
    pen.text((90, 90), f"Rental contract, page {number} of 2", "black", ImageFont.load_default(34))
    for line in range(22):
        width = 640 - 90 * (line % 4 == 3)
        pen.rectangle((90, 190 + 36 * line, 90 + width, 200 + 36 * line), fill=(205, 210, 216))
    return made


def write_home(home: Path) -> None:
    """Before a Deskhand runs there."""
    (home / "scenes.json").write_text(json.dumps(SCENES))
