// A few buttons of which one is chosen: radio buttons, or tabs. Together they are one stop of the Tab
// key, and the arrow keys, Home and End move among them (www.w3.org/WAI/ARIA/apg/patterns/radio).

import { html, useState } from "./lib.js";

const ROLES = { radio: ["radiogroup", "aria-checked"], tab: ["tablist", "aria-selected"] };
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/**
 * `choices` are `[id, what is in the button, more of its attributes]`. With `follows`, a key chooses
 * where it moves to; without it Space and Enter choose, for what takes effect at once.
 */
export function ChoiceGroup({ role, choices, chosen, choose, follows = true, ...group }) {
  const [focused, setFocused] = useState(null);
  const ids = choices.map(([id]) => id);
  const stop = [focused, chosen].find((id) => ids.includes(id)) ?? ids[0];
  const move = (event) => {
    const step = STEPS[event.key];
    const from = ids.indexOf(stop);
    const to = step ? (from + step) % ids.length : { Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.currentTarget.children[to < 0 ? ids.length - 1 : to].focus();
    if (follows) choose(ids.at(to));
  };
  return html`
    <div role=${ROLES[role][0]} ...${group} onKeyDown=${move}>
      ${choices.map(
        ([id, inside, more]) => html`
          <button
            key=${id}
            type="button"
            role=${role}
            ...${{ [ROLES[role][1]]: String(id === chosen) }}
            ...${more}
            tabindex=${id === stop ? 0 : -1}
            onFocus=${() => setFocused(id)}
            onBlur=${() => setFocused(null)}
            onClick=${() => choose(id)}
          >
            ${inside}
          </button>
        `,
      )}
    </div>
  `;
}
