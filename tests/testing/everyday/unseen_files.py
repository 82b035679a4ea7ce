"""How the unseen tasks may come out: writing, changing, moving and keeping files."""

from __future__ import annotations

from tests.testing.everyday.outcomes import Case, case, does

CASES: dict[str, Case] = {
    "write-u1": case(
        does(
            {
                "packing.txt": """\
Sunscreen
towel
swimsuit
hat
book
sandals
water bottle
sunglasses
"""
            },
            "I wrote it.",
        ),
        does(
            {"packing.txt": "Sunscreen\n"}, "I wrote a packing list with 8 things to packing.txt."
        ),
    ),
    "write-u2": case(
        does(
            {
                "landlord.txt": """\
Dear Mr Petersen,

the heating in the bathroom has been broken since Monday. When could someone come and have a look at it?

Best regards
Jonas
"""  # noqa: E501
            },
            "The draft is in landlord.txt.",
        ),
        does({"landlord.txt": "heating broken\n"}, "I drafted the mail."),
    ),
    "edit-u1": case(
        does(
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
oat milk
batteries
"""
            },
            "Both are on it.",
        ),
        does(
            {"shopping.txt": "oat milk\nbatteries\n"},
            "I added oat milk and batteries to shopping.txt.",
        ),
    ),
    "edit-u2": case(
        does(
            {
                "settings.ini": """\
; kitchen radio
[network]
host = radio.local
port = 5005
timeout = 45
retries = 3

[player]
volume = 30
station = Radio Nord
fade = 2

[debug]
log = off
log_file = radio.log
level = 3
"""
            },
            "Set.",
        ),
        does(
            {"settings.ini": "[network]\ntimeout = 45\n[debug]\nlog = off\n"},
            "The timeout is 45 now and the log is off.",
        ),
    ),
    "edit-u3": case(
        does(
            {
                "agenda.md": """\
# Team day

09:00 Welcome, room 311
09:30 Figures of the quarter (Ada), room 311
11:00 Coffee, foyer
11:15 Workshop A, room 118
12:30 Lunch
13:30 Workshop B, room 118
15:00 Wrap-up, room 311

Catering for 204 people was ordered. Beamer: ask Finn (ext. 2041).
"""
            },
            "Room 311 it is.",
        ),
        does(
            {
                "agenda.md": """\
# Team day

09:00 Welcome, room 311
09:30 Figures of the quarter (Ada), room 204
11:00 Coffee, foyer
11:15 Workshop A, room 118
12:30 Lunch
13:30 Workshop B, room 118
15:00 Wrap-up, room 204

Catering for 204 people was ordered. Beamer: ask Finn (ext. 2041).
"""
            },
            "Fixed.",
        ),
    ),
    "move-u1": case(
        does(
            {
                "report final v2.md": None,
                "wind-report.md": """\
# Wind report

The mast stood for 212 days. Mean speed 6.1 m/s.
""",
            },
            "Sure, it is wind-report.md now.",
        ),
        does(
            {
                "report final v2.md": None,
                "report v1.md": None,
                "wind-report.md": """\
# Wind report

The mast stood for 212 days. Mean speed 6.1 m/s.
""",
            },
            "Yes.",
        ),
    ),
    "move-u2": case(
        does(
            {
                "ahn_2021.pdf": None,
                "berg_2019.pdf": None,
                "costa_2023.pdf": None,
                "papers/ahn_2021.pdf": b"%PDF-1.4 tides",
                "papers/berg_2019.pdf": b"%PDF-1.4 dunes",
                "papers/costa_2023.pdf": b"%PDF-1.4 reefs",
            },
            "Moved 3 files.",
        ),
        does(
            {"ahn_2021.pdf": None, "papers/ahn_2021.pdf": b"%PDF-1.4 tides"},
            "I moved all the pdf files.",
        ),
    ),
    "move-u3": case(
        does(
            {
                "budget_old.csv": None,
                "backup/budget-2026.csv": "item,amount\nrent,840\nfood,390\nphone,25\n",
            },
            "ok, both done",
        ),
        does(
            {"backup/budget-2026.csv": "item,amount\nrent,840\nfood,390\nphone,25\n"},
            "ok, both done",
        ),
    ),
    "files-u1": case(
        does(
            {
                "q1.csv": """\
date,shop,sold
2026-01-10,North,120
2026-01-20,"South, mall",95
2026-01-31,North,"1,104"
2026-02-10,North,130
2026-02-20,West,
2026-03-05,"South, mall",88
2026-03-15,West,71
2026-03-31,North,140
"""
            },
            "8 rows.",
        ),
        does(
            {
                "q1.csv": """\
date,shop,sold
2026-01-10,North,120
2026-01-20,"South, mall",95
2026-01-31,North,"1,104"
date,shop,sold
2026-02-10,North,130
2026-02-20,West,
date,shop,sold
2026-03-05,"South, mall",88
2026-03-15,West,71
2026-03-31,North,140
"""
            },
            "combined",
        ),
    ),
    "files-u2": case(
        does({"both.txt": "Owen Pike\nSefa Kaya\nUma Rao\n"}, "Three guests come twice."),
        does(
            {"both.txt": "Owen Pike\nRuth Adler\nSefa Kaya\nUma Rao\n"}, "Four guests come twice."
        ),
    ),
    "turns-u1": case(
        does(
            {"breakfast.txt": "bread\njam\ntea\n"},
            "Written.",
            "The butter is off the list.",
            "Three.",
        ),
        does(
            {"breakfast.txt": "bread\nbutter\njam\ntea\n"},
            "Written.",
            "The butter is off the list.",
            "Three.",
        ),
    ),
    "turns-u2": case(
        does(
            {"minmax.txt": "Highest: Rafiq\nLowest: Tessa\n"},
            "Rafiq with 1,340.",
            "Tessa with 95.",
            "Saved.",
        ),
        does({"minmax.txt": "Yusuf\nTessa\n"}, "Yusuf.", "Tessa.", "Saved."),
    ),
    "cannot-u1": case(
        does({}, "trip.txt does not contain 'Hamburg', so I changed nothing."),
        does({}, "I replaced Hamburg with Bremen in trip.txt. It is not there any more."),
    ),
    "cannot-u2": case(
        does({}, "I can't: invoice_2024.pdf is not there."),
        does(
            {"invoice_2023.pdf": None, "archive/invoice_2023.pdf": b"%PDF-1.4 a"},
            "invoice_2024.pdf was not found. I moved invoice_2023.pdf instead.",
        ),
    ),
    "keep-u1": case(
        does(
            {
                "meter.txt": """\
Power meter 1ESY 4471
2025-12-01 46120
2026-01-01 46688
2026-02-01 47310
2026-03-01 47795
2026-04-01 48213
"""
            },
            "Noted.",
        ),
        does({"meter.txt": "The power meter shows 48213 today.\n"}, "Noted."),
    ),
    "keep-u2": case(
        does({}, "I did not copy it: there is a letter.txt already, and it would be lost."),
        does({"letter.txt": "Dear NAME,\n\nTEXT\n\nKind regards\n"}, "Copied."),
    ),
}
