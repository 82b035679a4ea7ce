// A field in which a person edits a text file. Saving is a change like those of an agent: it is
// listed under Changes and can be undone.

import { call } from "./api.js";
import { t } from "./language.js";
import { html, useState } from "./lib.js";
import { currentAgent } from "./preview.js";
import { announce, attempt } from "./state.js";

/** What is not saved yet, by the file and the text that was edited: it survives another layout. */
const drafts = new Map();

export function Editor({ view, file, saved }) {
  const draft = `${file.about} ${view.digest}`;
  const [problem, setProblem] = useState("");
  const [saving, setSaving] = useState(false);
  const saveText = async (event) => {
    event.preventDefault();
    const content = new FormData(event.target).get("text");
    setSaving(true);
    await attempt(async () => {
      try {
        await call("PUT", "/api/files/text", {
          agent: currentAgent(),
          path: file.path,
          content: content.replace(/\r\n/g, "\n"),
          digest: view.digest,
        });
        announce(t("Saved {name}", { name: file.name }));
        drafts.delete(draft);
        saved();
      } catch (error) {
        if (error.status !== 409) throw error;
        setProblem(error.message);
      }
    });
    setSaving(false);
  };
  const handleKey = (event) => {
    if (event.key === "s" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      event.currentTarget.form.requestSubmit();
    }
    if (event.key === "Escape") event.stopPropagation(); // what is written is not lost by a key
  };
  return html`
    <form class="text-editor" onSubmit=${saveText}>
      <textarea
        name="text"
        spellcheck=${view.kind === "markdown"}
        aria-label=${t("Text of {name}", { name: file.name })}
        defaultValue=${drafts.get(draft) ?? view.content}
        onInput=${(event) => drafts.set(draft, event.target.value)}
        onKeyDown=${handleKey}
        ref=${(field) => field?.focus()}
      ></textarea>
      ${
        problem &&
        html`
          <p class="note warn" role="alert">
            ${t("{problem} Copy what you wrote, and open the file again.", { problem })}
          </p>
        `
      }
      <p class="row">
        <button type="submit" class="btn main little" disabled=${saving}>${t("Save")}</button>
        <button
          type="button"
          class="btn little"
          onClick=${() => {
            drafts.delete(draft);
            saved();
          }}
        >
          ${t("Cancel")}
        </button>
        <span class="tiny muted">${t("The change is kept under Versions and can be undone.")}</span>
      </p>
    </form>
  `;
}
