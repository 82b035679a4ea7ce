// Menus: actions or choices beside the button that opens them.

import { Icon } from "./icons.js";
import { t } from "./language.js";
import { html, signal, useLayoutEffect, useRef } from "./lib.js";

const GAP = 4;
const EDGE = 8;
const menu = signal(null); // {anchor, label, items, above}

/**
 * Open a menu beside `anchor`. An item is `{label, note, icon, run}`; with `checked` it is a choice,
 * with `items` it opens these in its place, with `confirm` it asks once more under that label, with
 * `href` it is a link, and `bad` draws it as dangerous. A missing item is left out.
 */
export function openMenu(anchor, label, items) {
  menu.value =
    menu.value?.anchor === anchor ? null : { anchor, label, items: items.filter(Boolean) };
}

const isMenuOf = (anchor) => Boolean(anchor) && menu.value?.anchor === anchor;

/** What draws the open menu; it stands once in the page. */
export function MenuLayer() {
  return menu.value && html`<${Menu} key=${menu.value.label} ...${menu.value} />`;
}

function Menu({ anchor, label, items }) {
  const box = useRef();
  const close = (refocus) => {
    menu.value = null;
    if (refocus) anchor.focus();
  };
  useLayoutEffect(() => {
    anchor.setAttribute("aria-expanded", "true");
    return () => anchor.removeAttribute("aria-expanded");
  }, [anchor]);
  useLayoutEffect(() => {
    box.current.showPopover();
    placeBeside(box.current, anchor);
    const first =
      box.current.querySelector('[aria-checked="true"]') ?? box.current.querySelector("[role]");
    first?.focus({ preventScroll: true });
  }, [label]);
  const choose = (item) => {
    if (item.items) menu.value = { anchor, label: item.label, items: item.items.filter(Boolean) };
    else if (item.confirm)
      menu.value = {
        anchor,
        label: item.confirm,
        items: [
          { ...item, label: item.confirm, confirm: "" },
          { label: t("Cancel"), icon: "close", run: () => undefined },
        ],
      };
    else {
      close(true);
      item.run?.();
    }
  };
  return html`
    <div
      class="menu"
      popover="auto"
      role="menu"
      aria-label=${label}
      ref=${box}
      onKeyDown=${(event) => moveInMenu(event, box.current, close)}
      onToggle=${(event) => event.newState === "closed" && isMenuOf(anchor) && close(false)}
    >
      ${items.map((item) => html`<${Item} key=${item.label} item=${item} choose=${choose} />`)}
    </div>
  `;
}

function Item({ item, choose }) {
  const common = {
    class: `menu-item ${item.bad ? "bad" : ""}`,
    role: item.checked === undefined ? "menuitem" : "menuitemradio",
    "aria-checked": item.checked === undefined ? null : String(item.checked),
    tabindex: -1,
  };
  const inside = html`
    ${item.icon && html`<${Icon} name=${item.icon} />`}
    <span class="grow">
      <span class="label">${item.label}</span>
      ${item.note && html`<span class="small muted">${item.note}</span>`}
    </span>
    ${item.checked && html`<${Icon} name="check" />`}
    ${item.items && html`<${Icon} name="right" />`}
  `;
  if (item.href)
    return html`
      <a ...${common} href=${item.href} download onClick=${() => choose({})}>${inside}</a>
    `;
  return html`<button type="button" ...${common} onClick=${() => choose(item)}>${inside}</button>`;
}

/** Below the anchor where there is room, above it otherwise; inside the window in any case. */
function placeBeside(box, anchor) {
  const from = anchor.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = box;
  const below = from.bottom + GAP + height + EDGE <= innerHeight;
  const top = below ? from.bottom + GAP : from.top - GAP - height;
  const isLeft = from.left + width + EDGE <= innerWidth;
  const left = isLeft ? from.left : from.right - width;
  box.style.top = `${Math.max(EDGE, Math.min(top, innerHeight - height - EDGE))}px`;
  box.style.left = `${Math.max(EDGE, Math.min(left, innerWidth - width - EDGE))}px`;
}

/** Arrow keys, Home, End and first letters move; Tab closes. Esc is the browser's. */
function moveInMenu(event, box, close) {
  const all = [...box.querySelectorAll("[role]")];
  const index = all.indexOf(document.activeElement);
  const { key } = event;
  if (key === "Escape") {
    event.preventDefault();
    event.stopPropagation();
    close(true);
    return;
  }
  if (key === "Tab") {
    close(true);
    return;
  }
  const step = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: -1 }[key];
  const letter = key.length === 1 && key !== " " ? key.toLowerCase() : "";
  if (step === undefined && !letter) return;
  event.preventDefault();
  event.stopPropagation();
  const next = letter
    ? [...all.slice(index + 1), ...all].find((one) =>
        one.textContent.trim().toLowerCase().startsWith(letter),
      )
    : all.at(step % all.length);
  next?.focus();
}
