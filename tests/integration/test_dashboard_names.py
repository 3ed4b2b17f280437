"""Names as people really give them, on pages as wide as a telephone: nothing is cut off, nothing
runs, and every name is read as it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schemas import ModelDeclared, RouterDeclared
from streams.settings import Settings
from tests.integration.browsing import fits, load
from tests.integration.test_dashboard import CSS, served, text, until
from tests.integration.test_dashboard_answers import say
from tests.integration.test_dashboard_verifiers import SHARE
from tests.watching.dashboard import test_families_view as family
from tests.watching.dashboard.test_dashboard_folds import bill, label, route, state

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

SCRIPT = "</script><script>document.title = 'taken'</script>"
NAMES = (
    "x" * 200,
    "🦙" * 40,
    "نموذج كبير جدا 7 (b)",
    """it's "quoted" `so` & <b id=taken>bold</b>""",
    SCRIPT,
)
LABEL = 128
"""Most characters of a source's and of a verifier's name."""
ROUTER = "r" * 128
"""The longest identifier of a router or a family."""
ESTIMATE = {"value": 0.1, "low": -0.1, "high": 0.3}
PHONE = (390,)


def test_names_of_any_kind_fit_a_telephone_and_run_nothing(
    settings: Settings, browser: Chrome
) -> None:
    sold = ModelDeclared(input_price_per_m=1.0, output_price_per_m=2.0)
    declared = RouterDeclared(router_id=ROUTER, models=dict.fromkeys(NAMES, sold), dimensions=4)
    known = {"passes_right": SHARE, "stops_wrong": SHARE, "verdicts": 90, "labels": 31}
    verifiers = [
        {
            "verifier": name[:LABEL],
            "usd": 1e-5,
            "exact": False,
            "accept_at": 0.5,
            "models": [{"model": one, **known} for one in NAMES],
        }
        for name in NAMES
    ]
    measured = [{"model": name, "pairs": 40, "offset": ESTIMATE} for name in NAMES]
    sources = [
        {
            "source": name[:LABEL],
            "gold": not at,
            **({"pairs": 40, "models": measured} if at else {}),
        }
        for at, name in enumerate(NAMES)
    ]
    now = state(
        ROUTER,
        verifiers=verifiers,
        sources=sources,
        family=family.standing(ROUTER),
    )
    decided = route("r-1", router_id=ROUTER)
    (one, *_) = decided.candidates
    decided = decided.model_copy(
        update={
            "model": SCRIPT,
            "candidates": tuple(one.model_copy(update={"model": name}) for name in NAMES),
        }
    )
    models = [{"model": name, "rewards": family.side(0.7, 0.05, 60.0)} for name in NAMES]
    estimated = family.estimated(ROUTER, family.member(ROUTER), models=models)
    paid = bill("r-1", 1e-4).model_copy(update={"router_id": ROUTER})
    judged = label("r-1", 0.9, source=SCRIPT).model_copy(update={"router_id": ROUTER})
    with served(settings) as address:
        say(settings, ("routers", declared), ("lambda", now))
        say(settings, ("routes", decided), ("costs", paid), ("rewards", judged))
        say(settings, ("families", estimated))
        for page, ready in {
            "": ".rows .row a[href]",
            f"#/router/{ROUTER}": "[aria-label=Verifiers] tbody tr",
            f"#/decision/{ROUTER}/r-1": "svg.whisker",
            "#/families": "tbody tr",
            f"#/proof/{ROUTER}": "main button",
            f"#/inbox/{ROUTER}": "h1",
        }.items():
            browser.get("about:blank")
            load(browser, address + page)
            until(lambda ready=ready: browser.find_elements(CSS, ready), ready)
            fits(browser, "names-" + page[2:8].strip("/"), PHONE)
            assert browser.title != "taken"
            assert browser.find_elements(CSS, "#taken, main script") == []
            if page.startswith(("#/router", "#/decision", "#/families")):
                assert [name for name in NAMES if name not in text(browser, "main")] == [], page
        browser.get("about:blank")
