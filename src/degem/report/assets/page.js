"use strict";
// What both pages share: the data, small DOM helpers, light and dark, and figures.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const count = new Intl.NumberFormat("en");
const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)}\u00a0%`;
const short = (value) => (value === null ? "–" : Number(value.toPrecision(4)).toString());

// Text only ever enters the page through textContent: no value of the user's is read as HTML.
function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "onclick") node.addEventListener("click", value);
    else node.setAttribute(name, value);
  }
  node.append(...children.map((child) => (child instanceof Node ? child : String(child))));
  return node;
}

// Plotly reads some HTML in its labels.
const plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

// Light and dark: the system's choice until the reader makes one.
const root = document.documentElement;
const stored = () => { try { return localStorage.getItem("degem-theme"); } catch { return null; } };
const store = (name) => { try { localStorage.setItem("degem-theme", name); } catch { /* pages on disk may not store */ } };
const systemTheme = matchMedia("(prefers-color-scheme: dark)");
const afterTheme = [];

function setTheme(name) {
  root.dataset.theme = name;
  byId("theme").setAttribute("aria-pressed", String(name === "dark"));
  byId("theme").textContent = name === "dark" ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", name === "dark" ? "Switch to light colours" : "Switch to dark colours");
  for (const redraw of afterTheme) redraw();
}
byId("theme").addEventListener("click", () => {
  const name = root.dataset.theme === "dark" ? "light" : "dark";
  store(name);
  setTheme(name);
});
systemTheme.addEventListener("change", () => { if (!stored()) setTheme(systemTheme.matches ? "dark" : "light"); });
setTheme(stored() ?? (systemTheme.matches ? "dark" : "light"));

// A colour "@name" is the style sheet's --name, looked up whenever a figure is drawn.
const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
function resolved(value) {
  if (typeof value === "string") return value.startsWith("@") && /^@\w+$/.test(value) ? colour(value.slice(1)) : value;
  if (Array.isArray(value)) return value.length && typeof value[0] === "number" ? value : value.map(resolved);
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, resolved(v)]));
  return value;
}

function themed(layout) {
  const axis = (own = {}) => ({ gridcolor: colour("grid"), linecolor: colour("line"), zerolinecolor: colour("line"), automargin: true, ...own });
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 13, color: colour("ink") },
    margin: { l: 52, r: 12, t: 12, b: 44 },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
    hoverlabel: { bgcolor: colour("panel"), bordercolor: colour("line"), font: { color: colour("ink") }, align: "left" },
    dragmode: false,
    ...layout,
    xaxis: axis(layout.xaxis), yaxis: axis(layout.yaxis),
  };
}

const settings = { displaylogo: false, displayModeBar: false };

// Draw a figure into an element and again whenever the colours change; `dress` adds what the page knows and Python did not.
function draw(element, figure, dress = () => {}) {
  element.setAttribute("role", "img");
  element.setAttribute("aria-label", figure.alt);
  if (figure.note) element.after(make("p", { class: "note" }, figure.note));
  const paint = () => {
    const shown = resolved({ data: figure.data, layout: figure.layout });
    dress(shown);
    return Plotly.react(element, shown.data, themed(shown.layout), settings);
  };
  afterTheme.push(paint);
  paint();
  new ResizeObserver(() => Plotly.Plots.resize(element)).observe(element);
}

async function unpackPlotly() {
  const packed = Uint8Array.from(atob(byId("plotly-packed").textContent), (letter) => letter.charCodeAt(0));
  const script = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  document.head.append(make("script", {}, script));
  byId("plotly-packed").remove();
}

// A table of plain values: `columns` are [title, class].
function plainTable(columns, rows, caption) {
  const head = make("tr", {}, ...columns.map(([title, kind]) => make("th", { scope: "col", class: kind }, title)));
  const body = rows.map((row) => make("tr", {}, ...row.map((value, index) => (index === 0
    ? make("th", { scope: "row" }, value) : make("td", { class: columns[index][1] }, value)))));
  return make("table", { "aria-label": caption }, make("thead", {}, head), make("tbody", {}, ...body));
}
