"""The script that Streamlit runs: the pages and the way between them."""

from __future__ import annotations

import streamlit as st

from ui.ask import ask_page
from ui.library import library_page

# Without icons: Streamlit would fetch each from elsewhere for the browser's tab.
st.set_page_config(page_title="Homer", layout="wide")
PAGES = [
    st.Page(ask_page, title="Ask", url_path="ask", default=True),
    st.Page(library_page, title="Library", url_path="library"),
]
st.navigation(PAGES).run()
