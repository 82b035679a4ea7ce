// The panel at the right: what belongs to the conversation that is open.

import { folded } from "../folded.js";
import { IconButton } from "../icons.js";
import { t } from "../language.js";
import { useLazyComponent } from "../lazy-component.js";
import { html, useLayoutEffect, useRef } from "../lib.js";
import { developer, drawer, panel, route } from "../state.js";

const PANELS = {
  files: [t("Files"), async () => (await import("./files.js")).Files],
  options: [t("This conversation"), async () => (await import("./options.js")).Options],
  screen: [t("Screen"), async () => (await import("./screen.js")).Screen],
  tasks: [t("Tasks"), async () => (await import("./tasks.js")).Tasks],
  branches: [t("Branches"), async () => (await import("./branches.js")).Branches],
  trace: [t("Trace"), async () => (await import("./trace.js")).Trace],
  time: [t("Slider"), async () => (await import("./slider.js")).Slider],
};

export function SidePanel() {
  const top = useRef();
  const id = panel.value;
  const [label, load] = PANELS[id] ?? [];
  const Drawn = useLazyComponent(id, load);
  const hidden = !developer.value && (id === "trace" || id === "time");
  useLayoutEffect(() => {
    const before = document.activeElement; // and back to it before the next key is pressed
    top.current?.focus({ preventScroll: true });
    return () => before?.isConnected && before.focus?.();
  }, [id]);
  if (!label || hidden || (!route.value.name && id !== "files" && id !== "options")) return null;
  return html`
    <aside
      class=${`panel ${id}`}
      aria-label=${label}
      tabindex="-1"
      ref=${top}
      inert=${drawer.value && folded.value}
    >
      <header class="panel-head">
        <h2>${label}</h2>
        <span class="grow"></span>
        <${IconButton}
          name="close"
          label=${t("Close the panel")}
          onClick=${() => {
            panel.value = "";
          }}
        />
      </header>
      <div class="panel-body">${Drawn && html`<${Drawn} key=${route.value.name} />`}</div>
    </aside>
  `;
}
