"""The script that Streamlit runs: the pages and the way between them."""

from __future__ import annotations

import streamlit as st

from ui.door.signout import show_sign_out
from ui.faults import guarded
from ui.pages import NAMES, page_of

# Without icons: Streamlit would fetch each from elsewhere for the browser's tab.
st.set_page_config(page_title="Homer", layout="wide")
page = st.navigation([page_of(name) for name in NAMES])
show_sign_out()
guarded(page.run)
