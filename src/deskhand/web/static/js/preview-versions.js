// What changed a file, and how it was after each change.

import { get, post } from "./api.js";
import { FileChanges } from "./diff.js";
import { formatDateTime } from "./format.js";
import { t } from "./language.js";
import { html, useEffect, useState } from "./lib.js";
import { Empty, Loaded, useFetch } from "./panels/parts.js";
import { Body, Source } from "./preview-body.js";
import { announce, attempt, hasScope, sessionHref } from "./state.js";

const DID = { made: t("Made"), changed: t("Changed"), removed: t("Removed") };

export function Versions({ file, changed }) {
  const found = useFetch(file.versions);
  return html`
    <${Loaded} result=${found} what=${t("versions")}>
      ${(versions) =>
        versions.length
          ? html`
              <ol class="versions">
                ${versions.map(
                  (one) => html`
                    <li key=${one.n}>
                      <${Version} one=${one} file=${file} changed=${changed} />
                    </li>
                  `,
                )}
              </ol>
            `
          : html`<${Empty}>${t("No change of this file is kept.")}<//>`}
    <//>
  `;
}

function Version({ one, file, changed }) {
  const [open, setOpen] = useState("");
  const [said, setSaid] = useState("");
  const undoChange = () =>
    attempt(async () => {
      const done = await post(`/api/changes/${one.n}/undo`, { force: false });
      announce(done.message);
      setSaid(done.message);
      if (done.change !== null) changed();
    });
  const toggle = (name) => setOpen(open === name ? "" : name);
  return html`
    <p>
      <strong>${DID[one.did]}</strong>
      <span class="small muted">
        ${" "}${formatDateTime(one.at)} · ${one.tool || t("a command")}
        ${one.person && ` · ${t("for {person}", { person: one.person })}`}
        ${one.session && html` · <a href=${sessionHref(one.session)}>${t("conversation")}</a>`}
      </span>
      ${one.undone_at !== null && html` <span class="tag">${t("undone")}</span>`}
    </p>
    <p class="row wrap">
      <button
        type="button"
        class="btn little"
        aria-expanded=${String(open === "diff")}
        onClick=${() => toggle("diff")}
      >
        ${t("What changed")}
      </button>
      ${
        one.kept &&
        html`
          <button
            type="button"
            class="btn little"
            aria-expanded=${String(open === "text")}
            onClick=${() => toggle("text")}
          >
            ${t("Show this version")}
          </button>
        `
      }
      ${
        one.can === "undo" &&
        hasScope("chat") &&
        html`
          <button type="button" class="btn little" onClick=${undoChange}>
            ${t("Undo this change")}
          </button>
        `
      }
    </p>
    ${said && html`<p class="small" role="status">${said}</p>`}
    ${open === "diff" && html`<${VersionDiff} n=${one.n} file=${file} />`}
    ${open === "text" && html`<${VersionText} n=${one.n} file=${file} />`}
  `;
}

/** A change may have touched other files too: only this one is shown. */
function VersionDiff({ n, file }) {
  const [diff, setDiff] = useState({});
  useEffect(() => {
    get(`/api/changes/${n}/diff`).then(
      ({ files }) => {
        const own = files.filter((each) => each.place === file.path);
        setDiff({ data: { files: own.length ? own : files, more: 0 } });
      },
      (error) => setDiff({ error }),
    );
  }, [n]);
  return html`
    <${Loaded} result=${diff} what=${t("this change")}>
      ${(data) => html`<${FileChanges} diff=${data} />`}
    <//>
  `;
}

function VersionText({ n, file }) {
  const found = useFetch(file.version(n));
  return html`
    <${Loaded} result=${found} what=${t("this version")}>
      ${(view) =>
        view.content === null
          ? html`<p class="none">${t("It is no text, and can be had by undoing the change.")}</p>`
          : html`
              <div class="version-text">
                ${
                  view.kind === "markdown"
                    ? html`<${Body} view=${view} file=${file} />`
                    : html`<${Source} view=${view} file=${{ ...file, at: null }} />`
                }
              </div>
            `}
    <//>
  `;
}
