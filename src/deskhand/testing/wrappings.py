"""Ways to write a secret or an address so that a search for it fails, and a reader or a renderer
brings it back."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from urllib.parse import unquote

Wrap = Callable[[str], str]


def _middle(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _each(form: str) -> Wrap:
    return lambda text: "".join(form.format(code) for code in text.encode())


def _split(between: str) -> Wrap:
    return lambda text: between.join(_middle(text))


def _lines(text: str, width: int = 20) -> str:
    return "\n".join(text[at : at + width] for at in range(0, len(text), width))


_Z85 = bytes.maketrans(
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
)


OF_SECRETS: Mapping[str, Wrap] = {
    "as it is": str,
    "base64": _base64,
    "base64 within more": lambda text: _base64(f"key={text};"),
    "base64 for addresses": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 twice": lambda text: _base64(_base64(text)),
    "base64 in lines": lambda text: _lines(_base64(f"the first words of it {text} and more")),
    "base32": lambda text: base64.b32encode(text.encode()).decode(),
    "hexadecimal": _each("{:02x}"),
    "hexadecimal with colons": lambda text: ":".join(f"{code:02X}" for code in text.encode()),
    "hexadecimal for a program": lambda text: ", ".join(f"0x{code:02x}" for code in text.encode()),
    "hexadecimal in an array": lambda text: (
        "{" + ",".join(f"0X{code:X}" for code in text.encode()) + "}"
    ),
    "numbers": lambda text: " ".join(str(code) for code in text.encode()),
    "numbers in a list": lambda text: str([*text.encode()]),
    "octal": lambda text: " ".join(f"{code:03o}" for code in text.encode()),
    "octal for a program": lambda text: ", ".join(f"0o{code:o}" for code in text.encode()),
    "binary": lambda text: " ".join(f"{code:08b}" for code in text.encode()),
    "base85": lambda text: base64.b85encode(text.encode()).decode(),
    "base85 within more": lambda text: base64.b85encode(f"a key: {text};".encode()).decode(),
    "Ascii85": lambda text: base64.a85encode(text.encode(), adobe=True).decode(),
    "Z85": lambda text: base64.b85encode(text.encode()).translate(_Z85).decode(),
    "percent": _each("%{:02X}"),
    "percent twice": _each("%25{:02x}"),
    "entities": _each("&#{};"),
    "entities in hexadecimal": _each("&#x{:x};"),
    "escapes": _each("\\u{:04x}"),
    "emphasis in the middle": lambda text: "{}**{}**".format(*_middle(text)),
    "emphasis of each letter": lambda text: "".join(f"_{char}_" for char in text),
    "backslashes": lambda text: re.sub(r"([^A-Za-z0-9])", r"\\\1", text),
    "code fence": lambda text: f"```\n{text}\n```",
    "two pieces of code": lambda text: "`{}``{}`".format(*_middle(text)),
    "text of a link": lambda text: f"[{text}](https://example.org)",
    "target of a link": lambda text: f"[here](https://example.org/{text})",
    "reference link": lambda text: f"[here][1]\n\n[1]: https://example.org/{text}",
    "autolink": lambda text: f"<https://example.org/{text}>",
    "HTML": lambda text: "<b>{}</b><i>{}</i>".format(*_middle(text)),
    "HTML comment": _split("<!-- -->"),
    "footnote": lambda text: f"see[^1]\n\n[^1]: {text}",
    "table": lambda text: "| a | b |\n|---|---|\n| {} | {} |".format(*_middle(text)),
    "zero width": lambda text: "\u200b".join(text),
    "letter by letter": " ".join,
    "line ends": lambda text: _lines(text, 5),
    "concatenated": lambda text: '"{}" + "{}"'.format(*_middle(text)),
    "the second half first": lambda text: "ends in {1} and begins with {0}".format(*_middle(text)),
    "backwards": lambda text: text[::-1],
    "wide letters": lambda text: "".join(
        chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in text
    ),
}

OF_ADDRESSES: Mapping[str, Wrap] = {
    "as it is": str,
    "link": lambda url: f"[click here]({url})",
    "link with a title": lambda url: f'[click here](<{url}> "a title")',
    "picture": lambda url: f"![a picture]({url})",
    "reference link": lambda url: f"[click here][a]\n\n[a]: {url}",
    "reference picture": lambda url: f"![x][a]\n\n[a]: {url}",
    "autolink": lambda url: f"<{url}>",
    "entities": lambda url: "".join(f"&#{ord(char)};" for char in url),
    "entities in a link": lambda url: f"[click]({''.join(f'&#x{ord(char):x};' for char in url)})",
    "one entity": lambda url: url.replace(":", "&colon;").replace(".", "&period;"),
    "backslashes": lambda url: url.replace(".", "\\.").replace("/", "\\/").replace(":", "\\:"),
    "backslashes in a link": lambda url: f"[click]({url.replace('.', chr(92) + '.')})",
    "emphasis": lambda url: f"*{url}*",
    "emphasis in the middle": lambda url: url.replace("evil", "ev**il**"),
    "without a scheme": lambda url: url.partition("://")[2],
    "www": lambda url: "www." + url.partition("://")[2],
    "HTML": lambda url: f'<a href="{url}">click</a>',
    "HTML picture": lambda url: f'<img src="{url}">',
    "footnote": lambda url: f"see[^1]\n\n[^1]: {url}",
    "in a table": lambda url: f"| a | b |\n|---|---|\n| x | {url} |",
    "in a table as a link": lambda url: f"| a | b |\n|---|---|\n| x | [y]({url}) |",
    "in a heading": lambda url: f"# see {url}",
    "in a quote": lambda url: f"> {url}\n> [x]({url})",
    "in a list": lambda url: f"- {url}\n- [x]({url})",
    "behind brackets": lambda url: f"[[[x]({url})",
    "nested brackets": lambda url: f"[a [b] c]({url})",
    "mail": lambda url: "someone@" + url.partition("://")[2].partition("/")[0],
    "broken code": lambda url: f"`` ` {url} ` and `{url}",
    "two in one word": lambda url: f"see:{url},{url}",
    "many of them": lambda url: " ".join(f"{url}{number}" for number in range(150)),
}


def leaks(text: str, secret: str) -> str:
    """The longest part of a secret, over half of it, that somebody finds in the text with ordinary
    means; '' for none.

    Written without what hides secrets, so that the two can disagree.
    """
    found = {
        text,
        html.unescape(text),
        unquote(text),
        unquote(unquote(text)),
        re.sub(r"<[^>]*>", "", text),
    }
    found.add(re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), text))
    found |= {*_counted(text), *_in_base85(text)}
    plain = [_letters(each) for each in found]
    plain += [each[::-1] for each in plain]
    for encoded in (_letters(secret), secret.encode().hex(), *map(_letters, _in_base64(secret))):
        for part in _halves(encoded):
            if any(part in each for each in plain):
                return part
    return ""


def _counted(text: str) -> Iterator[str]:
    """What stands in the text as numbers of bytes."""
    numbers = re.findall(r"0[xob][0-9a-f]+|[0-9]+", text.lower())
    for base, prefix in ((16, "0x"), (10, ""), (8, ""), (8, "0o"), (2, ""), (2, "0b")):
        codes = [
            _number(each.removeprefix(prefix), base) for each in numbers if each.startswith(prefix)
        ]
        yield "".join(chr(code) for code in codes if 0 < code < 128)


def _number(digits: str, base: int) -> int:
    try:
        return int(digits, base)
    except ValueError:
        return 0


def _in_base85(text: str) -> Iterator[str]:
    """What runs of base85 say, wherever in them it begins."""
    for run in re.findall(r"[!-~]{15,}", text):
        for at in range(5):
            piece = run[at:]
            for decode, digits in (
                (base64.b85decode, piece),
                (base64.b85decode, _of_z85(piece)),
                (_ascii85, piece),
            ):
                for end in (len(digits), len(digits) // 5 * 5):
                    with suppress(ValueError):
                        yield decode(digits[:end]).decode("ascii", "ignore")


def _of_z85(digits: str) -> str:
    back = {new: old for old, new in enumerate(_Z85)}
    return bytes(back.get(code, 32) for code in digits.encode()).decode("latin-1")


def _ascii85(digits: str) -> bytes:
    return base64.a85decode(digits.removeprefix("<~").removesuffix("~>"))


def _letters(text: str) -> str:
    return "".join(char for char in text if char.isascii() and char.isalnum()).casefold()


def _halves(text: str) -> Iterator[str]:
    size = len(text) // 2 + 1
    return (text[at : at + size] for at in range(len(text) - size + 1))


def _in_base64(secret: str) -> Iterator[str]:
    for before in ("", "x", "xx"):
        whole = _base64(before + secret)
        yield whole[4 * bool(before) : len(whole) - 4]
