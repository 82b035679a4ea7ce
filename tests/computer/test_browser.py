"""The browser tool, against a real Chromium and pages of our own."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import anyio
import msgspec

from deskhand.computer.browser.browsers import Browsers
from deskhand.testing.site import LocalSite
from deskhand.tools.label_marks import encode_path, load_marks
from deskhand.tools.queries import set_label
from deskhand.types.labels import UNTRUSTED, Label
from tests.tools.conftest import Hands

from .conftest import Surfer

FORM = """<title>Sign up</title><h1>Join us</h1><form onsubmit="event.preventDefault();
document.title = 'joined ' + new FormData(this).get('name')">
<label>Name <input name=name></label> <label>Country <select name=country>
<option>Norway<option>Spain</select></label> <label><input type=checkbox name=ok> I agree</label>
<button>Join</button></form>"""


async def test_a_form_is_filled_and_sent(surfer: Surfer) -> None:
    shown = await surfer.open(FORM)
    assert shown.splitlines()[1:] == [
        'heading "Join us" level 1',
        'e1 textbox "Name"',
        'e2 combobox "Country" = "Norway" collapsed',
        ' "of Norway, Spain"',
        'e3 checkbox "I agree"',
        'e4 button "Join"',
    ]
    said = await surfer("type", ref="e1", text="Ann Müller")
    assert said.splitlines()[1:] == ['e1 textbox "Name" = "Ann Müller" focused']
    assert '= "Spain"' in await surfer("select", ref="e2", text="Spain")
    assert "checked" in await surfer("click", ref="e3")
    await surfer("click", ref="e4")
    assert await surfer.title() == "joined Ann Müller"


async def test_what_it_says_is_from_there(surfer: Surfer) -> None:
    surfer.site.page("/page", "<p>hello")
    done = await surfer.done("open", url=surfer.site.url("/page"))
    assert {part.label for part in done.parts} == {
        Label("untrusted", None, surfer.site.url("/page"))
    }
    surfer.site.page("/other", "<p>there")
    done = await surfer.done("script", text=f"location = '{surfer.site.url('/other')}'; ''")
    done = await surfer.done("look")
    assert done.parts[0].label.source == surfer.site.url("/other")


async def test_names_forge_no_lines(surfer: Surfer) -> None:
    name = 'x" level 1\\n e9 button "Buy'
    shown = await surfer.open(f"<script>document.write('<h1>{name}</h1><p>{name}</p>')</script>")
    lines = [line.strip() for line in shown.splitlines()[1:]]
    assert len(lines) == 2
    assert lines[0].startswith('heading "x\\" level 1') and lines[1].startswith('"x\\"')


# Refs


ROWS = """<title>Rows</title><ul id=all></ul><script>
const draw = names => { all.innerHTML = names.map(n =>
  `<li>${n} <button onclick="document.title += '-${n}'">Remove</button></li>`).join('') }
