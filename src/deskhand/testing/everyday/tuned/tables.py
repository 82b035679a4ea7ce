"""Of the tuned half: tables and lists: choosing, sorting, adding up, turning into something
else."""

from __future__ import annotations

import re

from ..task import After, EverydayTask, days_until, markdown, same_cells, same_rows
from ..words import amount


def _german_orders(after: After) -> bool:
    header, *rows = after.rows_before("orders.csv")
    wanted = [row for row in rows if row[2] == "Germany" and (amount(row[3]) or 0) > 100]
    return (
        len(wanted) == 4
        and same_rows(after.rows("german_orders.csv"), [header, *wanted])
        and after.same()
    )


def _no_phone(after: After) -> bool:
    return (
        sorted(after.items("missing.txt"))
        == ["ingrid solberg", "omar haddad", "petra lenz", "yuki tanaka"]
        and after.same()
    )


def _by_last_name(after: After) -> bool:
    lines = after.was("members.txt").splitlines()
    return after.like(
        "members.txt", "\n".join(sorted(lines, key=lambda line: line.split()[-1]))
    ) and after.same("members.txt")


def _dearest_first(after: After) -> bool:
    header, *rows = after.rows_before("expenses.csv")
    wanted = sorted(rows, key=lambda row: -(amount(row[2]) or 0))
    return same_cells(after.rows("expenses.csv"), [header, *wanted]) and after.same("expenses.csv")


def _per_category(after: After) -> bool:
    wanted = [("food", "154.6"), ("travel", "1408"), ("home", "233.95"), ("fun", "60.5")]
    header, *rows = after.rows("totals.csv") or [()]
    return len(header) == 2 and same_rows(_first_lower(rows), wanted) and after.same()


