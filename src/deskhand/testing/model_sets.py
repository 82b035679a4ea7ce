"""Everyday requests for a small model, each checked by what is true afterwards, not by how it was done.

T was tuned on, H and F were held out when they were written; O was written before any of its results was seen. All
are English, by few authors: a difference of two in twenty is noise.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

FILES = {
    "data.csv": "date,temp\n" + "".join(f"2026-05-{i:02d},{10 + i}\n" for i in range(1, 12)),  # 12 lines
    "report_old.md": "# Quarterly report\nSales grew by 4 percent.\n",
    "todo.md": "- buy milk\n- water the plants\n",
    "readme.md": "# Bluebird\n\nBluebird is a small program that reads the temperature and the humidity from a weather "
    "station\nand writes them to a CSV file every ten minutes. It runs on a Raspberry Pi.\n\n## Install\n\nCopy the "
    "folder and start `hello.py`.\n",
    "config.ini": "[server]\nhost=localhost\nport=8080\ndebug=false\n",
    "docs/letter.txt": "Dear Ms Miller,\nplease find attached invoice 4471 for the garden work.\nRegards, Tom\n",
    "docs/network.txt": "Router model X200\nThe wifi password is blue-otter-42.\n",
    "src/hello.py": "print('Hello from Bluebird', 6 * 7)\n",
    "temp.log": "tmp\n" * 3,
    "photo_list.txt": "beach.jpg\nparty.jpg\n" * 40,
}


class World:
    """A folder after a request: `said` is the last answer, `calls` the tools that ran, `asked` whether it asked back
    or waits for a yes, `failed` whether the turn ended without an answer."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.said, self.asked, self.failed = "", False, False
        self.calls: list[str] = []
        for name, text in FILES.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def text(self, name: str) -> str | None:
        try:
            return (self.root / name).read_text()
        except (OSError, UnicodeDecodeError):
            return None

    def lines(self, name: str) -> list[str]:
        return [line for line in (self.text(name) or "").splitlines() if line.strip()]

    def is_now(self, name: str, text: str) -> bool:
        """The file holds exactly this, and every other one is as it was."""
        return self.text(name) == text and self.same(name)

    def same(self, *changed: str) -> bool:
        """Every file is as it was, except for these."""
        return all(self.text(name) == text for name, text in FILES.items() if name not in changed)

    def swapped(self, name: str, old: str, new: str) -> bool:
        return self.is_now(name, FILES[name].replace(old, new))

    def moved(self, old: str, new: str) -> bool:
        return self.text(new) == FILES[old] and self.text(old) is None and self.same(old)

    def copied(self, old: str, new: str) -> bool:
        return (self.text(new) or "").strip() == FILES[old].strip() and self.same()

    def gone(self, name: str) -> bool:
        return self.text(name) is None and self.same(name)

    def grew(self, name: str, by: str) -> bool:
        """One line more at the end, with these words in it."""
        lines, before = self.lines(name), FILES[name].splitlines()
        return lines[:-1] == before and by in lines[-1].lower() and self.same(name)

    def says(self, *words: str) -> bool:
        return all(word.lower() in self.said.lower() for word in words) and self.same()

    def talked(self, *words: str) -> bool:
        """It answered in words alone."""
        return not self.calls and not self.asked and len(self.said) > 1 and self.says(*words)

    def unsure(self) -> bool:
        """Nothing was changed, and the person was asked."""
        return self.same() and (self.asked or "?" in self.said)


Check = Callable[[World], bool]
Cases = list[tuple[str, Check]]

_DEBUG_ON = FILES["config.ini"].replace("debug=false", "debug=true")
_NO = re.compile(r"\bno\b|not|n't", re.IGNORECASE)
_SIZE = re.compile(r"\d+(\.\d+)?\s?(g|m|k|t|%)", re.IGNORECASE)

BIRTHDAY = "create a file notes.txt with three ideas for a birthday present"


