"""Reports of members to their family, and priors of the family for its members."""

from __future__ import annotations

from msgspec import Struct, field

from router_state.events import OfCapability


class Model(Struct, frozen=True, array_like=True, omit_defaults=True):
    """Sums of one model, see `family_sums.bytes_of`; empty: none.

    Attributes:
        rewards, bills: sums of its rewards, and of the logarithms of its bills ÷ list price.
        shared: numbers that capabilities share, see `shared_numbers.packed`.
    """

    rewards: bytes = b""
    bills: bytes = b""
    shared: dict[str, bytes] = {}

    @property
    def sides(self) -> tuple[bytes, bytes]:
        """Return the sums of rewards and of bills."""
        return self.rewards, self.bills


class Report(Struct, frozen=True):
    """A member's report: its sums of some of its models.

    Attributes:
        family, member: recipient and sender.
        born: number of the membership; n: number of the last prior that the member has taken over.
        d, projection: dimensions of contexts, and what makes them (SHA-256).
        gives, takes: whether the family learns from the member, and the member from the family.
        left: whether the member has left the family.
        seen: rewards and bills that the member has learned so far.
        noise: σ² of rewards and of logarithms of bills.
        names: all models of the member; None: as in its last report.
        models: its sums of some of its models; none where it only joins.
    """

    family: str
    member: str
    born: int
    n: int
    d: int
    projection: str
    gives: bool = True
    takes: bool = True
    left: bool = False
    seen: tuple[int, int] = (0, 0)
    noise: tuple[float, float] = (0.0, 0.0)
    names: tuple[str, ...] | None = None
    models: dict[str, Model] = field(default_factory=dict)


class MemberPrior(OfCapability, frozen=True):
    """A prior for a member: statements of the other members about some of its models.

    Attributes:
        family, born, n: as in `Report`; a later prior has a higher `n`.
        models: precision and precision × mean in units of σ², by model; other models keep their
            priors.
        more: whether another record follows, with other models.
        members: number of members that have reported, without this one.
        aside: whether the family leaves this member out; slope: slope of its coefficients on those
            of the others.
        refused: why the family does not take the member; "": it does.
        noise: σ² of rewards and of logarithms of bills; 0: the family does not know it yet.
        offset: of the prior on its topic.
    """

    family: str
    born: int
    n: int
    models: dict[str, Model] = field(default_factory=dict)
    more: bool = False
    members: int = 0
    aside: bool = False
    slope: float = 1.0
    refused: str = ""
    noise: tuple[float, float] = (0.0, 0.0)
    offset: int = -1
