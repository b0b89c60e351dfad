// The comparison of two windows.
const [before, now] = data.sizes;
byId("subtitle").textContent = `${count.format(before)} nodes in the reference window, ${count.format(now)} in the current one.`;
byId("verdict").classList.toggle("drift", data.drifted);
byId("answer").textContent = data.drifted ? "Yes, the graph has drifted." : "No sign of drift.";
byId("reason").textContent = `p = ${short(data.pValue)} for both tests together (Bonferroni), at a level of ${short(data.level)}.`;
const value = (test, number) => (test === "share flagged" ? percent(number) : short(number));
byId("tests").append(plainTable(
  [["", ""], ["reference", "number"], ["current", "number"], ["p-value", "number"]],
  data.tests.map(([name, first, second, p]) => [name === "share flagged" ? `share flagged at α = ${percent(data.alpha)}` : name, value(name, first), value(name, second), short(p)]),
  "Permutation tests"));

byId("drifts").append(data.drifts.length === 0 ? make("p", {}, "No column, class or degree differs by more than chance.") : plainTable(
  [["", ""], ["which", ""], ["reference", ""], ["current", ""], ["effect", "number"]],
  data.drifts.map(([kind, name, first, second, effect]) => [kind, name, first, second, effect.toFixed(2)]),
  "What drifted most"));

function breakdownTable(part) {
  const share = (number) => (number === null ? "–" : percent(number));
  const rows = part.rows.map(([name, first, second, a, b]) => [name, count.format(first), share(a), count.format(second), share(b)]);
  const heads = [["", ""], ["reference", "number"], ["flagged", "number"], ["current", "number"], ["flagged", "number"]];
  return make("details", {}, make("summary", {}, "as a table"), make("div", { class: "scroll", tabindex: "0" }, plainTable(heads, rows, `Share flagged ${part.title}`)));
}

unpackPlotly().then(() => {
  draw(byId("histogram"), data.histogram);
  const places = data.breakdowns.map(() => make("div", { class: "figure free" }));
  byId("breakdowns").append(...data.breakdowns.map((part, index) => make("section", { class: "panel" }, make("h3", {}, part.title), places[index], breakdownTable(part))));
  data.breakdowns.forEach((part, index) => draw(places[index], part.figure));
  root.dataset.ready = "yes";
});