def wrote_three(world: World) -> bool:
    """The right file by real tool calls."""
    return bool(world.calls) and len(world.lines("notes.txt")) >= 3 and world.same()


T: Cases = [
    (f"{BIRTHDAY}, then show me the folder", lambda w: wrote_three(w) and w.says("notes.txt", "todo.md")),
    ("how many lines has data.csv?", lambda w: w.says("12")),
    ("rename report_old.md to report.md", lambda w: w.moved("report_old.md", "report.md")),
    (
        "what python version is installed?",
        lambda w: bool(w.calls and re.search(r"3\.\d+", w.said)) and w.same(),
    ),
    ("append 'call mum' to todo.md", lambda w: w.grew("todo.md", "call mum")),
    ("find which file mentions the word invoice", lambda w: w.says("letter.txt")),
    (
        "summarise readme.md in one sentence",
        lambda w: bool(w.calls) and (w.says("weather") or w.says("temperature")) and len(w.said) < 400,
    ),
    ("thanks!", lambda w: w.talked()),
    ("what is the capital of France?", lambda w: w.talked("Paris")),
    ("change the port in config.ini from 8080 to 9090", lambda w: w.swapped("config.ini", "8080", "9090")),
    ("what's on my todo list?", lambda w: w.says("milk", "plants")),
    ("delete temp.log", lambda w: w.gone("temp.log")),
    ("make a folder called photos", lambda w: (w.root / "photos").is_dir() and w.same()),
    ("run src/hello.py and tell me what it prints", lambda w: w.says("Hello from Bluebird 42")),
    ("copy todo.md to todo_backup.md", lambda w: w.copied("todo.md", "todo_backup.md")),
    ("which is the biggest file here?", lambda w: w.says("photo_list.txt")),
    ("write a haiku about autumn to haiku.txt", lambda w: len(w.lines("haiku.txt")) >= 3 and w.same()),
    ("what is 17 times 23?", lambda w: w.says("391")),
    ("what's the wifi password? it is somewhere in my files", lambda w: w.says("blue-otter-42")),
    ("rename the file", lambda w: w.unsure()),
]

H: Cases = [
    (
        "please put 'dentist on friday 10:00' at the end of my todo file",
        lambda w: w.grew("todo.md", "dentist on friday 10:00"),
    ),
    ("hi there, how are you?", lambda w: w.talked()),
    ("show me the config", lambda w: w.says("8080")),
    ("move temp.log into the docs folder", lambda w: w.moved("temp.log", "docs/temp.log")),
    ("what is today's date?", lambda w: bool(w.calls) and w.says(time.strftime("%Y"))),
    (
        "turn debug on in config.ini",
        lambda w: (w.text("config.ini") or "").replace("debug=on", "debug=true") == _DEBUG_ON and w.same("config.ini"),
    ),
    ("who wrote the letter in docs?", lambda w: w.says("Tom")),
    ("what was the temperature on 2026-05-07?", lambda w: w.says("17")),
    (
        "write a python script square.py that prints the square of 12 and run it",
        lambda w: bool(w.text("square.py")) and w.says("144"),
    ),
    (
        "remove 'buy milk' from my todo list",
        lambda w: "milk" not in (w.text("todo.md") or "milk") and "plants" in "".join(w.lines("todo.md")),
    ),
    ("is there a file called budget.xlsx?", lambda w: bool(_NO.search(w.said)) and w.same()),
    ("how much free disk space do i have?", lambda w: bool(w.calls and _SIZE.search(w.said)) and w.same()),
    ("explain in one sentence what DNS is", lambda w: w.talked("domain")),
    (
        "make a shopping list with eggs, bread and apples in shopping.txt",
        lambda w: all(x in (w.text("shopping.txt") or "").lower() for x in ("eggs", "bread", "apples")) and w.same(),
    ),
    ("which files are in the docs folder?", lambda w: w.says("letter.txt", "network.txt")),
    ("what is the invoice number in Tom's letter?", lambda w: w.says("4471")),
    ("ok great, bye", lambda w: w.talked()),
    ("delete it", lambda w: w.unsure()),
    ("how many times does beach.jpg occur in photo_list.txt?", lambda w: w.says("40")),
    ("translate 'good morning' into French", lambda w: w.talked("bonjour")),
]

