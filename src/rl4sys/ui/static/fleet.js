// Keeps the pages of servers and learners up to date, and draws the last hour.
import "./copy.js";
import { Curves } from "./fleet_curves.js";
import { listen } from "./live.js";
import { morph } from "./morph.js";

const live = document.getElementById("live");
const lost = document.getElementById("connection");
const drawn = new Map();

async function draw() {
  for (const section of document.querySelectorAll("[data-server]")) {
    if (drawn.has(section)) continue;
    const curves = new Curves(section);
    drawn.set(section, curves);
    await curves.load();
  }
  for (const section of drawn.keys()) if (!section.isConnected) drawn.delete(section);
}

listen(
  live.dataset.live,
  {
    update: ({ body, samples }) => {
      morph(live, body);
      for (const [section, curves] of drawn) curves.add(samples[section.dataset.server]);
      draw();
    },
  },
  (isThere) => {
    if (lost.hidden !== isThere) lost.hidden = isThere;
  },
);
draw();
