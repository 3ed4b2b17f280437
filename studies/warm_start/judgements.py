"""Read prompts that were judged or billed offline, from CSV or JSON Lines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ground.json_values import Document, Json
from ground.texts import NOT_UNICODE, is_valid, mended
from studies.warm_start.columns import Columns, UnknownColumns, columns_of
from studies.warm_start.table_file import Row, Unreadable, rows_of

_SHOWN_ERRORS = 10
"""Most wrong lines that an error lists; the others are counted."""
_MOST_USD = 1000.0
"""Largest bill of one call in dollars, as in `schemas.costs`."""
_COSTS = ("cost", "cost_usd")
"""Columns that may hold dollars."""
_BY_MODEL = ("rewards", "costs", "arms")
"""Fields that mark a line as one with all models."""

NESTED = (
    '"rewards" or "costs", as {"model": 0.9}, or "arms", as {"model": {"reward": 0.9, "cost": '
    "0.0004}}"
)
"""Fields of a line with all models, beside the prompt."""
SCALE = "; 0 is useless, 1 is perfect. If your scores are from 1 to 5, give --score-range 1:5"
"""Advice about scores of another scale."""


class UnusableJudgements(ValueError):
    """The prompts cannot be fitted; the message names bad lines."""

    reason = "unusable_judgements"
    retriable = False


@dataclass(frozen=True, slots=True)
class JudgedPrompt:
    """One prompt, the reward in [0, 1] and the cost in dollars of each model's answer, as far as
    they are known.
    """

    prompt: str
    rewards: dict[str, float]
    costs: dict[str, float]


@dataclass(frozen=True, slots=True)
class Reading:
    """The format of a file: the names of its columns, and the range of its scores."""

    columns: Mapping[str, str] = field(default_factory=dict)
    score_range: tuple[float, float] | None = None


def read_judgements(path: Path, reading: Reading | None = None) -> list[JudgedPrompt]:
    """Read judged prompts, in the order in which they first come; blank lines are passed over.

    Rows of the same prompt become one prompt with the models of all these rows. If several rows
    have the same prompt and model, their mean counts.

    Raises:
        UnusableJudgements: no file, no prompts, or bad lines: the first ten are named with their
        number and what is wrong.
    """
    reader, errors, wrongs = _Reader(reading or Reading()), [], 0
    try:
        for row in rows_of(path):
            try:
                reader.take(row)
            # All errors are collected, so that a file can be mended in one go.
            except UnusableJudgements as wrong:
                wrongs += 1
                if wrongs <= _SHOWN_ERRORS:
                    errors.append(f"{path}, line {row.number}: {wrong}")
    except (Unreadable, UnknownColumns) as wrong:
        raise UnusableJudgements(f"{path}: {wrong}") from wrong
    if errors:
        more = [f"… and {wrongs - len(errors)} more"] if wrongs > len(errors) else []
        raise UnusableJudgements("\n".join(errors + more))
    if not reader.judged:
        raise UnusableJudgements(f"{path} holds no prompts")
    return reader.judged


class _Reader:
    """Collect the prompts of rows."""

    def __init__(self, reading: Reading) -> None:
        self.judged: list[JudgedPrompt] = []
        self._range = reading.score_range
        self._rows: dict[str, JudgedPrompt] = {}
        # How many values a mean is of, where that is more than one.
        self._counts: dict[tuple[str, str, str], int] = {}
        # Of JSON each line may have other fields; of a CSV it is asked once.
        self._columns = cache(lambda names: columns_of(names, reading.columns))

    def take(self, row: Row) -> None:
        """Take one row in. Raises UnusableJudgements."""
        if row.error is not None:
            raise UnusableJudgements(row.error)
        cells = row.cells
        if not isinstance(cells, dict):
            raise UnusableJudgements('needs "prompt", a text that is not blank')
        if row.separator is None and any(name in cells for name in _BY_MODEL):
            self.judged.append(self._with_models(cells))
        else:
            self._add(cells, self._columns_of(row), row.separator)

    def _columns_of(self, row: Row) -> Columns:
        try:
            return self._columns(tuple(row.cells))
        except UnknownColumns as wrong:
            # A CSV lacks it in all rows, and a line of JSON may lack it alone.
            if row.separator is not None:
                raise
            raise UnusableJudgements(f"{wrong}\nOr beside the prompt {NESTED}") from wrong

    def _add(self, cells: Document, columns: Columns, separator: str | None) -> None:
        prompt = mended(_text(cells, columns.prompt, '"prompt", a text that is not blank'))
        model = _name(_text(cells, columns.model, '"model", the name of one'))
        found = self._rows.get(prompt)
        if found is None:
            found = self._rows[prompt] = JudgedPrompt(prompt, {}, {})
            self.judged.append(found)
        for what, name, known in (
            ("score", columns.score, found.rewards),
            ("cost", columns.cost, found.costs),
        ):
            value = None if name is None else _cell(cells[name], separator)
            if value is None:
                continue
            number = (
                self._reward(f"the {what} of {model!r}", value)
                if what == "score"
                else _number(f"the {what} of {model!r}", value, _MOST_USD)
            )
            self._mean_in(known, (prompt, model, what), number)

    def _mean_in(self, known: dict[str, float], key: tuple[str, str, str], number: float) -> None:
        model = key[1]
        if model not in known:
            known[model] = number
            return
        count = self._counts[key] = self._counts.get(key, 1) + 1
        known[model] += (number - known[model]) / count

    def _reward(self, what: str, value: object) -> float:
        if self._range is None:
            return _number(what, value, 1.0, hint=SCALE)
        low, high = self._range
        if not _finite(value) or not low <= value <= high:  # type: ignore[operator]
            raise UnusableJudgements(
                f"{what} must be a number from {low:g} to {high:g}, not {value!r}"
            )
        return (float(value) - low) / (high - low)  # type: ignore[arg-type]

    def _with_models(self, row: Document) -> JudgedPrompt:
        prompt = mended(_text(row, "prompt", '"prompt", a text that is not blank'))
        arms = {
            model: arm if isinstance(arm, dict) else {"reward": arm}
            for model, arm in _by_model(row, "arms").items()
        }
        rewards = _by_model(row, "rewards") | {
            model: arm["reward"] for model, arm in arms.items() if "reward" in arm
        }
        costs = _by_model(row, "costs") | {
            model: arm[name] for model, arm in arms.items() for name in _COSTS if name in arm
        }
        if not rewards and not costs:
            raise UnusableJudgements(f"needs {NESTED}")
        return JudgedPrompt(
            prompt,
            {m: self._reward(f"the reward of {m!r}", value) for m, value in rewards.items()},
            {m: _number(f"the cost of {m!r}", value, _MOST_USD) for m, value in costs.items()},
        )


def _text(cells: Document, name: str, needed: str) -> str:
    text = cells.get(name)
    if not isinstance(text, str) or not text.strip():
        raise UnusableJudgements(f"needs {needed}")
    return text


def _name(model: str) -> str:
    if not is_valid(model):
        raise UnusableJudgements(f"the model {model!r} {NOT_UNICODE}")
    return model


def _cell(value: Json, separator: str | None) -> Json:
    """Return a cell's number, None where the cell is empty, or its text where that is no number."""
    if not isinstance(value, str):
        return value
    text = value.strip().removeprefix("$")
    if not text:
        return None
    # If columns are not separated by commas, a comma is Excel's decimal point.
    if separator != ",":
        text = text.replace(",", ".")
    try:
        return float(text)
    except ValueError:
        return value


def _by_model(row: Document, field: str) -> Document:
    found = row.get(field, {})
    if not isinstance(found, dict):
        raise UnusableJudgements(f'"{field}" must be an object, by model')
    return {_name(model): value for model, value in found.items()}


def _finite(value: object) -> bool:
    # A bool is an int to Python and no number here.
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _number(what: str, value: object, most: float, *, hint: str = "") -> float:
    if not _finite(value) or not 0.0 <= value <= most:  # type: ignore[operator]
        raise UnusableJudgements(f"{what} must be a number from 0 to {most:g}, not {value!r}{hint}")
    return float(value)  # type: ignore[arg-type]
