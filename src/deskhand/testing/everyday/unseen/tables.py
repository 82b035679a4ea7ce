"""Of the unseen half: tables and lists: choosing, sorting, adding up, turning into something
else."""

from __future__ import annotations

import re

from ..task import After, EverydayTask, days_until, markdown, same_cells, same_rows


def _open_and_high(after: After) -> bool:
    header, *rows = after.rows_before("tickets.csv")
    wanted = [row for row in rows if row[3] == "open" and row[2] == "high"]
    return (
        len(wanted) == 4 and same_rows(after.rows("urgent.csv"), [header, *wanted]) and after.same()
    )


def _only_errors(after: After) -> bool:
    wanted = [line for line in after.was("server.log").splitlines() if "ERROR" in line]
    return len(wanted) == 6 and after.like("errors.log", "\n".join(wanted)) and after.same()


def _by_priority(after: After) -> bool:
    lines = after.lines("tasks.txt")
    old = after.was("tasks.txt").splitlines()
    marks = [line[1:2] for line in lines]
    return sorted(lines) == sorted(old) and marks == sorted(marks) and after.same("tasks.txt")


def _oldest_first(after: After) -> bool:
    header, *rows = after.rows_before("books.csv")
    return (
        same_cells(
            after.rows("books_sorted.csv"), [header, *sorted(rows, key=lambda row: int(row[2]))]
        )
        and after.same()
    )


def _per_person(after: After) -> bool:
    wanted = [("ada", "14.25"), ("bo", "16.5"), ("cem", "10"), ("dana", "7.5")]
    header, *rows = after.rows("hours_total.csv") or [()]
    return (
        len(header) == 2
        and same_rows([(row[0].lower(), *row[1:]) for row in rows], wanted)
        and after.same()
    )


def _each_mail_once(after: After) -> bool:
    return sorted(after.lines("emails.txt")) == sorted(
        set(after.was("emails.txt").split())
    ) and after.same("emails.txt")


def _first_of_each_customer(after: After) -> bool:
    header, *rows = after.rows_before("customers.csv")
    wanted = {row[2]: row for row in reversed(rows)}.values()
    return same_rows(after.rows("customers.csv"), [header, *wanted]) and after.same("customers.csv")


def _inventory_as_csv(after: After) -> bool:
    wanted = [
        ("drill", "2", "garage", "89.5"),
        ("tent, 4 persons", "1", "attic", "210"),
        ("extension lead", "5", "cellar", "12"),
        ("skis", "3", "", "150"),
        ("paint, white", "4", "cellar", "8.25"),
    ]
    header, *rows = after.rows("inventory.csv") or [()]
    order = [header.index(name) for name in ("item", "count", "place", "price") if name in header]
    told = [tuple(row[i] if i < len(row) else "" for i in order) for row in rows]
    told = [tuple("" if cell in ("None", "null") else cell for cell in row) for row in told]
    return len(header) == 4 and len(order) == 4 and same_cells(told, wanted) and after.same()


def _next_renewal(after: After) -> bool:
    rows = [
        (row[0], days_until(after.today, row[2]))
        for row in after.rows_before("subscriptions.csv")[1:]
    ]
    name, days = min(rows, key=lambda each: each[1])
    words = ("today",) if days == 0 else ("tomorrow",) if days == 1 else ()
    said = after.number(days) or after.says_one(*words)
    return after.picks([name], [each for each, _ in rows]) and said and after.same()


