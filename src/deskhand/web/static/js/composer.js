// The field to write in: text, files, and how a message is taken while a turn runs.

import { stopTurn } from "./actions.js";
import { call } from "./api.js";
import { formatBytes } from "./format.js";
import { Icon, IconButton } from "./icons.js";
import { html, signal, useEffect, useLayoutEffect, useRef } from "./lib.js";
import { announce, hasScope, online, route, showError } from "./state.js";
import { loadDraft, storeDraft } from "./storage.js";
import { sendMessage, talk } from "./talk.js";

const MODES = [
  ["steer", "Steer", "It reads this at its next step and takes it into account"],
  ["queue", "Queue", "It reads this when it has finished what it does"],
  ["interrupt", "Interrupt", "It stops at once and does this instead"],
];
const draft = signal("");
const files = signal([]); // {key, name, size, blob?, mime, problem?}
const mode = signal("steer");
const dropping = signal(false);

export function Composer() {
  const field = useRef();
  const picker = useRef();
  const { name } = route.value;
  const running = talk.value.open;
  useEffect(() => {
    draft.value = loadDraft(name);
    files.value = [];
    if (!matchMedia("(pointer: coarse)").matches) field.current?.focus();
    return listenForDrops();
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
  const sendDraft = () => {
    if (!ready) return;
    const text = draft.value.trim();
    const attached = files.value
      .filter((file) => file.blob)
      .map(({ blob, name: called, mime, size }) => ({
        blob,
        name: called,
        mime,
        size_bytes: size,
      }));
    draft.value = "";
    files.value = [];
    storeDraft(name, "");
    sendMessage(text, attached, running ? mode.value : "steer");
    announce(running ? "Sent, while it works" : "Sent");
  };
  const handleKey = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    if (matchMedia("(pointer: coarse)").matches && !event.ctrlKey) return; // phones use the button
    event.preventDefault();
    sendDraft();
  };
  const updateDraft = (event) => {
    draft.value = event.target.value;
    storeDraft(name, event.target.value);
  };
  const pasteFiles = (event) => {
    const pasted = [...(event.clipboardData?.files ?? [])];
    if (pasted.length) {
      event.preventDefault();
      attachFiles(pasted);
    }
  };
  if (!hasScope("chat"))
    return html`
      <p class="composer-note">You may read here. To write, ask the owner for the role member.</p>
    `;
  return html`
    <form
      class=${`composer ${dropping.value ? "dropping" : ""}`}
      onSubmit=${(event) => {
        event.preventDefault();
        sendDraft();
      }}
    >
      ${
        files.value.length > 0 &&
        html`
          <ul class="attached">
            ${files.value.map(
              (file) => html`
                <li key=${file.key} class=${`chip ${file.problem ? "bad" : ""}`}>
                  ${
                    file.thumb
                      ? html`<img src=${file.thumb} alt="" />`
                      : html`<${Icon} name="file" />`
                  }
                  <span class="cut">${file.name}</span>
                  <span class="muted">
                    ${file.problem || (file.blob ? formatBytes(file.size) : "uploading …")}
                  </span>
                  <${IconButton}
                    name="close"
                    little
                    label=${`Remove ${file.name}`}
                    onClick=${() => {
                      files.value = files.value.filter((one) => one !== file);
                    }}
                  />
                </li>
              `,
            )}
          </ul>
        `
      }
      <label class="sr" for="composer">Message to Deskhand</label>
      <textarea
        id="composer"
        ref=${field}
        rows="1"
        value=${draft.value}
        placeholder=${choosePlaceholder(running)}
        onInput=${updateDraft}
        onKeyDown=${handleKey}
        onPaste=${pasteFiles}
        enterkeyhint="enter"
      ></textarea>
      <div class="row">
        <input
          type="file"
          multiple
          hidden
          ref=${picker}
          onChange=${(event) => {
            attachFiles([...event.target.files]);
            event.target.value = "";
          }}
        />
        <${IconButton} name="clip" label="Attach files" onClick=${() => picker.current.click()} />
        ${
          running &&
          html`
            <div class="modes" role="radiogroup" aria-label="While it works, this message should">
              ${MODES.map(
                ([id, label, means]) => html`
                  <button
                    key=${id}
                    type="button"
                    role="radio"
                    aria-checked=${String(mode.value === id)}
                    title=${means}
                    tabindex=${mode.value === id ? 0 : -1}
                    onClick=${() => {
                      mode.value = id;
                    }}
                    onKeyDown=${moveMode}
                  >
                    ${label}
                  </button>
                `,
              )}
            </div>
          `
        }
        <span class="grow cut tiny muted">
          ${
            running &&
            html`<span class="only-wide">${MODES.find(([id]) => id === mode.value)[2]}</span>`
          }
        </span>
        ${
          running &&
          html`
            <button
              type="button"
              class="btn stop"
              aria-label="Stop"
              onClick=${stopTurn}
              title="Stop (Esc)"
            >
              <${Icon} name="stop" />
              <span class="only-wide">Stop</span>
            </button>
          `
        }
        <button
          type="submit"
          class="send"
          aria-label="Send"
          title="Send (Enter)"
          disabled=${!ready}
        >
          <${Icon} name="send" />
        </button>
      </div>
    </form>
  `;
}

function choosePlaceholder(running) {
  if (!online.value) return "Write a message: it is sent when Deskhand is back";
  return running ? "Say more while it works" : "Message Deskhand";
}

/** Arrow keys move between the modes. */
function moveMode(event) {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const all = MODES.map(([id]) => id);
  mode.value = all[(all.indexOf(mode.value) + step + all.length) % all.length];
  requestAnimationFrame(() => document.querySelector('.modes [aria-checked="true"]')?.focus());
}

/** Upload what is to go with the next message. */
export async function attachFiles(chosen) {
  for (const file of chosen) {
    const entry = {
      key: crypto.getRandomValues(new Uint32Array(1))[0],
      name: file.name || "picture.png",
      size: file.size,
      mime: file.type || "application/octet-stream",
    };
    files.value = [...files.value, entry];
    const updateEntry = (more) => {
      files.value = files.value.map((one) => (one.key === entry.key ? { ...one, ...more } : one));
    };
    makeThumbnail(file).then(
      (thumb) => updateEntry({ thumb }),
      () => undefined, // no picture, or one that the browser does not know
    );
    try {
      const known = await call(
        "POST",
        `/api/blobs?name=${encodeURIComponent(entry.name)}`,
        new Blob([file], { type: entry.mime }),
      );
      updateEntry({ blob: known.blob, mime: known.mime, size: known.size_bytes, name: known.name });
      announce(`${entry.name} is attached`);
    } catch (error) {
      updateEntry({ problem: error.missing ? "this server takes no files" : "not uploaded" });
      if (!error.missing) showError(error);
    }
  }
}

/** The picture, small, as an address that the page may show. */
async function makeThumbnail(file) {
  const bitmap = await createImageBitmap(file, { resizeHeight: 56, resizeQuality: "medium" });
  const canvas = Object.assign(document.createElement("canvas"), {
    width: bitmap.width,
    height: bitmap.height,
  });
  canvas.getContext("2d").drawImage(bitmap, 0, 0);
  return canvas.toDataURL("image/png");
}

function listenForDrops() {
  let depth = 0;
  const handlers = {
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
        attachFiles([...event.dataTransfer.files]);
    },
  };
  for (const [name, handler] of Object.entries(handlers)) addEventListener(name, handler);
  return () => {
    for (const [name, handler] of Object.entries(handlers)) removeEventListener(name, handler);
  };
}
