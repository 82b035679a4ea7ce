// Charts of an answer: bars, lines and pies, from a small JSON that docs/page.md describes. Bars
// begin at zero, gaps stay gaps, and the numbers are in a table below.

import { formatNumber } from "../format.js";
import { t } from "../language.js";

const SVG = "http://www.w3.org/2000/svg";
const MOST_SERIES = 8;
const MOST_LABELS = 200;
const MOST_SLICES = 10;
const HEIGHT = 230;
const MARGIN = { top: 12, right: 12, bottom: 26, left: 8 };
const CHAR_WIDTH = 6.6; // of the labels, on average

// ------------------------------------------------------------------ reading

/** The chart that `source` describes: `{type, title, unit, labels, series}`. Throws with why not. */
export function readChart(source) {
  let given;
  try {
    given = JSON.parse(source);
  } catch (error) {
    throw new Error(t("this is no JSON: {message}", { message: error.message }));
  }
  if (!given || typeof given !== "object") throw new Error(t("a chart is a JSON object."));
  const { type = "bar", title = "", unit = "", labels, values } = given;
  if (!["bar", "line", "pie"].includes(type))
    throw new Error(
      t('"type" is "bar", "line" or "pie", and not {type}.', { type: JSON.stringify(type) }),
    );
  if (!Array.isArray(labels) || !labels.length)
    throw new Error(t('"labels" is a list of names, one for each value.'));
  if (labels.length > MOST_LABELS)
    throw new Error(t("it has more than {count} labels.", { count: MOST_LABELS }));
  const listed = given.series ?? [{ name: title, values }];
  if (!Array.isArray(listed) || !listed.length || listed.length > MOST_SERIES)
    throw new Error(t('"series" is a list of 1 to {count} series.', { count: MOST_SERIES }));
  const series = listed.map((one, i) => readSeries(one, i, labels.length));
  if (type === "pie") checkPie(series, labels);
  const words = title || (series.length === 1 ? (given.series?.[0].name ?? "") : "");
  return { type, title: String(words), unit: String(unit), labels: labels.map(String), series };
}

function readSeries(given, index, length) {
  const name = String(given?.name || t("Series {number}", { number: index + 1 }));
  if (!Array.isArray(given?.values) || given.values.length !== length)
    throw new Error(
      t('"values" of {name} is a list of {count} numbers.', {
        name: JSON.stringify(name),
        count: length,
      }),
    );
  for (const value of given.values)
    if (value !== null && !Number.isFinite(value))
      throw new Error(
        t("{name} has a value that is no number: {value}", { name: JSON.stringify(name), value }),
      );
  return { name, values: given.values };
}

function checkPie(series, labels) {
  if (series.length > 1) throw new Error(t("a pie has one series."));
  if (labels.length > MOST_SLICES)
    throw new Error(t("a pie has at most {count} slices: use bars.", { count: MOST_SLICES }));
  const { values } = series[0];
  if (values.some((value) => value < 0))
    throw new Error(t("a pie has no negative values: use bars."));
  if (!values.some(Boolean)) throw new Error(t("all values of the pie are zero."));
}

// ------------------------------------------------------------------ elements

function make(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function makeHtml(name, attributes = {}, ...children) {
  const element = Object.assign(document.createElement(name), attributes);
  element.append(...children);
  return element;
}

const withUnit = (value, unit) =>
  value === null ? t("no value") : `${formatNumber(value)}${unit && ` ${unit}`}`;

/** A mark that says what it stands for, under the pointer. */
const makeMark = (name, attributes, words) => make(name, attributes, make("title", {}, words));

// ------------------------------------------------------------------ drawing

const charts = new WeakMap(); // the box of a chart: what it shows
const widths = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) paintChart(target, contentRect.width);
});

/** The chart and its figure, in which it is drawn as soon as that has a width. */
export function drawChart(source) {
  const chart = readChart(source);
  const canvas = makeHtml("div", { className: "canvas" });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", describeChart(chart));
  charts.set(canvas, chart);
  const figure = makeHtml("figure", { className: "chart" });
  if (chart.title) figure.append(makeHtml("figcaption", {}, chart.title));
  figure.append(canvas, makeLegend(chart));
  return { ...chart, figure };
}

