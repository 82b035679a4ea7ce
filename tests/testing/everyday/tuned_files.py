"""How the tuned tasks may come out: writing, changing, moving and keeping files."""

from __future__ import annotations

from tests.testing.everyday.outcomes import Case, case, does

CASES: dict[str, Case] = {
    "write-1": case(
        does(
            {
                "chores.md": """\
# Chores
- [ ] Clean the fridge
- [ ] vacuum
- [ ] dust
- [ ] mop
- [ ] dishes
- [ ] laundry
- [ ] windows
"""
            },
            "There it is.",
        ),
        does({"chores.md": "- [ ] Clean the fridge\n- [ ] vacuum\n"}, "Done."),
    ),
    "write-2": case(
        does(
            {
                "invite.txt": """\
Hi everyone,

you are invited to my birthday party on Saturday, 12 June at 4 pm in Riverside Park.
Please bring a piece of cake or a salad.

Mia
"""
            },
            "I wrote the invitation.",
        ),
        does({"invite.txt": "party!\n"}, "I wrote the invitation."),
    ),
    "edit-1": case(
        does(
            {
                "todo.md": """\
# To do

- [ ] renew passport
- [ ] hang up the shelf
- [ ] call the insurance about the bike
- [x] send Lea the photos
- [ ] clean the gutters
- [ ] find a plumber
- [ ] sort the winter clothes
- [ ] return library books
"""
            },
            "ok",
        ),
        does({"todo.md": "# To do\n\n- [ ] renew passport\n"}, "I put it at the top."),
    ),
    "edit-2": case(
        does(
            {
                "config.yaml": """\
# home server
server:
  host: 0.0.0.0
  port: 9443
  name: attic
  backup_port: 8444

storage:
  path: /srv/photos
  limit_gb: 200

debug: false
language: en
users:
  - marta
  - levin
"""
            },
            "Changed.",
        ),
        does(
            {
                "config.yaml": """\
# home server
server:
  host: 0.0.0.0
  port: 9443
  name: attic
  backup_port: 9443

storage:
  path: /srv/photos
  limit_gb: 200

debug: false
language: en
users:
  - marta
  - levin
"""
            },
            "Changed.",
        ),
    ),
    "edit-3": case(
        does(
            {
                "letter.txt": """\
Dear Dr. Hoffmann,

thank you for seeing us last week. As Dr. Hoffmann from the front desk told us, the
results will be ready on Thursday.

We would like to come by on Friday, so that Dr. Hoffmann can explain them to my mother.
Our new address is Hoffmannstrasse 9.

Yours sincerely,
Elif Demir
"""
            },
            "All three are Dr. Hoffmann now.",
        ),
        does({"letter.txt": "Dear Dr. Hoffmann,\n"}, "I replaced all."),
    ),
    "move-1": case(
        does(
            {
                "meeting notes.txt": None,
                "meeting-2026-03-02.txt": """\
- Karim does the slides
- next date: 16 March
- budget is still open
""",
            },
            "Renamed.",
        ),
        does(
            {
                "meeting-2026-03-02.txt": """\
- Karim does the slides
- next date: 16 March
- budget is still open
"""
            },
            "Renamed.",
        ),
    ),
    "move-2": case(
        does(
            {
                "IMG_4401.jpg": None,
                "IMG_4402.jpg": None,
                "harbour.JPG": None,
                "pictures/IMG_4401.jpg": b"\xff\xd8 beach",
                "pictures/IMG_4402.jpg": b"\xff\xd8 pier",
                "pictures/harbour.JPG": b"\xff\xd8 harbour",
            },
            "Done, three photos.",
        ),
        does(
            {
                "IMG_4401.jpg": None,
                "IMG_4402.jpg": None,
                "pictures/IMG_4401.jpg": b"\xff\xd8 beach",
                "pictures/IMG_4402.jpg": b"\xff\xd8 pier",
            },
            "Done.",
        ),
    ),
    "move-3": case(
        does(
            {
                "recipe.md.bak": None,
                "archive/plum_cake.md": """\
# Plum cake

- 1 kg plums
- 400 g flour
- yeast

Bake at 180 degrees for 40 minutes.
""",
            },
            "Copied, and the backup is gone.",
        ),
        does(
            {
                "recipe.md.bak": None,
                "recipe.md": None,
                "archive/plum_cake.md": """\
# Plum cake

- 1 kg plums
- 400 g flour
- yeast

Bake at 180 degrees for 40 minutes.
""",
            },
            "Copied, and the backup is gone.",
        ),
    ),
    "files-1": case(
        does(
            {
                "all_notes.md": """\
# berlin.md

Hostel near the station, 38 a night.
Best falafel: corner of the square.

# cologne.md

The tower has 533 steps.

Ferry at 16:00.

# dresden.md

Bridge at night!
Train back 19:12, platform 7.
"""
            },
            "Merged.",
        ),
        does({"all_notes.md": "# berlin.md\n\n# cologne.md\n\n# dresden.md\n"}, "Merged."),
    ),
    "files-2": case(
        does(
            {
                "signature.txt": "Mona Reiter\nMarktplatz 7\n79098 Freiburg\n",
                "letters/club.txt": """\
Dear club,

I moved to Marktplatz 7 last year; please send the paper to Marktplatz 7.

Mona
""",
                "letters/bank.txt": "Account 4410\nMona Reiter, Marktplatz 7, 79098 Freiburg\n",
            },
            "It stood in three files.",
        ),
        does(
            {"signature.txt": "Mona Reiter\nMarktplatz 7\n79098 Freiburg\n"},
            "I replaced it in all files.",
        ),
    ),
    "turns-1": case(
        does({"italy.txt": "Rome\nFlorence\nVenice\nNaples\n"}, "Made.", "Added.", "Renamed."),
        does({"trip.txt": "Rome\nFlorence\nVenice\nNaples\n"}, "Made.", "Added.", "Renamed."),
    ),
    "turns-2": case(
        does(
            {"extremes.txt": "Telescope\nCompass\n"},
            "The Telescope.",
            "The Compass, for 19.50.",
            "Written.",
        ),
        does(
            {"extremes.txt": "Binoculars\nCompass\n"}, "The Binoculars.", "The Compass.", "Written."
        ),
    ),
    "cannot-1": case(
        does({}, "There is no line with yoga in week.txt."),
        does({}, "I deleted the line with yoga from week.txt."),
    ),
    "cannot-2": case(
        does({}, "There is no file draft_v3.md here; do you mean draft_v2.md?"),
        does({"draft_v2.md": None}, "I could not find draft_v3.md, so I deleted draft_v2.md."),
    ),
    "keep-1": case(
        does(
            {
                "diary.md": """\
# Diary

## 1 March

First warm day. Sat on the steps with Ruben until it got dark.

## 4 March

The letter came. I do not want to write about it yet.

## 9 March

Called Mama. She laughs again.

It rained all day. I finished The Wall.
"""
            },
            "It is in your diary.",
        ),
        does(
            {"diary.md": "It rained all day and I finished The Wall.\n"},
            "I wrote it into your diary.",
        ),
    ),
    "keep-2": case(
        does({}, "contract.md exists already and is signed. Shall I use another name?"),
        does(
            {
                "contract.md": "# Contract (draft)\n\nThe work is done until June.\n",
                "draft.md": None,
            },
            "Renamed. Is that right?",
        ),
    ),
}
