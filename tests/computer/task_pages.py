"""Thirty pages that behave like the real web's difficult ones, each with a task for an agent.

The steps are those of a capable agent, and depend on no tool. Roles and names are those of
Chromium's accessibility tree, roles in lower case; a list item, which has no name there, is called
by its text. Where a name would not be enough, a pair (role, name) at the end is the element that
the meant one is in.

    ("click", role, name)  also with a pair at the end
    ("doubleclick", role, name)
    ("rightclick", role, name)
    ("hover", role, name)
    ("type", role, name, text)  the field holds this text afterwards, and nothing else
        also a day (role date, 2026-12-31) and a number (role slider)
    ("select", role, name, option, ...)  exactly these options of a native list
    ("check", role, name)  it is on afterwards: checkbox, radio, switch
    ("uncheck", role, name)  it is off afterwards
    ("press", key)  to what has the focus; "Control+a" is one key
    ("drag", (role, name), (role, name))  the first onto the middle of the second
    ("upload", role, name, file)  one of `uploads`, given to a field or to what opens a chooser
    ("download", role, name)  click it, and a file comes
    ("scroll", "down")  the page, to the end that it has now
    ("scroll", (role, name), (role, name))  the first, by less than its height, until the second
        is in it
    ("dialog", "accept" or "dismiss", text)  after the step that opens it; text answers a prompt
    ("tab", "last" or "first")  go on in this tab
    ("wait", text)  until this text is on the page: at most 5 s
"""

from __future__ import annotations

import json

import msgspec
from anyio.abc import SocketStream

from deskhand.testing.site import Answer, LocalSite, plain

Target = tuple[str, str]
"""Role and name."""
Step = tuple[str | Target, ...]

FLAKY_PATH = "/flaky"
FLAKY_BODY = json.dumps(
    [
        {"author": "Ida", "text": "It leaks."},
        {"author": "Ola", "text": "Boils in three minutes."},
        {"author": "Olav", "text": "The lid is loose."},
    ]
)
"""What FLAKY_PATH answers at last, as application/json."""


class Task(msgspec.Struct, frozen=True):
    """Something to do at http://HOST:PORT/task/NAME.

    The tab in which it ends has the title `solved` once the goal is reached, and in no other case.
    `pages` are further pages by path, `attachments` texts by path that are served as downloads,
    their file names being the ends of the paths. `uploads` are the files, by name, that the agent
    finds ready. Where `flaky`, the page asks FLAKY_PATH, which must answer 503 once and FLAKY_BODY
    from then on."""

    name: str
    goal: str
    html: str
    solved: str
    steps: tuple[Step, ...]
    pages: dict[str, str] = {}
    attachments: dict[str, str] = {}
    uploads: dict[str, str] = {}
    flaky: bool = False


def serve_task(site: LocalSite, task: Task) -> None:
    """Have the site answer with all that belongs to the task."""
    for path, html in {f"/task/{task.name}": task.html, **task.pages}.items():
        site.page(path, html)
    for path, text in task.attachments.items():
        name = path.rpartition("/")[2]
        site.page(
            path,
            text,
            headers={
                "Content-Type": "application/octet-stream",
                "Content-Disposition": f'attachment; filename="{name}"',
            },
        )
    if task.flaky:
        site.pages[FLAKY_PATH] = fail_once()


def fail_once() -> Answer:
    """503 at first, and FLAKY_BODY from then on."""
    failures = [plain(b"try later", 503, {"Content-Type": "text/plain"})]
    fine = plain(FLAKY_BODY.encode(), 200, {"Content-Type": "application/json"})

    async def answer(stream: SocketStream, query: str) -> None:
        await (failures.pop() if failures else fine)(stream, query)

    return answer


_STYLE = """
  * { box-sizing: border-box }
  body { margin: 0; font: 15px/1.45 system-ui, sans-serif; color: #1d2430; background: #f4f6f8 }
  .site-header { background: #16324f; color: #fff; padding: 12px 24px }
  .site-header a { color: #fff; margin-right: 16px }
  .container { max-width: 860px; margin: 24px auto; padding: 0 16px }
  .card { background: #fff; border: 1px solid #d8dee6; border-radius: 8px; padding: 20px;
          margin-bottom: 16px }
  .field { margin-bottom: 14px }
  .field > label { display: block; font-weight: 600; margin-bottom: 4px }
  input, select, button, textarea { font: inherit }
  button, .btn { padding: 8px 14px; border: 1px solid #16324f; border-radius: 6px;
                 background: #fff; cursor: pointer }
  .primary { background: #16324f; color: #fff }
  .error { color: #b00020; min-height: 22px }
  .sr-only { position: absolute; width: 1px; height: 1px; margin: -1px; padding: 0; border: 0;
             overflow: hidden; clip: rect(0 0 0 0); white-space: nowrap }
"""


def _page(title: str, solved: str, body: str, script: str, style: str = "") -> str:
    """A page of a site. Its script calls `report(whether the goal is reached)`."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{_STYLE}{style}</style>
</head>
<body>
<div id="root" class="app">
{body}
</div>
<script>
(() => {{
  const firstTitle = document.title
  const report = reached => {{ document.title = reached ? {json.dumps(solved)} : firstTitle }}
  const $ = id => document.getElementById(id)
{script}
}})()
</script>
</body>
</html>
"""


# Forms

PLAIN_FORM = Task(
    name="plain_form",
    goal="Send the contact form for Ann Lee (ann@example.org) from Norway, who wants to be answered"
    " by phone and to get the newsletter.",
    solved="done: message of Ann Lee sent",
    html=_page(
        "Contact - Nordic Books",
        "done: message of Ann Lee sent",
        """
<header class="site-header"><a href="#">Nordic Books</a><a href="#">Shop</a></header>
<main class="container"><div class="card">
  <h1>Contact us</h1>
  <form id="contact">
    <div class="field"><label for="name">Full name</label>
      <input id="name" name="name" autocomplete="name" required></div>
    <div class="field"><label for="email">E-mail address</label>
      <input id="email" name="email" type="email" autocomplete="email" required></div>
    <div class="field"><label for="country">Country</label>
      <select id="country" name="country" required>
        <option value="">Please choose</option><option value="DK">Denmark</option>
        <option value="FI">Finland</option><option value="NO">Norway</option>
        <option value="SE">Sweden</option></select></div>
    <fieldset class="field"><legend>How shall we answer?</legend>
      <label><input type="radio" name="by" value="mail" checked> By e-mail</label>
      <label><input type="radio" name="by" value="phone"> By phone</label>
      <label><input type="radio" name="by" value="post"> By letter</label></fieldset>
    <div class="field">
      <label><input type="checkbox" name="news"> Send me the newsletter</label></div>
    <div class="field">
      <label><input type="checkbox" name="call"> Call me about offers</label></div>
    <button class="primary" type="submit">Send message</button>
  </form>
  <p id="said" role="status"></p>
</div></main>
""",
        """
  $('contact').addEventListener('submit', event => {
    event.preventDefault()
    const sent = Object.fromEntries(new FormData(event.target))
    $('said').textContent = `Thank you, ${sent.name}. We have your message.`
    report(sent.name.trim() === 'Ann Lee' && sent.email === 'ann@example.org' &&
      sent.country === 'NO' && sent.by === 'phone' && sent.news === 'on' && !sent.call)
  })
""",
    ),
    steps=(
        ("type", "textbox", "Full name", "Ann Lee"),
        ("type", "textbox", "E-mail address", "ann@example.org"),
        ("select", "combobox", "Country", "Norway"),
        ("check", "radio", "By phone"),
        ("check", "checkbox", "Send me the newsletter"),
        ("click", "button", "Send message"),
    ),
)

VALIDATION_FORM = Task(
    name="validation_form",
    goal="Book a table for 12 people, or for as many as the restaurant takes, in the name of Ann"
    " Lee, with the British phone number 020 7946 0018.",
    solved="done: table for 8 booked",
    html=_page(
        "Book a table - Osteria",
        "done: table for 8 booked",
        """
<main class="container"><div class="card">
  <h1>Book a table</h1>
  <form id="booking" novalidate>
    <div id="summary" role="alert" class="error"></div>
    <div class="field"><label for="who">Name</label>
      <input id="who" aria-describedby="who-error"><div id="who-error" class="error"></div></div>
    <div class="field"><label for="phone">Phone</label>
      <input id="phone" type="tel" aria-describedby="phone-error">
      <div id="phone-error" class="error"></div></div>
    <div class="field"><label for="people">Number of people</label>
      <input id="people" inputmode="numeric" aria-describedby="people-error">
      <div id="people-error" class="error"></div></div>
    <button class="primary">Book</button>
  </form>
</div></main>
""",
        r"""
  const rules = {
    who: value => value.trim() ? '' : 'Enter your name.',
    phone: value => /^\+\d{8,14}$/.test(value.replace(/[\s()-]/g, ''))
      ? '' : 'Enter the phone number in international form, as +47 22 12 34 56.',
    people: value => !/^\d+$/.test(value.trim()) ? 'Enter a number.'
      : Number(value) > 8 ? 'We take at most 8 people at one table.' : '',
  }
  const check = id => {
    const problem = rules[id]($(id).value)
    $(id + '-error').textContent = problem
    $(id).setAttribute('aria-invalid', String(!!problem))
    return problem
  }
  for (const id in rules) $(id).addEventListener('blur', () => $(id).value && check(id))
  $('booking').addEventListener('submit', event => {
    event.preventDefault()
    const problems = Object.keys(rules).filter(check)
    $('summary').textContent = problems.length ? `${problems.length} fields need your attention` : ''
    if (problems.length) return $(problems[0]).focus()
    const phone = $('phone').value.replace(/[\s()-]/g, '')
    report($('who').value.trim() === 'Ann Lee' && phone === '+442079460018' &&
      Number($('people').value) === 8)
    event.target.innerHTML = '<p role="status">We look forward to your visit.</p>' +
      '<a class="btn" href="">Change the booking</a>'
  })
""",  # noqa: E501
    ),
    steps=(
        ("type", "textbox", "Name", "Ann Lee"),
        ("type", "textbox", "Phone", "020 7946 0018"),
        ("type", "textbox", "Number of people", "12"),
        ("click", "button", "Book"),
        ("wait", "2 fields need your attention"),
        ("type", "textbox", "Phone", "+44 20 7946 0018"),
        ("type", "textbox", "Number of people", "8"),
        ("click", "button", "Book"),
    ),
)

