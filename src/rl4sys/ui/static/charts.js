// Charts of curves over steps, in the colours of the theme.
const palette = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6", "--line-7", "--line-8"];
const drawn = new Set();

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function lineColour(number) {
  return colour(palette[number % palette.length]);
}

export function shortNumber(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return `${+(value / 1e9).toPrecision(4)}G`;
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(4)}M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(4)}k`;
  if (size !== 0 && size < 1e-3) return value.toExponential(2);
  return `${+value.toPrecision(5)}`;
}

function resolved(text) {
  // light-dark() is resolved by the browser, not by a canvas.
  const probe = document.createElement("span");
  probe.style.color = text;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function faded(text, share) {
  const parts = resolved(text).match(/[\d.]+/g);
  return `rgba(${parts[0]}, ${parts[1]}, ${parts[2]}, ${share})`;
}

// lines: [{label, colour: number, width, band: [low, high] indexes}], data: columns of uPlot.
export class Chart {
  constructor(place, { lines, height = 180, unit = "steps", onCursor = null }) {
    Object.assign(this, { place, lines, height, unit, onCursor });
    this.data = null;
    this.plot = null;
    new ResizeObserver(() => this.resize()).observe(place);
    drawn.add(this);
  }

  show(data) {
    this.data = data;
    if (this.plot) this.plot.setData(data);
    else this.draw();
  }

  resize() {
    if (this.plot && this.place.clientWidth) this.plot.setSize({ width: this.place.clientWidth, height: this.height });
  }

  redraw() {
    if (!this.plot) return;
    this.plot.destroy();
    this.plot = null;
    this.draw();
  }

  draw() {
    const width = this.place.clientWidth;
    if (!width || !this.data) return;
    const faint = resolved(colour("--faint"));
    const grid = { stroke: resolved(colour("--line")), width: 1 };
    const axis = { stroke: faint, grid, ticks: { show: false }, font: "11px system-ui", values: (_, all) => all.map(shortNumber) };
    const series = this.lines.map((line) => ({
      label: line.label,
      stroke: line.hidden ? "transparent" : faded(lineColour(line.colour), line.alpha ?? 1),
      width: line.hidden ? 0 : line.width ?? 1.5,
      points: { show: line.points ?? false, size: 5 },
      spanGaps: true,
      value: (_, value) => shortNumber(value),
    }));
    const bands = this.lines.flatMap((line) => (line.band ? [{ series: line.band, fill: faded(lineColour(line.colour), 0.18) }] : []));
    this.plot = new window.uPlot(
      {
        width,
        height: this.height,
        scales: { x: { time: false } },
        axes: [{ ...axis, space: 70, size: 26 }, { ...axis, size: 52 }],
        padding: [10, 12, 0, 0],
        series: [{ label: this.unit, value: (_, value) => (value === null ? "–" : value.toLocaleString("en")) }, ...series],
        bands,
        legend: { show: false },
        cursor: { drag: { x: true, y: false }, points: { size: 6 } },
        hooks: { setCursor: [(plot) => this.onCursor?.(plot.cursor.idx)] },
      },
      this.data,
      this.place,
    );
  }
}

document.documentElement.addEventListener("themechange", () => drawn.forEach((chart) => chart.redraw()));
