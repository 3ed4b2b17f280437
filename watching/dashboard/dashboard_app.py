"""Build the ASGI application of the dashboard: the page, its data, and the handlers of errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Literal

import orjson
from fastapi import FastAPI, Query, Request
from prometheus_client import CONTENT_TYPE_LATEST, Gauge, generate_latest
from pydantic_core import from_json
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from doors.console.reader import TopicReader
from doors.gateway.app import HANDLERS, JSON, RouterId
from doors.gateway.bodies import read_body
from doors.gateway.problems import Problem
from doors.gateway.rate_limits import Bounds
from streams.process_metrics import new_registry
from streams.settings import Settings
from watching.dashboard.assets import Assets
from watching.dashboard.changing import Changing
from watching.dashboard.compared import MOST, Compared
from watching.dashboard.decisions import Decisions, Wanted
from watching.dashboard.families_view import Families
from watching.dashboard.fleet import SORTS, TOPICS, Asked, Fleet
from watching.dashboard.guard import Guard
from watching.dashboard.label_inbox import Inbox, Labels
from watching.dashboard.pools_view import Pools
from watching.dashboard.stream import MOST_STREAMS, Single, Table, View, updates
from watching.dashboard.studies import Studies
from watching.dashboard.visitors import COOKIE, LASTS_SECONDS, Sessions, from_page

BODY = Bounds(body_bytes=65_536, events=1, seconds=10.0)
"""Limits of bodies that a page sends: changes, keys, scenarios."""
SSE = "text/event-stream"
"""Media type of server-sent events (WHATWG HTML, 9.2)."""
Number = Annotated[float | None, Query(allow_inf_nan=False)]
Sort = Literal[SORTS]  # type: ignore[valid-type]


class Dashboard:
    """A running dashboard: the state that its paths share.

    Args:
        sessions: who may look, and who may change routers.
    """

    def __init__(self, settings: Settings, sessions: Sessions) -> None:
        self.settings = settings
        self.sessions = sessions
        self.fleet = Fleet(settings.source_rank)
        self.reader = TopicReader(settings, TOPICS, self.fleet.observe)
        self.decisions = Decisions(settings)
        self.studies = Studies(settings)
        self.changing = Changing(settings)
        self.labels = Labels(settings, self.fleet)
        self.assets = Assets()
        self.closing = asyncio.Event()
        self.streams = 0

    def state(self) -> dict[str, object]:
        """Return the dashboard's own status, for every page."""
        reader = self.reader
        return {
            "trouble": reader.trouble,
            "since": reader.since,
            "complete": reader.complete,
            "bootstrap": self.settings.bootstrap,
            "prefix": self.settings.prefix,
        }


def build_dashboard(settings: Settings, sessions: Sessions) -> FastAPI:
    """Return the application; it connects to Kafka when the server starts it."""
    board = Dashboard(settings, sessions)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # Started in the background: the page is served at once, and shows if Kafka does not answer.
        board.reader.start()
        yield
        await board.studies.stop()
        await board.reader.stop()

    app = FastAPI(title="pbstream dashboard", lifespan=lifespan, openapi_url=None)
    app.state.board = board
    for kind, handler in HANDLERS.items():
        app.add_exception_handler(kind, handler)

    app.add_middleware(Guard)
    _add_page(app, board)
    _add_sessions(app, board)
    _add_streams(app, board)
    _add_decisions(app, board)
    _add_studies(app, board)
    _add_changes(app, board)
    _add_inbox(app, board)
    return app


def _add_page(app: FastAPI, board: Dashboard) -> None:
    registry = new_registry()
    ready = Gauge(
        "pb_dashboard_ready", "1 while Kafka answers and the past is read", registry=registry
    )
    streams = Gauge("pb_dashboard_streams", "Views that are followed live", registry=registry)

    @app.get("/")
    async def page(request: Request) -> Response:
        return board.assets.answer("index.html", request)

    @app.get("/assets/{name:path}")
    async def asset(request: Request, name: str) -> Response:
        return board.assets.answer(name, request)

    @app.api_route("/livez", methods=["GET", "HEAD"])
    async def livez() -> Response:
        return PlainTextResponse("ok\n")

    @app.api_route("/readyz", methods=["GET", "HEAD"])
    async def readyz() -> Response:
        trouble = board.reader.trouble or ("" if board.reader.complete else "reading the past")
        return PlainTextResponse(f"{trouble or 'ok'}\n", 503 if trouble else 200)

    @app.get("/metrics")
    async def metrics() -> Response:
        ready.set(board.reader.complete and not board.reader.trouble)
        streams.set(board.streams)
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


