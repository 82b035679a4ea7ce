// The buttons beside the message: which model answers, how hard it thinks, what it may do unasked.

import { get } from "./api.js";
import { formatCount, formatMoney } from "./format.js";
import { Icon } from "./icons.js";
import { html } from "./lib.js";
import { openMenu } from "./menu.js";
import { sessionOptions, setSessionOptions } from "./session-options.js";
import { announce, attempt, route } from "./state.js";
import { talk } from "./talk.js";

const MODELS_SHOWN = 30;
const EFFORTS = [
  ["", "Default", "As the agent is set up"],
  ["off", "Off", "Answers at once; the cheapest"],
  ["low", "Low", "Thinks a little"],
  ["medium", "Medium", "For tasks with a few steps"],
  ["high", "High", "For hard tasks; slower"],
  ["max", "Maximum", "As long as it takes; the dearest"],
];
const PERMISSIONS = [
  ["usual", "Usual permissions", "Asks before what your settings say", {}],
  [
    "ask",
    "Ask before each step",
    "Every tool that changes something waits for you",
    { approval: true },
  ],
  ["plan", "Plan first", "Only looks around until you approve its plan", { plan_mode: true }],
];

export function Pickers() {
  const options = sessionOptions.value;
  const model = options.model || (route.value.name && talk.value.model) || "";
  const effort = EFFORTS.find(([id]) => id === (options.thinking ?? "")) ?? EFFORTS[0];
  const permission = findPermission(options);
  return html`
    <div class="pickers" role="group" aria-label="For this conversation">
      <${Picker}
        icon="spark"
        what="Model"
        value=${model ? shortName(model) : "Default model"}
        title=${model}
        open=${openModels}
      />
      <${Picker} icon="pulse" what="Effort" value=${effort[1]} open=${openEfforts} quiet=${!effort[0]} />
      <${Picker}
        icon="shield"
        what="Permissions"
        value=${permission[1]}
        open=${openPermissions}
        quiet=${permission[0] === "usual"}
      />
    </div>
  `;
}

/** `quiet`: the icon alone, where nothing out of the ordinary is chosen. */
function Picker({ icon, what, value, title, open, quiet }) {
  const label = `${what}: ${value}`;
  return html`
    <button
      type="button"
      class="picker"
      aria-haspopup="menu"
      aria-label=${label}
      title=${title ? `${what}: ${title}` : label}
      onClick=${(event) => open(event.currentTarget)}
    >
      <${Icon} name=${icon} />
      ${!quiet && html`<span class="cut">${value}</span>`}
    </button>
  `;
}

const shortName = (model) => model.slice(model.indexOf("/") + 1);

function findPermission(options) {
  if (options.plan_mode) return PERMISSIONS[2];
  return options.approval ? PERMISSIONS[1] : PERMISSIONS[0];
}

async function choose(options, said) {
  await setSessionOptions(options);
  announce(said);
}

async function openModels(anchor) {
  const found = await attempt(() => get("/api/models"));
  if (!found) return;
  const { model = "" } = sessionOptions.peek();
  const { provider, model_id: usual } = found.current;
  const ready = found.models.filter((one) => one.ready && !one.id.includes("*"));
  const rest = ready.length - MODELS_SHOWN;
  openMenu(anchor, "Model", [
    {
      label: "Default model",
      note: provider ? `${provider}/${usual}` : usual,
      checked: !model,
      run: () => choose({ model: "" }, "The default model answers"),
    },
    ...sortChosenFirst(ready, model)
      .slice(0, MODELS_SHOWN)
      .map((one) => ({
        label: one.id,
        note: describeModel(one),
        checked: one.id === model,
        run: () => choose({ model: one.id }, `${one.id} answers`),
      })),
    {
      label: rest > 0 ? `${rest} more, and other models …` : "Other models …",
      icon: "gear",
      run: () => {
        location.hash = "#/settings/models";
      },
    },
  ]);
}

const sortChosenFirst = (models, id) => [
  ...models.filter((one) => one.id === id),
  ...models.filter((one) => one.id !== id),
];

/** The size of its context and its price, where they are known. */
function describeModel({ window, price }) {
  return [
    window && `${formatCount(window)} tokens of context`,
    price && `${formatMoney(price[0])} / ${formatMoney(price[1])} per million`,
  ]
    .filter(Boolean)
    .join(" · ");
}

function openEfforts(anchor) {
  const { thinking } = sessionOptions.peek();
  openMenu(
    anchor,
    "Effort",
    EFFORTS.map(([id, label, note]) => ({
      label,
      note,
      checked: id === (thinking ?? ""),
      run: () => choose({ thinking: id }, `Effort: ${label}`),
    })),
  );
}

function openPermissions(anchor) {
  const [now] = findPermission(sessionOptions.peek());
  openMenu(
    anchor,
    "Permissions",
    PERMISSIONS.map(([id, label, note, set]) => ({
      label,
      note,
      checked: id === now,
      run: () => choose({ approval: false, plan_mode: false, ...set }, label),
    })),
  );
}
