"""Pages of the app: links between them, their query parameters, pagination."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any, TypeVar

import streamlit as st

from domain.errors import InputError
from domain.media import Video
from domain.time import parse_clock
from domain.words import marked, translate
from library.params import Page
from library.videos import all_titles, videos_named
from store.database import Store
from ui.app_state import show_error

ADVANCED = marked("Advanced")
SECTIONS = {
    "": ("ask", "search", "library", "people", "history"),
    ADVANCED: ("alerts", "recaps", "compare", "skills", "evaluations", "schedules", "health"),
}
"""The pages of the navigation; each is a function ``NAME_page``, in ``ui/NAME.py`` or the file that
``MODULE_NAMES`` has for it."""
ICONS = {
    "ask": ":material/forum:",
    "search": ":material/search:",
    "library": ":material/video_library:",
    "people": ":material/group:",
    "alerts": ":material/notifications:",
    "recaps": ":material/summarize:",
    "history": ":material/history:",
    "compare": ":material/compare_arrows:",
    "skills": ":material/school:",
    "evaluations": ":material/monitoring:",
    "schedules": ":material/schedule:",
    "health": ":material/health_and_safety:",
}
TITLES = {
    "ask": marked("Ask"),
    "search": marked("Search"),
    "library": marked("Library"),
    "people": marked("People"),
    "alerts": marked("Alerts"),
    "recaps": marked("Recaps"),
    "history": marked("History"),
    "compare": marked("Compare"),
    "skills": marked("Skills"),
    "evaluations": marked("Evaluations"),
    "schedules": marked("Schedules"),
    "health": marked("Health"),
    "video": marked("Video"),
    "trajectory": marked("Trajectory"),
}
HIDDEN = ("video", "trajectory")
"""Pages of one video and of one question, which other pages link."""
PAGE_NAMES = (*SECTIONS[""], *SECTIONS[ADVANCED], *HIDDEN)

NOT_FOR_VIEWERS = ("alerts", "recaps", "skills", "evaluations", "schedules", "health")
"""Pages that show the whole library, or change it."""

MODULE_NAMES = {
    # Streamlit puts this folder first on the import path: no file may be named like a package.
    "people": "people_page",
    "skills": "skills_page",
    "history": "trajectory",
    "compare": "ask",
    **dict.fromkeys(("alerts", "recaps", "schedules"), "unattended"),
}
"""The files of pages that are not named like them."""


def streamlit_page(name: str) -> st.Page:
    """Return the page of that name, as the navigation has it."""
    module = import_module(f"ui.{MODULE_NAMES.get(name, name)}")
    draw: Callable[[], None] = getattr(module, f"{name}_page")
    return st.Page(
        draw,
        title=translate(TITLES[name]),
        url_path=name,
        default=name == PAGE_NAMES[0],
    )


def all_pages(*, viewer: bool = False) -> list[st.Page]:
    """Return the pages, the first one first; a ``viewer`` may not open those that change things."""
    names = [name for name in PAGE_NAMES if not viewer or name not in NOT_FOR_VIEWERS]
    return [*map(streamlit_page, names)]


def show_navigation(*, viewer: bool = False) -> None:
    """Draw the links to the pages, by section, in the sidebar; see ``all_pages``."""
    with st.sidebar:
        for title, all_names in SECTIONS.items():
            names = [name for name in all_names if not viewer or name not in NOT_FOR_VIEWERS]
            if title:
                st.caption(translate(title))
            for name in names:
                st.page_link(streamlit_page(name), icon=ICONS[name])


def show_empty(message: str, label: str, name: str) -> None:
    """Say that there is nothing yet, with a button that opens the page where one begins."""
    st.write(message)
    if st.button(label, type="primary", key=f"begin_{name}"):
        st.switch_page(streamlit_page(name))


def page_link(name: str, label: str, **values: object) -> None:
    """Draw a link to a page with query parameters; None leaves a parameter out."""
    query = {key: str(value) for key, value in values.items() if value is not None}
    st.page_link(streamlit_page(name), label=label, query_params=query)


MAX_PARAM_CHARS = 200
"""Characters read of a parameter, since addresses are untrusted input."""


def text_param(name: str) -> str:
    return str(st.query_params.get(name, ""))[:MAX_PARAM_CHARS]


def text_params(name: str) -> list[str]:
    """Return all values of a repeatable query parameter."""
    # From outside too: neither their number nor their length is unlimited.
    return [value[:MAX_PARAM_CHARS] for value in st.query_params.get_all(name)[:50]]


def int_param(name: str, minimum: int = 0) -> int | None:
    """Return an integer parameter, or None where it is missing or out of range."""
    value = text_param(name)
    if not value.isascii() or not value.isdigit() or len(value) > 9:
        return None
    return int(value) if int(value) >= minimum else None


def time_param() -> int | None:
    """Return a time parameter (``?t=2:05`` or ``?t=125``) in milliseconds, or None."""
    try:
        return parse_clock(text_param("t")) if text_param("t") else None
    except ValueError:
        return None


def choice_param(
    label: str, names: Sequence[str], name: str, draw: Callable[..., Any] | None = None
) -> str:
    """Draw a choice that the address has in English, and return it.

    Args:
        names: what there is to choose, in English; the first one is not in the address.
        name: the query parameter, and the key of the choice.
        draw: Streamlit's command; None: buttons beside each other.
    """
    draw = draw or partial(st.radio, horizontal=True)
    requested = text_param(name)
    st.session_state[name] = requested if requested in names else names[0]
    chosen = draw(
        label,
        names,
        format_func=translate,
        key=name,
        on_change=_write_choice,
        args=(name, names[0]),
    )
    return str(chosen)


def _write_choice(name: str, default: str) -> None:
    chosen = st.session_state[name]
    set_params(**{name: None if chosen == default else chosen})


def set_params(**values: object) -> None:
    """Set query parameters without a rerun; None removes one."""
    for name, value in values.items():
        if value is None:
            st.query_params.pop(name, None)
        elif st.query_params.get(name) != str(value):
            st.query_params[name] = str(value)


def update_address_bar() -> None:
    """Write the parameters to the browser's address bar; links within a page do not."""
    st.query_params.update()


