"""The transcript of a video beside its player: lines that play, filters, a search, and scenes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import streamlit as st

from auth.signing_in import sign_path
from domain.media import Video
from domain.words import counted, format_time, translate
from library.transcript import (
    CHAPTER,
    GROUPS,
    SAID,
    TranscriptLine,
    TranscriptWindow,
    find_close,
    find_words,
    load_scenes,
    load_transcript,
)
from models.text_endpoint import recorded_search
from ui.app_state import PageState, show_errors
from ui.components import component
from ui.evidence import show_limits
from ui.player import seek, sought_moment

MAX_CHARS = 500
"""Characters shown of a line."""
STATE = "transcript"


def show_transcript(state: PageState, video: Video, start_ms: int) -> None:
    """Draw the lines around the moment that plays, or those that are sought, with a field for it.

    Args:
        start_ms: where the player starts, until a moment is sought.
    """
    words = st.text_input(
        translate("Find in this video"),
        key="find",
        bind="query-params",
        icon=":material/search:",
        placeholder=translate("Words that were said or shown"),
    )
    with st.container(horizontal=True, key="lines"):
        groups = [
            group for group in GROUPS if st.checkbox(translate(group), value=True, key=f"l_{group}")
        ]
    if words.strip():
        # What is sought is anywhere in the video: no window is around a moment.
        seek_token, at_ms = sought_moment(video, 0)
        found, total = find_words(state.store, video.id, words, groups)
        known = {line.id for line in found}
        close: Sequence[TranscriptLine] = ()
        with show_errors():
            with st.spinner(translate("Searching ...")), recorded_search(state.store) as cost:
                tools = state.toolbox(video.profile)
                close = find_close(state.store, tools.text, video.id, words, groups, known)
            nothing = not found and (not close)
            show_limits(cost.usage, unseen=nothing and (not tools.profile.image_model))
        parts = []
        if found:
            shown, lines = len(found), counted(total, "line")
            first = translate(", the first {shown}").format(shown=shown) if shown < total else ""
            title = translate("{lines} with these words{first}").format(lines=lines, first=first)
            parts.append(_part(found, title))
        if close:
            parts.append(_part(close, translate("Close in meaning")))
        if not parts:
            parts = [_part((), none=translate("Nothing like this was found."))]
        _draw(video, parts, at_ms, seek_token)
    else:
        seek_token, at_ms = _moment(video, start_ms)
        window = load_transcript(state.store, video.id, at_ms, groups)
        if window is None:
            st.caption(translate("Nothing is remembered of this video yet."))
            return
        why_empty = (
            translate("Nothing of this was said or shown here.")
            if groups
            else translate("Choose what is shown.")
        )
        _draw(video, [_part(window.lines, none=why_empty)], at_ms, seek_token, window)


def show_scenes(state: PageState, video: Video, start_ms: int) -> None:
    """Draw the pictures of the scenes around the moment that plays; each plays its own."""
    _, at_ms = _moment(video, start_ms)
    scenes = load_scenes(state.store, video.id, at_ms)
    if not scenes:
        return
    data = {
        "name": translate("Scenes of {title}").format(title=video.title),
        "video": video.id,
        "scenes": [
            {
                "at": scene.span.start_ms,
                "clock": format_time(scene.span.start_ms),
                "label": f"{format_time(scene.span.start_ms)}  {scene.text}".strip(),
                "url": sign_path(f"/image/{scene.blob}"),
            }
            for scene in scenes
        ],
    }
    result = component("scenes")(key="scenes", data=data, on_picked_change=lambda: None)
    _play_picked(video, getattr(result, "picked", None))


def _moment(video: Video, start_ms: int) -> tuple[str, int]:
    """Return the moment that the window is around, after the name of the last seek."""
    seek_token, at_ms = sought_moment(video, start_ms)
    # The transcript may have asked for another one since the player was told to seek last.
    asked = getattr(st.session_state.get(STATE), "window", None)
    if isinstance(asked, dict) and (asked.get("file"), asked.get("seek")) == (video.id, seek_token):
        moment = asked.get("ms")
        if isinstance(moment, int | float):
            return seek_token, max(0, int(moment))
    return seek_token, at_ms


def _part(lines: Iterable[TranscriptLine], title: str = "", none: str = "") -> dict[str, Any]:
    shown = list[dict[str, Any]]()
    for line in lines:
        text, marks = line.text, [mark for mark in line.marks if mark[1] <= MAX_CHARS]
        # Some lines name their kind themselves.
        needs_kind = line.group not in (SAID, CHAPTER) and not text.startswith(f"{line.group}: ")
        shown.append(
            {
                "at": line.span.start_ms,
                "clock": format_time(line.span.start_ms),
                "who": line.who,
                "kind": translate(line.group) if needs_kind else "",
                "tone": "chapter" if line.group == CHAPTER else "",
                "text": text if len(text) <= MAX_CHARS else text[:MAX_CHARS].rstrip() + " …",
                "marks": marks,
            }
        )
    return {"title": title, "none": none, "lines": shown}


def _draw(
    video: Video,
    parts: Sequence[dict[str, Any]],
    at_ms: int,
    seek_token: str,
    window: TranscriptWindow | None = None,
) -> None:
    """Draw lines; a line that the browser cannot play by itself is sought here."""
    earlier, later = (window.earlier_ms, window.later_ms) if window else (None, None)
    data = {
        "name": translate("Transcript of {title}").format(title=video.title),
        "video": video.id,
        "parts": parts,
        "at": at_ms,
        "seek": seek_token,
        "follows": window is not None,
        "from": window.from_ms if window else 0,
        "until": window.until_ms if window else None,
        "earlier": earlier,
        "earlier_label": translate("Earlier, from {time} back").format(time=format_time(earlier))
        if earlier is not None
        else "",
        "later": later,
        "later_label": translate("Later lines"),
    }
    result = component("transcript")(
        key=STATE, data=data, on_picked_change=lambda: None, on_window_change=lambda: None
    )
    _play_picked(video, getattr(result, "picked", None))


def _play_picked(video: Video, picked: object) -> None:
    if isinstance(picked, int | float):
        seek(video.id, max(0, int(picked)))
        st.rerun()
