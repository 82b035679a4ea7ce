// The field to write in: text, files, and how a message is taken while a turn runs.

import { stopTurn } from "./actions.js";
import { ChoiceGroup } from "./choice-group.js";
import {
  Completions,
  closeCompletions,
  complete,
  findToken,
  offerCompletions,
  offered,
  steerCompletions,
} from "./completion.js";
import {
  AttachedFiles,
  areUploaded,
  attachFile,
  attachFiles,
  dropping,
  files,
  listenForDrops,
  listUploaded,
} from "./composer-files.js";
import { Icon, IconButton } from "./icons.js";
import { t } from "./language.js";
import { useLazyComponent } from "./lazy-component.js";
import { html, signal, useEffect, useLayoutEffect, useRef } from "./lib.js";
import { Pickers } from "./pickers.js";
import { sendMessage } from "./sending.js";
import { setSessionOptions } from "./session-options.js";
import { announce, hasScope, narrow, online, openSession, panel, route } from "./state.js";
import { loadDraft, storeDraft } from "./storage.js";
import { talk } from "./talk.js";
import { canRecord, phase, stopSpeaking } from "./voice.js";
import { WaitingMessages } from "./waiting.js";

const MODES = [
  [
    "steer",
    t("Steer"),
    t("It reads this at its next step and takes it into account"),
    t("Say more while it works"),
  ],
  [
    "queue",
    t("Queue"),
    t("It reads this when it has finished what it does"),
    t("Say what comes next"),
  ],
  [
    "interrupt",
    t("Interrupt"),
    t("It stops at once and does this instead"),
    t("Say what it should do instead"),
  ],
];
/** What is written in the message field. */
export const draft = signal("");
const mode = signal("steer");

/** Put this into the message field of the conversation beside, or of a new one: below what is
 * written there, or `first`. What stands there already is not put there again; nothing is sent. */
