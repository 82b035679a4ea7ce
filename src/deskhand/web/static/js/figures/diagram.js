// Diagrams by Mermaid. It writes inline styles, which our policy refuses, so it works in a frame
// without origin and network, out of sight, and gives back SVG. That SVG is shown as a picture.

import { t } from "../language.js";
import { FRAME } from "../preview-frame.js";

const LIBRARY = "/vendor/mermaid.js";
const LONGEST_S = 15;
const LONGEST_SOURCE = 50_000;

let painter = null; // the frame that draws: {port, waiting, frame}
let drawn = 0;

/** `{svg, words}`: the picture of a diagram and what it shows. Throws with what Mermaid says. */
export async function drawDiagram(source, dark) {
  if (source.length > LONGEST_SOURCE) throw new Error(t("This diagram is too long."));
  painter ??= openPainter();
  const { port, waiting } = await painter;
  const id = ++drawn;
  const answer = new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      closePainter();
      reject(new Error(t("It took longer than {seconds} seconds.", { seconds: LONGEST_S })));
    }, LONGEST_S * 1000);
    waiting.set(id, (found) => {
      clearTimeout(timer);
      if (found.problem) reject(new Error(found.problem));
      else resolve(found);
    });
  });
  port.postMessage({ id, source, dark });
  return answer;
}

async function openPainter() {
  try {
    const response = await fetch(LIBRARY);
    if (!response.ok) throw new Error();
    const library = await response.text();
    const frame = Object.assign(document.createElement("iframe"), {
      className: "painter",
      title: t("Draws diagrams"),
      tabIndex: -1,
      src: FRAME,
    });
    frame.sandbox.add("allow-scripts");
    frame.setAttribute("aria-hidden", "true");
    const loaded = new Promise((resolve) => frame.addEventListener("load", resolve));
    document.body.append(frame);
    await loaded;
    const channel = new MessageChannel();
    const waiting = new Map();
    channel.port1.onmessage = ({ data }) => {
      waiting.get(data?.id)?.(data);
      waiting.delete(data?.id);
    };
    frame.contentWindow.postMessage({ library }, "*", [channel.port2]);
    return { port: channel.port1, waiting, frame };
  } catch {
    painter = null;
    throw new Error(t("What draws diagrams could not be loaded."));
  }
}

/** What takes too long may never end. The next diagram gets a new frame. */
async function closePainter() {
  const { frame } = await painter;
  frame.remove();
  painter = null;
}