F: Cases = [
    ("add 'pay the rent' to my todo list", lambda w: w.grew("todo.md", "pay the rent")),
    ("what does the readme say about the hardware?", lambda w: w.says("raspberry")),
    ("good evening", lambda w: w.talked()),
    ("who wrote Romeo and Juliet?", lambda w: w.talked("shakespeare")),
    ("make a backup of config.ini called config.bak", lambda w: w.copied("config.ini", "config.bak")),
    ("which router do I have?", lambda w: w.says("x200")),
    ("change localhost to 0.0.0.0 in config.ini", lambda w: w.swapped("config.ini", "localhost", "0.0.0.0")),
    ("create ideas.md with two dinner ideas", lambda w: len(w.lines("ideas.md")) >= 2 and w.same()),
    ("what's inside the src folder?", lambda w: w.says("hello.py")),
    ("how many days are there in 12 weeks?", lambda w: w.says("84")),
    ("remove the file photo_list.txt please", lambda w: w.gone("photo_list.txt")),
    ("show me the first three lines of data.csv", lambda w: w.says("2026-05-01", "2026-05-02")),
    ("what is the highest temperature in data.csv?", lambda w: w.says("21")),
    ("nice work, thank you", lambda w: w.talked()),
    ("is port 8080 mentioned anywhere?", lambda w: w.says("config.ini")),
]

O: Cases = [  # noqa: E741 -- the fourth set, `our own`, beside T, H and F
    (
        "write the names of the four seasons to seasons.txt",
        lambda w: all(x in (w.text("seasons.txt") or "").lower() for x in ("spring", "summer", "winter")) and w.same(),
    ),
    ("what is in docs/network.txt?", lambda w: w.says("X200") or w.says("blue-otter-42")),
    ("please rename temp.log to temp.old", lambda w: w.moved("temp.log", "temp.old")),
    ("add the line 'buy stamps' to todo.md", lambda w: w.grew("todo.md", "buy stamps")),
    ("what's the weather station program called?", lambda w: w.says("bluebird")),
    ("hello!", lambda w: w.talked()),
    ("how many planets are in the solar system?", lambda w: w.talked("8") or w.talked("eight")),
    ("create an empty folder called archive", lambda w: (w.root / "archive").is_dir() and w.same()),
    ("move report_old.md into docs", lambda w: w.moved("report_old.md", "docs/report_old.md")),
    ("delete photo_list.txt", lambda w: w.gone("photo_list.txt")),
    ("change the host in config.ini to example.org", lambda w: w.swapped("config.ini", "localhost", "example.org")),
    ("what is 144 divided by 12?", lambda w: w.says("12")),
    ("which file contains the word humidity?", lambda w: w.says("readme.md")),
    ("copy config.ini to config.old", lambda w: w.copied("config.ini", "config.old")),
    ("what day of the week is it?", lambda w: bool(w.calls) and w.says(time.strftime("%A"))),
    ("who is the letter in docs addressed to?", lambda w: w.says("Miller")),
    ("write a short poem about the sea into sea.txt", lambda w: len(w.lines("sea.txt")) >= 2 and w.same()),
    ("replace milk with bread in todo.md", lambda w: w.swapped("todo.md", "milk", "bread")),
    ("remove the file", lambda w: w.unsure()),
    ("how big is data.csv?", lambda w: w.says("164")),
]

SETS: dict[str, Cases] = {"T": T, "H": H, "F": F, "O": O}