export function addToDraft(text, { first = false } = {}) {
  const { name, place } = route.value;
  const written = loadDraft(name);
  const parts = first ? [text, written] : [written, text];
  const both = written.includes(text) ? written : parts.filter(Boolean).join("\n\n");
  storeDraft(name, both);
  if (place !== "talk") {
    openSession(""); // the field reads it as it is drawn
    return;
  }
  draft.value = both;
  if (narrow.value) panel.value = "";
  document.getElementById("composer")?.focus();
}

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
  const ready = (draft.value.trim() || files.value.some((file) => file.blob)) && areUploaded();
  const talks = canRecord(); // it may become true later, when something that hears is set up
  const voice = useLazyComponent(talks ? "voice" : "", talks ? loadVoice : null);
  const sendRecording = async (sound, send) => {
    const fileName = `recording.${sound.type.split("/")[1]}`;
    const known = await attachFile(new File([sound], fileName, { type: sound.type }), true);
    if (!known || !send) return;
    if (route.value.name !== name) {
      // the person has opened another conversation meanwhile
      sendMessage("", [{ ...known, spoken: true }], "steer", name);
      return;
    }
    if (areUploaded() && files.value.some((file) => file.blob === known.blob)) sendDraft(name);
  };
  const submit = () => {
    if (phase.value) voice.finish();
    else if (ready) sendDraft(name);
  };
  const setText = (text, caret = text.length) => {
    draft.value = text;
    storeDraft(name, text);
    requestAnimationFrame(() => {
      field.current?.focus();
      field.current?.setSelectionRange(caret, caret);
    });
  };
  const takeCompletion = (entry) => {
    const caret = field.current.selectionStart;
    const token = findToken(draft.value, caret);
    closeCompletions();
    if (!token) return;
    const taken = complete(draft.value, caret, token, entry);
    setText(taken.text, taken.caret);
    if (entry.kind === "folder") offerCompletions(taken.text, taken.caret);
    if (entry.kind === "preset") {
      setSessionOptions({ preset: entry.written });
      announce(t("The preset {name} holds in this conversation", { name: entry.written }));
    }
  };
  /** Put a message that was taken back into the field, before what is written there. */
  const editMessage = (message) => {
    const attached = message.files.map((file) => ({
      ...file,
      key: file.blob,
      size: file.size_bytes,
    }));
    files.value = [...files.value, ...attached];
    setText([message.text, draft.value].filter(Boolean).join("\n\n"));
  };
  const handleKey = (event) => {
    if (steerCompletions(event, takeCompletion)) return;
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    if (matchMedia("(pointer: coarse)").matches && !event.ctrlKey) return; // phones use the button
    event.preventDefault();
    submit();
  };
  const updateDraft = (event) => {
    stopSpeaking();
    draft.value = event.target.value;
    storeDraft(name, event.target.value);
    offerCompletions(event.target.value, event.target.selectionStart);
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
      <p class="composer-note">${t("You may read here. To write, ask the owner for the role member.")}</p>
    `;
  return html`
    <form
      class=${[
        "composer",
        phase.value,
        voice && "can-talk",
        ready && "ready",
        dropping.value && "dropping",
      ]
        .filter(Boolean)
        .join(" ")}
      onSubmit=${(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <${WaitingMessages} edit=${editMessage} />
      <${AttachedFiles} />
      <${Completions} take=${takeCompletion} />
      <label class="sr" for="composer">${t("Message to Deskhand")}</label>
      <div class="write">
        <textarea
          id="composer"
          ref=${field}
          rows="1"
          value=${draft.value}
          placeholder=${choosePlaceholder(running)}
          onInput=${updateDraft}
          onKeyDown=${handleKey}
          onPaste=${pasteFiles}
          onBlur=${closeCompletions}
          aria-autocomplete="list"
          aria-controls=${offered.value ? "completions" : null}
          aria-activedescendant=${offered.value ? `completion-${offered.value.chosen}` : null}
          enterkeyhint="enter"
        ></textarea>
        ${phase.value && voice && html`<${voice.RecordingBar} />`}
      </div>
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
        ${
          phase.value && voice
            ? html`
                <${IconButton}
                  name="trash"
                  label=${t("Discard the recording (Esc)")}
                  onClick=${voice.discard}
                />
              `
            : html`
                <${IconButton}
                  name="clip"
                  label=${t("Attach files")}
                  onClick=${() => picker.current.click()}
                />
                <${Pickers} />
              `
        }
        ${
          running &&
          html`
            <${ChoiceGroup}
              role="radio"
              class="modes"
              aria-label=${t("While it works, this message should")}
              choices=${MODES.map(([id, label, means]) => [id, label, { title: means }])}
              chosen=${mode.value}
              choose=${(id) => {
                mode.value = id;
              }}
            />
          `
        }
        <span class="grow"></span>
        ${
          running &&
          html`
            <button
              type="button"
              class="btn stop"
              aria-label=${t("Stop")}
              onClick=${stopTurn}
              title=${t("Stop (Esc)")}
            >
              <${Icon} name="stop" />
              <span class="only-wide">${t("Stop")}</span>
            </button>
          `
        }
        ${voice && html`<${voice.TalkButton} deliver=${sendRecording} />`}
        <button
          type="submit"
          class="send"
          aria-label=${t("Send")}
          title=${t("Send (Enter)")}
          disabled=${phase.value ? phase.value === "asking" : !ready}
        >
          <${Icon} name="send" />
        </button>
      </div>
    </form>
  `;
}

const loadVoice = () => import("./voice/hold-to-talk.js");

/** Send what is written and attached. */
function sendDraft(name) {
  const text = draft.value.trim();
  const attached = listUploaded();
  const running = talk.value.open;
  stopSpeaking();
  draft.value = "";
  files.value = [];
  storeDraft(name, "");
  sendMessage(text, attached, running ? mode.value : "steer");
  announce(running ? t("Sent, while it works") : t("Sent"));
}

function choosePlaceholder(running) {
  if (!online.value) return t("Write a message: it is sent when Deskhand is back");
  return running ? MODES.find(([id]) => id === mode.value)[3] : t("Message Deskhand");
}
