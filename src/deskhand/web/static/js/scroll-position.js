// The scroll position of a conversation.

import { useEffect, useLayoutEffect, useRef, useState } from "./lib.js";
import { earlierPart, setFollowsEnd } from "./talk.js";

export const TOP = 0; // no event has this number: it stands for the beginning

/**
 * The scroll position. The end stays in sight until the person scrolls away from it; then the
 * visible turn stays where it is, whatever is drawn above it or changes its height.
 */
export function useScrollPosition() {
  const box = useRef();
  const followsEnd = useRef(true);
  const anchor = useRef(null); // the first visible turn
  const target = useRef(null); // where to scroll, until the person scrolls
  const lastHeight = useRef(0);
  const [away, setAway] = useState(false);
  const scrollToTurn = (place) => {
    const area = box.current; // not scrollIntoView: that moves the whole page too
    const turn = area.querySelector(`[data-first="${place.first}"]`);
    if (turn)
      area.scrollTop +=
        turn.getBoundingClientRect().top - area.getBoundingClientRect().top - place.top;
    else if (place.below) area.scrollTop = area.scrollHeight - place.below;
  };
  const restorePosition = () => {
    const area = box.current;
    if (!area) return;
    if (followsEnd.current) area.scrollTop = area.scrollHeight;
    else if (target.current?.first === TOP) area.scrollTop = 0;
    else if (target.current ?? anchor.current) scrollToTurn(target.current ?? anchor.current);
  };
  const handleScroll = () => {
    const area = box.current;
    if (!area) return;
    const grew = area.scrollHeight !== lastHeight.current;
    lastHeight.current = area.scrollHeight;
    if (grew && followsEnd.current) {
      restorePosition(); // it was not the person who scrolled
      return;
    }
    const end = !earlierPart.value && area.scrollHeight - area.scrollTop - area.clientHeight < 60;
    const top = area.getBoundingClientRect().top;
    followsEnd.current = end && !target.current;
    const turn = [...area.querySelectorAll(".turn")].find(
      (each) => each.getBoundingClientRect().bottom > top + 1,
    );
    anchor.current = turn
      ? {
          first: turn.dataset.first,
          top: turn.getBoundingClientRect().top - top,
          below: area.scrollHeight - area.scrollTop,
        }
      : null;
    setAway(!end);
    setFollowsEnd(end);
  };
  const clearTarget = () => {
    target.current = null;
  };
  const scrollToEnd = () => {
    clearTarget();
    followsEnd.current = true;
    earlierPart.value = null;
    setFollowsEnd(true);
    setAway(false);
    restorePosition();
  };
  const scrollToPlace = (place) => {
    followsEnd.current = false;
    setFollowsEnd(false);
    target.current = place;
    restorePosition();
  };
  useLayoutEffect(restorePosition);
  useEffect(() => {
    const watched = new ResizeObserver(restorePosition);
    watched.observe(box.current.firstElementChild);
    watched.observe(box.current);
    return () => watched.disconnect();
  }, []);
  return { box, away, handleScroll, clearTarget, scrollToEnd, scrollToPlace };
}
