// Says that an open page is out of date, and brings it up to date when asked: nothing moves by itself. Where the page
// is not looked at, nothing is asked.

const page = document.querySelector(".reading");
const SOON = 4_000; // milliseconds until the next question after something has changed
const LATE = 30_000; // and when nothing has for long

const words = document.createElement("span");
const button = Object.assign(document.createElement("button"), {type: "button", textContent: "show"});
const news = Object.assign(document.createElement("p"), {className: "news", hidden: true});
const said = Object.assign(document.createElement("p"), {className: "unseen"});
said.setAttribute("role", "status");
news.append(words, button);
page.append(news, said);

let delay = SOON;
let timer;

async function ask() {
  clearTimeout(timer);
  if (document.hidden) return;
  let state;
  try {
    const response = await fetch(page.dataset.live, {headers: {accept: "application/json"}, cache: "no-store"});
    if (response.status === 403 || response.status === 404) return; // it will not be answered any more
    if (response.ok) state = await response.json();
  } catch {
    // the server is not there; it may come back
  }
  const differs = state?.version && state.version !== page.dataset.version;
  if (differs) offer(state.trajectories - Number(page.dataset.trajectories));
  else if (state?.version) news.hidden = true; // what had changed is as it was
  const isNew = differs && state.version !== ask.last;
  ask.last = state?.version;
  delay = isNew ? SOON : Math.min(delay * 1.2, LATE);
  timer = setTimeout(ask, delay);
}

function offer(count) {
  const text =
    count > 0 ? `${count.toLocaleString("en")} new ${count === 1 ? "trajectory" : "trajectories"}` : "This page has changed";
  if (words.textContent !== text) words.textContent = text;
  if (news.hidden) said.textContent = `${text}: the button show is at the end of the page`; // once, not at every count
  news.hidden = false;
}

// Bringing the page up to date: its parts are exchanged, and what is read stays where it is

let updating = false;
async function update() {
  if (updating) return;
  updating = true;
  try {
    const response = await fetch(location.href, {headers: {accept: "text/html"}, cache: "no-store"});
    const html = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = html.querySelector(".reading[data-live]");
    if (!response.ok || !fresh || !sameParts(fresh)) return location.reload();
    exchange(fresh);
    document.dispatchEvent(new Event("rltracer-update"));
  } catch {
    said.textContent = "The server does not answer.";
  } finally {
    updating = false;
  }
}

const parts = (root) => [...root.querySelectorAll("[data-part]")];
const names = (root) => parts(root).map((part) => part.dataset.part).join();
const sameParts = (fresh) => names(fresh) === names(page);

function exchange(fresh) {
  const place = placeOf();
  const left = news.contains(document.activeElement) ? focused : document.activeElement;
  const focus = left?.closest("[data-part]") && mark(left);
  const sideways = [...page.querySelectorAll("[data-part] .scroll")].map((box) => box.scrollLeft);
  const incoming = parts(fresh);
  parts(page).forEach((part, at) => part.replaceChildren(...incoming[at].childNodes));
  for (const name of ["version", "trajectories"]) page.dataset[name] = fresh.dataset[name];
  page.querySelectorAll("[data-part] .scroll").forEach((box, at) => (box.scrollLeft = sideways[at] ?? 0));
  restore(place);
  if (focus) find(focus)?.focus({preventScroll: true});
  else if (news.contains(document.activeElement)) button.blur();
  news.hidden = true;
  said.textContent = "The page is up to date.";
}

// Where somebody was before they went to the button.
let focused = null;
page.addEventListener("focusin", ({target}) => {
  if (!news.contains(target)) focused = target;
});

// A link is known by its part, its address and which of several with that address it is.
function mark(link) {
  const part = link.closest("[data-part]");
  const href = link.getAttribute("href");
  return {part: part.dataset.part, href, at: alike(part, href).indexOf(link)};
}
const alike = (part, href) => [...part.querySelectorAll("a")].filter((link) => link.getAttribute("href") === href);
const find = ({part, href, at}) => alike(page.querySelector(`[data-part="${CSS.escape(part)}"]`), href)[at];

// What is at the top of the window: a link that is still there afterwards, and how far down it stood.
function placeOf() {
  if (scrollY === 0) return null;
  const seen = [...page.querySelectorAll("[data-part] a, main > :not([data-part]) :is(a, h2, p)")];
  return seen
    .map((node) => ({node, top: node.getBoundingClientRect().top}))
    .filter(({top}) => top >= 0 && top < innerHeight)
    .map(({node, top}) => ({node, top, link: node.closest("[data-part]") ? mark(node) : null}));
}

function restore(place) {
  for (const {node, top, link} of place ?? []) {
    const there = link ? find(link) : node;
    if (!there) continue;
    scrollBy({top: there.getBoundingClientRect().top - top, behavior: "instant"});
    return;
  }
}

button.addEventListener("click", update);
document.addEventListener("visibilitychange", () => {
  delay = SOON;
  ask();
});
timer = setTimeout(ask, delay);