RERENDERED_FORM = Task(
    name="rerendered_form",
    goal="Create a rush invoice for Berg & Sons: 12 pieces of oak board.",
    solved="done: invoice for 12 oak boards",
    html=_page(
        "New invoice - Ledgerly",
        "done: invoice for 12 oak boards",
        '<div id="app-root"></div>',
        """
  // As a framework that keeps no node: each key stroke draws all anew.
  const root = $('app-root')
  let state = {customer: '', item: '', quantity: '', rush: false, sent: false}
  const escape = text => text.replace(/[&<>"]/g, c => `&#${c.charCodeAt(0)};`)
  const field = (id, label) => `<div class="field"><label for="${id}">${label}</label>
    <input id="${id}" value="${escape(state[id])}" autocomplete="off"></div>`
  const draw = () => {
    const active = document.activeElement
    const {id, selectionStart: from, selectionEnd: to} = active || {}
    const ready = state.customer && state.item && Number(state.quantity) > 0
    root.innerHTML = `<main class="container"><div class="card"><h1>New invoice</h1>
      ${field('customer', 'Customer')}${field('item', 'Item')}${field('quantity', 'Quantity')}
      <div class="field"><label><input type="checkbox" id="rush" ${state.rush ? 'checked' : ''}>
        Rush order (+20 %)</label></div>
      <p aria-live="polite">${state.sent ? 'The invoice is created.'
        : `Total: ${(Number(state.quantity) || 0) * (state.rush ? 24 : 20)} €`}</p>
      <button id="create" class="primary" ${ready ? '' : 'disabled'}>Create invoice</button>
      </div></main>`
    const again = id && root.querySelector('#' + id)
    if (!again) return
    again.focus()
    if (again.setSelectionRange && again.type === 'text') again.setSelectionRange(from, to)
  }
  root.addEventListener('input', event => {
    const {id, type, checked, value} = event.target
    state = {...state, [id]: type === 'checkbox' ? checked : value}
    draw()
  })
  root.addEventListener('click', event => {
    if (event.target.id !== 'create') return
    state = {...state, sent: true}
    report(state.customer.trim() === 'Berg & Sons' && state.rush &&
      /^oak boards?$/i.test(state.item.trim()) && Number(state.quantity) === 12)
    draw()
  })
  draw()
""",
    ),
    steps=(
        ("type", "textbox", "Customer", "Berg & Sons"),
        ("type", "textbox", "Item", "oak board"),
        ("type", "textbox", "Quantity", "12"),
        ("check", "checkbox", "Rush order (+20 %)"),
        ("click", "button", "Create invoice"),
    ),
)

HOTEL_SEARCH = Task(
    name="hotel_search",
    goal="Search for hotels from 12 to 15 March 2027 that cost at most 150 € a night.",
    solved="done: hotels for 3 nights up to 150",
    html=_page(
        "Hotels - Staywell",
        "done: hotels for 3 nights up to 150",
        """
<main class="container"><form class="card" id="search">
  <h1>Find a hotel</h1>
  <div class="field"><label for="from">Check-in</label>
    <input type="date" id="from" min="2026-11-01" max="2027-12-31"></div>
  <div class="field"><label for="to">Check-out</label>
    <input type="date" id="to" min="2026-11-01" max="2027-12-31"></div>
  <div class="field"><label for="price">Highest price per night</label>
    <input type="range" id="price" min="50" max="400" step="10" value="300">
    <output id="shown" for="price">300 €</output></div>
  <button class="primary">Search</button>
  <p id="found" role="status"></p>
</form></main>
""",
        """
  let price = 300  // as the events say it
  $('price').addEventListener('input', event => {
    price = Number(event.target.value)
    $('shown').textContent = `${price} €`
  })
  $('search').addEventListener('submit', event => {
    event.preventDefault()
    const [from, to] = [$('from').value, $('to').value]
    const wrong = !from || !to || to <= from
    $('found').textContent = wrong ? 'Please choose both days.' : `Hotels from ${from} to ${to}`
    report(from === '2027-03-12' && to === '2027-03-15' && price === 150)
  })
""",
    ),
    steps=(
        ("type", "date", "Check-in", "2027-03-12"),
        ("type", "date", "Check-out", "2027-03-15"),
        ("type", "slider", "Highest price per night", "150"),
        ("click", "button", "Search"),
    ),
)

REVIEW_FORM = Task(
    name="review_form",
    goal="Review the café with 4 stars, saying that you liked its coffee and its service and"
    " nothing else, and publish it.",
    solved="done: 4 stars published",
    html=_page(
        "Write a review - Tablewise",
        "done: 4 stars published",
        """
<main class="container"><form class="card" id="review">
  <h1>Café Lumen</h1>
  <fieldset class="stars"><legend>Your rating</legend>
    <div class="row">
      <input class="sr-only" type="radio" name="stars" id="s1" value="1">
      <label for="s1"><span class="sr-only">1 star</span><i aria-hidden="true">★</i></label>
      <input class="sr-only" type="radio" name="stars" id="s2" value="2">
      <label for="s2"><span class="sr-only">2 stars</span><i aria-hidden="true">★</i></label>
      <input class="sr-only" type="radio" name="stars" id="s3" value="3">
      <label for="s3"><span class="sr-only">3 stars</span><i aria-hidden="true">★</i></label>
      <input class="sr-only" type="radio" name="stars" id="s4" value="4">
      <label for="s4"><span class="sr-only">4 stars</span><i aria-hidden="true">★</i></label>
      <input class="sr-only" type="radio" name="stars" id="s5" value="5">
      <label for="s5"><span class="sr-only">5 stars</span><i aria-hidden="true">★</i></label>
    </div></fieldset>
  <div class="field"><label for="liked">What did you like?</label>
    <select id="liked" multiple size="6"><option>Coffee</option><option>Cake</option>
      <option selected>Prices</option><option>Service</option><option>Music</option>
      <option>View</option></select></div>
  <button class="primary">Publish review</button>
  <p id="said" role="status"></p>
</form></main>
""",
        """
  $('review').addEventListener('submit', event => {
    event.preventDefault()
    const stars = new FormData(event.target).get('stars')
    const liked = [...$('liked').selectedOptions].map(each => each.value).join()
    $('said').textContent = stars ? `Published with ${stars} stars.` : 'Please give a rating.'
    report(stars === '4' && liked === 'Coffee,Service')
  })
""",
        """
  .stars .row { display: flex; position: relative }
  .stars i { font-size: 34px; color: #c3cad3; font-style: normal; padding: 0 3px; cursor: pointer }
  .stars input:checked + label i { color: #f0a500 }
  .stars input:focus-visible + label { outline: 2px solid #16324f }
""",
    ),
    steps=(
        ("check", "radio", "4 stars"),
        ("select", "listbox", "What did you like?", "Coffee", "Service"),
        ("click", "button", "Publish review"),
    ),
)

LOGIN_SLOW = Task(
    name="login_slow",
    goal="Sign in as ann@example.org with the password 'correct horse 9' and switch on paperless"
    " bills.",
    solved="done: bills are paperless",
    html=_page(
        "Sign in - Northgrid Energy",
        "done: bills are paperless",
        """
<main class="container"><div class="card" id="stage">
  <h1>Sign in</h1>
  <form id="login">
    <p id="problem" role="alert" class="error"></p>
    <div class="field"><label for="user">E-mail</label>
      <input id="user" type="email" autocomplete="username"></div>
    <div class="field"><label for="secret">Password</label>
      <input id="secret" type="password" autocomplete="current-password">
      <button type="button" id="eye" aria-pressed="false">Show password</button></div>
    <button class="primary">Sign in</button>
  </form>
</div></main>
""",
        """
  $('eye').addEventListener('click', () => {
    const shown = $('secret').type === 'text'
    $('secret').type = shown ? 'password' : 'text'
    $('eye').setAttribute('aria-pressed', String(!shown))
  })
  const account = `<h1>Welcome, Ann</h1>
    <div class="field"><span id="l1">Paperless bills</span>
      <button role="switch" aria-checked="false" aria-labelledby="l1"></button></div>
    <div class="field"><span id="l2">Price alerts</span>
      <button role="switch" aria-checked="false" aria-labelledby="l2"></button></div>`
  $('login').addEventListener('submit', event => {
    event.preventDefault()
    const fits = $('user').value === 'ann@example.org' && $('secret').value === 'correct horse 9'
    if (!fits) {
      $('problem').textContent = 'The e-mail or the password is wrong.'
      $('secret').value = ''
      return
    }
    $('stage').innerHTML = `<div role="status" aria-busy="true" aria-label="Loading">
      <div class="spinner"></div></div>`
    setTimeout(() => { $('stage').innerHTML = account }, 2000)
  })
  $('stage').addEventListener('click', event => {
    const knob = event.target.closest('[role=switch]')
    if (!knob) return
    knob.setAttribute('aria-checked', String(knob.getAttribute('aria-checked') !== 'true'))
    const [bills, alerts] = [...document.querySelectorAll('[role=switch]')].map(
      each => each.getAttribute('aria-checked') === 'true')
    report(bills && !alerts)
  })
""",
        """
  .spinner { width: 48px; height: 48px; margin: 60px auto; border: 5px solid #d8dee6;
             border-top-color: #16324f; border-radius: 50%; animation: turn 1s linear infinite }
  @keyframes turn { to { transform: rotate(360deg) } }
  [role=switch] { width: 44px; height: 24px; border-radius: 12px; padding: 0; background: #c3cad3 }
  [role=switch][aria-checked=true] { background: #2e8b57 }
""",
    ),
    steps=(
        ("type", "textbox", "E-mail", "ann@example.org"),
        ("type", "textbox", "Password", "correct horse 9"),
        ("click", "button", "Sign in"),
        ("wait", "Welcome, Ann"),
        ("check", "switch", "Paperless bills"),
    ),
)

FILE_UPLOADS = Task(
    name="file_uploads",
    goal="Apply with the file cv.txt as the curriculum vitae and letter.txt as the cover letter,"
    " and send the application.",
    solved="done: 2 files sent",
    html=_page(
        "Apply - Harbour Jobs",
        "done: 2 files sent",
        """
<main class="container"><form class="card" id="apply">
  <h1>Apply as a harbour pilot</h1>
  <div class="field"><label for="cv">Curriculum vitae</label><input type="file" id="cv"></div>
  <div class="field"><div class="dropzone">
    <input type="file" id="letter" hidden>
    <button type="button" id="pick"><span aria-hidden="true">⬆</span> Add cover letter</button>
    <span id="picked">nothing added</span></div></div>
  <button class="primary">Send application</button>
  <p id="said" role="status"></p>
</form></main>
""",
        """
  let letter = null
  $('pick').addEventListener('click', () => $('letter').click())
  $('letter').addEventListener('change', () => {
    letter = $('letter').files[0] || null
    $('picked').textContent = letter ? letter.name : 'nothing added'
  })
  $('apply').addEventListener('submit', async event => {
    event.preventDefault()
    const cv = $('cv').files[0]
    if (!cv || !letter) { $('said').textContent = 'Both files are needed.'; return }
    const texts = [await cv.text(), await letter.text()]
    $('said').textContent = `${cv.name} and ${letter.name} are sent.`
    report(cv.name === 'cv.txt' && letter.name === 'letter.txt' &&
      texts[0].includes('Ann Lee') && texts[1].includes('Dear'))
  })
""",
        ".dropzone { border: 2px dashed #c3cad3; border-radius: 8px; padding: 16px }",
    ),
    steps=(
        ("upload", "button", "Curriculum vitae", "cv.txt"),
        ("upload", "button", "Add cover letter", "letter.txt"),
        ("click", "button", "Send application"),
    ),
    uploads={
        "cv.txt": "Ann Lee\nPilot since 2011\n",
        "letter.txt": "Dear harbour master,\nI should like to work for you.\n",
        "old-cv.txt": "Ann Lee\nPilot until 2011\n",
    },
)

