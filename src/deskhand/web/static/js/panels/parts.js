// What all panels share: asking for something, and saying what is there, is not there, or went wrong.

import { get } from "../api.js";
import { html, useEffect, useState } from "../lib.js";
import { attempt } from "../state.js";

/** What this address answers: `{data, error, again}`. Asked anew when the address changes, or on `again()`. */
export function useAsk(path) {
  const [found, setFound] = useState({ path: "", data: undefined, error: null }),
    [turn, setTurn] = useState(0);
  useEffect(() => {
    let over = false;
    if (path)
      get(path).then(
        (data) => !over && setFound({ path, data, error: null }),
        (error) => !over && setFound({ path, data: undefined, error }),
      );
    return () => {
      over = true;
    };
  }, [path, turn]);
  return {
    data: found.data,
    error: found.error,
    stale: found.path !== path,
    again: () => setTurn((before) => before + 1),
  };
}

/** `children(data)` once it is there; until then, and where it is not, a sentence. */
export function Loaded({ of, what, children }) {
  if (of.error?.missing)
    return html`<p class="none">This Deskhand does not offer ${what} here.</p>`;
  if (of.error?.status === 403)
    return html`<p class="none">You may not see ${what}. The owner can give you the role for it.</p>`;
  if (of.error)
    return html`<div class="none" role="alert"><p>${of.error.message}</p><button type="button" class="btn little" onClick=${of.again}>Try again</button></div>`;
  if (of.data === undefined)
    return html`<p class="none"><span class="spin"></span><span class="sr">One moment</span></p>`;
  return children(of.data);
}

export const None = ({ children }) => html`<p class="none">${children}</p>`;

export function Section({ title, note, action, children }) {
  return html`<section class="section"><header><div><h3>${title}</h3>${note && html`<p class="small muted">${note}</p>`}</div>${action}</header>${children}</section>`;
}

/** A button that must be pressed twice, so that nothing is lost by a slip. */
export function Sure({ label, sure, onYes, little = true }) {
  const [asked, setAsked] = useState(false);
  if (!asked)
    return html`<button type="button" class=${`btn ${little ? "little" : ""} bad`} onClick=${() => setAsked(true)}>${label}</button>`;
  return html`<span class="row"><button type="button" class=${`btn ${little ? "little" : ""} bad`} ref=${(button) => button?.focus()} onBlur=${() => setTimeout(() => setAsked(false), 200)} onClick=${() => {
    setAsked(false);
    onYes();
  }}>${sure}</button></span>`;
}

export function Toggle({ on, label, note, set, disabled }) {
  return html`<button type="button" class="toggle" role="switch" aria-checked=${String(Boolean(on))} disabled=${disabled} onClick=${() => set(!on)}><span class="grow"><span class="label">${label}</span>${note && html`<span class="small muted">${note}</span>`}</span><span class="switch" aria-checked=${String(Boolean(on))} aria-hidden="true"></span></button>`;
}

/** Send a form's fields; `send(fields)` is what to do. The form is emptied when it went well. */
export function submit(send) {
  return async (event) => {
    event.preventDefault();
    const form = event.target,
      fields = Object.fromEntries(new FormData(form));
    if ((await attempt(() => send(fields))) !== undefined) form.reset();
  };
}

export const picture = (svg) => `data:image/svg+xml,${encodeURIComponent(svg)}`;
