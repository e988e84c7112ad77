// The entries of the page, which the file holds as columns. Texts are only ever shown as text.
const file = JSON.parse(document.getElementById("entries").textContent);
const ALL = -1;
const STEADY = 1e-6;

function textOf(column, row) {
  return file.texts[file[column][row]];
}

function utc(seconds) {
  return new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ");
}

// What may be followed: the addresses were checked when they were read, and are here again.
function pageOf(row) {
  const address = textOf("run", row);
  return /^https?:\/\/[^\s@<>"'`\\]+$/.test(address) ? address : "";
}

// The choices of a filter, by name: indices of texts.
function choicesOf(column) {
  const found = [...new Set(file[column])];
  return found.sort((a, b) => file.texts[a].localeCompare(file.texts[b]));
}

// One series for each model on a target of a device: times of two machines are not compared. Heads
// beside the default branch are a series of their own: who comes after one of them need not have it.
function seriesOf(wanted) {
  const {repository, model, target, device, head} = file, found = new Map();
  const filters = Object.entries(wanted).filter(([, text]) => text !== ALL).map(([column, text]) => [file[column], text]);
  for (let row = 0; row < head.length; row++) {
    if (head[row] === null || filters.some(([column, text]) => column[row] !== text)) continue;
    const key = `${file.aside[row]} ${repository[row]} ${model[row]} ${target[row]} ${device[row]}`, known = found.get(key);
    if (known) known.push(row); else found.set(key, [row]);
  }
  return [...found.values()].sort((a, b) => b.length - a.length);
}

// What tells runs apart: each leaves a row for every model.
function runsOf(rows) {
  return new Set(rows.map(row => `${file.at[row]} ${file.commit[row]} ${file.repository[row]}`)).size;
}

const hasRepositories = file.repository.some(each => each !== file.repository[0]);

function nameOf(rows) {
  const [row] = rows;
  const where = `${textOf("target", row)}, ${textOf("device", row) || "unknown device"}`;
  const repository = hasRepositories ? `${textOf("repository", row)}: ` : "";
  return `${repository}${textOf("model", row)} on ${where}`;
}

// The places of the rows on the axis: strictly rising, so that a commit that ran twice is two points.
function placesOf(rows, axis, ranks) {
  let last = -Infinity;
  return rows.map(row => {
    const place = axis === "time" ? file.at[row] : ranks.get(file.commit[row]);
    last = place > last ? place : last + (axis === "time" ? STEADY * 1000 : 0.01);
    return last;
  });
}

// Commits in the order in which they were written.
function ranksOf(series) {
  const first = new Map();
  for (const row of series.flat()) {
    const when = file.authored[row] ?? file.at[row];
    if (!(first.get(file.commit[row]) <= when)) first.set(file.commit[row], when);
  }
  const ordered = [...first].sort((a, b) => a[1] - b[1]);
  return new Map(ordered.map(([commit], rank) => [commit, rank]));
}

function ordered(rows, axis, ranks) {
  const by = axis === "time" ? row => file.at[row] : row => ranks.get(file.commit[row]);
  return [...rows].sort((a, b) => by(a) - by(b) || file.at[a] - file.at[b]);
}

// What changed between two versions of a toolchain, in words; "" where one is unknown.
function bumped(before, after) {
  const [old, now] = [before, after].map(at => file.versions[at]);
  const names = Object.keys(now).filter(name => name in old && old[name] !== now[name]);
  return names.map(name => `${name} ${now[name]}`).join(", ");
}