# What is chosen otherwise than in a native field

DATE_PICKER = Task(
    name="date_picker",
    goal="Search for flights on 14 January 2027.",
    solved="done: flights on 2027-01-14",
    html=_page(
        "Flights - Airmeet",
        "done: flights on 2027-01-14",
        """
<main class="container"><div class="card">
  <h1>Find a flight</h1>
  <div class="field picker"><label for="day">Departure date</label>
    <input id="day" readonly placeholder="Choose a day" aria-haspopup="dialog">
    <button type="button" id="open" aria-label="Open calendar">📅</button>
    <div id="calendar" role="dialog" aria-label="Choose a day" hidden>
      <div class="bar"><button type="button" id="back" aria-label="Previous month">&lsaquo;</button>
        <strong id="month" aria-live="polite"></strong>
        <button type="button" id="next" aria-label="Next month">&rsaquo;</button></div>
      <table role="grid" aria-labelledby="month"><thead><tr>
        <th abbr="Monday">Mo</th><th abbr="Tuesday">Tu</th><th abbr="Wednesday">We</th>
        <th abbr="Thursday">Th</th><th abbr="Friday">Fr</th><th abbr="Saturday">Sa</th>
        <th abbr="Sunday">Su</th></tr></thead><tbody id="days"></tbody></table>
    </div></div>
  <button id="search" class="primary">Search flights</button>
  <p id="said" role="status"></p>
</div></main>
""",
        """
  const today = Date.UTC(2026, 10, 20)  // so that the page is the same on each day
  let shown = {year: 2026, month: 10}
  let chosen = ''
  const say = (time, options) =>
    new Date(time).toLocaleDateString('en-GB', {timeZone: 'UTC', ...options})
  const draw = () => {
    const first = Date.UTC(shown.year, shown.month, 1)
    $('month').textContent = say(first, {month: 'long', year: 'numeric'})
    $('back').disabled = shown.year === 2026 && shown.month === 10
    const begin = first - ((new Date(first).getUTCDay() + 6) % 7) * 864e5
    let rows = ''
    for (let week = 0; week < 6; week++) {
      rows += '<tr>'
      for (let day = 0; day < 7; day++) {
        const time = begin + (week * 7 + day) * 864e5
        const date = new Date(time)
        if (date.getUTCMonth() !== shown.month) { rows += '<td></td>'; continue }
        const label = say(time, {day: 'numeric', month: 'long', year: 'numeric'})
        rows += `<td role="gridcell"><button type="button" aria-label="${label}"
          data-iso="${date.toISOString().slice(0, 10)}" ${time < today ? 'disabled' : ''}>
          ${date.getUTCDate()}</button></td>`
      }
      rows += '</tr>'
    }
    $('days').innerHTML = rows
  }
  const turn = by => {
    const date = new Date(Date.UTC(shown.year, shown.month + by, 1))
    shown = {year: date.getUTCFullYear(), month: date.getUTCMonth()}
    draw()
  }
  const open = () => { $('calendar').hidden = false; draw() }
  $('day').addEventListener('click', open)
  $('open').addEventListener('click', open)
  $('back').addEventListener('click', () => turn(-1))
  $('next').addEventListener('click', () => turn(1))
  $('days').addEventListener('click', event => {
    const button = event.target.closest('button')
    if (!button) return
    chosen = button.dataset.iso
    $('day').value = button.getAttribute('aria-label')
    $('calendar').hidden = true
  })
  document.addEventListener('keydown', event => {
    if (event.key === 'Escape') $('calendar').hidden = true
  })
  $('search').addEventListener('click', () => {
    $('said').textContent = chosen ? `Flights on ${$('day').value}` : 'Choose a day first.'
    report(chosen === '2027-01-14')
  })
""",
        """
  .picker { position: relative }
  #calendar { position: absolute; z-index: 5; background: #fff; border: 1px solid #c3cad3;
              border-radius: 8px; padding: 12px; box-shadow: 0 6px 24px #0003 }
  .bar { display: flex; justify-content: space-between; align-items: center }
  #days button { width: 40px; padding: 6px 0; border-color: transparent }
""",
    ),
    steps=(
        ("click", "button", "Open calendar"),
        ("click", "button", "Next month"),
        ("click", "button", "Next month"),
        ("click", "button", "14 January 2027"),
        ("click", "button", "Search flights"),
    ),
)

AUTOCOMPLETE = Task(
    name="autocomplete",
    goal="Save Springfield in Missouri as the home town of the profile.",
    solved="done: home town is 4003",
    html=_page(
        "Profile - Townsquare",
        "done: home town is 4003",
        """
<main class="container"><form class="card" id="profile" autocomplete="off">
  <h1>Your profile</h1>
  <div class="field combo"><label for="town" id="town-label">Home town</label>
    <input id="town" role="combobox" aria-autocomplete="list" aria-expanded="false"
      aria-controls="towns" placeholder="Begin to type">
    <div id="towns" role="listbox" aria-labelledby="town-label" hidden></div></div>
  <button class="primary">Save profile</button>
  <p id="said" role="status"></p>
</form></main>
""",
        """
  const towns = [[4001, 'Springfield, Illinois'], [4002, 'Springfield, Massachusetts'],
    [4003, 'Springfield, Missouri'], [4004, 'Springfield, Oregon'], [4101, 'Spring Hill, Florida'],
    [4102, 'Springdale, Arkansas'], [4201, 'Oslo, Norway']]
  let chosen = 0, timer = 0, asked = 0
  const show = found => {
    $('towns').innerHTML = found.map(([id, name]) =>
      `<div role="option" id="town-${id}" data-id="${id}" aria-selected="false">${name}</div>`
    ).join('') || '<div role="option" aria-disabled="true" aria-selected="false">Nothing</div>'
    $('towns').hidden = false
    $('town').setAttribute('aria-expanded', 'true')
  }
  const hide = () => { $('towns').hidden = true; $('town').setAttribute('aria-expanded', 'false') }
  $('town').addEventListener('input', () => {
    chosen = 0
    hide()
    clearTimeout(timer)
    const words = $('town').value.trim().toLowerCase()
    const mine = ++asked
    if (words.length < 3) return
    timer = setTimeout(() => setTimeout(() => {  // the pause, and then the way to the server
      if (mine === asked) show(towns.filter(each => each[1].toLowerCase().startsWith(words)))
    }, 250), 300)
  })
  $('town').addEventListener('blur', () => setTimeout(hide, 150))
  $('towns').addEventListener('mousedown', event => event.preventDefault())
  $('towns').addEventListener('click', event => {
    const option = event.target.closest('[data-id]')
    if (!option) return
    chosen = Number(option.dataset.id)
    $('town').value = option.textContent
    hide()
  })
  $('profile').addEventListener('submit', event => {
    event.preventDefault()
    $('said').textContent = chosen ? 'Saved.' : 'Choose a town of the list.'
    report(chosen === 4003)
  })
""",
        """
  .combo { position: relative; width: 340px }
  .combo input { width: 100% }
  [role=listbox] { position: absolute; z-index: 5; width: 100%; background: #fff;
                   border: 1px solid #c3cad3; box-shadow: 0 4px 16px #0002 }
  [role=option] { padding: 8px 12px; cursor: pointer }
  [role=option]:hover { background: #e8eef5 }
""",
    ),
    steps=(
        ("type", "combobox", "Home town", "Springf"),
        ("wait", "Springfield, Missouri"),
        ("click", "option", "Springfield, Missouri"),
        ("click", "button", "Save profile"),
    ),
)

CUSTOM_LISTBOX = Task(
    name="custom_listbox",
    goal="Set the delivery to express and the language to Norwegian, and apply the settings.",
    solved="done: express in Norwegian",
    html=_page(
        "Settings - Parcelhub",
        "done: express in Norwegian",
        """
<main class="container"><div class="card">
  <h1>Settings</h1>
  <div class="field"><span class="label" id="speed-label">Delivery</span>
    <div class="dropdown" id="speed" role="combobox" tabindex="0" aria-haspopup="listbox"
      aria-expanded="false" aria-labelledby="speed-label"
      data-options="Economy|Standard|Express|Express before 9"><span>Standard</span></div></div>
  <div class="field"><span class="label" id="tongue-label">Language</span>
    <div class="dropdown" id="tongue" role="combobox" tabindex="0" aria-haspopup="listbox"
      aria-expanded="false" aria-labelledby="tongue-label"
      data-options="English|Danish|Norwegian|Swedish"><span>English</span></div></div>
  <button id="apply" class="primary">Apply</button>
  <p id="said" role="status"></p>
</div></main>
""",
        """
  let list = null  // it stands at the end of the body, as the libraries have it
  const close = () => {
    if (!list) return
    list.owner.setAttribute('aria-expanded', 'false')
    list.remove()
    list = null
  }
  const open = box => {
    close()
    const place = box.getBoundingClientRect()
    list = document.createElement('div')
    list.owner = box
    list.className = 'floating'
    list.style.cssText = `left:${place.left + scrollX}px; top:${place.bottom + scrollY + 4}px`
    list.innerHTML = `<div role="listbox" aria-labelledby="${box.id}-label">` +
      box.dataset.options.split('|').map(each => `<div role="option" tabindex="-1"
        aria-selected="${each === box.textContent.trim()}">${each}</div>`).join('') + '</div>'
    list.addEventListener('click', event => {
      const option = event.target.closest('[role=option]')
      if (!option) return
      box.firstElementChild.textContent = option.textContent
      close()
    })
    document.body.append(list)
    box.setAttribute('aria-expanded', 'true')
  }
  for (const box of document.querySelectorAll('.dropdown')) {
    box.addEventListener('click', () => list && list.owner === box ? close() : open(box))
    box.addEventListener('keydown', event => {
      if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); open(box) }
      if (event.key === 'Escape') close()
    })
  }
  document.addEventListener('mousedown', event => {
    if (list && !list.contains(event.target) && !list.owner.contains(event.target)) close()
  })
  $('apply').addEventListener('click', () => {
    const [speed, tongue] = ['speed', 'tongue'].map(id => $(id).textContent.trim())
    $('said').textContent = `${speed}, ${tongue}`
    report(speed === 'Express' && tongue === 'Norwegian')
  })
""",
        """
  .label { display: block; font-weight: 600 }
  .dropdown { width: 260px; padding: 9px 12px; border: 1px solid #c3cad3; border-radius: 6px;
              cursor: pointer }
  .floating { position: absolute; width: 260px; background: #fff; border: 1px solid #c3cad3;
              box-shadow: 0 4px 16px #0002; z-index: 20 }
  [role=option] { padding: 8px 12px; cursor: pointer }
  [role=option][aria-selected=true] { background: #e8eef5 }
""",
    ),
    steps=(
        ("click", "combobox", "Delivery"),
        ("click", "option", "Express"),
        ("click", "combobox", "Language"),
        ("click", "option", "Norwegian"),
        ("click", "button", "Apply"),
    ),
)

