"""Whatever is wrong with a declaration: messages name the field as the document has it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from doors.console.document import faults
from schemas import MalformedEvent, RouterDeclared, decode

MODEL = {"input_price_per_m": 0.4, "output_price_per_m": 2.0}
PRIOR = {"A": [[2.0, 0.5], [0.5, 4.0]], "b": [0.3, 3.1], "n_eff": 100.0}
MORE = [
    {
        "router_id": "acme.priors",
        "dimensions": 2,
        "models": {
            "first": {**MODEL, "prior": PRIOR, "cost_prior": {**PRIOR, "mean_usd": 0.001}},
            "second": {**MODEL, "prior": {"like": "first", "n_eff": 5.0}},
            "third": {**MODEL, "prior": {"ref": "r", "sha256": "0" * 64, "n_eff": 5.0}},
        },
        "min_reward": 0.9,
        "usd_per_second": {"first_token": 0.001},
        "budget": {"usd": 5, "per": "day", "timezone": "Europe/Berlin", "carry": 3.0},
    },
]
"""Each form of a field that the contract's own examples leave out."""
DECLARATIONS: list[Any] = [*RouterDeclared.model_json_schema()["examples"], *MORE]
ABSENT = object()
WRONG = [-1, 0, 2, 1e12, "x", "", None, True, [], {}, ["x"], {"x": 1}, ABSENT]
Path = tuple[str | int, ...]


def places(part: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of everything in a document."""
    named = (
        part.items() if isinstance(part, dict) else enumerate(part if type(part) is list else ())
    )
    for name, inner in named:
        yield (*path, name)
        yield from places(inner, (*path, name))


def changed(document: Any, path: Path, value: object) -> Any:
    """Return a copy that has another value at a path, or none."""
    found = copy.deepcopy(document)
    part = found
    for name in path[:-1]:
        part = part[name]
    if value is ABSENT:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return found


def stands_in(document: Any, where: str, *, any_model: bool = False) -> bool:
    """Tell whether a document has a field, or the object that lacks it."""
    found = {""}
    for path in places(document):
        of_model = any_model and len(path) > 1 and path[0] == "models"
        parts = ("models", "*", *path[2:]) if of_model else path
        found.add(".".join(str(part) or '""' for part in parts))
    return where in found or where.rpartition(".")[0] in found


wrong = st.sampled_from(DECLARATIONS).flatmap(
    lambda whole: st.builds(
        changed, st.just(whole), st.sampled_from(list(places(whole))), st.sampled_from(WRONG)
    )
)


@given(document=wrong)
def test_a_fault_stands_where_the_document_has_it(document: Any) -> None:
    try:
        decode(RouterDeclared, orjson.dumps(document))
    except MalformedEvent as refused:
        where, *_ = refused.message.removeprefix("a name in ").split()
    else:
        return
    # Sentences about the whole declaration have another subject.
    assert where in ("a", "has", "the") or stands_in(document, where, any_model=True)
    names = [fault.partition(": ")[0] for fault in faults(document)]
    assert names
    for name in names:
        assert name == "the router" or stands_in(document, name)


def test_what_an_import_has_noted_is_no_fault_and_params_may_hold_anything() -> None:
    """So a portfolio that was imported can be changed by every other command."""
    marks = {"imported": MODEL, "imported_offers": {}, "imported_cache": {}, "imported_others": {}}
    model = {**MODEL, **marks, "params": {"a": {"b": [1, {"c": None}]}}}
    document = {"router_id": "r", "models": {"m": model}}
    assert faults(document) == []
    document["models"] = {"m": {**model, "importd": 1}}
    assert [fault.partition(":")[0] for fault in faults(document)] == ["models.m.importd"]
