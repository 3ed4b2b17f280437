"""Build the ASGI application: its paths, and the handlers of their errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

import orjson
from fastapi import FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response

from doors.console.explained_decision import BECAUSE
from doors.gateway import documented, http_events
from doors.gateway.api_keys import Keys
from doors.gateway.door import Door
from doors.gateway.foreign import ForeignPayloads
from doors.gateway.measured import Measured
from doors.gateway.problems import Problem
from ground.json_values import Document
from paretobandit_client.sent_events import Ask
from schemas import Reason
from schemas.sentences import what_is_wrong
from streams.settings import Settings

JSON = "application/json"
"""Media type of successful answers."""
PROBES = ["GET", "HEAD"]
"""Methods by which load balancers ask."""
RouterId = Annotated[str, Path(pattern=r"^[A-Za-z0-9._-]{1,128}$")]
Timeout = Annotated[
    float | None,
    Query(gt=0, description="Seconds to wait for a decision, up to the gateway's own limit"),
]
Scores = Annotated[tuple[str, ...], Query(description="Names of the scores that become rewards")]
Form = Literal["otel", "litellm", "langfuse", "cloudevents"]
Fallback = Annotated[
    str | None,
    Query(min_length=1, max_length=200, description="The model to answer with when none comes"),
]


def build_gateway(settings: Settings, keys: Keys | None) -> FastAPI:
    """Return the application; it connects to Kafka when the server starts it.

    Args:
        keys: who may call; None asks for no key.
    """
    door = Door(settings, keys)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await door.start()
        yield
        await door.stop()

    app = FastAPI(
        title="paretobandit-streams", version="1", lifespan=lifespan, docs_url=None, redoc_url=None
    )
    app.add_middleware(Measured, metrics=door.metrics)
    for kind, handler in HANDLERS.items():
        app.add_exception_handler(kind, handler)
    _add_decisions(app, door)
    _add_reading(app, door)
    _add_reports(app, door)
    _add_ingest(app, door)
    _add_health(app, door)
    door.metrics.begin_at_zero(route.name for route in app.routes if isinstance(route, APIRoute))
    app.openapi = lambda: _description(app)  # type: ignore[method-assign]
    return app


def _add_decisions(app: FastAPI, door: Door) -> None:
    @app.post("/v1/routers/{router_id}/decisions", **documented.decisions())
    async def decide(
        request: Request,
        router_id: RouterId,
        timeout: Timeout = None,  # noqa: ASYNC109 - the caller's patience
        fallback: Fallback = None,
    ) -> Response:
        """Decide which model answers a prompt, or many prompts; the response follows once the
        decision is on `pb.routes`.
        """
        bodies, is_batch = await door.events(request, router_id)
        asked = http_events.asks(router_id, bodies)
        seconds = min(timeout or door.patience, door.patience)
        # A single decision is returned byte for byte as on the log; its problem is the response
        # itself.
        if not is_batch:
            return Response(
                await door.decide(asked[0], seconds=seconds, fallback=fallback), media_type=JSON
            )

        async def one(event: Ask) -> bytes:
            try:
                return await door.decide(event, seconds=seconds, fallback=fallback)
            except Problem as problem:
                # One of a batch that fails leaves the others their answers.
                return orjson.dumps(problem.body())

        return Response(
            b"[" + b",".join(await asyncio.gather(*map(one, asked))) + b"]", media_type=JSON
        )


def _add_reading(app: FastAPI, door: Door) -> None:
    @app.get(
        "/v1/routers/{router_id}/decisions/{request_id:path}",
        **documented.answers("Decision", "Every term of it"),
    )
    async def explain(request: Request, router_id: RouterId, request_id: str) -> Response:
        """Show a decision again, with `because`: the reason for the choice, in words."""
        door.admit(request, router_id)
        decision = await door.lookup.find(router_id, request_id)
        if decision is None:
            raise Problem(
                "not_found", "no decision on this request is remembered", request_id=request_id
            )
        body = decision.model_dump(mode="json", exclude_none=False)
        return Response(
            orjson.dumps({**body, "because": BECAUSE.get(decision.reason.value, "")}),
            media_type=JSON,
        )

    @app.get(
        "/v1/routers/{router_id}",
        **documented.answers("Router", "Its last state: λ_t, counters, money"),
    )
    async def router(request: Request, router_id: RouterId) -> Response:
        """Show a router as `pb.lambda` has it."""
        door.admit(request, router_id)
        # As the worker wrote it, fields of newer versions included.
        value = door.books[router_id]
        if value is None:
            raise Problem(Reason.UNKNOWN_ROUTER.value)
        return Response(value, media_type=JSON)


def _add_reports(app: FastAPI, door: Door) -> None:
    @app.post("/v1/routers/{router_id}/costs", **documented.reports("Cost"))
    async def costs(request: Request, router_id: RouterId) -> Response:
        """Report what requests cost; all bills of a body are taken, or none."""
        bodies, _ = await door.events(request, router_id)
        await door.deliver(http_events.costs(router_id, bodies))
        return _accepted(len(bodies))

    @app.post("/v1/routers/{router_id}/rewards", **documented.reports("Reward"))
    async def rewards(request: Request, router_id: RouterId) -> Response:
        """Report how good answers were; all rewards of a body are taken, or none."""
        bodies, _ = await door.events(request, router_id)
        await door.deliver(http_events.rewards(router_id, bodies))
        return _accepted(len(bodies))


def _add_ingest(app: FastAPI, door: Door) -> None:
    payloads = ForeignPayloads(door)

    @app.post("/v1/routers/{router_id}/ingest/{form}", **documented.foreign())
    async def ingest(
        request: Request, router_id: RouterId, form: Form, score: Scores = ()
    ) -> Response:
        """Take bills and labels in another system's form, such as LiteLLM's `generic_api`, packed
        with gzip or not. Each item of a body is booked or refused by itself; what is refused is
        kept on `pb.dlq`.
        """
        status, answer = await payloads.take(request, router_id, form, score)
        return Response(orjson.dumps(answer), status, media_type=JSON)


def _add_health(app: FastAPI, door: Door) -> None:
    @app.api_route("/livez", methods=PROBES, include_in_schema=False)
    async def livez() -> Response:
        return PlainTextResponse("ok\n")

    @app.api_route("/readyz", methods=PROBES, include_in_schema=False)
    async def readyz() -> Response:
        return PlainTextResponse(f"{door.trouble or 'ok'}\n", 503 if door.trouble else 200)

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        door.metrics.ready.set(door.trouble is None)
        door.metrics.waiting.set(len(door.link.waiting))
        door.metrics.late.set(door.link.waiting.late)
        return Response(generate_latest(door.metrics.registry), media_type=CONTENT_TYPE_LATEST)


def _accepted(count: int) -> Response:
    return Response(orjson.dumps({"accepted": count}), 202, media_type=JSON)


def _description(app: FastAPI) -> Document:
    if not app.openapi_schema:
        found = get_openapi(title=app.title, version=app.version, routes=app.routes)
        found.setdefault("components", {}).setdefault("schemas", {}).update(documented.components())
        found["components"]["securitySchemes"] = documented.SECURITY
        for operation in (one for path in found["paths"].values() for one in path.values()):
            operation["responses"].pop("422", None)  # every problem is described at once
            # Said here: a dependency of FastAPI would look at each request's header once more.
            operation["security"] = [{name: [] for name in documented.SECURITY}]
        app.openapi_schema = found
    return app.openapi_schema


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return error.response()


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = "; ".join(f"{one['loc'][-1]} {what_is_wrong(one)}" for one in error.errors())
    return Problem(Reason.INVALID_FIELD.value, wrong).response()


async def _of_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return Problem("method_not_allowed" if error.status_code == 405 else "not_found").response()


async def _defect(request: Request, error: Exception) -> Response:
    return Problem("internal_error").response()


HANDLERS: dict[type[Exception], Any] = {
    Problem: _problem,
    RequestValidationError: _invalid,
    HTTPException: _of_http,
    Exception: _defect,
}
"""Handlers of errors that leave a path; the last one is for defects."""
