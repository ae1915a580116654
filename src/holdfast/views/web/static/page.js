// What happens on a page of `holdfast serve`, and in a report.
"use strict";

(function () {
  const LOOK_MS = 1000, VERDICT_MS = 15000, MOST_POINTS = 4000;
  const { Run, Figure } = window.holdfast;
  const here = document.body.dataset;
  const find = (selector) => document.querySelector(selector);

  async function get(path) {
    const answer = await fetch(path, { credentials: "same-origin", cache: "no-store" });
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
    return answer;
  }

  const json = async (path) => (await get(path)).json();

  // Our own HTML, in which everything that a run told is escaped; parsed without running anything.
  function put(place, html) {
    if (!place || place.dataset.html === html) return;
    const within = place.contains(document.activeElement) ? place.scrollTop : null;
    const kept = new Map([...place.querySelectorAll("pre, ol")].map((part, index) => [index, [part.scrollTop, atEnd(part)]]));
    const parsed = new DOMParser().parseFromString(html, "text/html");
    place.replaceChildren(...parsed.body.childNodes);
    place.dataset.html = html;
    if (within !== null) place.scrollTop = within;
    [...place.querySelectorAll("pre, ol")].forEach((part, index) => {
      const [top, end] = kept.get(index) || [0, true];
      part.scrollTop = end ? part.scrollHeight : top;
    });
  }

  const atEnd = (part) => part.scrollTop + part.clientHeight >= part.scrollHeight - 4;

  function plotly() {
    if (window.Plotly) return Promise.resolve();
    return new Promise((done, failed) => {
      const script = find("#plotly");
      script.addEventListener("load", done);
      script.addEventListener("error", () => failed(new Error("the charts could not be loaded")));
    });
  }

  function say(text) {
    const place = find("#said");
    if (place) place.textContent = text;
  }

  // -- charts and what steers them

  function prepare(figure, others) {
    const all = () => [figure, ...others];
    document.querySelectorAll("#charts .tools, #hint").forEach((part) => { part.hidden = false; });
    figure.onRange = (range) => others.filter((one) => one.place.clientWidth).forEach((one) => {
      one.range = range;
      one.marked = figure.marked;
      one.draw();
    });
    const act = {
      whole: () => figure.show(null), in: () => figure.zoom(0.5), out: () => figure.zoom(2),
      back: () => figure.move(-0.25), on: () => figure.move(0.25),
      log: (button) => {
        figure.logarithmic = !figure.logarithmic;
        button.setAttribute("aria-pressed", String(figure.logarithmic));
        figure.draw();
      },
    };
    document.querySelectorAll("[data-do]").forEach((button) => {
      button.addEventListener("click", () => act[button.dataset.do](button));
    });
    document.addEventListener("click", (event) => {
      const link = event.target.closest ? event.target.closest("a[data-at]") : null;
      if (!link) return;
      event.preventDefault();
      figure.jump(Number(link.dataset.at));
      find("#charts").scrollIntoView({ block: "start" });
      find("#figure").focus({ preventScroll: true });
    });
    const redraw = () => all().filter((one) => one.place.data && one.place.clientWidth).forEach((one) => one.draw());
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    window.addEventListener("resize", later(redraw));
  }

  function later(work) {
    let timer = 0;
    return () => {
      clearTimeout(timer);
      timer = setTimeout(work, 150);
    };
  }

  // All other signals: each chart is drawn when it is opened.
  function moreCharts(run, figure, others, load) {
    const place = find("#more");
    find("#others").hidden = !run.charts.some((one) => one.more);
    for (const chart of run.charts.filter((one) => one.more)) {
      const details = document.createElement("details"), summary = document.createElement("summary");
      summary.textContent = `${chart.title}: ${chart.lines.length === 1 ? chart.lines[0].label : `${chart.lines.length} signals`}`;
      const inner = document.createElement("div");
      inner.className = "figure more";
      details.append(summary, inner);
      const show = async () => {
        if (!details.open) return;
        await load(chart);
        if (!inner.clientWidth) return;  // closed again, or within what is closed
        let drawn = others.find((one) => one.more === chart.id);
        if (!drawn) {
          drawn = new Figure(inner, [run], { more: chart.id });
          drawn.onRange = (range) => figure.show(range);
          others.push(drawn);
        }
        drawn.range = figure.range;
        drawn.draw();
      };
      details.addEventListener("toggle", show);
      find("#others").addEventListener("toggle", show);
      place.append(details);
    }
  }

  function startCharts(run, load) {
    const figure = new Figure(find("#figure"), [run]), others = [];
    if (!run.charts.some((chart) => !chart.more)) say("No chart: nothing was measured.");
    prepare(figure, others);
    moreCharts(run, figure, others, load);
    window.holdfast.figure = figure;
    return figure.draw().then(() => {
      document.body.dataset.drawn = String(Math.round(performance.now()));
      return { figure, others };
    });
  }

  // -- one run, live

  async function onePage() {
    const base = `/run/${encodeURIComponent(here.run)}`;
    const [whole] = await Promise.all([json(`${base}/data`), plotly()]);
    let run = new Run(whole);
    Object.entries(whole.sections).forEach(([name, html]) => put(find(`#${name}`), html));
    const loaded = new Set();
    const load = async (chart) => {
      if (loaded.has(chart.id)) return;
      loaded.add(chart.id);
      run.add((await json(`${base}/signals?chart=${encodeURIComponent(chart.id)}`)).signals);
    };
    const { figure, others } = await startCharts(run, load);
    const ask = verdicts(base);
    await ask();
    if (whole.live) follow(base, run, figure, others, ask);
  }

  function verdicts(base) {
    let asked = 0;
    return async (now = true) => {
      if (!now && performance.now() - asked < VERDICT_MS) return;
      asked = performance.now();
      put(find("#verdict"), await (await get(`${base}/verdict`)).text());
      asked = performance.now();
      document.body.dataset.judged = "yes";
    };
  }

  function follow(base, run, figure, others, ask) {
    find("#live").hidden = false;
    const look = async () => {
      if (document.hidden) return true;
      const delta = await json(`${base}/new?version=${run.version}`);
      if (delta.reset) return location.reload();
      if (delta.version !== run.version) {
        const most = run.update(delta);
        if (most > MOST_POINTS) return location.reload();
        Object.entries(delta.sections).forEach(([name, html]) => put(find(`#${name}`), html));
        [figure, ...others.filter((one) => one.place.clientWidth)].forEach((one) => one.draw());
        document.body.dataset.version = String(run.version);
      }
      if (!delta.live) {
        find("#live").hidden = true;
        await ask();
        return false;
      }
      ask(false).catch(() => {});
      return true;
    };
    const again = () => setTimeout(async () => {
      try {
        if (await look()) again();
        say("");
      } catch (error) {
        say("No answer from holdfast serve; trying again.");
        setTimeout(again, 3 * LOOK_MS);
      }
    }, LOOK_MS);
    again();
  }

  // -- two runs

  async function comparePage() {
    const [first, second] = await Promise.all([json(`/run/${encodeURIComponent(here.a)}/data`),
      json(`/run/${encodeURIComponent(here.b)}/data`), plotly()]);
    const runs = [new Run(first), new Run(second)];
    const figure = new Figure(find("#figure"), runs, { relative: true });
    window.holdfast.figure = figure;
    prepare(figure, []);
    await figure.draw();
    document.body.dataset.drawn = String(Math.round(performance.now()));
    put(find("#differences"), await (await get(`/differences${location.search}`)).text());
    document.body.dataset.judged = "yes";
  }

  // -- all runs

  async function runsPage() {
    const boxes = [...document.querySelectorAll("input[name=run]")];
    const button = find("#compare");
    const chosen = () => boxes.filter((box) => box.checked).map((box) => box.value);
    const mend = () => { button.disabled = chosen().length !== 2; };
    boxes.forEach((box) => box.addEventListener("change", mend));
    button.addEventListener("click", () => {
      const [a, b] = chosen();
      location.href = `/compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`;
    });
    mend();
    for (const row of document.querySelectorAll("tr[data-run]")) {
      try {
        const line = await json(`/run/${encodeURIComponent(row.dataset.run)}/line`);
        const badge = row.querySelector(".outcome");
        badge.textContent = line.outcome;
        badge.className = `outcome ${line.mood}`;
        row.querySelector(".line").textContent = line.text;
      } catch (error) {
        row.querySelector(".line").textContent = "cannot be read";
      }
    }
    document.body.dataset.judged = "yes";
  }

  // -- a report: everything is in the file

  async function inflated(id) {
    const bytes = Uint8Array.from(atob(find(id).textContent.trim()), (character) => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  async function reportPage() {
    const [library, whole] = await Promise.all([inflated("#plotly-packed"), inflated("#document-packed")]);
    const script = document.createElement("script");
    script.nonce = document.currentScript ? document.currentScript.nonce : find("script[nonce]").nonce;
    script.textContent = library;
    document.head.append(script);
    await startCharts(new Run(JSON.parse(whole)), async () => {});
  }

  const pages = { run: onePage, compare: comparePage, runs: runsPage, report: reportPage };
  const begin = pages[here.page];
  if (begin) {
    // A link keeps no token: whoever copies the address gives nothing away.
    if (location.search.includes("token=")) {
      const rest = new URLSearchParams(location.search);
      rest.delete("token");
      history.replaceState(null, "", location.pathname + (rest.size ? `?${rest}` : ""));
    }
    begin().catch((error) => say(`The charts cannot be shown: ${error.message}`));
  }
})();
