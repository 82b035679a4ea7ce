// The step of a chat program: what is given for it is tried first.

import { post } from "../api.js";
import { ChoiceGroup } from "../choice-group.js";
import { capitalize } from "../format.js";
import { t, tData, tRich } from "../language.js";
import { html, useState } from "../lib.js";
import { submitFields, svgDataUrl } from "./parts.js";

export function ChannelStep({ view, onConnected }) {
  const [kind, setKind] = useState("telegram");
  const [connected, setConnected] = useState(null);
  const note = (channel) => {
    setConnected(channel);
    onConnected();
  };
  return html`
    ${drawChannels(view.channels, kind, setKind)}
    ${drawChannelForm(
      view.channels.find((one) => one.kind === kind),
      note,
    )}
    ${(connected ?? view.connected) && drawConnected(connected ?? view.connected)}
  `;
}

function drawChannels(channels, kind, setKind) {
  return html`
    <${ChoiceGroup}
      role="radio"
      class="row wrap"
      aria-label=${t("Kind of channel")}
      choices=${channels.map((one) => [
        one.kind,
        `${one.title}${one.connected ? " ✓" : ""}`,
        { class: `btn little ${one.kind === kind ? "main" : ""}` },
      ])}
      chosen=${kind}
      choose=${setKind}
    />
  `;
}

function drawChannelForm(guide, setConnected) {
  const connect = async (answers) => {
    const answer = await post("/api/setup/channel", { kind: guide.kind, answers });
    setConnected(answer);
    return answer;
  };
  return html`
    <form key=${guide.kind} class="box stack" onSubmit=${submitFields(connect)}>
      ${guide.connected && html`<p class="small">${t("Connected. To change it, give it anew.")}</p>`}
      ${
        guide.link &&
        html`
          <p class="small">
            ${tRich("Begin at {link}.", {
              link: html`
                <a href=${guide.link} target="_blank" rel="noreferrer noopener">${guide.link}</a>
              `,
            })}
          </p>
        `
      }
      ${guide.needs.map(
        (need) => html`
          <label class="field" key=${need.setting}>
            <span>${tData(need.label)}</span>
            <input
              class="input"
              name=${need.setting}
              type=${need.secret ? "password" : "text"}
              autocomplete="off"
              required=${!need.optional && !(need.secret && guide.connected)}
              placeholder=${need.example}
            />
            <span class="small muted">${capitalize(tData(need.where))}.</span>
          </label>
        `,
      )}
      <div class="row"><button class="btn">${t("Connect {title}", { title: guide.title })}</button></div>
    </form>
  `;
}

function drawConnected(channel) {
  return html`
    <div class="row qr" role="status">
      <img
        src=${svgDataUrl(channel.qr_svg)}
        alt=${t("A QR code that opens it")}
        width="148"
        height="148"
      />
      <p>
        ${tRich("{name} works.", {
          name: html`
            <a href=${channel.link} target="_blank" rel="noreferrer noopener">${channel.name}</a>
          `,
        })}${" "}
        ${tData(channel.after)}
      </p>
    </div>
  `;
}
