// The field to write in: text, files, and what becomes of it while something runs.

import { call } from "./api.js";
import { bytes } from "./format.js";
import { Icon, IconButton } from "./icons.js";
import { draftOf, keepDraft } from "./keep.js";
import { html, signal, useEffect, useLayoutEffect, useRef } from "./lib.js";
import { announce, complain, here, may, online } from "./state.js";
import { say, stop, talk } from "./talk.js";

const MODES = [
  ["steer", "Steer", "It reads this at its next step and takes it into account"],
  ["queue", "Queue", "It reads this when it has finished what it does"],
  ["interrupt", "Interrupt", "It stops at once and turns to this"],
];
const draft = signal("");
const files = signal([]); // {key, name, size, blob?, mime, problem?}
const mode = signal("steer");
const dropping = signal(false);

export function Composer() {
  const field = useRef(),
    picker = useRef(),
    { name } = here.value,
    running = talk.value.open;
  useEffect(() => {
    draft.value = draftOf(name);
    files.value = [];
    if (!matchMedia("(pointer: coarse)").matches) field.current?.focus();
    return dragging();
  }, []);
  useLayoutEffect(() => {
    const area = field.current;
    if (!area) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, innerHeight * 0.4)}px`;
  }, [draft.value]);
  const ready =
    (draft.value.trim() || files.value.some((file) => file.blob)) &&
    !files.value.some((file) => !file.blob && !file.problem);
  const send = () => {
    if (!ready) return;
    const text = draft.value.trim(),
      attached = files.value
        .filter((file) => file.blob)
        .map(({ blob, name: called, mime, size }) => ({
          blob,
          name: called,
          mime,
          size_bytes: size,
        }));
    draft.value = "";
    files.value = [];
    keepDraft(name, "");
    say(text, attached, running ? mode.value : "steer");
    announce(running ? "Sent, while it works" : "Sent");
  };
  const key = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    if (matchMedia("(pointer: coarse)").matches && !event.ctrlKey) return; // on a phone there is a button for it
    event.preventDefault();
    send();
  };
  const write = (event) => {
    draft.value = event.target.value;
    keepDraft(name, event.target.value);
  };
  const paste = (event) => {
    const pasted = [...(event.clipboardData?.files ?? [])];
    if (pasted.length) {
      event.preventDefault();
      attach(pasted);
    }
  };
  if (!may("chat"))
    return html`<p class="composer-note">You may read here. To write, ask the owner for the role member.</p>`;
  return html`<form class=${`composer ${dropping.value ? "dropping" : ""}`} onSubmit=${(event) => {
    event.preventDefault();
    send();
  }}>
    ${
      files.value.length > 0 &&
      html`<ul class="attached">${files.value.map(
        (file) =>
          html`<li key=${file.key} class=${`chip ${file.problem ? "bad" : ""}`}>${file.thumb ? html`<img src=${file.thumb} alt="" />` : html`<${Icon} name="file" />`}<span class="cut">${file.name}</span><span class="muted">${file.problem || (file.blob ? bytes(file.size) : "uploading …")}</span><${IconButton} name="close" little label=${`Take away ${file.name}`} onClick=${() => {
            files.value = files.value.filter((one) => one !== file);
          }} /></li>`,
      )}</ul>`
    }
    <label class="sr" for="composer">Message to Deskhand</label>
    <textarea id="composer" ref=${field} rows="1" value=${draft.value} placeholder=${placeholder(running)} onInput=${write} onKeyDown=${key} onPaste=${paste} enterkeyhint="enter"></textarea>
    <div class="row">
      <input type="file" multiple hidden ref=${picker} onChange=${(event) => {
        attach([...event.target.files]);
        event.target.value = "";
      }} />
      <${IconButton} name="clip" label="Attach files" onClick=${() => picker.current.click()} />
      ${
        running &&
        html`<div class="modes" role="radiogroup" aria-label="While it works, this message should">${MODES.map(
          ([id, label, means]) =>
            html`<button key=${id} type="button" role="radio" aria-checked=${String(mode.value === id)} title=${means} tabindex=${mode.value === id ? 0 : -1} onClick=${() => {
              mode.value = id;
            }} onKeyDown=${turn}>${label}</button>`,
        )}</div>`
      }
      <span class="grow cut tiny muted">${running && html`<span class="only-wide">${MODES.find(([id]) => id === mode.value)[2]}</span>`}</span>
      ${running && html`<button type="button" class="btn stop" aria-label="Stop" onClick=${stop} title="Stop (Esc)"><${Icon} name="stop" /><span class="only-wide">Stop</span></button>`}
      <button type="submit" class="send" aria-label="Send" title="Send (Enter)" disabled=${!ready}><${Icon} name="send" /></button>
    </div>
  </form>`;
}

function placeholder(running) {
  if (!online.value) return "Write; it is sent when Deskhand is back";
  return running ? "Say more while it works" : "Message Deskhand";
}

/** Arrows walk through a group of choices. */
function turn(event) {
  const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  const all = MODES.map(([id]) => id);
  mode.value = all[(all.indexOf(mode.value) + by + all.length) % all.length];
  requestAnimationFrame(() => document.querySelector('.modes [aria-checked="true"]')?.focus());
}

/** Upload what is to go with the next message. */
export async function attach(chosen) {
  for (const file of chosen) {
    const entry = {
      key: crypto.getRandomValues(new Uint32Array(1))[0],
      name: file.name || "picture.png",
      size: file.size,
      mime: file.type || "application/octet-stream",
    };
    files.value = [...files.value, entry];
    const settle = (more) => {
      files.value = files.value.map((one) => (one.key === entry.key ? { ...one, ...more } : one));
    };
    thumbOf(file).then(
      (thumb) => settle({ thumb }),
      () => undefined,
    ); // no picture, or one that the browser does not know
    try {
      const known = await call(
        "POST",
        `/api/blobs?name=${encodeURIComponent(entry.name)}`,
        new Blob([file], { type: entry.mime }),
      );
      settle({ blob: known.blob, mime: known.mime, size: known.size_bytes, name: known.name });
      announce(`${entry.name} is attached`);
    } catch (error) {
      settle({ problem: error.missing ? "this server takes no files" : "not uploaded" });
      if (!error.missing) complain(error);
    }
  }
}

/** The picture, small, as an address that the page may show. */
async function thumbOf(file) {
  const bitmap = await createImageBitmap(file, { resizeHeight: 56, resizeQuality: "medium" });
  const canvas = Object.assign(document.createElement("canvas"), {
    width: bitmap.width,
    height: bitmap.height,
  });
  canvas.getContext("2d").drawImage(bitmap, 0, 0);
  return canvas.toDataURL("image/png");
}

function dragging() {
  let depth = 0;
  const on = {
    dragenter: (event) => {
      if (event.dataTransfer?.types.includes("Files")) {
        depth += 1;
        dropping.value = true;
      }
    },
    dragleave: () => {
      depth = Math.max(0, depth - 1);
      if (!depth) dropping.value = false;
    },
    dragover: (event) => event.preventDefault(),
    drop: (event) => {
      event.preventDefault();
      depth = 0;
      dropping.value = false;
      if (event.dataTransfer?.files.length && !event.target.closest?.(".panel"))
        attach([...event.dataTransfer.files]);
    },
  };
  for (const [name, heard] of Object.entries(on)) addEventListener(name, heard);
  return () => {
    for (const [name, heard] of Object.entries(on)) removeEventListener(name, heard);
  };
}
