"""Topic `leases`: reports of members to their pool (`report`), and money that a pool grants to a
member (`grant`). Workers write and read it, nobody else.

Key: the receiver, which is the `pool_id` of a report and the `member_id` of a grant. Version 1.
Compatible: new optional fields.
"""

from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from schemas.budgets import Zone
from schemas.event import Content, Event, documented, optional
from schemas.fields import LARGEST_INT, RouterId, UtcTime, refuse
from schemas.reasons import Reason

TOPIC: Final = "leases"
KEY: Final = "router_id"
"""The topic behind its prefix, and the field that its records are keyed by."""
MAX_LINES: Final = 512
"""Most periods of which one record speaks."""
MAX_POINTS: Final = 64
"""Most prices of a curve."""

Dollars = Annotated[float, Field(ge=0, le=1e12)]
Number = Annotated[int, Field(ge=-1, le=LARGEST_INT)]


class Lease(Content):
    """Grant dollars of one period of one budget."""

    line: Annotated[
        str, Field(max_length=160, description="The pool whose budget it is, and its name")
    ]
    per: Literal["hour", "day", "week", "month"] | None = optional("The budget's period")
    timezone: Zone = "UTC"
    starts: UtcTime | None = optional("When the budget's first period begins")
    expires: UtcTime | None = optional("When the budget ends for good")
    begins: UtcTime
    ends: UtcTime
    usd: Annotated[
        Dollars,
        Field(description="What the member may have been charged in the period, all in all"),
    ]
    until: Annotated[UtcTime, Field(description="From then on nothing more may be spent of it")]

    @model_validator(mode="after")
    def _is_a_period(self) -> Self:
        starts, expires = self.starts, self.expires
        dated = starts is not None and expires is not None and starts < expires
        kinds = self.per is None, dated, expires is not None
        if self.begins >= self.ends or not kinds[0] == kinds[1] == kinds[2]:
            raise refuse(Reason.INVALID_FIELD, "is of no period")
        return self


class Holding(Content):
    """State what a member holds, has spent and would spend in one period of one budget."""

    line: Annotated[str, Field(max_length=160)]
    begins: UtcTime
    holds_usd: Annotated[
        Dollars, Field(description="What it may have been charged at the end, as far as it knows")
    ]
    spent_usd: Annotated[
        Dollars, Field(description="What is charged, and held back for bills in flight")
    ]
    curve: Annotated[
        tuple[tuple[Dollars, Dollars], ...],
        Field(
            max_length=MAX_POINTS, description="Prices of a dollar, and what it would spend at each"
        ),
    ] = ()


class LeaseNoted(Event):
    """Carry a report or a grant between a pool and one of its members."""

    model_config = documented(
        TOPIC,
        key=KEY,
        valid=[
            {
                "kind": "grant",
                "router_id": "acme.chat",
                "pool_id": "acme",
                "member_id": "acme.chat",
                "member_kind": "router",
                "born": 3,
                "n": 7,
                "leases": [
                    {
                        "line": "acme/month",
                        "per": "month",
                        "begins": "2026-11-01T00:00:00Z",
                        "ends": "2026-12-01T00:00:00Z",
                        "usd": 812.25,
                        "until": "2026-11-21T09:41:00Z",
                    }
                ],
                "observed_at": "2026-11-21T09:31:00Z",
            },
            {
                "kind": "report",
                "router_id": "acme",
                "pool_id": "acme",
                "member_id": "acme.chat",
                "member_kind": "router",
                "born": 3,
                "n": 7,
                "moves": 9120,
                "holdings": [
                    {
                        "line": "acme/month",
                        "begins": "2026-11-01T00:00:00Z",
                        "holds_usd": 812.25,
                        "spent_usd": 640.5,
                        "curve": [[0.0, 300.0], [40.0, 160.0], [80.0, 110.0]],
                    }
                ],
                "observed_at": "2026-11-21T09:31:01Z",
            },
        ],
        invalid={Reason.MISSING_FIELD: {"kind": "grant", "router_id": "acme.chat"}},
    )

    kind: Literal["report", "grant"]
    router_id: Annotated[
        RouterId, Field(description="Whom it is for: the pool of a report, the member of a grant")
    ]
    pool_id: RouterId
    member_id: RouterId
    member_kind: Literal["router", "pool"]
    born: Annotated[Number, Field(description="Number of the membership")]
    n: Annotated[Number, Field(description="Number of the grant, or of the last one it has taken")]
    moves: Annotated[Number, Field(description="Of two reports the one with more is newer")] = 0
    left: Annotated[bool, Field(description="The member is none any more")] = False
    leases: Annotated[tuple[Lease, ...], Field(max_length=MAX_LINES)] = ()
    holdings: Annotated[tuple[Holding, ...], Field(max_length=MAX_LINES)] = ()
    observed_at: UtcTime
