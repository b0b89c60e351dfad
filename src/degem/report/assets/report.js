// The report: a slider that moves the threshold, and everything that follows it.
let position = data.start;
const slider = byId("alpha");
const onMove = [];

function headline() {
  const alpha = data.alphas[position], flagged = data.flagged[position];
  byId("flagged").textContent = count.format(flagged);
  byId("flagged-of").textContent = `of ${count.format(data.numNodes)} nodes flagged (${percent(flagged / data.numNodes)})`;
  byId("alpha-value").textContent = `α = ${percent(alpha, alpha < 0.01 ? 2 : 1)}`;
  slider.setAttribute("aria-valuetext", `${percent(alpha, 2)}, ${flagged} nodes flagged`);
  byId("expected").textContent = alpha * (data.numCalibration + 1) < 1 - 1e-9
    ? `The ${count.format(data.numCalibration)} calibration nodes are too few for this rate: no node can be flagged.`
    : `If every node were like the training data, about ${count.format(Math.round(alpha * data.numNodes))} would be.`;
}
onMove.push(headline);

const rule = (x) => ({ type: "line", x0: x, x1: x, y0: 0, y1: 1, yref: "paper", line: { color: colour("ink"), width: 2, dash: "dot" } });

function drawScores() {
  const threshold = () => {
    const x = data.thresholds[position];
    if (x === null) return { shapes: [], annotations: [] };
    const text = { x, y: 0.98, yref: "paper", text: "flagged →", showarrow: false, xanchor: "left", xshift: 5, font: { color: colour("ink") } };
    return { shapes: [rule(x)], annotations: [text] };
  };
  draw(byId("histogram"), data.histogram, (shown) => Object.assign(shown.layout, threshold()));
  onMove.push(() => Plotly.relayout(byId("histogram"), threshold()));

  const level = () => ({ shapes: [rule(data.alphas[position])] });
  draw(byId("p-values"), data.pValues, (shown) => Object.assign(shown.layout, level()));
  onMove.push(() => Plotly.relayout(byId("p-values"), level()));
}

function drawGroups() {
  const places = data.groups.map(() => make("div", { class: "figure free" }));
  byId("groups").append(...data.groups.map((group, index) => make("section", { class: "panel" }, make("h3", {}, group.title), places[index])));
  data.groups.forEach((group, index) => {
    const shares = () => group.sizes.map((size, member) => group.flagged[member][position] / size);
    draw(places[index], group.figure, (shown) => { shown.data[0].x = shares(); shown.layout.shapes = [rule(data.alphas[position])]; });
    onMove.push(() => Plotly.update(places[index], { x: [shares()] }, { shapes: [rule(data.alphas[position])] }));
  });
}

// The map ---------------------------------------------------------------------------------------------------------
const palette = ["#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#eeca3b", "#b279a2", "#ff9da6", "#9d755d", "#7f8fa6", "#1f9e89", "#c2185b"];
const classColour = (index) => palette[index % palette.length];

function mapMarker(kind) {
  const map = data.map;
  if (kind === "class") return { color: map.classes.map(classColour), showscale: false };
  if (kind === "flag") return { color: map.levels.map((level) => colour(level <= position ? "ood" : "id")), showscale: false };
  const ordered = [...map.scores].sort((a, b) => a - b);
  const at = (share) => ordered[Math.floor(share * (ordered.length - 1))];
  return {
    color: map.scores, colorscale: "Viridis", cmin: at(0.02), cmax: at(0.98), showscale: true,
    colorbar: { title: { text: "score" }, thickness: 12, outlinewidth: 0, tickfont: { color: colour("ink") } },
  };
}

function drawMap() {
  const map = data.map;
  if (!map) { byId("map-section").replaceChildren(make("h2", {}, "Map of the nodes"), make("p", { class: "about" }, `${data.method} has no latents to draw.`)); return; }
  if (!map.classes) byId("colour-class").remove();
  const chosen = () => document.querySelector('input[name="colour"]:checked').value;
  const hover = map.ids.map((id, index) => [
    `<b>${plain(id)}</b>`, `score ${map.scores[index]}`,
    ...(map.classes ? [`predicted class ${plain(map.classNames[map.classes[index]])}`] : []), `degree ${map.degrees[index]}`,
  ].join("<br>"));
  const legend = () => {
    const entries = { score: [], flag: [["flagged", colour("ood")], ["not flagged", colour("id")]], class: map.classNames.map((name, index) => [name, classColour(index)]) }[chosen()];
    byId("map-legend").replaceChildren(...entries.map(([name, shade]) => make("li", {}, make("i", { style: `background:${shade}` }), name)));
  };
  const dress = (shown) => { Object.assign(shown.data[0].marker, mapMarker(chosen())); shown.data[0].text = hover; legend(); };
  draw(byId("map"), { ...map.figure, note: map.note }, dress);
  const repaint = afterTheme.at(-1);
  byId("map-colour").addEventListener("change", repaint);
  slider.addEventListener("change", () => { if (chosen() === "flag") repaint(); });
}