/** Draw the chart in this element, now and whenever its width changes. */
export function fillChart(element) {
  const canvas = element.querySelector(".canvas");
  paintChart(canvas, canvas.clientWidth);
  widths.observe(canvas);
}

function describeChart({ type, title, labels, series }) {
  const kind = { bar: t("Bar chart"), line: t("Line chart"), pie: t("Pie chart") }[type];
  const names = (type === "pie" ? labels : series.map((one) => one.name)).join(", ");
  return title
    ? t("{kind}: {title}. {names}. The numbers are in its table.", { kind, title, names })
    : t("{kind}. {names}. The numbers are in its table.", { kind, names });
}

/** One series needs no legend; a pie needs one of its slices, with their shares. */
function makeLegend({ type, labels, series }) {
  const list = makeHtml("ul", { className: "legend" });
  const total = series[0].values.reduce((sum, value) => sum + value, 0);
  const names =
    type === "pie"
      ? labels.map((label, i) => `${label} ${Math.round((series[0].values[i] / total) * 100)} %`)
      : series.map((one) => one.name);
  if (names.length === 1 && type !== "pie") return list; // its name is the title
  for (const [i, name] of names.entries()) {
    const kind = `key series-${i % MOST_SERIES}`;
    const key = make("svg", { viewBox: "0 0 12 12", class: kind, "aria-hidden": "true" });
    key.append(make("rect", { width: 12, height: 12, rx: 3 }));
    list.append(makeHtml("li", {}, key, name));
  }
  return list;
}

function paintChart(canvas, width) {
  const chart = charts.get(canvas);
  const rounded = Math.round(width);
  if (!chart || rounded < 40 || canvas.dataset.width === String(rounded)) return;
  canvas.dataset.width = String(rounded);
  const picture = make("svg", { width: rounded, height: HEIGHT, "aria-hidden": "true" });
  if (chart.type === "pie") paintPie(picture, chart, rounded);
  else paintAxes(picture, chart, rounded);
  canvas.replaceChildren(picture);
}

/** About `count` round numbers from at most `low` to at least `high`. */
export function chooseTicks(low, high, count = 5) {
  const span = high - low || Math.abs(high) || 1;
  const raw = span / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= raw) ?? 10);
  const first = Math.floor(low / step);
  const last = Math.max(Math.ceil(high / step), first + 1);
  return Array.from({ length: last - first + 1 }, (_, i) =>
    Number(((first + i) * step).toPrecision(12)),
  );
}

function paintAxes(picture, chart, width) {
  const { type, labels, series, unit } = chart;
  const values = series.flatMap((one) => one.values).filter((value) => value !== null);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  // Bars are compared by their length; a line shows a course, which may be far from zero.
  const zero = type === "bar" || (low >= 0 && low < high / 2);
  const ticks = chooseTicks(zero ? Math.min(0, low) : low, zero ? Math.max(0, high) : high);
  const texts = ticks.map((tick) => withUnit(tick, unit));
  const left = MARGIN.left + Math.max(...texts.map((text) => text.length)) * CHAR_WIDTH;
  const [bottom, top] = [HEIGHT - MARGIN.bottom, MARGIN.top];
  const reach = ticks.at(-1) - ticks[0];
  const place = {
    left,
    width: width - left - MARGIN.right,
    y: (value) => bottom - ((value - ticks[0]) / reach) * (bottom - top),
  };
  for (const [i, tick] of ticks.entries()) {
    const y = place.y(tick);
    const kind = tick === 0 ? "zero" : "grid";
    picture.append(make("line", { class: kind, x1: left, x2: width - MARGIN.right, y1: y, y2: y }));
    const at = { x: left - 6, y: y + 4, "text-anchor": "end" };
    picture.append(make("text", at, texts[i]));
  }
  const step = place.width / labels.length;
  paintLabels(picture, labels, { left, step });
  if (type === "bar") paintBars(picture, chart, place, step);
  else paintLines(picture, chart, place, step);
}

