# ruff: noqa: E501 -- a line is a file
"""Each program of the library does what it is shown for: it is run, and what it says and leaves behind is compared.

A case is the beginning of what is asked, then what is there before (`path < text`, `path => where it lies then`,
`path @ day of the last change`) and what has changed then (`path > text`, `path > (gone)`, `say > text`). A line ends with ` / `; ` // ` is the sign itself,
and `path > *` has some text."""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from deskhand.models import shim_library
from tests.tools.program.folder import fill, run, texts

EXAMPLES = [each for each in shim_library._examples() if not each.always]


class Case(msgspec.Struct):
    """What one program starts with, and what it comes to."""

    asked: str
    before: dict[str, str]
    after: dict[str, str]
    gone: list[str]
    days: dict[str, str]
    said: str = ""


def _cases(table: str) -> list[Case]:
    found: list[Case] = []
    for line in filter(None, table.split("\n")):
        if line.startswith("# "):
            found.append(Case(line[2:], {}, {}, [], {}))
            continue
        path, sign, text = re.split(r" (<|>|=>|@)(?: |$)", line, maxsplit=1)
        told, case = text.replace(" / ", "\n").replace(" // ", " / "), found[-1]
        if sign == ">" and path == "say":
            case.said = told
        elif text == "(gone)":
            case.before[path] = path
            case.gone.append(path)
        elif sign == "=>":
            case.before[path] = case.after[text] = path
            case.gone.append(path)
        elif sign == "@":
            case.days[path] = text
        else:
            (case.before if sign == "<" else case.after)[path] = told + "\n" * bool(told)
    return found


