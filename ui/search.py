"""The search page: moments of the whole library, as one types, with filters and saved searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from domain.errors import HomerError
from domain.words import counted, format_time, translate, translate_sentence
from library.library_search import (
    Added,
    LibraryQuery,
    LibraryResult,
    LibraryResults,
    delete_search,
    list_searches,
    save_search,
    search_library,
)
from library.transcript import GROUPS
from library.videos import newest_titles
from models.text_endpoint import recorded_search
from ui.app_state import PageState, page_state, show_error
from ui.evidence import show_limits
from ui.formatting import escape_markdown
from ui.language import use_language
from ui.media import stored_image
from ui.navigation import page_link, set_params, show_empty, text_param, text_params

MAX_CHARS = 200
"""Characters shown of a line."""
MAX_QUERY_CHARS = 500
"""Characters of a query; the rest of a longer one is not read."""
MAX_NAME_CHARS = 80
"""Characters of the name of a saved search."""
ERROR = "search error"
GRID = """<style>
.st-key-found, .st-key-close, .st-key-pictures { display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 15rem), 1fr)); }
:is(.st-key-found, .st-key-close, .st-key-pictures) [data-testid=stImage] img {
  aspect-ratio: 16 / 9; object-fit: cover; }
[data-testid=stButtonGroup] :is([aria-checked=true], [aria-pressed=true], [data-selected]) p,
[data-testid=stButtonGroup] [kind=pillsActive] p {
  color: light-dark(#1d4ed8, #7cb0ff) !important; }
</style>"""
"""Cards beside each other, as many as fit; chosen chips can be read in the dark theme too."""


def search_page() -> None:
    st.title(translate("Search"))
    state = page_state()
    if not newest_titles(state.store, 1):
        show_empty(translate("Nothing has been watched yet."), translate("Add a video"), "library")
        return
    st.html(GRID)
    saved = list_searches(state.store)
    _show_saved(saved)
    words = st.text_input(
        translate("Search all videos"),
        key="q",
        bind="query-params",
        icon=":material/search:",
        placeholder=translate("Words that were said, shown, seen or heard"),
        live=True,
    )
    added = text_param("added")
    query = LibraryQuery(
        words=(words or "")[:MAX_QUERY_CHARS],
        videos=tuple(text_params("video")),
        person=text_param("person"),
        groups=tuple(group for group in GROUPS if group in text_params("kind")),
        added=Added(added) if added in set(Added) else Added.EVER,
    )
    if query.empty:
        _show_filters(query, LibraryResults())
        return
    try:
        with st.spinner(translate("Searching ...")), recorded_search(state.store) as cost:
            tools = state.toolbox(None)
            found = search_library(state.store, tools.text, query, images=tools.images)
    except HomerError as error:
        show_error(error)
        return
    _show_filters(query, found)
    _show_save(state, saved, query)
    if found.with_words:
        whole = counted(found.total, "moment")
        if found.more:
            whole = translate("More than {moments}").format(moments=whole)
        first = (
            translate(", the best {count}").format(count=len(found.with_words))
            if len(found.with_words) < found.total
            else ""
        )
        heading = (
            translate("{whole} with these words{first}").format(whole=whole, first=first)
            if query.words.strip()
            else f"{whole}{first}"
        )
        st.header(heading, anchor=False)
        _show_cards(state, query, found.with_words, "found")
    if found.close:
        st.header(translate("Close in meaning"), anchor=False)
        _show_cards(state, query, found.close, "close")
    if found.pictures:
        st.header(translate("Images"), anchor=False)
        _show_cards(state, query, found.pictures, "pictures")
    if not (found.with_words or found.close or found.pictures):
        st.write(translate("Nothing like this was found."))
    show_limits(cost.usage, unseen=tools.images is None and not found.with_words)


def _show_filters(query: LibraryQuery, found: LibraryResults) -> None:
    """Draw the filters as chips: kinds, when videos were added, and videos and people found."""
    with st.container(horizontal=True, key="filters"):
        kinds = st.pills(
            translate("Kind"),
            GROUPS,
            selection_mode="multi",
            default=list(query.groups),
            format_func=translate,
        )
        added = st.pills(
            translate("Added"),
            list(Added),
            default=query.added,
            required=True,
            wrap=True,
            format_func=translate,
        )
    # What was chosen stays a chip, also where nothing of it is found any more.
    titles = {**{video: video for video in query.videos}, **found.videos}
    videos, person = list(query.videos), query.person or None
    if titles:
        videos = st.pills(
            translate("Videos"),
            list(titles),
            selection_mode="multi",
            default=list(query.videos),
            format_func=lambda video: escape_markdown(titles[video]),
        )
    names = list(dict.fromkeys([*([query.person] if query.person else []), *found.people]))
    if names:
        person = st.pills(
            translate("People"), names, default=query.person or None, format_func=escape_markdown
        )
    chosen = LibraryQuery(
        words=query.words,
        videos=tuple(videos),
        person=person or "",
        groups=tuple(group for group in GROUPS if group in kinds),
        added=Added(added),
    )
    if chosen != query:
        _set_query(chosen)
        st.rerun()


def _set_query(query: LibraryQuery) -> None:
    """Write what is sought to the address, but for the words, which their field writes."""
    st.query_params["video"] = list(query.videos)
    st.query_params["kind"] = list(query.groups)
    set_params(
        person=query.person or None,
        added=None if query.added is Added.EVER else str(query.added),
    )


def _show_cards(
    state: PageState, query: LibraryQuery, results: Sequence[LibraryResult], key: str
) -> None:
    with st.container(key=key):
        for line in results:
            clock = format_time(line.span.start_ms)
            with st.container(border=True, key=f"{key}_{line.id}"):
                data = stored_image(state.store, line.blob)
                if data:
                    st.image(
                        data,
                        alt=translate("{title} at {time}").format(title=line.title, time=clock),
                        width="stretch",
                    )
                label = escape_markdown(f"{line.title}, {clock}")
                page_link(
                    "video", label, video=line.video, t=clock, find=query.words.strip() or None
                )
                who = f"**{escape_markdown(line.who)}:** " if line.who else ""
                st.markdown(f"{who}{_marked(line.text, line.marks)}")
                st.caption(translate(line.group))


def _marked(text: str, marks: Sequence[tuple[int, int]]) -> str:
    """Return a text as Markdown with its marks in bold, cut after ``MAX_CHARS`` characters."""
    shown, at = "", 0
    for start, end in marks:
        if end > MAX_CHARS:
            break
        shown += _escape(text[at:start]) + f"**{_escape(text[start:end])}**"
        at = end
    rest = text[at : max(at, MAX_CHARS)]
    return shown + _escape(rest) + (" …" if at + len(rest) < len(text) else "")


def _escape(text: str) -> str:
    """Escape a part of a text; the spaces around it are kept."""
    core = text.strip()
    return text.replace(core, escape_markdown(core)) if core else text


def _show_saved(saved: Mapping[str, LibraryQuery]) -> None:
    """Draw the saved searches; a press opens one."""
    if message := st.session_state.pop(ERROR, None):
        st.error(escape_markdown(translate_sentence(message)))
    if not saved:
        return
    with st.container(horizontal=True, key="saved", vertical_alignment="center"):
        st.caption(translate("Saved:"))
        for name, query in saved.items():
            st.button(
                escape_markdown(name),
                key=f"saved_{name}",
                icon=":material/bookmark:",
                type="tertiary",
                on_click=_open_search,
                args=(query,),
            )


def _open_search(query: LibraryQuery) -> None:
    # A callback may set what a field has; the page that draws it may not.
    st.session_state["q"] = query.words
    _set_query(query)


def _show_save(state: PageState, saved: Mapping[str, LibraryQuery], query: LibraryQuery) -> None:
    """Draw the button that saves what is sought under a name, or deletes it if it is saved."""
    if not state.store.may_change:
        return
    known = next((name for name, one in saved.items() if one == query), None)
    if known is not None:
        label = translate("Delete the saved search {name}").format(name=known)
        st.button(escape_markdown(label), key="unsave", type="tertiary",
                  icon=":material/bookmark_remove:", on_click=_change,
                  args=(state, known, None))  # fmt: skip
        return
    with (
        st.popover(translate("Save this search"), icon=":material/bookmark_add:", type="tertiary"),
        st.form("save_search", border=False),
    ):
        name = st.text_input(
            translate("Name"), query.words or query.person, max_chars=MAX_NAME_CHARS
        )
        if st.form_submit_button(translate("Save"), type="primary"):
            _change(state, name, query)
            st.rerun()


def _change(state: PageState, name: str, query: LibraryQuery | None) -> None:
    """Save a search, or delete it where there is no query."""
    use_language()
    try:
        if query is None:
            delete_search(state.store, name)
        else:
            save_search(state.store, name, query)
    except HomerError as error:
        st.session_state[ERROR] = str(error)
