// The panel at the right: what belongs to the conversation that is open.
import { html, useEffect, useRef } from "../lib.js";
import { developer, here, panel } from "../state.js";
import { IconButton } from "../icons.js";
import { Files } from "./files.js";
import { Options } from "./options.js";
import { Slider } from "./slider.js";
import { Tasks } from "./tasks.js";
import { Trace } from "./trace.js";

const PANELS = { files: ["Files", Files], options: ["This conversation", Options], tasks: ["Tasks", Tasks], trace: ["Trace", Trace], time: ["Slider", Slider] };

export function SidePanel() {
  const top = useRef(), id = panel.value, hidden = !developer.value && (id === "trace" || id === "time");
  useEffect(() => {
    const before = document.activeElement;
    top.current?.focus({ preventScroll: true });
    return () => before?.isConnected && before.focus?.();
  }, [id]);
  if (!PANELS[id] || hidden || (!here.value.name && id !== "files" && id !== "options")) return null;
  const [label, Drawn] = PANELS[id];
  return html`<aside class=${`panel ${id}`} aria-label=${label} tabindex="-1" ref=${top}>
    <header class="panel-head"><h2>${label}</h2><span class="grow"></span><${IconButton} name="close" label="Close the panel" onClick=${() => { panel.value = ""; }} /></header>
    <div class="panel-body"><${Drawn} key=${here.value.name} /></div>
  </aside>`;
}