/** The names below, as many as have room. */
function paintLabels(picture, labels, { left, step }) {
  const longest = Math.max(...labels.map((label) => label.length)) * CHAR_WIDTH + 10;
  const every = Math.max(1, Math.ceil(Math.min(longest, 120) / step));
  const room = Math.max(1, Math.floor((step * every - 4) / CHAR_WIDTH));
  for (let i = 0; i < labels.length; i += every) {
    const words = labels[i].length > room ? `${labels[i].slice(0, room - 1)}…` : labels[i];
    const at = { x: left + step * (i + 0.5), y: HEIGHT - 8, "text-anchor": "middle" };
    picture.append(make("text", at, words));
  }
}

const describeValue = (name, label, value, unit) =>
  `${label}${name && `, ${name}`}: ${withUnit(value, unit)}`;

function paintBars(picture, { labels, series, unit }, place, step) {
  const width = Math.min((step * 0.76) / series.length, 48);
  const begin = (step - width * series.length) / 2;
  for (const [s, { name, values }] of series.entries())
    for (const [i, value] of values.entries()) {
      if (value === null) continue;
      const [from, to] = [place.y(0), place.y(value)];
      const shape = {
        class: `bar series-${s}`,
        x: place.left + step * i + begin + width * s,
        y: Math.min(from, to),
        width: Math.max(width - 1, 1),
        height: Math.max(Math.abs(from - to), 0.5),
      };
      picture.append(makeMark("rect", shape, describeValue(name, labels[i], value, unit)));
    }
}

function paintLines(picture, { labels, series, unit }, place, step) {
  for (const [s, { name, values }] of series.entries()) {
    let path = "";
    let gap = true;
    for (const [i, value] of values.entries()) {
      if (value === null) {
        gap = true;
        continue;
      }
      const [x, y] = [place.left + step * (i + 0.5), place.y(value)];
      path += `${gap ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`;
      gap = false;
      const point = { class: `point series-${s}`, cx: x, cy: y, r: values.length > 40 ? 2 : 3.5 };
      picture.append(makeMark("circle", point, describeValue(name, labels[i], value, unit)));
    }
    picture.prepend(make("path", { class: `line series-${s}`, d: path }));
  }
}

function paintPie(picture, { labels, series, unit }, width) {
  const { values } = series[0];
  const total = values.reduce((sum, value) => sum + value, 0);
  const radius = Math.min(HEIGHT, width) / 2 - 8;
  const [x, y] = [width / 2, HEIGHT / 2];
  const point = (share) => {
    const angle = 2 * Math.PI * share - Math.PI / 2;
    return `${(x + radius * Math.cos(angle)).toFixed(2)} ${(y + radius * Math.sin(angle)).toFixed(2)}`;
  };
  let done = 0;
  for (const [i, value] of values.entries()) {
    if (!value) continue;
    const share = value / total;
    const words = describeValue("", labels[i], value, unit);
    const kind = `slice series-${i % MOST_SERIES}`;
    if (share > 0.9999) {
      picture.append(makeMark("circle", { class: kind, cx: x, cy: y, r: radius }, words));
      return;
    }
    const arc = `A${radius} ${radius} 0 ${share > 0.5 ? 1 : 0} 1 ${point(done + share)}`;
    const shape = { class: kind, d: `M${x} ${y}L${point(done)}${arc}Z` };
    picture.append(makeMark("path", shape, words));
    done += share;
  }
}

/** The numbers of a chart, to be read and copied. */
export function tableOfChart({ labels, series, unit }) {
  const head = makeHtml("tr", {}, makeHtml("th", { scope: "col" }, ""));
  for (const { name } of series)
    head.append(makeHtml("th", { scope: "col" }, unit ? `${name} (${unit})` : name));
  const rows = labels.map((label, i) => {
    const cells = series.map(({ values }) =>
      makeHtml("td", { align: "right" }, values[i] === null ? "" : formatNumber(values[i])),
    );
    return makeHtml("tr", {}, makeHtml("th", { scope: "row" }, label), ...cells);
  });
  const table = makeHtml("table", {}, makeHtml("thead", {}, head), makeHtml("tbody", {}, ...rows));
  const copy = makeHtml("button", { type: "button", className: "code-copy" }, t("Copy as CSV"));
  copy.dataset.act = "csv";
  const summary = makeHtml("summary", {}, t("Table"));
  return makeHtml("details", { className: "numbers" }, summary, table, copy);
}