HOVER_MENU = Task(
    name="hover_menu",
    goal="Open the category of watering cans, which is in the garden products.",
    solved="done: category watering cans",
    html=_page(
        "Hearth & Hedge",
        "done: category watering cans",
        """
<header class="site-header"><nav aria-label="Main"><ul class="bar">
  <li><button type="button" aria-haspopup="true">Products</button>
    <ul class="sub">
      <li><a href="#kitchen">Kitchen</a>
        <ul class="sub side"><li><a href="#kettles">Kettles</a></li>
          <li><a href="#watering-cans-indoor">Small watering cans</a></li></ul></li>
      <li><a href="#garden">Garden</a>
        <ul class="sub side"><li><a href="#shears">Shears</a></li>
          <li><a href="#watering-cans">Watering cans</a></li></ul></li>
    </ul></li>
  <li><button type="button" aria-haspopup="true">Service</button>
    <ul class="sub"><li><a href="#returns">Returns</a></li></ul></li>
</ul></nav></header>
<main class="container"><div class="card"><h1 id="category">Welcome</h1></div></main>
""",
        """
  document.querySelector('nav').addEventListener('click', event => {
    const link = event.target.closest('a')
    if (!link) return
    event.preventDefault()
    $('category').textContent = link.textContent
    report(link.hash === '#watering-cans')
  })
""",
        """
  .bar, .sub { list-style: none; margin: 0; padding: 0 }
  .bar { display: flex; gap: 12px }
  .bar li { position: relative }
  .sub { position: absolute; top: 100%; left: 0; min-width: 190px; background: #fff;
         border: 1px solid #c3cad3; visibility: hidden; opacity: 0; transition: opacity .15s;
         z-index: 9 }
  .sub.side { top: 0; left: 100% }
  .site-header .sub a { display: block; color: #1d2430; padding: 9px 14px; margin: 0 }
  li:hover > .sub { visibility: visible; opacity: 1 }
""",
    ),
    steps=(
        ("hover", "button", "Products"),
        ("hover", "link", "Garden"),
        ("click", "link", "Watering cans"),
    ),
)

KEYBOARD_WIDGET = Task(
    name="keyboard_widget",
    goal="Choose the seat C4 in the plan, which reacts to the keyboard only.",
    solved="done: seat C4",
    html=_page(
        "Seats - Stage Door",
        "done: seat C4",
        """
<main class="container"><div class="card">
  <h1>Choose a seat</h1>
  <p id="help">Arrow keys move, Enter chooses.</p>
  <div id="plan" role="grid" tabindex="0" aria-label="Seats" aria-describedby="help"></div>
  <p id="said" role="status">No seat chosen</p>
</div></main>
""",
        """
  const taken = ['B2', 'C3', 'D4']
  let row = 0, column = 0, chosen = ''
  const id = (r, c) => 'ABCDE'[r] + (c + 1)
  const draw = () => {
    $('plan').innerHTML = [0, 1, 2, 3, 4].map(r => '<div role="row">' + [0, 1, 2, 3, 4, 5].map(c => {
      const name = id(r, c), gone = taken.includes(name)
      return `<span role="gridcell" id="seat-${name}" aria-disabled="${gone}"
        aria-selected="${name === chosen}" class="${r === row && c === column ? 'at' : ''}"
        aria-label="Seat ${name}${gone ? ', taken' : ''}">${name}</span>`
    }).join('') + '</div>').join('')
    $('plan').setAttribute('aria-activedescendant', 'seat-' + id(row, column))
  }
  $('plan').addEventListener('keydown', event => {
    const moves = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}
    const move = moves[event.key]
    if (!move && event.key !== 'Enter') return
    event.preventDefault()
    if (move) {
      row = Math.min(4, Math.max(0, row + move[0]))
      column = Math.min(5, Math.max(0, column + move[1]))
    } else if (!taken.includes(id(row, column))) {
      chosen = id(row, column)
      $('said').textContent = `Seat ${chosen} chosen`
    }
    draw()
    report(chosen === 'C4')
  })
  draw()
""",  # noqa: E501
        """
  [role=row] { display: flex }
  [role=gridcell] { width: 48px; margin: 3px; padding: 9px; text-align: center;
                    background: #e8eef5; border: 2px solid transparent }
  [role=gridcell][aria-disabled=true] { color: #a8b1bc }
  [role=gridcell][aria-selected=true] { background: #2e8b57; color: #fff }
  [role=grid]:focus .at { border-color: #16324f }
""",
    ),
    steps=(
        ("click", "grid", "Seats"),
        ("press", "ArrowDown"),
        ("press", "ArrowDown"),
        ("press", "ArrowRight"),
        ("press", "ArrowRight"),
        ("press", "ArrowRight"),
        ("press", "Enter"),
    ),
)

RICH_TEXT = Task(
    name="rich_text",
    goal="Post the comment 'Meeting moved to Friday', all of it in bold.",
    solved="done: bold comment posted",
    html=_page(
        "Thread - Huddle",
        "done: bold comment posted",
        """
<main class="container"><div class="card">
  <h1>Staff meeting</h1>
  <div class="editor">
    <div role="toolbar" aria-label="Formatting">
      <button type="button" data-command="bold" aria-pressed="false">Bold</button>
      <button type="button" data-command="italic" aria-pressed="false">Italic</button>
      <button type="button" data-command="insertUnorderedList">List</button></div>
    <div id="text" contenteditable="true" role="textbox" aria-multiline="true"
      aria-label="Comment"><p><br></p></div></div>
  <button id="post" class="primary">Post</button>
  <div id="thread" aria-live="polite"></div>
</div></main>
""",
        """
  const buttons = [...document.querySelectorAll('[data-command]')]
  for (const button of buttons) {
    button.addEventListener('mousedown', event => event.preventDefault())
    button.addEventListener('click', () => document.execCommand(button.dataset.command))
  }
  document.addEventListener('selectionchange', () => {
    for (const button of buttons) {
      const on = document.queryCommandState(button.dataset.command)
      if (button.hasAttribute('aria-pressed')) button.setAttribute('aria-pressed', String(on))
    }
  })
  const texts = () => {
    const walker = document.createTreeWalker($('text'), NodeFilter.SHOW_TEXT)
    const found = []
    while (walker.nextNode()) if (walker.currentNode.data.trim()) found.push(walker.currentNode)
    return found
  }
  $('post').addEventListener('click', () => {
    const parts = texts()
    const said = parts.map(each => each.data).join('').replace(/\\s+/g, ' ').trim()
    if (!said) return
    const style = each => getComputedStyle(each.parentElement)
    const bold = parts.every(each => Number(style(each).fontWeight) >= 600)
    const slanted = parts.some(each => style(each).fontStyle === 'italic')
    const listed = !!$('text').querySelector('li')
    report(said === 'Meeting moved to Friday' && bold && !slanted && !listed)
    $('thread').insertAdjacentHTML('beforeend', `<article>${$('text').innerHTML}</article>`)
    $('text').innerHTML = '<p><br></p>'
  })
""",
        """
  .editor { border: 1px solid #c3cad3; border-radius: 6px; margin-bottom: 12px }
  [role=toolbar] { border-bottom: 1px solid #d8dee6; padding: 6px }
  [aria-pressed=true] { background: #d8e4f0 }
  #text { min-height: 120px; padding: 12px; outline: none }
""",
    ),
    steps=(
        ("type", "textbox", "Comment", "Meeting moved to Friday"),
        ("press", "Control+a"),
        ("click", "button", "Bold"),
        ("click", "button", "Post"),
    ),
)

# Long and late content

ENDLESS_LIST = Task(
    name="endless_list",
    goal="Save the Hagen teapot, which stands far down in the list of things for sale.",
    solved="done: Hagen teapot saved",
    html=_page(
        "For sale - Attic",
        "done: Hagen teapot saved",
        """
<header class="site-header"><a href="#">Attic</a></header>
<main class="container">
  <h1>For sale near you</h1>
  <div id="feed" role="feed" aria-busy="false"></div>
  <div id="end" class="end">Loading more …</div>
</main>
""",
        """
  const makers = ['Aalto', 'Berg', 'Claes', 'Dahl', 'Eide', 'Falk', 'Hagen', 'Holm', 'Lund', 'Moen']
  const things = ['lamp', 'chair', 'vase', 'mirror', 'teapot', 'clock', 'rug', 'stool', 'bowl', 'tray']
  const names = makers.flatMap(maker => things.map(thing => `${maker} ${thing}`))
  const saved = new Set()
  let count = 0, busy = false
  const load = () => {
    busy = true
    $('feed').setAttribute('aria-busy', 'true')
    setTimeout(() => {
      const html = names.slice(count, count + 20).map((name, n) => `<article class="card"
        aria-labelledby="t${count + n}" aria-posinset="${count + n + 1}" aria-setsize="-1">
        <h2 id="t${count + n}">${name}</h2><button data-name="${name}" aria-pressed="false"
        aria-label="Save ${name}">♡ Save</button></article>`).join('')
      $('feed').insertAdjacentHTML('beforeend', html)
      count += 20
      busy = false
      $('feed').setAttribute('aria-busy', 'false')
      if (count >= names.length) {
        watcher.disconnect()
        $('end').textContent = 'That is all.'
        return
      }
      watcher.unobserve($('end'))
      watcher.observe($('end'))
    }, 300)
  }
  const watcher = new IntersectionObserver(seen => {
    if (seen.some(each => each.isIntersecting) && !busy) load()
  })
  watcher.observe($('end'))
  $('feed').addEventListener('click', event => {
    const button = event.target.closest('button')
    if (!button) return
    const {name} = button.dataset
    saved.has(name) ? saved.delete(name) : saved.add(name)
    button.setAttribute('aria-pressed', String(saved.has(name)))
    report(saved.size === 1 && saved.has('Hagen teapot'))
  })
""",  # noqa: E501
        ".end { padding: 30px; text-align: center } #feed .card { height: 150px }",
    ),
    steps=(
        ("wait", "Berg tray"),
        ("scroll", "down"),
        ("wait", "Dahl tray"),
        ("scroll", "down"),
        ("wait", "Falk tray"),
        ("scroll", "down"),
        ("wait", "Holm tray"),
        ("click", "button", "Save Hagen teapot"),
    ),
)

