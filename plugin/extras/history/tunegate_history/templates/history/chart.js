// The chart: uPlot, with marks for what a line does not say.
const MAX_SERIES = 8;
const MAX_LINES = 60;
const MANY_POINTS = 1500;
const DAY = 86400;
const DASHES = [[], [8, 4], [2, 3], [8, 3, 2, 3]];
const COLOURS = ["--head", "--reference", "--faster", "--slower", "--base", "--unsure", "--ink", "--muted"];

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function milliseconds(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0 ms";
  if (value >= 10000) return `${(value / 1000).toPrecision(4)} s`;
  return value >= 0.1 ? `${value.toPrecision(4)} ms` : `${(value * 1000).toPrecision(4)} µs`;
}

// On an axis: without the zeros that a measured time keeps.
function axisTime(value) {
  return value === null ? "" : milliseconds(value).replace(/\.0+ |(\.\d*?)0+ /, "$1 ");
}

function tick(seconds, step) {
  if (step < 60) return new Date(seconds * 1000).toISOString().slice(11, 19);
  return step < DAY ? utc(seconds).slice(5) : utc(seconds).slice(0, 10);
}

class Chart {
  constructor(place, told) {
    this.place = place;
    this.told = told;
    this.series = [];
    this.plot = null;
  }

  show(series, {axis, values, range, marks}) {
    this.axis = axis;
    this.values = file[values];
    this.marks = marks;
    this.ranks = ranksOf(series);
    const tints = new Map();
    this.series = series.slice(0, MAX_SERIES).map((rows, number) => {
      const sorted = ordered(rows, axis, this.ranks), name = nameOf(rows);
      if (!tints.has(name)) tints.set(name, tints.size);
      return {number, tint: tints.get(name), name, isAside: Boolean(file.aside[rows[0]]), rows: sorted, places: placesOf(sorted, axis, this.ranks)};
    });
    this.lines = this.verticalLines();
    this.plot?.destroy();
    this.plot = null;
    this.place.replaceChildren();
    if (!this.series.length) return;
    const tables = this.series.map(each => [each.places, each.rows.map(row => this.values[row])]);
    const data = tables.length === 1 ? tables[0] : uPlot.join(tables);
    this.plot = new uPlot(this.options(range), data, this.place);
    this.all();
  }

  options(range) {
    const ink = colour("--muted"), grid = {stroke: colour("--line"), width: 1};
    const commits = [...this.ranks.keys()].map(at => file.texts[at].slice(0, 8));
    const x = {stroke: ink, grid, ticks: grid, space: 80};
    if (this.axis === "time") x.values = (_, at, __, ___, step) => at.map(place => tick(place, step));
    if (this.axis === "commit") x.values = (_, at) => at.map(place => Number.isInteger(place) ? commits[place] ?? "" : "");
    const y = {stroke: ink, grid, ticks: grid, size: 80, values: (_, at) => at.map(axisTime)};
    const scale = {zero: {range: (_, low, high) => [0, (high || 1) * 1.08]}, auto: {}, log: {distr: 3}}[range];
    return {
      width: this.place.clientWidth || 600, height: 360, legend: {show: false}, pxAlign: 0,
      padding: [null, 44, null, null], // half of the last label is right of its mark
      tzDate: seconds => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
      cursor: {drag: {x: true, y: false}, points: {size: 9}},
      scales: {x: {time: this.axis === "time"}, y: scale},
      axes: [x, y],
      series: [{}, ...this.series.map(each => this.style(each))],
      hooks: {
        draw: [plot => { this.drawMarks(plot); performance.mark("drawn"); }],
        setScale: [(plot, key) => key === "x" && this.told.view()],
        setCursor: [plot => this.pointed(plot)],
      },
    };
  }

  // Heads beside the default branch are hollow points without a line.
  style({tint, isAside, places}) {
    const stroke = colour(COLOURS[tint]);
    if (isAside) return {stroke, paths: () => null, points: {show: true, size: 7, width: 1.5, fill: colour("--surface")}};
    return {
      stroke, width: 1.5, spanGaps: true, dash: DASHES[Math.floor(tint / 2) % DASHES.length],
      points: {show: places.length < MANY_POINTS, size: 5, fill: stroke},
    };
  }

  // Where a release was made, and where the packages that decide what runs changed.
  verticalLines() {
    const found = new Map();
    for (const {rows, places} of this.series.filter(each => !each.isAside)) {
      rows.forEach((row, at) => {
        const release = textOf("release", row);
        if (release) found.set(`release ${release}`, {kind: "release", place: places[at], name: release});
        const before = at && file.toolchain[rows[at - 1]];
        if (!at || before === file.toolchain[row]) return;
        const name = bumped(before, file.toolchain[row]);
        if (name && !found.has(`bump ${name}`)) found.set(`bump ${name}`, {kind: "bump", place: places[at], name});
      });
    }
    return [...found.values()].sort((a, b) => a.place - b.place);
  }

