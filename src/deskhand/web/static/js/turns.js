// The turns of a conversation: those that are drawn, and where in them one is.

import { markHits } from "./find.js";
import { Icon } from "./icons.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./lib.js";
import { nameOf } from "./list.js";
import { More } from "./more.js";
import { here, hrefOf, sought } from "./state.js";
import {
  afterwards,
  atEnd,
  earlier,
  jump,
  loading,
  shown,
  talk,
  toEnd,
  unsent,
  view,
} from "./talk.js";
import { Turn, Undone, Waiting } from "./turn.js";

const TOP = 0; // no event has this number: the very beginning is meant

/**
 * Where one is in what scrolls. The end stays in sight as long as one does not scroll away from it; else what is seen
 * stays where it is, whatever is put before it or gets another height.
 */
function usePlace() {
  const box = useRef(),
    stuck = useRef(true),
    seen = useRef(null),
    aim = useRef(null),
    tall = useRef(0),
    [away, setAway] = useState(false);
  const put = (place) => {
    // not scrollIntoView: that moves the whole page too
    const area = box.current,
      turn = area.querySelector(`[data-first="${place.first}"]`);
    if (turn)
      area.scrollTop +=
        turn.getBoundingClientRect().top - area.getBoundingClientRect().top - place.top;
    else if (place.below) area.scrollTop = area.scrollHeight - place.below;
  };
  const settle = () => {
    const area = box.current;
    if (!area) return;
    if (stuck.current) area.scrollTop = area.scrollHeight;
    else if (aim.current?.first === TOP) area.scrollTop = 0;
    else if (aim.current ?? seen.current) put(aim.current ?? seen.current);
  };
  const scrolled = () => {
    const area = box.current;
    if (!area) return;
    const grew = area.scrollHeight !== tall.current;
    tall.current = area.scrollHeight;
    if (grew && stuck.current) {
      settle();
      return;
    } // it was not the person who scrolled
    const end = !view.value && area.scrollHeight - area.scrollTop - area.clientHeight < 60,
      top = area.getBoundingClientRect().top;
    stuck.current = end && !aim.current;
    const turn = [...area.querySelectorAll(".turn")].find(
      (each) => each.getBoundingClientRect().bottom > top + 1,
    );
    seen.current = turn
      ? {
          first: turn.dataset.first,
          top: turn.getBoundingClientRect().top - top,
          below: area.scrollHeight - area.scrollTop,
        }
      : null;
    setAway(!end);
    atEnd(end);
  };
  const free = () => {
    aim.current = null;
  };
  const down = () => {
    free();
    stuck.current = true;
    view.value = null;
    atEnd(true);
    setAway(false);
    settle();
  };
  const to = (place) => {
    stuck.current = false;
    atEnd(false);
    aim.current = place;
    settle();
  };
  useLayoutEffect(settle);
  useEffect(() => {
    const watched = new ResizeObserver(settle);
    watched.observe(box.current.firstElementChild);
    watched.observe(box.current);
    return () => watched.disconnect();
  }, []);
  return { box, away, scrolled, free, down, to };
}

export function Log({ empty, first }) {
  const state = shown.value,
    { turns } = state,
    { box, away, scrolled, free, down, to } = usePlace(),
    live = !view.value,
    wanted = sought.value,
    [inside, setInside] = useState(null);
  useLayoutEffect(() => {
    if (box.current) down();
  }, [toEnd.value]);
  useLayoutEffect(() => {
    // what was searched for comes into sight
    const { name, n, query } = wanted ?? {};
    if (name !== here.value.name || !talk.value.n) return;
    const found = turns.find((turn) => turn.first <= n && n <= turn.last);
    if (!found) {
      if (!loading.value || n < talk.value.first) jump(n)?.catch(() => undefined);
      return;
    }
    const drawn = box.current.querySelector(`[data-first="${found.first}"]`);
    if (!drawn) {
      setInside(found);
      return;
    } // it was undone, and lies folded
    sought.value = null;
    to({ first: found.first, top: markHits(drawn, box.current, query) });
  });
  const begin = async () => {
    await jump(1);
    to({ first: TOP });
  };
  const key = (event) => {
    free();
    if (event.target !== box.current || !["Home", "End"].includes(event.key)) return;
    event.preventDefault();
    (event.key === "Home" ? begin : down)();
  };
  return html`<div class="scroll" ref=${box} onScroll=${scrolled} onWheel=${free} onPointerDown=${free} onTouchMove=${free} onKeyDown=${key} tabindex="0" role="region" aria-label="Conversation" aria-busy=${String(loading.value)}>
    <div class="log">
      ${empty && (loading.value ? html`<div class="empty"><span class="spin"></span></div>` : first)}
      ${state.branch && html`<p class="divider"><span>A branch of <a href=${hrefOf(nameOf(state.branch.of))}>another conversation</a>, from event ${state.branch.n}</span></p>`}
      ${state.first > 1 && !loading.value && html`<${More} key=${`before${state.first}`} more=${earlier} label="Show earlier" />`}
      ${grouped(turns).map((group) => (group.undone ? html`<${Undone} key=${`u${group.turns[0].id}`} turns=${group.turns} wanted=${group.turns.some((turn) => turn.first === inside?.first)} />` : html`<${Held} key=${group.turn.id} turn=${group.turn} last=${live && group.turn === turns.at(-1)} />`))}
      ${!live && html`<${More} key=${`after${view.value.events.at(-1).n}`} more=${afterwards} label="Show later" />`}
      ${live && unsent.value.map((message) => html`<${Waiting} key=${message.id} message=${message} />`)}
    </div>
    ${(away || !live) && html`<div class="to-end" role="group" aria-label="Move in this conversation"><button type="button" class="btn" onClick=${begin}><${Icon} name="up" />To the beginning</button><button type="button" class="btn" onClick=${down}><${Icon} name="down" />To the end</button></div>`}
  </div>`;
}

/** A turn that has not changed is not drawn again. */
function Held({ turn, last }) {
  const open = last && turn.end === null,
    { live, outputs, results, status } = talk.value;
  const now = open ? { live, outputs, results, status } : null;
  return useMemo(
    () => html`<${Turn} turn=${turn} last=${last} now=${now} />`,
    [turn, last, ...(open ? [live, outputs, results, status] : [null, null, null, null])],
  );
}

/** Turns one after the other; those undone side by side are one group. */
function grouped(turns) {
  const groups = [];
  for (const turn of turns) {
    if (!turn.undone) groups.push({ turn });
    else if (groups.at(-1)?.undone) groups.at(-1).turns.push(turn);
    else groups.push({ undone: true, turns: [turn] });
  }
  return groups;
}
