// Runs before the page is painted, so that a chosen theme does not flash.
(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try {
    chosen = localStorage.getItem("theme");
  } catch {
    // Storage may be off; the theme of the system is used.
  }
  if (chosen) root.dataset.theme = chosen;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const announce = () => root.dispatchEvent(new Event("themechange"));
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const label = () => {
      button.textContent = isDark() ? "Light" : "Dark";
    };
    label();
    dark.addEventListener("change", () => { label(); announce(); });
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try {
        localStorage.setItem("theme", root.dataset.theme);
      } catch {
        // It lasts until the page is left.
      }
      label();
      announce();
    });
  });
})();
