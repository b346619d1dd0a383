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

// Tells the page where it is: at once when it stands still, else every few seconds.
const EVERY_S = 5;

function report(video, change) {
  const data = video.homerData;
  if (!data.reports) return;
  const at = Math.floor(video.currentTime + data.from_s);
  const moved = video.homerAt === undefined || Math.abs(at - video.homerAt) >= EVERY_S;
  if (change === "timeupdate" ? !moved : at === video.homerAt) return;
  video.homerAt = at;
  video.homerTell("at", { file: data.video, seek: data.seek, s: at });
}

function go(video, at, play) {
  const move = () => {
    video.currentTime = at;
    if (play) video.play().catch(() => {});
  };
  if (video.readyState >= 1) move();
  else video.addEventListener("loadedmetadata", move, { once: true });
}

// Plays a moment of a video at once, where its whole file is in the player; false where it is not.
window.homerPlay = (name, ms) => {
  const video = document.querySelector(".homer-player video");
  const data = video && video.homerData;
  // A recording of a part of a stream has that part only: the page finds the others.
  if (!data || data.video !== name || data.file !== name) return false;
  go(video, ms / 1000, true);
  return true;
};

// A browser that cannot play a file says so, plays sound without pictures, or only the first of
// several parts that were joined. The page then sends parts that it can play.
function cannotPlay(video) {
  const data = video.homerData;
  if (data.file === data.video) video.homerTell("unplayable", data.file);
  else showProblem(video);
}

function showProblem(video) {
  const problem = video.parentElement.querySelector("p");
  problem.textContent = video.homerData.problem;
  problem.hidden = false;
}

// A link that has expired, or a file that is gone, is an error too, and none of the browser's.
async function failed(video) {
  const range = { headers: { Range: "bytes=0-0" } };
  const answer = await fetch(video.src, range).catch(() => null);
  if (answer && answer.ok) cannotPlay(video);
  else showProblem(video);
}

function check(video) {
  const { file, video: id, pictures, length_s } = video.homerData;
  if (file !== id) return;
  const lacksParts = video.duration < length_s - Math.max(5, length_s / 20);
  if ((pictures && !video.videoWidth) || lacksParts) cannotPlay(video);
}

function listen(video) {
  for (const change of ["timeupdate", "play", "pause", "seeked"]) {
    video.addEventListener(change, () => {
      keep(video, video.homerData.name);
      report(video, change);
    });
  }
  video.addEventListener("error", () => failed(video));
  video.addEventListener("loadedmetadata", () => check(video));
  video.addEventListener("ended", () => {
    if (video.homerData.goes_on) video.homerTrigger("ended", video.homerData.file);
  });
}

export default function ({ data, parentElement, setStateValue, setTriggerValue }) {
  const video = parentElement.querySelector("video");
  if (!video.homerData) listen(video);
  video.homerData = data;
  video.homerTell = setStateValue;
  video.homerTrigger = setTriggerValue;
  const seek = String(data.seek);
  const before = kept[data.name];
  if (video.dataset.file !== data.file) {
    // The signature of a link changes with the hours; the file is the same.
    video.dataset.file = data.file;
    video.dataset.seek = seek;
    parentElement.querySelector(".homer-player p").hidden = true;
    video.src = data.url;
    video.setAttribute("aria-label", data.label);
    const same = before && before.file === data.file && before.seek === seek;
    if (same) go(video, before.at, before.playing);
    else go(video, data.start_s, data.play);
  } else if (video.dataset.seek !== seek) {
    video.dataset.seek = seek;
    go(video, data.start_s, data.play);
  }
}
