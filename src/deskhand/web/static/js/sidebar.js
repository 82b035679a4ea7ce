// The side of the page: the search, the list of conversations, and the links to everything else.

import { folded } from "./folded.js";
import { Icon, IconButton } from "./icons.js";
import { inboxCount } from "./inbox-count.js";
import { t, tCount } from "./language.js";
import { LanguageButton } from "./language-button.js";
import { useLazyComponent } from "./lazy-component.js";
import { html, useRef, useState } from "./lib.js";
import { asks } from "./list.js";
import { newOptions } from "./new-options.js";
import { SessionList } from "./session-list.js";
import {
  currentUser,
  developer,
  drawer,
  health,
  openSession,
  route,
  setTheme,
  signOut,
  theme,
} from "./state.js";

const STATES = { starting: t("starting"), degraded: t("degraded"), down: t("down") };

const loadSearch = () =>
  Promise.all([import("./search-filters.js"), import("./search-results.js")]).then(
    ([filters, results]) => ({ ...filters, ...results }),
  );

export function Sidebar() {
  const [query, setQuery] = useState("");
  const words = query.trim();
  const search = useLazyComponent(words && "search", words && loadSearch);
  const list = useRef();
  return html`
    <nav
      class=${`side ${drawer.value ? "open" : ""}`}
      aria-label=${t("Conversations")}
      inert=${folded.value && !drawer.value}
    >
      <div class="side-top">
        <a class="brand" href="#/" aria-label=${t("Deskhand, a new conversation")}>
          <img src="/icon.svg" alt="" width="24" height="24" />
          <span>Deskhand</span>
        </a>
        <${IconButton}
          name="close"
          label=${t("Close the list")}
          class="ib only-folded"
          onClick=${() => {
            drawer.value = false;
          }}
        />
      </div>
      <button
        type="button"
        class="btn new"
        onClick=${() => {
          drawer.value = false;
          newOptions.value = {};
          openSession("");
          requestAnimationFrame(() => document.getElementById("composer")?.focus());
        }}
      >
        <${Icon} name="plus" />${t("New conversation")}
      </button>
      <label class="search">
        <${Icon} name="search" />
        <span class="sr">${t("Search everything that was said")}</span>
        <input
          id="search"
          type="search"
          placeholder=${t("Search")}
          autocomplete="off"
          value=${query}
          onInput=${(event) => setQuery(event.target.value)}
          onKeyDown=${(event) => {
            if (event.key === "Escape" && query) {
              event.preventDefault();
              setQuery("");
            }
            if (event.key === "ArrowDown") {
              event.preventDefault();
              list.current.querySelector("a, button.entry")?.focus();
            }
          }}
        />
        <kbd aria-hidden="true">${t("Ctrl /")}</kbd>
      </label>
      ${words && search && html`<${search.SearchFilters} text=${query} write=${setQuery} />`}
      <a
        class="entry"
        href="#/inbox"
        aria-current=${route.value.place === "inbox" ? "page" : null}
      >
        <${Icon} name="inbox" />
        <span class="grow">${t("Inbox")}</span>
        ${
          inboxCount.value > 0 &&
          html`
            <span class="tag warn">
              ${inboxCount.value}<span class="sr"> ${t("new or waiting")}</span>
            </span>
          `
        }
      </a>
      <div class="side-list" ref=${list} onKeyDown=${moveFocus}>
        ${!words && html`<${SessionList} />`}
        ${words && !search && html`<p class="hint">${t("One moment …")}</p>`}
        ${words && search && html`<${search.SearchResults} query=${words} write=${setQuery} />`}
      </div>
      <${SidebarFooter} />
    </nav>
  `;
}

/** Call `then` once new rows are drawn: one frame brings them into sight, the next draws them. */
const afterDrawn = (then) =>
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(then)));

/**
 * Arrow keys move to the next and the previous link, Home and End to the first and the last. Beside
 * a link that was scrolled out of sight nothing is drawn: it is brought back into sight first.
 */
function moveFocus(event) {
  const { key, currentTarget: box } = event;
  if (!["ArrowDown", "ArrowUp", "Home", "End"].includes(key)) return;
  event.preventDefault();
  if (box.dataset.moves) return; // rows are being drawn for the key before
  const move = () => {
    delete box.dataset.moves;
    const links = [...box.querySelectorAll("a, button.entry")];
    const index = links.indexOf(document.activeElement);
    const next = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: -1 }[key];
    const leaves = key === "ArrowUp" && next === -1;
    (leaves ? document.getElementById("search") : links.at(next))?.focus();
  };
  if (key.startsWith("Arrow") && isInSight(document.activeElement, box)) {
    move();
    return;
  }
  box.dataset.moves = "yes";
  if (key.startsWith("Arrow")) document.activeElement.scrollIntoView({ block: "nearest" });
  else box.scrollTop = key === "Home" ? 0 : box.scrollHeight;
  afterDrawn(move);
}

function isInSight(element, box) {
  const row = element.getBoundingClientRect();
  const shown = box.getBoundingClientRect();
  return row.bottom > shown.top && row.top < shown.bottom;
}

function SidebarFooter() {
  const worst = health.value?.status;
  const called = currentUser.value.name || currentUser.value.user;
  return html`
    <div class="side-foot">
      <a
        class="entry"
        href="#/settings/models"
        aria-current=${route.value.place === "settings" ? "page" : null}
      >
        <${Icon} name="gear" />
        <span class="grow">${t("Settings")}</span>
        ${
          asks.value.length > 0 &&
          html`
            <span class="tag warn">
              ${tCount(asks.value.length, "{count} waiting", "{count} waiting")}
            </span>
          `
        }
        ${worst && worst !== "ok" && html`<span class="tag warn">${STATES[worst] ?? worst}</span>`}
      </a>
      <div class="row">
        <button
          type="button"
          class="entry grow"
          role="switch"
          aria-checked=${developer.value}
          onClick=${() => {
            developer.value = !developer.value;
          }}
          title=${t(
            "The developer view shows traces, raw events, arguments and the slider over a session",
          )}
        >
          <${Icon} name="code" />
          <span class="grow">${t("Developer view")}</span>
          <span class="switch" aria-checked=${String(developer.value)} aria-hidden="true"></span>
        </button>
      </div>
      <div class="row who">
        <span class="avatar" aria-hidden="true">${(called[0] ?? "?").toUpperCase()}</span>
        <span class="grow cut" title=${currentUser.value.user}>${called}</span>
        <${LanguageButton} />
        <${IconButton}
          name=${theme.value === "dark" ? "sun" : "moon"}
          label=${theme.value === "dark" ? t("Use light colours") : t("Use dark colours")}
          onClick=${() => setTheme(theme.value === "dark" ? "light" : "dark")}
        />
        <${IconButton} name="out" label=${t("Sign out of this browser")} onClick=${signOut} />
      </div>
    </div>
  `;
}
