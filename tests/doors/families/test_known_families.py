"""What another family brings, before it is sent."""

from __future__ import annotations

from typing import Any

import pytest

from doors.console.failures import Failure
from doors.families.known_families import bring
from schemas.families import FamilyEstimated


@pytest.mark.parametrize("name", ["", "a b", "a/b", "ü", "x" * 129])
async def test_what_is_no_name_of_a_family_is_said_in_a_sentence(name: str) -> None:
    known: Any = FamilyEstimated.model_config["json_schema_extra"]["examples"][0]  # type: ignore[index]
    nothing: Any = None  # nothing is sent
    with pytest.raises(Failure, match="is not the name of a family: names have 1 to 128 of"):
        await bring(nothing, FamilyEstimated.model_validate(known, strict=False), name)
