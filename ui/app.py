"""The script that Streamlit runs: the pages and their navigation."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from ui.app_state import is_viewer, show_errors
from ui.formatting import TABLES
from ui.language import show_language, use_language
from ui.navigation import all_pages, show_navigation
from ui.sign_in import set_acting_user, show_sign_out_button

FOLDER = Path(__file__).parent

# Streamlit shows no keyboard focus on the link to the current page, leaves much room above a page,
# and has large headings.
STYLE = """<style>
a:focus-visible, button:focus-visible, summary:focus-visible {
  outline: 3px solid light-dark(#1d4ed8, #7cb0ff) !important; outline-offset: 2px;
}
[data-testid=stMain] h1 { font-size: 2.1rem; }
[data-testid=stMain] h2 { font-size: 1.5rem; padding: 0.6rem 0; }
[data-testid=stMain] h3 { font-size: 1.2rem; padding: 0.4rem 0; }
[data-testid=stMainBlockContainer] { padding-top: 3.2rem; padding-bottom: 4rem; }
</style>"""

# No emoji as an icon: Streamlit would fetch it from another server for the browser's tab.
st.set_page_config(page_title="Homer", page_icon=str(FOLDER / "mark.svg"), layout="wide")
st.html(STYLE + TABLES)
st.logo(str(FOLDER / "logo.svg"), size="large", icon_image=str(FOLDER / "mark.svg"))
use_language()
# Drawn by links: the sections of Streamlit's own list are no valid lists for screen readers.
viewer = is_viewer()
page = st.navigation(all_pages(viewer=viewer), position="hidden")
show_navigation(viewer=viewer)
show_language()
show_sign_out_button()
set_acting_user()
with show_errors():
    page.run()
