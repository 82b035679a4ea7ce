"""Definitions and uses of names, in several languages and in files that were written against us."""

from __future__ import annotations

import pytest

from deskhand.tools.folders import MAX_HITS, MAX_SEARCH_FILE_BYTES
from deskhand.tools.languages import detect_language, find_definitions
from deskhand.tools.symbols import find_references, list_symbols
from deskhand.types.errors import OutsideWorkspace, ToolError

from .conftest import Hands

PYTHON = '''"""No def in_text(): here."""
import os.path as where
LIMIT, other = 3, 4
TOP: int = 5

class Shop:
    name = "x"

    def buy(self, item):  # buy
        return self.buy(item) + LIMIT

    class Inner:
        async def deep(self): ...

@decorated
def buy(item):
    local = "buy"
    return Shop().buy(where)

try:
    import fast
except ImportError:
    def fast(): ...
'''

SOURCES = {
    "a.py": (
        PYTHON,
        (
            "4 TOP var, 6 Shop class, 7 Shop.name var, 9 Shop.buy method, 12 Shop.Inner class, "
            "13 Shop.Inner.deep method, 16 buy def, 23 fast def"
        ),
    ),
    "broken.py": ("class A:\n    def b(:\n", "1 A class, 2 b def"),
    "a.c": (
        (
            "#define MAX(a) a\nstruct node {\n  int x;\n};\nstatic int *find(struct node *n)\n{\n"
            "  if (n) {\n    go(n);\n"
            "  }\n  return find(n);\n}\nint declared(void);\nenum colour { RED };\n/* int "
            "no(void) { */\n"
        ),
        "1 MAX define, 2 node struct, 5 find function, 13 colour enum",
    ),
    "a.cpp": (
        (
            "namespace shop {\nclass Cart : public Base {\n};\nvoid Cart::add(const Item& "
            "item) {\n}\n"
            "std::vector<int> all() {\n}\n"
        ),
        "1 shop namespace, 2 Cart class, 4 add function, 6 all function",
    ),
    "a.ts": (
        (
            "export default class Cart {\n  private items: Item[] = [];\n  async add(item: "
            "Item): Promise<void> {\n"
            "    if (item) {\n      this.push(item);\n    }\n  }\n}\nexport const total = "
            "(c: Cart) => 1;\n"
            "export async function pay<T>(x: T) {}\ntype Price = number;\ninterface Item "
            "{}\n// function no() {}\n"
        ),
        (
            "1 Cart class, 3 add method, 9 total const, 10 pay function, 11 Price type, 12 Item "
            "interface"
        ),
    ),
    "a.go": (
        (
            "package main\ntype Cart struct {\n}\nfunc (c *Cart) Add(i Item) error "
            "{\n\treturn nil\n"
            "}\nfunc main() {\n}\n"
            "var total = 1\n"
        ),
        "2 Cart type, 4 Add func, 7 main func, 9 total var",
    ),
    "a.rs": (
        (
            "pub struct Cart;\nimpl Cart {\n    pub(crate) async unsafe fn add(&self) "
            "{}\n}\nconst MAX: u8 = 1;\n"
            "static mut N: u8 = 1;\nmacro_rules! go {\n}\npub trait Pay {}\n"
        ),
        "1 Cart struct, 3 add fn, 5 MAX const, 6 N static, 7 go macro_rules!, 9 Pay trait",
    ),
    "A.java": (
        (
            "public final class Cart {\n  @Override public List<Item> add(Item item) throws "
            "E {\n    return add(item);"
            "\n  }\n  Cart() {\n  }\n  abstract void no(int x);\n}\nenum Colour { RED }\n"
        ),
        "1 Cart class, 2 add method, 9 Colour enum",
    ),
}


@pytest.mark.parametrize("name", SOURCES)
def test_definitions(name: str) -> None:
    text, expected = SOURCES[name]
    found = [
        f"{symbol.line} {symbol.name} {symbol.kind}" for symbol in find_definitions(name, text)
    ]
    assert found == expected.split(", ")


def test_what_is_no_code() -> None:
    assert [
        detect_language(name) for name in ("a.txt", "py", "a.PY", "x/.py/readme", "Makefile")
    ] == [
        "",
        "",
        "python",
        "",
        "",
    ]
    assert list(find_definitions("a.txt", "def a(): ...")) == []