def _first_lower(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return [(row[0].lower(), *row[1:]) for row in rows]


def _last_of_each_sku(after: After) -> bool:
    header, *rows = after.rows_before("products.csv")
    return same_rows(
        after.rows("products.csv"), [header, *{row[0]: row for row in rows}.values()]
    ) and after.same("products.csv")


def _people_as_json(after: After) -> bool:
    header, *rows = after.rows_before("people.csv")
    found = after.json("people.json")
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        return False
    told = [
        tuple("" if each.get(name) is None else str(each.get(name)) for name in header)
        for each in found
    ]
    return (
        all(set(each) == set(header) for each in found) and same_cells(told, rows) and after.same()
    )


def _next_birthday(after: After) -> bool:
    people = [
        (row[0], days_until(after.today, row[1])) for row in after.rows_before("birthdays.csv")[1:]
    ]
    name, days = min(people, key=lambda each: each[1])
    words = ("today",) if days == 0 else ("tomorrow",) if days == 1 else ()
    said = after.number(days) or after.says_one(*words)
    return after.picks([name], [each for each, _ in people]) and said and after.same()


TASKS = (
    EverydayTask(
        "filter-1",
        "filter",
        {
            "orders.csv": """\
id,customer,country,amount,paid
1001,Weber GmbH,Germany,"1,250.00",yes
1002,Lindqvist AB,Sweden,310.50,yes
1003,Baumann,Germany,89.90,no
1004,"Rossi, Bianchi & Co",Italy,"2,040.00",yes
1005,Krause,Germany,140.00,
1006,Dubois,France,99.00,no
1007,Kowalski,Poland,415.25,yes
1008,"Schulz, Erben",Germany,"3,300.10",no
1009,Novak,Austria,120.00,yes
1010,Vogt,Germany,100.00,yes
1011,Hansen,Denmark,,no
1012,Fuchs,Germany,101.50,yes
1013,Moreau,France,780.00,yes
1014,Germany Imports Ltd,Ireland,540.00,yes
""",
            "readme.txt": "amounts are in euro\n",
        },
        ("save all orders over 100 euro from Germany as german_orders.csv",),
        _german_orders,
        agrees=True,
    ),
    EverydayTask(
        "filter-2",
        "filter",
        {
            "contacts.txt": """\
Anton Frey; 0171 2233445; anton@frey.example
Beatrix Mohn; 030 778899;
Carlos Ruiz; +34 600 112233; carlos@ruiz.example
Ingrid Solberg; ; ingrid@solberg.example
Jan de Boer; 020 5551234; jan@deboer.example
Omar Haddad; ; omar@haddad.example
Petra Lenz; ;
Rita Sands; 0151 998877; rita@sands.example
Sven Aker; 0160 445566;
Tove Lund; +45 33 112244; tove@lund.example
Yuki Tanaka;; yuki@tanaka.example
Zoe Marsh; 0172 110022; zoe@marsh.example
""",
            "family.txt": "Mum\nUncle Bert\n",
        },
        (
            (
                "Which people in contacts.txt have no phone number? Write just their names to "
                "missing.txt, one per line"
            ),
        ),
        _no_phone,
        agrees=True,
    ),
    EverydayTask(
        "sort-1",
        "sort",
        {
            "members.txt": """\
Paul Winter
Nora Albers
Ezgi Toprak
Tim Christensen
Lea Novotny
Mirko Babic
Ida Voss
Oscar Ekdahl
Jule Maurer
Henri Dupont
Amira Saleh
Kofi Quaye
Sara Lindgren
""",
            "fees.csv": "name,paid\nPaul Winter,yes\nNora Albers,no\n",
        },
        ("sort members.txt by last name please",),
        _by_last_name,
        agrees=True,
        loses=("members.txt",),
    ),
    EverydayTask(
        "sort-2",
        "sort",
        {
            "expenses.csv": """\
date,what,amount
2026-01-04,rent,"1,180.00"
2026-01-05,groceries,84.30
2026-01-09,"train, Basel",132.00
2026-01-12,groceries,61.75
2026-01-15,laptop,"1,299.00"
2026-01-19,phone,25.00
2026-01-22,"dinner, with Jo",47.20
2026-01-28,gym,39.90
2026-01-30,power,112.40
""",
            "income.csv": "date,what,amount\n2026-01-31,salary,3100.00\n",
        },
        ("sort expenses.csv by amount, highest first",),
        _dearest_first,
        agrees=True,
        loses=("expenses.csv",),
    ),
    EverydayTask(
        "total-1",
        "total",
        {
            "invoices.csv": """\
number,customer,amount,state
R-201,Atelier Blum,480.00,paid
R-202,"Nagy, Farkas",1250.50,unpaid
R-203,Osteria Luce,96.20,unpaid
R-204,Kita Regenbogen,310.00,paid
R-205,"Holz & Mehr, Inh. Zeman","2,075.00",unpaid
R-206,Atelier Blum,,draft
R-207,Praxis Yilmaz,640.80,paid
R-208,Osteria Luce,118.40,unpaid
R-209,Velo Punkt,59.90,cancelled
""",
            "customers.txt": "Atelier Blum\nNagy, Farkas\nOsteria Luce\n",
        },
        ("Whats the total of all unpaid invoices?",),
        lambda a: a.number(3540.1) and a.same(),
    ),
    EverydayTask(
        "total-2",
        "total",
        {
            "costs.csv": """\
date,category,what,amount
2026-05-01,food,market,32.10
2026-05-02,travel,"flight, Porto","1,240.00"
2026-05-02,travel,airport bus,18.00
2026-05-03,food,dinner,64.50
2026-05-04,fun,museum,24.50
2026-05-05,home,paint,48.95
2026-05-06,travel,rental car,150.00
2026-05-07,fun,concert,36.00
2026-05-08,food,"bread, cheese",58.00
2026-05-09,home,ladder,185.00
""",
            "plan.md": "Porto in May\n",
        },
        (
            (
                "what did we spend per category in costs.csv? write it to totals.csv with the "
                "columns category,total"
            ),
        ),
        _per_category,
        agrees=True,
    ),
    EverydayTask(
        "total-3",
        "total",
        {
            "weather.csv": """\
date,max,min,rain_mm
2026-07-01,24.5,14.1,0
2026-07-02,26.0,15.0,0
2026-07-03,29.5,17.2,
2026-07-04,22.0,15.5,8.4
2026-07-05,19.5,12.9,12.1
2026-07-06,23.5,13.0,0.2
2026-07-07,27.0,14.8,0
2026-07-08,30.0,18.3,0
""",
            "garden.txt": "water the beans when it is over 28\n",
        },
        (
            (
                "whats the average of the max temperatures in weather.csv, and which day was "
                "the hottest?"
            ),
        ),
        lambda a: (
            a.number(25.25)
            and (a.says("2026-07-08") or a.says_one("July 8", "8 July", "8th of July", "08.07."))
            and not a.says("2026-07-03")
            and a.same()
        ),
    ),
    EverydayTask(
        "dedupe-1",
        "dedupe",
        {
            "playlist.txt": """\
Dancing Queen
Blue Monday
Heroes
Take On Me
Blue Monday
Running Up That Hill
Heroes
Dancing Queen
Smalltown Boy
Take On Me
Take On Me (live)
Blue
Africa
Heroes
Rosanna
""",
            "artists.txt": "ABBA\nABBA\nToto\n",
        },
        (
            (
                "there are songs twice in playlist.txt, keep each just once and leave the order "
                "as it is"
            ),
        ),
        lambda a: (
            a.like("playlist.txt", "\n".join(dict.fromkeys(a.was("playlist.txt").splitlines())))
            and a.same("playlist.txt")
        ),
        agrees=True,
        loses=("playlist.txt",),
    ),
    EverydayTask(
        "dedupe-2",
        "dedupe",
        {
            "products.csv": """\
sku,name,price,stock
A-10,"Mug, white",6.50,40
A-11,"Mug, blue",6.90,12
B-20,Teapot,24.00,5
A-10,"Mug, white",7.20,35
C-31,Tray,15.00,
B-20,"Teapot, 1 l",26.50,3
A-12,Cup,4.80,60
A-10,"Mug, white",7.50,31
C-32,Tray small,11.00,8
""",
            "price_rules.txt": "round to 10 cents\n",
        },
        (
            (
                "products.csv lists some skus several times. please keep just the last line for "
                "every sku"
            ),
        ),
        _last_of_each_sku,
        agrees=True,
        loses=("products.csv",),
    ),
    EverydayTask(
        "convert-1",
        "convert",
        {
            "people.csv": """\
name,age,city,job
Mina Costa,34,Faro,nurse
"Ortega, Luis",51,,"carpenter, retired"
Hana Kim,28,Busan,pilot
Per Nyman,45,Lund,teacher
Aoife Byrne,39,Cork,
""",
            "cities.txt": "Faro\nBusan\nLund\nCork\n",
        },
        ("convert people.csv to json (people.json)",),
        _people_as_json,
        agrees=True,
    ),
    EverydayTask(
        "convert-2",
        "convert",
        {
            "team.md": """\
# Team

Updated in May.

| name | role | phone |
|:-----|------|------:|
| Ana Prado | lead, design | 101 |
| Bent Ruud | tests | 102 |
| Cleo Marsh | | 117 |
| Dmitri Orlov | backend, ops | |

Ask Cleo about the printer.
""",
            "rooms.txt": "101 Ana\n102 Bent\n",
        },
        ("turn the table in team.md into team.csv",),
        lambda a: same_cells(a.rows("team.csv"), markdown(a.was("team.md"))) and a.same(),
        agrees=True,
    ),
    EverydayTask(
        "dates-1",
        "dates",
        {
            "birthdays.csv": """\
name,birthday
Agnes,01-11
Bruno,02-03
Clara,02-27
Denis,03-19
Ela,04-08
Frido,05-02
Gesa,05-30
Hugo,06-21
Ilse,07-14
Joris,08-09
Karla,09-01
Ludo,09-28
Merle,10-22
Nils,11-17
Oda,12-12
""",
            "presents.txt": "Agnes: tea\nHugo: a kite\n",
        },
        (
            (
                "who has the next birthday in birthdays.csv and in how many days is it? (dates "
                "are month-day)"
            ),
        ),
        _next_birthday,
    ),
    EverydayTask(
        "dates-2",
        "dates",
        {
            "runs.csv": """\
date,km,note
03/14/2026,8.2,
03/17/2026,5.0,rain
03/21/2026,12.4,"with Ole, slow"
04/02/2026,6.6,
04/05/2026,21.1,half marathon
11/09/2025,10.0,old shoes
""",
            "shoes.txt": "bought 02/01/2026\n",
        },
        ("change the dates in runs.csv from 03/14/2026 style to 2026-03-14 style",),
        lambda a: (
            a.like("runs.csv", re.sub(r"(\d\d)/(\d\d)/(\d{4})", r"\3-\1-\2", a.was("runs.csv")))
            and a.same("runs.csv")
        ),
        agrees=True,
        loses=("runs.csv",),
    ),
)
