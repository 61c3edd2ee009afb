// The page of one run: its curves grow while it trains, and its head follows.
import { Chart, shortNumber } from "./charts.js";
import "./copy.js";
import { listen } from "./live.js";
import { morph } from "./morph.js";

const head = document.getElementById("head");
const charts = document.getElementById("charts");
const figures = new Map();

for (const figure of charts ? charts.querySelectorAll("[data-metric]") : []) {
  const metric = figure.dataset.metric;
  const last = figure.querySelector(".last");
  const place = figure.querySelector(".plot");
  const entry = { steps: [], values: [], place, last };
  entry.chart = new Chart(place, {
    lines: [{ label: metric, colour: 0 }],
    onCursor: (at) => {
      last.textContent = at === null || at === undefined ? latest(entry) : `${shortNumber(entry.values[at])} at ${entry.steps[at].toLocaleString("en")}`;
    },
  });
  figures.set(metric, entry);
}

function latest(entry) {
  return entry.values.length ? shortNumber(entry.values[entry.values.length - 1]) : "";
}

function show(metric, entry) {
  // A single point has no line.
  entry.chart.lines[0].points = entry.values.length < 40;
  entry.chart.show([entry.steps, entry.values]);
  entry.last.textContent = latest(entry);
  const count = entry.values.length;
  const end = count ? `, last ${latest(entry)} at step ${entry.steps[count - 1].toLocaleString("en")}` : "";
  entry.place.setAttribute("aria-label", `Curve of ${metric} over environment steps: ${count} points${end}`);
}

async function refreshHead() {
  const answer = await fetch(`${head.dataset.address}?fragment=head`);
  if (answer.ok) morph(head, await answer.text());
}

const metrics = [...figures.keys()].map((metric) => `metric=${encodeURIComponent(metric)}`).join("&");
const stream = listen(`${head.dataset.address.replace("/run/", "/run-live/")}?${metrics}`, {
  curves: (found) => {
    for (const [metric, [steps, values]] of Object.entries(found)) {
      const entry = figures.get(metric);
      Object.assign(entry, { steps, values });
      show(metric, entry);
    }
  },
  points: (found) => {
    for (const [metric, [steps, values]] of Object.entries(found)) {
      const entry = figures.get(metric);
      entry.steps.push(...steps);
      entry.values.push(...values);
      show(metric, entry);
    }
  },
  status: refreshHead,
  gone: (sentence) => {
    const notice = document.createElement("p");
    notice.className = "notice bad";
    notice.setAttribute("role", "alert");
    notice.textContent = sentence;
    document.getElementById("gone").replaceChildren(notice);
    stream.close();
  },
});

const onlyGiven = document.getElementById("only-given");
onlyGiven?.addEventListener("change", () => document.querySelector("table.settings").classList.toggle("hide-defaults", onlyGiven.checked));
