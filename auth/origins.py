"""Pages of other sites: who may not ask a server of Homer's through somebody's browser."""

from __future__ import annotations

from urllib.parse import urlsplit


def same_site(origin: str | None, host: str) -> bool:
    """Whether the page that asks is of the host that is asked, or no page asks at all.

    Args:
        origin: the request's header ``Origin``, where it has one.
        host: its header ``Host``.
    """
    try:
        return origin is None or urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:  # http://[
        return False