async def test_list_symbols(hands: Hands) -> None:
    hands.write("shop.py", b"class Shop:\n    def buy(self): ...\n")
    hands.write("web/cart.ts", b"export function buy() {\n}\n")
    hands.write(".hidden/x.py", b"def hidden(): ...\n")
    hands.write("notes.md", b"def no(): ...\n")
    expected = "shop.py:1: class Shop\nshop.py:2: method Shop.buy\nweb/cart.ts:1: function buy"
    assert await hands(list_symbols) == expected
    assert await hands(list_symbols, name="BUY") == "\n".join(expected.split("\n")[1:])
    assert await hands(list_symbols, path="web") == "web/cart.ts:1: function buy"
    assert (
        await hands(list_symbols, path="shop.py", name="x")
        == "no definition of a name with 'x' found"
    )
    assert await hands(list_symbols, path="notes.md") == "no definitions found"


async def test_find_references(hands: Hands) -> None:
    hands.write("shop.py", PYTHON.encode())
    hands.write("web/cart.js", b'let x = buy(1);\nrebuy();\n$buy;\n"buy"\n')
    assert await hands(find_references, name="buy") == (
        "shop.py:9: [definition] def buy(self, item):  # buy\nshop.py:10: return "
        "self.buy(item) + LIMIT\n"
        "shop.py:16: [definition] def buy(item):\nshop.py:18: return Shop().buy(where)\n"
        'web/cart.js:1: let x = buy(1);\nweb/cart.js:4: "buy"'
    )
    assert await hands(find_references, name="Shop.buy()", path="web") == (
        'web/cart.js:1: let x = buy(1);\nweb/cart.js:4: "buy"'
    )
    assert (
        await hands(find_references, name="path", path="shop.py")
        == "shop.py:2: import os.path as where"
    )
    assert await hands(find_references, name="nobody") == "no code there uses 'nobody'"
    for wrong in ("", "a b", "(.*)+$"):
        with pytest.raises(ToolError, match="is not a name"):
            await hands(find_references, name=wrong)


async def test_limits(hands: Hands) -> None:
    hands.write("many.py", "".join(f"def f{i}(): ...\n" for i in range(MAX_HITS + 50)).encode())
    said = await hands(list_symbols)
    assert said.count("\n") == MAX_HITS and said.endswith(
        f"[only the first {MAX_HITS} hits; search one folder, or for a longer text]"
    )
    hands.write("large/a.py", b"def a(): ...\n" + b"#" * MAX_SEARCH_FILE_BYTES)
    hands.write("large/b.py", b"\0def b(): ...\n")
    said = await hands(list_symbols, path="large")
    assert said == (
        f"no definitions found\n[1 files over {MAX_SEARCH_FILE_BYTES >> 10} KB were not searched]"
    )


@pytest.mark.parametrize("path", ["../..", "/etc/passwd", "gone.py"])
async def test_only_the_workspace(hands: Hands, path: str) -> None:
    for each in (list_symbols, find_references):
        with pytest.raises(OutsideWorkspace if path != "gone.py" else ToolError):
            await hands(each, path=path, **({"name": "x"} if each is find_references else {}))


EVIL = [
    "(" * 200_000,
    "a" * 500_000,
    "pub " * 120_000,
    "\t" * 500_000 + "x",
    "x = [" * 100_000,
    "-" * 400_000 + "x",
]
EVIL += [
    (line * 500)[:499] + "\n"
    for line in ("a ", "<", "abc", " ", "export ", "pub(", "@a ", "async ")
]


@pytest.mark.parametrize("ending", ["py", "c", "ts", "go", "rs", "java"])
async def test_files_that_were_written_against_us(hands: Hands, ending: str) -> None:
    """Each is looked through in less than the time that one test has, and nothing breaks."""
    for number, text in enumerate(EVIL):
        whole = text if len(text) > 1000 else text * (500_000 // len(text))
        hands.write(f"{number}.{ending}", whole.encode())
    hands.write(f"good.{ending}", b"x\n")
    await hands(list_symbols)
    assert f"good.{ending}:1: x" in await hands(find_references, name="x")


def test_lines_that_no_person_wrote_define_nothing() -> None:
    line = "function a() {} " + "x" * 600
    assert (
        list(find_definitions("a.js", line)) == []
        and len(list(find_definitions("a.js", line[:400]))) == 1
    )
