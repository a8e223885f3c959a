/* The page names this text by its hash in its content security policy. */
document.addEventListener("click", event => {
  const button = event.target.closest("th button");
  if (!button) return;
  const head = button.parentNode, body = head.closest("table").tBodies[0];
  const place = head.cellIndex, down = head.getAttribute("aria-sort") === "ascending";
  const key = row => { const cell = row.cells[place]; return "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent };
  const order = (a, b) => a === b ? 0 : (a < b) === down ? 1 : -1;
  const rows = [...body.rows].map(row => [key(row), row]).sort((a, b) => order(a[0], b[0]));
  for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  body.append(...rows.map(pair => pair[1]));
});
