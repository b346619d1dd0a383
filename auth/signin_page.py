"""The sign-in page and sign-out: plain HTML without WebSockets."""

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

from auth.middleware import SessionStore
from auth.signing_in import Throttle, password_matches, stored_hash

TEMPLATE = Path(__file__).with_name("signin.page")
MAX_FORM_BYTES = 8_192
"""Size limit of a form."""
FORM_TIMEOUT_S = 10.0
"""Seconds within which a form must arrive."""

HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
}

_FORM = """<form method="post" action="/sign-in">
<label for="password">$password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required
 autofocus$marks>
<input type="hidden" name="next" value="$next">
<button>$sign_in</button>
</form>"""
_PROVIDER = '<a class="way" href="/sign-in/$name">$label</a>'


InLanguage = Callable[[str], tuple[str, Callable[[str], str]]]


class SignInPage:
    """The routes of the sign-in page.

    Args:
        entered: called after a sign-in with the password.
        in_language: returns the code of the language to answer an ``Accept-Language`` header in,
            and a function that translates to it.
    """

    def __init__(
        self,
        keeper: SessionStore,
        throttle: Throttle | None = None,
        on_sign_in: Callable[[], object] = lambda: None,
        in_language: InLanguage = lambda _accepted: ("en", str),
    ) -> None:
        self._session_store, self._throttle = keeper, throttle or Throttle()
        self._on_sign_in, self._in_language = on_sign_in, in_language
        # One try at a time: each is expensive on purpose.
        self._one_try = CapacityLimiter(1)

    def routes(self) -> list[Route]:
        """Return the routes ``/sign-in``, ``/sign-in/PROVIDER`` and ``/sign-out``."""
        return [
            Route("/sign-in", self.show, methods=["GET"]),
            Route("/sign-in", self.sign_in, methods=["POST"]),
            Route("/sign-in/{provider}", self.provider, methods=["GET"]),
            Route("/sign-out", self.sign_out, methods=["POST"]),
        ]

    async def show(self, request: Request) -> Response:
        """Show the page, or redirect a user who is signed in to the requested page."""
        wanted = safe_redirect(request.query_params.get("next", "/"))
        if self._session_store.is_signed_in(request.cookies):
            return RedirectResponse(wanted, 303, headers=HEADERS)
        return self._page(request, wanted)

    async def sign_in(self, request: Request) -> Response:
        """Check a password, and begin a session if it is right."""
        form, (_, translate) = await _form(request), self._words(request)
        wanted, password = safe_redirect(form.get("next", "/")), form.get("password", "")
        if not password:  # An empty form does not count as a try.
            return self._page(request, wanted, translate("The password is wrong."), 401)
        client = request.client.host if request.client else ""
        wait = self._throttle.wait(client)
        if wait:
            message = translate("Too many tries: wait {seconds} seconds.").format(
                seconds=f"{wait:.0f}"
            )
            return self._page(request, wanted, message, 429, {"Retry-After": str(int(wait) + 1)})
        stored = stored_hash(self._session_store.home)
        if not await to_thread.run_sync(password_matches, stored, password, limiter=self._one_try):
            return self._page(request, wanted, translate("The password is wrong."), 401)
        self._throttle.reset(client)
        await to_thread.run_sync(self._on_sign_in)
        answer = RedirectResponse(wanted, 303, headers=HEADERS)
        self._session_store.begin(answer, stored or "", secure=request.url.scheme == "https")
        return answer

    async def provider(self, request: Request) -> Response:
        """Redirect to a provider, through Streamlit."""
        oidc, name = self._session_store.methods.oidc, request.path_params["provider"]
        if oidc is None or name not in oidc.providers:
            return PlainTextResponse("no such provider", 404)
        # Slow to import, as in ``user_from_cookies``.
        from streamlit.auth_util import encode_provider_token

        # It is valid for two minutes.
        path = f"/auth/login?provider={encode_provider_token(name)}"
        return RedirectResponse(path, 303, headers=HEADERS)

    async def sign_out(self, request: Request) -> Response:
        """End the session, which closes its WebSocket too."""
        self._session_store.sessions.end(request.cookies.get(self._session_store.cookie, ""))
        where = "/auth/logout" if self._session_store.methods.oidc else "/sign-in"
        answer = RedirectResponse(where, 303, headers=HEADERS)
        answer.delete_cookie(self._session_store.cookie, httponly=True, samesite="lax")
        return answer

    def _words(self, request: Request) -> tuple[str, Callable[[str], str]]:
        return self._in_language(request.headers.get("accept-language", ""))

    def _page(
        self,
        request: Request,
        wanted: str,
        message: str = "",
        code: int = 200,
        headers: dict[str, str] | None = None,
    ) -> Response:
        methods, (language, translate) = self._session_store.methods, self._words(request)
        attributes = ' aria-invalid="true" aria-describedby="told"' if message else ""
        form = Template(_FORM).substitute(
            next=escape(wanted, quote=True),
            marks=attributes,
            password=escape(translate("Password")),
            sign_in=escape(translate("Sign in")),
        )
        links = (
            Template(_PROVIDER).substitute(
                name=escape(name, quote=True),
                label=escape(
                    translate("Sign in with your account")
                    if name == "default"
                    else translate("Sign in with {provider}").format(provider=name.capitalize())
                ),
            )
            for name in (methods.oidc.providers if methods.oidc else ())
        )
        html = Template(TEMPLATE.read_text("utf-8")).substitute(
            language=language,
            title=escape(translate("Sign in to Homer")),
            told=f'<p id="told" role="alert">{escape(message)}</p>' if message else "",
            form=form if methods.password else "",
            providers="".join(links),
        )
        return HTMLResponse(html, code, headers={**HEADERS, **(headers or {})})


async def _form(request: Request) -> dict[str, str]:
    """Read the fields of a form; empty if it is too long or does not arrive."""
    body = b""
    try:
        async with asyncio.timeout(FORM_TIMEOUT_S):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_FORM_BYTES:
                    return {}
    except TimeoutError:
        return {}
    fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: values[0] for name, values in fields.items()}


def safe_redirect(wanted: str) -> str:
    """Return a path of the app; the first page if it leads to another site."""
    is_local = wanted.startswith("/") and not wanted.startswith(("//", "/\\", "/sign-"))
    return wanted if is_local and wanted.isprintable() and len(wanted) < 2_000 else "/"