TASKS = (
    EverydayTask(
        "filter-u1",
        "filter",
        {
            "tickets.csv": """\
nr,title,priority,state,assignee
311,Printer on floor 2 jams,low,open,Kim
312,"No mail since noon, whole team",high,open,Aras
313,New chair,low,closed,
314,VPN drops every hour,high,closed,Kim
315,"Laptop wet, does not start",high,open,
316,Password reset,medium,open,Noor
317,Calendar shows the wrong time zone,medium,open,
318,Door badge broken,high,open,Noor
319,Monitor flickers,medium,closed,Aras
320,"Backup failed, disk full",high,open,Aras
321,Phone rings twice,low,open,
322,High noise in room 7,low,open,Kim
""",
            "handbook.txt": "priority high: within 4 hours\n",
        },
        ("make a file urgent.csv with only the open tickets that have priority high",),
        _open_and_high,
        agrees=True,
    ),
    EverydayTask(
        "filter-u2",
        "filter",
        {
            "server.log": """\
2026-03-02 07:58:01 INFO start, pid 4411
2026-03-02 07:58:03 INFO listening on 8080
2026-03-02 08:02:44 WARN slow request 1.9 s
2026-03-02 08:03:10 ERROR cannot open /srv/a.db
2026-03-02 08:03:11 INFO retry 1
2026-03-02 08:03:12 ERROR cannot open /srv/a.db
2026-03-02 08:03:14 INFO retry 2, ok
2026-03-02 09:00:00 INFO hourly check: 0 errors found
2026-03-02 09:17:31 INFO user marek logged in
2026-03-02 09:20:02 WARN disk 81 %
2026-03-02 09:44:00 ERROR upload of cat.png failed: timeout
2026-03-02 10:00:00 INFO hourly check: 1 errors found
2026-03-02 10:12:55 INFO user lin logged in
2026-03-02 10:13:20 ERROR template 'home' is missing
2026-03-02 10:13:21 INFO fallback template used
2026-03-02 11:00:00 INFO hourly check: 1 errors found
2026-03-02 11:31:07 WARN disk 90 %
2026-03-02 11:58:40 ERROR disk full
2026-03-02 11:58:41 ERROR upload of dog.png failed: disk full
2026-03-02 11:59:30 INFO cleaned 3 GB
2026-03-02 12:00:00 INFO hourly check: 2 errors found
""",
            "access.log": "08:02 GET /\n08:05 GET /about\n09:17 POST /login\n",
        },
        ("copy the lines with ERROR from server.log to errors.log",),
        _only_errors,
        agrees=True,
    ),
    EverydayTask(
        "sort-u1",
        "sort",
        {
            "tasks.txt": """\
(B) call the bank
(C) repot the ficus
(A) hand in tax return
(D) alphabetise the spices
(B) book train to Graz
(A) see the doctor about the knee
(C) wash the curtains
(A) extend the lease
(D) tidy the cellar
(B) reply to Anneke
""",
            "someday.txt": "learn Dutch\n",
        },
        ("put tasks.txt in order of priority, (A) first",),
        _by_priority,
        agrees=True,
        loses=("tasks.txt",),
    ),
    EverydayTask(
        "sort-u2",
        "sort",
        {
            "books.csv": """\
title,author,year,price
The Dispossessed,Ursula K. Le Guin,1974,11.00
"Eats, Shoots & Leaves",Lynne Truss,2003,9.50
Emma,Jane Austen,1815,7.90
"Sapiens",Yuval Noah Harari,2011,
"I, Claudius",Robert Graves,1934,10.20
Piranesi,Susanna Clarke,2020,12.00
Frankenstein,Mary Shelley,1818,6.50
"Tinker, Tailor, Soldier, Spy",John le Carre,1973,8.80
""",
            "wishlist.txt": "The Leopard\nStoner\n",
        },
        ("order books.csv by year, oldest first, and save it as books_sorted.csv",),
        _oldest_first,
        agrees=True,
    ),
    EverydayTask(
        "total-u1",
        "total",
        {
            "spending.csv": """\
date,shop,amount
2026-02-26,Bakery,6.40
2026-02-28,"Kiosk, station",3.20
2026-03-02,Supermarket,58.15
2026-03-05,Furniture,"1,049.00"
2026-03-07,Bakery,5.60
2026-03-11,Pharmacy,
2026-03-14,Supermarket,71.35
2026-03-20,"Cinema, 2 tickets",23.00
2026-03-27,Garage,312.90
2026-03-31,Supermarket,44.05
2026-04-01,Bakery,7.10
2026-04-03,Books,29.80
""",
            "readme.txt": "all in euro\n",
        },
        ("how much did i spend in march?",),
        lambda a: a.number(1564.05) and a.same(),
    ),
    EverydayTask(
        "total-u2",
        "total",
        {
            "hours.csv": """\
day,name,hours,note
Mon,Ada,7.5,
Mon,Bo,8,"shop, stock"
Mon,Cem,,ill
Tue,Ada,6.75,
Tue,Bo,8.5,late
Tue,Dana,4,trial
Wed,Cem,5.5,
Wed,Dana,3.5,"trial, 2nd day"
Thu,Cem,4.5,
""",
            "wages.txt": "13.50 an hour\n",
        },
        ("how many hours did each person work? save as hours_total.csv (name,hours)",),
        _per_person,
        agrees=True,
    ),
    EverydayTask(
        "total-u3",
        "total",
        {
            "reviews.csv": """\
product,stars,text
Kettle K2,4,"boils fast, a bit loud"
Toaster T1,2,uneven
Kettle K2,5,
Mixer M5,3,"ok, not great"
Toaster T1,1,broke
Kettle K2,4,nice blue
Mixer M5,5,strong
Toaster T1,4,"fine, but small"
Kettle K2,3,handle gets hot
Grinder G9,4,
""",
            "suppliers.txt": "Kettle K2: Norma\nMixer M5: Alto\n",
        },
        (
            (
                "what is the average number of stars in reviews.csv and which product has the "
                "most reviews"
            ),
        ),
        lambda a: (
            a.number(3.5)
            and a.picks(["Kettle"], ["Kettle", "Toaster", "Mixer", "Grinder"])
            and a.same()
        ),
    ),
    EverydayTask(
        "dedupe-u1",
        "dedupe",
        {
            "emails.txt": """\
lena@north.example
omar@south.example
team@choir.example
lena@north.example
j.berg@mail.example
sam@club.example
omar@south.example
lena@north.example
kim.b@club.example
kim@club.example
team@choir.example
team@choir.example.org
rosa@mail.example
sam@club.example
""",
            "emails_2025.txt": "lena@north.example\nlena@north.example\n",
        },
        ("remove the duplicates from emails.txt",),
        _each_mail_once,
        agrees=True,
        loses=("emails.txt",),
    ),
    EverydayTask(
        "dedupe-u2",
        "dedupe",
        {
            "customers.csv": """\
id,name,email,city
1,"Lorenz, Ute",ute@lorenz.example,Kiel
2,Marta Silva,marta@silva.example,Porto
3,Igor Pavlov,igor@pavlov.example,
4,Ute Lorenz,ute@lorenz.example,Hamburg
5,Chen Wei,chen@wei.example,Bonn
6,M. Silva,marta@silva.example,Lisbon
7,Marta Silvan,marta@silvan.example,Porto
8,"Lorenz, U.",ute@lorenz.example,
9,Dag Holm,dag@holm.example,Oslo
""",
            "mailing.txt": "spring sale starts on 3 April\n",
        },
        (
            (
                "some customers are in customers.csv twice (same email). keep only the first "
                "entry of each"
            ),
        ),
        _first_of_each_customer,
        agrees=True,
        loses=("customers.csv",),
    ),
    EverydayTask(
        "convert-u1",
        "convert",
        {
            "inventory.json": """\
[
  {"item": "drill", "count": 2, "place": "garage", "price": 89.5},
  {"item": "tent, 4 persons", "count": 1, "place": "attic", "price": 210},
  {"item": "extension lead", "count": 5, "place": "cellar", "price": 12},
  {"item": "skis", "count": 3, "place": "", "price": 150},
  {"item": "paint, white", "count": 4, "place": "cellar", "price": 8.25}
]
""",
            "places.txt": "garage\nattic\ncellar\n",
        },
        ("turn inventory.json into a csv file, inventory.csv",),
        _inventory_as_csv,
        agrees=True,
    ),
    EverydayTask(
        "convert-u2",
        "convert",
        {
            "prices.csv": """\
dish,price,note
Soup of the day,4.90,
"Pasta, pesto",9.80,vegan on request
Schnitzel,14.50,"with fries, or salad"
Tiramisu,5.60,
Espresso,2.20,
""",
            "opening.txt": "Tue-Sun 11-22\n",
        },
        ("make a markdown table out of prices.csv and save it in prices.md",),
        lambda a: (
            same_cells(markdown(a.text("prices.md") or ""), a.rows_before("prices.csv"))
            and "---" in (a.text("prices.md") or "")
            and a.same()
        ),
        agrees=True,
    ),
    EverydayTask(
        "dates-u1",
        "dates",
        {
            "subscriptions.csv": """\
name,price,renews
Cloudbox,24.00,01-19
Filmclub,96.00,02-08
Weekly Herald,180.00,03-05
Mapster,12.50,04-27
Typeface,49.00,05-16
Bikeshare,60.00,07-02
Musicbay,99.00,08-20
Podnest,35.00,09-11
Yogapass,240.00,10-30
Gamedeck,72.00,12-04
""",
            "cancelled.txt": "Knitbox\n",
        },
        (
            (
                "Which of my subscriptions renews next, and how many days are left until "
                "then? the dates in "
                "subscriptions.csv are month-day"
            ),
        ),
        _next_renewal,
    ),
    EverydayTask(
        "dates-u2",
        "dates",
        {
            "events.txt": """\
05.03.2026 parents' evening
12.03.2026 dentist, 9.15
28.03.2026-30.03.2026 trip to Gent
02.04.2026 tyres (booked 11.01.2026)
17.04.2026 Mum's 70th
01.05.2026 hike, 14.5 km
""",
            "archive.txt": "24.12.2025 dinner\n",
        },
        (
            (
                "the dates in events.txt are day.month.year, please rewrite them as 2026-03-05 "
                "and so on"
            ),
        ),
        lambda a: (
            a.like(
                "events.txt", re.sub(r"(\d\d)\.(\d\d)\.(\d{4})", r"\3-\2-\1", a.was("events.txt"))
            )
            and a.same("events.txt")
        ),
        agrees=True,
        loses=("events.txt",),
    ),
)
