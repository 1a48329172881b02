"""The application: routes of the API and of the page, with errors as JSON and bodies of bounded size."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib import resources
from typing import Any

from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from bertology.errors import ExplainedError, Refusal
from bertology.html import render
from bertology.machine_errors import find_machine_error
from bertology.number_ranges import MAX_DIGITS
from bertology.results.palette import PALETTES
from bertology.server.limits import LIMITS
from bertology.server.problems import ApiError, describe_problem, internal_error
from bertology.server.security import AccessPolicy, SecurityMiddleware
from bertology.server.workbench import Workbench

START_SECONDS = 0.5
"""Loading begins when the first page has been sent, or after this time: importing torch would delay that page."""
ASSETS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png"}
PAGE = "workbench.js"
_log = logging.getLogger("bertology.server")


def build_app(workbench: Workbench, policy: AccessPolicy) -> Starlette:
    """The application; its lifespan starts and ends the workbench."""
    is_started = False

    def start() -> None:
        nonlocal is_started
        if not is_started:
            is_started = True
            workbench.start()

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        timer = asyncio.get_running_loop().call_later(START_SECONDS, start)
        yield
        timer.cancel()
        await run_in_threadpool(workbench.close)

    async def page(request: Request) -> Response:
        response = HTMLResponse(_page(workbench))
        asyncio.get_running_loop().call_soon(start)
        return response

    routes = [
        Route("/", page),
        Route("/workbench.css", _style),
        Route("/assets/{name}", _asset),
        Route("/api/", _api_page),
        Route("/api/openapi.json", _openapi),
        Route("/api/{path:path}", _dispatcher(workbench), methods=["GET", "POST", "DELETE"]),
    ]
    return Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(SecurityMiddleware, policy=policy)],
        exception_handlers={HTTPException: _http_error},  # pyright: ignore[reportArgumentType]
    )


def _page(workbench: Workbench) -> str:
    """The page of the built front-end; a page that says what is loading if there is none."""
    folder = resources.files("bertology.views") / "assets"
    if (folder / PAGE).is_file():
        names = [state.name for state in (*workbench.session.states[:2], *workbench.session.corpus_states)]
        return render("workbench_app.html", names=names)
    models = [(s.name, s.status, s.message, s.seconds) for s in workbench.session.states]
    corpora = [(s.name, s.status, s.message, None) for s in workbench.session.corpus_states]
    rows = [
        {"name": name, "state": ", ".join(filter(None, [status, f"{seconds:.1f} s" if seconds else "", message]))}
        for name, status, message, seconds in (*models, *corpora)
    ]
    is_loading = any(status in {"loading", "not loaded"} for _, status, _, _ in (*models[:1], *corpora))
    return render("workbench.html", rows=rows, is_loading=is_loading)


def _style(_request: Request) -> Response:
    return Response(render("workbench.css", palettes=PALETTES), media_type="text/css")


def _asset(request: Request) -> Response:
    """A file of the built front-end, by its exact name."""
    name = str(request.path_params["name"])
    suffix = name[name.rfind(".") :]
    folder = resources.files("bertology.views") / "assets"
    names = {file.name for file in folder.iterdir()} if folder.is_dir() else set[str]()
    if name not in names or suffix not in ASSETS:
        raise HTTPException(404)
    return Response((folder / name).read_bytes(), media_type=ASSETS[suffix])


def _api_page(_request: Request) -> Response:
    from bertology.server.openapi import openapi_page

    return HTMLResponse(openapi_page())


def _openapi(_request: Request) -> Response:
    from bertology.server.openapi import openapi_document

    return JSONResponse(openapi_document())


def _dispatcher(workbench: Workbench) -> Callable[[Request], Awaitable[Response]]:
    """The handler of all endpoints; they are imported with the first request."""

    async def dispatch(request: Request) -> Response:
        try:
            return await _answer(workbench, request)
        except ApiError as error:
            return _refused(error.status, error.refusal)
        except Refusal as refusal:
            return _refused(422, refusal)
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:
            if (failure := find_machine_error(error)) is not None:
                return _refused(507, failure)
            _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
            return _refused(500, internal_error())

    return dispatch


async def _answer(workbench: Workbench, request: Request) -> Response:
    endpoints = await run_in_threadpool(_find_endpoints, str(request.path_params["path"]))
    if not endpoints:
        raise _unknown_path(request)
    matching = [(endpoint, values) for endpoint, values in endpoints if endpoint.method == request.method]
    if not matching:
        allowed = ", ".join(endpoint.method for endpoint, _ in endpoints)
        raise ApiError(405, Refusal(f"The method is {request.method}", allowed, "Use that method"))
    endpoint, path_values = matching[0]
    values = await _request_values(request) | path_values
    try:
        parsed = endpoint.request.model_validate(values)
    except ValidationError as error:
        raise ApiError(422, _validation_refusal(error, endpoint.request)) from error
    if endpoint.in_model_thread:
        client, sequence = getattr(parsed, "client", ""), getattr(parsed, "sequence", 0)
        future = workbench.model_thread.submit(
            lambda check: _serialise(endpoint.handler(workbench, parsed, check)), client, sequence
        )
        content = await asyncio.wrap_future(future)
    else:
        content = await run_in_threadpool(lambda: _serialise(endpoint.handler(workbench, parsed, lambda: None)))
    headers = {"content-disposition": f'attachment; filename="{endpoint.file_name}"'} if endpoint.file_name else {}
    return Response(content, media_type=endpoint.media_type, headers=headers)


def _serialise(answer: Any) -> bytes:
    if isinstance(answer, str):
        return answer.encode("utf-8", "replace")
    return answer.model_dump_json().encode() if isinstance(answer, BaseModel) else json.dumps(answer).encode()


def _find_endpoints(path: str) -> list[tuple[Any, dict[str, str]]]:
    """The endpoints of a path, with the values in it."""
    from bertology.server.api import ENDPOINTS

    endpoints: list[tuple[Any, dict[str, str]]] = []
    for endpoint in ENDPOINTS:
        match = re.fullmatch(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", endpoint.path), path)
        if match is not None:
            endpoints.append((endpoint, match.groupdict()))
    exact = [entry for entry in endpoints if not entry[1]]
    return exact or endpoints


async def _request_values(request: Request) -> dict[str, Any]:
    if request.method != "POST":
        return {name: value for name, value in request.query_params.items() if name != "token"}
    body = await _read_body(request)
    if not body:
        return {}
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise ApiError(415, Refusal("The body is not declared as JSON", "content-type: application/json", "Send JSON"))
    try:
        values = json.loads(body)
    except (ValueError, RecursionError):
        raise ApiError(400, Refusal("The body is not JSON", "a JSON object", "Check its syntax")) from None
    if not isinstance(values, dict):
        raise ApiError(400, Refusal("The body is not an object", "a JSON object", "Send an object")) from None
    return values


async def _read_body(request: Request) -> bytes:
    """The body, refused if it is too large or too slow."""
    too_large = ApiError(
        413, Refusal("The body is too large", f"at most {LIMITS.body_bytes:,} bytes", "Send a shorter text")
    )
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and (len(declared) > MAX_DIGITS or int(declared) > LIMITS.body_bytes):
        raise too_large
    body = bytearray()

    async def read() -> None:
        async for chunk in request.stream():
            body.extend(chunk)
            if len(body) > LIMITS.body_bytes:
                raise too_large

    try:
        await asyncio.wait_for(read(), LIMITS.body_seconds)
    except TimeoutError:
        slow = Refusal("The body did not arrive", f"a body within {LIMITS.body_seconds:g} s", "Send it again")
        raise ApiError(408, slow) from None
    return bytes(body)


def _validation_refusal(error: ValidationError, model: type[BaseModel]) -> Refusal:
    """The first field that does not fit; its value is not repeated."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    name = ".".join(map(str, first["loc"])) or "the request"
    fields = ", ".join(model.model_fields) or "none"
    return Refusal(f"{name}: {first['msg']}", f"fields of the request: {fields}", "See api/ for their types")


def _refused(status: int, refusal: ExplainedError) -> Response:
    headers = {"retry-after": "1"} if status == 503 else {}
    if status in {408, 413}:
        headers["connection"] = "close"
    return JSONResponse(describe_problem(refusal).model_dump(), status, headers)


def _unknown_path(request: Request) -> ApiError:
    return ApiError(404, Refusal("There is nothing at this address", "a path of the API", "See api/ for all of them"))


def _http_error(request: Request, error: HTTPException) -> Response:
    if error.status_code == 404:
        return _refused(404, _unknown_path(request).refusal)
    return _refused(error.status_code, Refusal(error.detail, "another request", "See api/"))
