"""The sign-in page, and signing out: plain HTML, which needs no event stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from html import escape
from pathlib import Path
from string import Template
from urllib.parse import parse_qs

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from auth.gate import SessionStore
from auth.oidc import login_path
from auth.password import kept, matches
from auth.sessions import LASTS_S, Throttle

PAGE = Path(__file__).with_name("signin.page")
MOST = 8_192
"""Bytes of a form."""
FORM_S = 10.0
"""Seconds that a form may take to come."""

SAFE = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
}

_FORM = """<form method="post" action="/sign-in">
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required
 autofocus$marks>
<input type="hidden" name="next" value="$next">
<button>Sign in</button>
</form>"""
_PROVIDER = '<a class="way" href="/sign-in/$name">Sign in with $told</a>'


class SignInPage:
    """Answers for the sign-in page of one app.

    Args:
        keeper: knows who is signed in.
        throttle: slows down who tries passwords.
        entered: is called after somebody gave the right password.
    """

    def __init__(
        self,
        keeper: SessionStore,
        throttle: Throttle | None = None,
        entered: Callable[[], object] = lambda: None,
    ) -> None:
        self._keeper, self._throttle = keeper, throttle or Throttle()
        self._entered = entered
        # One try at a time: each takes memory and time on purpose.
        self._one = CapacityLimiter(1)

    def routes(self) -> list[Route]:
        """``/sign-in``, ``/sign-in/PROVIDER`` and ``/sign-out``."""
        return [
            Route("/sign-in", self.show, methods=["GET"]),
            Route("/sign-in", self.enter, methods=["POST"]),
            Route("/sign-in/{provider}", self.provider, methods=["GET"]),
            Route("/sign-out", self.leave, methods=["POST"]),
        ]

    async def show(self, request: Request) -> Response:
        """The page; whoever is signed in goes on to where they wanted."""
        wanted = within(request.query_params.get("next", "/"))
        if self._keeper.knows(request.cookies):
            return RedirectResponse(wanted, 303, headers=SAFE)
        return self._page(wanted)

    async def enter(self, request: Request) -> Response:
        """A password that may be the right one."""
        form = await _form(request)
        wanted, password = within(form.get("next", "/")), form.get("password", "")
        if not password:  # Nor does a form that never came use up anybody's tries.
            return self._page(wanted, "That is not the password.", 401)
        client = request.client.host if request.client else ""
        wait = self._throttle.wait(client)
        if wait:
            told = f"Too many tries: wait {wait:.0f} seconds."
            return self._page(wanted, told, 429, {"Retry-After": str(int(wait) + 1)})
        stored = kept(self._keeper.home)
        if not await to_thread.run_sync(matches, stored, password, limiter=self._one):
            return self._page(wanted, "That is not the password.", 401)
        self._throttle.forgive(client)
        await to_thread.run_sync(self._entered)
        return self._welcome(request, wanted, stored or "")

    def _welcome(self, request: Request, wanted: str, stored: str) -> Response:
        answer = RedirectResponse(wanted, 303, headers=SAFE)
        answer.set_cookie(
            self._keeper.cookie,
            self._keeper.sessions.begin(stored),
            max_age=int(LASTS_S),
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )
        return answer

    async def provider(self, request: Request) -> Response:
        """On to a provider, by Streamlit's own way."""
        oidc, name = self._keeper.ways.oidc, request.path_params["provider"]
        if oidc is None or name not in oidc.providers:
            return PlainTextResponse("no such way to sign in", 404)
        return RedirectResponse(login_path(name), 303, headers=SAFE)

    async def leave(self, request: Request) -> Response:
        """Ends the session: its event stream is closed too."""
        self._keeper.sessions.end(request.cookies.get(self._keeper.cookie, ""))
        where = "/auth/logout" if self._keeper.ways.oidc else "/sign-in"
        answer = RedirectResponse(where, 303, headers=SAFE)
        answer.delete_cookie(self._keeper.cookie, httponly=True, samesite="lax")
        return answer

    def _page(
        self, wanted: str, told: str = "", code: int = 200, more: dict[str, str] | None = None
    ) -> Response:
        ways = self._keeper.ways
        marks = ' aria-invalid="true" aria-describedby="told"' if told else ""
        form = Template(_FORM).substitute(next=escape(wanted, quote=True), marks=marks)
        links = (
            Template(_PROVIDER).substitute(
                name=escape(name, quote=True),
                told="your account" if name == "default" else escape(name.capitalize()),
            )
            for name in (ways.oidc.providers if ways.oidc else ())
        )
        html = Template(PAGE.read_text("utf-8")).substitute(
            told=f'<p id="told" role="alert">{escape(told)}</p>' if told else "",
            form=form if ways.password else "",
            providers="".join(links),
        )
        return HTMLResponse(html, code, headers={**SAFE, **(more or {})})


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form; nothing of one that is too long, or does not come."""
    body = b""
    try:
        async with asyncio.timeout(FORM_S):
            async for piece in request.stream():
                body += piece
                if len(body) > MOST:
                    return {}
    except TimeoutError:
        return {}
    found = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: values[0] for name, values in found.items()}


def within(wanted: str) -> str:
    """A path of the app's own; the first page where it leads elsewhere."""
    plain = wanted.startswith("/") and not wanted.startswith(("//", "/\\", "/sign-"))
    return wanted if plain and wanted.isprintable() and len(wanted) < 2_000 else "/"
