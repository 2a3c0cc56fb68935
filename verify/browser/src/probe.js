// Looks at the page from inside: errors from the start, and when it is loaded what there is to see.
"use strict";
(() => {
  const errors = [];
  addEventListener("error", (event) => errors.push(`error: ${event.message}`));
  addEventListener("unhandledrejection", (event) => errors.push(`rejection: ${event.reason}`));
  addEventListener("securitypolicyviolation", (event) =>
    errors.push(`forbidden: ${event.effectiveDirective} ${event.blockedURI}`));
  for (const level of ["error", "warn"]) {
    const before = console[level];
    console[level] = (...words) => {
      errors.push(`console.${level}: ${words.join(" ")}`);
      before.apply(console, words);
    };
  }

  // Colours: [red, green, blue, alpha], 0 to 1.
  function colour(text) {
    const numbers = text.match(/^rgba?\(([^)]*)\)$/)?.[1].split(/[\s,/]+/).map(Number);
    if (!numbers) throw new Error(`unknown colour ${text}`);
    const [red, green, blue, alpha = 1] = numbers;
    return [red / 255, green / 255, blue / 255, alpha];
  }
  const over = (above, below) =>
    [0, 1, 2].map((at) => above[at] * above[3] + below[at] * (1 - above[3])).concat(1);
  // Relative luminance and contrast as WCAG 2.1 defines them.
  function luminance(of) {
    const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear(of[0]) + 0.7152 * linear(of[1]) + 0.0722 * linear(of[2]);
  }
  function contrast(one, other) {
    const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  }

  // Numbers within a picture lie on the bar that is drawn before them.
  function background(element) {
    if (element instanceof SVGTextElement && element.previousElementSibling instanceof SVGRectElement) {
      return over(colour(getComputedStyle(element.previousElementSibling).fill), [1, 1, 1, 1]);
    }
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      layers.push(colour(getComputedStyle(at).backgroundColor));
      if (layers.at(-1)[3] === 1) break;
    }
    return layers.reduceRight((below, above) => over(above, below), [1, 1, 1, 1]);
  }
  function ink(element) {
    const style = getComputedStyle(element);
    const of = colour(element instanceof SVGElement ? style.fill : style.color);
    for (let at = element; at; at = at.parentElement) of[3] *= Number(getComputedStyle(at).opacity);
    return of;
  }
  function readText(element) {
    const behind = background(element);
    return contrast(over(ink(element), behind), behind);
  }

  // ---- where texts are ----

  // Texts that are seen: the node, its element, and a rectangle for each of its lines.
  function* texts(root) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      if (!node.textContent.trim() || element.closest("script, style, noscript, title")) continue;
      if (getComputedStyle(element).visibility === "hidden") continue;
      const lines = rectangles(node, 0, node.length);
      if (lines.length) yield { element, node, lines, text: node.textContent.trim().slice(0, 60) };
    }
  }
  function rectangles(node, from, to) {
    const range = document.createRange();
    range.setStart(node, from);
    range.setEnd(node, to);
    return [...range.getClientRects()].filter((box) => box.width > 0 && box.height > 0);
  }

  // Rectangles of lines are as high as the line, not as its letters: some of that may be shared.
  const ASIDE = 1, ABOVE = 3;
  const touch = (one, other) =>
    Math.min(one.right, other.right) - Math.max(one.left, other.left) > ASIDE &&
    Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > ABOVE;

  // Pairs of texts that lie upon each other. Sorted from above, so that only neighbours are compared.
  function overlaps(words) {
    const lines = words.flatMap((word) => word.lines.map((box) => ({ box, word })));
    lines.sort((one, other) => one.box.top - other.box.top);
    const found = [];
    lines.forEach((one, at) => {
      for (let next = at + 1; next < lines.length && lines[next].box.top < one.box.bottom; next++) {
        const other = lines[next];
        if (one.word !== other.word && touch(one.box, other.box)) found.push([one.word.text, other.word.text]);
      }
    });
    return found;
  }

  const beyond = (box, frame) =>
    box.left < frame.left - 1 || box.right > frame.right + 1 ||
    box.top < frame.top - 1 || box.bottom > frame.bottom + 1;

  // Texts that reach beyond their cell, or beyond the edge of what may not be scrolled.
  function cut(words, frame) {
    return words.filter(({ element, lines }) => {
      const cell = element.closest("td, th");
      const room = cell ? cell.getBoundingClientRect() : frame;
      return lines.some((box) => beyond(box, room));
    }).map((word) => word.text);
  }

  // Words on more than one line. Lines may end behind hyphens and slashes, and anywhere in what was
  // typed.
  function broken(words) {
    const found = [];
    for (const { element, node } of words) {
      if (element.closest(".verdict, #about, pre")) continue;
      for (const word of node.textContent.matchAll(/[^\s/\-\u2010-\u2015]+/g)) {
        const tops = new Set(rectangles(node, word.index, word.index + word[0].length).map((box) => Math.round(box.top)));
        if (tops.size > 1) found.push(word[0]);
      }
    }
    return found;
  }

  // ---- charts ----

  function hasExtent(mark) {
    const box = mark.getBoundingClientRect();
    return mark.getTotalLength ? mark.getTotalLength() > 0 : box.width > 0 && box.height > 0;
  }
  // A path of a time line has as many marks as spans.
  const spans = (mark) => mark.closest(".spans") ? mark.getAttribute("d").split("M").length - 1 : 1;
  function marks(plot) {
    const seen = [...plot.querySelectorAll(".mark")].filter(hasExtent);
    return seen.reduce((sum, mark) => sum + spans(mark), 0);
  }

  function look(chart) {
    const plot = chart.querySelector(".plot");
    const words = [...texts(plot)];
    const frame = chart.closest("main").getBoundingClientRect();
    return {
      id: chart.id,
      marks: marks(plot),
      words: words.map((word) => word.text),
      cut: cut(words, frame),
      hover: plot.querySelector(".mark > title")?.textContent.replaceAll("\n", " | ") ?? "",
    };
  }

  // ---- the beginning, names, and lines upon each other ----

  // The heading, one sentence with a number, and the first chart.
  function opening() {
    const [heading, verdict, ...rest] = document.querySelector("main")?.children ?? [];
    const text = verdict?.matches(".verdict") ? verdict.textContent.trim() : "";
    const faults = [];
    if (!heading?.matches("h1")) faults.push("no heading");
    if (!/\d/.test(text)) faults.push(`no number: ${text}`);
    if (!text.endsWith(".")) faults.push(`no end: ${text}`);
    if (/[.!?]\s+\p{Lu}/u.test(text)) faults.push(`several sentences: ${text}`);
    if (verdict && verdict.getBoundingClientRect().height > 200) faults.push(`too long: ${text}`);
    const first = rest.find((part) => !part.matches(".notice"));
    if (document.querySelector("figure.chart") && !first?.matches("figure.chart")) faults.push("no chart");
    return faults;
  }

  function nameless() {
    const plots = [...document.querySelectorAll("figure.chart .plot")];
    const isNamed = (plot) =>
      plot.getAttribute("role") === "img" && plot.getAttribute("aria-label")?.length > 20 && plot.tabIndex === 0;
    return plots.filter((plot) => !isNamed(plot)).map((plot) => plot.closest("figure").id);
  }

  // A line is seen if a point at its middle or edge is not below another one.
  const SAMPLES = 100;
  function isSeen(path) {
    path.scrollIntoView({ block: "center" });
    const [group, matrix, length] = [path.closest("g"), path.getScreenCTM(), path.getTotalLength()];
    const edge = parseFloat(getComputedStyle(path).strokeWidth) / 2 - 0.6;
    for (let at = 0; at <= SAMPLES; at++) {
      const { x, y } = path.getPointAtLength(length * at / SAMPLES).matrixTransform(matrix);
      for (const aside of [0, -edge, edge]) {
        const top = document.elementFromPoint(x, y + aside);
        if (top && group.contains(top)) return true;
      }
    }
    return length === 0;
  }
  function covered() {
    const hidden = [...document.querySelectorAll("path.series")].filter((path) => !isSeen(path));
    scrollTo(0, 0);
    return hidden.map((path) => path.textContent);
  }

  // ---- zooming: all time lines of a page after each of its buttons ----

  const wait = () => new Promise((done) => setTimeout(done, 60));
  async function zooms() {
    const lines = [...document.querySelectorAll("svg.tracks")];
    const seen = () => ({
      views: lines.map((line) => line.dataset.view ?? ""),
      marks: lines.map((line) => [...line.querySelectorAll(".mark")].filter(hasExtent).length),
    });
    const found = lines.length ? [seen()] : [];
    const buttons = [...document.querySelectorAll(".zoom button")];
    for (const name of ["Zoom in", "Zoom in", "Later", "Earlier", "Zoom out", "Whole"]) {
      const button = buttons.find((button) => button.textContent === name);
      if (!button) break;
      button.click();
      await wait();
      found.push(seen());
    }
    return found;
  }

  async function report() {
    const height = document.documentElement.scrollHeight;
    for (const details of document.querySelectorAll("details")) details.open = true;
    const page = [...texts(document.body)];
    const read = page.map(({ element, text }) => [text, readText(element)]);
    read.sort((one, other) => one[1] - other[1]);
    // What is scrolled is not cut: it is looked at for itself.
    const scrolls = (box) => box.scrollWidth > box.clientWidth + 1;
    const outside = page.filter(({ element }) => !element.closest(".table, pre"));
    const found = {
      errors,
      dark: matchMedia("(prefers-color-scheme: dark)").matches,
      width: innerWidth,
      height,
      overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
      scrolled: [...document.querySelectorAll(".table, pre")].filter(scrolls)
        .map((box) => box.getAttribute("aria-label") ?? box.textContent.slice(0, 40)),
      opening: opening(),
      nameless: nameless(),
      covered: covered(),
      overlaps: overlaps(outside).concat(...[...document.querySelectorAll(".table")].map((table) => overlaps([...texts(table)]))),
      cut: cut(page.filter(({ element }) => element.closest("td, th")), null),
      broken: broken(page),
      charts: [...document.querySelectorAll("figure.chart")].map(look),
      texts: page.length,
      lowest_contrast: read[0]?.[1] ?? 0,
      faintest: read.slice(0, 20),
    };
    parent.postMessage({ ...found, zooms: await zooms() }, "*");
  }
  async function tell() {
    try {
      await report();
    } catch (error) {
      parent.postMessage({ probe: String(error.stack) }, "*");
    }
  }
  // What the policy has forbidden is told a moment later.
  addEventListener("load", () => setTimeout(tell, 100));
})();
