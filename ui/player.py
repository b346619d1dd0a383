"""The video player, and the buttons that seek to a moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st

from auth.signing_in import sign_path
from domain.errors import InputError
from domain.media import Video
from domain.moments import Moment
from domain.people import tags_in_words
from domain.time import TimeSpan
from domain.words import counted, format_span, format_time, translate
from flows.video_file import cut_preview
from library.memory import load_stream_details
from library.moments import frames_around
from perception.source import original_file
from store.database import Store
from store.queries.blobs import recordings_in
from ui.app_state import page_state
from ui.components import component
from ui.formatting import escape_markdown
from ui.media import stored_image
from ui.navigation import time_param

PLAYER, SOUGHT = "player", "sought by player"
"""The key of the player, of which a page has one, and that of what it sought last."""
UNPLAYABLE = "unplayable"
"""The ids of videos whose files this session's browser did not play."""


def show_player(video: Video, start_ms: int = 0, *, reports: bool = False) -> None:
    """Play a video from ``start_ms``, or from the moment that was sought last.

    Of a stream the recording of the clip at that moment is played; of a file that the browser
    cannot play, a copy of the part at that moment. Without any file the keyframes of that moment
    are shown.

    Args:
        start_ms: the position until a moment is sought.
        reports: it tells the page where it is, which is drawn anew then (``played_ms``).
    """
    seek_token, at_ms = sought_moment(video, start_ms)
    try:
        source = _source(page_state().store, video, at_ms)
    except (InputError, OSError) as error:
        reason = escape_markdown(str(error))
        st.warning(translate("This moment cannot be played: {reason}").format(reason=reason))
        source = None
    if source is None:
        store = page_state().store
        st.caption(_why_missing(video, is_stream=load_stream_details(store, video.id) is not None))
        with st.container(horizontal=True, key=f"frames_of_{video.id}"):
            for frame in frames_around(store, video.id, at_ms):
                show_keyframe(store, frame)
        return
    data: dict[str, Any] = {
        "name": PLAYER,
        "file": source.name,
        "url": sign_path(source.path),
        "label": translate("Video: {title}").format(title=video.title),
        "start_s": max(0, at_ms - source.span.start_ms) / 1000,
        "seek": seek_token,
        # It plays by itself only once somebody went to a moment.
        "play": not seek_token.startswith("0:"),
        "reports": reports,
        "from_s": source.span.start_ms / 1000,
        "length_s": source.span.length_ms / 1000,
        "pictures": video.has_video,
        # A stream may have a gap there.
        "goes_on": source.span.end_ms < video.duration_ms
        and is_playable(page_state().store, video, source.span.end_ms),
        "video": video.id,
        "problem": translate(
            "This browser cannot play the video. Open the page again, or save the moment as a file."
        ),
    }

    def note_unplayable() -> None:
        st.session_state.setdefault(UNPLAYABLE, set()).add(video.id)

    def go_on() -> None:
        seek(video.id, source.span.end_ms)

    listeners = {"on_unplayable_change": note_unplayable, "on_ended_change": go_on}
    if reports:
        listeners["on_at_change"] = lambda: None
    component("player")(key=PLAYER, data=data, **listeners)
    if video.id in st.session_state.get(UNPLAYABLE, ()):
        st.caption(
            translate(
                "Your browser cannot play this file as it is: a copy of {time} is played, then the "
                "next part."
            ).format(time=format_span(source.span))
        )


def played_ms(video: Video) -> int:
    """Return where a player that reports is, or was sought last; the start of the address else.

    It reports the moment when it is paused or sought, and every few seconds while it plays.
    """
    played, at_ms, seeks = st.session_state.get(SOUGHT, ("", 0, 0))
    reported = getattr(st.session_state.get(PLAYER), "at", None)
    if isinstance(reported, dict) and reported.get("file") == video.id:
        # Until the player has followed the last seek, it reports where it was before.
        is_of_last_seek = reported.get("seek") == f"{seeks}:{at_ms}" or played != video.id
        if is_of_last_seek and isinstance(seconds := reported.get("s"), int | float):
            return max(0, round(1000 * seconds))
    return at_ms if played == video.id else time_param() or 0


class _Source(NamedTuple):
    """What is played: its name in the page, its path, and its span of video time."""

    name: str
    path: str
    span: TimeSpan


def _source(store: Store, video: Video, at_ms: int) -> _Source | None:
    """Return the file of a video, or the part of it at a moment; None without any."""
    if original_file(store.home, video.id, video.path) is None:
        return _recorded(store, video, at_ms)
    if video.id not in st.session_state.get(UNPLAYABLE, ()):
        return _Source(video.id, f"/video/{video.id}", TimeSpan.of(0, video.duration_ms))
    # This browser did not play the file: a part is encoded for it.
    with st.spinner(translate("Preparing this part for your browser …")):
        part = cut_preview(store, video, at_ms)
    name = f"{video.id}-{part.span.start_ms}" if part else ""
    return _Source(name, f"/preview/{name}", part.span) if part else None