CASES = _cases(r"""
# add a new column miles
trips.csv < day,km / Mon,12 / Tue,10
trips.csv > day,km,miles / Mon,12,7.5 / Tue,10,6.2
# take the cancelled bookings
bookings.csv < name,state / Kim,open / Ben,cancelled
bookings.csv > name,state / Kim,open
# put 'live_' in front
songs/a.mp3 => songs/live_a.mp3
notes.txt < x
# rename the files in pics
pics/My Cat.png => pics/my-cat.png
pics/dog.png < x
# sort league.csv by wins
league.csv < team,wins,goals / Reds,4,11 / Blues,10,9 / Greens,4,12
ranking.csv > team,wins,goals / Blues,10,9 / Greens,4,12 / Reds,4,11
# sort people.csv by birthday
people.csv < name,birthday / Ada,3.5.1990 / Ben,1.12.1985
people.csv > name,birthday / Ben,1.12.1985 / Ada,3.5.1990
# bring the lines of plan.txt
plan.txt < 10:30 concert / 9:15 yoga
plan.txt > 9:15 yoga / 10:30 concert
# how much did each shop sell
sales.csv < shop,amount / north,12.50 / south,20 / north,0.10
say > north: 12.60 / south: 20.00 / south sold the most.
# write the sum of each kind
spent.csv < date,kind,amount / 2025-01-03,food,12.50 / 2025-01-04,bus,2 / 2025-01-05,food,1
sums.csv > kind,total / food,13.5 / bus,2
# what did we take in March
till.csv < date,item,count,price / 2025-03-01,tea,2,3.50 / 2025-04-01,tea,9,3.50
say > In March 2025 it was 7.00.
# How many hours did Kim work
work.csv < who,hours / Kim,2.5 / Ben,9 / Kim,1
say > Kim worked 3.5 hours and gets 52.50.
# add up the prices in the table
bills.md < # Bills /  / | what | price | / |---|---| / | tyres | 80.00 | / | oil | 9.50 |
bills.md > # Bills /  / | what | price | / |---|---| / | tyres | 80.00 | / | oil | 9.50 | / Sum: 89.50
# what did I pay for the phone
costs.csv < what,cost / rent,800 / Phone bill,20.5
say > You paid 20.50 for the phone.
# what did I pay for the phone
costs.csv < what,cost / rent,800
say > There is nothing about a phone in costs.csv.
# some addresses are in list.txt
list.txt < ada@x.example / Ada@x.example / ben@x.example
list.txt > ada@x.example / ben@x.example
# some rows of gifts.csv
gifts.csv < who,gift / Kim,book / Ben,cup / Kim,book / Kim,cup
gifts.csv > who,gift / Kim,book / Ben,cup / Kim,cup
# where did I write about the blue key
diary/may.txt < rain / The Blue key is at Ben's
todo.md < keys
say > diary/may.txt: The Blue key is at Ben's
# which of my files mention
a/one.txt < my boat / the boat
two.txt < a Boat
three.md < car
say > These files mention it: a/one.txt, two.txt
# which things does Kim still have
loans.json < {"year": 2025, "items": [{"name": "drill", "who": "Kim", "back": false}, {"name": "saw", "who": "Kim", "back": true}]}
say > Kim still has: drill
# which things does Kim still have
loans.json < {"items": []}
say > Kim has nothing.
# who lives in flat 3C
tenants.csv < flat,name,phone / 1A,Kim,040 11 / 3C,Ben,040 12
say > Ben lives there, phone 040 12.
# who lives in flat 3C
tenants.csv < flat,name,phone / 1A,Kim,040 11
say > Nobody in the list lives in 3C.
# when is it due? form.txt
form.txt < name: Kim / started: 3 May 2025 / time: 10 weeks
say > It is due on 2025-07-12, a Saturday.
# who is late, with a due date
loans.csv < who,what,due,back / Kim,saw,2025-03-10,no / Ben,cup,2025-03-10,yes / Eve,pan,2027-03-10,no
say > Kim
# who is late, with a due date
loans.csv < who,what,due,back / Eve,pan,2027-03-10,no
say > Nobody is late.
# every date in course.txt
course.txt < 3.5.2025 18:00 start / 13.5.2025 18:00 glaze / 6.5.2025 17:00 fire / 30.5.2025 end
course.txt > 6.5.2025 18:00 start / 16.5.2025 18:00 glaze / 9.5.2025 17:00 fire / 2.6.2025 end
# how long did the job of 3 May
run.log < 2025-05-03 10:00:00 job started / 2025-05-03 10:42:00 job finished / 2025-05-04 10:00:00 job started
say > It took 42 minutes.
# put the WARN lines
web.log < 2025-05-03 08:59:00 WARN a / 2025-05-03 10:02:10 WARN slow / 2025-05-03 10:03:00 INFO b / 2025-05-03 10:31:00 WARN c
warn.txt > 2025-05-03 10:02:10 WARN slow
# we have 9 tea now
stock.json < {"items": [{"name": "tea", "count": 4}]}
stock.json > { /   "items": [ /     { /       "name": "tea", /       "count": 9 /     } /   ] / }
# the newest books at the top
books.json < [{"title": "Dune", "year": 1965}, {"title": "Moss", "year": 2001}]
books.json > [ /   { /     "title": "Moss", /     "year": 2001 /   }, /   { /     "title": "Dune", /     "year": 1965 /   } / ]
# make a table guests.csv
guests.json < [{"name": "Ada", "seat": 4, "diet": "vegan"}]
guests.csv > name,seat / Ada,4
# turn the teas of teas.json
teas.json < {"teas": [{"name": "Assam", "minutes": 4}]}
teas.md > | name | minutes | / | --- | --- | / | Assam | 4 |
# make cards.csv out of
cards.txt < Name: Ada / Mail: ada@x.example /  / Name: Ben
cards.csv > name,mail / Ada,ada@x.example / Ben,
# the tickets are bought
trip.md < - [ ] tickets / - [ ] tent / - [ ] rope
trip.md > - [x] tickets / - [ ] rope
# start a checklist camp.md
camp.md > - [ ] knife / - [ ] rope / - [ ] matches
# put 3 carrots instead of 2
soup.md < # Soup / ## Ingredients / - 2 carrots / - 1 onion /  / ## Steps / cut
soup.md > # Soup / ## Ingredients / - 3 carrots / - 1 onion / - 1 leek /  / ## Steps / cut
# the soup costs 5.20
menu.csv < dish,price / soup,4.50 / rice,3
menu.csv > dish,price / soup,5.20 / rice,3
# make it 10:00 instead
times.txt < open 9:00, lunch 12:30 / last entry 17:00
times.txt > open 10:00, lunch 12:30 / last entry 18:00
# the modem has a new address
modem.ini < [modem] / host = 10.0.0.1 / port = 80
modem.ini > [modem] / host = 10.0.0.9 / port = 80
# a new supplier
suppliers.txt < Tea House, Main Street 3, Bonn
suppliers.txt > Tea House, Main Street 3, Bonn / Green Leaf, Hill Road 5, Kiel
# write a letter to the club
club.txt > Dear members of the club, /  / I am writing to tell you that I leave the club on 1 May. Please confirm this in writing. Thank you for the good time. /  / Kind regards / Ada Moss
# write a friendly notice
notice.txt > Dear guests, /  / On Monday we are closed. From Tuesday on we are here for you again as usual. Thank you for your patience!
# save three ideas
party.txt > - a treasure hunt in the park / - baking pizza together / - a film night with popcorn
# write me a little python script km.py
km.py > import sys /  / miles = float(sys.argv[1]) / print(round(miles * 1.609, 2))
say > I wrote km.py. For 5 it prints: 8.04
# write a script oldest.py
ages.txt < 9 / 31 / 24
oldest.py > ages = [int(line) for line in open('ages.txt') if line.strip()] / print(max(ages))
say > I wrote oldest.py. It prints: 31
# join jan.txt and feb.txt
jan.txt < a
feb.txt < b
both.txt > a / b
# put the csv files a and b
in/a.csv < day,sum / Mon,1
in/b.csv < day,sum / Tue,2
all.csv > day,sum / Mon,1 / Tue,2
# make a csv of its own for each class
pupils.csv < name,class / Ada,4b / Ben,4a / Eve,4b
4b.csv > name,class / Ada,4b / Eve,4b
4a.csv > name,class / Ben,4a
# who is in all.txt but has not paid
all.txt < Ada / Ben / Eve
paid.txt < Ben
open.txt > Ada / Eve
say > 2 have not paid: Ada, Eve
# what does the order cost
order.csv < item,count / tea,2 / jam,1
prices.csv < item,price / jam,2.25 / tea,3.50 / oil,9
say > The order costs 9.25.
# count the words of each text
poems/a.txt < one two / three
poems/b.txt < one
words.csv > file,words / a.txt,3 / b.txt,1
say > I counted the words of 2 files.
# write an overview list.md
work/a.md < # Boat / text
work/deep/b.md < Sea
x.md < # X
list.md > - work/a.md: Boat / - work/deep/b.md: Sea
# collect the FIXME lines
talk/one.md < FIXME: add a picture / text
talk/two.md < x /   FIXME: end
fix.txt > FIXME: add a picture / FIXME: end
# I am Kim, write what
minutes.md < TASK Kim: order paper / TASK Ben: call the hall / Kim: hello
kim.md > - [ ] order paper
say > I wrote 1 tasks to kim.md.
# tidy up the folder load
load/a.pdf => load/docs/a.pdf
load/b.jpg => load/pics/b.jpg
load/c.txt < x
# the bills of 2025
in/Bill 2025 May.pdf => old/2025/Bill 2025 May.pdf
in/Bill 2024 May.pdf < x
in/Letter 2025.pdf < x
# move offer.md into
offer.md => archive/offer.md
# put a copy of trip.md
trip.md < x
Old/Trip 2024.md > x
# delete all tmp files
a.tmp > (gone)
b.tmp > (gone)
c.txt < x
# what are my three largest
a.pdf < 123456789
b/c.jpg < 1
d.txt < 12345
e.txt < 123
say > a.pdf: 10 bytes / d.txt: 6 bytes / e.txt: 4 bytes
# who has less than 40
marks.csv < name,mark / Ada,54 / Ben,39 / Eve,40
say > Less than 40: Ben / The average is 44.33.
# who has less than 40
marks.csv < name,mark / Ada,54
say > Less than 40: nobody / The average is 54.00.
# how many reviews in rates.txt
rates.txt < good 5 stars / so so 3 stars / ok 3 stars
say > 2 reviews have 3 stars.
# what phone number did I write
party.txt < hall: Old Barn / music: 040 1122 / Cook: 040 77
say > Cook: 040 77
# what phone number did I write
party.txt < hall: Old Barn
say > There is nothing about a cook in party.txt.
# how many words and how many lines
story.txt < one two / three
say > story.txt has 3 words and 2 lines.
# write all names in names.txt
names.txt < ada moss / ben
names.txt > Ada Moss / Ben
# number the lines of poem
poem.txt < a / b
poem.txt > 1. a / 2. b
# take the empty lines
draft.txt < a /  / b /    / c
draft.txt > a / b / c
# delete the line about Tuesday
plan.txt < Mon: swim / Tue: rest / Wed: run
plan.txt > Mon: swim / Wed: run
# her name is Wolf now
letter.txt < Dear Ms Fox, / bye, Ms Fox
letter.txt > Dear Ms Wolf, / bye, Ms Wolf
# put Eve into the list after
queue.txt < Ada / Ben / Jon
queue.txt > Ada / Ben / Eve / Jon
# pay rent is done
open.md < - call Ben / - pay rent
open.md > - call Ben
done.md < - shop
done.md > - shop / - pay rent
# what is still open in week.md
week.md < # Week / - [x] shop / - [ ] cook / - [ ] wash
say > Still open: cook, wash / 1 are done.
# list the headings of book
book.md < # Book / ## One / text / ## Two
toc.md > - Book / - One / - Two
# which hashtags
post.txt < great day #sun #sea / more #sun
say > The hashtags are: #sun, #sea
# what do all the things in shop.txt
shop.txt < Shop / tea 3.50 EUR / jam 2.80 EUR
say > Together they cost 6.30.
# of which part do we have
parts.txt < screw: 12 / nut: 7 / bolt: 30
say > We have the fewest of nut: 7.
# write the mail addresses of notes
notes.txt < call eve@x.example / Ada at ada@x.example or eve@x.example
mails.txt > ada@x.example / eve@x.example
# which links are in page.txt
page.txt < see https://a.example/x. and https://b.example / again https://b.example
links.md > - https://a.example/x / - https://b.example
say > The links are: https://a.example/x, https://b.example
# sort people.txt by first name
people.txt < Tim Bell / Ada Moss
people.txt > Ada Moss / Tim Bell
# sort the names in people.txt by the surname
people.txt < Ada Moss / Tim Bell / Eve Zorn / Ben Abel
top.txt > Ben Abel / Tim Bell / Ada Moss
# which lines are in new.txt
old.txt < a / b
new.txt < b / c
say > c
# which lines are in new.txt
old.txt < a / b
new.txt < b
say > All lines of new.txt are in old.txt too.
# is Yesterday in songs.txt
songs.txt < Help / Yesterday
say > Yes, at place 2.
# is Yesterday in songs.txt
songs.txt < Help
say > No, it is not in songs.txt.
# which are the three cheapest
cars.csv < model,year,price / Fox,2019,9900 / Owl,2001,12000 / Elk,2020,800 / Bee,2002,1000
say > Elk: 800 / Bee: 1000 / Fox: 9900
# Which car has the highest price
cars.csv < model,year,price / Fox,2019,9900 / Owl,2001,12000 / Elk,2020,800
say > Owl has the highest price, 12000, and Elk the lowest, 800.
# save the people of team B
staff.csv < name,team,pay / Ada,A,3000 / Ben,B,2500 / Eve,B,2600
b.csv > name,team,pay / Eve,B,2600
# how many people are in each team
staff.csv < name,team,pay / Ada,A,3000 / Ben,B,2500 / Eve,B,2600
say > A: 1 people, 3000.00 on average / B: 2 people, 2550.00 on average
# who has no mail address
list.csv < name,phone,mail / Ada,,a@x.example / Ben,1, / Eve,,
nomail.txt > Ben / Eve
say > 2 have none: Ben, Eve
# drop the column phone
list.csv < name,phone,mail / Ada,1,a@x.example
list.csv > name,mail / Ada,a@x.example
# rename the column mail
list.csv < name,mail / Ada,a@x.example
list.csv > name,email / Ada,a@x.example
# add a row to stock.csv
stock.csv < item,count / tea,4
stock.csv > item,count / tea,4 / jam,12
# raise all prices in stock.csv
stock.csv < item,count,price / tea,4,2.50 / jam,1,10
stock.csv > item,count,price / tea,4,2.75 / jam,1,11.00
# what is the whole stock worth
stock.csv < item,count,price / tea,4,2.50 / jam,1,0.30
stock.csv > item,count,price,value / tea,4,2.50,10 / jam,1,0.30,0.3
say > It is worth 10.30.
# how many km did I run
runs.csv < date,km / 2025-03-01,5.2 / 2025-03-09,4.1 / 2025-04-01,3
say > 2025-03: 9.3 / 2025-04: 3
# delete all entries before 2025
runs.csv < date,km / 2024-12-31,5.2 / 2025-01-01,4.1
runs.csv > date,km / 2025-01-01,4.1
# what percentage of the meals
meals.csv < meal,kind,minutes / soup,vegan,30 / stew,meat,60 / rice,vegan,20
say > 66.7 % of the meals are vegan.
# convert meals.csv to json
meals.csv < meal,kind,minutes / soup,vegan,30
meals.json > [ /   { /     "meal": "soup", /     "kind": "vegan", /     "minutes": 30 /   } / ]
# make a nice markdown table
meals.csv < meal,kind,minutes / soup,vegan,30
meals.md > | meal | kind | minutes | / | --- | --- | --- | / | soup | vegan | 30 |
# make a csv of the table in team
team.md < # Team / | Name | Role | / |---|---| / | Ada | lead |
team.csv > Name,Role / Ada,lead
# add the town of b.csv
a.csv < id,name / 1,Ada / 2,Ben
b.csv < id,town / 2,Oslo / 3,Bonn
a.csv > id,name,town / 1,Ada, / 2,Ben,Oslo
# set the width of the window
set.json < {"theme": "dark", "window": {"width": 800}}
set.json > { /   "theme": "light", /   "window": { /     "width": 1024 /   } / }
# how many cats are in pets
pets.json < [{"name": "Tom", "kind": "cat", "age": 4}, {"name": "Rex", "kind": "dog", "age": 9}, {"name": "Ivy", "kind": "cat", "age": 5}]
say > There are 2 cats, 4.5 years old on average.
# add the dog Rex
pets.json < []
pets.json > [ /   { /     "name": "Rex", /     "kind": "dog", /     "age": 2 /   } / ]
# whose birthday is next
births.csv < name,birthday / Ada,03-19 / Ben,11-25 / Eve,11-22
say > Ben is next, in 2 days.
# what is on in the next two weeks
terms.csv < what,date / dentist,2026-11-25 / gala,2026-12-08 / old,2026-11-22
say > 2026-11-25: dentist
# what is on in the next two weeks
terms.csv < what,date / gala,2026-12-08
say > Nothing is on in the next two weeks.
# which day of the week is the 24th
say > It is a Tuesday, in 1492 days.
# write the dates in trips.txt
trips.txt < 03/14/2025 Rome / 04/02/2025 Oslo, back 04/09/2025
trips.txt > 2025-03-14 Rome / 2025-04-02 Oslo, back 2025-04-09
# when was the first error in log.txt
log.txt < 2025-05-03 09:00:00 INFO a / 2025-05-03 10:00:00 ERROR disk / 2025-05-03 10:02:10 ERROR x / 2025-05-03 11:02:10 ERROR y
say > The first error: 2025-05-03 10:00:00 ERROR disk / 10:00: 2 / 11:00: 1
# how many files of each kind
a.txt < x
b.md < x
c/d.txt < x
say > 2 txt, 1 md
# which file is the biggest
a.txt < xxx
b.md < x
a.txt @ 2026-01-01
b.md @ 2026-02-01
say > a.txt is the biggest with 4 bytes, b.md was changed last.
# make a folder drafts
draft.md => drafts/draft.md
draft2.md => drafts/draft2.md
x.md < x
# call the pictures beach_1
IMG_1.jpg => beach_1.jpg
IMG_2.jpg => beach_2.jpg
# make a backup of report
report.md < x
report_old.md > x
# pack all md files
a.md < x
b.md < x
pic.png < x
notes.zip > *
# put all letters together
letters/a.txt < Hi
letters/b.txt < Bye
letters.md > # a.txt /  / Hi / # b.txt /  / Bye
# split all.md into
all.md < # One / text / ## Sub / # Two / more
One.md > # One / text / ## Sub
Two.md > # Two / more
# run tool.py with 5
tool.py < import sys / print(int(sys.argv[1]) * 2)
say > It prints: 10
# write a script fizz.py
fizz.py > for n in range(1, 16): /     print('fizz' if n % 3 == 0 else n)
say > I wrote fizz.py. It prints: 1 / 2 / fizz / 4 / 5 / fizz / 7 / 8 / fizz / 10 / 11 / fizz / 13 / 14 / fizz
# what is 15 percent of 240
say > 15 percent of 240 is 36, and what is left is 204.
# make a csv friends.csv
friends.csv > name,town / Ada,Rome / Ben,Oslo
# write an invitation to our garden
invite.txt > Dear friends, /  / You are invited to our garden party on 3 May at 4 pm. Please bring a cake. /  / We look forward to seeing you!
# make a packing list for a week
pack.md > - swimsuit / - towel / - sun cream / - hat / - sandals / - book / - toothbrush / - charger

# write at the bottom of diary.txt
diary.txt < 2025-03-01: snow
diary.txt > 2025-03-01: snow / 2026-11-23: it rained
# could you put the line 'Herbs
herbs.txt < mint / sage
herbs.txt > Herbs on the balcony / mint / sage
say > It is the first line of herbs.txt now.
# swap the first two lines
acts.txt < Magician / Clown / Band
acts.txt > Clown / Magician / Band
# indent every line
quote.txt < a /  / b
quote.txt >     a /  /     b
# everything on sign.txt
sign.txt < Wet paint / no entry
sign.txt > WET PAINT / NO ENTRY
# break the long lines of speech
speech.txt < This is a long line that goes on and on until it is longer than sixty. /  / short
speech.txt > This is a long line that goes on and on until it is longer / than sixty. /  / short
# is bio.txt short enough
bio.txt < I am a gardener.
say > Yes, it has 16 characters.
# is bio.txt short enough
bio.txt < 1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890xy
say > No, it has 162 characters, 2 too many.
# cut off the first line
export.txt < head / a / b / sum / end
export.txt > a / b
# get rid of the numbers
steps.txt < 1. open the box / 10) check 2. part / done
steps.txt > open the box / check 2. part / done
# turn the order of the lines
levels.txt < bronze / silver / gold
levels.txt > gold / silver / bronze
# make one line of colours
colours.txt < red / blue /  / green
colours_line.txt > red, blue, green
# in wish.txt all stands
wish.txt < kite, puzzle, drum
wish.txt > kite / puzzle / drum
# in manual.txt the buttons
manual.txt < Press Start. The Start key is green. / Stop or Menu
manual.txt > Press Go. The Go key is green. / Halt or Home
# a poem comes before
show.txt < Opening / Song / Speech
show.txt > Opening / Song / Poem / Speech
say > The order is: Opening, Song, Poem, Speech
# which five words
essay.txt < The a a a a a b b b b c c c d d the / e
say > a: 5 times / b: 4 times / c: 3 times / the: 2 times / d: 2 times
# are there lines in guestbook
guestbook.txt < Ida: lovely place / Jon: ok / Ida: lovely place
say > Ida: lovely place (2 times)
# are there lines in guestbook
guestbook.txt < Ida: lovely place / Jon: ok /  /  / Eve: hi
say > No line stands there twice.
# a new week: clear
routine.md < - [x] dishes / - [ ] windows / - [x] floor
routine.md > - [ ] dishes / - [ ] windows / - [ ] floor
# the shirts are not packed
luggage.md < - [x] shirts / - [x] socks
luggage.md > - [ ] shirts / - [x] socks
# throw everything that is ticked
chores.md < - [x] dishes / - [ ] windows / - [x] floor
chores.md > - [ ] windows
# how far am I with the checklist
move.md < # Move / - [x] find boxes / - [ ] cancel power /   - [x] tape / - [x] van
say > 3 of 4 are done, 75 percent.
# move 'learn to sail'
ideas.md < # Ideas / ## Later / - learn to sail / - read /  / ## Now / - paint the door
ideas.md > # Ideas / ## Later / - read /  / ## Now / - paint the door / - learn to sail
# remove the whole section Costs
concept.md < # Concept / ## Goals / - quick /  / ## Costs / 12 / ### More / 13 /  / ## Time / May
concept.md > # Concept / ## Goals / - quick /  / ## Time / May
# what does the section Alarm
handbook.md < # Handbook / ## Keys / text / ## Alarm / Dial 5. / ## End
say > ## Alarm / Dial 5.
# what does the section Alarm
handbook.md < # Handbook / Alarm
say > handbook.md has no section Alarm.
# add a new section Cold
drinks.md < # Drinks / ## Hot / - tea
drinks.md > # Drinks / ## Hot / - tea /  / ## Cold / - water / - juice
# push all headings of guide
guide.md < # Guide / text / ## First day
guide.md > ## Guide / text / ### First day
# which links are in the markdown
reading.md < - [Moss](https://moss.example/a) / - [x] [Two words](b.md), x
say > Moss: https://moss.example/a / Two words: b.md
# which links are in the markdown
reading.md < - [x] nothing (yet)
say > There is no link in reading.md.
# add Ivo as a driver
team.md < # Team / | Name | Role | / |---|---| / | Ada | lead |
team.md > # Team / | Name | Role | / |---|---| / | Ada | lead | / | Ivo | driver |
# make me a checklist crew.md
crew.csv < name,role / Ada,cook / Ben,pilot
crew.md > - [ ] Ada / - [ ] Ben
# show me the lamps between
lamps.csv < model,watt,price / Sol,8,19.90 / Lux,5,50 / Ray,9, / Max,9,120
say > Lux: 50
# show me the lamps between
lamps.csv < model,watt,price / Sol,8,19.90
say > No lamp costs between 20 and 50.
# copy the visits from 1 June
visits.csv < date,who / 2025-05-31,Ida / 2025-06-01,Jon / 2025-06-15,Eve / 2025-06-16,Max
june.csv > date,who / 2025-06-01,Jon / 2025-06-15,Eve
# all titles with the word night
shelf.csv < title,author,pages / Night Train,A. Moss,210 / Day,B. Lee,501 / Dusk,C. Ray,500
pick.csv > title,author,pages / Night Train,A. Moss,210 / Day,B. Lee,501
# which rows of forms.csv
forms.csv < name,town,signed / Ida,Bonn, / Jon,Kiel,yes / Eve,,yes
say > Something is missing for: Ida, Eve
# which rows of forms.csv
forms.csv < name,town,signed / Jon,Kiel,yes
say > No cell is empty.
# give me a file tall.csv
plants.csv < plant,height / fern,40 / palm,200 / moss,1 / a,2 / b,3 / c,4 / d,5 / e,6 / f,7 / g,8 / h,9
tall.csv > plant,height / palm,200 / fern,40 / h,9 / g,8 / f,7 / e,6 / d,5 / c,4 / b,3 / a,2
# order members.csv by town
members.csv < name,town / Jon,Kiel / Eve,bonn / Ada,Bonn
members.csv > name,town / Ada,Bonn / Eve,bonn / Jon,Kiel
# people signed up twice
signup.csv < mail,name,date / a@x.example,Ida,2025-01-02 / b@x.example,Jon,2025-01-03 / a@x.example,Ida M,2025-01-04
signup.csv > mail,name,date / b@x.example,Jon,2025-01-03 / a@x.example,Ida M,2025-01-04
# which people of spring.csv
spring.csv < id,name / 7,Ida / 8,Jon
autumn.csv < id,name / 8,Jon / 9,Eve
say > Gone are: Ida
# which people of spring.csv
spring.csv < id,name / 8,Jon
autumn.csv < id,name / 8,Jon
say > All of them are still there.
# Ida has left us
active.csv < name,phone / Ida,040 1 / Eve,040 3
former.csv < name,phone / Jon,040 2
active.csv > name,phone / Eve,040 3
former.csv > name,phone / Jon,040 2 / Ida,040 1
# count the votes
votes.csv < voter,choice / Ida,blue / Jon,red / Eve,red
say > red: 2 / blue: 1
# do we have a ladder
tools.csv < tool,place / saw,shed / Long ladder,attic
say > Yes, Long ladder: attic.
# do we have a ladder
tools.csv < tool,place / saw,shed
say > No, there is no ladder in tools.csv.
# put first and last name together
staff.csv < first,last,desk / Ida,Moss,4
staff.csv > first,last,desk,name / Ida,Moss,4,Ida Moss
# split the column pilot
pilots.csv < pilot,hours / Ida Moss,120 / Jon van Lee,7
pilots.csv > first,last,hours / Ida,Moss,120 / Jon,van Lee,7
# add a column balance
account.csv < date,what,amount / 2025-01-02,gift,50.00 / 2025-01-03,ink,-4.20
account.csv > date,what,amount,balance / 2025-01-02,gift,50.00,50.00 / 2025-01-03,ink,-4.20,45.80
# what share of all
energy.csv < device,kwh / oven,30 / lamp,15
energy.csv > device,kwh,percent / oven,30,66.7 / lamp,15,33.3
say > The oven has the largest share, 66.7 percent.
# reorder the columns of parcel
parcel.csv < weight,id,to / 2.5,7,Rome
parcel.csv > id,to,weight / 7,Rome,2.5
# give each row of entries
entries.csv < title,year / Dawn,2019 / Dusk,2020
entries.csv > nr,title,year / 1,Dawn,2019 / 2,Dusk,2020
# where the town is empty
contacts.csv < name,town / Ida, / Jon,Kiel
contacts.csv > name,town / Ida,unknown / Jon,Kiel
# invoice R-12 has been paid
invoices.csv < nr,client,state / R-7,Moss,open / R-12,Lee,open
invoices.csv > nr,client,state / R-7,Moss,open / R-12,Lee,paid
# invoice R-12 has been paid
invoices.csv < nr,client,state / R-7,Moss,open
# round the degrees
readings.csv < hour,degrees / 6,17.46 / 7,18.6
readings.csv > hour,degrees / 6,17 / 7,19
# what is the sum of kasse.csv
kasse.csv < Posten;Betrag / Brot;3,50 € / Milch;1,20 €
say > 4,70 €
# new column passed
points.csv < name,points / Ida,54 / Jon,50 / Eve,9
points.csv > name,points,passed / Ida,54,yes / Jon,50,yes / Eve,9,no
say > 2 of 3 passed.
# add the day of the week
rota.csv < date,who / 2025-06-03,Ida
rota.csv > date,who,weekday / 2025-06-03,Ida,Tuesday
# work out the hours
shifts.csv < who,from,to / Ida,8:30,12:00 / Jon,22:00,6:00
shifts.csv > who,from,to,hours / Ida,8:30,12:00,3.5 / Jon,22:00,6:00,8

# lowest and highest rent
flats.csv < town,rent / Bonn,700 / Kiel,500 / Bonn,1200
say > Bonn: 700 to 1200 / Kiel: 500 to 500
# write the average of each group
jumps.csv < group,metres / A,3.4 / B,2 / A,3.5
average.csv > group,average / A,3.45 / B,2.00
# what is the median
calls.csv < date,minutes / 2025-06-03,12 / 2025-06-10,100 / 2025-06-04,3
say > The median is 12. Most calls, 2, are on a Tuesday.
# bank.txt has no header
bank.txt < 2025-01-02,gift,50.00 / 2025-01-03,ink,-4.20 / 2025-01-04,"pen, red",1
say > The third column adds up to 46.80.
# the header is missing in sensor
sensor.csv < 08:00,17.4,61 / 08:10,17.6,60
sensor.csv > time,degrees,humidity / 08:00,17.4,61 / 08:10,17.6,60
# export.csv has semicolons
export.csv < Name;Ort / Ida;Bonn
comma.csv > Name,Ort / Ida,Bonn
# make a csv out of birds.tsv
birds.tsv < bird	seen / wren	4
birds.csv > bird,seen / wren,4
# what is the total over all csv
sums/jan.csv < what,amount / ink,4.50 / pen,1
sums/feb.csv < what,amount / ink,3
say > feb.csv: 3.00 / jan.csv: 5.50 / All together: 8.50
# compare last.csv with
last.csv < item,price / tea,3.50 / jam,2
this.csv < item,price / tea,3.90 / jam,2 / oil,9
say > tea: 3.50 before, 3.90 now
# compare last.csv with
last.csv < item,price / jam,2
this.csv < item,price / jam,2
say > No price has changed.
# a text file for every person
winners.csv < name,prize / Ida,lamp / Jon,bag
Ida.txt > Dear Ida, you have won a lamp.
Jon.txt > Dear Jon, you have won a bag.
# I may spend 400
spending.csv < date,amount / 2026-11-03,12.50 / 2026-10-30,100 / 2026-11-20,20
say > You spent 32.50 this month, 367.50 is left.
# how many people are in each course
courses.json < {"courses": [{"name": "Sewing", "people": ["Ida", "Jon"]}, {"name": "Chess", "people": ["Ida"]}]}
say > Sewing: 2 people / Chess: 1 people / In more than one: Ida
# how many people are in each course
courses.json < {"courses": [{"name": "Sewing", "people": ["Ida"]}]}
say > Sewing: 1 people / In more than one: nobody
# delete the film Dawn
films.json < [{"title": "Dawn", "seen": true}, {"title": "Dusk", "seen": false}]
films.json > [ /   { /     "title": "Dusk", /     "seen": false /   } / ]
# pancakes need eggs
recipes.json < {"pancakes": {"minutes": 20, "needs": ["flour"]}}
recipes.json > { /   "pancakes": { /     "minutes": 20, /     "needs": [ /       "flour", /       "eggs" /     ] /   } / }
say > Needed: flour, eggs
# the value of each order
orders.json < {"orders": [{"id": 4, "lines": [{"item": "tea", "count": 2, "price": 3.5}, {"item": "jam", "count": 1, "price": 2}]}, {"id": 5, "lines": []}]}
say > Order 4: 9.00 / Order 5: 0.00
# which keys are in config.json
config.json < {"lang": "en", "sound": {"on": true, "volume": 7}}
say > The keys are: lang, sound / There is no proxy.
# turn scores.csv into
scores.csv < team,points / Reds,12 / Blues,7.5
scores.json > { /   "Reds": 12, /   "Blues": 7.5 / }
# which port does server.ini
server.ini < [server] / port = 8080 / debug = true
say > The port is 8080, debug is true.
# turn repeat on in player
player.yaml < volume: 5 / repeat: off
player.yaml > volume: 7 / repeat: on
# the section [window]
window.ini < [window] / width = 800 / [colours]
window.ini > [window] / title = Home / width = 800 / [colours]
# in which settings do
home.conf < host = a.example / port = 80 / user = ida
work.conf < host = b.example / port = 80
say > host: a.example and b.example / user: ida and nothing
# in which settings do
home.conf < port = 80
work.conf < port = 80
say > They have the same settings.
# how many INFO, WARN
app.log < 2025-05-03 10:00:00 INFO start / 2025-05-03 10:02:10 WARN slow / 2025-05-03 10:02:11 WARN slow
say > INFO: 1 / WARN: 2 / ERROR: 0
# how many different ip
access.log < 10.0.0.7 GET /home 200 31ms / 10.0.0.9 GET /cart 500 90ms / 10.0.0.9 GET /home 200 120ms
say > 2 addresses, most often 10.0.0.9, 2 times.
# which was the slowest request
access.log < 10.0.0.7 GET /home 200 31ms / 10.0.0.9 GET /home 200 120ms / started / 10.0.0.9 GET /cart 500 90ms
say > The slowest was: 10.0.0.9 GET /home 200 120ms
# put the errors of 3 May
backup.log < 2025-05-03 02:00:00 ERROR disk full / 2025-05-03 02:10:00 INFO end / 2025-05-04 02:00:00 ERROR done
errors.txt > 2025-05-03 02:00:00 ERROR disk full
# put the errors of 3 May
backup.log < 2025-05-04 02:00:00 ERROR done
# who came in last
door.log < 2025-05-03 07:55 Ida in / 2025-05-03 08:02 Jon in / 2025-05-04 08:10 Jon in / 2025-05-04 09:00 Jon out
say > Last: 2025-05-04 08:10 Jon in / 2025-05-03: first 07:55 / 2025-05-04: first 08:10
# how many days are between
say > 84 days are between them.
# what date is it in 100
say > In 100 days it is 2027-03-03, in six weeks 2027-01-04.
# how old is each child
kids.csv < name,born / Ida,2015-08-19 / Jon,2018-11-24 / Eve,2020-11-23
kids.csv > name,born,age / Ida,2015-08-19,11 / Jon,2018-11-24,7 / Eve,2020-11-23,6
say > Ida is 11, Jon is 7, Eve is 6
# what in food.csv is older
food.csv < item,bought / rice,2026-08-19 / milk,2026-11-20 / oil,2026-10-24
say > Older than 30 days: rice
# what in food.csv is older
food.csv < item,bought / milk,2026-11-20
say > Nothing is older than 30 days.
# what comes next in events
events.txt < 3.1.2027 skiing / 24.12.2026 carols / 1.2.2026 fair
past.txt > 1.2.2026 fair
events.txt > 3.1.2027 skiing / 24.12.2026 carols
say > Next: 24.12.2026 carols
# the fees of last year
fees.csv < date,fee / 3.5.2025,20 / 3.5.2026,30 / 31.12.2025,1.5
say > In 2025 it was 21.50.
# all lessons in lessons.csv
lessons.csv < date,topic / 2025-05-03,verbs / 2025-12-20,nouns
lessons.csv > date,topic / 17.05.2025,verbs / 03.01.2026,nouns
# which dates in fairs.txt
fairs.txt < Fairs / 2025-05-03 book fair / 2025-05-05 art fair
say > 2025-05-03 book fair
# which dates in fairs.txt
fairs.txt < 2025-05-05 art fair
say > None of them is on a weekend.
# are there phone numbers
letters.txt < Call me, 0171 555 0100 / or 030 555 0101, in 2025
phones.txt > 0171 555 0100 / 030 555 0101
say > I found 2.
# are there phone numbers
letters.txt < since 2025
say > There is no phone number in letters.txt.
# collect the codes like
parts.txt < we need KX-2041 and a KX-77 / AB-3, a-4, KX-77
codes.txt > AB-3 / KX-2041 / KX-77
# who takes part in chat
chat.txt < Ida: hello / Jon: hi: you /  / Ida: ok
say > Ida: 2 lines / Jon: 1 lines
# at which times does
fest.txt < band from 8 pm / doors open at 18:30, tea at 9:00 / again 18:30
say > The times are: 09:00, 18:30, 20:00
# at which times does
fest.txt < no idea
say > There is no time in fest.txt.
# which prices with $
offer.txt < paint $12.50, brushes $7 / 30 days
say > There are 2 prices, the highest is $12.50.
# which prices with $
offer.txt < 30 days
say > There is no price in offer.txt.

# number the pictures in trip
trip/DSC10.jpg => trip/alps_01.jpg
trip/DSC9.jpg => trip/alps_02.jpg
# change the ending .jpeg
x.jpeg => x.jpg
y.jpeg => y.jpg
z.jpg < x
# put the date when each text
memo.txt => 2025-03-01_memo.txt
memo.txt @ 2025-03-01
plan.txt => 2026-01-31_plan.txt
plan.txt @ 2026-01-31
# sort everything in inbox
inbox/a.txt => inbox/txt/a.txt
inbox/b.png => inbox/png/b.png
inbox/c.txt => inbox/txt/c.txt
x.txt < x
# move all files over 1 MB
c.txt < small
# which files have not been changed
old.txt => attic/old.txt
old.txt @ 2025-11-01
new.txt < x
new.txt @ 2025-12-01
say > I moved: old.txt
# which files have not been changed
new.txt < x
new.txt @ 2025-12-01
say > All files were changed within a year.
# are there empty files
a.txt < x
b.txt <
say > Empty: b.txt
# are there empty files
a.txt < x
say > No file is empty.
# how many folders do I have
a.txt < x
home/b.txt < x
home/bills/c.pdf < x
say > There are 2 folders. / home: 2 files / home/bills: 1 files
# copy all md files of docs
docs/a.md < a
docs/b.md < b
docs/c.pdf < c
share/a.md > a
share/b.md > b
# zip the whole folder
photos/a.jpg < a
photos/b.jpg < b
photos.zip > *
# move the texts in which
in/a secret.txt => private/a secret.txt
in/secret.txt < nothing
in/the Secret.txt => private/the Secret.txt
say > I moved 2 files: in/a secret.txt, in/the Secret.txt
# are v1.txt and v2.txt the same
v1.txt < a / b / c
v2.txt < a / x / c
say > First they differ here: b | x
# are v1.txt and v2.txt the same
v1.txt < a
v2.txt < a
say > They are the same.
# are v1.txt and v2.txt the same
v1.txt < a
v2.txt < a / b
say > One of them is longer.
# split names.txt into files
names.txt < 1 / 2 / 3
names_1.txt > 1 / 2 / 3
# show me the first line of every
poems/a.txt < Moon / x
poems/b.txt < Sun
say > a.txt: Moon / b.txt: Sun
# write the line 'Made by Ida'
site/a.md < # A
site/b.md < text
x.md < x
site/a.md > # A / Made by Ida
site/b.md > text / Made by Ida
# how often does the word lake
a.txt < The Lake, a lake / lakes
b.txt < sea
say > a.txt: 2 times / b.txt: 0 times
# make folders for the four
# is there a file budget.ods
a.pdf < x
b/Budget.ods < x
say > Yes: b/Budget.ods
# is there a file budget.ods
a.pdf < x
say > No, there is no budget.ods.
# find files that have the same
a.txt < x
b/copy.txt < x
c.txt < y
say > b/copy.txt is the same as a.txt.
# find files that have the same
a.txt < x
c.txt < y
say > No two texts are the same.
# write a python script area.py
area.py > import sys /  / width, height = float(sys.argv[1]), float(sys.argv[2]) / print(width * height)
say > I wrote area.py. For 3 and 4 it prints: 12.0
# I need a script words.py
tale.txt < once upon / a time
words.py > import sys /  / text = open(sys.argv[1]).read() / print(len(text.split()))
say > words.py counts this for tale.txt: 4
# make a file temp.py
temp.py > def to_celsius(f): /     return (f - 32) * 5 // 9
say > 212 F are 100.0 C.
# which functions are defined
lib/a.py < def one(): /     pass / class A: /     def two(self): ...
lib/b.py < x = 1
say > lib/a.py: one, two / lib/b.py: none
# rename the function get_all
lib/a.py < def get_all(): /     pass
lib/b.py < from a import get_all
lib/c.py < x = 1
lib/a.py > def load_all(): /     pass
lib/b.py > from a import load_all
# write a mail to Ms Brook
mail.txt > Dear Ms Brook, /  / the parcel arrived damaged. Please send me a new one. /  / Kind regards / Ida Moss
# a poem of four lines
autumn.txt > The leaves turn red, the leaves turn gold, / The mornings now are grey and cold, / The wind sings in the apple tree, / A cup of tea, and you with me.
# an agenda for the meeting
agenda.md > # Agenda for Friday /  / 1. Budget / 2. Summer party / 3. Any other business
# write a short README.md
main.py < x
data.csv < a,b / 1,2
README.md > # Readme /  / These files are here: /  / - data.csv / - main.py
# a table for the week as week.csv
week.csv > day,task / Monday, / Tuesday, / Wednesday, / Thursday, / Friday, / Saturday, / Sunday,
# average of 7, 9.5
say > The average is 8.12.
# convert 5 feet 11
say > That is 180.3 cm.
# a coat was 80
say > It is 22.5 percent less. With tax 62 becomes 73.78.
# we were 5 people
say > With the tip it is 152.35, each pays 30.47.
# I work from 8:45
say > 7 hours and 45 minutes.
# who in crew.txt has no mail
crew.txt < Ada, 1, a@x.example / Ben, 2,  / Cid, 3
nomail.txt > Ben / Cid
say > 2 have none: Ben, Cid
# sort scores.txt by the points
scores.txt < Ada, 9 / Ben, 12
scores.txt > Ben, 12 / Ada, 9
say > Ben wins with 12.
# what is the total of all the open bills
bills.csv < who,amount,state / Kim,80.00,paid / Ben,12.50,open / Ida,7.50,open
say > The total of the open bills is 20.00.
# sort spent.csv by the sum
spent.csv < what,sum / tea,9 / rent,800 / jam,12
spent.csv > what,sum / rent,800 / jam,12 / tea,9
# some lines are in log.txt twice
log.txt < b / a / b
log.txt > b / a
# write into my diary that it snowed
diary.md < # Diary / Slept long.
diary.md > # Diary / Slept long. / It snowed and I met Kim.
# parts.csv has several rows for each code
parts.csv < code,price / A1,2 / B1,3 / A1,4
parts.csv > code,price / B1,3 / A1,4
""")