VIRTUAL_LIST = Task(
    name="virtual_list",
    goal="Star Nora Quist, and nobody else, in the list of contacts.",
    solved="done: Nora Quist starred",
    html=_page(
        "Contacts - Rolodesk",
        "done: Nora Quist starred",
        """
<main class="container"><div class="card">
  <h1>Contacts (288)</h1>
  <div id="window" class="window"><div id="rows" role="list" aria-label="Contacts"></div></div>
  <p id="said" role="status">Nobody is starred</p>
</div></main>
""",
        """
  const first = ['Ada', 'Bea', 'Carl', 'Dora', 'Egon', 'Finn', 'Gerd', 'Hans', 'Ida', 'Jon', 'Kari',
    'Liv', 'Mona', 'Nora', 'Ola', 'Per', 'Rita', 'Sara', 'Tore', 'Ulf', 'Vera', 'Wim', 'Yngve', 'Zoe']
  const last = ['Aas', 'Brun', 'Dale', 'Foss', 'Holt', 'Lie', 'Moe', 'Quinn', 'Quist', 'Ruud',
    'Strand', 'Vik']
  const names = first.flatMap(one => last.map(other => `${one} ${other}`))
  const HEIGHT = 44, POOL = 14
  const starred = new Set()
  $('rows').style.height = `${names.length * HEIGHT}px`
  const pool = Array.from({length: POOL}, () => {  // the nodes are used again and again
    const row = document.createElement('div')
    row.className = 'contact'
    row.setAttribute('role', 'listitem')
    row.innerHTML = '<span></span><button></button>'
    $('rows').append(row)
    return row
  })
  const draw = () => {
    const begin = Math.max(0, Math.floor($('window').scrollTop / HEIGHT) - 2)
    for (let n = begin; n < begin + POOL; n++) {
      const row = pool[n % POOL], name = names[n]
      row.hidden = !name
      if (!name) continue
      row.style.transform = `translateY(${n * HEIGHT}px)`
      row.setAttribute('aria-posinset', n + 1)
      row.setAttribute('aria-setsize', names.length)
      row.firstChild.textContent = name
      row.lastChild.textContent = starred.has(name) ? '★' : '☆'
      row.lastChild.setAttribute('aria-label', `Star ${name}`)
      row.lastChild.setAttribute('aria-pressed', String(starred.has(name)))
      row.lastChild.dataset.name = name
    }
  }
  $('window').addEventListener('scroll', () => requestAnimationFrame(draw))
  $('rows').addEventListener('click', event => {
    const name = event.target.dataset.name
    if (!name) return
    starred.has(name) ? starred.delete(name) : starred.add(name)
    $('said').textContent = starred.size ? `Starred: ${[...starred].join(', ')}` : 'Nobody is starred'
    report(starred.size === 1 && starred.has('Nora Quist'))
    draw()
  })
  draw()
""",  # noqa: E501
        """
  .window { height: 400px; overflow-y: auto; border: 1px solid #d8dee6 }
  #rows { position: relative }
  .contact { position: absolute; left: 0; right: 0; height: 44px; padding: 4px 12px;
             display: flex; justify-content: space-between; border-bottom: 1px solid #eef1f4 }
  .contact[hidden] { display: none }
""",
    ),
    steps=(
        ("scroll", ("list", "Contacts"), ("button", "Star Nora Quist")),
        ("click", "button", "Star Nora Quist"),
    ),
)

LAZY_TABS = Task(
    name="lazy_tabs",
    goal="Mark the review that Ola wrote of the kettle as helpful.",
    solved="done: review of Ola is helpful",
    flaky=True,
    html=_page(
        "Kettle K2 - Hearth & Hedge",
        "done: review of Ola is helpful",
        """
<main class="container"><div class="card">
  <h1>Kettle K2</h1>
  <div role="tablist" aria-label="About the kettle" id="tabs">
    <button role="tab" id="tab-1" aria-controls="panel" aria-selected="true">Overview</button>
    <button role="tab" id="tab-2" aria-controls="panel" aria-selected="false"
      tabindex="-1">Specifications</button>
    <button role="tab" id="tab-3" aria-controls="panel" aria-selected="false"
      tabindex="-1">Reviews</button></div>
  <div role="tabpanel" id="panel" aria-labelledby="tab-1" tabindex="0">
    <p>It boils water.</p></div>
</div></main>
""",
        """
  const still = {'tab-1': '<p>It boils water.</p>', 'tab-2': '<p>1.7 l, 2200 W</p>'}
  const tabs = [...$('tabs').children]
  let open = 'tab-1'
  const load = async () => {
    $('panel').innerHTML = '<p role="status" aria-busy="true">Loading reviews …</p>'
    const answer = await fetch('/flaky', {cache: 'no-store'}).catch(() => null)
    const reviews = answer && answer.ok ? await answer.json() : null
    if (open !== 'tab-3') return
    $('panel').innerHTML = reviews
      ? '<ul>' + reviews.map(each => `<li><p><b>${each.author}</b>: ${each.text}</p>
          <button data-author="${each.author}" aria-pressed="false"
          aria-label="Helpful: review by ${each.author}">Helpful</button></li>`).join('') + '</ul>'
      : '<div role="alert">The reviews could not be loaded. <button id="retry">Retry</button></div>'
  }
  const choose = tab => {
    open = tab.id
    for (const each of tabs) {
      each.setAttribute('aria-selected', String(each === tab))
      each.tabIndex = each === tab ? 0 : -1
    }
    $('panel').setAttribute('aria-labelledby', tab.id)
    if (still[tab.id]) $('panel').innerHTML = still[tab.id]
    else load()
  }
  for (const tab of tabs) tab.addEventListener('click', () => choose(tab))
  $('panel').addEventListener('click', event => {
    if (event.target.id === 'retry') return load()
    if (!event.target.dataset.author) return
    const pressed = event.target.getAttribute('aria-pressed') === 'true'
    event.target.setAttribute('aria-pressed', String(!pressed))
    const marked = [...$('panel').querySelectorAll('[aria-pressed=true]')]
    report(marked.map(each => each.dataset.author).join() === 'Ola')
  })
""",
        """
  [role=tab] { border-radius: 6px 6px 0 0; border-bottom: none }
  [role=tab][aria-selected=true] { background: #d8e4f0 }
  [role=tabpanel] { border: 1px solid #d8dee6; padding: 16px; min-height: 140px }
""",
    ),
    steps=(
        ("click", "tab", "Reviews"),
        ("wait", "could not be loaded"),
        ("click", "button", "Retry"),
        ("wait", "Boils in three minutes."),
        ("click", "button", "Helpful: review by Ola"),
    ),
)

PAGED_RESULTS = Task(
    name="paged_results",
    goal="Put the copper kettle of 1.2 l, which is on the third page of results, into the cart.",
    solved="done: 1 kettle in the cart",
    html=_page(
        "Kettles - Hearth & Hedge",
        "done: 1 kettle in the cart",
        """
<header class="site-header sticky"><h1>Kettles</h1><div id="cart" role="status">Cart: empty</div>
</header>
<main class="container"><div id="results"></div>
  <nav aria-label="Pages" class="pager"><button id="back">Previous page</button>
    <span id="where"></span><button id="next">Next page</button></nav>
</main>
<footer class="sticky-footer">Free delivery over 50 €</footer>
""",
        """
  const goods = ['Steel kettle, 1.2 l', 'Steel kettle, 1.7 l', 'Glass kettle, 1.2 l',
    'Stove kettle', 'Red kettle', 'Blue kettle', 'Tiny kettle', 'Camping kettle',
    'Copper kettle, 0.8 l', 'Whistling kettle', 'Grey kettle', 'Gooseneck kettle',
    'Green kettle', 'Travel kettle', 'Copper kettle, 1.2 l', 'Copper kettle, 2 l',
    'Iron kettle', 'Silent kettle']
  let page = 0
  const cart = []
  const draw = () => {
    $('results').innerHTML = goods.slice(page * 6, page * 6 + 6).map((name, n) => `
      <article class="card product" aria-labelledby="p${n}"><h2 id="p${n}">${name}</h2>
      <p>On stock</p><button data-name="${name}">Add to cart</button></article>`).join('')
    $('where').textContent = `Page ${page + 1} of 3`
    $('back').disabled = page === 0
    $('next').disabled = page === 2
  }
  const turn = by => { page += by; $('results').innerHTML = '<p>…</p>'; setTimeout(draw, 150) }
  $('back').addEventListener('click', () => turn(-1))
  $('next').addEventListener('click', () => turn(1))
  $('results').addEventListener('click', event => {
    const name = event.target.dataset.name
    if (!name) return
    cart.push(name)
    $('cart').textContent = `Cart: ${cart.join('; ')}`
    report(cart.length === 1 && cart[0] === 'Copper kettle, 1.2 l')
  })
  draw()
""",
        """
  .sticky { position: sticky; top: 0; z-index: 10; height: 150px }
  .sticky-footer { position: fixed; bottom: 0; left: 0; right: 0; background: #fff; padding: 14px;
                   border-top: 1px solid #c3cad3 }
  .product { min-height: 420px }
  .pager { display: flex; gap: 16px; padding-bottom: 90px }
""",
    ),
    steps=(
        ("click", "button", "Next page"),
        ("wait", "Page 2 of 3"),
        ("click", "button", "Next page"),
        ("wait", "Page 3 of 3"),
        ("click", "button", "Add to cart", ("article", "Copper kettle, 1.2 l")),
    ),
)

