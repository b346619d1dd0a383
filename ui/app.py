"""The script that Streamlit runs: the pages and the way between them."""

from __future__ import annotations

import streamlit as st

from ui.ask import ask_page
from ui.library import library_page

st.set_page_config(page_title="Homer", page_icon=":material/movie:", layout="wide")
PAGES = [
    st.Page(ask_page, title="Ask", icon=":material/search:", url_path="ask", default=True),
    st.Page(library_page, title="Library", icon=":material/video_library:", url_path="library"),
]
st.navigation(PAGES).run()
