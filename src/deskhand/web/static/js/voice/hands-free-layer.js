// What is shown while somebody talks with Deskhand by voice alone.

import { Icon } from "../icons.js";
import { t } from "../language.js";
import { loadStyles } from "../lazy-component.js";
import { html, render, useLayoutEffect, useRef } from "../lib.js";
import { Modal } from "../modal.js";
import { canHear, canSay, currentUser, route, sessionHref } from "../state.js";
import { talk } from "../talk.js";
import { Markdown } from "../text.js";
import { handsFree } from "../voice.js";
import {
  begin,
  end,
  exchange,
  failure,
  loudness,
  phase,
  sendAgain,
  toggleMute,
  togglePause,
} from "./hands-free.js";

const STATES = {
  opening: [t("Waiting for the microphone"), t("Allow the microphone when the browser asks.")],
  listening: [t("Listening"), t("Speak. What you said is sent when you are silent for a second.")],
  hearing: [t("You are speaking"), ""],
  understanding: [t("Understanding what you said"), ""],
  working: [t("Working on it"), t("You can say more meanwhile.")],
  asked: [t("Waiting for your answer on the page"), t("What you say now is read after that.")],
  speaking: [t("Speaking"), t("Start speaking to interrupt.")],
  muted: [
    t("Microphone is off"),
    t("Answers are still read aloud. Turn the microphone on to talk."),
  ],
  paused: [t("Paused"), t("It neither listens nor speaks until you go on.")],
  failed: [t("You cannot talk here yet"), ""],
};
const calm = matchMedia("(prefers-reduced-motion: reduce)");

let host = null;

/** Open the layer, and begin to listen. */
export async function openHandsFree() {
  await loadStyles("hands-free");
  if (!host) {
    host = document.createElement("div");
    document.body.append(host);
    render(html`<${HandsFreeLayer} />`, host);
  }
  await begin();
}

/** Back to where it was opened; the composer may have been drawn anew since. */
function close() {
  end();
  requestAnimationFrame(() => document.querySelector(".hands-free-button")?.focus());
}

function HandsFreeLayer() {
  if (!handsFree.value) return null;
  const [title, explanation] = STATES[phase.value];
  const { problem, unsent, unspoken } = handsFree.value;
  return html`
    <${Modal} class="hands-free" label=${t("Talk hands-free")} close=${close}>
      <div
        class="inside"
        data-phase=${phase.value}
        onKeyDown=${(event) => {
          if (event.key !== "Escape") return;
          event.preventDefault(); // else it would also stop what the agent does
          event.stopPropagation();
          close();
        }}
      >
        <${Orb} />
        <div class="state">
          <p class="title" role="status">${title}</p>
          <p class="small muted">${explanation}</p>
        </div>
        ${problem && html`<${Obstacle} problem=${problem} />`}
        ${talk.value.asks.length > 0 && html`<${AskNotice} ask=${talk.value.asks[0]} />`}
        ${
          unsent &&
          html`
            <div class="note warn" role="alert">
              <span class="grow">${t("What you said did not arrive.")}</span>
              <button type="button" class="btn little" onClick=${sendAgain}>${t("Send again")}</button>
            </div>
          `
        }
        ${failure.value && html`<p class="note warn" role="alert">${failure.value}</p>`}
        ${unspoken && html`<p class="note warn" role="alert">${unspoken}</p>`}
        ${
          !problem &&
          !canSay() &&
          html`
            <p class="note warn">
              ${t("Answers are shown here and not read aloud.")}${" "}${currentUser.value?.speech?.say_problem}
            </p>
          `
        }
        <${Exchange} />
        <${Controls} />
      </div>
    <//>
  `;
}

/** A circle that grows with the voice; still for whoever wants less motion. */
function Orb() {
  const level = calm.matches || phase.value === "speaking" ? 0 : loudness.value;
  return html`
    <svg class="orb" viewBox="0 0 120 120" aria-hidden="true">
      <circle class="halo" cx="60" cy="60" r=${40 + 18 * level} />
      <circle class="core" cx="60" cy="60" r=${32 + 6 * level} />
    </svg>
  `;
}

function Obstacle({ problem }) {
  return html`
    <div class="obstacle" role="alert">
      <p>${problem}</p>
      ${
        canHear()
          ? html`<button type="button" class="btn main" onClick=${begin}>${t("Try again")}</button>`
          : html`<a class="btn" href="#/settings/voice" onClick=${end}>${t("Open the voice settings")}</a>`
      }
    </div>
  `;
}

/** A voice can be anybody's: what is asked is answered on the page alone. */
function AskNotice({ ask }) {
  const open = (event) => {
    event.preventDefault();
    end();
    requestAnimationFrame(() =>
      document.querySelector(".ask.open button, .ask.open input")?.focus(),
    );
  };
  return html`
    <section class="note warn ask-notice" aria-label=${t("It asks you")}>
      <p>
        <strong>${ask.approval ? t("Permission needed") : t("A question for you")}</strong>
        <span class="question">${ask.question}</span>
        <span class="small">${t("What you say does not answer this. Answer it in the conversation.")}</span>
      </p>
      <a class="btn main" href=${sessionHref(route.value.name)} onClick=${open}>
        ${t("Answer in the conversation")}
      </a>
    </section>
  `;
}

/** What was heard, and the answer, in writing. */
function Exchange() {
  const box = useRef();
  const found = exchange.value;
  const text = found?.answers.map((answer) => answer.text).join("\n\n") ?? "";
  useLayoutEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  if (!found) return html`<div class="exchange"></div>`;
  return html`
    <div class="exchange" ref=${box} tabindex="0" role="region" aria-label=${t("What was said")}>
      ${
        found.heard &&
        html`<p class="heard"><span class="sr">${t("You:")} </span>${found.heard}</p>`
      }
      ${text && html`<div class="answer"><${Markdown} text=${text} live=${found.open} /></div>`}
    </div>
  `;
}

function Controls() {
  const { muted, paused, problem, asking } = handsFree.value;
  const off = Boolean(problem) || asking;
  const toggle = (name, label, pressed, run) => html`
    <button
      type="button"
      class="control"
      aria-pressed=${String(pressed)}
      disabled=${off}
      onClick=${run}
    >
      <span class="round"><${Icon} name=${name} /></span>
      <span>${label}</span>
    </button>
  `;
  return html`
    <div class="controls" role="group" aria-label=${t("Talk hands-free")}>
      ${toggle("mic", t("Mute"), muted, toggleMute)}
      ${toggle("pause", t("Pause"), paused, togglePause)}
      <button type="button" class="control end" title=${t("End (Esc)")} onClick=${close}>
        <span class="round"><${Icon} name="close" /></span>
        <span>${t("End")}</span>
      </button>
    </div>
  `;
}
