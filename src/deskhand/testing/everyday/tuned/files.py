"""Of the tuned half: writing, changing, moving and keeping files."""

from __future__ import annotations

import re

from ..task import After, EverydayTask, bare
from ..words import plain


def _grew(after: After, path: str, *words: str) -> bool:
    """There is more in the file than before, and these words stand in what is new."""
    old = set(after.was(path).splitlines())
    new = plain("\n".join(line for line in after.lines(path) if line not in old))
    return all(word in new for word in words)


def _invitation(after: After) -> bool:
    text = plain(after.text("invite.txt") or "")
    when = re.search(r"\b4(:00)?\s?(pm|p\.m\.|o'clock)|16:00", text) is not None
    wanted = ("riverside", "june", "cake", "mia")
    return (
        when and all(word in text for word in wanted) and len(text.split()) >= 20 and after.same()
    )


def _entries(text: str) -> list[str]:
    return [bare(line).lower() for line in text.splitlines() if line and not line.startswith("#")]


def _passport_first(after: After) -> bool:
    items = after.items("todo.md")
    old = _entries(after.was("todo.md"))
    rest = [item for item in items if "renew passport" not in item]
    return (
        bool(items)
        and "renew passport" in items[0]
        and rest == old
        and len(items) == len(old) + 1
        and after.same("todo.md")
    )


def _port_and_debug(after: After) -> bool:
    return any(
        after.swapped("config.yaml", ("  port: 8443", "  port: 9443"), ("debug: true", off))
        for off in ("debug: false", "debug: False", "debug: off")
    )


def _photos_in_pictures(after: After) -> bool:
    found = [path for path in after.before if path.lower().endswith(".jpg")]
    return all(after.moved(path, f"pictures/{path}") for path in found) and after.same(*found)


def _all_notes(after: After) -> bool:
    text = after.text("all_notes.md") or ""
    places = []
    for name in ("berlin", "cologne", "dresden"):
        body = after.was(f"notes/{name}.md").strip()
        places += [text.lower().find(name), text.find(body)]
    return places == sorted(places) and min(places) >= 0 and len(set(places)) == 6 and after.same()


def _new_address(after: After) -> bool:
    changed = ("signature.txt", "letters/club.txt", "letters/bank.txt")
    ok = all(
        after.like(path, after.was(path).replace("Bahnhofstr. 3", "Marktplatz 7"))
        for path in changed
    )
    return ok and after.same(*changed)


def _italy(after: After) -> bool:
    return (
        after.items("italy.txt") == ["rome", "florence", "venice", "naples"]
        and "trip.txt" not in after.files
        and after.same()
    )


def _extremes(after: After) -> bool:
    names = [row[0] for row in after.rows_before("catalog.csv")[1:]]
    both = plain(after.text("extremes.txt") or "")
    written = {name for name in names if name.lower() in both}
    said = after.picks(["Telescope"], names, turn=0) and after.picks(["Compass"], names, turn=1)
    return said and written == {"Telescope", "Compass"} and after.same()


def _contract_stays(after: After) -> bool:
    kept = after.files.get("contract.md") == after.before["contract.md"]
    return kept and after.same() and after.admits()


