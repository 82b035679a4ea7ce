"""Markdown that answers are made of, and what is meant to break its drawing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, TypedDict

_SPEC = Path(__file__).parent / "data" / "commonmark" / "spec.json"


class Example(TypedDict):
    section: str
    number: int
    markdown: str
    html: str


EXAMPLES: Final[list[Example]] = json.loads(_SPEC.read_text())
OWN: Final = [
    # definitions, notes and what only looks like them
    "[INFO]: started\n\na\n\nb\n\n`[INFO]` is logged",
    "[INFO]: started the engine\n\nand on",
    (
        "See [a], [A][] and [words][a].\n\n- [a] again\n\n> [a]: https://x.test/1 "
        "'Title'\n\n[a]: https://x.test/2\n"
    ),
    "[a]: https://x.test\n\nThere is [b].\n\n[b]:\n  https://y.test\n  'over\n  lines'\n\nend",
    (
        "One[^1], two[^two], none[^3].\n\n[^two]: *Second*, see[^1]\n[^1]: first\n    goes "
        "on\n\n    - a\n    - b\n\nend"
    ),
    "[^1]: before its mark\n\n```\n[^1]\n```\n\nand[^1] then, twice[^1]\n\n[^1]: another\n",
    "[^x]: nobody refers to it\n\n- [^y]: nor here\n\ntext",
    "[a[^1]](https://x.test) # b[^1]\n\n# Head[^1]\n\n[^1]: note [link](https://x.test)",
    # what goes on over blank lines
    "1. a\n\n   ```py\n   x = 1\n\n   y\n   ```\n\n2. b\n\n       code\n\nthen\n\n3. c\n",
    "1. a\n  ```\ncode\n\n  ```\n\nb\n\n```\nnever closed\n\n*x*",
    "- a\n  - b\n\n    - c\n\n      ~~~\n      d\n\n      ~~~\n\n- e\n\n***\n\n* f\n",
    "- ```\n  a\n  ```\n- b\n\n> - c\n>\n> ```\n> d\n\n> e\nlazy\n```js\nf\n```\ng",
    "para\n#foo\n#\n# bar\npara\n-\n\n-\n\n- - -\n\n1.\n\n1\\. a\n",
    "text\n~~~\n```\n~~~\n````\n```\n\n````\nafter\n\n``` a`b\nno code\n",
    "<pre>\n\n**a**\n\n</pre>\n\n<!-- c\n\nd --> x\n\n<div>\n```\n*e*\n```\n\n</div>\n\n*f*",
    "- a\n  <pre>\n\n  b\n\nc\n\n</pre>\n\n<?php\n\n?> d <br> e<br/>f <script>alert(1)</script>\n",
    "a\r\nb\r\n\r\n* c\r\n\r\n      d\r\n\re\r",
    # tables, tasks, other directions
    "| a | b | c |\n|:--|:-:|--:|\n| 1 | `|` | [x](y.md) |\n| \\| | 2 |\n\nnext | is | none",
    "- [x] done *it*\n- [ ] not\n\n- [ ] loose [link](https://x.test)\n  1. [x] in\n",
    "שלום **עולם**\n\n1. א\n2. ב\n\n> مرحبا\n\n| ש | a |\n|---|---|\n| 1 | 2 |\n\n    code",
    # formulas and money
    (
        "$x^2$ costs $5 and $6, \\(a_b\\) *so $c*d$ on*\n\n$$\n\\frac{a}{b}\n= 3\n- "
        "4\n$$\n\n\\[\nx\n\\]\nmore $$y$$ end"
    ),
    "$$\nopen *a*\n\nb $ c $ `$d$` \\$e$ $f\ng$\n\n\\[citation needed\\] \\(see below\\)",
    (
        "$\\href{javascript:alert(1)}{x}$ $\\url{https://x.test}$ $\\text{<img src=x "
        "onerror=alert(1)>}$"
    ),
    (
        "$\\style{color:red}{x}$ $\\htmlStyle{color:red}{x}$ $\\class{composer}{x}$ "
        "$\\label{a}\\ref{a}$"
    ),
    (
        "$\\includegraphics{https://x.test/a.png}$ \\(\\def\\a{\\a\\a}\\a\\) $\\hspace{-90em}x$ "
        "$\\bad{x}$"
    ),
    "$$\\begin{array}{c|c} a & b \\\\ \\hline c & d \\end{array} \\color{red} \\boxed{x}$$",
    # files, pictures, addresses
    (
        "![p](a.png) [r](out/r%20s.md) [u](../x) [v](//e.test) [w](/abs) "
        "[x](javascript:alert(1)) [![i](p.png)](q.md)"
    ),
    (
        "[a](#there) [b](C:\\x) [c](a/../../b) [d](%2e%2e/x) [e](data:text/html,x) "
        "![f](https://x.test/?a=1&amp;b=2)"
    ),
    "www.x.test/a_b_c, https://x.test/(a)?b=*c* and me@x.test",
    (
        "<a href=javascript:alert(1)>x</a> [x](<java\nscript:alert(1)>) ![x](x "
        'onerror=alert(1)) [x](https://x.test/"onclick="y)'
    ),
    "```js\nlet a = 1;\n```\n\n```nosuch\nb\n```\n\n```<img src=x onerror=alert(1)>\nc\n```",
    "```html\n<script>alert(1)</script>\n```",
]
"""Cut anywhere, and looked through for what is not safe."""

LONG: Final = {
    "one line": "word " * 40_000,
    "one paragraph": ("word " * 12 + "\n") * 3_300,
    "brackets": "[" * 100_000,
    "brackets in paragraphs": ("[" * 60 + "\n\n") * 1_700,
    "quotes": ">" * 100_000 + " deep",
    "quotes in lines": (">" * 50 + " x\n") * 3_000,
    "lists in each other": "- " * 50_000 + "x",
    "one list": "- item *x*\n" * 20_000,
    "stars": ("*a **b " * 400 + "\n\n") * 70,
    "code": "```py\n" + "x = 1\n" * 33_000 + "```\n\nend",
    "definitions": "".join(f"[a{n}] text\n\n" for n in range(2_000))
    + "".join(f"[a{n}]: https://x.test/{n}\n" for n in range(2_000)),
    "notes": " ".join(f"[^{n}]" for n in range(1_500))
    + "\n\n"
    + "".join(f"[^{n}]: note\n" for n in range(1_500)),
}
