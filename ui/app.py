"""The script that Streamlit runs: the pages and the way between them."""

from __future__ import annotations

import streamlit as st

from ui.faults import guarded
from ui.pages import NAMES, page_of
from ui.signed_in import act_as_signed_in
from ui.signout import show_sign_out

# On a link to the page that one is on, Streamlit does not show the keyboard at all.
FOCUS = """<style>
a:focus-visible, button:focus-visible, summary:focus-visible {
  outline: 3px solid light-dark(#1d4ed8, #7cb0ff) !important; outline-offset: 2px;
}
</style>"""

# Without icons: Streamlit would fetch each from elsewhere for the browser's tab.
st.set_page_config(page_title="Homer", layout="wide")
st.html(FOCUS)
page = st.navigation([page_of(name) for name in NAMES])
show_sign_out()
act_as_signed_in()
guarded(page.run)