ORDER_TABLE = Task(
    name="order_table",
    goal="Sort the orders by their total, the smallest first, and then delete the order of Maria"
    " Lopez.",
    solved="done: order 1043 deleted",
    html=_page(
        "Orders - Backroom",
        "done: order 1043 deleted",
        """
<main class="container"><div class="card">
  <h1>Orders</h1>
  <table><thead><tr>
    <th scope="col" data-key="id"><button>Order</button></th>
    <th scope="col" data-key="who"><button>Customer</button></th>
    <th scope="col" data-key="total"><button>Total</button></th>
    <th scope="col"><span class="sr-only">Actions</span></th></tr></thead>
    <tbody id="body"></tbody></table>
  <div id="ask" role="alertdialog" aria-modal="true" aria-labelledby="question" hidden>
    <p id="question"></p><button id="keep">Keep it</button>
    <button id="sure" class="primary">Yes, delete</button></div>
</div></main>
""",
        """
  let orders = [{id: 1041, who: 'Mario Lopes', total: 310}, {id: 1042, who: 'Ann Lee', total: 75},
    {id: 1043, who: 'Maria Lopez', total: 120}, {id: 1044, who: 'Maria Lind', total: 48},
    {id: 1045, who: 'Tom Ray', total: 205}]
  let key = 'id', way = 1, asked = 0
  const removed = []
  const draw = () => {
    orders.sort((a, b) => (a[key] < b[key] ? -1 : 1) * way)
    $('body').innerHTML = orders.map(each => `<tr><td>${each.id}</td><td>${each.who}</td>
      <td>${each.total} €</td><td><button data-id="${each.id}"
      aria-label="Delete order ${each.id}">🗑</button></td></tr>`).join('')
    for (const head of document.querySelectorAll('th[data-key]')) {
      const sort = head.dataset.key !== key ? 'none' : way > 0 ? 'ascending' : 'descending'
      head.setAttribute('aria-sort', sort)
    }
  }
  document.querySelector('thead').addEventListener('click', event => {
    const head = event.target.closest('th[data-key]')
    if (!head) return
    way = head.dataset.key === key ? -way : 1
    key = head.dataset.key
    draw()
  })
  $('body').addEventListener('click', event => {
    const button = event.target.closest('[data-id]')
    if (!button) return
    asked = Number(button.dataset.id)
    $('question').textContent = `Delete the order ${asked}?`
    $('ask').hidden = false
    $('keep').focus()
  })
  $('keep').addEventListener('click', () => { $('ask').hidden = true })
  $('sure').addEventListener('click', () => {
    $('ask').hidden = true
    orders = orders.filter(each => each.id !== asked)
    removed.push(`${asked} ${key} ${way}`)
    draw()
    report(removed.join() === '1043 total 1')
  })
  draw()
""",
        """
  table { width: 100%; border-collapse: collapse }
  td, th { text-align: left; padding: 8px; border-bottom: 1px solid #e4e9ee }
  th button { border: none; padding: 0; font-weight: 600 }
  [role=alertdialog] { position: fixed; top: 30%; left: 50%; transform: translateX(-50%);
    background: #fff; padding: 20px; border: 1px solid #c3cad3; box-shadow: 0 0 0 100vmax #0006 }
""",
    ),
    steps=(
        ("click", "button", "Total"),
        ("click", "button", "Delete order 1043"),
        ("click", "button", "Yes, delete"),
    ),
)

# What is done with the mouse

DRAG_BETWEEN_LISTS = Task(
    name="drag_between_lists",
    goal="Move Milk and Eggs, and nothing else, from the list 'To buy' to the list 'Bought'.",
    solved="done: 2 things bought",
    html=_page(
        "Shopping - Pantry",
        "done: 2 things bought",
        """
<main class="container"><div class="board">
  <section class="card"><h2 id="h-buy">To buy</h2><ul id="buy" aria-labelledby="h-buy">
    <li draggable="true">Milk</li><li draggable="true">Bread</li>
    <li draggable="true">Eggs</li><li draggable="true">Egg noodles</li></ul></section>
  <section class="card"><h2 id="h-done">Bought</h2>
    <ul id="bought" aria-labelledby="h-done"></ul></section>
</div></main>
""",
        """
  let held = null
  document.addEventListener('dragstart', event => {
    held = event.target.closest('li')
    event.dataTransfer.setData('text/plain', held.textContent)
    event.dataTransfer.effectAllowed = 'move'
    setTimeout(() => held && held.classList.add('held'))
  })
  document.addEventListener('dragend', () => {
    if (held) held.classList.remove('held')
    held = null
  })
  for (const list of [$('buy'), $('bought')]) {
    list.addEventListener('dragover', event => {
      event.preventDefault()
      event.dataTransfer.dropEffect = 'move'
    })
    list.addEventListener('drop', event => {
      event.preventDefault()
      if (!held || event.dataTransfer.getData('text/plain') !== held.textContent) return
      list.append(held)
      const bought = [...$('bought').children].map(each => each.textContent).sort()
      report(bought.join() === 'Eggs,Milk')
    })
  }
""",
        """
  .board { display: flex; gap: 20px }
  .board section { flex: 1 }
  ul { list-style: none; padding: 8px; min-height: 260px; border: 2px dashed #d8dee6 }
  li { padding: 10px; margin-bottom: 8px; background: #e8eef5; border-radius: 6px; cursor: grab }
  li.held { opacity: .4 }
""",
    ),
    steps=(
        ("drag", ("listitem", "Milk"), ("list", "Bought")),
        ("drag", ("listitem", "Eggs"), ("list", "Bought")),
    ),
)

SORTABLE_LIST = Task(
    name="sortable_list",
    goal="Bring the tasks into an order where 'Buy stamps' is the first and 'Water plants' the"
    " last.",
    solved="done: tasks in order",
    html=_page(
        "Tasks - Dayplan",
        "done: tasks in order",
        """
<main class="container"><div class="card">
  <h1>Today</h1>
  <ol id="tasks" aria-label="Tasks">
    <li><button class="handle" aria-label="Move Water plants">⠿</button> Water plants</li>
    <li><button class="handle" aria-label="Move Pay rent">⠿</button> Pay rent</li>
    <li><button class="handle" aria-label="Move Call the bank">⠿</button> Call the bank</li>
    <li><button class="handle" aria-label="Move Buy stamps">⠿</button> Buy stamps</li>
  </ol>
</div></main>
""",
        """
  let held = null, begin = 0, moving = false
  const names = () => [...$('tasks').children].map(each => each.textContent.replace('⠿', '').trim())
  $('tasks').addEventListener('pointerdown', event => {
    const handle = event.target.closest('.handle')
    if (!handle || event.button !== 0) return
    event.preventDefault()
    held = handle.closest('li')
    begin = event.clientY
  })
  document.addEventListener('pointermove', event => {
    if (!held) return
    if (!moving && Math.abs(event.clientY - begin) < 4) return
    moving = true
    held.classList.add('held')
    const items = [...$('tasks').children]
    const over = items.find(each => {
      const box = each.getBoundingClientRect()
      return each !== held && event.clientY > box.top && event.clientY < box.bottom
    })
    if (!over) return
    if (items.indexOf(held) < items.indexOf(over)) over.after(held)
    else over.before(held)
  })
  document.addEventListener('pointerup', () => {
    if (!held) return
    held.classList.remove('held')
    held = null
    moving = false
    const order = names()
    report(order[0] === 'Buy stamps' && order[3] === 'Water plants')
  })
""",
        """
  #tasks { padding: 0; list-style: none; user-select: none }
  #tasks li { padding: 10px; margin-bottom: 8px; background: #e8eef5; border-radius: 6px }
  .handle { cursor: grab; touch-action: none }
  li.held { box-shadow: 0 4px 14px #0004 }
""",
    ),
    steps=(
        ("drag", ("button", "Move Buy stamps"), ("button", "Move Water plants")),
        ("drag", ("button", "Move Water plants"), ("button", "Move Call the bank")),
    ),
)

MOVING_BUTTON = Task(
    name="moving_button",
    goal="Open the gift and claim it.",
    solved="done: gift claimed",
    html=_page(
        "Your gift - Beanhouse",
        "done: gift claimed",
        """
<main class="container"><div class="card" id="start">
  <h1>A gift for you</h1><button id="show" class="primary">Open the gift</button></div>
  <div id="sheet" role="dialog" aria-label="Your gift" hidden>
    <p>One bag of coffee</p>
    <button id="claim" class="primary">Claim the gift</button>
    <button id="refuse">No, thanks</button></div>
  <p id="said" role="status"></p>
</main>
""",
        """
  // While it comes up, what lies where the one button was is the other.
  $('show').addEventListener('click', () => { $('sheet').hidden = false; $('start').remove() })
  const end = (text, reached) => {
    $('sheet').remove()
    $('said').textContent = text
    report(reached)
  }
  $('claim').addEventListener('click', () => end('The coffee is on its way.', true))
  $('refuse').addEventListener('click', () => end('You have refused the gift.', false))
""",
        """
  #sheet { position: fixed; left: 50%; top: 160px; width: 320px; margin-left: -160px;
           background: #fff; border: 1px solid #c3cad3; border-radius: 12px; padding: 20px;
           animation: rise 1.2s linear }
  #sheet[hidden] { display: none }
  #sheet button { display: block; width: 100%; height: 60px; margin: 0 }
  @keyframes rise { from { transform: translateY(300px) } to { transform: none } }
""",
    ),
    steps=(
        ("click", "button", "Open the gift"),
        ("click", "button", "Claim the gift"),
    ),
)

SPREADSHEET = Task(
    name="spreadsheet",
    goal="In the sheet, change the rent from 900 to 950 by a double click on its cell, and delete"
    " the row of the gym through its context menu.",
    solved="done: rent changed and gym deleted",
    html=_page(
        "Budget - Cellwork",
        "done: rent changed and gym deleted",
        """
<main class="container"><div class="card">
  <h1>Budget</h1>
  <table role="grid" aria-label="Budget"><thead><tr><th>Item</th><th>Amount</th></tr></thead>
    <tbody id="body"></tbody></table>
  <ul id="menu" role="menu" aria-label="Row" hidden>
    <li role="menuitem" tabindex="-1" data-do="above">Insert row above</li>
    <li role="menuitem" tabindex="-1" data-do="below">Insert row below</li>
    <li role="menuitem" tabindex="-1" data-do="delete">Delete row</li></ul>
</div></main>
""",
        """
  let rows = [['Rent', '900'], ['Food', '420'], ['Gym', '45'], ['Bus', '60']]
  let at = 0
  const wanted = 'Rent=950;Food=420;Bus=60'
  const draw = () => {
    $('body').innerHTML = rows.map((row, n) => `<tr role="row">${row.map((text, c) =>
      `<td role="gridcell" tabindex="-1" data-row="${n}" data-column="${c}">${text}</td>`
    ).join('')}</tr>`).join('')
    report(rows.map(row => row.join('=')).join(';') === wanted)
  }
  const edit = cell => {
    const {row, column} = cell.dataset
    const name = `${rows[row][0]}, ${column === '0' ? 'item' : 'amount'}`
    cell.innerHTML = `<input aria-label="${name}" value="${rows[row][column]}">`
    const input = cell.firstChild
    let open = true
    const end = keep => {
      if (!open) return
      open = false
      if (keep) rows[row][column] = input.value.trim()
      draw()
    }
    input.focus()
    input.select()
    input.addEventListener('keydown', event => {
      if (event.key === 'Enter') end(true)
      if (event.key === 'Escape') end(false)
    })
    input.addEventListener('blur', () => end(true))
  }
  $('body').addEventListener('dblclick', event => {
    const cell = event.target.closest('td')
    if (cell && event.target.tagName !== 'INPUT') edit(cell)
  })
  $('body').addEventListener('contextmenu', event => {
    const cell = event.target.closest('td')
    if (!cell) return
    event.preventDefault()
    at = Number(cell.dataset.row)
    $('menu').style.cssText = `left:${event.clientX}px; top:${event.clientY}px`
    $('menu').hidden = false
  })
  document.addEventListener('mousedown', event => {
    if (!$('menu').contains(event.target)) $('menu').hidden = true
  })
  $('menu').addEventListener('click', event => {
    const what = event.target.dataset.do
    if (what === 'delete') rows.splice(at, 1)
    else if (what) rows.splice(what === 'above' ? at : at + 1, 0, ['', ''])
    $('menu').hidden = true
    draw()
  })
  draw()
""",
        """
  table { border-collapse: collapse; width: 420px }
  td, th { border: 1px solid #d8dee6; padding: 6px 10px; height: 36px; text-align: left }
  td input { width: 120px }
  #menu { position: fixed; background: #fff; border: 1px solid #c3cad3; margin: 0; padding: 4px;
          list-style: none; box-shadow: 0 4px 16px #0003 }
  #menu li { padding: 8px 16px; cursor: default }
  #menu li:hover { background: #e8eef5 }
""",
    ),
    steps=(
        ("doubleclick", "gridcell", "900"),
        ("type", "textbox", "Rent, amount", "950"),
        ("press", "Enter"),
        ("rightclick", "gridcell", "Gym"),
        ("click", "menuitem", "Delete row"),
    ),
)

