// Filters, buttons, keys, and the table that says what the chart shows.
const ROWS = 100;
const COLUMNS = [...document.querySelectorAll("thead th")].map(each => ({title: each.textContent, kind: each.className}));
const FILTERS = ["model", "target", "device", "repository"];
const WORDS = JSON.parse(document.getElementById("words").textContent);
const byId = id => document.getElementById(id);
let shownRows = ROWS, isStale = false;
let focus = {series: 0, at: 0};

const chart = new Chart(byId("chart"), {
  view: () => {
    if (!isStale) queueMicrotask(drawTable);
    isStale = true;
  },
  point: (series, at) => { focus = {series: series.number, at}; tellPoint(series.rows[at]); },
});

function element(name, text = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function fillFilter(column) {
  const select = byId(column), found = choicesOf(column);
  select.replaceChildren(element("option", `All (${found.length})`, {value: ALL}));
  for (const at of found) select.append(element("option", file.texts[at] || "unknown", {value: at}));
  byId(`${column}-field`).hidden = column === "repository" && found.length < 2;
}

function wanted() {
  return Object.fromEntries(FILTERS.map(column => [column, Number(byId(column).value)]));
}

function draw() {
  shownRows = ROWS;
  focus = {series: 0, at: 0};
  const marks = Object.fromEntries(["fail", "waived", "release", "bump"].map(each => [each, byId(each).checked]));
  const series = seriesOf(wanted());
  chart.show(series, {axis: byId("axis").value, values: byId("values").value, range: byId("range").value, marks});
  byId("point").replaceChildren();
  const left = series.length - chart.series.length;
  byId("shown").textContent = !series.length
    ? "No run fits these filters."
    : left ? `The ${chart.series.length} longest of ${series.length} series are drawn. A filter shows the others.` : "";
  drawLegend();
  if (!chart.plot) drawTable();
}

function drawLegend() {
  byId("legend").replaceChildren(...chart.series.map(each => {
    const item = element("li"), swatch = element("span", "", {class: each.isAside ? "swatch hollow" : "swatch", "aria-hidden": "true"});
    swatch.style[each.isAside ? "borderColor" : "background"] = colour(COLOURS[each.tint]);
    const where = each.isAside ? ", beside the default branch (points)" : "";
    item.append(swatch, element("span", `${each.name}${where}: ${milliseconds(file.head[each.rows.at(-1)])} in ${each.rows.length === 1 ? "its only run" : `the last of ${each.rows.length} runs`}`));
    return item;
  }));
}

// A change has no sign where it rounds to nothing.
function signed(value) {
  const digits = Math.abs(value).toFixed(1);
  return `${Number(digits) === 0 ? "" : value > 0 ? "+" : "−"}${digits}`;
}

// The change, and its bounds.
function change(row) {
  if (file.low[row] === null) return ["–"];
  return [`${signed(file.center[row])}%`, `${signed(file.low[row])} to ${signed(file.high[row])}%`];
}

function linkTo(row) {
  const address = pageOf(row);
  return address ? element("a", "run", {href: address, rel: "noreferrer noopener"}) : element("span", "–");
}

function versionsOf(row) {
  return Object.entries(file.versions[file.toolchain[row]]).map(pair => pair.join(" ")).join(", ");
}

function tellPoint(row) {
  const commit = textOf("commit", row).slice(0, 12);
  const [center, bounds] = change(row), changed = bounds ? `${center} (${bounds})` : center;
  const told = [
    utc(file.at[row]), commit, textOf("release", row), milliseconds(file.head[row]), changed,
    WORDS[textOf("status", row)], textOf("reason", row), versionsOf(row),
  ].filter(Boolean).join(" · ");
  byId("point").replaceChildren(element("span", `${told} `), linkTo(row));
}

// What a row of the table says: texts, with a smaller one below.
function cells(row) {
  const number = file.change[row];
  return [
    [textOf("model", row)], [utc(file.at[row])], [textOf("commit", row).slice(0, 8), textOf("release", row)],
    [number === null ? "–" : `#${number}`], [textOf("target", row), textOf("device", row)], [WORDS[textOf("status", row)]],
    [milliseconds(file.head[row])], change(row), [textOf("runtime", row) || "–"],
  ];
}

function line(row) {
  const made = element("tr", "", {class: `tone-${textOf("status", row)}`});
  const page = element("td", "", {"data-label": COLUMNS.at(-1).title});
  page.append(linkTo(row));
  made.append(...cells(row).map(([text, below], at) => {
    const cell = element("td", "", {"data-label": COLUMNS[at].title, class: COLUMNS[at].kind});
    const words = element("span", text);
    if (below) words.append(element("span", below, {class: "sub"}));
    cell.append(words);
    return cell;
  }), page);
  return made;
}

function drawTable() {
  isStale = false;
  const rows = chart.rowsInView();
  byId("rows").replaceChildren(...rows.slice(0, shownRows).map(line));
  byId("counted").textContent = rows.length ? `${Math.min(shownRows, rows.length)} of ${counted(rows.length, "latency", "latencies")} in view, of ${counted(runsOf(rows), "run", "runs")}, the latest first.` : "";
  byId("more").hidden = shownRows >= rows.length;
}

function counted(number, one, several) {
  return `${number} ${number === 1 ? one : several}`;
}

function moveFocus(step, toSeries = 0) {
  const count = chart.series.length;
  if (!count) return;
  const number = (focus.series + toSeries + count) % count, series = chart.series[number];
  const at = Math.max(0, Math.min(series.rows.length - 1, focus.at + step));
  focus = {series: number, at};
  chart.pointAt(series, at);
  tellPoint(series.rows[at]);
}

const KEYS = {
  ArrowLeft: () => moveFocus(-1), ArrowRight: () => moveFocus(1),
  ArrowUp: () => moveFocus(0, -1), ArrowDown: () => moveFocus(0, 1),
  Home: () => moveFocus(-Infinity), End: () => moveFocus(1e12),
  "+": () => chart.zoom(0.5), "-": () => chart.zoom(2), 0: () => chart.all(),
  Enter: () => byId("point").querySelector("a")?.click(),
};

FILTERS.forEach(fillFilter);
byId("model").value = file.model[file.head.findLastIndex(value => value !== null)] ?? ALL;
for (const id of [...FILTERS, "axis", "values", "range", "fail", "waived", "release", "bump"]) byId(id).addEventListener("change", draw);
byId("closer").addEventListener("click", () => chart.zoom(0.5));
byId("wider").addEventListener("click", () => chart.zoom(2));
byId("earlier").addEventListener("click", () => chart.zoom(1, -0.5));
byId("later").addEventListener("click", () => chart.zoom(1, 0.5));
byId("everything").addEventListener("click", () => chart.all());
byId("more").addEventListener("click", () => { shownRows += ROWS; drawTable(); });
byId("chart").addEventListener("keydown", event => {
  const does = KEYS[event.key];
  if (!does || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  does();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
let width = byId("chart").clientWidth;
new ResizeObserver(() => {
  const now = byId("chart").clientWidth;
  if (now !== width && chart.plot) chart.plot.setSize({width: now, height: 360});
  width = now;
}).observe(byId("chart"));
draw();
