// Seeks when it is told a new moment, and never by being drawn again: where it stands is kept for
// as long as the page is open, also when the page puts another element in this one's place.
const kept = (window.homerPlayers = window.homerPlayers || {});

function keep(video, name) {
  kept[name] = {
    file: video.dataset.file,
    seek: video.dataset.seek,
    at: video.currentTime,
    playing: !video.paused && !video.ended,
  };
}

function go(video, at, play) {
  const move = () => {
    video.currentTime = at;
    if (play) video.play().catch(() => {});
  };
  if (video.readyState >= 1) move();
  else video.addEventListener("loadedmetadata", move, { once: true });
}

export default function ({ data, parentElement }) {
  const video = parentElement.querySelector("video");
  const seek = String(data.seek);
  const before = kept[data.name];
  if (video.dataset.file !== data.file) {
    // The signature of a link changes with the hours; the file is the same.
    video.dataset.file = data.file;
    video.dataset.seek = seek;
    video.src = data.url;
    video.setAttribute("aria-label", data.label);
    for (const change of ["timeupdate", "play", "pause", "seeked"]) {
      video.addEventListener(change, () => keep(video, data.name));
    }
    const same = before && before.file === data.file && before.seek === seek;
    if (same) go(video, before.at, before.playing);
    else go(video, data.start_s, data.play);
  } else if (video.dataset.seek !== seek) {
    video.dataset.seek = seek;
    go(video, data.start_s, data.play);
  }
}
