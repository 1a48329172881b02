"""Who may talk to the server: Host and Origin are checked, and a token in the address becomes a cookie.

The server is for one person on one machine. A page of another site must not be able to use it: neither by a name that
resolves to this machine (DNS rebinding; the Host header tells), nor by a request from its own scripts or forms (the
Origin and Sec-Fetch-Site headers tell, and the cookie is SameSite=Strict). There is no CORS.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bertology.errors import Refusal
from bertology.server.problems import describe_problem

LOOPBACK = ("127.0.0.1", "localhost", "[::1]", "::1")
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS: Mapping[str, str] = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class AccessPolicy:
    """The token of this server, and the names under which it may be reached."""

    token: str = field(repr=False)
    port: int
    hosts: tuple[str, ...] = ()

    @property
    def cookie_name(self) -> str:
        """The name of the cookie; servers on other ports of the same machine have other names."""
        return f"bertology-{self.port}"

    def allows_host(self, value: str) -> bool:
        """Whether a Host header names this server."""
        return _host_name(value) in {*LOOPBACK, *self.hosts}

    def allows_origin(self, origin: str, host: str) -> bool:
        """Whether an Origin header is that of a page of this server: its host and port are those of the request."""
        parts = urlsplit(origin)
        return parts.scheme in {"http", "https"} and self.allows_host(parts.netloc) and parts.netloc == host

    def is_token(self, value: str) -> bool:
        """Whether this is the token, compared in constant time."""
        return hmac.compare_digest(value.encode("utf-8", "replace"), self.token.encode())


def _host_name(value: str) -> str:
    """A Host header without its port."""
    value = value.strip().lower()
    if value.startswith("["):
        return value.partition("]")[0] + "]"
    return value.partition(":")[0]


class SecurityMiddleware:
    """Refuses requests that do not come from a page of this server, and adds headers to every answer."""

    def __init__(self, app: ASGIApp, policy: AccessPolicy) -> None:
        self.app = app
        self.policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._check(scope)
        await (answer or self.app)(scope, receive, send_with_headers)

    def _check(self, scope: Scope) -> Response | None:
        """The answer to a request that is refused or only brings the token; None if it may go on."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self.policy.allows_host(host) or len(headers.getlist("host")) != 1:
            return _refused(403, f"The request is for the host {host[:100]!r}", "a name of this server", NAME_REMEDY)
        origin = headers.get("origin")
        if origin is not None and not self.policy.allows_origin(origin, host):
            return _refused(403, f"The request comes from {origin[:100]!r}", "a page of this server", OPEN_REMEDY)
        if headers.get("sec-fetch-site") == "cross-site" and scope["path"] != "/":
            return _refused(403, "The request comes from another site", "a page of this server", OPEN_REMEDY)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if scope["path"] == "/" and scope["method"] == "GET" and given and self.policy.is_token(given):
            return self._give_cookie()
        if not self._is_authorised(headers):
            return _sign_in_page() if scope["path"] == "/" else _refused(401, *SIGN_IN)
        return None

    def _is_authorised(self, headers: Headers) -> bool:
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.policy.is_token(bearer.strip()):
            return True
        try:
            cookies = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return False
        cookie = cookies.get(self.policy.cookie_name)
        return cookie is not None and self.policy.is_token(cookie.value)

    def _give_cookie(self) -> Response:
        """Exchange the token in the address for a cookie, and go to the address without it.

        The cookie has no path, so that behind a path prefix it belongs to that prefix.
        """
        response = Response(status_code=303, headers={"location": "./"})
        cookie = f"{self.policy.cookie_name}={self.policy.token}; HttpOnly; SameSite=Strict"
        response.headers["set-cookie"] = cookie
        return response


NAME_REMEDY = "Open the address that `bertology serve` printed, or start it with --allow-host NAME behind a proxy"
OPEN_REMEDY = "Open the address that `bertology serve` printed"
SIGN_IN = ("The request has no valid token", "the token of this server, as a cookie or a bearer token", OPEN_REMEDY)


def _refused(status: int, problem: str, expected: str, remedy: str) -> Response:
    return JSONResponse(describe_problem(Refusal(problem, expected, remedy)).model_dump(), status)


def _sign_in_page() -> Response:
    text = "This is bertology. Open the address that <code>bertology serve</code> printed: it holds the token."
    return HTMLResponse(f"<!doctype html><meta charset=utf-8><title>bertology</title><p>{text}</p>", 401)
