// Line icons, drawn on 24 by 24.
import { html } from "./lib.js";

const PATHS = {
  plus: "M12 5v14M5 12h14",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zm5 12 4 4",
  menu: "M4 7h16M4 12h16M4 17h16",
  close: "m6 6 12 12M18 6 6 18",
  send: "M12 19V6m-6 5 6-6 6 6",
  stop: "M7 7h10v10H7z",
  clip:
    "m20 11-8.500 8.500a5 5 0 0 1-7-7L13 4a3.300 3.300 0 0 1 4.700 4.700L9.500 17" +
    "a1.600 1.600 0 0 1-2.300-2.300L15 7",
  files: "M4 6a1 1 0 0 1 1-1h4l2 2.500h8a1 1 0 0 1 1 1V18a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1z",
  file: "M7 3.500h7l4 4V20a.5.5 0 0 1-.5.5h-10A.5.5 0 0 1 7 20zM14 3.500V8h4",
  trace: "M4 6h7M8 12h8M13 18h7",
  time: "M12 4a8 8 0 1 1-7.400 5M4 4v5h5M12 8v4.500l3 2",
  tune: "M4 8h9M17 8h3M4 16h3M11 16h9M15 6v4M9 14v4",
  gear:
    "M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM12 3v3M12 18v3M3 12h3M18 12h3M5.600 5.600l2.100 2.100" +
    "M16.300 16.300l2.100 2.100M18.400 5.600l-2.100 2.100M7.700 16.300l-2.100 2.100",
  sun:
    "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 3v1.500M12 19.500V21M3 12h1.500M19.500 12H21" +
    "M5.600 5.600l1.100 1.100M17.300 17.300l1.100 1.100M18.400 5.600l-1.100 1.100M6.700 17.300" +
    "l-1.100 1.100",
  moon: "M19 14.500A7.500 7.500 0 0 1 9.500 5a7.500 7.500 0 1 0 9.500 9.500z",
  copy: "M9 9h10v10H9zM15 9V5H5v10h4",
  check: "m5 12.500 4.500 4.500L19 7.500",
  edit: "m5 19 .8-3.800L16 5l3 3L8.800 18.200z",
  retry: "M19 12a7 7 0 1 1-2-5l2 2M19 4v5h-5",
  branch: "M7 5v14M7 13c6 0 10-1 10-6M17 7V5M5 5h4M5 19h4M15 5h4",
  undo: "M8 6 4 10l4 4M4 10h10a5 5 0 0 1 0 10h-3",
  down: "m7 10 5 5 5-5",
  right: "m10 7 5 5-5 5",
  left: "m14 7-5 5 5 5",
  up: "M12 19V6m-5 5 5-5 5 5",
  code: "m8 8-4 4 4 4M16 8l4 4-4 4",
  shell: "m5 8 4 4-4 4M12 16h7",
  book: "M5 5h6a2 2 0 0 1 1 1 2 2 0 0 1 1-1h6v13h-6a2 2 0 0 0-1 1 2 2 0 0 0-1-1H5zM12 6v13",
  tool: "M14.500 6a4 4 0 0 0-5 5L4 16.500 7.500 20l5.500-5.500a4 4 0 0 0 5-5L15.500 12 12 8.500z",
  shield: "M12 3.500 19 6v5.500c0 4.500-3 7.500-7 9-4-1.500-7-4.500-7-9V6z",
  ask:
    "M9.500 9.500a2.500 2.500 0 1 1 3.500 2.300c-.7.4-1 .9-1 1.700M12 16.500v.1M12 3.500" +
    "a8.500 8.500 0 1 0 0 17 8.500 8.500 0 0 0 0-17z",
  people:
    "M9 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM3.500 19c.5-3.500 2.500-5 5.500-5s5 1.500 5.500 5M16 5.500" +
    "a3 3 0 0 1 0 5.500M17 14c2 .5 3.200 2 3.500 4.500",
  spark: "M12 4l1.700 5.300L19 11l-5.300 1.700L12 18l-1.700-5.300L5 11l5.300-1.700z",
  pulse: "M3 12h4l3-7 4 14 3-7h4",
  chart: "M5 19V11M12 19V5M19 19v-5",
  user:
    "M12 5a3.500 3.500 0 1 0 0 7 3.500 3.500 0 0 0 0-7zM5 20c.6-4 3.300-5.500 7-5.500" +
    "s6.400 1.500 7 5.500",
  out: "M10 5H5v14h5M14 8l4 4-4 4M18 12H9",
  trash: "M5 7h14M9 7V4.500h6V7M7 7l1 13h8l1-13",
  upload: "M12 16V5m-4 4 4-4 4 4M5 19h14",
  download: "M12 5v11m-4-4 4 4 4-4M5 19h14",
  globe: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM4 12h16M12 4c3 3 3 13 0 16M12 4c-3 3-3 13 0 16",
  chat: "M5 5h14v11h-8l-4 3.500V16H5z",
  mic:
    "M12 4a3 3 0 0 0-3 3v4a3 3 0 0 0 6 0V7a3 3 0 0 0-3-3zM6 11a6 6 0 0 0 12 0M12 17v3.500" +
    "M9 20.500h6",
  speaker:
    "M4 10v4h3.500l4.500 4V6l-4.500 4zM15.500 9a4.200 4.200 0 0 1 0 6M18 6.500a8 8 0 0 1 0 11",
  play: "M8 5.500v13l11-6.500z",
  pause: "M8.500 6v12M15.500 6v12",
  more: "M6 12h.1M12 12h.1M18 12h.1",
  pin: "M9 4h6l-.8 6L17 13.500H7L9.800 10zM12 13.500V20",
  archive: "M4 5h16v4H4zM5.500 9v10h13V9M10 13h4",
  inbox: "M4 13l2.500-8h11L20 13v6H4zM4 13h5l1 2.500h4l1-2.500h5",
  warn: "M12 4 21 19.500H3zM12 10v4.500M12 17v.1",
  share: "M12 15V4m-4 4 4-4 4 4M6 11v9h12v-9",
  offline:
    "M4 4l16 16M5 11a10 10 0 0 1 4-2.600M19 11a10 10 0 0 0-6-3M8.500 14.500a5 5 0 0 1 5-1" +
    "M12 18.500v.1",
};

export function Icon({ name }) {
  return html`
    <svg
      class="icon"
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="1.7"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d=${PATHS[name] ?? PATHS.tool} />
    </svg>
  `;
}

/** A button with an icon only; `label` is its accessible name. */
export function IconButton({ name, label, little, ...more }) {
  return html`
    <button
      type="button"
      class=${`ib ${little ? "little" : ""}`}
      aria-label=${label}
      title=${label}
      ...${more}
    >
      <${Icon} name=${name} />
    </button>
  `;
}
