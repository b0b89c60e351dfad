"use strict";
// Text only ever enters the page through textContent and setAttribute: no id is read as HTML.
const byId = (id) => document.getElementById(id);
const count = new Intl.NumberFormat("en");
const percent = (share) => `${(100 * share).toFixed(1)}\u00a0%`;
const short = (value) => Number(value.toPrecision(3)).toString();
const EVERY = 2000, SHOWN = 25, LATEST = 2000, LEAST_IN_A_POINT = 25, MOST_LABELS = 30;
const REASONS = {
  own: "its own features", affinity: "its features beside its neighbours", contrast: "the graph around it",
  latent: "its place in latent space", degrees: "the degrees around it", prototypes: "its distance from class means",
  classes: "its distance from every class",
};

function make(tag, attributes = {}, ...children) {
  const node = tag.startsWith("svg:") ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// Light and dark: the system's choice until the reader makes one.
const systemTheme = matchMedia("(prefers-color-scheme: dark)");
function setTheme(name) {
  document.documentElement.dataset.theme = name;
  byId("theme").setAttribute("aria-pressed", String(name === "dark"));
  byId("theme").textContent = name === "dark" ? "Light" : "Dark";
}
byId("theme").addEventListener("click", () => {
  const name = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("degem-theme", name);
  setTheme(name);
});
systemTheme.addEventListener("change", () => { if (!localStorage.getItem("degem-theme")) setTheme(systemTheme.matches ? "dark" : "light"); });
setTheme(localStorage.getItem("degem-theme") ?? (systemTheme.matches ? "dark" : "light"));

// -- asking -----------------------------------------------------------------------------------------------------------

async function ask(path, body) {
  const token = sessionStorage.getItem("degem-token");
  const headers = { "Content-Type": "application/json", ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  const response = await fetch(path, body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers });
  const answer = await response.json();
  if (response.ok) return answer;
  throw Object.assign(new Error(answer.error), { status: response.status });
}

function trouble(error) {
  const locked = error.status === 401 || error.status === 403;
  byId("login").hidden = !locked;
  byId("problem").hidden = false;
  byId("problem").textContent = error.status ? error.message : "The server does not answer.";
}

byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("degem-token", byId("token").value.trim());
  byId("token").value = "";
  refresh();
  show();
});

// -- what is new ------------------------------------------------------------------------------------------------------

function facts(target, pairs) {
  byId(target).replaceChildren(...pairs.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, String(value)))));
}

let alpha = 0.05;

async function refresh() {
  try {
    const [status, { arrivals }] = await Promise.all([ask("/v2/status"), ask(`/v2/arrivals?limit=${LATEST}`)]);
    const ids = [...new Set(arrivals.slice(0, SHOWN).map((each) => each.node))];
    const now = ids.length ? (await ask("/v2/score", { ids })).nodes : [];
    alpha = status.alpha;
    byId("subtitle").textContent = `${status.model} · α = ${percent(alpha)} · online false discovery rate ${percent(status.fdr)}`;
    facts("facts", [
      ["nodes", count.format(status.nodes)], ["edges", count.format(status.edges)], ["events", count.format(status.event)],
      ["waiting", count.format(status.queue)], ["refresh lag", `${status.lag.toFixed(1)} s`],
      ["rows refreshed last", count.format(status.rows)],
    ]);
    drawShare(arrivals.slice().reverse());
    listArrivals(arrivals.slice(0, SHOWN), new Map(now.filter(Boolean).map((each) => [each.id, each])));
    byId("login").hidden = byId("problem").hidden = true;
  } catch (error) { trouble(error); }
  document.documentElement.dataset.ready = "yes";
}

function drawShare(arrivals) {
  const flagged = arrivals.filter((each) => each.p_value <= alpha).length;
  const text = arrivals.length
    ? `Of the last ${count.format(arrivals.length)} arrivals ${percent(flagged / arrivals.length)} have p ≤ α; of in-distribution ones ${percent(alpha)} would.`
    : "No node has arrived yet.";
  byId("share").textContent = text;
  byId("chart").setAttribute("aria-label", text);
  const size = Math.max(LEAST_IN_A_POINT, Math.ceil(arrivals.length / 40)), points = [];
  for (let start = 0; start < arrivals.length; start += size) {
    const some = arrivals.slice(start, start + size);
    points.push([some[some.length - 1].decided, some.filter((each) => each.p_value <= alpha).length / some.length]);
  }
  const top = Math.max(2 * alpha, ...points.map((point) => point[1]));
  const [first, last] = points.length ? [arrivals[0].decided, points[points.length - 1][0]] : [0, 1];
  const x = (at) => 60 + 720 * (last > first ? (at - first) / (last - first) : 1), y = (share) => 190 - 170 * share / top;
  const line = (kind, height) => make("svg:line", { class: kind, x1: 60, x2: 780, y1: height, y2: height });
  const words = (text, at, height, anchor) => make("svg:text", { x: at, y: height, "text-anchor": anchor }, text);
  const clock = (at) => new Date(1000 * at).toLocaleTimeString();
  byId("chart").replaceChildren(
    line("grid", y(0)), line("grid", y(top)), line("alpha", y(alpha)),
    words(percent(0), 52, y(0), "end"), words(percent(top), 52, y(top) + 4, "end"), words(`α = ${percent(alpha)}`, 780, y(alpha) - 5, "end"),
    make("svg:polyline", { class: "share", points: points.map(([at, share]) => `${x(at)},${y(share)}`).join(" ") }),
    ...points.map(([at, share]) => make("svg:circle", { cx: x(at), cy: y(share), r: 3, fill: "var(--ood)" })),
    ...(points.length ? [words(clock(first), 60, 212, "start"), words(clock(last), 780, 212, "end")] : []),
  );
}

