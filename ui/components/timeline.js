// Lanes of spans over the time of a video, and arcs between spans. All words are set as text.
const TICKS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];
const TICK_PX = 80;

function hms(seconds) {
  const s = Math.floor(seconds), two = (n) => String(n).padStart(2, "0");
  const days = Math.floor(s / 86400), rest = s % 86400;
  const hours = Math.floor(rest / 3600), minutes = Math.floor(rest / 60) % 60;
  const clock = days || hours ? `${hours}:${two(minutes)}` : `${minutes}`;
  const told = `${clock}:${two(rest % 60)}`;
  return days ? `d${days + 1} ${told}` : told;
}

function make(name, kind, parent, text) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  if (text) made.textContent = text;
  parent.appendChild(made);
  return made;
}

function axis(root, start, length) {
  const row = make("div", "row axis", root);
  make("div", "name", row);
  const line = make("div", "line", row);
  line.setAttribute("aria-hidden", "true");
  const seconds = length / 1000, from = start / 1000;
  const most = Math.max(2, Math.min(6, Math.floor(line.clientWidth / TICK_PX) || 6));
  const step = TICKS.find((one) => seconds / one <= most) || Math.ceil(seconds / most);
  for (let at = Math.ceil(from / step) * step; at <= from + seconds; at += step) {
    const tick = make("span", "tick", line, hms(at)), share = (at - from) / seconds;
    tick.style.left = `${100 * share}%`;
    if (share < 0.03) tick.classList.add("first");
    if (share > 0.93) tick.classList.add("last");
  }
}

function lane(root, one, data, pick) {
  const row = make("div", "row", root);
  make("div", "name", row, one.name).title = one.name;
  const line = make("div", "line", row);
  line.setAttribute("role", "group");
  line.setAttribute("aria-label", one.name);
  for (const span of one.spans) {
    const bar = make("button", `bar ${span.tone || ""}`, line);
    bar.type = "button";
    bar.dataset.id = span.id;
    bar.style.left = `${(100 * (span.start - data.start)) / data.length}%`;
    // What ends after the video ends at the edge.
    const end = Math.min(span.end, data.start + data.length);
    bar.style.width = `max(${(100 * (end - span.start)) / data.length}%, 7px)`;
    bar.title = span.label;
    bar.setAttribute("aria-label", span.label);
    if (span.id === data.chosen) bar.setAttribute("aria-current", "true");
    if (span.text) make("span", "word", bar, span.text);
    bar.onclick = () => pick(span.id);
  }
}

function arcs(root, data, pick) {
  if (!data.arcs.length) return;
  const row = make("div", "row", root);
  make("div", "name", row, data.arcs_name);
  const line = make("div", "line arcs", row);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 1000 60");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", data.arcs_label);
  for (const arc of data.arcs) {
    const a = (1000 * (arc.start - data.start)) / data.length;
    const b = (1000 * (arc.end - data.start)) / data.length;
    const path = document.createElementNS(svg.namespaceURI, "path");
    path.setAttribute("d", `M ${a} 0 C ${a} 50, ${b} 50, ${b} 0`);
    path.setAttribute("class", `arc ${arc.tone}`);
    const title = document.createElementNS(svg.namespaceURI, "title");
    title.textContent = arc.label;
    path.appendChild(title);
    if (arc.id) path.onclick = () => pick(arc.id);
    svg.appendChild(path);
  }
  line.appendChild(svg);
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".timeline");
  const shown = JSON.stringify(data);
  if (root.dataset.shown === shown) return;
  // Drawn anew, the bar that has the keyboard keeps it.
  const held = parentElement.activeElement && parentElement.activeElement.dataset.id;
  root.dataset.shown = shown;
  root.replaceChildren();
  root.setAttribute("aria-label", data.name);
  axis(root, data.start, data.length);
  const pick = (id) => setTriggerValue("picked", id);
  for (const one of data.lanes) lane(root, one, data, pick);
  arcs(root, data, pick);
  const again = held && [...root.querySelectorAll("button")].find((b) => b.dataset.id === held);
  if (again) again.focus();
}