def _add_sessions(app: FastAPI, board: Dashboard) -> None:
    @app.get("/api/session")
    async def session(request: Request) -> Response:
        """Return the visitor's session: whether a key is needed, and whether changes are
        allowed."""
        visitor = board.sessions.visitor(request)
        return answer(
            {
                "needs_key": visitor is None,
                "name": visitor and visitor.key.name,
                "admin": visitor is not None and visitor.admin,
                "takes_changes": board.sessions.takes_changes,
                "takes_labels": board.sessions.takes_labels,
            }
        )

    @app.post("/api/session")
    async def begin(request: Request) -> Response:
        from_page(request)
        token = board.sessions.begin(str((await body_of(request)).get("key", "")))
        response = answer({})
        response.set_cookie(
            COOKIE,
            token,
            max_age=int(LASTS_SECONDS),
            httponly=True,
            samesite="strict",
            # Behind a TLS proxy, too, the browser must send the cookie over TLS only.
            secure=request.headers.get("x-forwarded-proto", request.url.scheme) == "https",
        )
        return response

    @app.delete("/api/session")
    async def end(request: Request) -> Response:
        from_page(request)
        board.sessions.end(request)
        response = answer({})
        response.delete_cookie(COOKIE)
        return response


def _add_streams(app: FastAPI, board: Dashboard) -> None:
    @app.get("/api/routers")
    async def routers(
        request: Request,
        sort: Sort = "spend_usd",
        descending: bool = True,
        search: Annotated[str, Query(max_length=200)] = "",
        begin: Annotated[int, Query(ge=0)] = 0,
        count: Annotated[int, Query(ge=1, le=200)] = 100,
    ) -> Response:
        """Follow a part of the table of all routers."""
        visitor = board.sessions.reader(request)
        asked = Asked(sort, descending, search, begin, count, visitor.key.allows)
        return _streamed(board, Table(board.fleet, asked))

    @app.get("/api/compared")
    async def compared(
        request: Request, router: Annotated[list[RouterId], Query(min_length=1, max_length=MOST)]
    ) -> Response:
        """Follow a few routers beside each other."""
        for one in router:
            board.sessions.reader(request, one)
        return _streamed(board, Compared(board.fleet, router))

    @app.get("/api/pools")
    async def pools(request: Request) -> Response:
        """Follow all pools."""
        visitor = board.sessions.reader(request)
        return _streamed(board, Pools(board.fleet, visitor.key.allows))

    @app.get("/api/families")
    async def families(request: Request, only: RouterId | None = None) -> Response:
        """Follow all families, or one."""
        visitor = board.sessions.reader(request)
        return _streamed(board, Families(board.fleet, visitor.key.allows, only))

    @app.get("/api/routers/{router_id}")
    async def router(request: Request, router_id: RouterId) -> Response:
        """Follow one router."""
        board.sessions.reader(request, router_id)
        return _streamed(board, Single(board.fleet, router_id))


def _add_decisions(app: FastAPI, board: Dashboard) -> None:
    @app.get("/api/routers/{router_id}/decisions")
    async def last(
        request: Request,
        router_id: RouterId,
        model: Annotated[str | None, Query(max_length=200)] = None,
        reason: Annotated[str | None, Query(max_length=40)] = None,
        cost_from: Number = None,
        cost_to: Number = None,
        label_from: Number = None,
        label_to: Number = None,
        until: Number = None,
    ) -> Response:
        """Return a router's last decisions, of a model, for a reason, of a cost, of a label."""
        board.sessions.reader(request, router_id)
        wanted = Wanted(model, reason, cost_from, cost_to, label_from, label_to, until)
        known = partial(board.fleet.request, router_id)
        return answer(await board.decisions.last(router_id, wanted, known))

    @app.get("/api/routers/{router_id}/decisions/{request_id:path}")
    async def explain(request: Request, router_id: RouterId, request_id: str) -> Response:
        """Return every term of a decision, and its bills and labels."""
        board.sessions.reader(request, router_id)
        return answer(await board.decisions.explain(router_id, request_id))