PAGE_SIZE = 25
T = TypeVar("T")


def paginate(total: int, name: str = "page", size: int = PAGE_SIZE) -> int:
    """Draw the pagination of a list, and return the offset of the selected page.

    Args:
        total: entries in the whole list.
        name: the query parameter that holds the page number.
        size: entries per page.
    """
    pages = max(1, -(-total // size))
    requested = min(int_param(name, 1) or 1, pages)
    if pages == 1:
        return 0
    # Under another key when their number changes: a default counts but once.
    chosen = st.pagination(pages, default=requested, key=f"{name}_of_{pages}")
    set_params(**{name: chosen if chosen > 1 else None})
    first = (chosen - 1) * size
    st.caption(
        translate("{first} to {last} of {total}").format(
            first=first + 1, last=min(first + size, total), total=total
        )
    )
    return first


def requested_offset(name: str = "page", size: int = PAGE_SIZE) -> int:
    """Return the offset that the address asks for, before the total is known."""
    return ((int_param(name, 1) or 1) - 1) * size


def paginated(
    load: Callable[[int], Page[T] | tuple[Sequence[T], int]],
    name: str = "page",
    size: int = PAGE_SIZE,
) -> Sequence[T]:
    """Draw the pagination of a list, and return its page; ``load`` has that of an offset.

    It is loaded again where another page is chosen than the address asks for, or has.
    """
    requested = requested_offset(name, size)
    found = load(requested)
    total = found[1] if isinstance(found, tuple) else found.total
    offset = paginate(total, name, size)
    found = found if offset == requested else load(offset)
    return found[0] if isinstance(found, tuple) else found.items


def select_video(store: Store) -> Video | None:
    """Return the video of the page: named by the address, else selected; None without videos."""
    titles = all_titles(store)
    if not titles:
        show_empty(translate("Nothing has been watched yet."), translate("Add a video"), "library")
        return None
    names = list(titles)
    requested = text_param("video")
    if requested and requested not in titles:
        show_error(
            InputError(translate("this video is not in the library: choose one from the list"))
        )
    index = names.index(requested) if requested in titles else 0
    name = st.selectbox(
        translate("Video"),
        names,
        index=index,
        format_func=lambda video_id: titles[video_id],
        # The same: an address that names another video chooses it.
        key=f"video_{requested}",
    )
    if name != requested:
        set_params(video=name, person=None, segment=None, clip=None, t=None, outline=None)
    return videos_named(store, [name]).get(name)
