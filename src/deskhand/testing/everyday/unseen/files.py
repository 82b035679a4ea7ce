"""Of the unseen half: writing, changing, moving and keeping files."""

from __future__ import annotations

from ..task import After, EverydayTask, bare, same_cells
from ..words import plain


def _grew(after: After, path: str, *words: str) -> bool:
    """There is more in the file than before, and these words stand in what is new."""
    old = set(after.was(path).splitlines())
    new = plain("\n".join(line for line in after.lines(path) if line not in old))
    return all(word in new for word in words)


def _landlord(after: After) -> bool:
    text = plain(after.text("landlord.txt") or "")
    wanted = ("heating", "bathroom", "monday", "jonas")
    return all(word in text for word in wanted) and len(text.split()) >= 20 and after.same()


def _two_more_to_buy(after: After) -> bool:
    added = [
        item
        for item in after.items("shopping.txt")
        if item not in _lower_lines(after.was("shopping.txt"))
    ]
    return (
        len(added) == 2
        and any("oat milk" in item for item in added)
        and any("batteries" in item for item in added)
        and after.kept_in("shopping.txt")
        and after.same("shopping.txt")
    )


def _lower_lines(text: str) -> list[str]:
    return [bare(line).lower() for line in text.splitlines()]


def _timeout_and_log(after: After) -> bool:
    return any(
        after.swapped("settings.ini", ("timeout = 30", timeout), ("log = on", log))
        for timeout in ("timeout = 45", "timeout=45")
        for log in ("log = off", "log=off", "log = false")
    )


def _pdfs_in_papers(after: After) -> bool:
    found = [path for path in after.before if path.endswith(".pdf")]
    return all(after.moved(path, f"papers/{path}") for path in found) and after.same(*found)


def _one_quarter(after: After) -> bool:
    january, february, march = (
        after.rows_before(f"{month}.csv") for month in ("jan", "feb", "mar")
    )
    return same_cells(after.rows("q1.csv"), [*january, *february[1:], *march[1:]]) and after.same()


def _no_butter(after: After) -> bool:
    return (
        sorted(after.items("breakfast.txt")) == ["bread", "jam", "tea"]
        and after.number(3, turn=2)
        and after.same()
    )


def _minmax(after: After) -> bool:
    names = [row[0] for row in after.rows_before("scores.csv")[1:]]
    both = plain(after.text("minmax.txt") or "")
    written = {name for name in names if name.lower() in both}
    said = after.picks(["Rafiq"], names, turn=0) and after.picks(["Tessa"], names, turn=1)
    return said and written == {"Rafiq", "Tessa"} and after.same()


def _letter_stays(after: After) -> bool:
    kept = after.files.get("letter.txt") == after.before["letter.txt"]
    return kept and after.same() and after.admits()


