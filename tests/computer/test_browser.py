"""The browser tool, against a real Chromium and pages of our own."""

from __future__ import annotations

from .conftest import Surfer

FORM = """<title>Sign up</title><h1>Join us</h1><form onsubmit="event.preventDefault();
document.title = 'joined ' + new FormData(this).get('name')">
<label>Name <input name=name></label> <label>Country <select name=country>
<option>Norway<option>Spain</select></label> <label><input type=checkbox name=ok> I agree</label>
<button>Join</button></form>"""


async def test_a_form_is_filled_and_sent(surfer: Surfer) -> None:
    shown = await surfer.open(FORM)
    print(shown)
    print(await surfer("type", ref=await surfer.ref("Name"), text="Ann Müller"))
    print(await surfer("select", ref=await surfer.ref("Country"), text="Spain"))
    print(await surfer("click", ref=await surfer.ref("I agree")))
    print(await surfer("click", ref=await surfer.ref("Join", "button")))
    assert await surfer.title() == "joined Ann Müller"
