"""How the unseen tasks may come out: tables and lists: choosing, sorting, adding up, turning into
something else."""

from __future__ import annotations

from tests.testing.everyday.outcomes import Case, case, does

CASES: dict[str, Case] = {
    "filter-u1": case(
        does(
            {
                "urgent.csv": """\
nr,title,priority,state,assignee
312,"No mail since noon, whole team",high,open,Aras
315,"Laptop wet, does not start",high,open,
318,Door badge broken,high,open,Noor
320,"Backup failed, disk full",high,open,Aras
"""
            },
            "4 tickets are urgent.",
        ),
        does(
            {
                "urgent.csv": """\
nr,title,priority,state,assignee
318,Door badge broken,high,open,Noor
"""
            },
            "I made urgent.csv.",
        ),
    ),
    "filter-u2": case(
        does(
            {
                "errors.log": """\
2026-03-02 08:03:10 ERROR cannot open /srv/a.db
2026-03-02 08:03:12 ERROR cannot open /srv/a.db
2026-03-02 09:44:00 ERROR upload of cat.png failed: timeout
2026-03-02 10:13:20 ERROR template 'home' is missing
2026-03-02 11:58:40 ERROR disk full
2026-03-02 11:58:41 ERROR upload of dog.png failed: disk full
"""
            },
            "6 lines.",
        ),
        does(
            {"errors.log": "2026-03-02 08:03:10 ERROR cannot open /srv/a.db\n"},
            "I copied the lines.",
        ),
    ),
    "sort-u1": case(
        does(
            {
                "tasks.txt": """\
(A) hand in tax return
(A) see the doctor about the knee
(A) extend the lease
(B) call the bank
(B) book train to Graz
(B) reply to Anneke
(C) repot the ficus
(C) wash the curtains
(D) alphabetise the spices
(D) tidy the cellar
"""
            },
            "In order.",
        ),
        does(
            {
                "tasks.txt": """\
(A) hand in tax return
(B) call the bank
(C) repot the ficus
(D) tidy the cellar
"""
            },
            "In order.",
        ),
    ),
    "sort-u2": case(
        does(
            {
                "books_sorted.csv": """\
title,author,year,price
Emma,Jane Austen,1815,7.90
Frankenstein,Mary Shelley,1818,6.50
"I, Claudius",Robert Graves,1934,10.20
"Tinker, Tailor, Soldier, Spy",John le Carre,1973,8.80
The Dispossessed,Ursula K. Le Guin,1974,11.00
"Eats, Shoots & Leaves",Lynne Truss,2003,9.50
"Sapiens",Yuval Noah Harari,2011,
Piranesi,Susanna Clarke,2020,12.00
"""
            },
            "Saved.",
        ),
        does(
            {"books_sorted.csv": "title,author,year,price\nEmma,Jane Austen,1815,7.90\n"}, "Saved."
        ),
    ),
    "total-u1": case(
        does({}, "You spent 1,564.05 euro in March."), does({}, "You spent 515.05 euro in March.")
    ),
    "total-u2": case(
        does({"hours_total.csv": "name,hours\nAda,14.25\nBo,16.5\nCem,10.0\nDana,7.5\n"}, "Saved."),
        does({"hours_total.csv": "name,hours\nAda,7.5\nBo,8\n"}, "Saved."),
    ),
    "total-u3": case(
        does({}, "On average 3.5 stars; the Kettle K2 has the most reviews (4)."),
        does({}, "The average is 3.9 stars. Toaster T1 has the most reviews."),
    ),
    "dedupe-u1": case(
        does(
            {
                "emails.txt": """\
lena@north.example
omar@south.example
team@choir.example
j.berg@mail.example
sam@club.example
kim.b@club.example
kim@club.example
team@choir.example.org
rosa@mail.example
"""
            },
            "9 are left.",
        ),
        does(
            {"emails.txt": "lena@north.example\nomar@south.example\n"}, "The duplicates are gone."
        ),
    ),
    "dedupe-u2": case(
        does(
            {
                "customers.csv": """\
id,name,email,city
1,"Lorenz, Ute",ute@lorenz.example,Kiel
2,Marta Silva,marta@silva.example,Porto
3,Igor Pavlov,igor@pavlov.example,
5,Chen Wei,chen@wei.example,Bonn
7,Marta Silvan,marta@silvan.example,Porto
9,Dag Holm,dag@holm.example,Oslo
"""
            },
            "6 customers are left.",
        ),
        does(
            {
                "customers.csv": """\
id,name,email,city
3,Igor Pavlov,igor@pavlov.example,
5,Chen Wei,chen@wei.example,Bonn
9,Dag Holm,dag@holm.example,Oslo
"""
            },
            "I removed them.",
        ),
    ),
    "convert-u1": case(
        does(
            {
                "inventory.csv": """\
item,count,place,price
drill,2,garage,89.5
"tent, 4 persons",1,attic,210
extension lead,5,cellar,12
skis,3,,150
"paint, white",4,cellar,8.25
"""
            },
            "It is in inventory.csv.",
        ),
        does(
            {
                "inventory.csv": """\
item,count,place,price
drill,2,garage,89.5
tent, 4 persons,1,attic,210
extension lead,5,cellar,12
skis,3,,150
paint, white,4,cellar,8.25
"""
            },
            "It is in inventory.csv.",
        ),
    ),
    "convert-u2": case(
        does(
            {
                "prices.md": """\
| dish | price | note |
|---|---|---|
| Soup of the day | 4.90 | |
| Pasta, pesto | 9.80 | vegan on request |
| Schnitzel | 14.50 | with fries, or salad |
| Tiramisu | 5.60 | |
| Espresso | 2.20 | |
"""
            },
            "Saved.",
        ),
        does(
            {
                "prices.md": """\
| dish | price | note |
|---|---|---|
| Soup of the day | 4.90 | |
| Pasta | pesto | 9.80 |
"""
            },
            "Saved.",
        ),
    ),
    "dates-u1": case(
        does({}, "Gamedeck renews next; 10 days are left."),
        does({}, "Cloudbox renews next, in 56 days."),
    ),
    "dates-u2": case(
        does(
            {
                "events.txt": """\
2026-03-05 parents' evening
2026-03-12 dentist, 9.15
2026-03-28-2026-03-30 trip to Gent
2026-04-02 tyres (booked 2026-01-11)
2026-04-17 Mum's 70th
2026-05-01 hike, 14.5 km
"""
            },
            "Rewritten.",
        ),
        does(
            {"events.txt": "2026-05-03 parents' evening\n2026-12-03 dentist, 9.15\n"}, "Rewritten."
        ),
    ),
}
