// Draws what an answer describes in code: diagrams, charts and SVG. The box of a figure has the same
// height from its first line on, so nothing moves when it is drawn.

import { t } from "../language.js";
import { loadStyles } from "../lazy-component.js";
import { effect } from "../lib.js";
import { answerFile, openPreview } from "../preview.js";
import { theme } from "../state.js";
import { drawChart, fillChart, tableOfChart } from "./chart.js";
import { drawDiagram } from "./diagram.js";

const DRAW = { mermaid: showDiagram, chart: showChart, svg: showSvg };
const READABLE_SCALE = 0.65; // text of 16 px is then still read without effort
const BOX_PX = 280; // the height that a picture has in its box
const diagrams = new Set(); // the boxes with diagrams, which have the colours of the page

/** Draw the figure of this box, whose code is complete. What cannot be drawn stays code. */
export async function drawFigure(box) {
  const source = box.querySelector("code").textContent.trim();
  box.querySelector(":scope > .drawing, :scope > .problem")?.remove();
  try {
    await loadStyles("figures");
    const drawing = Object.assign(document.createElement("div"), { className: "drawing" });
    await DRAW[box.dataset.figure](drawing, source, box);
    box.querySelector("pre").before(drawing);
    box.classList.remove("failed");
    box.classList.add("drawn");
    if (box.dataset.figure === "chart") fillChart(drawing);
  } catch (error) {
    explainFailure(box, error);
  }
}

function explainFailure(box, error) {
  box.classList.remove("drawn");
  box.classList.add("failed");
  const words = Object.assign(document.createElement("p"), {
    className: "problem",
    textContent: t("Not drawn: {message}", { message: error.message }),
  });
  box.querySelector("pre").before(words);
}

async function showDiagram(drawing, source, box) {
  const found = await drawDiagram(source, theme.peek() === "dark");
  const picture = makePicture(found.svg, found.words || t("Diagram"), "diagram.svg", true);
  picture.style.setProperty("--readable", `${readableWidth(found.svg)}px`);
  drawing.append(picture);
  diagrams.add(box);
}

/** How wide the text of a diagram can be read. One that is also high has the height of its box. */
function readableWidth(svg) {
  const [, , width, height] =
    /viewBox="([^"]+)"/
      .exec(svg)?.[1]
      .split(/[\s,]+/)
      .map(Number) ?? [];
  return Math.ceil(width * Math.min(READABLE_SCALE, BOX_PX / height)) || 0;
}

function showSvg(drawing, source) {
  const start = source.search(/<svg[\s>]/);
  if (start < 0) throw new Error(t("this is no SVG."));
  const named = /^<svg[^>]*\sxmlns=/.test(source.slice(start));
  const svg = named ? source : source.replace(/<svg/, '<svg xmlns="http://www.w3.org/2000/svg"');
  const words = /<title[^>]*>([^<]{1,300})<\/title>/.exec(svg)?.[1].trim() || t("Drawing");
  const picture = makePicture(svg, words, "drawing.svg");
  drawing.append(picture);
  return picture.firstChild.decode().catch(() => {
    throw new Error(t("this SVG cannot be read."));
  });
}

function showChart(drawing, source) {
  const chart = drawChart(source);
  drawing.append(chart.figure, tableOfChart(chart));
}

/** An SVG as a picture, in which nothing runs and nothing is loaded. A click opens it. */
function makePicture(svg, words, name, still = false) {
  const file = answerFile(name, svg, "svg", still);
  const image = Object.assign(document.createElement("img"), { alt: words, src: file.raw });
  const button = Object.assign(document.createElement("button"), {
    type: "button",
    className: "open-drawing",
  });
  button.setAttribute("aria-label", t("Open: {name}", { name: words }));
  button.append(image);
  button.addEventListener("click", () => openPreview(file));
  return button;
}

let drawnTheme = theme.peek();
effect(() => {
  if (theme.value === drawnTheme) return;
  drawnTheme = theme.value;
  for (const box of diagrams)
    if (box.isConnected) drawFigure(box);
    else diagrams.delete(box);
});
