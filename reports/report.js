// Sorts a table by the column whose header is clicked: names from A to Z, numbers by their exact
// value from the highest; again to turn it round.
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const headers = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const key = (row, column) => {
    const cell = row.cells[column];
    const text = cell.textContent;
    const number = cell.dataset.value !== undefined ? Number(cell.dataset.value)
        : text.trim() !== "" && !Number.isNaN(Number(text)) ? Number(text) : null;
    return { number, text };
  };
  const compare = (a, b) => {
    if (a.number !== null && b.number !== null) return a.number - b.number;
    if (a.number !== null || b.number !== null) return a.number !== null ? -1 : 1;
    return a.text.localeCompare(b.text);
  };
  headers.forEach((header, column) => {
    header.tabIndex = 0;
    const sort = () => {
      table.classList.add("sorted");
      const rows = [...body.rows].map((row) => ({ row, key: key(row, column) }));
      const numbers = header.classList.contains("number");
      const before = header.getAttribute("aria-sort") ?? (numbers ? "ascending" : "descending");
      const down = before === "ascending";
      headers.forEach((other) => other.removeAttribute("aria-sort"));
      header.setAttribute("aria-sort", down ? "descending" : "ascending");
      rows.sort((a, b) => (down ? -1 : 1) * compare(a.key, b.key));
      body.append(...rows.map((item) => item.row));
    };
    header.addEventListener("click", sort);
    header.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
  });
}
