"use strict";
(() => {
  // What tracks.rs knows too: parts of the drawing, kinds, patterns, letters of numbers.
  const PARTS = 10000, PATTERNS = 6;
  const LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
  const value = new Uint8Array(128);
  [...LETTERS].forEach((letter, at) => { value[letter.charCodeAt(0)] = at; });
  const SVG = "http://www.w3.org/2000/svg";

  // Rows of spans: beginnings and ends in nanoseconds, things, numbers.
  function decode(text, chart) {
    let at = 0;
    const next = () => {
      let number = 0, factor = 1;
      for (;;) {
        const letter = value[text.charCodeAt(at++)];
        number += (letter & 31) * factor;
        if (letter < 32) return number;
        factor *= 32;
      }
    };
    const rows = [];
    while (at < text.length) {
      const row = { from: [], to: [], thing: [], number: [] };
      let time = chart.from;
      while (text[at] !== " ") {
        row.from.push(time += next() * chart.step);
        row.to.push(time += next() * chart.step);
        row.thing.push(next());
        row.number.push(chart.number ? next() : 0);
      }
      at++;
      rows.push(row);
    }
    return rows;
  }

  let known = [];
  const charts = [...document.querySelectorAll("svg.tracks")].map((svg) => {
    const { from, to, step, row, number, things, rows, spans } = svg.dataset;
    if (things !== undefined) {
      known = things.split("\n").map((line) => ({ kind: +line[0], name: line.slice(2) }));
    }
    const chart = { svg, from: +from, to: +to, step: +step, row, number, things: known, names: rows.split("\n") };
    chart.plane = svg.closest(".plane");
    chart.grid = svg.parentNode;
    chart.spans = decode(spans, chart);
    return chart;
  });
  if (!charts.length) return;
  const whole = { from: Math.min(...charts.map((c) => c.from)), to: Math.max(...charts.map((c) => c.to)) };
  let view = { ...whole };

  // The place of the first span that ends after a time.
  function first(row, time) {
    let low = 0, high = row.to.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row.to[middle] > time) high = middle; else low = middle + 1;
    }
    return low;
  }

  // ---- drawing ----

  function paths(chart) {
    const columns = Math.max(200, Math.round(chart.grid.getBoundingClientRect().width)) || 1000;
    const scale = PARTS / (view.to - view.from), pixel = PARTS / columns;
    const found = new Map();
    chart.spans.forEach((row, nth) => {
      // Of what is within one column, the longest is shown.
      let column = -1, best = 0, held = 0;
      const put = (from, to, at) => {
        const key = row.thing[at] * 4096 + row.number[at] % 4096;
        const path = found.get(key) ?? { thing: row.thing[at], number: row.number[at], d: [] };
        found.set(key, path);
        path.d.push(`M${Math.round(from)} ${nth}h${Math.max(1, Math.round(to) - Math.round(from))}`);
      };
      const flush = () => {
        if (best > 0) put(column * pixel, (column + 1) * pixel, held);
        best = 0;
      };
      for (let at = first(row, view.from); at < row.from.length && row.from[at] < view.to; at++) {
        const from = Math.max(0, (row.from[at] - view.from) * scale);
        const to = Math.min(PARTS, (row.to[at] - view.from) * scale);
        if (to - from >= pixel) {
          flush();
          put(from, to, at);
          continue;
        }
        const place = Math.floor(from / pixel);
        if (place !== column) {
          flush();
          column = place;
        }
        if (to - from > best) [best, held] = [to - from, at];
      }
      flush();
    });
    return found;
  }

  function draw(chart) {
    const made = [];
    for (const { thing, number, d } of paths(chart).values()) {
      const { kind, name } = chart.things[thing];
      const path = document.createElementNS(SVG, "path");
      const pattern = chart.number ? number % PATTERNS : 0;
      path.setAttribute("class", `mark c${kind}`);
      path.setAttribute("stroke", pattern ? `url(#h${kind}-${pattern})` : "currentColor");
      path.setAttribute("d", d.join(""));
      const title = document.createElementNS(SVG, "title");
      title.textContent = chart.number ? `${name}\n${chart.number} ${number}` : name;
      path.append(title);
      made.push(path);
    }
    chart.svg.replaceChildren(...made);
    chart.svg.dataset.view = `${view.from} ${view.to}`;
    for (const [name, most] of [["narrow", 3], ["wide", 6]]) divide(chart, name, most);
  }

  const ms = (ns, decimals) => (ns / 1e6).toFixed(decimals);
  function divide(chart, name, most) {
    const span = view.to - view.from;
    const rough = span / most, unit = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((by) => by * unit).find((by) => by >= rough);
    const decimals = Math.max(0, 6 - Math.floor(Math.log10(step) + 1e-9));
    const below = chart.plane.querySelector(`.ticks.${name}`);
    below.replaceChildren();
    chart.grid.querySelectorAll(`line.${name}`).forEach((line) => line.remove());
    for (let nth = Math.ceil(view.from / step); nth * step <= view.to; nth++) {
      const place = `${(100 * (nth * step - view.from) / span).toFixed(2)}%`;
      const text = document.createElement("span");
      text.style.left = place;
      text.textContent = ms(nth * step, decimals);
      below.append(text);
      const line = document.createElementNS(SVG, "line");
      const at = { class: `grid ${name}`, x1: place, x2: place, y2: "100%" };
      Object.entries(at).forEach(([key, is]) => line.setAttribute(key, is));
      chart.grid.prepend(line);
    }
  }

  // ---- what is looked at, the same in all charts ----

  const least = Math.max(1, 20 * Math.min(...charts.map((chart) => chart.step)));
  let wanted = false;
  function look(from, to) {
    const length = Math.min(Math.max(to - from, least), whole.to - whole.from);
    from = Math.min(Math.max(from, whole.from), whole.to - length);
    view = { from, to: from + length };
    shown.textContent = `${ms(view.from, 3)} to ${ms(view.to, 3)} ms of ${ms(whole.to - whole.from, 3)} ms`;
    if (wanted) return;
    wanted = true;
    setTimeout(() => {
      wanted = false;
      charts.forEach(draw);
    });
  }
  function zoom(factor, around = (view.from + view.to) / 2) {
    look(around - (around - view.from) * factor, around + (view.to - around) * factor);
  }
  const move = (part) => {
    const by = (view.to - view.from) * part;
    look(view.from + by, view.to + by);
  };

  const bar = document.createElement("div");
  bar.className = "zoom";
  const shown = document.createElement("output");
  const ways = [
    ["Zoom in", "+", () => zoom(0.5)],
    ["Zoom out", "-", () => zoom(2)],
    ["Earlier", "ArrowLeft", () => move(-0.5)],
    ["Later", "ArrowRight", () => move(0.5)],
    ["Whole", "0", () => look(whole.from, whole.to)],
  ];
  for (const [name, , act] of ways) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.addEventListener("click", act);
    bar.append(button);
  }
  bar.append(shown);
  bar.addEventListener("keydown", (event) => {
    const way = ways.find(([, key]) => key === event.key);
    if (way) way[2]();
  });
  charts[0].svg.closest(".plot").before(bar);

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);

  for (const chart of charts) {
    const area = chart.grid;
    const time = (event) => {
      const box = area.getBoundingClientRect();
      return view.from + (view.to - view.from) * (event.clientX - box.left) / box.width;
    };
    let start = null;
    area.addEventListener("wheel", (event) => {
      // Without a key the page is scrolled.
      if (!event.ctrlKey && !event.shiftKey) return;
      event.preventDefault();
      zoom((event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8, time(event));
    }, { passive: false });
    area.addEventListener("pointerdown", (event) => { start = time(event); });
    area.addEventListener("pointerup", (event) => {
      const end = time(event);
      if (start !== null && Math.abs(end - start) > (view.to - view.from) / 100) {
        look(Math.min(start, end), Math.max(start, end));
      }
      start = null;
    });
    area.addEventListener("dblclick", () => look(whole.from, whole.to));
    area.addEventListener("pointerleave", () => { tip.hidden = true; });
    area.addEventListener("pointermove", (event) => {
      const box = area.getBoundingClientRect();
      const nth = Math.floor((event.clientY - box.top) / box.height * chart.names.length);
      const row = chart.spans[nth], now = time(event);
      const at = row ? first(row, now) : -1;
      tip.hidden = !row || !(row.from[at] <= now);
      if (tip.hidden) return;
      const { name } = chart.things[row.thing[at]];
      const number = chart.number ? `, ${chart.number} ${row.number[at]}` : "";
      tip.textContent = `${name}${number}, ${chart.row} ${chart.names[nth]}, ` +
        `${ms(row.from[at], 3)} to ${ms(row.to[at], 3)} ms`;
      tip.style.left = `${Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8)}px`;
      tip.style.top = `${event.clientY + 16}px`;
    });
  }
  look(whole.from, whole.to);
})();
