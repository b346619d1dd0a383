// The lines of a transcript: each plays its moment, and the one that is played is marked. All words
// are set as text. Lines are reached with the arrow keys, so that Tab passes them in one step.
const LEFT_ALONE_MS = 4000;

function make(name, kind, parent, text) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  if (text) made.textContent = text;
  parent.appendChild(made);
  return made;
}

function marked(parent, line) {
  let at = 0;
  const letters = [...line.text];
  const slice = (from, to) => letters.slice(from, to).join("");
  for (const [start, end] of line.marks) {
    parent.append(slice(at, start));
    make("mark", "", parent, slice(start, end));
    at = end;
  }
  parent.append(slice(at));
}

function row(list, line, first, play) {
  const button = make("button", "said", make("li", "", list));
  button.type = "button";
  button.dataset.at = line.at;
  button.tabIndex = first ? 0 : -1;
  make("span", "time", button, line.clock);
  const words = make("span", `words ${line.tone}`, button);
  if (line.kind) make("span", "kind", words, `${line.kind}: `);
  if (line.who) make("span", "who", words, `${line.who}: `);
  marked(make("span", "", words), line);
  button.onclick = () => play(line.at);
}

function more(root, label, at, ask) {
  const button = make("button", "more", root, label);
  button.type = "button";
  button.onclick = () => ask(at);
}

function draw(root, data, play, ask) {
  root.replaceChildren();
  root.setAttribute("aria-label", data.name);
  if (data.earlier !== null) more(root, data.earlier_label, data.earlier, ask);
  let first = true;
  for (const part of data.parts) {
    if (part.title) make("div", "part", root, part.title);
    if (!part.lines.length && part.none) make("div", "none", root, part.none);
    const list = make("ol", "", root);
    for (const line of part.lines) {
      row(list, line, first, play);
      first = false;
    }
  }
  if (data.later !== null) more(root, data.later_label, data.later, ask);
}

function player(data) {
  const video = document.querySelector(".homer-player video");
  return video && video.homerData && video.homerData.video === data.video ? video : null;
}

function lines(root) {
  return [...root.querySelectorAll(".said")];
}

function reveal(root, line) {
  const above = line.offsetTop < root.scrollTop;
  const below = line.offsetTop + line.offsetHeight > root.scrollTop + root.clientHeight;
  if (above || below) root.scrollTop = line.offsetTop - root.clientHeight / 3;
}

// Marks the last line that has begun, and keeps it in sight unless somebody looks elsewhere.
function follow(root) {
  const data = root.homerData, video = player(data);
  if (!data.follows) return;
  const at = video && video.readyState ? 1000 * (video.currentTime + video.homerData.from_s) : data.at;
  const begun = lines(root).filter((line) => Number(line.dataset.at) <= at + 200);
  const now = begun[begun.length - 1] || null;
  for (const line of lines(root)) {
    if (line === now) line.setAttribute("aria-current", "true");
    else line.removeAttribute("aria-current");
  }
  if (now && now !== root.homerNow && Date.now() - (root.homerLooked || 0) > LEFT_ALONE_MS) {
    reveal(root, now);
  }
  root.homerNow = now;
  const outside = at < data.from || (data.until !== null && at >= data.until);
  if (video && outside && root.homerAsked !== root.dataset.shown) {
    root.homerAsked = root.dataset.shown;
    root.homerAsk(at);
  }
}

function keys(root, event) {
  const all = lines(root), at = all.indexOf(event.target);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
  if (at < 0 || to === undefined || !all[to]) return;
  event.preventDefault();
  all[at].tabIndex = -1;
  all[to].tabIndex = 0;
  all[to].focus({ preventScroll: true });
  root.homerLooked = Date.now();
  reveal(root, all[to]);
}

export default function ({ data, parentElement, setStateValue, setTriggerValue }) {
  const root = parentElement.querySelector(".transcript");
  root.homerData = data;
  root.homerAsk = (at) =>
    setStateValue("window", { file: data.video, seek: data.seek, ms: Math.floor(at) });
  const play = (at) => {
    if (!window.homerPlay || !window.homerPlay(data.video, at)) setTriggerValue("picked", at);
  };
  const shown = JSON.stringify([data.parts, data.earlier, data.later]);
  if (root.dataset.shown !== shown) {
    root.dataset.shown = shown;
    root.homerNow = undefined;
    draw(root, data, play, root.homerAsk);
    root.scrollTop = 0;
  }
  if (!root.homerStop) {
    const moved = (event) => event.target.closest(".homer-player") && follow(root);
    const looked = () => (root.homerLooked = Date.now());
    for (const change of ["timeupdate", "seeked", "loadedmetadata"]) {
      document.addEventListener(change, moved, true);
    }
    root.addEventListener("keydown", (event) => keys(root, event));
    root.addEventListener("wheel", looked, { passive: true });
    root.addEventListener("touchmove", looked, { passive: true });
    root.homerStop = () => {
      for (const change of ["timeupdate", "seeked", "loadedmetadata"]) {
        document.removeEventListener(change, moved, true);
      }
    };
  }
  follow(root);
  return () => {
    if (root.isConnected) return;
    root.homerStop();
  };
}