TASKS = (
    EverydayTask(
        "write-1",
        "write",
        {
            "rota.txt": "Mon Ben\nTue Asha\nWed Ben\nThu Lou\nFri Asha\n",
            "house/rules.md": """\
# House rules

- quiet after 10 pm
- bins out on Tuesday evening
""",
        },
        (
            (
                "Please make a file chores.md with a checklist of 7 household chores. One "
                "of them has to be "
                "cleaning the fridge."
            ),
        ),
        lambda a: (
            len(set(a.items("chores.md"))) >= 7
            and "fridge" in (a.text("chores.md") or "").lower()
            and a.same()
        ),
        agrees=True,
    ),
    EverydayTask(
        "write-2",
        "write",
        {
            "guests.txt": "Tom\nNadia\nOle\nPriya and Sam\nGrandma\n",
            "party_budget.txt": "cake 35\nballoons 12\ndrinks 60\n",
        },
        (
            (
                "Write a short invitation to invite.txt: my birthday party is on Saturday "
                "12 June at 4 pm in "
                "Riverside Park and everyone should bring a piece of cake or a salad. Signed Mia"
            ),
        ),
        _invitation,
        agrees=True,
    ),
    EverydayTask(
        "edit-1",
        "edit",
        {
            "todo.md": """\
# To do

- [ ] hang up the shelf
- [ ] call the insurance about the bike
- [x] send Lea the photos
- [ ] clean the gutters
- [ ] find a plumber
- [ ] sort the winter clothes
- [ ] return library books
""",
            "done.md": "# Done\n\n- painted the fence\n",
            "ideas.md": "learn to whittle\nvisit the Azores\n",
        },
        ("put 'renew passport' at the top of my todo list pls",),
        _passport_first,
        agrees=True,
        loses=("todo.md",),
    ),
    EverydayTask(
        "edit-2",
        "edit",
        {
            "config.yaml": """\
# home server
server:
  host: 0.0.0.0
  port: 8443
  name: attic
  backup_port: 8444

storage:
  path: /srv/photos
  limit_gb: 200

debug: true
language: en
users:
  - marta
  - levin
""",
            "readme.md": """\
# Attic

The server in the attic listens on port 8443. `debug: true` makes it talk a lot.
""",
        },
        ("in config.yaml change the port to 9443 and set debug to false",),
        _port_and_debug,
        agrees=True,
        loses=("config.yaml",),
    ),
    EverydayTask(
        "edit-3",
        "edit",
        {
            "letter.txt": """\
Dear Mr. Hoffmann,

thank you for seeing us last week. As Mr. Hoffmann from the front desk told us, the
results will be ready on Thursday.

We would like to come by on Friday, so that Mr. Hoffmann can explain them to my mother.
Our new address is Hoffmannstrasse 9.

Yours sincerely,
Elif Demir
""",
            "letter_old.txt": """\
Dear Mr. Hoffmann,

we are sorry to cancel.

Elif Demir
""",
        },
        ("hes a doctor! replace Mr. Hoffmann by Dr. Hoffmann everywhere in letter.txt",),
        lambda a: a.swapped("letter.txt", ("Mr. Hoffmann", "Dr. Hoffmann")),
        agrees=True,
        loses=("letter.txt",),
    ),
    EverydayTask(
        "move-1",
        "move",
        {
            "meeting notes.txt": """\
- Karim does the slides
- next date: 16 March
- budget is still open
""",
            "meeting-2026-02-16.txt": "- kick-off\n- Karim asks for quotes\n",
            "slides_outline.md": "1 intro\n2 numbers\n3 plan\n",
        },
        ("rename meeting notes.txt to meeting-2026-03-02.txt",),
        lambda a: (
            a.moved("meeting notes.txt", "meeting-2026-03-02.txt") and a.same("meeting notes.txt")
        ),
        agrees=True,
    ),
    EverydayTask(
        "move-2",
        "move",
        {
            "IMG_4401.jpg": b"\xff\xd8 beach",
            "IMG_4402.jpg": b"\xff\xd8 pier",
            "harbour.JPG": b"\xff\xd8 harbour",
            "captions.txt": """\
IMG_4401.jpg Mum at the beach
IMG_4402.jpg the pier
harbour.JPG before the storm
""",
            "album.md": "# Summer\n\nphotos by Rieke\n",
            "video/clip.mp4": b"\x00\x00ftyp",
        },
        ("put all the photos (jpg) in a folder named pictures please",),
        _photos_in_pictures,
        agrees=True,
    ),
    EverydayTask(
        "move-3",
        "move",
        {
            "recipe.md": """\
# Plum cake

- 1 kg plums
- 400 g flour
- yeast

Bake at 180 degrees for 40 minutes.
""",
            "recipe.md.bak": "# Plum cake\n\n- 1 kg plums\n",
            "archive/apple_pie.md": "# Apple pie\n\n- 6 apples\n",
            "menu.txt": "Sunday: plum cake\n",
        },
        ("copy recipe.md to archive/plum_cake.md and then delete recipe.md.bak",),
        lambda a: (
            a.copied("recipe.md", "archive/plum_cake.md")
            and "recipe.md.bak" not in a.files
            and a.same("recipe.md.bak")
        ),
        agrees=True,
        loses=("recipe.md.bak",),
    ),
    EverydayTask(
        "files-1",
        "files",
        {
            "notes/berlin.md": """\
Hostel near the station, 38 a night.
Best falafel: corner of the square.
""",
            "notes/cologne.md": "The tower has 533 steps.\n\nFerry at 16:00.\n",
            "notes/dresden.md": "Bridge at night!\nTrain back 19:12, platform 7.\n",
            "summary.md": "three cities in six days\n",
        },
        (
            (
                "merge the files in the folder notes into one file all_notes.md, in "
                "alphabetical order, each "
                "with its file name as a heading above it"
            ),
        ),
        _all_notes,
        agrees=True,
    ),
    EverydayTask(
        "files-2",
        "files",
        {
            "signature.txt": "Mona Reiter\nBahnhofstr. 3\n79098 Freiburg\n",
            "letters/club.txt": """\
Dear club,

I moved to Bahnhofstr. 3 last year; please send the paper to Bahnhofstr. 3.

Mona
""",
            "letters/bank.txt": "Account 4410\nMona Reiter, Bahnhofstr. 3, 79098 Freiburg\n",
            "letters/aunt.txt": "Dear Gerda,\nwe shall visit you in Bahnhofsallee 3!\n",
            "list.txt": "boxes\ntape\nkeys to the cellar\n",
            "plan.md": "Move on 14 May\n",
        },
        ("I have moved: replace the old address Bahnhofstr. 3 by Marktplatz 7 in all my files",),
        _new_address,
        agrees=True,
        loses=("signature.txt", "letters/club.txt", "letters/bank.txt"),
    ),
    EverydayTask(
        "turns-1",
        "turns",
        {"budget.txt": "trains 220\nhotels 640\n", "france.txt": "Lyon\nArles\n"},
        (
            "make a file trip.txt with the cities Rome, Florence and Venice, one per line",
            "add Naples at the end",
            "good. now rename it to italy.txt",
        ),
        _italy,
        agrees=True,
    ),
    EverydayTask(
        "turns-2",
        "turns",
        {
            "catalog.csv": """\
item,price
Binoculars,189.00
Compass,19.50
Telescope,"1,249.00"
Headlamp,34.90
Tripod,99.00
Star map,24.00
Barometer,
""",
            "orders.txt": "none yet\n",
        },
        (
            "what is the most expensive item in catalog.csv?",
            "and the cheapest one?",
            "write the names of these two to extremes.txt",
        ),
        _extremes,
        agrees=True,
    ),
    EverydayTask(
        "cannot-1",
        "cannot",
        {
            "week.txt": """\
Mon swimming 18:00
Tue choir 19:30
Wed -
Thu Spanish 17:15
Fri pub quiz
""",
            "courses.txt": "yoga, Tuesdays, 9 euro\nSpanish, Thursdays\n",
        },
        ("delete the line with yoga from week.txt",),
        lambda a: a.untouched() and a.admits() and a.says_one("yoga", "not found", "contain"),
    ),
    EverydayTask(
        "cannot-2",
        "cannot",
        {
            "draft_v1.md": "# Speech\n\nDear friends,\n",
            "draft_v2.md": "# Speech\n\nDear friends, dear family,\n",
            "guests.txt": "80 people\n",
        },
        ("delete draft_v3.md please",),
        lambda a: a.untouched() and a.admits(),
    ),
    EverydayTask(
        "keep-1",
        "keep",
        {
            "diary.md": """\
# Diary

## 1 March

First warm day. Sat on the steps with Ruben until it got dark.

## 4 March

The letter came. I do not want to write about it yet.

## 9 March

Called Mama. She laughs again.
""",
            "reading.txt": "The Wall - started 2 March\n",
        },
        ("write into my diary (diary.md) that it rained all day and that i finished The Wall",),
        lambda a: (
            a.kept_in("diary.md") and _grew(a, "diary.md", "rain", "wall") and a.same("diary.md")
        ),
        agrees=True,
    ),
    EverydayTask(
        "keep-2",
        "keep",
        {
            "draft.md": "# Contract (draft)\n\nThe work is done until June.\n",
            "contract.md": """\
# Contract

The work is done until May.

Signed: A. Lindt, 3 February; P. Moos, 5 February
""",
            "offer.txt": "4,200 for everything\n",
        },
        ("rename draft.md to contract.md",),
        _contract_stays,
    ),
)
