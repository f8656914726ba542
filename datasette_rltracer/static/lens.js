// What JavaScript adds to the token lens: a line with all that is recorded of the token under the pointer or the
// focus, and the arrow keys. Without it each token says the same in its title.

const tokens = document.querySelector("div.tokens");
const details = document.querySelector(".token-details");
const HINT = "Point at a token, or focus the text and use the arrow keys, to see all that is recorded of it.";
let focused = tokens?.querySelector("[tabindex]");

const tokenAt = (node) => node.closest?.("div.tokens > .k");

function show(token) {
  details.textContent = token.title;
}

function focus(token) {
  if (!token) return;
  focused.removeAttribute("tabindex");
  token.tabIndex = 0;
  focused = token;
  token.focus();
}

// The token above or below is the one in the next row whose middle is nearest.
function inNextRow(token, sibling) {
  const middle = (box) => (box.left + box.right) / 2;
  const from = token.getClientRects()[0];
  let best = null;
  let row = null;
  for (let other = token[sibling]; other; other = other[sibling]) {
    const box = other.getClientRects()[0];
    if (!box || Math.abs(box.top - from.top) < box.height / 2) continue;
    row ??= box.top;
    if (Math.abs(box.top - row) > box.height / 2) break;
    if (!best || Math.abs(middle(box) - middle(from)) < best.distance) {
      best = {token: other, distance: Math.abs(middle(box) - middle(from))};
    }
  }
  return best?.token;
}

const MOVES = {
  ArrowRight: (token) => token.nextElementSibling,
  ArrowLeft: (token) => token.previousElementSibling,
  ArrowDown: (token) => inNextRow(token, "nextElementSibling"),
  ArrowUp: (token) => inNextRow(token, "previousElementSibling"),
  Home: () => tokens.firstElementChild,
  End: () => tokens.lastElementChild,
};

if (tokens && details) {
  details.textContent = HINT;
  details.hidden = false;
  tokens.addEventListener("pointerover", (event) => tokenAt(event.target) && show(tokenAt(event.target)));
  tokens.addEventListener("focusin", (event) => tokenAt(event.target) && show(tokenAt(event.target)));
  tokens.addEventListener("click", (event) => {
    if (!getSelection().toString()) focus(tokenAt(event.target));
  });
  tokens.addEventListener("keydown", (event) => {
    const token = tokenAt(event.target);
    const move = MOVES[event.key];
    if (!token || !move || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    event.preventDefault();
    focus(move(token));
  });
  const target = location.hash.startsWith("#k") && document.getElementById(location.hash.slice(1));
  if (target) focus(target);
}