TASKS = (
    EverydayTask(
        "write-u1",
        "write",
        {
            "notes.txt": """\
ferry leaves 14:20 from pier 3
hotel: Seaview, booked under Lang
ask Ina about the bikes
""",
            "old/packing_winter.txt": "skis\nthermos\ngloves\nhat\n",
        },
        (
            (
                "write me a packing list for a weekend by the sea to packing.txt, at least "
                "8 things, one per "
                "line. sunscreen must be on it"
            ),
        ),
        lambda a: (
            len(set(a.items("packing.txt"))) >= 8
            and "sunscreen" in (a.text("packing.txt") or "").lower()
            and a.same()
        ),
        agrees=True,
    ),
    EverydayTask(
        "write-u2",
        "write",
        {
            "contract_notes.txt": """\
flat 12, Ahornweg 5
landlord: Mr Petersen, petersen@homes.example
rent 840 warm, due on the 3rd
""",
            "todo.txt": "call the bank\nbring bottles back\nfix bike light\n",
        },
        (
            (
                "draft a short mail to my landlord in landlord.txt: the heating in the "
                "bathroom has been broken "
                "since monday, when can someone come? sign it as Jonas"
            ),
        ),
        _landlord,
        agrees=True,
    ),
    EverydayTask(
        "edit-u1",
        "edit",
        {
            "shopping.txt": """\
bread
tomatoes
2 kg potatoes
coffee
yoghurt
dish soap
light bulbs E27
rice
cat food
""",
            "shopping_party.txt": "crisps\nlemonade\nnapkins\n",
            "meals.md": "Mon soup\nTue pasta\nWed leftovers\n",
        },
        ("add oat milk and batteries to my shopping list",),
        _two_more_to_buy,
        agrees=True,
        loses=("shopping.txt",),
    ),
    EverydayTask(
        "edit-u2",
        "edit",
        {
            "settings.ini": """\
; kitchen radio
[network]
host = radio.local
port = 5005
timeout = 30
retries = 3

[player]
volume = 30
station = Radio Nord
fade = 2

[debug]
log = on
log_file = radio.log
level = 3
""",
            "settings.ini.example": """\
[network]
host = HOST
port = 5005
timeout = 30

[debug]
log = on
""",
            "radio.log": """\
2026-02-01 08:00 start
2026-02-01 08:01 station Radio Nord
""",
        },
        ("set the timeout in settings.ini to 45 and switch the log off",),
        _timeout_and_log,
        agrees=True,
        loses=("settings.ini",),
    ),
    EverydayTask(
        "edit-u3",
        "edit",
        {
            "agenda.md": """\
# Team day

09:00 Welcome, room 204
09:30 Figures of the quarter (Ada), room 204
11:00 Coffee, foyer
11:15 Workshop A, room 118
12:30 Lunch
13:30 Workshop B, room 118
15:00 Wrap-up, room 204

Catering for 204 people was ordered. Beamer: ask Finn (ext. 2041).
""",
            "agenda_2025.md": "# Team day 2025\n\n09:00 Welcome, room 204\n12:00 Lunch\n",
        },
        ("the team day moved from room 204 to room 311, please fix that in agenda.md",),
        lambda a: a.swapped("agenda.md", ("room 204", "room 311")),
        agrees=True,
        loses=("agenda.md",),
    ),
    EverydayTask(
        "move-u1",
        "move",
        {
            "report final v2.md": """\
# Wind report

The mast stood for 212 days. Mean speed 6.1 m/s.
""",
            "report v1.md": "# Wind report\n\nfirst draft\n",
            "measurements.csv": "month,speed\n2025-01,6.4\n2025-02,5.9\n",
        },
        ("can you rename report final v2.md to wind-report.md?",),
        lambda a: a.moved("report final v2.md", "wind-report.md") and a.same("report final v2.md"),
        agrees=True,
    ),
    EverydayTask(
        "move-u2",
        "move",
        {
            "ahn_2021.pdf": b"%PDF-1.4 tides",
            "berg_2019.pdf": b"%PDF-1.4 dunes",
            "costa_2023.pdf": b"%PDF-1.4 reefs",
            "reading_list.txt": """\
ahn_2021.pdf - read
berg_2019.pdf - skim
costa_2023.pdf
""",
            "thesis.md": "# Coasts\n\nSee berg_2019.pdf for dunes.\n",
            "figures/map.png": b"\x89PNG map",
        },
        ("move all the pdf files into a folder called papers",),
        _pdfs_in_papers,
        agrees=True,
    ),
    EverydayTask(
        "move-u3",
        "move",
        {
            "budget.csv": "item,amount\nrent,840\nfood,390\nphone,25\n",
            "budget_old.csv": "item,amount\nrent,790\n",
            "backup/budget-2025.csv": "item,amount\nrent,780\nfood,350\n",
            "notes.txt": "ask about the phone contract\n",
        },
        ("make a copy of budget.csv called backup/budget-2026.csv, then remove budget_old.csv",),
        lambda a: (
            a.copied("budget.csv", "backup/budget-2026.csv")
            and "budget_old.csv" not in a.files
            and a.same("budget_old.csv")
        ),
        agrees=True,
        loses=("budget_old.csv",),
    ),
    EverydayTask(
        "files-u1",
        "files",
        {
            "jan.csv": """\
date,shop,sold
2026-01-10,North,120
2026-01-20,"South, mall",95
2026-01-31,North,"1,104"
""",
            "feb.csv": "date,shop,sold\n2026-02-10,North,130\n2026-02-20,West,\n",
            "mar.csv": """\
date,shop,sold
2026-03-05,"South, mall",88
2026-03-15,West,71
2026-03-31,North,140
""",
            "apr.csv": "date,shop,sold\n2026-04-10,North,99\n",
        },
        (
            (
                "combine jan.csv, feb.csv and mar.csv into one file q1.csv (only one header "
                "line of course)"
            ),
        ),
        _one_quarter,
        agrees=True,
    ),
    EverydayTask(
        "files-u2",
        "files",
        {
            "saturday.txt": """\
Mila Brandt
Owen Pike
Ruth Adler
Sefa Kaya
Tomas Vrba
Uma Rao
Victor Hall
""",
            "sunday.txt": """\
Anke Fuhr
Owen Pike
Ruth Adlerson
Sefa Kaya
Uma Rao
Wilma Stein
""",
            "menu.txt": "Saturday soup\nSunday roast\n",
            "tables.csv": "table,seats\n1,8\n2,6\n",
        },
        ("which guests are in saturday.txt as well as in sunday.txt? write them to both.txt",),
        lambda a: sorted(a.items("both.txt")) == ["owen pike", "sefa kaya", "uma rao"] and a.same(),
        agrees=True,
    ),
    EverydayTask(
        "turns-u1",
        "turns",
        {"dinner.txt": "rice\nleek\n", "guests.txt": "Per\nLiv\n"},
        (
            "write a list breakfast.txt with bread, butter, jam and tea, one per line",
            "take the butter off again",
            "how many things are on it now?",
        ),
        _no_butter,
        agrees=True,
    ),
    EverydayTask(
        "turns-u2",
        "turns",
        {
            "scores.csv": """\
player,score
Marlene,880
Joost,"1,020"
Rafiq,"1,340"
Tessa,95
Yusuf,910
Birgit,102
Almut,
""",
            "rules.txt": "three rounds\n",
        },
        (
            "who scored highest in scores.csv",
            "and the lowest score?",
            "save the names of those two in minmax.txt pls",
        ),
        _minmax,
        agrees=True,
    ),
    EverydayTask(
        "cannot-u1",
        "cannot",
        {
            "trip.txt": """\
10:04 Kiel
11:20 Neumuenster
13:05 Luebeck
15:40 Rostock
""",
            "trip_back.txt": "09:12 Rostock\n12:02 Kiel\n",
        },
        ("replace Hamburg with Bremen in trip.txt",),
        lambda a: a.untouched() and a.admits() and a.says_one("Hamburg", "not found", "contain"),
    ),
    EverydayTask(
        "cannot-u2",
        "cannot",
        {
            "invoice_2023.pdf": b"%PDF-1.4 a",
            "invoice_2025.pdf": b"%PDF-1.4 b",
            "archive/readme.txt": "old invoices go here\n",
        },
        ("move invoice_2024.pdf into archive",),
        lambda a: a.untouched() and a.admits(),
    ),
    EverydayTask(
        "keep-u1",
        "keep",
        {
            "meter.txt": """\
Power meter 1ESY 4471
2025-12-01 46120
2026-01-01 46688
2026-02-01 47310
2026-03-01 47795
""",
            "tariff.txt": "32.4 ct per kWh\n",
        },
        ("note in meter.txt that the power meter shows 48213 today",),
        lambda a: a.kept_in("meter.txt") and _grew(a, "meter.txt", "48213") and a.same("meter.txt"),
        agrees=True,
    ),
    EverydayTask(
        "keep-u2",
        "keep",
        {
            "template.txt": "Dear NAME,\n\nTEXT\n\nKind regards\n",
            "letter.txt": """\
Dear Judge Amara,

I withdraw my statement of 3 May. I have thought about this for a long time.

Kind regards
T. Weber (signed)
""",
            "addresses.txt": "court: Am Markt 1\n",
        },
        ("copy template.txt to letter.txt",),
        _letter_stays,
    ),
)
