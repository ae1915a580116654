// Charts of one run, or of two over each other: one figure for all that belongs together, so that zoom and cursor are one.
"use strict";
window.holdfast = window.holdfast || {};

(function () {
  const ROW = 132, HEAD = 30, NARROW_HEAD = 50, EVENTS = 46, NARROW = 620, MOST_LINES = 60;
  const SIZES = [["B", 1], ["KiB", 1024], ["MiB", 1024 ** 2], ["GiB", 1024 ** 3], ["TiB", 1024 ** 4]];
  const WEIGHTS = { note: ["--quiet", "circle"], warn: ["--warn", "triangle-up"], bad: ["--bad", "x"], done: ["--done", "diamond"] };

  function numbers(text) {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    return new Float32Array(bytes.buffer);
  }

  function unpack(signals) {
    const found = {};
    for (const [name, signal] of Object.entries(signals)) {
      found[name] = { t: numbers(signal.t), v: numbers(signal.v), notFinite: signal.not_finite || [] };
    }
    return found;
  }

  function joined(first, second) {
    const both = new Float32Array(first.length + second.length);
    both.set(first);
    both.set(second, first.length);
    return both;
  }

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function highest(values) {
    let most = 0;
    for (const value of values) if (Number.isFinite(value) && Math.abs(value) > most) most = Math.abs(value);
    return most;
  }

  // What a value is divided by, and what stands behind it.
  function scale(unit, most) {
    if (unit === "bytes" || unit === "bytes_per_s") {
      const [word, size] = SIZES.filter(([, size]) => most >= size).pop() || SIZES[0];
      return { by: size, word: unit === "bytes" ? word : word + "/s" };
    }
    if (unit === "s" && most < 1) return { by: 0.001, word: "ms" };
    if (unit === "ratio") return { by: 0.01, word: "%" };
    return { by: 1, word: { s: "s", percent: "%", celsius: "°C", watts: "W", mhz: "MHz", per_s: "/s" }[unit] || "" };
  }

  class Run {
    constructor(whole) {
      this.take(whole);
      this.charts = whole.charts;
      this.signals = unpack(whole.signals);
    }
    take(about) {
      Object.assign(this, { name: about.run, version: about.version, origin: about.origin, offset: about.utc_offset_s });
      Object.assign(this, { last: about.last, over: about.over, moments: about.moments });
    }
    update(delta) {
      this.take(delta);
      let most = 0;
      for (const [name, signal] of Object.entries(unpack(delta.signals))) {
        const known = this.signals[name];
        if (!known) continue;
        known.t = joined(known.t, signal.t);
        known.v = joined(known.v, signal.v);
        most = Math.max(most, known.t.length);
      }
      return most;
    }
    add(signals) {
      Object.assign(this.signals, unpack(signals));
    }
  }

  class Figure {
    // `relative`: over the time since the start of each run; else over the clock of the machine that recorded it.
    constructor(place, runs, options = {}) {
      Object.assign(this, { place, runs, relative: false, more: null, onRange: () => {} }, options);
      this.range = null;
      this.marked = null;
      this.logarithmic = false;
    }

    x(run, t) {
      return this.relative ? t / this.timeUnit().by : (run.origin + run.offset + t) * 1000;
    }

    timeUnit() {
      const most = Math.max(...this.runs.map((run) => run.last));
      return most > 7200 ? { by: 3600, word: "hours" } : most > 240 ? { by: 60, word: "minutes" } : { by: 1, word: "seconds" };
    }

    charts() {
      const wanted = (chart) => (this.more === null ? !chart.more : chart.id === this.more);
      const found = new Map();
      for (const run of this.runs) {
        for (const chart of run.charts.filter(wanted)) if (!found.has(chart.id)) found.set(chart.id, chart);
      }
      return [...found.values()];
    }

    whole() {
      const ends = this.runs.map((run) => [this.x(run, 0), this.x(run, Math.max(run.last, 1))]);
      const low = Math.min(...ends.map((end) => end[0])), high = Math.max(...ends.map((end) => end[1]));
      const edge = (high - low) / 80;  // for the marks at both ends
      return [low - edge, high + edge];
    }

    lines(chart, row) {
      const shown = [];
      const drawn = this.runs.map((run, which) => [run, which, run.charts.find((other) => other.id === chart.id)]);
      const all = drawn.flatMap(([run, , own]) => (own ? own.lines.map((line) => run.signals[line.signal]).filter(Boolean) : []));
      const most = Math.max(0, ...all.map((signal) => highest(signal.v)));
      const { by, word } = scale(chart.unit, most);
      for (const [run, which, own] of drawn) {
        if (!own) continue;
        const taken = Math.max(0, ...own.lines.filter((line) => !line.limit && run.signals[line.signal])
          .map((line) => highest(run.signals[line.signal].v)));
        const lines = this.runs.length > 1 ? own.lines.filter((line, index) => !line.limit && (!index || own.id.startsWith("gpu"))) : own.lines;
        const legend = this.runs.length === 1 && lines.length > 1 && lines.length <= (this.isNarrow() ? 4 : 24);
        let limits = 0;
        lines.slice(0, MOST_LINES).forEach((line, index) => {
          const signal = run.signals[line.signal];
          if (!signal || !signal.t.length) return;
          const hue = this.runs.length > 1 ? which : index;
          const far = line.limit && taken < 0.25 * highest(signal.v);  // it would press the rest flat
          const label = short(this.runs.length > 1 ? `${line.label}, ${run.name}` : line.label);
          shown.push({
            type: "scatter", mode: signal.t.length < 3 && !line.limit ? "lines+markers" : "lines", name: label,
            x: Float64Array.from(signal.t, (t) => this.x(run, t)), y: Float64Array.from(signal.v, (v) => v / by),
            xaxis: "x", yaxis: `y${row + 2}`, legend: `legend${row + 2}`, showlegend: legend && (!line.limit || !limits++),
            line: { color: colour(line.limit ? "--quiet" : `--line-${(hue % 8) + 1}`), width: line.limit ? 1.2 : 1.6,
              dash: line.limit ? "dash" : "solid" },
            visible: far ? "legendonly" : true, connectgaps: false,
            hovertemplate: `${label} %{y:.4~g} ${word}<extra></extra>`,
          });
          if (signal.notFinite.length) shown.push(this.notFinite(run, signal, row, by));
        });
      }
      return { shown, word };
    }

    notFinite(run, signal, row, by) {
      const finite = Array.from(signal.v).filter(Number.isFinite);
      const low = (finite.length ? Math.min(...finite) : 0) / by;
      return {
        type: "scatter", mode: "markers", name: "not a number", x: signal.notFinite.map((t) => this.x(run, t)),
        y: signal.notFinite.map(() => low), xaxis: "x", yaxis: `y${row + 2}`, legend: `legend${row + 2}`,
        marker: { color: colour("--bad"), symbol: "x", size: 9 }, hovertemplate: "not a finite number<extra></extra>",
      };
    }

    events() {
      const shown = [];
      this.runs.forEach((run, which) => {
        for (const [weight, [name, symbol]] of Object.entries(WEIGHTS)) {
          const moments = run.moments.filter((moment) => moment.weight === weight);
          if (!moments.length) continue;
          shown.push({
            type: "scatter", mode: "markers", name: weight, showlegend: false, xaxis: "x", yaxis: "y",
            x: moments.map((moment) => this.x(run, moment.at)), y: moments.map(() => -which),
            text: moments.map((moment) => short(moment.text)), hovertemplate: "%{text}<extra></extra>",
            marker: { color: colour(name), symbol, size: 10 },
          });
        }
      });
      return shown;
    }

    isNarrow() {
      return this.place.clientWidth < NARROW;
    }

    draw() {
      const charts = this.charts();
      const narrow = this.isNarrow();
      const head = narrow ? NARROW_HEAD : HEAD;
      const strip = this.more === null ? EVENTS : 0;
      const height = strip + charts.length * (ROW + head) + 46;
      const plot = height - 46;
      const layout = this.layout(height, narrow);
      const data = this.more === null ? this.events() : [];
      layout.yaxis.domain = [1 - strip / plot || 0.999, 1];
      charts.forEach((chart, row) => {
        const top = 1 - (strip + row * (ROW + head) + head) / plot;
        const { shown, word } = this.lines(chart, row);
        data.push(...shown);
        layout[`yaxis${row + 2}`] = this.yaxis(chart, Math.max(0, top - ROW / plot), top, word);
        layout[`legend${row + 2}`] = { x: narrow ? 0 : 1, xanchor: narrow ? "left" : "right", y: top, yanchor: "bottom",
          orientation: "h", font: { size: 11, color: colour("--ink") }, bgcolor: "rgba(0,0,0,0)" };
        layout.annotations.push({ text: `<b>${short(chart.title)}</b>${word ? ` (${word})` : ""}`, xref: "paper", yref: "paper", x: 0,
          xanchor: "left", y: top + (narrow ? 22 / plot : 0), yanchor: "bottom", showarrow: false,
          font: { size: 13, color: colour("--ink") } });
      });
      this.place.setAttribute("aria-label", `Charts over time: ${charts.map((chart) => chart.title).join(", ")}`);
      const made = window.Plotly.react(this.place, data, layout, { displaylogo: false, scrollZoom: false,
        displayModeBar: false, doubleClick: "reset" });
      if (!this.listens) this.listen();
      return made;
    }

    layout(height, narrow) {
      const ink = colour("--ink"), rule = colour("--rule");
      const title = this.relative ? { title: { text: `${this.timeUnit().word} since the start`, font: { size: 12 } } } : {};
      return {
        height, width: this.place.clientWidth, margin: { l: narrow ? 44 : 58, r: 10, t: 4, b: 42 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
        font: { color: ink, family: "system-ui, sans-serif", size: 12 }, hovermode: "x unified", hoversubplots: "axis",
        hoverlabel: { bgcolor: colour("--raised"), font: { color: ink, size: 12 }, bordercolor: rule },
        dragmode: window.matchMedia("(pointer: coarse)").matches ? false : "zoom", annotations: [], shapes: this.shapes(),
        xaxis: { ...title, type: this.relative ? "linear" : "date", range: this.range || this.whole(), gridcolor: rule, zeroline: false,
          showspikes: true, spikemode: "across", spikesnap: "cursor", spikethickness: 1, spikedash: "solid", spikecolor: colour("--quiet"),
          anchor: "free", position: 0, hoverformat: this.relative ? ".4~g" : "%Y-%m-%d %H:%M:%S", nticks: narrow ? 4 : 10 },
        yaxis: { domain: [0, 1], fixedrange: true, visible: false, range: [-this.runs.length + 0.3, 0.7] },
      };
    }

    yaxis(chart, low, top, word) {
      const logarithmic = this.logarithmic && (chart.id === "loss" || chart.id === "gradient");
      return { domain: [low, top], fixedrange: true, gridcolor: colour("--rule"), zeroline: false, nticks: 5, anchor: "x",
        type: logarithmic ? "log" : "linear", rangemode: word === "%" || word.endsWith("B") ? "tozero" : "normal",
        tickfont: { size: 11 } };
    }

    shapes() {
      const shapes = [];
      this.runs.forEach((run) => {
        for (const moment of run.moments.filter((one) => one.weight === "bad" || one.weight === "warn").slice(-MOST_LINES)) {
          const at = this.x(run, moment.at);
          shapes.push({ type: "line", xref: "x", yref: "paper", x0: at, x1: at, y0: 0, y1: 1, layer: "below",
            line: { color: colour(moment.weight === "bad" ? "--bad" : "--warn"), width: 1, dash: "dot" } });
        }
      });
      if (this.marked !== null) {
        const [from, to] = this.range || this.whole();
        const width = (to - from) / 80;
        shapes.push({ type: "rect", xref: "x", yref: "paper", x0: this.marked - width, x1: this.marked + width, y0: 0, y1: 1,
          fillcolor: colour("--highlight"), line: { color: colour("--focus"), width: 1 }, layer: "below", name: "moment" });
      }
      return shapes;
    }

    listen() {
      this.listens = true;
      this.place.on("plotly_relayout", (change) => {
        if (change["xaxis.range[0]"] !== undefined) {
          this.range = [number(change["xaxis.range[0]"]), number(change["xaxis.range[1]"])];
          this.onRange(this.range);
        } else if (change["xaxis.autorange"] || change["xaxis.range"]) {
          this.show(change["xaxis.range"] ? this.range : null);
        }
      });
      this.place.on("plotly_doubleclick", () => this.show(null));
      this.place.addEventListener("keydown", (event) => {
        const done = { ArrowLeft: () => this.move(-0.25), ArrowRight: () => this.move(0.25), "+": () => this.zoom(0.5),
          "=": () => this.zoom(0.5), "-": () => this.zoom(2), Home: () => this.show(null) }[event.key];
        if (done) {
          event.preventDefault();
          done();
        }
      });
    }

    show(range) {
      this.range = range;
      if (range === null) this.marked = null;
      this.onRange(range);
      return this.draw();
    }

    zoom(factor) {
      const [from, to] = this.range || this.whole();
      const middle = this.marked !== null && this.marked > from && this.marked < to ? this.marked : (from + to) / 2;
      const [low, high] = this.whole();
      const half = ((to - from) / 2) * factor;
      return this.show(half * 2 >= high - low ? null : [middle - half, middle + half]);
    }

    move(share) {
      const [from, to] = this.range || this.whole();
      return this.show([from + (to - from) * share, to + (to - from) * share]);
    }

    // To the moment of an evidence line or of the timeline, in seconds of the clock.
    jump(at) {
      const run = this.runs[0];
      const [low, high] = this.whole();
      const half = Math.max((high - low) / 20, this.relative ? 5 / this.timeUnit().by : 5000);
      this.marked = this.x(run, at - run.origin);
      const from = Math.max(low, Math.min(this.marked - half, high - 2 * half));
      return this.show([from, from + 2 * half]);
    }
  }

  function number(value) {
    return typeof value === "number" ? value : Date.parse(String(value).replace(" ", "T") + "Z");
  }

  // Plotly reads some tags in its texts; what a run told is shown as it is.
  function short(text) {
    const plain = text.length > 160 ? text.slice(0, 159) + "…" : text;
    return plain.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  }

  window.holdfast.Run = Run;
  window.holdfast.Figure = Figure;
})();
