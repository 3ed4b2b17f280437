"""Compare the plans of requests with the bills and verdicts of their calls on the topics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from router_state.plan import Plan

CallOf = tuple[int, str]
"""A verdict's call, by its number, and its verifier."""


def differing(
    plan: Plan,
    billed: Mapping[int, int],
    usd_of: Callable[[int], float | None],
    verdicts: Collection[CallOf],
) -> Iterator[str]:
    """Yield the differences between a request's plan and the topics.

    Args:
        billed: the revisions of the bills that count, by call.
        usd_of: function that returns the dollars of such a bill; None: its price is forgotten.
        verdicts: the verdicts on the topics.
    """
    for number, made in enumerate(plan.made):
        if made.cost_usd is None and number in billed:
            yield f"the bill of attempt {number} is missing in the state"
        elif made.cost_usd is not None:
            usd = usd_of(number) if number in billed else None
            found, expected = (made.revision, made.cost_usd), (billed.get(number), usd)
            if found[0] != expected[0] or usd not in (None, found[1]):
                yield (
                    f"(revision, dollars) of attempt {number} are {found} in the state, "
                    f"{expected} in costs"
                )
    found_verdicts = {(n, name) for n, made in enumerate(plan.made) for name in made.verdicts}
    if found_verdicts != set(verdicts):
        yield f"verdicts are {sorted(found_verdicts)} in the state, {sorted(verdicts)} in rewards"
