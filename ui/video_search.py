"""The search in a video: for words, for the images of a time, or for images like an example."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import streamlit as st

from domain.asking import Evidence, Mode
from domain.errors import HomerError, InputError
from domain.media import Video
from domain.time import parse_clock_span
from domain.words import counted, marked, translate, translate_sentence
from models.text_endpoint import recorded_search
from retrieval.relevance import close_evidence
from retrieval.search_once import (
    example_of_ref,
    image_example,
    is_image_ref,
    search_alike,
    search_once,
)
from strategies.named_tools import find_tool, list_tools, parse_arguments, use_once
from ui.app_state import PageState, show_error
from ui.evidence import show_limits, show_moment
from ui.formatting import escape_markdown
from ui.navigation import set_params, text_param

MODES = {
    marked("Speech, text and images"): Mode.VIDEO,
    marked("Events"): Mode.EVENT,
    marked("Images"): Mode.KEYFRAME,
}
IMAGE_TYPES = ["jpg", "jpeg", "png", "webp", "bmp"]


class UploadedImage(Protocol):
    """An image that was uploaded."""

    name: str

    def getvalue(self) -> bytes:
        """Return its content."""


@dataclass(frozen=True)
class Sought:
    """What the form asks for: words, a time of images, images like another one, or a tool.

    ``arguments`` are those of the tool besides the query, as ``KEY=VALUE``.
    """

    query: str
    mode: Mode
    at: str = ""
    like: str = ""
    image: UploadedImage | None = None
    tool: str = ""
    arguments: str = ""

    @property
    def empty(self) -> bool:
        return not (self.query or self.at or self.like or self.image or self.tool)


def show_search(state: PageState, video: Video) -> None:
    """Draw the form, and what the search that it or the address asks for finds."""
    sought = _form()
    if sought is None:
        return
    try:
        with st.spinner(translate("Searching ...")), recorded_search(state.store) as cost:
            if sought.tool:
                named, arguments = find_tool(sought.tool), parse_arguments(_words(sought.arguments))
                tools = state.workspace(video.profile).tools
                result, *_ = use_once(
                    state.store, tools, named, sought.query, arguments, (video.id,)
                )
            elif sought.image is not None:
                example = image_example(sought.image.name, sought.image.getvalue())
                result = search_alike(state.store, lambda _: example, (video.id,))[0]
            elif sought.like:
                of_ref = partial(example_of_ref, state.store, ref=sought.like)
                result = search_alike(state.store, of_ref, (video.id,))[0]
            else:
                try:
                    span = parse_clock_span(sought.at) if sought.at else None
                except ValueError as error:
                    reason = translate_sentence(str(error))
                    raise InputError(translate("At: {reason}").format(reason=reason)) from error
                mode = Mode.KEYFRAME if span else sought.mode
                retrievers = state.workspace(video.profile).retrievers
                result, *_ = search_once(
                    state.store, retrievers, mode, sought.query, (video.id,), span=span
                )
    except HomerError as error:
        show_error(error)
        return
    # Draw what is close; what is less close is folded.
    close = close_evidence(result)
    if not close:
        line = (
            translate("Nothing close was found in {places}.")
            if result.evidence
            else translate("Nothing was found in {places}.")
        )
        st.write(escape_markdown(line.format(places=result.searched)))
    _show_moments(state, video, close, "found")
    less_close = [piece for piece in result.evidence if piece not in close]
    if less_close:
        with st.expander(counted(len(less_close), "less close moment")):
            _show_moments(state, video, less_close, "less")
    show_limits(cost.usage, unseen=result.unseen and not close_evidence(result))


def _show_moments(state: PageState, video: Video, moments: Sequence[Evidence], key: str) -> None:
    for number, moment in enumerate(moments):
        then = partial(_alike_button, moment.ref) if is_image_ref(moment.ref) else None
        show_moment(state.store, moment, {video.id: video}, f"{key}_{number}", then=then)


def _alike_button(ref: str) -> None:
    st.button(
        translate("Images like this"),
        key=f"alike_{ref}",
        type="tertiary",
        icon=":material/image_search:",
        on_click=partial(set_params, like=ref, q=None, at=None, tool=None, arguments=None),
    )


def _form() -> Sought | None:
    with st.form("search", border=False):
        query = st.text_input(translate("Search in this video"), text_param("q"))
        mode = st.radio(translate("Look for"), list(MODES), horizontal=True, format_func=translate)
        with st.expander(translate("Images of a time, or like another image")):
            at = st.text_input(
                translate("At"),
                text_param("at"),
                placeholder=translate("12:30 or 12:30-12:45"),
            )
            image = st.file_uploader(translate("Like an image of your own"), type=IMAGE_TYPES)
        with st.expander(translate("With a tool of a strategy")):
            descriptions = {one.tool.name: one.tool.description for one in list_tools()}
            names, given = ["", *descriptions], text_param("tool")
            tool = st.selectbox(
                translate("Tool"),
                names,
                index=names.index(given) if given in names else 0,
                format_func=lambda name: (
                    f"{name}: {descriptions[name]}" if name else translate("none")
                ),
            )
            arguments = st.text_input(
                translate("Arguments besides the query"),
                text_param("arguments"),
                placeholder="lines=5",
            )
        sent = st.form_submit_button(translate("Search"), type="primary")
    # An example that the address names is for one search: a form that is sent begins anew.
    like = "" if sent else text_param("like")
    sought = Sought(query.strip(), MODES[mode], at.strip(), like, image, tool, arguments.strip())
    if sent:
        set_params(
            q=sought.query or None,
            at=sought.at or None,
            like=sought.like or None,
            tool=sought.tool or None,
            arguments=sought.arguments or None,
        )
    return sought if sent or not sought.empty else None


def _words(arguments: str) -> list[str]:
    """Split arguments at spaces; quotes hold together what has some."""
    try:
        return shlex.split(arguments)
    except ValueError as error:
        raise InputError(
            translate("Arguments: {reason}: {arguments}").format(
                reason=str(error).lower(), arguments=arguments
            )
        ) from error
