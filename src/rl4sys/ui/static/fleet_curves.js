// The curves of one server or learner over the last hour: at most one point every two seconds, so memory stays flat.
const seconds = 3600;
const height = 130;
const colours = ["#2f6fdd", "#d9822b", "#1e9e6a", "#b04fc4", "#c7433f", "#2aa3b8", "#8a8f1f", "#7a6ff0"];
const panels = [
  { title: "Connected clients", names: () => ["clients"], isWhole: true },
  { title: "Steps learned per second", of: "steps_per_second" },
  { title: "Segments that wait", of: "queued", isWhole: true },
  { title: "Mean return", of: "return" },
];

export class Curves {
  constructor(section) {
    this.place = section.querySelector(".curves");
    this.server = section.dataset.server;
    this.learner = section.dataset.learner;
    this.times = [];
    this.series = new Map();
    this.learners = [];
    this.plots = [];
    document.documentElement.addEventListener("themechange", () => this.build());
    new ResizeObserver(() => this.resize()).observe(this.place);
  }

  async load() {
    const answer = await fetch(`/fleet/history.json?server=${encodeURIComponent(this.server)}`);
    if (!answer.ok) return;
    const found = await answer.json();
    this.times = found.times;
    this.series = new Map(Object.entries(found.series));
    this.learners = found.learners;
    this.build();
  }

  add(sample) {
    if (!sample || !sample.times.length) return;
    const newest = sample.times[0];
    if (!this.times.length || newest <= this.times[this.times.length - 1]) return;
    this.times.push(newest);
    for (const [name, [value]] of Object.entries(sample.series)) {
      if (!this.series.has(name)) this.series.set(name, new Array(this.times.length - 1).fill(null));
      this.series.get(name).push(value);
    }
    let old = 0;
    while (this.times[old] < newest - seconds) old += 1;
    if (old) {
      this.times.splice(0, old);
      for (const values of this.series.values()) values.splice(0, old);
    }
    if (sample.learners.length !== this.learners.length) {
      this.learners = sample.learners;
      this.build();
    } else {
      for (const { plot, names } of this.plots) plot.setData(this.data(names));
    }
  }

  names(panel) {
    if (panel.names) return this.learner ? [] : panel.names();
    const shown = this.learner ? this.learners.filter((name) => name === this.learner) : this.learners;
    return shown.map((name) => `${name}/${panel.of}`);
  }

  data(names) {
    return [this.times, ...names.map((name) => this.series.get(name) ?? new Array(this.times.length).fill(null))];
  }

  build() {
    for (const { plot } of this.plots) plot.destroy();
    this.place.replaceChildren();
    this.plots = [];
    if (!this.learner && this.learners.length > 1) this.place.append(this.legend());
    for (const panel of panels) {
      const names = this.names(panel);
      if (names.length) this.plots.push(this.panel(panel, names));
    }
  }

  legend() {
    const list = document.createElement("ul");
    list.className = "curve-names";
    this.learners.forEach((name, number) => {
      const entry = document.createElement("li");
      const swatch = document.createElement("span");
      swatch.className = "swatch";
      swatch.style.background = colours[number % colours.length];
      entry.append(swatch, name);
      list.append(entry);
    });
    return list;
  }

  panel(panel, names) {
    const box = document.createElement("div");
    box.className = "curve";
    const title = document.createElement("h4");
    title.textContent = panel.title;
    const place = document.createElement("div");
    place.className = "hour";
    place.setAttribute("role", "img");
    place.setAttribute("aria-label", `${panel.title} over the last hour; the tables above have the present values`);
    box.append(title, place);
    this.place.append(box);
    // Computed colours: a canvas does not know light-dark().
    const style = getComputedStyle(place);
    const axis = {
      stroke: style.color, grid: { stroke: style.borderTopColor, width: 1 }, ticks: { show: false }, font: "11px sans-serif",
    };
    const plot = new uPlot(
      {
        width: place.clientWidth || 300,
        height,
        legend: { show: false },
        cursor: { show: false },
        scales: { x: { time: true }, y: { range: (_, low, high) => range(low, high, panel) } },
        axes: [{ ...axis, space: 70, size: 26, values: (_, times) => clocks(times) }, { ...axis, size: 52, space: 32, incrs: panel.isWhole ? whole : undefined }],
        series: [{}, ...names.map((name) => ({ stroke: this.colour(name), width: 1.5, points: { show: false } }))],
      },
      this.data(names),
      place,
    );
    return { plot, names, place };
  }

  colour(name) {
    const learner = this.learners.findIndex((each) => name.startsWith(`${each}/`));
    return colours[Math.max(0, learner) % colours.length];
  }

  resize() {
    for (const { plot, place } of this.plots) {
      if (place.clientWidth && place.clientWidth !== plot.width) plot.setSize({ width: place.clientWidth, height });
    }
  }
}

function clocks(times) {
  const isShort = times.length > 1 && times[1] - times[0] < 60;
  const form = { hour: "2-digit", minute: "2-digit", second: isShort ? "2-digit" : undefined, hourCycle: "h23" };
  return times.map((time) => new Date(1000 * time).toLocaleTimeString("en-GB", form));
}

const whole = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 1e7, 1e8, 1e9];

function range(low, high, panel) {
  if (low === null || high === null) return [0, 1];
  if (panel.of === "return") {
    const room = Math.max((high - low) * 0.1, Math.abs(high) * 0.02, 0.5);
    return [low - room, high + room];
  }
  return [0, Math.max(1, high * 1.1)];
}
