// Seeks when it is told a new moment, and never by being drawn again.
export default function ({ data, parentElement }) {
  const video = parentElement.querySelector("video");
  if (video.dataset.file !== data.file) {
    // The signature of a link changes with the hours; the file is the same.
    video.dataset.file = data.file;
    video.dataset.seek = "";
    video.src = data.url;
    video.setAttribute("aria-label", data.label);
  }
  const seek = String(data.seek);
  if (video.dataset.seek === seek) return;
  const first = video.dataset.seek === "";
  video.dataset.seek = seek;
  const go = () => {
    video.currentTime = data.start_s;
    if (data.play && !first) video.play().catch(() => {});
  };
  if (video.readyState >= 1) go();
  else video.addEventListener("loadedmetadata", go, { once: true });
}
