// A cell that is cut says all of its text when pointed at.

document.addEventListener("mouseover", (event) => {
  const cell = event.target.closest("table.rows-and-columns td");
  if (cell && cell.scrollWidth > cell.clientWidth) cell.title = cell.textContent.trim();
});