def _recorded(store: Store, video: Video, at_ms: int) -> _Source | None:
    with store.begin() as session:
        found = recordings_in(session, video.id, TimeSpan.of(at_ms, at_ms + 1))
    if not found:
        return None
    span = TimeSpan.of(found[0].start_ms, max(found[0].start_ms, found[0].span.end_ms))
    return _Source(f"{video.id}-{found[0].clip}", f"/recording/{found[0].blob}", span)


def is_playable(store: Store, video: Video, at_ms: int) -> bool:
    """Check whether a video's file is there, or a recording of the clip at a moment."""
    return (
        original_file(store.home, video.id, video.path) is not None
        or _recorded(store, video, at_ms) is not None
    )


def sought_moment(video: Video, start_ms: int) -> tuple[str, int]:
    """Return the moment that a player sought last, else ``start_ms``, after what names that seek.

    The name begins with ``0:`` until a moment is sought.
    """
    played, at_ms, seeks = st.session_state.get(SOUGHT, ("", 0, 0))
    if played != video.id:
        at_ms, seeks = start_ms, 0
    return f"{seeks}:{at_ms}", at_ms


def seek(video: str, at_ms: int) -> None:
    """Seek a player to a moment, also when it sought the same one before."""
    _name, _at, seeks = st.session_state.get(SOUGHT, ("", 0, 0))
    st.session_state[SOUGHT] = (video, at_ms, seeks + 1)


def played_video() -> str:
    """Return the id of the video that a player sought last, or an empty string."""
    video: str = st.session_state.get(SOUGHT, ("", 0, 0))[0]
    return video


def show_keyframe(store: Store, frame: Moment) -> None:
    data = stored_image(store, frame.blob)
    if data:
        time, description = format_time(frame.span.start_ms), tags_in_words(frame.text)
        caption = f"{time}  {escape_markdown(description)}".strip()
        alt = description or translate("Frame of the video at {time}").format(time=time)
        st.image(data, caption=caption, alt=alt, width=190)


def _why_missing(video: Video, *, is_stream: bool) -> str:
    if not video.path and is_stream:
        return translate("This stream was not recorded: only its keyframes can be shown.")
    if not video.path:
        return translate(
            "There is no video file to play: it has captions only, or came with an import. "
            "If you have its file, add it again from its new place: its memory stays."
        )
    reason = (
        translate(
            "The file at {path} has changed since it was watched. Put it back, or add it again "
            "from its new place: its memory stays."
        )
        if Path(video.path).is_file()
        else translate(
            "The file at {path} is missing. Put it back, or add it again from its new place: its "
            "memory stays."
        )
    )
    return reason.format(path=escape_markdown(video.path))


# A timeline of a video: lanes of spans, for mouse and keyboard, drawn by the browser.

TONES = ("", "second", "third", "fourth")
"""CSS classes of the colours of bars, all dark enough for white text."""


@dataclass(frozen=True)
class TimelineBar:
    """One span in ms, or a link between two moments.

    ``label`` is its tooltip and accessible name, ``text`` is drawn on it. The ``tone`` of a link is
    temporal or causal.
    """

    id: str
    start: int
    end: int
    label: str
    text: str = ""
    tone: str = ""


@dataclass(frozen=True)
class Lane:
    """A row of bars with a name."""

    name: str
    spans: Sequence[TimelineBar]


def pack_rows(bars: Sequence[TimelineBar], max_rows: int = 8) -> list[list[TimelineBar]]:
    """Pack bars into rows without overlaps; beyond ``max_rows`` rows the last takes the rest."""
    rows: list[list[TimelineBar]] = []
    for bar in sorted(bars, key=lambda bar: (bar.start, bar.end)):
        free = [row for row in rows if row[-1].end <= bar.start]
        if free:
            free[0].append(bar)
        elif len(rows) < max_rows:
            rows.append([bar])
        else:
            rows[-1].append(bar)
    return rows


def show_timeline(
    name: str,
    length_ms: int,
    lanes: Sequence[Lane],
    key: str,
    *,
    start_ms: int = 0,
    chosen: str = "",
    arcs: Sequence[TimelineBar] = (),
    arcs_name: str = "",
) -> str | None:
    """Draw lanes from ``start_ms`` on; return the id of a bar or arc that was just clicked."""
    data = {
        "name": name,
        "start": start_ms,
        "length": max(1, length_ms),
        "lanes": [{"name": lane.name, "spans": [*map(vars, lane.spans)]} for lane in lanes],
        "arcs": [*map(vars, arcs)],
        "arcs_name": arcs_name,
        "arcs_label": translate("{links}; the list below has them in words").format(
            links=counted(len(arcs), "link")
        ),
        "chosen": chosen,
    }
    result = component("timeline")(key=key, data=data, on_picked_change=lambda: None)
    picked = getattr(result, "picked", None)
    return str(picked) if picked else None
