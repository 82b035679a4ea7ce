// The browsers of this person that get notifications, also with the page closed.

import { call } from "../api.js";
import { formatDateTime } from "../format.js";
import { Icon } from "../icons.js";
import { t } from "../language.js";
import { html, useEffect, useState } from "../lib.js";
import { forgetDevice, loadPush, push, turnOff, turnOn } from "../push.js";
import { announce, attempt } from "../state.js";
import { Section } from "./parts.js";

const NOTE = t(
  "When an agent asks, fails, or finishes what you were not waiting for, also with this page closed.",
);

export function PushDevices() {
  useEffect(() => void attempt(loadPush), []);
  const found = push.value;
  if (!found) return null;
  return html`
    <${Section} title=${t("Notifications")} note=${NOTE} action=${html`<${Switch} ...${found} />`}>
      ${found.status === "cannot" && html`<p class="none">${found.problem}</p>`}
      ${
        found.status === "blocked" &&
        html`
          <p class="none">
            ${t("This browser blocks notifications of this page. Allow them in its settings for this site, then load the page again.")}
          </p>
        `
      }
      ${
        found.devices.length > 0 &&
        html`
          <ul class="rows" aria-label=${t("Browsers with notifications")}>
            ${found.devices.map((one) => html`<${Device} key=${one.id} ...${one} mine=${found.mine === one.id} />`)}
          </ul>
        `
      }
    <//>
  `;
}

function Switch({ status }) {
  if (status === "off") return html`<${Act} label=${t("Turn on here")} run=${turnOn} />`;
  if (status === "on") return html`<${Act} label=${t("Turn off here")} run=${turnOff} />`;
  return null;
}

function Device({ id, label, at, mine }) {
  const test = async () => {
    await call("POST", `/api/push/${id}/test`);
    announce(t("Sent"));
  };
  return html`
    <li>
      <${Icon} name="bell" />
      <span class="grow">
        <span class="row">${label} ${mine && html`<span class="tag">${t("this one")}</span>`}</span>
        <span class="small muted">${t("since {time}", { time: formatDateTime(at) })}</span>
      </span>
      <${Act} label=${t("Send a test")} run=${test} />
      ${!mine && html`<${Act} label=${t("Turn off")} run=${() => forgetDevice(id)} />`}
    </li>
  `;
}

/** A button of what takes a moment. */
function Act({ label, run }) {
  const [busy, setBusy] = useState(false);
  const press = async () => {
    setBusy(true);
    await attempt(run);
    setBusy(false);
  };
  return html`
    <button type="button" class="btn little" disabled=${busy} onClick=${press}>${label}</button>
  `;
}
