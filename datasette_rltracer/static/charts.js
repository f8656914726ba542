// Says when each chart of a page is drawn: those near the window at once, the others when these are done. The others are
// drawn one after another and only while somebody looks at the page, so that an index, which may be large, is never asked
// at once for several charts that nobody sees: for one while the one before it is drawn.

const {ask, show, showNow, update} = globalThis.rltracerChart;
const figures = [...document.querySelectorAll("figure.rltracer-chart")];
const due = new Set();
const begun = new Map(); // the charts that are being drawn, each with a promise
const outdated = new Set(); // those of them whose page has been brought up to date meanwhile

function want(figure) {
  due.add(figure);
  near.observe(figure);
}

function begin(figure, whenAnswered) {
  if (!due.delete(figure)) return;
  near.unobserve(figure);
  const draw = figure.dataset.state === "drawn" ? update : show;
  const done = draw(figure, whenAnswered).finally(() => {
    begun.delete(figure);
    if (outdated.delete(figure)) want(figure);
  });
  begun.set(figure, done);
}

const near = new IntersectionObserver(
  (entries) => {
    for (const {isIntersecting, target} of entries) if (isIntersecting) begin(target);
    drawOthers();
  },
  {rootMargin: "300px"},
);

let isAtIt = false;
async function drawOthers() {
  if (isAtIt) return;
  isAtIt = true;
  while (due.size) {
    await Promise.all(begun.values());
    await isLookedAt();
    await isIdle();
    const [next] = due;
    if (next && !begun.size) begin(next, askForNext);
  }
  isAtIt = false;
}

function askForNext() {
  const [next] = due;
  if (next) ask(next);
}

function isLookedAt() {
  if (!document.hidden) return null;
  return new Promise((resolve) => document.addEventListener("visibilitychange", resolve, {once: true}));
}

function isIdle() {
  if (!globalThis.requestIdleCallback) return new Promise((resolve) => setTimeout(resolve, 50)); // Safari has none
  return new Promise((resolve) => requestIdleCallback(resolve, {timeout: 500}));
}

figures.forEach(want);
// The page around the charts has been brought up to date: so is what is drawn already, in its place, and what is being
// drawn as soon as it is there. An answer that came before is of no use any more.
document.addEventListener("rltracer-update", () => {
  for (const figure of figures) {
    if (!figure.dataset.url) continue;
    figure.asked = null;
    if (begun.has(figure)) outdated.add(figure);
    else if (figure.dataset.state === "drawn") want(figure);
  }
});
addEventListener("beforeprint", () => {
  if (!globalThis.rltracerVega) return; // it would have to be waited for: on paper the frames say that they are not drawn
  for (const figure of figures) {
    if (figure.dataset.state && figure.dataset.state !== "loading") continue;
    due.delete(figure);
    near.unobserve(figure);
    showNow(figure);
  }
});
