"""Show a citation or a piece of evidence: text, image, and buttons to play and to save it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import streamlit as st

from domain.asking import PICTURES_NOT_SEARCHED, Citation, Evidence
from domain.errors import InputError
from domain.media import Video
from domain.moments import SearchCost
from domain.people import tags_in_words
from domain.time import TimeSpan
from domain.words import format_number, format_span, format_time, short_times, translate
from flows.video_file import cut_moment
from library.moments import frame_at
from models.objects_and_texts import coco_labels
from store.database import Store
from ui.formatting import escape_markdown
from ui.media import stored_image
from ui.player import is_playable, seek
from ui.sharing import share_button

MAX_TEXT_CHARS = 400
"""Characters shown of a text."""


def video_title(videos: Mapping[str, Video], video: str) -> str:
    """Return a video's title, or words for one that is not in the library any more."""
    return videos[video].title if video in videos else translate("a deleted video")


def show_limits(usage: SearchCost, *, unseen: bool) -> None:
    """Say where nothing was found and pictures were not searched, and what an endpoint took."""
    if unseen:
        st.caption(translate(PICTURES_NOT_SEARCHED), help=", ".join(coco_labels()))
    if usage.requests:
        took = translate("The search took {usage} of the embeddings endpoint.")
        st.caption(took.format(usage=usage))


def show_moment(
    store: Store,
    item: Citation | Evidence,
    videos: Mapping[str, Video],
    key: str,
    *,
    number: int | None = None,
    cited: bool = False,
    then: Callable[[], None] | None = None,
) -> None:
    """Draw a citation or a piece of evidence, with buttons that play it, save it and share it.

    ``number``: how the answer cites it; ``cited``: it is marked as cited; ``then`` draws below.
    """
    with st.container(border=True, key=f"moment_{key}"):
        text, frame = st.columns([3, 1])
        with text:
            title = video_title(videos, item.video)
            title = escape_markdown(title if len(title) <= 40 else title[:39].rstrip() + "…")
            mark = "" if number is None else f"**\\[{number}\\]**"
            st.button(
                f"{mark} ▶ {format_span(item.span)}  {title}".strip(),
                key=key,
                help=translate("Go to {time}").format(time=format_time(item.span.start_ms)),
                on_click=seek,
                args=(item.video, item.span.start_ms),
            )
            shown = short_times(tags_in_words(item.full_text))
            if len(shown) > MAX_TEXT_CHARS:
                shown = shown[:MAX_TEXT_CHARS].rstrip() + " …"
            st.write(escape_markdown(shown))
            facts = [translate("cited in the answer")] if cited else []
            if isinstance(item, Evidence):
                score = format_number(item.score, ".2f")
                facts.append(translate("match {score}").format(score=score))
            elif item.support is not None:
                score = format_number(item.support, ".2f")
                facts.append(translate("support {score}").format(score=score))
            st.caption(escape_markdown(", ".join(facts)))
            if item.video in videos:
                with st.container(horizontal=True, key=f"ways_{key}"):
                    save_button(store, videos[item.video], item.span, key)
                    share_button(store, item.video, item.span, key)
            if then is not None:
                then()
        with frame:
            # The image that the ref names, else the keyframe nearest to the moment.
            near = frame_at(store, item.video, item.span.start_ms, item.ref)
            image = stored_image(store, near.blob) if near else b""
            if near and image:
                time = format_span(near.span)
                alt = translate("Frame of the video at {time}").format(time=time)
                st.image(image, alt=alt, width="stretch")


# The button that saves a moment of a video as a file.

LEAST_MS = 2_000
"""A shorter moment, such as that of an image, is saved with what follows."""
MOST_MS = 10 * 60_000
"""A longer span is no moment: the server holds a saved file in memory. `homer clip` takes any."""
MOST_BYTES = 10**9
"""Largest file that is saved so."""
MAX_TITLE_CHARS = 60
"""Characters of a title in a file's name."""


def save_button(store: Store, video: Video, span: TimeSpan, key: str) -> None:
    """Draw a button that saves a moment as MP4; nothing where there is no file to cut it from.

    Nothing is drawn of longer spans, such as chapters.
    """
    if span.length_ms > MOST_MS or not is_playable(store, video, span.start_ms):
        return
    whole = TimeSpan.of(span.start_ms, max(span.end_ms, span.start_ms + LEAST_MS))
    # A name of characters that any file system takes.
    plain = "".join(char if char.isalnum() or char in " -_" else " " for char in video.title)
    title = " ".join(plain.split())[:MAX_TITLE_CHARS].strip() or "video"
    name = f"{title} {format_span(whole).replace(':', '.')}.mp4"
    st.download_button(
        translate("Save this moment"),
        # It is cut only once the button is pressed.
        lambda: _cut(store, video, whole),
        name,
        "video/mp4",
        key=f"save_{key}",
        help=translate("Save {time} as an MP4 file").format(time=format_span(whole)),
        on_click="ignore",
        type="tertiary",
        icon=":material/download:",
    )


def _cut(store: Store, video: Video, span: TimeSpan) -> bytes:
    """Return a moment as an MP4 file.

    Raises:
        InputError: the file or recording is gone, or the moment is too large.
        MediaError: nothing decodes there.
    """
    with TemporaryDirectory() as folder:
        out = Path(folder) / "moment.mp4"
        cut_moment(store, video.id, span, out)
        if out.stat().st_size > MOST_BYTES:
            raise InputError(
                translate("it is larger than {size} GB: use `homer clip`").format(
                    size=format_number(MOST_BYTES / 1e9, "g")
                )
            )
        return out.read_bytes()
