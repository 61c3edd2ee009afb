// A sweep or study: loaded again when one of its runs has changed.
import "./copy.js";
import { listen } from "./live.js";
import { morph } from "./morph.js";

const body = document.getElementById("body");
const shortest = 1000;
let waiting = false;

listen(body.dataset.live, {
  changed: () => {
    if (waiting) return;
    waiting = true;
    setTimeout(async () => {
      waiting = false;
      const url = new URL(location.href);
      url.searchParams.set("fragment", "body");
      const answer = await fetch(url);
      if (answer.ok) morph(body, await answer.text());
    }, shortest);
  },
});
