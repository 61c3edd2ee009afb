// Changes the elements of a page into those of new HTML, keeping what is equal: focus, selection and scrolling stay.
// Children with data-key are found again wherever they are; what has data-keep is left alone.

export function morph(old, html) {
  const fresh = document.createElement("template");
  fresh.innerHTML = html;
  changeChildren(old, fresh.content);
}

function changeChildren(old, fresh) {
  const keyed = new Map();
  for (const child of old.children) if (child.dataset.key) keyed.set(child.dataset.key, child);
  let place = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const key = wanted.dataset?.key;
    const found = key ? keyed.get(key) : isLike(place, wanted) ? place : null;
    if (!found || found.nodeName !== wanted.nodeName) {
      old.insertBefore(wanted, place);
      continue;
    }
    if (key) keyed.delete(key);
    if (found === place) place = place.nextSibling;
    else old.insertBefore(found, place);
    change(found, wanted);
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function isLike(node, wanted) {
  return node && node.nodeName === wanted.nodeName && !node.dataset?.key;
}

function change(old, wanted) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== wanted.data) old.data = wanted.data;
    return;
  }
  if (old.hasAttribute("data-keep")) return;
  for (const { name, value } of wanted.attributes) {
    if (old.getAttribute(name) !== value && !isChosen(old, name)) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    if (!wanted.hasAttribute(name) && !isChosen(old, name)) old.removeAttribute(name);
  }
  changeChildren(old, wanted);
}

// What the reader opened or closed stays so.
function isChosen(element, attribute) {
  return element.nodeName === "DETAILS" && attribute === "open";
}