  drawMarks(plot) {
    const context = plot.ctx, pixels = devicePixelRatio, {left, top, width, height} = plot.bbox;
    context.save();
    context.beginPath();
    context.rect(left, top, width, height);
    context.clip();
    context.textAlign = "left";
    context.font = `${11 * pixels}px system-ui, sans-serif`;
    const shown = this.lines.filter(line => this.marks[line.kind] && this.isInView(plot, line.place));
    let free = -Infinity;
    for (const line of shown.slice(-MAX_LINES)) {
      const x = plot.valToPos(line.place, "x", true);
      this.drawLine(context, line, x, {top, height, pixels, isNamed: x > free});
      if (x > free) free = x + 14 * pixels;
    }
    for (const each of this.series) this.drawPoints(plot, each, pixels);
    context.restore();
  }

  isInView(plot, place) {
    const {min, max} = plot.scales.x;
    return place >= min && place <= max;
  }

  drawLine(context, line, x, {top, height, pixels, isNamed}) {
    context.strokeStyle = colour(line.kind === "bump" ? "--unsure" : "--muted");
    context.setLineDash(line.kind === "bump" ? [2 * pixels, 2 * pixels] : [6 * pixels, 4 * pixels]);
    context.lineWidth = pixels;
    context.beginPath();
    context.moveTo(x, top);
    context.lineTo(x, top + height);
    context.stroke();
    context.setLineDash([]);
    if (!isNamed) return;
    context.save();
    context.translate(x + 11 * pixels, top + 4 * pixels);
    context.rotate(Math.PI / 2);
    context.fillStyle = colour(line.kind === "bump" ? "--unsure" : "--ink");
    context.textBaseline = "bottom";
    context.fillText(line.name.slice(0, 40), 0, 11 * pixels);
    context.restore();
  }

  // Failed: a cross. Waived: a diamond.
  drawPoints(plot, {rows, places}, pixels) {
    const context = plot.ctx, size = 5 * pixels;
    context.lineWidth = 2 * pixels;
    const wanted = new Set(["fail", "waived"].filter(each => this.marks[each]).map(each => file.texts.indexOf(each)));
    rows.forEach((row, at) => {
      if (!wanted.has(file.status[row])) return;
      const status = textOf("status", row);
      if (!this.isInView(plot, places[at])) return;
      const x = plot.valToPos(places[at], "x", true), y = plot.valToPos(this.values[row], "y", true);
      context.strokeStyle = context.fillStyle = colour(status === "fail" ? "--fail" : "--neutral");
      context.beginPath();
      const corners = status === "fail"
        ? [[-size, -size], [size, size], null, [-size, size], [size, -size]]
        : [[0, -1.5 * size], [1.5 * size, 0], [0, 1.5 * size], [-1.5 * size, 0], [0, -1.5 * size]];
      let isNew = true;
      for (const corner of corners) {
        if (corner) context[isNew ? "moveTo" : "lineTo"](x + corner[0], y + corner[1]);
        isNew = !corner;
      }
      context.stroke();
    });
  }

  // The point that is nearest to the pointer.
  pointed(plot) {
    const {left, top} = plot.cursor;
    if (left === undefined || left < 0) return;
    const wanted = plot.posToVal(left, "x");
    let best = null;
    for (const each of this.series) {
      const at = nearest(each.places, wanted);
      const away = Math.hypot(plot.valToPos(each.places[at], "x") - left, plot.valToPos(this.values[each.rows[at]], "y") - top);
      if (!best || away < best.away) best = {each, at, away};
    }
    if (best) this.told.point(best.each, best.at);
  }

  pointAt({rows, places}, at) {
    const left = this.plot.valToPos(places[at], "x"), top = this.plot.valToPos(this.values[rows[at]], "y");
    this.plot.setCursor({left, top}, false);
  }

  // The latest first.
  rowsInView() {
    if (!this.plot) return [];
    const {min, max} = this.view();
    const found = this.series.flatMap(({rows, places}) => rows.filter((_, at) => places[at] >= min && places[at] <= max));
    return found.sort((a, b) => file.at[b] - file.at[a]);
  }

  view() {
    const {min, max} = this.plot.scales.x;
    return {min, max};
  }

  // Zooms by a factor about the middle, and moves by a share of what is in view.
  zoom(factor, moved = 0) {
    if (!this.plot) return;
    const {min, max} = this.view(), half = (max - min) / 2 * factor;
    const middle = (min + max) / 2 + moved * (max - min);
    this.plot.setScale("x", {min: middle - half, max: middle + half});
  }

  all() {
    if (!this.plot) return;
    const places = this.series.flatMap(each => [each.places[0], each.places.at(-1)]);
    const min = Math.min(...places), max = Math.max(...places), room = (max - min) * 0.02 || 1;
    this.plot.setScale("x", {min: min - room, max: max + room});
  }
}

function nearest(places, wanted) {
  let low = 0, high = places.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (places[middle] < wanted) low = middle; else high = middle;
  }
  return wanted - places[low] < places[high] - wanted ? low : high;
}
