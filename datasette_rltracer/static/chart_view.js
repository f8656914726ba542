// Draws the spec of a chart into a box with Vega. Nothing here evaluates text as code, so `script-src 'self'` is enough.

const NARROW = 560; // pixels; below, small multiples stand under one another

async function vega() {
  if (!globalThis.rltracerVega) await import(document.querySelector("#rltracer-vega").href);
  return globalThis.rltracerVega;
}

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// The page decides, not the system: on a page that is always light the chart is light.
function themeOf(figure) {
  const [red, green, blue] = getComputedStyle(figure).color.match(/[\d.]+/g).map(Number);
  return 0.299 * red + 0.587 * green + 0.114 * blue > 128 ? "dark" : "light";
}

function fitted(spec, rows, width) {
  if (spec.facet) {
    spec.columns = width < NARROW ? 1 : Math.min(spec.columns, width < 1.5 * NARROW ? 2 : 4);
    const gap = spec.spacing.column;
    spec.spec.width = Math.max(120, Math.floor((width - 70 - (spec.columns - 1) * gap - Math.max(50, gap - 24)) / spec.columns));
  } else {
    spec.width = Math.max(260, Math.floor(width));
    if (width < NARROW) nameOnly(spec);
    spec.autosize = {type: "fit-x", contains: "padding"};
    const {axis, sort} = spec.encoding.y ?? {};
    if (axis?.labelLimit) axis.labelLimit = Math.min(axis.labelLimit, Math.floor(width / 3));
    if (spec.height.step) spec.height = spec.height.step * new Set(rows.map((row) => row[sort.field])).size;
  }
  return spec;
}

// The words beneath have the count of a line too; at its end it would take the room of the line.
function nameOnly(spec) {
  for (const change of spec.transform ?? []) if (change.as === "label") change.calculate = "datum.series";
}

// A line joins rows of one stretch, and is broken where steps between them were not read.
function datasets(content) {
  return {rows: content.rows.map((row, place) => ({...row, stretch: content.stretches[place] ?? 0})), gaps: content.gaps};
}

async function viewOf(spec, content, theme, options) {
  const {View, parse, compile, expressionInterpreter} = await vega();
  const {config} = content.themes[theme];
  Object.assign(spec, {config, datasets: datasets(content), description: content.description});
  const view = new View(parse(compile(spec).spec, null, {ast: true}), {
    expr: expressionInterpreter,
    logLevel: 1, // errors; a panel in which a series is missing has an empty layer, which Vega would warn of
    ...options,
  });
  await view.runAsync();
  return view;
}

async function draw(content, box, theme) {
  const spec = fitted(structuredClone(content.spec), content.rows, box.clientWidth);
  delete spec.title; // the page has it as a heading
  spec.background = "transparent";
  return viewOf(spec, content, theme, {container: box, hover: true, renderer: "svg", tooltip: showTip});
}

const tip = element("div", {className: "rltracer-tip", hidden: true});

function showTip(_, event, item, value) {
  if (!value || typeof value !== "object") {
    tip.hidden = true;
    return;
  }
  const list = element("dl");
  for (const [key, text] of Object.entries(value)) {
    list.append(element("dt", {textContent: key}), element("dd", {textContent: text}));
  }
  tip.replaceChildren(list);
  tip.hidden = false;
  if (!tip.isConnected) document.body.append(tip);
  const {width, height} = tip.getBoundingClientRect();
  const left = event.clientX + 14 + width > innerWidth ? event.clientX - 14 - width : event.clientX + 14;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - height - 4))}px`;
}

function hideTip() {
  tip.hidden = true;
}

globalThis.rltracerView = {draw, element, hideTip, themeOf, vega, viewOf};
