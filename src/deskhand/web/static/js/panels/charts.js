// Charts as SVG. Each comes with a sentence that says what it shows, and with all of it as a table.

import { t } from "../language.js";
import { html } from "../lib.js";
import { Folded, useSomeRows } from "./parts.js";

const ROWS_PER_PAGE = 100;
const STEPS = [1, 2, 3, 4, 6, 8, 10]; // half of each is short, too

/** Where a scale ends that has room for this: a short number. 1 for nothing. */
export function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  // A little more than the quotient: 0.3 / 0.1 is not 3 to a computer.
  return STEPS.find((step) => value / power <= step + 1e-9) * power;
}

/**
 * A bar for each day. `days` are `{id, label, value, text}`, the oldest first; `text` says the value
 * in words. `formatValue` writes a value of the scale. `pick(day)` is called for a bar that is
 * clicked; the table offers the same to the keyboard.
 */
export function DayChart({ days, summary, formatValue, pick }) {
  const most = roundUp(Math.max(...days.map((day) => day.value)));
  const width = 10;
  const middle = days[Math.floor((days.length - 1) / 2)];
  return html`
    <div class="plot">
      <div class="scale tiny muted" aria-hidden="true">
        <span>${formatValue(most)}</span>
        <span>${formatValue(most / 2)}</span>
        <span>0</span>
      </div>
      <svg
        viewBox=${`0 0 ${days.length * width} 100`}
        preserveAspectRatio="none"
        role="img"
        aria-label=${summary}
      >
        <path class="lines" d=${`M0 0H${days.length * width}M0 50H${days.length * width}`} />
        ${days.map((day, i) => {
          const height = (100 * day.value) / most;
          return html`
            <g key=${day.id} class="day" onClick=${() => pick(day)}>
              <title>${day.label}: ${day.text}</title>
              <rect class="hit" x=${i * width} y="0" width=${width} height="100" />
              <rect
                class="bar"
                x=${i * width + 1.5}
                y=${100 - height}
                width=${width - 3}
                height=${height}
              />
            </g>
          `;
        })}
      </svg>
      <div class="dates tiny muted" aria-hidden="true">
        <span>${days[0].label}</span>
        <span>${middle.label}</span>
        <span>${days.at(-1).label}</span>
      </div>
    </div>
  `;
}

/**
 * A bar for each row, beside its name and its value. `rows` are `{id, name, value, text}`, the
 * largest first. Each with an id is a button that calls `pick(row)`; `picked` is the id of the one
 * that was.
 */
export function ShareChart({ rows, pick, picked }) {
  const [shown, more] = useSomeRows(rows, 6, 20);
  const most = Math.max(...rows.map((row) => row.value)) || 1;
  const drawBar = (row) => html`
    <span class="name">${row.name}</span>
    <span class="amount">${row.text}</span>
    <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
      <rect class="track" width="100" height="6" />
      <rect class="bar" width=${(100 * row.value) / most} height="6" />
    </svg>
  `;
  return html`
    <ol class="shares">
      ${shown.map(
        (row) => html`
          <li key=${row.id}>
            ${
              row.id
                ? html`
                    <button
                      type="button"
                      class="share"
                      aria-pressed=${String(row.id === picked)}
                      onClick=${() => pick(row)}
                    >
                      ${drawBar(row)}
                    </button>
                  `
                : html`<div class="share">${drawBar(row)}</div>`
            }
          </li>
        `,
      )}
    </ol>
    ${more}
  `;
}

/**
 * The numbers of a chart behind a disclosure, drawn when it is opened. `columns` are
 * `[heading, cell(row)]`; the first cell names the row.
 */
export const ChartTable = ({ rows, columns, name }) => html`
  <${Folded} summary=${t("Show as a table")}>
    ${() => html`<${Rows} rows=${rows} columns=${columns} name=${name} />`}
  <//>
`;

function Rows({ rows, columns, name }) {
  const [shown, more] = useSomeRows(rows, ROWS_PER_PAGE);
  const [[, nameOf], ...others] = columns;
  return html`
    <div class="table" role="region" aria-label=${name} tabindex="0">
      <table>
        <thead>
          <tr>
            ${columns.map(([heading]) => html`<th key=${heading} scope="col">${heading}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${shown.map(
            (row) => html`
              <tr key=${row.id}>
                <th scope="row">${nameOf(row)}</th>
                ${others.map(([heading, cell]) => html`<td key=${heading}>${cell(row)}</td>`)}
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
    ${more}
  `;
}
