"""The people page: who is in a video, when they appear, and corrections."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import streamlit as st

from domain.errors import NotFound
from domain.media import Video
from domain.people import LibraryPerson, LikelySame, PersonOfVideo
from domain.time import TimeSpan
from domain.words import (
    counted,
    format_span,
    format_time,
    join_words,
    marked,
    translate,
    translate_count,
)
from library import people as acts
from store.database import Store
from ui.app_state import page_state
from ui.corrections import (
    CorrectionResult,
    apply_correction,
    correct,
    display_name,
    forget_form,
    forget_person,
    in_sentence,
    merge_people,
    name_field,
    selection_key,
    show_history,
    show_last_result,
    show_merge_bar,
    show_split_form,
)
from ui.formatting import escape_markdown
from ui.library_people import likely_pair, show_crop, show_library_people
from ui.navigation import (
    choice_param,
    int_param,
    page_link,
    paginated,
    select_video,
    set_params,
    streamlit_page,
    time_param,
)
from ui.player import Lane, TimelineBar, seek, show_player, show_timeline

# Lanes of a timeline that show when people are seen and heard.

LEGEND = marked("Blue: seen. Green: heard. Click to play.")
LABELS = {"seen": marked("{name} is seen {time}"), "heard": marked("{name} is heard {time}")}
"""Names of a bar, by the sense."""


def appearance_lane(
    number: int, name: str, seen: Sequence[TimeSpan], heard: Sequence[TimeSpan]
) -> Lane:
    """Return the lane of a person; a bar's id has the number and the start in milliseconds."""
    bars = [
        *_bars(number, name, seen, "seen", "upper"),
        *_bars(number, name, heard, "heard", "second lower"),
    ]
    return Lane(name, bars)


def _bars(
    number: int, name: str, spans: Sequence[TimeSpan], sense: str, tone: str
) -> list[TimelineBar]:
    return [
        TimelineBar(
            f"{number}@{span.start_ms}",
            span.start_ms,
            span.end_ms,
            translate(LABELS[sense]).format(name=name, time=format_span(span)),
            tone=tone,
        )
        for span in spans
    ]


def picked_appearance(picked: str) -> tuple[int, int]:
    """Return the person and the moment in milliseconds of a bar that was clicked."""
    number, _, start = picked.partition("@")
    return int(number), int(start)


PEOPLE_PER_PAGE = 12
"""People per page."""
SOURCES = {
    "said": marked("said"),
    "read": marked("on screen"),
    "caption": marked("captions"),
    "person": marked("by you"),
}
"""Where a name is from, in words."""
ONE_VIDEO, ALL_VIDEOS = marked("One video"), marked("All videos")
GRID = """<style>
.st-key-faces { display: grid; gap: 0.8rem;
  grid-template-columns: repeat(auto-fill, minmax(8.5rem, 1fr)); }
</style>"""
"""Cards beside each other, as many as fit."""
MAX_SUGGESTIONS = 8


def people_page() -> None:
    """Draw the people of the video that the address names."""
    st.title(translate("People"))
    store = page_state().store
    shown = choice_param(translate("Show"), (ONE_VIDEO, ALL_VIDEOS), "of")
    if shown == ALL_VIDEOS:
        show_library_people(store)
        return
    video = select_video(store)
    if video is None:
        return
    show_last_result(store, video.id)
    number = int_param("person")
    people = paginated(
        lambda start: acts.people_of_video(store, video.id, None, start, PEOPLE_PER_PAGE),
        size=PEOPLE_PER_PAGE,
    )
    if not people:
        st.write(translate("Nobody was recognised in this video yet."))
        if st.button(translate("Open the video"), type="primary"):
            st.switch_page(streamlit_page("video"), query_params={"video": video.id})
        show_history(store, video)
        return
    chosen = None
    if number is not None:
        with suppress(NotFound):
            chosen = acts.person_of_library(store, video.id, str(number))
    left, right = st.columns([3, 2])
    with left:
        st.html(GRID)
        show_merge_bar(store, video.id, people)
        with st.container(key="faces"):
            for person in people:
                with st.container(border=True, key=f"person_{person.number}"):
                    _show_card(store, person, is_chosen=person.number == number)
    with right:
        show_player(video, time_param() or 0)
        if chosen is not None:
            _show_person(store, video, chosen)
    st.header(translate("When they appear"), anchor=False)
    lanes = [
        appearance_lane(one.number, display_name(one), one.seen_spans, one.heard_spans)
        for one in people
    ]
    name = translate("When people are seen and heard in {title}").format(title=video.title)
    st.caption(translate(LEGEND))
    marked_lane = "" if number is None else str(number)
    picked = show_timeline(name, video.duration_ms, lanes, "appearances", chosen=marked_lane)
    if picked:
        number, start_ms = picked_appearance(picked)
        seek(video.id, start_ms)
        set_params(person=number)
        st.rerun()
    if store.may_change:
        st.header(translate("Same person?"), anchor=False)
        pairs = acts.likely_same_people(store, video.id, limit=MAX_SUGGESTIONS)
        if not pairs:
            st.caption(translate("No likely duplicates."))
        for pair in pairs:
            _show_suggestion(store, pair)
    show_history(store, video)


