// Before anything is painted: light or dark, so that nothing flashes.
(() => {
  const wanted = localStorage.getItem("deskhand.theme");
  const dark = wanted ? wanted === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
