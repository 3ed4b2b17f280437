"""Find the columns of a table with prompt, model, score and cost, by name or as given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

SYNONYMS = {
    "prompt": ("prompt", "question", "query", "instruction", "user_message", "input", "text"),
    "model": ("model", "model_name", "model_id", "llm", "deployment"),
    "score": (
        "score",
        "reward",
        "scores",
        "rewards",
        "rating",
        "grade",
        "quality",
        "judge_score",
        "eval_score",
    ),
    "cost": ("cost", "cost_usd", "costs", "usd", "dollars", "total_cost", "response_cost", "spend"),
}
"""Names of each column, the usual one first, in any case; spaces and hyphens are underscores."""
EXAMPLE = "prompt,model,cost,score\nWhy is the sky blue?,small,0.00003,0.7"
"""Example of a valid file."""


class UnknownColumns(ValueError):
    """A column is missing, or several may be meant."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of a file's columns; None: the file has no such column."""

    prompt: str
    model: str
    score: str | None
    cost: str | None


def columns_of(names: Iterable[str], chosen: Mapping[str, str]) -> Columns:
    """Find the columns of prompt, model, score and cost among the columns of a file.

    Args:
        chosen: names of columns that the user gave, by what they hold.

    Raises:
        UnknownColumns: there is no column of prompts or of models, none of scores and none of
            costs, or several of one kind.

    >>> columns_of(["Question", "llm", "stars"], {"score": "stars"})
    Columns(prompt='Question', model='llm', score='stars', cost=None)
    """
    there = list(names)
    found = {what: _named(what, there, chosen.get(what)) for what in SYNONYMS}
    missing = [what for what in ("prompt", "model") if found[what] is None]
    if found["score"] is None and found["cost"] is None:
        missing.append("score or cost")
    if missing:
        raise UnknownColumns(
            f"no column {' and none '.join(missing)} among {', '.join(map(repr, there))}. "
            f"Name it, as in --column {missing[0].split()[0]}=NAME. A right file:\n{EXAMPLE}"
        )
    return Columns(found["prompt"] or "", found["model"] or "", found["score"], found["cost"])


def _named(what: str, there: list[str], chosen: str | None) -> str | None:
    if chosen is not None:
        if chosen not in there:
            raise UnknownColumns(
                f"no column {chosen!r}, which --column {what}={chosen} names, among "
                f"{', '.join(map(repr, there))}"
            )
        return chosen
    plain = {name: name.strip().casefold().replace(" ", "_").replace("-", "_") for name in there}
    usual = SYNONYMS[what][0]
    meant = [name for name in there if plain[name] == usual]
    meant = meant or [name for name in there if plain[name] in SYNONYMS[what]]
    if len(meant) > 1:
        raise UnknownColumns(
            f"{' and '.join(map(repr, meant))} may both be the {what}; say which: "
            f"--column {what}={meant[0]}"
        )
    return meant[0] if meant else None
