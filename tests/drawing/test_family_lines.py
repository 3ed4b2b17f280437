"""Sentences about families."""

from __future__ import annotations

import pytest

from drawing.family_lines import family_lines, known_lines, why_apart
from schemas.families import FamilyModel, FamilyStanding
from tests.watching.dashboard.test_families_view import estimated, member


def standing(members: int, **changed: object) -> FamilyStanding:
    models = tuple(FamilyModel(model=f"m{k}", requests=float(k)) for k in range(7))
    told = {"name": "support", "gives": True, "takes": True, "taken": 1, "aside": False}
    return FamilyStanding.model_validate({**told, "members": members, "models": models, **changed})


@pytest.mark.parametrize(("members", "who"), [(1, "1 other tells"), (2, "2 others tell")])
def test_a_router_says_who_tells_and_what_it_counts_for(members: int, who: str) -> None:
    first, second = family_lines(standing(members))
    assert first == f"family support: {who} of their requests"
    assert second.endswith("m6 6.000, m5 5.000, m4 4.000, m3 3.000, m2 2.000, and 2 more")


def test_a_router_whose_family_has_no_other_members_says_where_it_knows_from() -> None:
    first, second = family_lines(standing(0))
    assert first == "family support: what it knows was brought from elsewhere"
    assert second.startswith("what they know counts for requests: m6")
    assert family_lines(standing(0, models=())) == [
        "family support: 0 others tell of their requests"
    ]


def test_a_router_that_is_left_out_or_refused_says_why() -> None:
    assert "leaves the router out" in family_lines(standing(2, aside=True))[1]
    refused = standing(2, refused="other contexts")
    assert family_lines(refused) == ["family support does not take the router: other contexts"]
    assert why_apart(None, refused) == "refused: other contexts"
    assert family_lines(None) == []


def test_a_family_says_what_it_is_made_of() -> None:
    one = estimated("support", member("chat"))
    assert known_lines(one) == ["1 member, 2 models, contexts of 26 dimensions"]
    shared = {"attempts:judge": "", "attempts:tests": ""}
    models = tuple(model.model_copy(update={"shared": shared}) for model in one.models)
    known = known_lines(one.model_copy(update={"models": models}))
    assert known[1:] == ["it knows what verdicts mean: judge, tests"]
    two = estimated("support", member("chat"), member("odd", aside=True))
    assert known_lines(two)[1] == "1 member left out of what the others get"
    assert known_lines(estimated("support"))[1] == "what it knows was brought from elsewhere"
