"""Show a citation or a piece of evidence: text, image and a button to play it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from domain.asking import PICTURES_NOT_SEARCHED, Citation, Evidence
from domain.media import Video
from domain.moments import SearchCost
from domain.people import tags_in_words
from domain.words import format_number, format_span, short_times, translate
from library.moments import frame_at
from models.yolox import coco_labels
from store.database import Store
from ui.formatting import escape_markdown
from ui.media import stored_image
from ui.player import seek_button
from ui.saving import save_button
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
    player_key: str = "player",
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
            seek_button(item.video, item.span, title, key, player_key, mark)
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
