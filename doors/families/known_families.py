"""Read what families publish, and bring one family's estimates to another family."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from doors.console.failures import Failure
from ground.messages import Placed
from schemas import MalformedEvent, decode
from schemas.families import FamilyEstimated
from schemas.fields import RouterId
from schemas.kin import KinNoted

if TYPE_CHECKING:
    from doors.console.bus import Bus

_ROUTER_ID: TypeAdapter[str] = TypeAdapter(RouterId)
TOPICS = "families", "kin"
"""Topics of families, by their short names."""


async def read_families(bus: Bus) -> dict[str, FamilyEstimated]:
    """Return the published estimates of each family, by its name."""
    newest = await bus.newest("families")
    found = {(key or b"").decode(): value for key, value in newest.items() if value is not None}
    return {name: decode(FamilyEstimated, found[name]) for name in sorted(found)}


async def read_family(bus: Bus, name: str) -> FamilyEstimated:
    """Return the published estimates of a family.

    Raises:
        Failure: there is no such family.
    """
    families = await read_families(bus)
    if name not in families:
        known = f"there are {', '.join(families)}" if families else "there is none yet"
        raise Failure(
            f"no family {name} has published anything: {known}; a family begins with the first "
            "router that declares it, and publishes once its members have 20 rewards or bills"
        )
    return families[name]


def family_of(data: bytes, where: str) -> FamilyEstimated:
    """Return what a file of `pbstream families export` holds.

    Raises:
        Failure: it holds something else.
    """
    try:
        return decode(FamilyEstimated, data)
    except MalformedEvent as error:
        raise Failure(
            f"{where} is not what `pbstream families export` writes: {error.message}"
        ) from None


async def bring(bus: Bus, known: FamilyEstimated, name: str) -> Placed:
    """Bring estimates to the family of this name.

    Raises:
        Failure: the name can't be that of a family.
    """
    try:
        _ROUTER_ID.validate_python(name)
    except ValidationError:
        raise Failure(
            f"{name!r} is not the name of a family: names have 1 to 128 of A-Z a-z 0-9 . _ -"
        ) from None
    note = KinNoted(
        kind="brought",
        router_id=name,
        family=name,
        member_id=name,
        born=0,
        n=0,
        # Who the members are stays with them.
        brought=known.model_copy(update={"listed": ()}),
        observed_at=datetime.now(UTC),
    )
    return await bus.send("kin", note)
