"""A capability is held to the contracts, stands on the page and is played as a world: what
CONTRIBUTING.md asks for under "Add a capability".
"""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path

import pytest

from agents.declaring.configuration import config_of
from router_state.capability import Capability
from router_state.registered import KINDS
from schemas.routers import RouterDeclared
from tests.router_state.record_streams import WORLDS, Played

ROOT = Path(__file__).parents[2]
CONTRACTS = {
    "the kernel imports nothing of the core": "forbidden_modules",
    "the core knows capabilities by their hooks alone": "forbidden_modules",
    "a capability knows the kernel and the core's types": "source_modules",
    "capabilities do not know each other": "modules",
}
"""The contracts that name all capabilities, and the list of each that does."""
PAGE = "docs/explanation/architecture.md"
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def folder_of(kind: type[Capability]) -> str:
    return kind.__module__.rpartition(".")[0]


@kinds
def test_it_is_held_to_the_contracts(kind: type[Capability]) -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    contracts = {one["name"]: one for one in tool["importlinter"]["contracts"]}
    missing = {
        contract: field
        for contract, field in CONTRACTS.items()
        if folder_of(kind) not in contracts[contract][field]
    }
    assert not missing, f"pyproject.toml: add {folder_of(kind)!r} to these contracts: {missing}"


@kinds
def test_the_page_says_where_it_is(kind: type[Capability]) -> None:
    folder = folder_of(kind).replace(".", "/") + "/"
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    assert folder in page, f"{PAGE}: name a file of {folder} where it takes part, and what it owns"


@cache
def declared_in_worlds() -> frozenset[str]:
    """Return the names of the capabilities that some world declares, at first or later."""
    found: set[str] = set()
    for name, world in WORLDS.items():
        document = Played(name).document
        for change in (dict, *world.changes):
            document = change(document)
            declared = RouterDeclared.model_validate_json(json.dumps(document))
            config = config_of(declared, offset=1, references={})
            found |= config.capabilities.keys()
    return frozenset(found)


@kinds
def test_a_world_declares_it(kind: type[Capability]) -> None:
    assert kind.name in declared_in_worlds(), (
        f"add a world that declares {kind.name!r} to WORLDS in tests/router_state/record_streams.py"
        ", then: python -m tests.router_state.record_streams"
    )
