// Learning curves of groups of runs, with bands; groups can be hidden.
import { Chart, shortNumber } from "./charts.js";

const charts = document.getElementById("charts");
const legend = document.getElementById("legend");
const shown = [];

function columns(panel) {
  const lines = [];
  const data = [panel.steps];
  for (const { group, middle, low, high, seeds } of panel.groups) {
    for (const values of seeds) {
      lines.push({ label: "", colour: group, width: 1, alpha: 0.45, group });
      data.push(values);
    }
    const first = data.length;
    data.push(high, low, middle);
    lines.push({ label: "", colour: group, hidden: true, group }, { label: "", colour: group, hidden: true, group });
    lines.push({ label: "", colour: group, width: 2, band: seeds.length || high.some((value, at) => value !== low[at]) ? [first, first + 1] : null, group });
  }
  return { lines, data };
}

function values(panel, at, groups) {
  if (at === null || at === undefined) return "";
  const each = panel.groups.filter(({ group }) => !hidden.has(group)).map(({ group, middle }) => `${groups[group].label} ${shortNumber(middle[at])}`);
  return `${panel.steps[at].toLocaleString("en")}: ${each.slice(0, 4).join(" · ")}`;
}

const hidden = new Set();

function apply() {
  for (const { chart } of shown) {
    if (!chart.plot) continue;
    chart.lines.forEach((line, at) => chart.plot.setSeries(at + 1, { show: !hidden.has(line.group) }, false));
    chart.plot.redraw(true);
  }
}

legend.addEventListener("click", (event) => {
  const key = event.target.closest("[data-group]");
  if (!key) return;
  const group = Number(key.dataset.group);
  if (!hidden.delete(group)) hidden.add(group);
  key.setAttribute("aria-pressed", String(!hidden.has(group)));
  apply();
});

const answer = await fetch(charts.dataset.curves);
if (answer.ok) {
  const { groups, panels } = await answer.json();
  panels.forEach((panel, number) => {
    const figure = charts.querySelector(`[data-panel="${number}"]`);
    const last = figure.querySelector(".last");
    const { lines, data } = columns(panel);
    const chart = new Chart(figure.querySelector(".plot"), {
      lines,
      height: 320,
      onCursor: (at) => { last.textContent = values(panel, at, groups); },
    });
    chart.show(data);
    shown.push({ chart, panel });
  });
}
document.documentElement.addEventListener("themechange", () => setTimeout(apply));
