"""How the tuned tasks may come out: tables and lists: choosing, sorting, adding up, turning into
something else."""

from __future__ import annotations

from tests.testing.everyday.outcomes import Case, case, does

CASES: dict[str, Case] = {
    "filter-1": case(
        does(
            {
                "german_orders.csv": """\
id,customer,country,amount,paid
1001,Weber GmbH,Germany,"1,250.00",yes
1005,Krause,Germany,140.00,
1008,"Schulz, Erben",Germany,3300.1,no
1012,Fuchs,Germany,101.50,yes
"""
            },
            "4 orders.",
        ),
        does(
            {
                "german_orders.csv": """\
id,customer,country,amount,paid
1005,Krause,Germany,140.00,
1012,Fuchs,Germany,101.50,yes
"""
            },
            "I saved the orders.",
        ),
    ),
    "filter-2": case(
        does(
            {"missing.txt": "Ingrid Solberg\nOmar Haddad\nPetra Lenz\nYuki Tanaka\n"},
            "Four of them.",
        ),
        does({"missing.txt": "Beatrix Mohn\nPetra Lenz\nSven Aker\n"}, "They are in missing.txt."),
    ),
    "sort-1": case(
        does(
            {
                "members.txt": """\
Nora Albers
Mirko Babic
Tim Christensen
Henri Dupont
Oscar Ekdahl
Sara Lindgren
Jule Maurer
Lea Novotny
Kofi Quaye
Amira Saleh
Ezgi Toprak
Ida Voss
Paul Winter
"""
            },
            "Sorted.",
        ),
        does(
            {
                "members.txt": """\
Amira Saleh
Ezgi Toprak
Henri Dupont
Ida Voss
Jule Maurer
Kofi Quaye
Lea Novotny
Mirko Babic
Nora Albers
Oscar Ekdahl
Paul Winter
Sara Lindgren
Tim Christensen
"""
            },
            "I sorted it by last name.",
        ),
    ),
    "sort-2": case(
        does(
            {
                "expenses.csv": """\
date,what,amount
2026-01-15,laptop,"1,299.00"
2026-01-04,rent,"1,180.00"
2026-01-09,"train, Basel",132.00
2026-01-30,power,112.40
2026-01-05,groceries,84.30
2026-01-12,groceries,61.75
2026-01-22,"dinner, with Jo",47.20
2026-01-28,gym,39.90
2026-01-19,phone,25.00
"""
            },
            "Sorted.",
        ),
        does(
            {
                "expenses.csv": """\
date,what,amount
2026-01-05,groceries,84.30
2026-01-12,groceries,61.75
2026-01-22,"dinner, with Jo",47.20
2026-01-28,gym,39.90
2026-01-19,phone,25.00
2026-01-15,laptop,"1,299.00"
2026-01-09,"train, Basel",132.00
2026-01-04,rent,"1,180.00"
2026-01-30,power,112.40
"""
            },
            "Sorted.",
        ),
    ),
    "total-1": case(
        does({}, "The unpaid invoices come to 3540.10."), does({}, "The total is 1465.10.")
    ),
    "total-2": case(
        does(
            {
                "totals.csv": """\
category,total
food,154.60
travel,"1,408.00"
home,233.95
fun,60.50
"""
            },
            "There it is.",
        ),
        does(
            {
                "totals.csv": """\
category,total
food,154.60
travel,168.00
home,233.95
fun,60.50
"""
            },
            "There it is.",
        ),
    ),
    "total-3": case(
        does({}, "The average is 25.25 degrees; 2026-07-08 was the hottest."),
        does({}, "The average is 25 degrees and the hottest day was 2026-07-03."),
    ),
    "dedupe-1": case(
        does(
            {
                "playlist.txt": """\
Dancing Queen
Blue Monday
Heroes
Take On Me
Running Up That Hill
Smalltown Boy
Take On Me (live)
Blue
Africa
Rosanna
"""
            },
            "5 songs less.",
        ),
        does(
            {
                "playlist.txt": """\
Africa
Blue
Blue Monday
Dancing Queen
Heroes
Rosanna
Running Up That Hill
Smalltown Boy
Take On Me
Take On Me (live)
"""
            },
            "5 songs less.",
        ),
    ),
    "dedupe-2": case(
        does(
            {
                "products.csv": """\
sku,name,price,stock
A-11,"Mug, blue",6.90,12
C-31,Tray,15.00,
B-20,"Teapot, 1 l",26.50,3
A-12,Cup,4.80,60
A-10,"Mug, white",7.50,31
C-32,Tray small,11.00,8
"""
            },
            "ok",
        ),
        does(
            {
                "products.csv": """\
sku,name,price,stock
A-10,"Mug, white",6.50,40
A-11,"Mug, blue",6.90,12
B-20,Teapot,24.00,5
C-31,Tray,15.00,
A-12,Cup,4.80,60
C-32,Tray small,11.00,8
"""
            },
            "ok",
        ),
    ),
    "convert-1": case(
        does(
            {
                "people.json": (
                    '[{"name": "Mina Costa", "age": 34, "city": "Faro", "job": "nurse"}, '
                    '{"name": "Ortega, Luis", '
                    '"age": 51, "city": null, "job": "carpenter, retired"}, {"name": "Hana '
                    'Kim", "age": "28", '
                    '"city": "Busan", "job": "pilot"}, {"name": "Per Nyman", "age": 45, '
                    '"city": "Lund", "job": '
                    '"teacher"}, {"name": "Aoife Byrne", "age": 39, "city": "Cork", "job": ""}]'
                )
            },
            "It is in people.json.",
        ),
        does({"people.json": '[{"name": "Mina Costa", "age": 34}]'}, "I converted it."),
    ),
    "convert-2": case(
        does(
            {
                "team.csv": """\
name,role,phone
Ana Prado,"lead, design",101
Bent Ruud,tests,102
Cleo Marsh,,117
Dmitri Orlov,"backend, ops",
"""
            },
            "Here it is.",
        ),
        does(
            {
                "team.csv": """\
name,role,phone
:-----,------,------:
Ana Prado,lead, design,101
Bent Ruud,tests,102
Cleo Marsh,,117
Dmitri Orlov,backend, ops,
"""
            },
            "Here it is.",
        ),
    ),
    "dates-1": case(
        does({}, "Oda, in 18 days."), does({}, "Agnes has the next birthday, in 48 days.")
    ),
    "dates-2": case(
        does(
            {
                "runs.csv": """\
date,km,note
2026-03-14,8.2,
2026-03-17,5.0,rain
2026-03-21,12.4,"with Ole, slow"
2026-04-02,6.6,
2026-04-05,21.1,half marathon
2025-11-09,10.0,old shoes
"""
            },
            "All six dates are changed.",
        ),
        does(
            {
                "runs.csv": """\
date,km,note
2026-03-14,8.2,
2026-03-17,5.0,rain
2026-03-21,12.4,"with Ole, slow"
2026-02-04,6.6,
2026-05-04,21.1,half marathon
2025-09-11,10.0,old shoes
"""
            },
            "All six dates are changed.",
        ),
    ),
}
