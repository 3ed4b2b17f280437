"""Verifiers and plans on a router's page, in a real browser, on a real broker: the table, what
plans came to, and the star without plans beside the star."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streams.settings import Settings
from tests.integration.browsing import fits, load
from tests.integration.test_dashboard import cells, served, text, until
from tests.integration.test_dashboard_answers import say
from tests.watching.dashboard.test_dashboard_folds import label, route, state
from tests.watching.test_planned_requests import call, planned, verdict

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

SHARE = {"value": 0.912, "low": 0.85, "high": 0.96}
MODELS = [
    {"model": name, "passes_right": SHARE, "stops_wrong": SHARE, "verdicts": 90, "labels": 31}
    for name in ("a", "b", "openrouter/meta-llama/llama-3.1-405b-instruct-with-a-long-name")
]


def standing(name: str, **more: Any) -> dict[str, Any]:
    return {
        "verifier": name,
        "usd": 0.0,
        "exact": False,
        "accept_at": 0.5,
        "models": MODELS,
        **more,
    }


def test_the_page_has_each_verifiers_table_what_plans_came_to_and_the_star_without_them(
    settings: Settings, browser: Chrome
) -> None:
    told: list[tuple[str, Any]] = []
    for n in range(24):
        went = n % 4 == 1
        told += [
            ("routes", planned(f"r-{n}") if n % 2 else route(f"r-{n}", "b")),
            ("costs", call(f"r-{n}", 0, 1e-4)),
            ("rewards", label(f"r-{n}", 0.5 + n % 3 / 4)),
        ]
        if n % 2:
            told.append(("rewards", verdict(f"r-{n}", 0.0 if went else 1.0)))
        if went:
            told.append(("costs", call(f"r-{n}", 1, 6e-4)))
    of_family = [MODELS[0] | {"family_verdicts": 40, "family_labels": 12}, *MODELS[1:]]
    judge = standing("judge", usd=4e-5, models=of_family)
    verifiers = [judge, standing("tests", exact=True)]
    with served(settings) as address:
        say(settings, ("lambda", state()), *told)
        load(browser, f"{address}#/router/chat")
        until(lambda: "Verifiers" in text(browser, "main"), "the plans' verifier")
        assert "testsno longer declared; 12 plans" in text(browser, "[aria-label=Verifiers]")
        say(settings, ("lambda", state(verifiers=verifiers, observed_at="2030-01-01T00:00:00Z")))
        until(lambda: "judge" in text(browser, "[aria-label=Verifiers]"), "what was declared")
        shown = text(browser, "[aria-label=Verifiers]")
        assert "$0.00004 a verdict; no plan rests on it yet." in shown
        assert "12 plans, 50% of the requests; 50% of them went on to another model;" in shown
        assert "and to save $0.116 in all." in shown
        assert shown.count("What its family told counts beside for 12 labels of a.") == 1
        rows = cells(browser, "[aria-label=Verifiers] .scroll tbody tr")
        assert rows[0] == ["a", "91% (85% to 96%)", "91% (85% to 96%)", "31", "90"]
        assert len(rows) == 6
        assert "without plans" in text(browser, "figure.pareto")
        assert "Plans are expected to" in text(browser, "main")
        fits(browser, "verifiers", (390, 1440))
        browser.get("about:blank")
