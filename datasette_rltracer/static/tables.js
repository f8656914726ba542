// What of a table is folded away is opened by the line that counts it; a cell that is cut says all of its text when
// pointed at.

const DESCRIBED = 8; // columns of which the description is in sight: those that say what a row is, and how it went
const shown = [...document.querySelectorAll("th[data-column]")].map((head) => head.dataset.column);
const place = (name) => shown.indexOf(name.textContent) + 1 || shown.length + 1;

for (const list of document.querySelectorAll("dl.column-descriptions")) {
  // Datasette 1.0 lists them by name, and not as they stand in the table.
  const names = [...list.querySelectorAll("dt")].sort((one, other) => place(one) - place(other));
  const [more, count, rest] = [document.createElement("details"), document.createElement("summary"), list.cloneNode()];
  names.forEach((name, index) => (index < DESCRIBED ? list : rest).append(name, name.nextElementSibling));
  for (const one of [list, rest]) one.classList.add("begun");
  if (names.length <= DESCRIBED) continue;
  more.className = "more-columns";
  count.textContent = `${names.length - DESCRIBED} more column${names.length - DESCRIBED === 1 ? "" : "s"}`;
  more.append(count, rest);
  list.after(more);
}

document.addEventListener("mouseover", (event) => {
  const cell = event.target.closest("table.rows-and-columns td");
  if (cell && cell.scrollWidth > cell.clientWidth) cell.title = cell.textContent.trim();
});
