// What JavaScript adds to the reading pages: keys, copying, remembered folds. Each page works without it.

const page = document.querySelector(".reading");
const FOLDS = "rltracer-folds";
const KEYS = {
  j: "next message, or next row of a list",
  k: "previous message, or previous row",
  n: "next trajectory, after the last of a group the next group; side by side, the next on the right",
  p: "previous trajectory, before the first of a group the previous group",
  "[": "previous prompt group or step",
  "]": "next prompt group or step",
  g: "the prompt group; from there, the step",
  c: "compare with the best; from a prompt or a group, its best with its worst",
  e: "the last message",
  r: "fold or unfold all reasoning",
  t: "token lens",
  "/": "find",
  ".": "copy the link to this message",
  "?": "this list",
};

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// What is said goes to a live region, so that it is heard as well as seen.
const said = element("p", {className: "said", role: "status"});
let silence;
function say(words) {
  said.textContent = words;
  clearTimeout(silence);
  silence = setTimeout(() => said.replaceChildren(), 4000);
}

// Messages and rows: j and k

const stops = () => [...page.querySelectorAll(".message, .call > .result[id], [data-row]")];

function current() {
  const focused = document.activeElement?.closest?.(".message, .call > .result[id], [data-row]");
  if (focused && page.contains(focused)) return focused;
  return stops().find((stop) => stop.getBoundingClientRect().bottom > 8) ?? null;
}

function move(by) {
  const all = stops();
  const here = document.activeElement?.closest?.(".message, .call > .result[id], [data-row]");
  const at = all.indexOf(here);
  if (at >= 0 && !all[at + by]) {
    const beyond = page.querySelector(`.pager a[rel="${by > 0 ? "next" : "prev"}"]`);
    if (beyond) return beyond.click();
  }
  const first = Math.max(all.indexOf(current()), 0);
  const target = all[at >= 0 ? Math.min(Math.max(at + by, 0), all.length - 1) : first];
  if (!target) return;
  const focus = target.matches("[data-row]") ? target.querySelector("a") : target;
  focus.focus({preventScroll: true});
  target.scrollIntoView({block: target.matches("[data-row]") ? "nearest" : "start"});
}

// Folds: what a person has opened of a kind is open on the next page too

function remembered() {
  try {
    return JSON.parse(localStorage.getItem(FOLDS)) ?? {};
  } catch {
    return {}; // storage may be forbidden, or hold something else
  }
}

function remember(kind, open) {
  try {
    localStorage.setItem(FOLDS, JSON.stringify({...remembered(), [kind]: open}));
  } catch {
    // then it is not remembered
  }
}

function restoreFolds() {
  const folds = remembered();
  const target = location.hash && document.getElementById(location.hash.slice(1));
  let changed = false;
  for (const details of page.querySelectorAll("details[data-fold]")) {
    if (details.querySelector("mark")) continue; // what was looked for stands in it
    const open = folds[details.dataset.fold];
    if (typeof open === "boolean" && open !== details.open) {
      details.open = open;
      changed = true;
    }
  }
  if (changed && target) target.scrollIntoView();
}

function foldReasoning() {
  const all = [...page.querySelectorAll('details[data-fold="reasoning"]')];
  if (!all.length) return say("no reasoning on this page");
  const here = current();
  const open = !all.some((details) => details.open);
  for (const details of all) details.open = open;
  remember("reasoning", open);
  here?.scrollIntoView();
  say(open ? `unfolded ${all.length} of ${all.length}` : `folded ${all.length}`);
}

// Copying: the recorded text, with the real characters in place of their symbols

function recorded(node) {
  const copy = node.cloneNode(true);
  for (const mark of copy.querySelectorAll(".invisible")) {
    const code = /^U\+([0-9A-F]{4,6})/.exec(mark.title)?.[1];
    if (code) mark.replaceWith(String.fromCodePoint(parseInt(code, 16)));
  }
  for (const button of copy.querySelectorAll("button")) button.remove();
  return copy.textContent;
}

