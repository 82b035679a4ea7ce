"""A React component is compiled in its frame and shown there, and what is wrong with it is said."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from .conftest import Desk, say
from .test_frame import open_tab, show, workspace_of

pytestmark = pytest.mark.timeout(120)

LIST = """import React, { useMemo, useState } from "react";
import { createPortal } from "react-dom";
import "./styles.css";

interface Item { id: number; text: string; done: boolean }

const Row: React.FC<{ item: Item; onToggle: (id: number) => void }> = ({ item, onToggle }) => (
  <label className="flex items-center">
    <input type="checkbox" checked={item.done} onChange={() => onToggle(item.id)} /> {item.text}
  </label>
);

export default function List({ title = "Groceries" }: { title?: string }) {
  const [items, setItems] = useState<Item[]>([{ id: 1, text: "milk", done: false }]);
  const [text, setText] = useState("");
  const left = useMemo(() => items.filter((item) => !item.done).length, [items]);
  const add = (event: React.FormEvent) => {
    event.preventDefault();
    setItems((all) => [...all, { id: all.length + 1, text, done: false } as Item]);
  };
  const toggle = (id: number) =>
    setItems((all) => all.map((one) => (one.id === id ? { ...one, done: !one.done } : one)));
  return (
    <>
      <h1>{title}</h1>
      <form onSubmit={add}>
        <input value={text} onChange={(event) => setText(event.target.value)} aria-label="New" />
        <button>Add</button>
      </form>
      {items.map((item) => <Row key={item.id} item={item} onToggle={toggle} />)}
      {createPortal(<p>{left} left</p>, document.body)}
    </>
  );
}
"""


def test_a_component_is_used(page: Page, desk: Desk) -> None:
    """With hooks, types, a form and a portal; and no policy refuses anything."""
    frame = show(page, workspace_of(desk), "list.tsx", LIST)
    expect(frame.get_by_role("heading", name="Groceries")).to_be_visible()
    frame.get_by_label("New").fill("bread")
    frame.get_by_role("button", name="Add").click()
    frame.get_by_label("milk").check()
    expect(frame.get_by_label("bread")).not_to_be_checked()
    expect(frame.get_by_text("1 left")).to_be_visible()
    expect(frame.get_by_text("Not loaded: ./styles.css")).to_be_visible()
    page.get_by_role("button", name="Source", exact=True).click()
    expect(page.locator(".preview code")).to_contain_text("interface Item")


def test_a_component_may_draw_itself(page: Page, desk: Desk) -> None:
    text = """import { createRoot } from "react-dom/client";
createRoot(document.getElementById("root")).render(<h1>Drawn</h1>);
"""
    frame = show(page, workspace_of(desk), "itself.jsx", text)
    expect(frame.get_by_role("heading", name="Drawn")).to_be_visible()


WRONG = {
    "tag": (
        "export default function App() {\n  return <p class=>open</p>;\n}\n",
        "It could not be compiled",
        "Line 2, column 19",
    ),
    "twice": (
        "export default function App() {\n  const one = 1;\n  const one = 2;\n}\n",
        "It could not be compiled",
        "Line 3, column 9",
    ),
    "drawing": (
        "const user = null;\nexport default () => <p>{user.name}</p>;\n",
        "The component failed",
        "Line 2, column 31",
    ),
    "effect": (
        """import { useEffect } from "react";
export default function App() {
  useEffect(() => { throw new Error("later"); }, []);
  return <p>drawn</p>;
}
""",
        "later",
        "Line 3, column 27",
    ),
    "module": (
        """import { useState } from "react";
import { Line } from "recharts";
export default () => <Line />;
""",
        "There is no module “recharts” here. A component can import react, react-dom",
        "Line 2, column 1",
    ),
    "nothing": ("const App = () => <p>App</p>;\n", "There is nothing to show", "default export"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_said_with_its_place(
    context: BrowserContext, desk: Desk, what: str
) -> None:
    text, said, place = WRONG[what]
    problem = show(open_tab(context), workspace_of(desk), f"{what}.jsx", text).get_by_role("alert")
    expect(problem).to_contain_text(said)
    expect(problem).to_contain_text(place)


def test_an_error_in_a_handler_leaves_the_component_where_it_is(
    context: BrowserContext, desk: Desk
) -> None:
    text = """export default function App() {
  return <button onClick={() => { throw new Error("pressed"); }}>Press</button>;
}
"""
    frame = show(open_tab(context), workspace_of(desk), "handler.jsx", text)
    frame.get_by_role("button", name="Press").click()
    expect(frame.get_by_role("alert")).to_contain_text("pressed")
    expect(frame.get_by_role("alert")).to_contain_text("Line 2, column 41")
    expect(frame.get_by_role("button", name="Press")).to_be_visible()


def test_a_fence_with_a_component_is_shown_when_asked(page: Page) -> None:
    """What compiles it is loaded then, and not before."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    part = "```jsx\nconst one = <b>1</b>;\n```"
    say(page, f"say Look:\n\n```jsx\nexport default () => <h1>Made</h1>;\n```\n\n{part}")
    page.locator(".did").wait_for()
    assert not [url for url in asked if "component" in url]
    page.get_by_role("button", name="Preview", exact=True).click()
    frame = page.frame_locator("iframe.frame")
    expect(frame.get_by_role("heading", name="Made")).to_be_visible()