// Ground truth ----------------------------------------------------------------------------------------------------
function drawTruth() {
  const truth = data.truth;
  if (!truth) return;
  byId("truth-section").hidden = false;
  byId("judged").textContent = `${count.format(truth.numOod)} OOD nodes and ${count.format(truth.numId)} ${truth.heldOut ? "ID nodes of the test mask" : "ID nodes"}.`;
  const at = () => {
    const hits = truth.oodFlagged[position], alarms = truth.idFlagged[position];
    return {
      hits, alarms, missed: truth.numOod - hits, calm: truth.numId - alarms,
      recall: hits / truth.numOod, rate: alarms / truth.numId, precision: hits + alarms ? hits / (hits + alarms) : null,
    };
  };
  draw(byId("roc"), truth.roc, (shown) => Object.assign(shown.data[2], { x: [at().rate], y: [at().recall] }));
  draw(byId("precision-recall"), truth.precisionRecall, (shown) => Object.assign(shown.data[2], { x: [at().recall], y: [at().precision] }));
  const confusion = () => {
    const now = at();
    byId("confusion").replaceChildren(
      plainTable([["", ""], ["flagged", "number"], ["not flagged", "number"]], [
        ["OOD nodes", count.format(now.hits), count.format(now.missed)], ["ID nodes", count.format(now.alarms), count.format(now.calm)]], "Confusion at the threshold"),
      make("p", { class: "note" }, `Precision ${now.precision === null ? "–" : percent(now.precision)}, recall ${percent(now.recall)}, false alarms ${percent(now.rate)}.`));
    Plotly.restyle(byId("roc"), { x: [[now.rate]], y: [[now.recall]] }, [2]);
    Plotly.restyle(byId("precision-recall"), { x: [[now.recall]], y: [[now.precision]] }, [2]);
  };
  confusion();
  onMove.push(confusion);
  byId("metrics").append(
    plainTable([["", ""], ["value", "number"], ["95 % interval", "number"]], truth.metrics.map(([name, value, low, high]) => [name, value.toFixed(3), `${low.toFixed(3)} – ${high.toFixed(3)}`]), "Metrics"),
    make("p", { class: "note" }, "The intervals take nodes as independent draws; neighbours are not, so the truth is wider."));
}

// The table -------------------------------------------------------------------------------------------------------
const columns = [
  { title: "Rank", key: "rank", kind: "number wide" }, { title: "Node", key: "node_id", kind: "id" },
  { title: "Score", key: "score", kind: "number" }, { title: "p-value", key: "p_value", kind: "number" },
  { title: "Flagged", key: "level", kind: "flag wide" }, { title: "Class", key: "className", kind: "wide" },
  { title: "Confidence", key: "confidence", kind: "number wide" }, { title: "Degree", key: "degree", kind: "number wide" },
];
const cellText = (row, column) => {
  const value = row[column.key];
  if (column.key === "level") return value <= position ? "yes" : "no";
  if (column.key === "confidence") return value === null ? "–" : percent(value, 0);
  return typeof value === "number" ? (Number.isInteger(value) ? count.format(value) : short(value)) : value ?? "–";
};

function signedBars(entries) {
  const largest = Math.max(...entries.map(([, amount]) => Math.abs(amount)), 1e-12);
  return make("div", { class: "bars" }, ...entries.flatMap(([name, amount]) => {
    const width = 50 * Math.abs(amount) / largest;
    const bar = make("span", { class: amount < 0 ? "bar down" : "bar", style: `width:${width}%;left:${amount < 0 ? 50 - width : 50}%` });
    return [make("span", { class: "name" }, name), make("span", { class: "track", "aria-hidden": "true" }, bar), make("span", { class: "amount" }, `${amount < 0 ? "−" : "+"}${short(Math.abs(amount))}`)];
  }));
}

