// Filters while conditions are typed, and follows runs that train, without loading the page again.
import "./copy.js";
import { listen } from "./live.js";
import { morph } from "./morph.js";

const form = document.getElementById("filter");
const table = document.getElementById("table");
const pause = 150;
const shortest = 1000;
let timer = 0;
let latest = 0;
let waiting = false;

async function load(url) {
  const mine = ++latest;
  const wanted = new URL(url, location.href);
  wanted.searchParams.set("fragment", "table");
  const answer = await fetch(wanted);
  const text = await answer.text();
  if (mine !== latest) return;
  morph(table, text);
  count();
}

function boxes() {
  return [...table.querySelectorAll("input[name=run]")];
}

function count() {
  const button = document.getElementById("compare");
  const all = document.getElementById("choose-all");
  if (!button || !all) return;
  const chosen = boxes().filter((box) => box.checked).length;
  button.disabled = !chosen;
  button.textContent = chosen ? `Compare ${chosen} chosen` : "Compare chosen";
  all.checked = chosen > 0 && chosen === boxes().length;
  all.indeterminate = chosen > 0 && chosen < boxes().length;
}

function filter() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    const url = `${form.action}?${new URLSearchParams(new FormData(form))}`;
    history.replaceState(null, "", url);
    load(url);
  }, pause);
}

// Settings and metrics are read from the runs themselves: that waits for Enter, and is not repeated by itself.
function readsRuns() {
  return /(^|\s)['"]?\w+[./][\w./-]*\s*[<>=!]/.test(document.getElementById("conditions").value);
}

form.addEventListener("input", () => { if (!readsRuns()) filter(); });
form.addEventListener("submit", (event) => { event.preventDefault(); filter(); });
table.addEventListener("change", (event) => {
  if (event.target.id === "choose-all") for (const box of boxes()) box.checked = event.target.checked;
  count();
});
count();

listen(() => `/runs/live${location.search}`, {
  changed: () => {
    if (waiting || readsRuns()) return;
    waiting = true;
    setTimeout(() => { waiting = false; load(location.href); }, shortest);
  },
});