const reason = (terms) => Object.entries(terms ?? {}).sort((a, b) => b[1] - a[1]).slice(0, 2).map(([name]) => REASONS[name] ?? name).join(", ");

function listArrivals(arrivals, now) {
  const head = ["Node", "Score", "p", "Flagged", "Raised most by"].map((name, at) => make("th", { scope: "col", class: at === 1 || at === 2 ? "number" : "" }, name));
  const rows = arrivals.map((each) => {
    const node = make("button", { type: "button" }, each.node);
    node.addEventListener("click", () => walk(each.node));
    const why = now.has(each.node) ? reason(now.get(each.node).terms) || "–" : "no longer there";
    return make("tr", { class: each.p_value <= alpha ? "flagged" : "" }, make("td", { class: "id" }, node),
      make("td", { class: "number" }, short(each.score)), make("td", { class: "number" }, short(each.p_value)),
      make("td", {}, each.flagged ? "yes, by the stream" : each.p_value <= alpha ? "yes, p ≤ α" : "no"), make("td", {}, why));
  });
  const focused = document.activeElement?.closest("#arrivals button")?.textContent;
  byId("arrivals").replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows)));
  if (focused) [...byId("arrivals").querySelectorAll("button")].find((button) => button.textContent === focused)?.focus();
}

// -- one node: the address names it, so that the browser's back button walks back -----------------------------------------

const walk = (node) => { if (chosen() === node) show(); else location.hash = `node=${encodeURIComponent(node)}`; };
const chosen = () => location.hash.startsWith("#node=") ? decodeURIComponent(location.hash.slice(6)) : null;

async function show() {
  const node = chosen();
  if (node === null) return;
  byId("search").value = node;
  try {
    const [told] = (await ask("/v2/score", { ids: [node] })).nodes;
    if (!told) throw new Error("There is no such node.");
    const path = `/v2/neighbourhood/${encodeURIComponent(node)}?depth=${byId("depth").value}`;
    const around = told.status === "exact" ? await ask(path) : { nodes: [told], edges: [], cut: false };
    byId("found").textContent = around.cut ? `${around.nodes.length} of its surroundings are drawn.` : "";
    byId("node").hidden = false;
    describe(told);
    draw(around);
    byId("node").dataset.shown = node;
  } catch (error) {
    byId("node").hidden = true;
    byId("found").textContent = error.message;
  }
}

function describe(told) {
  const known = told.score !== undefined;
  facts("about", [
    ["id", told.id], ["score", known ? short(told.score) : "–"], ["p", known ? short(told.p_value) : "–"],
    ["state", `${told.status} as of event ${count.format(told.event)}`], ["neighbours", count.format(told.degree)],
    ...(told.class === undefined ? [] : [["class", `${told.class} (${percent(told.class_probability)})`]]),
  ]);
  const terms = Object.entries(told.terms ?? {}).sort((a, b) => b[1] - a[1]), most = Math.max(1e-9, ...terms.map(([, part]) => part));
  byId("terms").replaceChildren(...terms.flatMap(([name, part]) => {
    const bar = make("span", { class: "bar" });
    bar.style.width = `${100 * Math.max(part, 0) / most}%`;
    return [make("span", { class: "name" }, REASONS[name] ?? name), make("span", { class: "track" }, bar), make("span", { class: "amount" }, short(part))];
  }));
}

function draw({ nodes, edges }) {
  const near = nodes.map(() => []), parent = nodes.map(() => -1), ring = nodes.map(() => 0);
  for (const [a, b] of edges) { near[a].push(b); near[b].push(a); }
  const order = [0];
  for (let at = 0; at < order.length; at += 1) {
    for (const other of near[order[at]]) {
      if (other !== 0 && parent[other] < 0) { parent[other] = order[at]; ring[other] = ring[order[at]] + 1; order.push(other); }
    }
  }
  const rings = Math.max(1, ...ring), place = nodes.map(() => [0, 0]);
  for (let step = 1; step <= rings; step += 1) {
    const here = order.filter((each) => ring[each] === step);
    here.forEach((each, at) => {
      const angle = 2 * Math.PI * at / here.length - Math.PI / 2;
      place[each] = [260 * step / rings * Math.cos(angle), 185 * step / rings * Math.sin(angle)];
    });
  }
  const lines = edges.map(([a, b]) => make("svg:line", { x1: place[a][0], y1: place[a][1], x2: place[b][0], y2: place[b][1] }));
  const marks = nodes.map((each, at) => {
    const kind = each.p_value === undefined ? "waiting" : each.p_value <= alpha ? "flagged" : "";
    const said = `${each.id}: ${each.p_value === undefined ? each.status : `p = ${short(each.p_value)}`}`;
    const group = make("svg:g", { class: at ? kind : `${kind} centre`, role: "button", tabindex: 0, "aria-label": said, transform: `translate(${place[at]})` },
      make("svg:title", {}, said), make("svg:circle", { r: at ? 8 : 13 }));
    if (nodes.length <= MOST_LABELS) group.append(make("svg:text", { y: at ? 22 : 28 }, each.id.length > 14 ? `${each.id.slice(0, 13)}…` : each.id));
    group.addEventListener("click", () => walk(each.id));
    group.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); walk(each.id); } });
    return group;
  });
  byId("picture").replaceChildren(...lines, ...marks.reverse());
}

byId("find").addEventListener("submit", (event) => { event.preventDefault(); walk(byId("search").value); });
byId("depth").addEventListener("change", show);
addEventListener("hashchange", show);
refresh();
show();
setInterval(() => { if (!document.hidden && byId("login").hidden) refresh(); }, EVERY);
