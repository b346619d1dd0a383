"""The view Live of a stream: what is kept of it now, and questions while it is watched."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import streamlit as st

from auth.signing_in import sign_path
from domain.asking import Question
from domain.errors import HomerError, InputError
from domain.media import Video
from domain.words import capitalized, counted, format_time, translate
from flows.video_locks import is_watched
from library.rounds import load_history
from library.strategies import Frames, KeptNow, ShownHeldEvent, load_live_memory
from ui.answer import show_run
from ui.app_state import PageState, page_state, show_error, show_errors
from ui.ask import question_field, strategy_field, warn
from ui.formatting import escape_markdown, format_bytes
from ui.navigation import set_params, text_param

POLL_S = 2.0
"""Seconds between polls of a stream."""
STRIPS = """<style>
.homer-strip { display: flex; flex-wrap: wrap; gap: .5rem .75rem; }
.homer-strip figure { margin: 0; padding-inline-start: .4rem;
  border-inline-start: 3px solid #ff9f1a; }
.homer-strip .frames { display: flex; flex-wrap: wrap; gap: 2px; }
.homer-strip img { height: 4rem; border-radius: .2rem; }
.homer-strip.tier-1 img { height: 3.2rem; }
.homer-strip.tier-2 img { height: 2.5rem; }
.homer-strip figcaption { font-size: .8rem; }
@media (max-width: 640px) { .homer-strip img, .homer-strip.tier-1 img { height: 2.5rem; } }
</style>"""
"""Frames beside each other, smaller the older their tier is."""


def show_live(state: PageState, video: Video) -> None:
    """Draw the box for a question about a stream, its answer, and what is kept of it."""
    _ask(state, video)
    # The run that the address names, if it is about this video.
    if name := text_param("trajectory"):
        try:
            run = load_history(state.store, name)
        except InputError as error:
            show_error(error)
        else:
            # An address may name a run about other videos.
            if video.id in run.row.question.videos:
                with st.container(border=True, key="live_answer"):
                    st.markdown(f"**{escape_markdown(run.row.question.text)}**")
                    show_run(state, run, with_player=False)
    st.html(STRIPS)
    through_ms, kept = load_live_memory(state.store, video.id)
    if is_watched(state.store, video.id):
        _poll(video.id, through_ms)
    else:
        _show_kept(through_ms, kept, watched=False)


@st.fragment(run_every=POLL_S)
def _poll(video: str, drawn_through_ms: int) -> None:
    """Draw what is kept anew as the stream goes on; the page was drawn at that moment of it."""
    with show_errors():
        state = page_state()
        through_ms, kept = load_live_memory(state.store, video)
        if through_ms and not drawn_through_ms:
            st.rerun()  # Now there is a clip to play.
        _show_kept(through_ms, kept, watched=is_watched(state.store, video))


def _ask(state: PageState, video: Video) -> None:
    """Draw the box for a question; a question that is sent is about all that is in memory then."""
    with st.form("live_question", border=False):
        text, sent = question_field(
            translate("Ask"), translate("Ask about what was seen and said so far")
        )
        with st.popover(translate("Advanced options"), icon=":material/tune:"):
            strategy = strategy_field(state)
    with st.container():
        if not sent:
            return
        try:
            if not text.strip():
                raise InputError(translate("Write a question first."))
            question = Question(text=text.strip(), videos=(video.id,))
            with st.spinner(translate("Starting the search ...")):
                name = state.runs.ask(state.runner(state.profile), question, strategy)
        except (HomerError, ValueError) as error:
            warn(error)
            return
    set_params(trajectory=name)
    st.rerun()


def _show_kept(through_ms: int, kept: Sequence[KeptNow], *, watched: bool) -> None:
    through = translate("In memory up to {time}.").format(time=format_time(through_ms))
    if watched:
        st.markdown(f":material/sensors: **{translate('Being watched now.')}** {through}")
    else:
        st.markdown(f"**{translate('Not being watched now.')}** {through}")
    if not kept:
        st.caption(
            translate(
                "No frames are kept. `homer watch SOURCE --memory NAME` keeps those of a strategy."
            )
        )
    for one in kept:
        with st.container(border=True, key=f"kept_by_{one.strategy}"):
            st.markdown(f"**{escape_markdown(one.strategy)}**")
            st.caption(escape_markdown(one.title))
            if not one.tiers:
                st.caption(translate("No frame yet."))
            held = {blob for event in one.events or () for blob in event.frames.values()}
            if one.events is not None:
                count = sum(len(event.frames) for event in one.events)
                frames, events = counted(count, "frame"), counted(len(one.events), "event")
                size = translate("{frames} of {events}").format(frames=frames, events=events)
                st.markdown(f"**{translate('Short-term memory')}**: {size}")
                st.html(_strip("".join(map(_event, one.events)), 0))
            for place, tier in enumerate(one.tiers):
                times = translate("{start} to {end}").format(
                    start=format_time(tier.all.first_ms), end=format_time(tier.all.last_ms)
                )
                size = f"{counted(tier.all.frames, 'frame')}, {format_bytes(tier.all.bytes)}"
                line = f"{capitalized(translate(tier.name))}: {size}, {times}"
                st.markdown(escape_markdown(line))
                # Frames that the short-term memory shows above are not shown twice.
                if not set(tier.frames.values()) <= held:
                    st.html(_strip(f'<div class="frames">{_images(tier.frames)}</div>', place))


def _strip(content: str, place: int) -> str:
    return f'<div class="homer-strip tier-{place}">{content}</div>'


def _event(event: ShownHeldEvent) -> str:
    times = [*map(format_time, event.frames)]
    between = translate(", {start} to {end}").format(start=times[0], end=times[-1]) if times else ""
    of_seen = translate(": {count} of {frames}").format(
        count=len(times), frames=counted(event.seen, "frame")
    )
    caption = escape(
        translate("Event {number}{between}{of_seen}").format(
            number=event.number, between=between, of_seen=of_seen
        )
    )
    images = f'<div class="frames">{_images(event.frames)}</div>'
    return f"<figure>{images}<figcaption>{caption}</figcaption></figure>"


def _images(frames: Frames) -> str:
    """Return frames as HTML; the browser keeps them from one poll to the next."""
    alt = translate("Frame of the video at {time}")
    return "".join(
        f'<img src="{escape(sign_path("/image/" + blob))}" loading="lazy" '
        f'alt="{escape(alt.format(time=format_time(time_ms)))}" title="{format_time(time_ms)}">'
        for time_ms, blob in frames.items()
    )
