// When this browser reads answers aloud, and whether Deskhand hears and speaks.

import { t } from "../language.js";
import { html } from "../lib.js";
import { currentUser, hasScope, readAloud, setReadAloud } from "../state.js";
import { browserCanRecord } from "../voice.js";
import { Section } from "./parts.js";

const UNKNOWN = t("This Deskhand does not tell whether it hears and speaks. Update it.");
const CHOICES = [
  ["spoken", t("When I spoke"), t("An answer to what you said in this browser is read aloud")],
  ["always", t("Always"), t("Each answer that ends while this page is visible")],
  ["never", t("Never"), t("The speaker below an answer still reads it")],
];
const HANDS_FREE = t(
  "The button beside it talks hands-free: it listens by itself, sends what you said when you are silent, and reads the answer aloud. Start speaking to interrupt it.",
);

export function VoiceSettings() {
  const { hear_problem: hear = UNKNOWN, say_problem: say = UNKNOWN } =
    currentUser.value.speech ?? {};
  return html`
    <div class="stack wide">
      <${Section} title=${t("Read answers aloud")} note=${t("This is kept in this browser.")}>
        ${say && html`<p class="note warn">${say}</p>`}
        <div class="toggles" role="radiogroup" aria-label=${t("Read answers aloud")}>
          ${CHOICES.map(
            ([id, label, note]) => html`
              <label class="toggle" key=${id}>
                <span class="grow">
                  <span class="label">${label}</span>
                  <span class="small muted">${note}</span>
                </span>
                <input
                  type="radio"
                  name="aloud"
                  checked=${readAloud.value === id}
                  disabled=${Boolean(say)}
                  onChange=${() => setReadAloud(id)}
                />
              </label>
            `,
          )}
        </div>
      <//>
      <${Section} title=${t("Talk to Deskhand")}>
        ${
          hear
            ? html`<p class="note warn">${hear}</p>`
            : html`
                <p class="muted">${describeTalking()}</p>
                ${hasScope("chat") && browserCanRecord() && html`<p class="muted">${HANDS_FREE}</p>`}
              `
        }
      <//>
    </div>
  `;
}

function describeTalking() {
  if (!hasScope("chat")) return t("You may read here, but neither write nor talk.");
  if (!browserCanRecord())
    return t("This browser cannot record. Use another browser, or attach a recording as a file.");
  return t(
    "Hold the microphone beside the message field while you speak, and let go to send. Or press it once to begin and once more to send. Esc discards what you said.",
  );
}