function reasons(row) {
  const parts = [];
  for (const [kind, title] of [["own", "Own columns"], ["neighbours", "Neighbours"], ["surroundings", "Beyond"]]) {
    const some = row.parts.filter((part) => part.kind === kind && part.amount !== 0);
    if (some.length) parts.push(make("div", {}, make("h4", {}, `${title}: moved the score by`), signedBars(some.map((part) => [part.detail ? `${part.name}: ${part.detail}` : part.name, part.amount]))));
  }
  const context = [["score of ordinary nodes like it", short(row.typical_score)], ["ordinary nodes like it", row.typical_nodes.join(", ")], ["degree", count.format(row.degree)], ["median p-value of neighbours", short(row.neighbour_p_value)],
    ...row.nearest.map((node) => [`near training node ${node.node_id}`, `${short(node.distance)} away${node.class_name === null ? "" : `, class ${node.class_name}`}`])];
  parts.push(make("div", { class: "cards" }, plainTable([["", ""], ["", ""]], context, "Context")));
  return make("div", { class: "reasons" }, ...parts);
}

function tableRow(row) {
  const line = make("tr", { "data-text": [row.node_id, row.className, row.summary].join(" ").toLowerCase() });
  for (const column of columns) line.append(make("td", { class: column.kind }, cellText(row, column)));
  const detail = make("tr", { class: "detail", id: `why-${row.rank}`, hidden: "" });
  const button = make("button", { type: "button", "aria-expanded": "false", "aria-controls": detail.id, "aria-label": `Details of node ${row.node_id}` }, "details");
  button.addEventListener("click", () => {
    if (!detail.firstChild) detail.append(make("td", { colspan: columns.length + 1 }, reasons(row)));
    detail.hidden = !detail.hidden;
    button.setAttribute("aria-expanded", String(!detail.hidden));
  });
  line.append(make("td", { class: "why" }, `${row.summary} `, button));
  return { row, line, detail };
}

function drawTable() {
  const rows = data.table.map(tableRow);
  const body = make("tbody");
  const heads = columns.map((column) => {
    const head = make("th", { scope: "col", class: column.kind, "aria-sort": column.key === "rank" ? "ascending" : "none" });
    head.append(make("button", { type: "button", onclick: () => sortBy(column, head) }, column.title));
    return head;
  });
  const place = () => body.replaceChildren(...rows.flatMap(({ line, detail }) => [line, detail]));
  function sortBy(column, head) {
    const descending = head.getAttribute("aria-sort") === "ascending";
    for (const other of heads) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const value = ({ row }) => row[column.key];
    rows.sort((a, b) => {
      const order = typeof value(a) === "number" && typeof value(b) === "number" ? value(a) - value(b) : String(value(a) ?? "").localeCompare(String(value(b) ?? ""), "en", { numeric: true });
      return descending ? -order : order;
    });
    place();
  }
  place();
  byId("table").append(make("table", {}, make("thead", {}, make("tr", {}, ...heads, make("th", { scope: "col" }, "Why"))), body));

  const search = () => {
    const wanted = byId("search").value.trim().toLowerCase();
    let shown = 0;
    for (const { line, detail } of rows) {
      line.hidden = !line.dataset.text.includes(wanted);
      if (line.hidden) detail.hidden = true;
      shown += line.hidden ? 0 : 1;
    }
    byId("shown").textContent = `${shown} of the ${rows.length} nodes with the highest scores`;
  };
  byId("search").addEventListener("input", search);
  search();
  const flag = () => {
    for (const { row, line } of rows) {
      line.classList.toggle("flagged", row.level <= position);
      line.querySelector("td.flag").textContent = cellText(row, columns[4]);
    }
  };
  flag();
  onMove.push(flag);
}

function drawCard() {
  for (const part of data.card) byId("card").append(make("div", {}, make("h3", {}, part.title), make("table", {}, make("tbody", {}, ...part.rows.map(([name, value]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, value)))))));
  if (data.trust) { byId("trust-section").hidden = false; draw(byId("trust"), data.trust); }
  if (data.training) { byId("training-part").hidden = false; draw(byId("training"), data.training); }
}

// Start -----------------------------------------------------------------------------------------------------------
byId("subtitle").textContent = `${count.format(data.numNodes)} nodes scored with ${data.method}, calibrated on ${count.format(data.numCalibration)} held-out nodes.`;
slider.max = data.alphas.length - 1;
slider.value = position;
headline();
drawTable();
unpackPlotly().then(() => {
  drawScores();
  drawMap();
  drawGroups();
  drawTruth();
  drawCard();
  let pending = false;
  slider.addEventListener("input", () => {
    position = Number(slider.value);
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => { pending = false; for (const follow of onMove) follow(); });
  });
  root.dataset.ready = "yes";
});
