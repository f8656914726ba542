// Shows a chart in its frame, with its words and tools; charts.js says when. A figure says where its chart is: at
// `data-url`, or in a script element inside it.

const {draw, element, hideTip, themeOf, vega, viewOf} = globalThis.rltracerView;
const NOT_XML = /[^\t\n\r -\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu; // a file of SVG may not have them

function inside(figure) {
  const script = figure.querySelector('script[type="application/json"]');
  return script && JSON.parse(script.textContent);
}

async function load(figure) {
  const given = inside(figure);
  if (given) return given;
  const response = await fetch(figure.dataset.url, {headers: {accept: "application/json"}});
  return checked(await response.json(), response.status);
}

// What a chart is drawn from may be asked for before it is drawn.
function ask(figure) {
  figure.asked ??= load(figure);
  figure.asked.catch(() => {}); // it is told where the chart is drawn
  return figure.asked;
}

async function answered(figure) {
  const asked = ask(figure);
  figure.asked = null;
  return asked;
}

// The same as `load` without a promise, since printing waits for none.
function loadNow(figure) {
  const given = inside(figure);
  if (given) return given;
  const request = new XMLHttpRequest();
  request.open("GET", figure.dataset.url, false);
  request.setRequestHeader("accept", "application/json");
  request.send();
  return checked(JSON.parse(request.responseText), request.status);
}

function checked(content, status) {
  if (status !== 200) throw new Error(content.error ?? `the server answered ${status}`);
  return content;
}

// The rows of the index behind a mark, as filters of a table's own page; null where the mark stands for none.
function rowsUrl(content, row) {
  const link = content.links;
  if (!link || !row) return null;
  const filters = [...link.fixed];
  for (const [filter, field] of Object.entries(link.filters)) {
    if (row[field] === undefined) continue;
    filters.push(row[field] === null ? [`${filter}__isnull`, "1"] : [filter, String(row[field])]);
  }
  const chosen = link.choices && link.choices[row[link.choices.field]];
  if (chosen) filters.push(...Object.entries(chosen));
  return `${link.table}?${new URLSearchParams(filters)}`;
}

// A mark that is found by its nearness stands one level deeper.
const rowOf = (item) => item?.datum?.datum ?? item?.datum;

function follow(content, view) {
  view.addEventListener("click", (event, item) => {
    const url = rowsUrl(content, rowOf(item));
    if (!url || item.mark?.marktype === "text") return;
    if (event.ctrlKey || event.metaKey) open(url, "_blank", "noopener");
    else location.assign(url);
  });
}

function save(name, blob) {
  const url = URL.createObjectURL(blob);
  element("a", {href: url, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// A picture on its own has no page behind it, so it gets the theme's paper, a title, and beneath that what it rests on.
async function download(figure, content, kind) {
  const theme = themeOf(figure);
  const spec = structuredClone(content.spec);
  spec.background = content.themes[theme].background;
  const view = await viewOf(spec, content, theme, {renderer: "none"});
  const name = `${content.chart}.${kind}`;
  if (kind === "svg") {
    const drawn = (await view.toSVG()).replace(NOT_XML, "\uFFFD");
    save(name, new Blob([drawn], {type: "image/svg+xml"}));
  } else {
    const canvas = await view.toCanvas(2);
    save(name, await new Promise((resolve) => canvas.toBlob(resolve, "image/png")));
  }
  view.finalize();
}

function table(content) {
  const names = Object.keys(content.rows[0] ?? {});
  const head = element("tr", {}, ...names.map((name) => element("th", {textContent: name, scope: "col"})));
  const rows = content.rows.map((row) => {
    const cells = names.map((name) => element("td", {textContent: row[name] ?? "–", title: row[name] ?? ""}));
    const url = rowsUrl(content, row);
    if (url) cells.push(element("td", {}, element("a", {href: url, textContent: "rows"})));
    return element("tr", {}, ...cells);
  });
  return element("div", {}, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)));
}

function tools(figure, content) {
  const bar = element("div", {className: "tools"});
  if (content.sql_url) bar.append(element("a", {href: content.sql_url, textContent: "SQL", title: "the query and exactly the rows that are drawn"}));
  for (const kind of ["png", "svg"]) {
    bar.append(element("button", {type: "button", textContent: kind.toUpperCase(), onclick: () => download(figure, content, kind)}));
  }
  const rows = element("details", {}, element("summary", {textContent: `Table of ${content.rows.length.toLocaleString("en")} row${content.rows.length === 1 ? "" : "s"}`}));
  rows.addEventListener("toggle", () => rows.open && !rows.querySelector("div") && rows.append(table(content)));
  if (content.page_url && !document.body.matches(".rltracer-chart-page")) bar.append(element("a", {href: content.page_url, textContent: "This chart alone"}));
  bar.append(rows);
  return bar;
}

async function show(figure, whenAnswered) {
  figure.dataset.state = "loading";
  try {
    const [content] = await Promise.all([answered(figure), vega()]);
    whenAnswered?.();
    await present(figure, content);
  } catch (error) {
    fail(figure, error);
  }
}

// For a page that is about to be printed: this waits for nothing but promises that are kept as soon as it returns.
async function showNow(figure) {
  figure.dataset.state = "loading";
  try {
    await present(figure, loadNow(figure));
  } catch (error) {
    fail(figure, error);
  }
}

async function present(figure, content) {
  if (figure.dataset.state !== "loading") return; // it was printed while this waited
  figure.dataset.state = "drawing";
  figure.content = content;
  const box = figure.querySelector(".drawing");
  box.tabIndex = 0; // where there is little room it scrolls, and that has to be possible with keys
  if (content.rows.length) await redraw(figure, content, box);
  if (!figure.querySelector("figcaption")) figure.append(element("figcaption", {textContent: content.description}));
  figure.append(tools(figure, content));
  if (!content.rows.length) figure.querySelectorAll(".drawing, button").forEach((unneeded) => unneeded.remove());
  else keepFitting(figure, box);
  figure.dataset.state = "drawn";
}

function fail(figure, error) {
  if (figure.dataset.state === "drawn") return;
  const said = element("p", {role: "alert", textContent: `This chart cannot be drawn: ${error.message}`});
  figure.querySelector(".drawing").replaceChildren(said);
  figure.dataset.state = "failed";
}

async function redraw(figure, content, box) {
  figure.view?.finalize();
  box.replaceChildren();
  hideTip();
  figure.dataset.theme = themeOf(figure);
  figure.view = await draw(content, box, figure.dataset.theme);
  follow(content, figure.view);
}

function keepFitting(figure, box) {
  let drawn = box.clientWidth;
  let waiting;
  const again = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      drawn = box.clientWidth;
      redraw(figure, figure.content, box);
    }, 150);
  };
  new ResizeObserver(() => Math.abs(box.clientWidth - drawn) > 8 && again()).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
}

// The page around a chart has been brought up to date: so is what is drawn already, in its place.
async function update(figure, whenAnswered) {
  try {
    const content = await answered(figure);
    whenAnswered?.();
    if (!content.rows.length) return;
    figure.content = content;
    await redraw(figure, content, figure.querySelector(".drawing"));
    figure.querySelector("figcaption").textContent = content.description;
    figure.querySelector(".tools").replaceWith(tools(figure, content));
  } catch {
    // what was drawn before stays
  }
}

globalThis.rltracerChart = {ask, show, showNow, update};