SVG_MAP = Task(
    name="svg_map",
    goal="Reserve a bike at the station 'Fish Market' on the map.",
    solved="done: bike at Fish Market reserved",
    html=_page(
        "Stations - Citybike Bergen",
        "done: bike at Fish Market reserved",
        """
<main class="container"><div class="card">
  <h1>Stations</h1>
  <div class="map"><svg viewBox="0 0 600 360" role="group" aria-label="Map of the stations">
    <rect width="600" height="360" fill="#dfeaf2"/>
    <g id="layer">
      <path d="M0 300 C150 240 260 330 600 210 V360 H0 Z" fill="#c9dcc2"/>
      <g id="cluster" class="pin" role="button" tabindex="0" aria-label="3 stations, zoom in">
        <circle cx="300" cy="180" r="20"/><text x="300" y="185">3</text></g>
      <g id="pins"></g>
      <g class="pin" role="button" tabindex="0" aria-label="Station Square, 9 bikes" data-n="3">
        <circle cx="470" cy="90" r="10"/></g>
    </g></svg>
    <div class="glass" aria-hidden="true">Citybike</div></div>
  <div id="panel" aria-live="polite"><p>Choose a station.</p></div>
</div></main>
""",
        """
  const stations = ['Fish Market', 'Fish Hall', 'Harbour', 'Station Square']
  const bikes = [4, 2, 0, 9]
  const places = [[285, 172], [300, 190], [315, 174]]
  $('cluster').addEventListener('click', () => {
    $('layer').style.transform = 'translate(-600px, -360px) scale(3)'
    $('cluster').remove()
    $('pins').innerHTML = places.map(([x, y], n) => `<g class="pin" role="button" tabindex="0"
      aria-label="${stations[n]}, ${bikes[n]} bikes" data-n="${n}">
      <circle cx="${x}" cy="${y}" r="5"/></g>`).join('')
  })
  $('layer').addEventListener('click', event => {
    const pin = event.target.closest('[data-n]')
    if (!pin) return
    const n = Number(pin.dataset.n)
    $('panel').innerHTML = `<h2>${stations[n]}</h2><p>${bikes[n]} bikes</p>
      <button class="primary" data-n="${n}" ${bikes[n] ? '' : 'disabled'}>Reserve a bike</button>`
  })
  $('panel').addEventListener('click', event => {
    if (!event.target.matches('button')) return
    const name = stations[Number(event.target.dataset.n)]
    $('panel').innerHTML = `<p>A bike at ${name} is reserved.</p>`
    report(name === 'Fish Market')
  })
""",
        """
  .map { position: relative; height: 360px; overflow: hidden }
  .map svg { width: 600px; height: 360px }
  #layer { transition: transform .4s; transform-origin: 0 0 }
  .pin { cursor: pointer; fill: #b0302f }
  .pin text { fill: #fff; text-anchor: middle }
  .glass { position: absolute; inset: 0; width: 600px; text-align: center; padding-top: 120px;
           font-size: 60px; color: #16324f18; pointer-events: none }
""",
    ),
    steps=(
        ("click", "button", "3 stations, zoom in"),
        ("click", "button", "Fish Market, 4 bikes"),
        ("click", "button", "Reserve a bike"),
    ),
)

# What is in front of the page

COOKIE_BANNER_MODAL = Task(
    name="cookie_banner_modal",
    goal="Refuse all cookies, and join the waiting list with the address ann@example.org.",
    solved="done: ann@example.org waits",
    html=_page(
        "Glow - the lamp that wakes you",
        "done: ann@example.org waits",
        """
<div id="behind">
  <header class="site-header"><a href="#">Glow</a></header>
  <main class="container"><div class="card"><h1>It comes in spring</h1>
    <button id="join" class="primary">Join the waiting list</button>
    <p id="said" role="status"></p></div></main>
</div>
<div id="consent" class="veil" hidden><div role="region" aria-label="Cookies" class="box">
  <p>We and our 842 partners value your privacy.</p>
  <button class="primary" data-all="yes">Accept all</button>
  <button data-all="no">Refuse all</button></div></div>
<div id="modal" class="veil" hidden>
  <div role="dialog" aria-modal="true" aria-labelledby="modal-title" class="box">
    <h2 id="modal-title">Waiting list</h2>
    <form id="list"><div class="field"><label for="address">E-mail</label>
      <input id="address" type="email" required></div>
      <button type="button" id="close">Close</button>
      <button class="primary">Join</button></form></div></div>
""",
        """
  let cookies = ''
  setTimeout(() => { $('consent').hidden = false }, 250)  // the consent service is late
  $('consent').addEventListener('click', event => {
    if (!event.target.dataset.all) return
    cookies = event.target.dataset.all
    $('consent').hidden = true
  })
  const fields = () => [...$('modal').querySelectorAll('input, button')]
  const open = shown => {
    $('modal').hidden = !shown
    $('behind').toggleAttribute('inert', shown)
    shown ? $('address').focus() : $('join').focus()
  }
  $('join').addEventListener('click', () => open(true))
  $('close').addEventListener('click', () => open(false))
  document.addEventListener('focusin', event => {
    if (!$('modal').hidden && !$('modal').contains(event.target)) $('address').focus()
  })
  $('modal').addEventListener('keydown', event => {
    if (event.key === 'Escape') return open(false)
    if (event.key !== 'Tab') return
    const all = fields(), edge = event.shiftKey ? all[0] : all[all.length - 1]
    if (document.activeElement !== edge) return
    event.preventDefault()
    all[event.shiftKey ? all.length - 1 : 0].focus()
  })
  $('list').addEventListener('submit', event => {
    event.preventDefault()
    const address = $('address').value
    open(false)
    $('said').textContent = `${address} is on the list.`
    report(cookies === 'no' && address === 'ann@example.org')
  })
""",
        """
  .veil { position: fixed; inset: 0; background: #0008; display: flex; align-items: center;
          justify-content: center; z-index: 50 }
  .veil[hidden] { display: none }
  .box { background: #fff; padding: 24px; border-radius: 10px; width: 380px }
""",
    ),
    steps=(
        ("wait", "842 partners"),
        ("click", "button", "Refuse all"),
        ("click", "button", "Join the waiting list"),
        ("type", "textbox", "E-mail", "ann@example.org"),
        ("click", "button", "Join"),
    ),
)

SCRIPT_DIALOGS = Task(
    name="script_dialogs",
    goal="Rename the project to Apollo, and clean it up so that the old backups are deleted and the"
    " originals are kept.",
    solved="done: Apollo is clean",
    html=_page(
        "Project - Vault",
        "done: Apollo is clean",
        """
<main class="container"><div class="card">
  <h1 id="name">Untitled 7</h1>
  <p id="state" role="status">3 backups, 12 originals</p>
  <button id="rename">Rename</button> <button id="clean">Clean up</button>
</div></main>
""",
        """
  let backups = 3, originals = 12
  const check = () => {
    $('state').textContent = `${backups} backups, ${originals} originals`
    report($('name').textContent === 'Apollo' && backups === 0 && originals === 12)
  }
  $('rename').addEventListener('click', () => {
    const name = prompt('The new name of the project', $('name').textContent)
    if (name !== null && name.trim()) $('name').textContent = name.trim()
    check()
  })
  $('clean').addEventListener('click', () => {
    if (!confirm('Delete 3 old backups?')) return
    backups = 0
    if (confirm('Delete the 12 originals too?')) originals = 0
    alert('The project is cleaned up.')
    check()
  })
""",
    ),
    steps=(
        ("click", "button", "Rename"),
        ("dialog", "accept", "Apollo"),
        ("click", "button", "Clean up"),
        ("dialog", "accept", ""),
        ("dialog", "dismiss", ""),
        ("dialog", "accept", ""),
    ),
)

# Frames, shadows, tabs

_IN_FRAME = "<!doctype html><html lang='en'><meta charset='utf-8'><style>" + _STYLE + "</style>"