def _show_card(store: Store, person: PersonOfVideo, *, is_chosen: bool) -> None:
    number, name = person.number, display_name(person)
    show_crop(store, person.crop, name)
    name_field(store, person, person.label if person.names else "", name)
    facts = [format_span(person.span)] if person.span else []
    if person.seen:
        facts.append(translate_count("seen {number} time", "seen {number} times", person.seen))
    if person.heard:
        facts.append(translate_count("heard {number} time", "heard {number} times", person.heard))
    st.caption(escape_markdown(", ".join(facts)))
    for candidate in person.maybe:
        st.caption(
            escape_markdown(
                translate("May be person {number}: {reason}").format(
                    number=candidate.number, reason=translate(candidate.reason)
                )
            )
        )
    with st.container(horizontal=True, vertical_alignment="center", key=f"do_{number}"):
        if store.may_change:
            st.checkbox(translate("Select"), key=selection_key(person.video, number))
        if st.button(
            translate("Open"),
            key=f"open_{number}",
            help=escape_markdown(translate("Show {name}").format(name=name)),
            disabled=is_chosen,
        ):
            set_params(person=number)
            st.rerun()


def _show_person(store: Store, video: Video, everywhere: LibraryPerson) -> None:
    person = next(one for one in everywhere.characters if one.video == video.id)
    st.header(escape_markdown(display_name(person)), anchor=False)
    names = [
        f"{name.name} ({translate(SOURCES.get(name.source, name.source))})" for name in person.names
    ]
    if names:
        st.write(escape_markdown(", ".join(names)))
    every = {*person.seen_spans, *person.heard_spans}
    spans = sorted(every, key=lambda span: (span.start_ms, span.end_ms))[:6]
    with st.container(horizontal=True, key="moments"):
        for index, span in enumerate(spans):
            st.button(
                f"▶ {format_time(span.start_ms)}",
                key=f"moment_{person.number}_{index}",
                on_click=seek,
                args=(video.id, span.start_ms),
            )
    others = [one for one in everywhere.characters if one.video != video.id]
    if others:
        st.caption(translate("The same person"))
    for one in others:
        label = translate("{name} in {title}").format(name=display_name(one), title=one.title)
        page_link("people", escape_markdown(label), video=one.video, person=one.number)
    if not store.may_change:
        return
    if len(person.tags) > 1:
        show_split_form(store, person)

    def forget(*, keep_file: bool) -> None:
        apply_correction(lambda: _forgotten(person, keep_file=keep_file))
        set_params(person=None)

    title = translate("Forget this person")
    forget_form(title, display_name(person), str(person.number), forget)


def _forgotten(person: PersonOfVideo, *, keep_file: bool) -> CorrectionResult:
    (done,) = forget_person(person, keep_file=keep_file)
    return CorrectionResult(
        translate("{name} is forgotten: {texts} rewritten, {images} and {answers} deleted.").format(
            name=display_name(person),
            texts=counted(done.rewritten, "text"),
            images=counted(done.images, "image"),
            answers=counted(done.answers, "answer"),
        )
    )


def _show_suggestion(store: Store, pair: LikelySame[PersonOfVideo]) -> None:
    one, other = pair.one, pair.other
    names = display_name(one), display_name(other)
    with likely_pair(store, pair, join_words(names)) as key:
        for person in (one, other):
            if person.span is not None:
                st.button(
                    f"▶ {escape_markdown(display_name(person))}",
                    key=f"first_{key}_{person.number}",
                    on_click=seek,
                    args=(person.video, person.span.start_ms),
                )
        st.button(
            translate("Yes, the same"),
            key=f"yes_{key}",
            on_click=merge_people,
            args=(store, one.video, [other], one),
        )
        numbers = str(one.number), str(other.number)
        st.button(
            translate("No"),
            key=f"no_{key}",
            on_click=partial(
                correct,
                lambda: acts.keep_people_apart(store, one.video, numbers[0], numbers[1]),
                marked("{first} and {second} are two people."),
                first=names[0],
                second=in_sentence(other),
            ),
        )
