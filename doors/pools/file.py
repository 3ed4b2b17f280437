"""A file of pools: budgets of a period, and who has part in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from doors.console.failures import Failure
from ground.files.yaml_text import BadYaml, read_yaml
from schemas.fields import RouterId

CLOSED = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
"""Rules of the file: a misspelt field is an error, not left out."""
MOST_LEVELS = 8
"""Pools above each other, at most."""
Share = Annotated[float, Field(ge=0, le=1)]


class Part(BaseModel):
    """Bound what a member may have of its pool's budget, as shares of it."""

    model_config = CLOSED

    least: Annotated[Share, Field(alias="min")] = 0.0
    most: Annotated[Share, Field(alias="max")] = 1.0

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.least > self.most:
            raise ValueError("min is above max")
        return self


class Pool(BaseModel):
    """A pool: its own budget, or part of that of the pool which names it as a member."""

    model_config = CLOSED

    usd: Annotated[float, Field(gt=0, le=1e9)] | None = None
    per: Literal["hour", "day", "week", "month"] | None = None
    timezone: str | None = None
    members: Annotated[dict[RouterId, Part], Field(min_length=1, max_length=1000)]

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        if (self.usd is None) != (self.per is None):
            raise ValueError("a budget needs usd and per")
        if sum(part.least for part in self.members.values()) > 1.0 + 1e-9:
            raise ValueError("what members get at least is more than the pool")
        return self


class Pools(BaseModel):
    """All pools of a file, by name; a member that is no pool is a router."""

    model_config = CLOSED

    pools: Annotated[dict[RouterId, Pool], Field(min_length=1, max_length=1000)]

    @model_validator(mode="after")
    def _is_a_forest(self) -> Self:
        parents: dict[str, str] = {}
        for name, pool in self.pools.items():
            for member in pool.members:
                if member in parents:
                    raise ValueError(f"{member} is a member of {parents[member]} and of {name}")
                parents[member] = name
        for name, pool in self.pools.items():
            if (name in parents) == (pool.usd is not None):
                raise ValueError(f"{name} needs usd and per, or a pool that it is a member of")
            above, levels = name, 0
            while (parent := parents.get(above)) is not None:
                above, levels = parent, levels + 1
                if levels > MOST_LEVELS:
                    raise ValueError(
                        f"{name} is within itself, or deeper than {MOST_LEVELS} levels"
                    )
        return self

    @property
    def roots(self) -> list[str]:
        """Names of the pools that have a budget of their own."""
        return [name for name, pool in self.pools.items() if pool.usd is not None]

    def routers(self, pool: str) -> Iterator[str]:
        """Yield the routers of a pool and of the pools within it."""
        for member in self.pools[pool].members:
            if member in self.pools:
                yield from self.routers(member)
            else:
                yield member


def read_pools(path: Path) -> Pools:
    """Read a file of pools.

    Raises:
        Failure: it is none; one line a fault.
    """
    try:
        return Pools.model_validate(read_yaml(path))
    except BadYaml as error:
        raise Failure(f"{path} is no YAML: {error}") from None
    except ValidationError as error:
        faults = [
            f"  {'.'.join(map(str, one['loc'])) or 'pools'}: "
            f"{one['msg'].removeprefix('Value error, ')}"
            for one in error.errors(include_url=False, include_context=False)
        ]
        raise Failure("\n".join([f"{path} declares no pools:", *faults])) from None