NESTED_FRAMES = Task(
    name="nested_frames",
    goal="Pay for the delivery to 5 Quay Street, Bergen, with the card 4000 1234 5678 9010 that"
    " expires in 12/29.",
    solved="done: paid and sent to Bergen",
    html=_page(
        "Checkout - Nordic Books",
        "done: paid and sent to Bergen",
        """
<main class="container"><div class="card"><h1>Checkout</h1>
  <iframe title="Delivery" src="/task/nested_frames/address"></iframe>
  <p id="said" role="status"></p></div></main>
""",
        """
  let address = {}
  addEventListener('message', event => {
    if (event.origin !== location.origin) return
    if (event.data.kind === 'address') address = event.data
    if (event.data.kind !== 'card') return
    const card = event.data.number.replace(/ /g, '') + ' ' + event.data.expires.replace(/ /g, '')
    const whole = address.street && address.town
    $('said').textContent = whole ? 'Your payment has arrived.' : 'The address is missing.'
    report(whole && address.street.trim() === '5 Quay Street' && address.town.trim() === 'Bergen' &&
      card === '4000123456789010 12/29')
  })
""",
        "iframe { width: 100%; height: 520px; border: 1px solid #d8dee6 }",
    ),
    pages={
        "/task/nested_frames/address": _IN_FRAME
        + """<title>Address</title>
<form id="f"><h2>Delivery</h2>
  <div class="field"><label for="street">Street and number</label><input id="street"></div>
  <div class="field"><label for="town">Town</label><input id="town"></div></form>
<iframe title="Card details" src="/task/nested_frames/card"
  style="width: 92%; height: 280px; border: 1px solid #c3cad3"></iframe>
<script>
  const tell = () => top.postMessage({kind: 'address', street: document.getElementById('street').value,
    town: document.getElementById('town').value}, location.origin)
  document.getElementById('f').addEventListener('input', tell)
</script>""",  # noqa: E501
        "/task/nested_frames/card": _IN_FRAME
        + """<title>Card</title>
<form id="f"><h2>Card</h2>
  <div class="field"><label for="number">Card number</label>
    <input id="number" inputmode="numeric" autocomplete="cc-number"></div>
  <div class="field"><label for="expires">Expires</label><input id="expires"></div>
  <button class="primary">Pay 24 €</button></form>
<script>
  document.getElementById('number').addEventListener('input', event => {
    const digits = event.target.value.replace(/\\D/g, '').slice(0, 16)
    event.target.value = digits.replace(/(\\d{4})(?=\\d)/g, '$1 ')
  })
  document.getElementById('f').addEventListener('submit', event => {
    event.preventDefault()
    top.postMessage({kind: 'card', number: document.getElementById('number').value,
      expires: document.getElementById('expires').value}, location.origin)
  })
</script>""",
    },
    steps=(
        ("type", "textbox", "Street and number", "5 Quay Street"),
        ("type", "textbox", "Town", "Bergen"),
        ("type", "textbox", "Card number", "4000 1234 5678 9010"),
        ("type", "textbox", "Expires", "12/29"),
        ("click", "button", "Pay 24 €"),
    ),
)

OPEN_SHADOW_FORM = Task(
    name="open_shadow_form",
    goal="Sign up for the course with the first name Ann, the last name Lee and the level Advanced,"
    " and accept the rules.",
    solved="done: Ann Lee, advanced",
    html=_page(
        "Courses - Sailing School",
        "done: Ann Lee, advanced",
        """
<main class="container"><div class="card"><h1>Spring course</h1>
  <course-form><p slot="intro">It begins on 3 May.</p></course-form></div></main>
""",
        """
  const css = `:host { display: block; margin-bottom: 10px } label { display: block }
    button { padding: 8px 14px; cursor: pointer }`
  customElements.define('text-field', class extends HTMLElement {
    connectedCallback() {
      const shadow = this.attachShadow({mode: 'open'})
      shadow.innerHTML = `<style>${css}</style>
        <label for="in">${this.getAttribute('label')}</label><input id="in">`
    }
    get value() { return this.shadowRoot.getElementById('in').value.trim() }
  })
  customElements.define('course-form', class extends HTMLElement {
    connectedCallback() {
      const shadow = this.attachShadow({mode: 'open'})
      shadow.innerHTML = `<style>${css}</style><slot name="intro"></slot>
        <text-field id="first" label="First name"></text-field>
        <text-field id="last" label="Last name"></text-field>
        <label for="level">Level</label><select id="level"><option>Beginner</option>
          <option>Advanced</option><option>Skipper</option></select>
        <label><input type="checkbox" id="rules"> I accept the rules</label>
        <button id="go">Sign up</button><p id="said" role="status"></p>`
      const of = id => shadow.getElementById(id)
      of('go').addEventListener('click', () => {
        const name = `${of('first').value} ${of('last').value}`
        of('said').textContent = of('rules').checked ? `See you, ${name}!` : 'Accept the rules first.'
        report(of('rules').checked && name === 'Ann Lee' && of('level').value === 'Advanced')
      })
    }
  })
""",  # noqa: E501
    ),
    steps=(
        ("type", "textbox", "First name", "Ann"),
        ("type", "textbox", "Last name", "Lee"),
        ("select", "combobox", "Level", "Advanced"),
        ("check", "checkbox", "I accept the rules"),
        ("click", "button", "Sign up"),
    ),
)

CLOSED_SHADOW_BUTTON = Task(
    name="closed_shadow_button",
    goal="Pause the subscription, but do not cancel it.",
    solved="done: subscription paused",
    html=_page(
        "Subscription - Streamly",
        "done: subscription paused",
        """
<main class="container"><div class="card"><h1>Your subscription</h1>
  <subscription-actions></subscription-actions>
  <p id="said" role="status">It is active.</p></div></main>
""",
        """
  customElements.define('subscription-actions', class extends HTMLElement {
    constructor() {
      super()
      const shadow = this.attachShadow({mode: 'closed'})
      shadow.innerHTML = `<style>button { padding: 10px 18px; margin: 12px; cursor: pointer }
        </style><div class="row"><button>Cancel subscription</button>
        <button>Pause subscription</button><button>Change plan</button></div>`
      const [cancel, pause] = shadow.querySelectorAll('button')
      let cancelled = false
      cancel.addEventListener('click', () => {
        cancelled = true
        $('said').textContent = 'It is cancelled.'
        report(false)
      })
      pause.addEventListener('click', () => {
        if (cancelled) return
        $('said').textContent = 'It is paused.'
        report(true)
      })
    }
  })
""",
    ),
    steps=(("click", "button", "Pause subscription"),),
)

POPUP_WINDOW = Task(
    name="popup_window",
    goal="Connect the calendar, and let the app only read it.",
    solved="done: calendar connected to read",
    html=_page(
        "Integrations - Dayplan",
        "done: calendar connected to read",
        """
<main class="container"><div class="card"><h1>Integrations</h1>
  <button id="connect" class="primary">Connect calendar</button>
  <p id="said" role="status">Not connected</p></div></main>
""",
        """
  $('connect').addEventListener('click', () =>
    window.open('/task/popup_window/consent', 'consent', 'popup,width=480,height=560'))
  addEventListener('message', event => {
    if (event.origin !== location.origin || event.data.kind !== 'consent') return
    const {scopes} = event.data
    $('said').textContent = scopes.length ? `Connected to: ${scopes.join(', ')}` : 'Not connected'
    report(scopes.join() === 'read')
  })
""",
    ),
    pages={
        "/task/popup_window/consent": _IN_FRAME
        + """<title>Allow access?</title>
<main class="container"><h1>Dayplan wants to</h1><form id="f">
  <p><label><input type="checkbox" value="read" checked> read your calendar</label></p>
  <p><label><input type="checkbox" value="write" checked> change your calendar</label></p>
  <button type="button" id="deny">Deny</button> <button class="primary">Allow</button>
</form></main>
<script>
  const end = scopes => {
    opener.postMessage({kind: 'consent', scopes}, location.origin)
    setTimeout(close, 100)
  }
  document.getElementById('deny').addEventListener('click', () => end([]))
  document.getElementById('f').addEventListener('submit', event => {
    event.preventDefault()
    end([...event.target.querySelectorAll(':checked')].map(each => each.value))
  })
</script>"""
    },
    steps=(
        ("click", "button", "Connect calendar"),
        ("tab", "last"),
        ("uncheck", "checkbox", "change your calendar"),
        ("click", "button", "Allow"),
        ("tab", "first"),
        ("wait", "Connected to: read"),
    ),
)

INVOICE_DOWNLOAD = Task(
    name="invoice_download",
    goal="Open the invoice of October 2026, download it as CSV, and confirm the total that stands"
    " in the file.",
    solved="done: total confirmed",
    html=_page(
        "Invoices - Hostwerk",
        "",
        """
<main class="container"><div class="card"><h1>Invoices</h1><ul>
  <li><a target="_blank" rel="noopener" href="/task/invoice_download/2026-09">
    September 2026</a></li>
  <li><a target="_blank" rel="noopener" href="/task/invoice_download/2026-10">
    October 2026</a></li>
  <li><a target="_blank" rel="noopener" href="/task/invoice_download/2026-11">
    November 2026</a></li>
</ul></div></main>
""",
        "",
    ),
    pages={
        f"/task/invoice_download/2026-{month}": _page(
            f"Invoice 2026-{month} - Hostwerk",
            "done: total confirmed" if month == "10" else f"Invoice 2026-{month} confirmed",
            f"""
<main class="container"><div class="card"><h1>Invoice 2026-{month}</h1>
  <p>Its lines are in the file.</p>
  <a class="btn" href="/task/invoice_download/invoice-2026-{month}.csv">Download as CSV</a>
  <form id="confirm" style="margin-top: 20px">
    <div class="field"><label for="total">Total in €</label><input id="total"></div>
    <button class="primary">Confirm</button><p id="said" role="status"></p></form>
</div></main>
""",
            f"""
  $('confirm').addEventListener('submit', event => {{
    event.preventDefault()
    const fits = $('total').value.trim().replace(',', '.') === '{total}'
    $('said').textContent = fits ? 'Thank you.' : 'This is not the total of the invoice.'
    report(fits)
  }})
""",
        )
        for month, total in (("09", "398.00"), ("10", "412.50"), ("11", "405.25"))
    },
    attachments={
        "/task/invoice_download/invoice-2026-09.csv": "item,euro\nHosting,398.00\ntotal,398.00\n",
        "/task/invoice_download/invoice-2026-10.csv": "item,euro\nHosting,320.00\nDomain,14.50\n"
        "Support,78.00\ntotal,412.50\n",
        "/task/invoice_download/invoice-2026-11.csv": "item,euro\nHosting,405.25\ntotal,405.25\n",
    },
    steps=(
        ("click", "link", "October 2026"),
        ("tab", "last"),
        ("download", "link", "Download as CSV"),
        ("type", "textbox", "Total in €", "412.50"),
        ("click", "button", "Confirm"),
    ),
)

TASKS: tuple[Task, ...] = (
    PLAIN_FORM,
    VALIDATION_FORM,
    RERENDERED_FORM,
    HOTEL_SEARCH,
    REVIEW_FORM,
    LOGIN_SLOW,
    FILE_UPLOADS,
    DATE_PICKER,
    AUTOCOMPLETE,
    CUSTOM_LISTBOX,
    HOVER_MENU,
    KEYBOARD_WIDGET,
    RICH_TEXT,
    ENDLESS_LIST,
    VIRTUAL_LIST,
    LAZY_TABS,
    PAGED_RESULTS,
    ORDER_TABLE,
    DRAG_BETWEEN_LISTS,
    SORTABLE_LIST,
    MOVING_BUTTON,
    SPREADSHEET,
    SVG_MAP,
    COOKIE_BANNER_MODAL,
    SCRIPT_DIALOGS,
    NESTED_FRAMES,
    OPEN_SHADOW_FORM,
    CLOSED_SHADOW_BUTTON,
    POPUP_WINDOW,
    INVOICE_DOWNLOAD,
)
"""All thirty."""
