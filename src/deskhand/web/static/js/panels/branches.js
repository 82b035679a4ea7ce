// The family of this conversation: what it was branched from, and its branches, as a tree.

import { sessionPath } from "../api.js";
import { showFork } from "../branch-origin.js";
import { formatDateTime } from "../format.js";
import { locale, t } from "../language.js";
import { html, useEffect, useRef } from "../lib.js";
import { narrow, panel, route, sessionHref } from "../state.js";
import { talk } from "../talk.js";
import { Empty, Loaded, useFetch } from "./parts.js";

const SOON_MS = 400;
const UNITS = [
  ["year", 31_557_600],
  ["month", 2_629_800],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];
const AGE = new Intl.RelativeTimeFormat(locale, { numeric: "auto" });

/** Whether a link of the tree was followed: the tree that is drawn for the other conversation takes
 * the focus, so that the keyboard stays where it is. */
let followed = false;

export function Branches() {
  const found = useFetch(sessionPath(route.value.name, "/branches"));
  const lastEvent = talk.value.n;
  const seen = useRef(lastEvent); // what is loaded first has all until here
  useEffect(() => {
    if (seen.current === lastEvent) return undefined;
    seen.current = lastEvent;
    const timer = setTimeout(found.reload, SOON_MS);
    return () => clearTimeout(timer);
  }, [lastEvent]);
  return html`
    <${Loaded} result=${found} what=${t("branches")}>
      ${(data) => (data.branches.length > 1 ? html`<${Family} data=${data} />` : html`<${None} />`)}
    <//>
  `;
}

const None = () => html`
  <${Empty}>
    <span>
      ${t(
        "No branches yet. A branch is a copy that goes on from one of the answers, so you can try " +
          "another way and keep this one.",
      )}
    </span>
    <span>${t("To make one, choose “Branch from here” below an answer.")}</span>
  <//>
`;

function Family({ data }) {
  const names = new Set(data.branches.map((one) => one.name));
  const below = new Map();
  for (const one of data.branches) {
    const origin = names.has(one.origin) ? one.origin : "";
    below.set(origin, [...(below.get(origin) ?? []), one]);
  }
  return html`
    <nav class="branches" aria-label=${t("Branches")}>
      <${Level} origin="" below=${below} />
    </nav>
    ${data.more && html`<p class="none">${t("There are more branches than are shown here.")}</p>`}
  `;
}

const Level = ({ origin, below }) => html`
  <ul>
    ${below.get(origin).map(
      (one) => html`
        <li key=${one.name}>
          <${Branch} one=${one} />
          ${below.has(one.name) && html`<${Level} origin=${one.name} below=${below} />`}
        </li>
      `,
    )}
  </ul>
`;

function Branch({ one }) {
  const follow = () => {
    followed = true;
    if (narrow.value) panel.value = ""; // it covers what was opened
  };
  const words = describeWords(one);
  return html`
    <a
      class="branch"
      href=${sessionHref(one.name)}
      aria-current=${one.current ? "page" : null}
      onClick=${follow}
      ref=${(link) => {
        if (!link || !one.current || !followed) return;
        followed = false;
        link.focus();
      }}
    >
      <span class="row">
        <strong class="grow" dir="auto">${one.title || t("Untitled")}</strong>
        ${one.archived && html`<span class="tag">${t("archived")}</span>`}
        <time
          class="tiny muted"
          datetime=${new Date(one.at * 1000).toISOString()}
          title=${formatDateTime(one.at)}
        >
          ${formatAge(one.at)}
        </time>
      </span>
      ${words && html`<span class="words" dir="auto">${words}</span>`}
    </a>
    ${
      one.origin &&
      html`
        <a
          class="fork tiny cut"
          dir="auto"
          title=${describeFork(one)}
          href=${sessionHref(one.origin)}
          onClick=${() => {
            follow();
            showFork(one.origin, one.from_n);
          }}
        >
          ${describeFork(one)}
        </a>
      `
    }
  `;
}

/** How it goes on. A title is often made of the same words, which need not be there twice. */
function describeWords(one) {
  if (!one.words) return t("Nothing said in it yet");
  return one.words === one.title ? "" : t("“{words}”", { words: one.words });
}

function describeFork(one) {
  if (one.after) return t("from message “{words}”", { words: one.after });
  return one.turn ? t("from turn {number}", { number: one.turn }) : t("from the beginning");
}

/** `yesterday`, `3 hours ago`. */
function formatAge(timestamp) {
  const age = Math.max(0, Date.now() / 1000 - timestamp);
  const [unit, seconds] = UNITS.find(([, each]) => age >= each) ?? ["second", 1];
  return unit === "second" ? AGE.format(0, unit) : AGE.format(-Math.floor(age / seconds), unit);
}
