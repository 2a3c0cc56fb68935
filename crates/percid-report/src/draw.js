// Draws the plots, each from the description beneath it.
"use strict";
(() => {
  const charts = [...document.querySelectorAll("figure.chart")];
  const place = (chart) => chart.querySelector(".plot");

  // A legend of several lines would take its room from the marks: the plot grows by that much.
  function makeRoom(plot, description) {
    const legend = plot.querySelector(".legend .bg");
    const above = description.layout.margin.t;
    const more = legend ? Math.max(0, Math.ceil(legend.getBBox().height) - above) : 0;
    const height = description.layout.height + more;
    if (plot.offsetHeight === height) return undefined;
    plot.style.height = `${height}px`;
    return Plotly.relayout(plot, { height });
  }

  async function draw(chart) {
    const plot = place(chart);
    try {
      const description = JSON.parse(chart.querySelector("script").textContent);
      await Plotly.newPlot(plot, structuredClone(description));
      await makeRoom(plot, description);
      plot.on("plotly_afterplot", () => makeRoom(plot, description));
      chart.dataset.state = "drawn";
    } catch (error) {
      plot.textContent = `This plot could not be drawn: ${error}`;
      chart.dataset.state = "failed";
      console.error(error);
    }
  }

  // Paper is not as wide as the window, and plots do not follow by themselves.
  const PAPER = 680;
  addEventListener("beforeprint", () => {
    for (const chart of charts) Plotly.relayout(place(chart), { autosize: false, width: PAPER });
  });
  addEventListener("afterprint", () => {
    for (const chart of charts) Plotly.relayout(place(chart), { autosize: true, width: null });
  });

  // One after the other, so that the first is seen before the last is drawn.
  charts.reduce((before, chart) => before.then(() => draw(chart)), Promise.resolve());
})();
