"""What drawn worlds leave is what they left when the fixture was written, to the bit."""

from __future__ import annotations

import json

import pytest

from tests.router_state.record_streams import FIXTURE, WORLDS, hashes

KEPT = json.loads(FIXTURE.read_text())


@pytest.mark.parametrize("name", WORLDS)
def test_a_world_leaves_the_same_to_the_bit(name: str) -> None:
    assert hashes(name) == KEPT[name], (
        "if this change is meant: python -m tests.router_state.record_streams, "
        "and say why in the commit"
    )
