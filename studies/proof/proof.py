"""Make the whole document of a proof from a history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager

from ground.json_values import Document
from streams.settings import Settings
from studies.history.encoded import Contexts
from studies.history.happened import Happened
from studies.history.skipped import Skipped
from studies.proof.against import Mix, compare
from studies.proof.compared_requests import Requests
from studies.proof.proof_file import Noted, filled
from studies.proof.saved import prove, sentence
from studies.simulate.cases import Cases
from studies.simulate.past import happened


def proof_of(
    router_id: str,
    history: Noted,
    settings: Settings,
    *,
    mixes: Mapping[str, Mix | None],
    contexts: Callable[[], AbstractContextManager[Contexts]],
    passing: Callable[[Iterable[Happened], str], Iterable[Happened]] = lambda events, what: events,
) -> Document:
    """Return what a router saved, in the form of the file of a proof.

    Args:
        mixes: mixes of models to compare the router with, by name. None stands for the incumbent,
            estimated from the logged propensities.
        contexts: opens the contexts of prompts, which only mixes need.
        passing: is given events and the name of the step that reads them; yields these events, and
            shows the progress.
    """
    requests = Requests(settings.source_rank)
    requests.read(passing(happened(history, router_id, Skipped()), "reading the topics"))
    figures = prove(requests) | {"not_compared": requests.others}
    if mixes:
        skipped = Skipped()
        past = passing(happened(history, router_id, skipped), "estimating")
        with contexts() as opened:
            figures["against"] = compare(Cases(past, contexts=opened, skipped=skipped), mixes)
    return filled(router_id, settings.prefix, figures, sentence(figures), history.places)
