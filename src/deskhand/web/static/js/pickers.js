// The buttons beside the message: which model answers, how hard it thinks, what it may do unasked.

import { get } from "./api.js";
import { formatCount, formatMoney } from "./format.js";
import { Icon } from "./icons.js";
import { t, tCount } from "./language.js";
import { html } from "./lib.js";
import { openMenu } from "./menu.js";
import { sessionOptions, setSessionOptions } from "./session-options.js";
import { announce, attempt, route } from "./state.js";
import { talk } from "./talk.js";

const MODELS_SHOWN = 30;
const EFFORTS = [
  ["", t("Default"), t("As the agent is set up")],
  ["off", t("Off"), t("Answers at once; the cheapest")],
  ["low", t("Low"), t("Thinks a little")],
  ["medium", t("Medium"), t("For tasks with a few steps")],
  ["high", t("High"), t("For hard tasks; slower")],
  ["max", t("Maximum"), t("As long as it takes; the dearest")],
];
const PERMISSIONS = [
  ["usual", t("Usual permissions"), t("Asks before what your settings say"), {}],
  [
    "ask",
    t("Ask before each step"),
    t("Every tool that changes something waits for you"),
    { approval: true },
  ],
  ["plan", t("Plan first"), t("Only looks around until you approve its plan"), { plan_mode: true }],
];

export function Pickers() {
  const options = sessionOptions.value;
  const model = options.model || (route.value.name && talk.value.model) || "";
  const effort = EFFORTS.find(([id]) => id === (options.thinking ?? "")) ?? EFFORTS[0];
  const permission = findPermission(options);
  return html`
    <div class="pickers" role="group" aria-label=${t("For this conversation")}>
      <${Picker}
        icon="spark"
        what=${t("Model")}
        value=${model ? shortName(model) : t("Default model")}
        title=${model}
        open=${openModels}
      />
      <${Picker}
        icon="pulse"
        what=${t("Effort")}
        value=${effort[1]}
        open=${openEfforts}
        quiet=${!effort[0]}
      />
      <${Picker}
        icon="shield"
        what=${t("Permissions")}
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
  openMenu(anchor, t("Model"), [
    {
      label: t("Default model"),
      note: provider ? `${provider}/${usual}` : usual,
      checked: !model,
      run: () => choose({ model: "" }, t("The default model answers")),
    },
    ...sortChosenFirst(ready, model)
      .slice(0, MODELS_SHOWN)
      .map((one) => ({
        label: one.id,
        note: describeModel(one),
        checked: one.id === model,
        run: () => choose({ model: one.id }, t("{model} answers", { model: one.id })),
      })),
    {
      label:
        rest > 0
          ? tCount(rest, "{count} more, and other models …", "{count} more, and other models …")
          : t("Other models …"),
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
    window && t("{count} tokens of context", { count: formatCount(window) }),
    price &&
      t("{input} / {output} per million", {
        input: formatMoney(price[0]),
        output: formatMoney(price[1]),
      }),
  ]
    .filter(Boolean)
    .join(" · ");
}

function openEfforts(anchor) {
  const { thinking } = sessionOptions.peek();
  openMenu(
    anchor,
    t("Effort"),
    EFFORTS.map(([id, label, note]) => ({
      label,
      note,
      checked: id === (thinking ?? ""),
      run: () => choose({ thinking: id }, t("Effort: {effort}", { effort: label })),
    })),
  );
}

function openPermissions(anchor) {
  const [now] = findPermission(sessionOptions.peek());
  openMenu(
    anchor,
    t("Permissions"),
    PERMISSIONS.map(([id, label, note, set]) => ({
      label,
      note,
      checked: id === now,
      run: () => choose({ approval: false, plan_mode: false, ...set }, label),
    })),
  );
}