async function copyText(text, words) {
  try {
    await navigator.clipboard.writeText(text);
    say(words);
  } catch {
    say("the browser did not allow copying");
  }
}

function copyNode(node) {
  const text = recorded(node);
  const shown = [...text].length;
  const whole = Number(node.dataset.characters ?? shown);
  const kind = node.dataset.copy;
  copyText(text, shown < whole ? `copied ${shown.toLocaleString("en")} of ${whole.toLocaleString("en")} characters` : `copied the ${kind}`);
}

async function copyFrom(link) {
  const response = await fetch(link.href);
  if (!response.ok) return say("the record cannot be read");
  copyText(await response.text(), "copied the raw record");
}

function copyButton(label, act) {
  const button = element("button", {type: "button", className: "copy", textContent: "copy"});
  button.setAttribute("aria-label", `copy ${label}`);
  button.addEventListener("click", act);
  return button;
}

// The buttons lie over the corner of what they copy, so that nothing on the page moves when they come.
function addCopyButtons() {
  for (const node of page.querySelectorAll("[data-copy]")) {
    const button = copyButton(`the ${node.dataset.copy}`, () => copyNode(node));
    if (node.matches("dd, p")) node.append(button);
    else node.before(button);
  }
  for (const link of page.querySelectorAll("[data-copy-from]")) {
    link.parentElement.append(copyButton("the raw record", () => copyFrom(link)));
  }
}

function copyLink() {
  const link = current()?.querySelector(".permalink");
  if (!link) return say("no message here");
  copyText(link.href, `copied the link to message ${link.textContent.trim()}`);
}

// The list of keys, of those that do something on this page

const ACTIONS = {
  j: () => move(1),
  k: () => move(-1),
  r: foldReasoning,
  ".": copyLink,
  "?": () => (dialog.open ? dialog.close() : dialog.showModal()),
};

const marked = (key) => page.querySelector(`[data-key~="${CSS.escape(key)}"]`);

function acts(key) {
  if (marked(key) || key === "?") return true;
  if (key === "r") return Boolean(page.querySelector('details[data-fold="reasoning"]'));
  if (key === ".") return Boolean(page.querySelector(".permalink"));
  return key in ACTIONS && stops().length > 0;
}

function keyList() {
  const list = element("dl");
  for (const [key, words] of Object.entries(KEYS)) {
    if (acts(key)) list.append(element("dt", {}, element("kbd", {textContent: key})), element("dd", {textContent: words}));
  }
  const close = element("button", {type: "button", className: "copy", textContent: "close"});
  const made = element("dialog", {className: "keys"}, element("h2", {textContent: "Keys on this page"}), list, close);
  made.setAttribute("aria-label", "Keys on this page");
  close.addEventListener("click", () => made.close());
  return made;
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable], navigation-search")) return;
  if (dialog.open && event.key !== "?") return;
  const link = marked(event.key);
  const act = link ? () => (link.matches("input") ? link.focus() : link.click()) : ACTIONS[event.key];
  if (!act || !acts(event.key)) return;
  // Datasette 1.0 has keys of its own; on a page where one of ours does something, ours is meant.
  event.preventDefault();
  event.stopImmediatePropagation();
  act();
}

// Printing shows what is folded; of the tools that were offered the names are enough

let folded = [];
function unfoldForPrint() {
  folded = [...page.querySelectorAll("details:not([open], .offered)")];
  for (const details of folded) details.open = true;
}
function foldAgain() {
  for (const details of folded) details.open = false;
}

restoreFolds();
addCopyButtons();
const dialog = keyList();
page.append(dialog, said);
page.classList.add("has-keys");
page.addEventListener("click", (event) => {
  const summary = event.target.closest("summary");
  const details = summary?.parentElement;
  if (details?.dataset.fold) remember(details.dataset.fold, !details.open);
});
document.addEventListener("keydown", press, {capture: true});
window.addEventListener("beforeprint", unfoldForPrint);
window.addEventListener("afterprint", foldAgain);