@pytest.mark.parametrize("case", CASES, ids=lambda each: each.asked)
def test_a_program_does_what_is_asked(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = (each for each in EXAMPLES if each.asked.startswith(case.asked))
    fill(case.before)
    for path, day in case.days.items():
        at = datetime.fromisoformat(f"{day}T12:00").timestamp()
        os.utime(path, (at, at))
    before = texts()
    came = run(example.program)
    assert (came.failed, came.stopped, came.said) == ("", "", case.said)
    left = {
        path: "*\n" if path in case.after and case.after[path] == "*\n" else text for path, text in came.files.items()
    }
    kept = {path: text for path, text in before.items() if path not in case.gone}
    assert left == kept | case.after


def test_what_is_long_or_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    split, large = (
        next(e for e in EXAMPLES if e.asked.startswith(s)) for s in ("split names.txt", "move all files over")
    )
    lines = [str(n) for n in range(1, 121)]
    came = run(split.program, {"names.txt": "\n".join(lines) + "\n", "a.mov": b"0" * 1_200_000})
    assert [came.files[f"names_{n}.txt"].split() for n in (1, 2, 3)] == [lines[:50], lines[50:100], lines[100:]]
    came = run(large.program)
    assert {path for path in came.files if ".mov" in path} == {"big/a.mov"}


def test_each_program_is_run() -> None:
    assert [each.asked for each in EXAMPLES if not any(each.asked.startswith(case.asked) for case in CASES)] == []
