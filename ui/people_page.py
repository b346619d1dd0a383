"""The people page: who is in a video, when they appear, corrections; the people of the library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

import streamlit as st

from domain.errors import NotFound
from domain.media import IdentityKind, Video
from domain.people import LibraryPerson, LikelySame, PersonOfVideo
from domain.time import TimeSpan
from domain.words import (
    counted,
    format_number,
    format_span,
    format_time,
    join_words,
    marked,
    translate,
    translate_count,
)
from library import people as acts
from people.likely_same import accept
from store.database import Store
from ui.app_state import page_state
from ui.corrections import (
    LIBRARY,
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
from ui.media import stored_image
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
        # An address may name somebody who was merged or forgotten in the meantime.
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
    # Who is seen and heard at a time has it in both.
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


# The people of the library: who is in several videos, and who may be the same person.


PERSONS_PER_PAGE = 12
"""Persons per page."""
MOST_LIKELY = 8
"""Pairs that are suggested at most at a time."""


def show_library_people(store: Store) -> None:
    """Draw the persons of the library, a page at a time, and the pairs that may be one person."""
    show_last_result(store, LIBRARY)
    page = int_param("page", 1) or 1
    found = acts.people_of_library(store, (page - 1) * PERSONS_PER_PAGE, PERSONS_PER_PAGE)
    if not found.items:
        st.write(translate("Nobody is known by name yet, or joined across videos."))
    for person in found.items:
        first, last = person.characters[0], person.last_seen
        key = f"{first.video}_{first.number}"
        name = "" if person.label.startswith("<") else person.label
        shown = name or display_name(first)
        with st.container(border=True, key=f"person_{key}"):
            name_field(store, first, name, shown)
            if last is not None:
                text = (
                    translate("Last seen {time} of {title}")
                    if last.seen
                    else translate("Last heard {time} of {title}")
                ).format(time=format_span(last.span), title=last.title)
                page_link(
                    "video", escape_markdown(text), video=last.video, t=last.span.start_ms // 1000
                )
            with st.container(horizontal=True, key=f"videos_{key}"):
                for one in person.characters:
                    _show_character(store, one, joined=len(person.characters) > 1)
            if store.may_change:
                title = translate("Forget this person in all their videos")
                forget_form(title, shown, key, partial(_forget, person, shown))
    with st.container(horizontal=True, key="pages"):
        _page_button(translate("Previous"), page - 1, disabled=page == 1)
        _page_button(translate("Next"), page + 1, disabled=found.next is None)
    if not store.may_change:
        return
    st.header(translate("Same person?"), anchor=False)
    pairs = acts.likely_same_people(store, limit=MOST_LIKELY)
    if not pairs:
        st.caption(translate("No likely pairs in different videos."))
        return
    sure = [pair for pair in pairs if pair.sure]
    st.button(
        translate("Join {pairs}").format(pairs=counted(len(sure), "sure pair")),
        disabled=not sure,
        help=translate("Join the pairs that are far above the threshold of their model"),
        on_click=_join_sure,
        args=(store, [pair.one.video for pair in sure]),
    )
    for pair in pairs:
        _show_pair(store, pair)


def show_crop(store: Store, blob: str | None, name: str) -> None:
    """Draw a crop of a face, if there is one."""
    data = stored_image(store, blob)
    if data:
        st.image(data, alt=translate("Face of {name}").format(name=name), width=110)
    else:
        st.caption(translate("Only heard"))


def _page_button(label: str, page: int, *, disabled: bool) -> None:
    if st.button(label, disabled=disabled, key=f"page_{page}"):
        set_params(page=page if page > 1 else None)
        st.rerun()


def _forget(person: LibraryPerson, shown: str, *, keep_file: bool) -> None:
    """Forget a person in all their videos, and offer one file that has what restores them."""

    def change() -> CorrectionResult:
        forget_person(person.characters[0], keep_file=keep_file, everywhere=True)
        titles = join_words([one.title for one in person.characters])
        message = translate("{name} is forgotten in {titles}.").format(name=shown, titles=titles)
        return CorrectionResult(message)

    apply_correction(change)


def _show_character(store: Store, one: PersonOfVideo, *, joined: bool) -> None:
    key = f"{one.video}_{one.number}"
    name = display_name(one)
    with st.container(width=180, key=f"in_{key}"):
        show_crop(store, one.crop, name)
        page_link("people", escape_markdown(one.title), video=one.video, person=one.number)
        if joined and store.may_change:
            st.button(
                translate("Somebody else"),
                key=f"split_{key}",
                help=translate("Split this person off those of the other videos"),
                on_click=partial(
                    correct,
                    lambda: acts.split_person(store, one.video, str(one.number)),
                    marked("{name} of {title} is somebody else."),
                    name=name,
                    title=one.title,
                ),
            )


def _show_pair(store: Store, pair: LikelySame[PersonOfVideo]) -> None:
    one, other = pair.one, pair.other
    both = translate("{name} in {title} and {other} in {other_title}").format(
        name=display_name(one),
        title=one.title,
        other=display_name(other),
        other_title=other.title,
    )
    with likely_pair(store, pair, both) as key:
        for person in (one, other):
            if person.last_seen is not None:
                at = person.last_seen.span.start_ms // 1000
                page_link("video", escape_markdown(f"▶ {person.title}"), video=person.video, t=at)
        numbers = str(one.number), str(other.number)
        st.button(
            translate("Yes, the same"),
            key=f"yes_{key}",
            on_click=partial(
                correct, lambda: accept(store, pair), marked("{both} are one person."), both=both
            ),
        )
        st.button(
            translate("No"),
            key=f"no_{key}",
            on_click=partial(
                correct,
                lambda: acts.keep_people_apart(
                    store, one.video, numbers[0], numbers[1], other.video
                ),
                marked("{both} are two people."),
                both=both,
            ),
        )


@contextmanager
def likely_pair(store: Store, pair: LikelySame[PersonOfVideo], both: str) -> Iterator[str]:
    """Draw two who may be one person; what is drawn in the block stands below. Yields a key."""
    one, other = pair.one, pair.other
    key = f"{one.video}_{one.number}_{other.video}_{other.number}"
    with st.container(border=True, key=f"pair_{key}"):
        left, right, text = st.columns([1, 1, 4])
        for column, person in ((left, one), (right, other)):
            with column:
                show_crop(store, person.crop, display_name(person))
        with text:
            st.write(escape_markdown(both))
            share = format_number(pair.cosine, ".0%")
            alike = (
                translate("They look alike: {share}")
                if pair.kind is IdentityKind.FACE
                else translate("They sound alike: {share}")
            ).format(share=share)
            sure = translate(", sure") if pair.sure else ""
            st.caption(f"{alike}{sure}")
            with st.container(horizontal=True, key=f"say_{key}"):
                yield key


def _join_sure(store: Store, videos: Sequence[str]) -> None:
    def change() -> CorrectionResult:
        done = [
            one for video in dict.fromkeys(videos) for one in acts.join_sure_people(store, video)
        ]
        joined = counted(len(done), "pair")
        return CorrectionResult(translate("Joined {pairs}.").format(pairs=joined))

    apply_correction(change)
