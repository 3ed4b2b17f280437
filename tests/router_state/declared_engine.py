"""An engine of a router that is declared as on the wire."""

from __future__ import annotations

from typing import Any

import orjson

from agents.declaring.configuration import config_of, declaration_of
from agents.publishing.published_values import route_value
from benchmarks.played import Played
from router_state.config import RouterConfig
from router_state.record import RequestRecord
from router_state.state import record_bytes
from schemas.event import decode
from schemas.routers import RouterDeclared
from schemas.routes import RouteDecided
from tests.router_state.core_reference import context, freeze, thaw

X = context(1.0, 0.0, 0.0)
PRICE = {"input_price_per_m": 1.0, "output_price_per_m": 4.0, "expected_cost_usd": 0.001}
DEAR = {"input_price_per_m": 10.0, "output_price_per_m": 40.0, "expected_cost_usd": 0.01}


def config(models: dict[str, Any], *, offset: int = 1, **fields: Any) -> RouterConfig:
    """Return the configuration of a router with these models."""
    document = {"router_id": "r", "models": models, "dimensions": 4, **fields}
    found = config_of(decode(RouterDeclared, orjson.dumps(document)), offset=offset, references={})
    # What a declaration says comes back from the configuration.
    told = decode(RouterDeclared, orjson.dumps(declaration_of(found, "r")))
    again = config_of(told, offset=offset, references={})
    assert again.capabilities == found.capabilities
    assert [m.price for m in again.models.values()] == [m.price for m in found.models.values()]
    return found


def engine(models: dict[str, Any], **fields: Any) -> Played:
    """Return an engine of such a router."""
    return Played.start(config(models, **fields))


def again(one: Played) -> Played:
    """Return an engine that was stopped and started."""
    return thaw(freeze(one), {name: record.x for name, record in one.records.items()})


def ask(one: Played, request_id: str, *, now: float = 0.0, **asked: Any) -> RequestRecord:
    """Return the decision of a request."""
    return one.decide(request_id, X, now=now, **asked)


def published(record: RequestRecord) -> RouteDecided:
    """Return a decision as it is published, before and after it was packed."""
    kept = record_bytes.unpack_record(record_bytes.pack_record(record))
    before = orjson.loads(route_value("r", "1", record, repeat=False))
    after = orjson.loads(route_value("r", "1", kept, repeat=False))
    for name in ("variant_of", "params", "variants"):
        assert before.get(name) == after.get(name)
    return decode(RouteDecided, orjson.dumps(before))