draw(['Ann', 'Bob', 'Cid'])</script>
<button onclick="draw(['Ann', 'Bob'])">Redraw</button>"""


async def test_a_ref_never_becomes_another_of_the_same_name(surfer: Surfer) -> None:
    shown = await surfer.open(ROWS)
    last = [line.split()[0] for line in shown.splitlines() if "Remove" in line][-1]
    await surfer("click", ref=await surfer.ref("Redraw"))
    said = await surfer.fails("click", ref=last)
    assert "there is no" in said and await surfer.title() == "Rows"


async def test_a_ref_goes_over_to_the_same_drawn_anew(surfer: Surfer) -> None:
    await surfer.open("<div id=a><button onclick=\"document.title='yes'\">Go</button></div>")
    ref = await surfer.ref("Go")
    await surfer("script", text="a.innerHTML = a.innerHTML")
    await surfer("click", ref=ref)
    assert await surfer.title() == "yes"


async def test_a_node_that_holds_something_else_is_refused(surfer: Surfer) -> None:
    await surfer.open(
        "<title>t</title><button id=b onclick=\"document.title='paid'\">Close</button>"
    )
    ref = await surfer.ref("Close")
    browser = surfer.browsers.peek(surfer.hands.session)
    assert browser is not None and browser.current is not None
    changed = {"expression": "b.textContent = 'Pay'"}
    await browser.current.call("Runtime.evaluate", changed)  # without being shown
    said = await surfer.fails("click", ref=ref)
    assert "holds something else now" in said and await surfer.title() == "t"


async def test_what_is_gone_names_what_is_near(surfer: Surfer) -> None:
    await surfer.open("<div id=a><button>Save all</button></div>")
    ref = await surfer.ref("Save all")
    await surfer("script", text="a.innerHTML = '<button>Save all now</button>'; ''")
    said = await surfer.fails("click", ref=ref)
    assert "is gone" in said and 'near it: e2 button "Save all now"' in said


async def test_a_ref_that_is_not_needed_does_no_harm(surfer: Surfer) -> None:
    surfer.site.page("/page", "<button>Go</button>")
    assert "Go" in await surfer("open", url=surfer.site.url("/page"), ref="e77", to="none")
    assert "nothing has changed" in await surfer("wait", seconds=0.1, ref="e77")
    said = [await surfer.fails("click", ref="e99") for _ in range(3)]
    assert "the very same has failed just before" in said[-1]


async def test_what_is_covered_is_not_clicked(surfer: Surfer) -> None:
    await surfer.open(
        "<title>t</title><button onclick=\"document.title='clicked'\">Buy</button><div role=dialog"
        " aria-label='Cookies' style='position:fixed;inset:0;background:#fff'>We use cookies</div>"
    )
    said = await surfer.fails("click", ref=await surfer.ref("Buy"))
    assert '"Cookies" is in front of it' in said and await surfer.title() == "t"


# Fields


async def test_a_password_is_never_read(surfer: Surfer) -> None:
    await surfer.open("<label>Password <input type=password></label>")
    said = await surfer("type", ref=await surfer.ref("Password"), text="hunter2secret")
    looked = await surfer("look")
    assert "hunter2" not in said + looked and "•" not in looked and "(filled)" in looked


async def test_a_field_that_does_not_take_it_is_an_error(surfer: Surfer) -> None:
    await surfer.open("<label>Code <input maxlength=3></label>")
    said = await surfer.fails("type", ref=await surfer.ref("Code"), text="12345")
    assert 'holds "123"' in said


async def test_options_that_are_not_there_are_named(surfer: Surfer) -> None:
    await surfer.open(FORM)
    said = await surfer.fails("select", ref="e2", text="Mars")
    assert '"Norway", "Spain"' in said


async def test_nothing_is_typed_before_a_person_allows_the_host(surfer: Surfer) -> None:
    surfer.refused = 'the host is not allowed; call request_host(host="site.test")'
    await surfer.open(FORM)
    for action in ({"action": "type", "ref": "e1"}, {"action": "select", "ref": "e2"}):
        said = await surfer.fails(**action, text="Spain")
        assert "request_host" in said
    assert "request_host" in await surfer.fails("press", keys="a", ref="e1")
    assert "request_host" in await surfer.fails("script", text="1")
    await surfer("press", keys="Tab")
    await surfer("click", ref="e3")


# Dialogs, hangs and crashes


async def test_an_alert_while_loading_holds_nothing_up(surfer: Surfer) -> None:
    surfer.site.page("/alert", "<script>alert('read \"me\"')</script><p>behind")
    with anyio.fail_after(10):
        said = await surfer("open", url=surfer.site.url("/alert"))
        assert 'the page shows the alert "read \\"me\\"": answer it' in said
        assert "answer it first" in await surfer.fails("click", ref="e1")
        assert "behind" in await surfer("dialog")


async def test_a_confirmation_is_answered(surfer: Surfer) -> None:
    await surfer.open("<button onclick=\"document.title = confirm('Delete?')\">Go</button>")
    ref = await surfer.ref("Go")
    assert 'the confirm "Delete?"' in await surfer("click", ref=ref)
    await surfer("dialog", accept=False)
    assert await surfer.title() == "false"
    await surfer("click", ref=ref)
    await surfer("dialog")
    assert await surfer.title() == "true"


async def test_a_page_that_hangs_is_closed_and_the_others_go_on(surfer: Surfer) -> None:
    await surfer.open("<title>first</title>")
    surfer.site.page("/hang", "<button onclick='for (;;) {}'>Go</button>")
    await surfer("tab", tab=0, url=surfer.site.url("/hang"))
    said = await surfer.fails("click", ref=await surfer.ref("Go"))
    assert "has not answered" in said
    assert "first" in await surfer("look")


async def test_a_browser_that_was_killed_is_told_and_begun_again(surfer: Surfer) -> None:
    await surfer.open("<p>before")
    for pid in list_browsers():
        with suppress(ProcessLookupError):  # it ended with the one that began it
            os.kill(pid, signal.SIGKILL)
    browser = surfer.browsers.peek(surfer.hands.session)
    assert browser is not None
    with anyio.fail_after(10):
        while not browser.ended:
            await anyio.sleep(0.05)
    assert "no page is open" in await surfer.fails("look")
    assert "after" in await surfer.open("<p>after")


def list_browsers() -> list[int]:
    """The processes of Chromium that we have begun, with all beneath them."""
    parents: dict[int, int] = {}
    chromium = set()
    for each in Path("/proc").iterdir():
        if not each.name.isdigit():
            continue
        try:
            stat = (each / "stat").read_text()
            command = (each / "cmdline").read_bytes()
        except OSError:
            continue
        parents[int(each.name)] = int(stat.rpartition(")")[2].split()[1])
        if b"remote-debugging-pipe" in command and b"/chromium" in command.split(b"\0")[0]:
            chromium.add(int(each.name))

    def is_ours(pid: int) -> bool:
        while pid > 1:
            if pid == os.getpid():
                return True
            pid = parents.get(pid, 0)
        return False

    return [pid for pid in chromium if is_ours(pid)]


async def test_no_browser_is_left(surfer: Surfer) -> None:
    await surfer.open("<p>hello")
    assert list_browsers()
    assert await surfer("close") == "closed"
    with anyio.fail_after(10):
        while list_browsers():
            await anyio.sleep(0.05)
    assert "no page is open" in await surfer.fails("look")


async def test_without_chromium_it_says_what_to_install(hands: Hands) -> None:
    async with LocalSite() as site, anyio.create_task_group() as tasks:
        surfer = Surfer(hands, site, Browsers(lambda: ""))
        tasks.start_soon(surfer.browsers.run)
        await anyio.sleep(0)
        said = await surfer.fails("open", url=site.url("/page"))
        assert "apt-get install chromium" in said
        tasks.cancel_scope.cancel()


async def test_only_pages_of_the_web_are_opened(surfer: Surfer) -> None:
    for url in ("file:///etc/passwd", "chrome://version", "javascript:1", "data:text/html,x"):
        await surfer.fails("open", url=url)
    await surfer.open("<p>hello")
    said = await surfer.fails("open", url="http://127.0.0.1/")
    assert "could not be opened" in said


# Files


async def test_a_download_is_kept_with_its_mark(surfer: Surfer) -> None:
    head = {"content-disposition": 'attachment; filename="../../.bashrc"'}
    surfer.site.page("/file", b"made there", headers=head)
    await surfer.open("<a href=/file>Get it</a>")
    said = await surfer("click", ref=await surfer.ref("Get it"))
    assert "saved as downloads/_.._.bashrc, 10 bytes" in said
    saved = surfer.hands.folder / "downloads" / "_.._.bashrc"
    assert saved.read_bytes() == b"made there"
    context = await surfer.context()
    marks = await load_marks(context)
    place = context.reach.files.find_place("downloads/_.._.bashrc")
    assert surfer.site.url("/file") in marks.file_label(place).sources


async def test_a_file_that_is_private_is_not_uploaded(surfer: Surfer) -> None:
    place = surfer.hands.write("diary.txt", b"mine")
    label = msgspec.structs.replace(UNTRUSTED, readers=("ann",))
    row = set_label(encode_path(str(place)), label, "default/memory:1", 0.0)
    await surfer.hands.store.change((row,))
    await surfer.open("<label>File <input type=file></label>")
    said = await surfer.fails("upload", ref=await surfer.ref("File"), path="diary.txt")
    assert "only for its owner" in said


async def test_a_picture_and_a_pdf(surfer: Surfer) -> None:
    await surfer.open("<h1>On paper")
    done = await surfer.done("screenshot")
    picture = done.parts[-1]
    assert getattr(picture, "mime", "") == "image/jpeg"
    context = await surfer.context()
    data = await context.reach.host.get_blob(getattr(picture, "blob", ""))
    assert data.startswith(b"\xff\xd8")
    assert "saved as page.pdf" in await surfer("pdf", path="page.pdf")
    assert (surfer.hands.folder / "page.pdf").read_bytes().startswith(b"%PDF")


# Much


async def test_a_long_page_is_cut_and_looked_into(surfer: Surfer) -> None:
    rows = "".join(f"<li>Row {n} <a href=#{n}>Open {n}</a></li>" for n in range(2_000))
    shown = await surfer.open(f"<h1>All</h1><ul aria-label=Rows>{rows}</ul><button>End</button>")
    assert len(shown) < 15_000 and 'button "End"' in shown and "more in e1" in shown
    part = await surfer("look", ref="e1", offset=1_500)
    assert "Open 1500" in part and "Open 1499" not in part
    assert 'link "Open 1999"' in await surfer("find", text="open 1999")


async def test_after_an_action_only_what_has_changed_is_told(surfer: Surfer) -> None:
    rows = "".join(f"<li>Row {n}</li>" for n in range(100))
    await surfer.open(f"<ul>{rows}</ul><p id=p>old</p><button onclick=\"p.innerText='new'\">Go")
    said = await surfer("click", ref=await surfer.ref("Go"))
    assert said.splitlines()[1:] == ['"new"']


async def test_a_page_leads_only_where_somebody_wanted_to_go(surfer: Surfer) -> None:
    surfer.refused = "nobody has allowed it"
    there = f"http://other.test:{surfer.site.port}/there"
    surfer.site.page("/there", "<title>there</title>")
    await surfer.open(
        f"<title>here</title><a href={there}>Link</a> <a href={there} target=_blank>New tab</a>"
        f"<button onclick=\"location = '{there}'\">Script</button>"
        f"<form action={there}><button>Form</button></form> <a href=/page#x>Stay</a>"
    )
    for name in ("Link", "New tab", "Script", "Form"):
        said = await surfer("click", ref=await surfer.ref(name))
        said += await surfer("wait", seconds=0.5)  # some lead on a little later
        assert 'leads to "other.test"' in said, name
        assert [each.target for each in surfer.site.requests if "there" in each.target] == []
        browser = surfer.browsers.peek(surfer.hands.session)
        assert browser is not None
        await surfer("tab", tab=browser.tabs[0].number)
        assert await surfer.title() == "here"
    surfer.refused = ""
    await surfer("click", ref=await surfer.ref("Link"))
    assert await surfer.title() == "there"
