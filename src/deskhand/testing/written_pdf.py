"""Small PDFs with text, for tests."""

from __future__ import annotations


def written_pdf(*contents: str, page: str = "/MediaBox[0 0 300 200]") -> bytes:
    """A page for each content stream, with Helvetica as F1."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(contents)))
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(contents)}>>",
    ]
    objects.append("<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
    for n, content in enumerate(contents):
        objects.append(
            f"<</Type/Page/Parent 2 0 R{page}/Contents {5 + 2 * n} 0 R"
            "/Resources<</Font<</F1 3 0 R>>>>>>"
        )
        objects.append(f"<</Length {len(content)}>>stream\n{content}\nendstream\n")
    numbered = "".join(f"{n} 0 obj{each}endobj\n" for n, each in enumerate(objects, 1))
    return f"%PDF-1.4\n{numbered}trailer<</Root 1 0 R>>\n".encode()


TWO_LINES = "BT /F1 20 Tf 30 150 Td (The first line) Tj 0 -50 Td (second line) Tj ET"
"""The content of a page: a line at a quarter of its height, and one in the middle."""
