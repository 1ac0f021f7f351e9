"use strict";
(() => {
  const form = document.getElementById("filters"), body = document.querySelector("tbody");
  const rows = [...body.rows], chosen = (id) => document.getElementById(id)?.value ?? "";
  const update = () => {
    const words = chosen("find").toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const fits = ["state", "model", "combination", "algorithm"].every((id) => !chosen(id) || row.dataset[id] === chosen(id));
      const text = row.dataset.text.toLowerCase();
      row.hidden = !(fits && words.every((word) => text.includes(word)));
    }
    document.getElementById("shown").value = `${rows.filter((row) => !row.hidden).length} of ${rows.length} problems`;
  };
  const sort = () => {
    const key = chosen("order") === "low" ? "low" : "place";
    const number = (row, name) => Number(row.dataset[name]);
    body.append(...[...rows].sort((a, b) => number(a, key) - number(b, key) || number(a, "place") - number(b, "place")));
  };
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  document.getElementById("order").addEventListener("change", sort);
  form.hidden = false;
  update();
})();
