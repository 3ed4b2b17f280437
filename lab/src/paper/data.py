"""The data that the experiments run on: the wheel's prompts and priors, and what more a folder
named by `PB_DATA` holds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import (
    EXTENDED_VARIABLE,
    Benchmark,
    embed_cached,
    extended_folder,
    load_benchmark,
    read_judged,
    wheel_priors,
    wheel_projection,
)
from router_state.config import Price
from streams.encoder.sentence_encoder import Backend
from streams.priors.fitted_priors import Priors

FLASH, FLASH_PRICE = "google/gemini-2.5-flash", Price(0.3, 2.5)
JUDGES = {"R1": "r1", "GPT": "gpt_mini", "Claude": "claude"}
MISMATCHED = {
    "random": "random_1680",
    "MMLU": "mmlu_only",
    "GSM8K": "gsm8k_only",
    "swapped": "inverted",
}
_REWARDS, _APPENDIX = "data_collection/rewards", "experiments/appendix"
_JUDGED = tuple(
    f"cross_judge_{name}_{split}.jsonl" for name in JUDGES.values() for split in ("val", "test")
)
_PRIORS = tuple(f"priors_{name}.joblib" for name in MISMATCHED.values())
# Where the paper's repository keeps them.
_PLACES = {
    **dict.fromkeys(("val_k4.jsonl", "test_k4.jsonl"), _REWARDS),
    **dict.fromkeys(_JUDGED, f"{_APPENDIX}/judge_robustness/results"),
    **dict.fromkeys(_PRIORS, f"{_APPENDIX}/prior_mismatch/results/priors"),
}
ADDS = {
    "E4": ("as printed, with Gemini Flash (else Mistral joins the two others)", ("test_k4.jsonl",)),
    "B": ("the portfolio of four models", ("val_k4.jsonl",)),
    "D": (
        "the paper's own mismatched priors (else near ones, made of the validation prompts)",
        _PRIORS,
    ),
    "E": ("the three judges", _JUDGED),
}


def find(name: str) -> Path | None:
    """Return where `PB_DATA` holds a file, flat or laid out as the paper's repository, or None."""
    folder = extended_folder()
    if folder is None:
        return None
    places = (folder / name, folder / _PLACES[name] / name)
    return next((path for path in places if path.is_file()), None)


def has(experiment: str) -> bool:
    """Tell whether everything that `PB_DATA` can add to an experiment is there."""
    return experiment not in ADDS or all(find(name) for name in ADDS[experiment][1])


def missing() -> list[str]:
    """Return one line for each experiment that `PB_DATA` would complete."""
    return [
        (
            f"{name}: {what} needs {EXTENDED_VARIABLE}, a folder with "
            f"{', '.join(file for file in files if not find(file))}"
        )
        for name, (what, files) in ADDS.items()
        if not has(name)
    ]


class Data:
    """The benchmark's splits, read and encoded when they are first asked for."""

    def __init__(self, encoder: Backend) -> None:
        self.encoder = encoder

    @cached_property
    def val(self) -> Benchmark:
        return load_benchmark("val", encoder=self.encoder)

    @cached_property
    def test(self) -> Benchmark:
        return load_benchmark("test", encoder=self.encoder)

    @cached_property
    def priors(self) -> Priors:
        return wheel_priors()

    @cached_property
    def joined(self) -> Benchmark | None:
        """The test prompts that Gemini Flash answered too, four models, or None."""
        return self._judged("test_k4.jsonl", extra={FLASH: FLASH_PRICE})

    @cached_property
    def four(self) -> Benchmark | None:
        """The validation prompts of four models, without contexts, or None."""
        path = find("val_k4.jsonl")
        return None if path is None else read_judged(path, {**self._models(), FLASH: FLASH_PRICE})

    @cached_property
    def judges(self) -> dict[str, tuple[Benchmark, Benchmark]] | None:
        """Return for each judge the same 672 prompts to learn from and 1,328 to measure on, or
        None.
        """
        if not has("E"):
            return None
        found: dict[str, tuple[Benchmark, Benchmark]] = {}
        for judge, name in JUDGES.items():
            val, test = (
                self._judged(f"cross_judge_{name}_{split}.jsonl") for split in ("val", "test")
            )
            assert val is not None and test is not None
            found[judge] = val, test
        return found

    @cached_property
    def mismatched(self) -> dict[str, Priors]:
        """Priors that do not fit the test prompts: the paper's own, or made of the validation
        prompts.
        """
        if has("D"):
            return {kind: self._shipped(name) for kind, name in MISMATCHED.items()}
        drawn = np.random.default_rng(42).choice(
            len(self.val), size=min(1680, len(self.val)), replace=False
        )
        sources = np.array(self.val.sources)
        b = self.priors.b[[2, 1, 0]]
        return {
            "random": self._fitted(drawn),
            "MMLU": self._fitted(np.flatnonzero(sources == "mmlu")),
            "GSM8K": self._fitted(np.flatnonzero(sources == "gsm8k")),
            "swapped": Priors(self.priors.models, self.priors.A, b, self.priors.projection),
        }

    def _models(self) -> dict[str, Price]:
        return dict(zip(self.val.models, self.val.prices, strict=True))

    def _judged(self, name: str, *, extra: dict[str, Price] | None = None) -> Benchmark | None:
        path = find(name)
        if path is None:
            return None
        judged = read_judged(path, {**self._models(), **(extra or {})})
        return replace(
            judged,
            contexts=wheel_projection().project(embed_cached(judged.prompts, encoder=self.encoder)),
        )

    def _shipped(self, name: str) -> Priors:
        import joblib

        path = find(f"priors_{name}.joblib")
        assert path is not None
        read: dict[str, Any] = joblib.load(path)
        A, b = (
            np.stack([np.asarray(read[part][model], dtype=np.float64) for model in self.val.models])
            for part in "Ab"
        )
        return Priors(self.val.models, A, b, self.priors.projection)

    def _fitted(self, rows: np.ndarray) -> Priors:
        X, rewards = self.val.contexts[rows], self.val.rewards[rows]
        A = np.stack([np.eye(X.shape[1]) + X.T @ X] * len(self.val.models))
        return Priors(self.val.models, A, (X.T @ rewards).T, self.priors.projection)
