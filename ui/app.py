"""The script that Streamlit runs: the pages and their navigation."""

from __future__ import annotations

import streamlit as st

from ui.errors import show_errors
from ui.navigation import PAGE_NAMES, streamlit_page
from ui.sign_in import set_acting_user, show_sign_out_button

# Streamlit shows no keyboard focus on the link to the current page.
FOCUS = """<style>
a:focus-visible, button:focus-visible, summary:focus-visible {
  outline: 3px solid light-dark(#1d4ed8, #7cb0ff) !important; outline-offset: 2px;
}
</style>"""

# Without icons: Streamlit would fetch each from another server for the browser's tab.
st.set_page_config(page_title="Homer", layout="wide")
st.html(FOCUS)
page = st.navigation([streamlit_page(name) for name in PAGE_NAMES])
show_sign_out_button()
set_acting_user()
show_errors(page.run)
