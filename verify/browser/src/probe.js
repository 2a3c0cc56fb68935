// Looks at the page from inside: errors from the start, and after drawing what there is to see.
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

  function background(element) {
    const box = element.closest(".hovertext")?.querySelector("path");
    if (box) return over(colour(getComputedStyle(box).fill), background(box.ownerSVGElement));
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

  // Elements that have text of their own and are seen.
  function* texts(root) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const parent = node.parentElement;
      if (!node.textContent.trim() || parent.closest("script, style, noscript")) continue;
      const box = parent.getBoundingClientRect();
      if (box.width > 0 && box.height > 0) yield parent;
    }
  }

  const rectangle = (element) => element.getBoundingClientRect();
  const within = (one, other) =>
    Math.min(one.right, other.right) - Math.max(one.left, other.left) > 1 &&
    Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 1;

  function overlaps(words) {
    const found = [];
    words.forEach((one, at) => {
      for (const other of words.slice(at + 1)) {
        if (within(rectangle(one), rectangle(other))) found.push([one.textContent, other.textContent]);
      }
    });
    return found;
  }
  function cut(words, plot) {
    const frame = rectangle(plot);
    const beyond = (box) =>
      box.left < frame.left - 1 || box.right > frame.right + 1 ||
      box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
    return words.filter((word) => beyond(rectangle(word))).map((word) => word.textContent);
  }

  function marks(plot) {
    const area = (path) => path.getBBox().width > 0 && path.getBBox().height > 0;
    const length = (path) => path.getTotalLength() > 0;
    const count = (selector, has) => [...plot.querySelectorAll(selector)].filter(has).length;
    return count(".barlayer .point > path", area) + count(".scatterlayer path.js-line", length) +
      count(".scatterlayer path.point", area);
  }

  // Height of the lowest bar, in CSS pixels.
  function lowest(plot) {
    const heights = [...plot.querySelectorAll(".barlayer .point > path")].map((bar) => rectangle(bar).height);
    return heights.length ? Math.min(...heights) : null;
  }

  const contrasts = [];
  function look(chart) {
    const plot = chart.querySelector(".plot");
    const words = [...plot.querySelectorAll("text")].filter((word) => rectangle(word).width > 0);
    const seen = {
      id: chart.id,
      state: chart.dataset.state ?? null,
      marks: marks(plot),
      lowest_bar: lowest(plot),
      overlaps: overlaps(words),
      cut: cut(words, plot),
      words: words.map((word) => word.textContent),
      hover: "",
    };
    if (seen.marks > 0) {
      Plotly.Fx.hover(plot, [{ curveNumber: 0, pointNumber: 0 }]);
      const lines = [...plot.querySelectorAll(".hovertext text")].filter((line) => line.textContent);
      for (const line of lines) contrasts.push([line.textContent, readText(line)]);
      const tspans = lines.map((line) => [...line.querySelectorAll("tspan.line")]);
      seen.hover = lines.map((line, at) =>
        tspans[at].length ? tspans[at].map((part) => part.textContent).join(" | ") : line.textContent).join(" || ");
      Plotly.Fx.unhover(plot);
    }
    return seen;
  }

  const pause = () => new Promise((done) => setTimeout(done, 50));

  async function report() {
    const charts = [...document.querySelectorAll("figure.chart")];
    for (let turn = 0; turn < 400 && charts.some((chart) => !chart.dataset.state); turn++) await pause();
    for (const details of document.querySelectorAll("details")) details.open = true;
    for (const text of texts(document.body)) contrasts.push([text.textContent.trim().slice(0, 60), readText(text)]);
    const seen = charts.map(look);
    const first = charts.find((chart) => chart.dataset.state === "drawn")?.querySelector(".plot");
    const image = first ? await Plotly.toImage(first, { format: "svg" }) : "";
    contrasts.sort((one, other) => one[1] - other[1]);
    parent.postMessage({
      errors,
      dark: matchMedia("(prefers-color-scheme: dark)").matches,
      width: innerWidth,
      overflow: document.documentElement.scrollWidth - innerWidth,
      charts: seen,
      texts: contrasts.length,
      lowest_contrast: contrasts[0]?.[1] ?? 0,
      faintest: contrasts.slice(0, 20),
      image: image.slice(0, 40),
    }, "*");
  }
  addEventListener("load", () => report().catch((error) => parent.postMessage({ probe: String(error.stack) }, "*")));
})();
