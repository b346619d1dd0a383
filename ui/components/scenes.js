// A strip of pictures in order of time: each plays its moment. All words are set as text.
function draw(root, data, play) {
  root.replaceChildren();
  root.setAttribute("aria-label", data.name);
  for (const scene of data.scenes) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "scene";
    button.dataset.at = scene.at;
    button.title = scene.label;
    const image = document.createElement("img");
    image.loading = "lazy";
    image.alt = scene.label;
    image.src = scene.url;
    const clock = document.createElement("span");
    clock.textContent = scene.clock;
    clock.setAttribute("aria-hidden", "true");
    button.append(image, clock);
    button.onclick = () => play(scene.at);
    root.appendChild(button);
  }
}

function follow(root) {
  const video = document.querySelector(".homer-player video");
  const data = video && video.homerData;
  if (!data || !video.readyState || data.video !== root.homerData.video) return;
  const at = 1000 * (video.currentTime + data.from_s) + 200;
  const scenes = [...root.children], begun = scenes.filter((one) => Number(one.dataset.at) <= at);
  const now = begun[begun.length - 1];
  for (const one of scenes) {
    if (one === now) one.setAttribute("aria-current", "true");
    else one.removeAttribute("aria-current");
  }
  if (now && now !== root.homerNow) root.scrollLeft = now.offsetLeft - root.clientWidth / 3;
  root.homerNow = now;
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".scenes");
  root.homerData = data;
  const play = (at) => {
    if (!window.homerPlay || !window.homerPlay(data.video, at)) setTriggerValue("picked", at);
  };
  // The signatures of links change with the hours; the pictures are the same.
  const shown = JSON.stringify(data.scenes.map((one) => [one.at, one.label]));
  if (root.dataset.shown !== shown) {
    root.dataset.shown = shown;
    root.homerNow = undefined;
    draw(root, data, play);
  }
  if (!root.homerStop) {
    const moved = (event) => event.target.closest(".homer-player") && follow(root);
    const changes = ["timeupdate", "seeked", "loadedmetadata"];
    for (const change of changes) document.addEventListener(change, moved, true);
    root.homerStop = () => {
      for (const change of changes) document.removeEventListener(change, moved, true);
    };
  }
  follow(root);
  return () => {
    if (!root.isConnected) root.homerStop();
  };
}
