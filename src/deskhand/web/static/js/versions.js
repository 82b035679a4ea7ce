// What was undone and said anew: versions of one place in a conversation, of which one is shown.

import { IconButton } from "./icons.js";
import { t, tCount } from "./language.js";
import { html, useLayoutEffect, useState } from "./lib.js";
import { Turn } from "./turn.js";

/**
 * The turns in groups: `{turn}` for one that holds; `{versions, turn}` for one that came in the
 * place of others, where each version is a list of turns; `{undone}` for turns behind which nothing
 * was said anew.
 */
export function groupVersions(turns) {
  const groups = [];
  let undone = [];
  for (const turn of turns) {
    if (turn.undone) undone.push(turn);
    else {
      groups.push(undone.length ? { versions: splitVersions(undone), turn } : { turn });
      undone = [];
    }
  }
  if (undone.length) groups.push({ undone });
  return groups;
}

/** Turns that were undone together are one version; the one that was undone first comes first. */
function splitVersions(undone) {
  const byEvent = new Map();
  for (const turn of undone)
    byEvent.set(turn.undoneBy, [...(byEvent.get(turn.undoneBy) ?? []), turn]);
  return [...byEvent.entries()].toSorted(([one], [other]) => one - other).map(([, all]) => all);
}

/** `children` is the turn that holds; `wanted` is a turn of an earlier version that is to be shown. */
export function Versions({ versions, wanted, children }) {
  const last = versions.length;
  const [shown, setShown] = useState(last);
  useLayoutEffect(() => setShown(last), [last]); // a new one holds now
  useLayoutEffect(() => {
    const found = wanted ? versions.findIndex((all) => all.some((turn) => turn === wanted)) : -1;
    if (found >= 0) setShown(found);
  }, [wanted]);
  const old = shown < last ? versions[shown] : null;
  return html`
    <div class="versions">
      <div class="pager" role="group" aria-label=${t("Versions")}>
        <${IconButton}
          name="left"
          little
          label=${t("The version before")}
          disabled=${shown === 0}
          onClick=${() => setShown(shown - 1)}
        />
        <span class="tiny muted" aria-live="polite">
          <span class="sr">${t("Version")} </span>${shown + 1}/${last + 1}
        </span>
        <${IconButton}
          name="right"
          little
          label=${t("The version after")}
          disabled=${shown === last}
          onClick=${() => setShown(shown + 1)}
        />
        ${
          old &&
          html`
            <span class="tiny muted">
              ${tCount(old.length, "{count} turn, undone", "{count} turns, undone")}
            </span>
          `
        }
      </div>
      ${
        old
          ? old.map(
              (turn) => html`<${Turn} key=${turn.id} turn=${turn} last=${false} now=${null} />`,
            )
          : children
      }
    </div>
  `;
}
