// What all panels share: loading data, its states, sections, buttons and forms.

import { get } from "../api.js";
import { t } from "../language.js";
import { html, useEffect, useState } from "../lib.js";
import { attempt } from "../state.js";

/** The answer of this path: `{data, error, reload}`. Loaded again when the path changes. */
export function useFetch(path) {
  const [found, setFound] = useState({ path: "", data: undefined, error: null });
  const [requests, setRequests] = useState(0);
  useEffect(() => {
    let ended = false;
    if (path)
      get(path).then(
        (data) => !ended && setFound({ path, data, error: null }),
        (error) => !ended && setFound({ path, data: undefined, error }),
      );
    return () => {
      ended = true;
    };
  }, [path, requests]);
  return {
    data: found.data,
    error: found.error,
    stale: found.path !== path,
    reload: () => setRequests((before) => before + 1),
  };
}

/** `children(data)` once it is loaded; until then, and after an error, a sentence. */
export function Loaded({ result, what, children }) {
  if (result.error?.missing)
    return html`<p class="none">${t("This Deskhand does not offer {what} here.", { what })}</p>`;
  if (result.error?.status === 403)
    return html`
      <p class="none">${t("You may not see {what}. The owner can give you the role for it.", { what })}</p>
    `;
  if (result.error)
    return html`
      <div class="none" role="alert">
        <p>${result.error.message}</p>
        <button type="button" class="btn little" onClick=${result.reload}>${t("Try again")}</button>
      </div>
    `;
  if (result.data === undefined)
    return html`
      <p class="none">
        <span class="spin"></span>
        <span class="sr">${t("One moment")}</span>
      </p>
    `;
  return children(result.data);
}

export const Empty = ({ children }) => html`<p class="none">${children}</p>`;

export function Section({ title, note, action, children }) {
  return html`
    <section class="section">
      <header>
        <div><h3>${title}</h3>${note && html`<p class="small muted">${note}</p>`}</div>
        ${action}
      </header>
      ${children}
    </section>
  `;
}

/** What is behind a disclosure: `children()` is drawn when it is opened. */
export function Folded({ summary, children }) {
  const [open, setOpen] = useState(false);
  return html`
    <details onToggle=${(event) => setOpen(event.target.open)}>
      <summary class="small">${summary}</summary>
      ${open && children()}
    </details>
  `;
}

/** The first of many rows, and a button for `step` more of them: `[rows, button]`. */
export function useSomeRows(rows, first, step = 100) {
  const [most, setMost] = useState(first);
  const left = rows.length - most;
  const button =
    left > 0 &&
    html`
      <p>
        <button type="button" class="btn little" onClick=${() => setMost(most + step)}>
          ${t("Show more")} <span class="muted">${t("({left} left)", { left })}</span>
        </button>
      </p>
    `;
  return [rows.slice(0, most), button];
}

/** A list of as many rows as there may be: the first of them are drawn, and more on request. */
export function Rows({ rows, draw, class: name = "rows" }) {
  const [shown, more] = useSomeRows(rows, 100, 500);
  return html`<ul class=${name}>${shown.map(draw)}</ul>${more}`;
}

/** A button that must be pressed twice, so that nothing is lost by mistake. */
export function ConfirmButton({ label, confirm, onYes, little = true }) {
  const [asked, setAsked] = useState(false);
  if (!asked)
    return html`
      <button
        type="button"
        class=${`btn ${little ? "little" : ""} bad`}
        onClick=${() => setAsked(true)}
      >
        ${label}
      </button>
    `;
  return html`
    <span class="row">
      <button
        type="button"
        class=${`btn ${little ? "little" : ""} bad`}
        ref=${(button) => button?.focus()}
        onBlur=${() => setTimeout(() => setAsked(false), 200)}
        onClick=${() => {
          setAsked(false);
          onYes();
        }}
      >
        ${confirm}
      </button>
    </span>
  `;
}

export function Toggle({ enabled, label, note, set, disabled }) {
  return html`
    <button
      type="button"
      class="toggle"
      role="switch"
      aria-checked=${String(Boolean(enabled))}
      disabled=${disabled}
      onClick=${() => set(!enabled)}
    >
      <span class="grow">
        <span class="label">${label}</span>
        ${note && html`<span class="small muted">${note}</span>`}
      </span>
      <span class="switch" aria-checked=${String(Boolean(enabled))} aria-hidden="true"></span>
    </button>
  `;
}

/** A handler that gives a form's fields to `send(fields)`, and resets the form on success. */
export function submitFields(send) {
  return async (event) => {
    event.preventDefault();
    const form = event.target;
    const fields = Object.fromEntries(new FormData(form));
    if ((await attempt(() => send(fields))) !== undefined) form.reset();
  };
}

export const svgDataUrl = (svg) => `data:image/svg+xml,${encodeURIComponent(svg)}`;
