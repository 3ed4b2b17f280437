"""Define the sources of a router's labels, as declared, and the ranks of their labels."""

from __future__ import annotations

from msgspec import Struct

from router_state.config import RouterConfig
from router_state.errors import InvalidConfig

BEYOND_OTHERS = 1_000
"""Rank of gold. It exceeds the ranks that a worker's setting gives. The first judge's rank is one
lower, the second judge's two lower, and so on."""
PERSON = ":"
"""Stands between a source and the name of who labelled: `human:anna`."""


OFFSET = "offset"
"""Mode of `calibrate` in which a judge's offsets are taken off its labels."""
ON = "on"
"""Mode of `calibrate` in which offsets are taken off, and an uninformative judge is set aside."""


class DeclaredSources(Struct, frozen=True, omit_defaults=True):
    """The sources as declared. `gold` is the source that the `judges` are measured by; None: no
    source is declared. `calibrate` is the use of that measurement by judge: `offset` or `on`."""

    gold: str | None = None
    judges: tuple[str, ...] = ()
    calibrate: dict[str, str] = {}

    def calibrates(self, source: str) -> bool:
        """Tell whether a judge's offsets are taken off its labels."""
        return self.calibrate.get(source) in (OFFSET, ON)

    def may_set_aside(self, source: str) -> bool:
        """Tell whether the labels of an uninformative judge are not learned."""
        return self.calibrate.get(source) == ON

    def check(self, config: RouterConfig) -> None:
        """Raise InvalidConfig if these sources contradict the rest of the router's declaration."""
        if config.profile == "paper" and ON in self.calibrate.values():
            raise InvalidConfig(
                "calibrate on takes a judge's labels out again, which profile paper can't do: "
                "declare offset, or profile live"
            )

    def is_gold(self, source: str) -> bool:
        """Tell whether a label of this source is gold: of the source itself, or of a person whose
        name follows it."""
        gold = self.gold
        return gold is not None and (source == gold or source.startswith(gold + PERSON))

    def rank_of(self, source: str, rank: int) -> int:
        """Return the rank of a source's labels: gold first, then the judges in their order, then
        all other sources by the ranks that the worker gives them.
        """
        if self.is_gold(source):
            return BEYOND_OTHERS
        if source in self.judges:
            return BEYOND_OTHERS - 1 - self.judges.index(source)
        return rank
