import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from streams.encoder.encoder import Progress
from streams.encoder.projection import Projection
from streams.files.array_folder import Array
from streams.warm_start.fit import UnusableJudgements, fit, load_priors, read_judgements


class HashedSentences:
    """Embeds every prompt at a point of its own, decided by its hash."""

    width = 12
    identity = "hashed"

    def embed(self, prompts: Sequence[str], *, progress: Progress | None = None) -> Array:
        rows = [np.frombuffer(hashlib.sha256(prompt.encode()).digest(), dtype=np.uint8)[:12] for prompt in prompts]
        embeddings: Array = np.array(rows, dtype=np.float64)
        if progress is not None:
            progress(len(prompts))
        embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
        return embeddings


def write_lines(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n")
    return path


def judged(number: int, **rewards: float) -> dict[str, Any]:
    return {"prompt": f"prompt {number}", "rewards": rewards}


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO())


def test_priors_are_the_sums_over_the_prompts_each_model_answered(tmp_path: Path, console: Console) -> None:
    rows = [judged(n, small=n / 20, large=0.9) if n % 4 else judged(n, small=n / 20) for n in range(20)]
    summary = fit(write_lines(tmp_path / "in.jsonl", rows), tmp_path, sentences=HashedSentences(), components=5, console=console)
    priors, projection = load_priors(tmp_path), Projection.load(tmp_path)
    x = projection.project(HashedSentences().embed([row["prompt"] for row in rows]))
    answered = [n for n in range(20) if n % 4]
    assert priors.models == ("large", "small")
    assert priors.projection == projection.checksum
    np.testing.assert_allclose(priors.A[1], np.eye(6) + x.T @ x, atol=1e-9)
    np.testing.assert_allclose(priors.b[1], (np.arange(20) / 20) @ x, atol=1e-9)
    np.testing.assert_allclose(priors.A[0], np.eye(6) + x[answered].T @ x[answered], atol=1e-9)
    np.testing.assert_allclose(priors.b[0], 0.9 * x[answered].sum(axis=0), atol=1e-9)
    assert (summary.prompts, summary.dimensions) == (20, 6)
    assert summary.rewards == {"large": 15, "small": 20}
    assert summary.mean_reward["small"] == pytest.approx(0.475)
    assert 0.0 < summary.kept_variance < 1.0


def test_fitted_contexts_are_centred_and_white(tmp_path: Path, console: Console) -> None:
    rows = [judged(n, small=0.5) for n in range(200)]
    fit(write_lines(tmp_path / "in.jsonl", rows), tmp_path, sentences=HashedSentences(), components=4, console=console)
    embeddings = HashedSentences().embed([row["prompt"] for row in rows])
    features = Projection.load(tmp_path).project(embeddings)[:, :-1]
    np.testing.assert_allclose(features.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(np.cov(features.T), np.eye(4), atol=1e-9)


def test_rewards_may_stand_in_arms_beside_costs(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "in.jsonl", [{"prompt": "p", "arms": {"small": {"reward": 0.25, "cost": 1e-5}}}, ""])
    assert [dict(row.rewards) for row in read_judgements(path)] == [{"small": 0.25}]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "prompt"),
        ('{"rewards": {"small": 1}}', "prompt"),
        ('{"prompt": "  ", "rewards": {"small": 1}}', "prompt"),
        ('{"prompt": "p"}', "rewards"),
        ('{"prompt": "p", "rewards": {}}', "rewards"),
        ('{"prompt": "p", "rewards": {"small": 1.5}}', "'small' must be a number from 0 to 1, not 1.5"),
        ('{"prompt": "p", "rewards": {"small": NaN}}', "not nan"),
        ('{"prompt": "p", "rewards": {"small": true}}', "not True"),
        ('{"prompt": "p", "arms": {"small": {"cost": 1}}}', "not None"),
    ],
)
def test_a_bad_line_is_named_by_its_number(tmp_path: Path, line: str, problem: str) -> None:
    path = write_lines(tmp_path / "in.jsonl", [judged(1, small=1.0), "", line])
    with pytest.raises(UnusableJudgements, match="line 3: ") as refused:
        read_judgements(path)
    assert problem in str(refused.value)


def test_a_line_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(b'{"prompt": "\xff", "rewards": {"small": 1}}\n')
    with pytest.raises(UnusableJudgements, match="line 1: is not UTF-8"):
        read_judgements(tmp_path / "in.jsonl")


def test_only_the_first_ten_bad_lines_are_listed(tmp_path: Path) -> None:
    with pytest.raises(UnusableJudgements, match="and 5 more") as refused:
        read_judgements(write_lines(tmp_path / "in.jsonl", ["{"] * 15))
    assert len(str(refused.value).splitlines()) == 11


@pytest.mark.parametrize("content", [None, "\n\n"])
def test_no_prompts_are_an_error(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "in.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(UnusableJudgements, match=r"in\.jsonl"):
        read_judgements(path)


def test_too_few_prompts_for_the_components_write_nothing(tmp_path: Path, console: Console) -> None:
    path = write_lines(tmp_path / "in.jsonl", [judged(n, small=0.5) for n in range(5)])
    with pytest.raises(UnusableJudgements, match="5 components need more than 5 prompts"):
        fit(path, tmp_path / "out", sentences=HashedSentences(), components=5, console=console)
    assert not (tmp_path / "out").exists()
