// Buttons with data-copy put their text on the clipboard.
const shown = 1500;

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  event.preventDefault();
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = "copied";
  } catch {
    // Without permission, the text is shown to be copied by hand.
    window.prompt("Copy this command:", button.dataset.copy);
    return;
  }
  setTimeout(() => { button.textContent = before; }, shown);
});
