// The turns of a conversation that are drawn.

import { BranchOrigin } from "./branch-origin.js";
import { markHits } from "./find.js";
import { Icon } from "./icons.js";
import { t } from "./language.js";
import { html, useLayoutEffect, useMemo, useState } from "./lib.js";
import { UnsentMessage } from "./message.js";
import { More } from "./more.js";
import { TOP, useScrollPosition } from "./scroll-position.js";
import { route, searchTarget } from "./state.js";
import {
  earlierPart,
  jumpToEvent,
  loadEarlier,
  loading,
  loadLater,
  scrollToEndRequests,
  shownState,
  talk,
  unsentMessages,
} from "./talk.js";
import { Turn, UndoneTurns } from "./turn.js";
import { groupVersions, Versions } from "./versions.js";
import { waiting } from "./waiting.js";

export function Log({ empty, first }) {
  const state = shownState.value;
  const { turns } = state;
  const { box, away, handleScroll, clearTarget, scrollToEnd, scrollToPlace } = useScrollPosition();
  const live = !earlierPart.value;
  const wanted = searchTarget.value;
  const [inside, setInside] = useState(null);
  useLayoutEffect(() => {
    if (box.current) scrollToEnd();
  }, [scrollToEndRequests.value]);
  useLayoutEffect(() => {
    const { name, n: number, query } = wanted ?? {};
    if (name !== route.value.name || !talk.value.n) return;
    const found = turns.find((turn) => turn.first <= number && number <= turn.last);
    if (!found) {
      if (!loading.value || number < talk.value.first) jumpToEvent(number)?.catch(() => undefined);
      return;
    }
    const drawn = box.current.querySelector(`[data-first="${found.first}"]`);
    if (!drawn) {
      setInside(found); // it was undone: open its group
      return;
    }
    searchTarget.value = null;
    scrollToPlace({ first: found.first, top: markHits(drawn, box.current, query) });
  });
  const goToBeginning = async () => {
    await jumpToEvent(1);
    scrollToPlace({ first: TOP });
  };
  const handleKey = (event) => {
    clearTarget();
    if (event.target !== box.current || !["Home", "End"].includes(event.key)) return;
    event.preventDefault();
    if (event.key === "Home") goToBeginning();
    else scrollToEnd();
  };
  return html`
    <div
      class="scroll"
      ref=${box}
      onScroll=${handleScroll}
      onWheel=${clearTarget}
      onPointerDown=${clearTarget}
      onTouchMove=${clearTarget}
      onKeyDown=${handleKey}
      tabindex="0"
      role="region"
      aria-label=${t("Conversation")}
      aria-busy=${String(loading.value)}
    >
      <div class="log">
        ${
          empty &&
          (loading.value ? html`<div class="empty"><span class="spin"></span></div>` : first)
        }
        ${
          state.branch &&
          html`<${BranchOrigin} key=${`of${state.branch.of}`} branch=${state.branch} />`
        }
        ${
          state.first > 1 &&
          !loading.value &&
          html`
            <${More}
              key=${`before${state.first}`}
              more=${loadEarlier}
              label=${t("Show earlier")}
            />
          `
        }
        ${groupVersions(turns).map((group) => {
          if (group.undone)
            return html`
              <${UndoneTurns}
                key=${`u${group.undone[0].id}`}
                turns=${group.undone}
                wanted=${group.undone.some((turn) => turn.first === inside?.first)}
              />
            `;
          const { turn, versions } = group;
          const drawn = html`
            <${CachedTurn} key=${turn.id} turn=${turn} last=${live && turn === turns.at(-1)} />
          `;
          if (!versions) return drawn;
          const wanted = versions.flat().find((one) => one.first === inside?.first);
          return html`
            <${Versions} key=${`v${versions[0][0].id}`} versions=${versions} wanted=${wanted}>
              ${drawn}
            <//>
          `;
        })}
        ${
          !live &&
          html`
            <${More}
              key=${`after${earlierPart.value.events.at(-1).n}`}
              more=${loadLater}
              label=${t("Show later")}
            />
          `
        }
        ${
          live &&
          unsentMessages.value
            .filter(isNotListed)
            .map((message) => html`<${UnsentMessage} key=${message.id} message=${message} />`)
        }
      </div>
      ${
        (away || !live) &&
        html`
          <div class="to-end" role="group" aria-label=${t("Move in this conversation")}>
            <button type="button" class="btn" onClick=${goToBeginning}>
              <${Icon} name="up" />${t("To the beginning")}
            </button>
            <button type="button" class="btn" onClick=${scrollToEnd}>
              <${Icon} name="down" />${t("To the end")}
            </button>
          </div>
        `
      }
    </div>
  `;
}

/** What waits to be read is listed above the field instead. */
const isNotListed = (message) => !waiting.value.some((one) => one.inbox_id === message.inbox);

/** A turn that has not changed is not drawn again. */
function CachedTurn({ turn, last }) {
  const open = last && turn.end === null;
  const { live, outputs, results, status } = talk.value;
  const now = open ? { live, outputs, results, status } : null;
  return useMemo(
    () => html`<${Turn} turn=${turn} last=${last} now=${now} />`,
    [turn, last, ...(open ? [live, outputs, results, status] : [null, null, null, null])],
  );
}