def _add_studies(app: FastAPI, board: Dashboard) -> None:
    path = "/api/routers/{router_id}/studies"

    @app.get(path)
    async def studies(request: Request, router_id: RouterId) -> Response:
        """List a router's studies."""
        board.sessions.reader(request, router_id)
        return answer({"studies": [one.shown(whole=False) for one in board.studies.of(router_id)]})

    @app.post(path)
    async def start(request: Request, router_id: RouterId) -> Response:
        """Start a study: a scenario, other budgets, or kinds of prompts."""
        board.sessions.reader(request, router_id)
        from_page(request)
        view = board.fleet.routers.get(router_id)
        if view is None:
            raise Problem("not_found")
        state = view.state
        budget = (None if state is None else state.budget_usd_per_request) or view.cost_usd
        asked, decided = await body_of(request), None if state is None else state.decided
        study = board.studies.start(router_id, asked, decided=decided, budget=budget)
        return answer(study.shown(whole=False), 201)

    @app.get(path + "/{number}")
    async def study(request: Request, router_id: RouterId, number: int) -> Response:
        """Return a study, its progress or its result."""
        board.sessions.reader(request, router_id)
        return answer(board.studies.get(router_id, number).shown(whole=True))

    @app.delete(path + "/{number}")
    async def cancel(request: Request, router_id: RouterId, number: int) -> Response:
        """End a study."""
        board.sessions.reader(request, router_id)
        from_page(request)
        found = board.studies.get(router_id, number)
        await board.studies.cancel(found)
        return answer(found.shown(whole=False))


def _add_changes(app: FastAPI, board: Dashboard) -> None:
    @app.post("/api/routers/{router_id}/preview")
    async def preview(request: Request, router_id: RouterId) -> Response:
        """Return the differences that a change would make."""
        board.sessions.operator(request, router_id)
        return answer(await board.changing.preview(router_id, await body_of(request)))

    @app.post("/api/routers/{router_id}/declaration")
    async def declare(request: Request, router_id: RouterId) -> Response:
        """Put a change in force, if its base is still in force."""
        visitor = board.sessions.operator(request, router_id)
        asked, name = await body_of(request), visitor.key.name
        return answer(await board.changing.put_in_force(router_id, asked, operator=name))


def _add_inbox(app: FastAPI, board: Dashboard) -> None:
    @app.get("/api/inbox")
    async def inbox(request: Request, router: RouterId | None = None) -> Response:
        """Follow what people are asked to label, of one router or of all."""
        key, takes = board.sessions.reader(request, router).key, board.sessions.takes_labels
        remembered = board.settings.context_ttl
        view = Inbox(board.fleet, key, router, takes=takes, remembered=remembered)
        return _streamed(board, view)

    @app.post("/api/routers/{router_id}/labels")
    async def label(request: Request, router_id: RouterId) -> Response:
        """Write a person's label of an answer."""
        visitor = board.sessions.labeller(request, router_id)
        return answer(await board.labels.give(router_id, visitor.key, await body_of(request)))


def _streamed(board: Dashboard, view: View) -> Response:
    # Each stream reads the fleet four times a second; more of them would delay all pages.
    if board.streams >= MOST_STREAMS:
        raise Problem("rate_limited", "too many pages are open", headers={"Retry-After": "10"})

    async def counted() -> AsyncIterator[bytes]:
        board.streams += 1
        try:
            async for event in updates(view, board.state, board.closing):
                yield event
        finally:
            board.streams -= 1

    return StreamingResponse(counted(), media_type=SSE, headers={"X-Accel-Buffering": "no"})


def answer(body: object, status: int = 200) -> Response:
    """Return a document."""
    return Response(orjson.dumps(body), status, media_type=JSON)


async def body_of(request: Request) -> dict[str, object]:
    """Return the JSON object that a request carries. Raises Problem."""
    body = await read_body(request, BODY)
    try:
        # Deeper than this parser goes, at 200 levels, a document cannot be written again.
        from_json(body)
        found = orjson.loads(body)
    except ValueError as error:
        raise Problem("malformed_json") from error
    if not isinstance(found, dict):
        raise Problem("malformed_json", "an object is expected")
    return found
