"""Run one study in its own process: the job is JSON on standard input, progress and result are
lines of JSON.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

import orjson

from ground.boundary import Attempt
from ground.json_values import Document

if TYPE_CHECKING:
    from streams.settings import Settings

T = TypeVar("T")
NICE = 10
"""Niceness of a study: workers and the dashboard come first."""
EVERY = 0.2
"""Seconds between two reports of progress."""


def main() -> None:
    """Run the job that standard input describes, and write its result or its error as the last
    line.
    """
    os.nice(NICE)
    job = orjson.loads(sys.stdin.buffer.read())
    with Attempt() as study:
        _say({"result": _done(job)})
    if study.error is not None:  # the page shows it: the process has nobody else to tell
        _say({"error": _sentence(study.error)})


def _done(job: Document) -> object:
    from streams.settings import load_settings
    from studies.history.happened import Declared
    from studies.history.kafka_history import KafkaHistory
    from studies.history.skipped import Skipped
    from studies.simulate.case_file import CaseFile
    from studies.simulate.cases import Cases
    from studies.simulate.past import contexts_of, happened, prior_reader_of
    from studies.simulate.scenario import Scenario
    from studies.simulate.study import NoRequest, run, survey
    from studies.simulate.study_charts import drawn
    from watching.dashboard.frontier_view import frontier
    from watching.dashboard.kinds import LAST, Words, kinds

    settings, skipped, words = load_settings(**job["settings"]), Skipped(), Words()
    if job["kind"] == "proof":
        return _proof(job, settings)
    scenario = Scenario.model_validate(job.get("scenario") or {})
    read_prior = prior_reader_of(settings)
    with (
        KafkaHistory(settings) as history,
        closing(contexts_of(settings)) as contexts,
        CaseFile() as kept,
    ):
        # Words are collected while the history is read, as cases hold no prompts.
        past = words.heard(happened(history, job["router_id"], skipped))
        cases = Cases(past, contexts=contexts, skipped=skipped, since=job["since"])
        found = survey(kept.keep(_told(cases, "reading the topics", job["expected"])), scenario)
        if not found.requests:
            raise NoRequest
        if job["kind"] == "kinds":
            last = [case for case in kept if type(case) is not Declared][-LAST:]
            return {"kinds": kinds(last, words), "requests": len(last)}
        if job["kind"] == "frontier":
            return frontier(
                lambda what: _told(kept, what, found.requests),
                found,
                budget_usd=job["budget_usd"],
                read_prior=read_prior,
            )
        played = _told(kept, "playing", found.requests)
        return drawn(run(played, found, scenario, read_prior=read_prior))


def _proof(job: Document, settings: Settings) -> Document:
    from studies.history.kafka_history import KafkaHistory
    from studies.proof.against import INCUMBENT
    from studies.proof.proof import proof_of
    from studies.proof.proof_file import Noted
    from studies.simulate.past import contexts_of

    with KafkaHistory(settings) as history:
        return proof_of(
            job["router_id"],
            Noted(history),
            settings,
            mixes={INCUMBENT: None},
            contexts=lambda: closing(contexts_of(settings)),
            passing=lambda events, what: _told(events, what, None),
        )


def _told(things: Iterable[T], what: str, of: int | None) -> Iterator[T]:
    """Pass things on, and report the number now and then."""
    said = 0.0
    for number, thing in enumerate(things):
        # Each word is a line through a pipe, which the dashboard's loop has to read.
        if number % 50 == 0 and time.monotonic() - said > EVERY:
            said = time.monotonic()
            _say({"progress": {"what": what, "done": number, "of": of}})
        yield thing


def _sentence(error: Exception) -> str:
    if type(error).__name__ == "NoRequest":
        return "the topics hold no decided request of this router in this time"
    text = str(error) or type(error).__name__
    return text if getattr(error, "reason", None) else f"{type(error).__name__}: {text}"


def _say(line: Document) -> None:
    sys.stdout.buffer.write(orjson.dumps(line, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
