import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from agents.declaring.configuration import config_of
from ground.files.array_folder import Array
from schemas import ReferencedPrior, RouterDeclared, decode
from streams.encoder.encoder_errors import EncoderError
from streams.encoder.projection import Projection
from streams.encoder.sentence_encoder import Progress, Reading, SentenceEncoder
from streams.priors.fitted_priors import cost_prior_for_wire, fields_for_wire, load_priors
from streams.priors.references import prior_reader
from studies.warm_start.compare_encoders import compare_encoders, within_chance
from studies.warm_start.fit import fit
from studies.warm_start.judgements import JudgedPrompt, UnusableJudgements, read_judgements


class HashedSentences:
    """Embeds every prompt at a point of its own, decided by its hash."""

    width = 12
    identity = source = "hashed"

    def embed(self, prompts: Sequence[str], *, progress: Progress | None = None) -> Array:
        rows = [
            np.frombuffer(hashlib.sha256(prompt.encode()).digest(), dtype=np.uint8)[:12]
            for prompt in prompts
        ]
        embeddings: Array = np.array(rows, dtype=np.float64)
        if progress is not None:
            progress(len(prompts))
        embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
        return embeddings

    def reading(self, prompt: str) -> Reading:
        return Reading(1, 1)


def write_lines(path: Path, rows: Sequence[Any]) -> Path:
    path.write_text(
        "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows) + "\n"
    )
    return path


def judged(number: int, **rewards: float) -> dict[str, Any]:
    return {"prompt": f"prompt {number}", "rewards": rewards}


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO())


def test_priors_are_the_sums_over_the_prompts_each_model_answered(
    tmp_path: Path, console: Console
) -> None:
    rows = [
        judged(n, small=n / 20, large=0.9) if n % 4 else judged(n, small=n / 20) for n in range(20)
    ]
    summary = fit(
        write_lines(tmp_path / "in.jsonl", rows),
        tmp_path,
        sentences=HashedSentences(),
        components=5,
        console=console,
    )
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
    assert summary.chosen is not None and 0.0 < summary.chosen.kept < 1.0


def test_fitted_contexts_are_centred_and_white(tmp_path: Path, console: Console) -> None:
    rows = [judged(n, small=0.5) for n in range(200)]
    fit(
        write_lines(tmp_path / "in.jsonl", rows),
        tmp_path,
        sentences=HashedSentences(),
        components=4,
        console=console,
    )
    embeddings = HashedSentences().embed([row["prompt"] for row in rows])
    features = Projection.load(tmp_path).project(embeddings)[:, :-1]
    np.testing.assert_allclose(features.mean(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(np.cov(features.T), np.eye(4), atol=1e-9)


def test_rewards_may_stand_in_arms_beside_costs(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "in.jsonl",
        [{"prompt": "p", "arms": {"small": {"reward": 0.25, "cost": 1e-5}}}, ""],
    )
    row = read_judgements(path)[0]
    assert (dict(row.rewards), dict(row.costs)) == ({"small": 0.25}, {"small": 1e-5})


def test_costs_alone_are_enough_for_a_line(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "in.jsonl",
        [{"prompt": "p", "costs": {"small": 0}}, {"prompt": "q", "arms": {"small": {"cost": 1}}}],
    )
    assert [(dict(row.rewards), dict(row.costs)) for row in read_judgements(path)] == [
        ({}, {"small": 0.0}),
        ({}, {"small": 1.0}),
    ]


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
        (
            '{"prompt": "p", "rewards": {"small": 1.5}}',
            "'small' must be a number from 0 to 1, not 1.5",
        ),
        ('{"prompt": "p", "rewards": {"small": NaN}}', "not nan"),
        ('{"prompt": "p", "rewards": {"small": true}}', "not True"),
        ('{"prompt": "p", "arms": {"small": {"reward": null, "cost": 1}}}', "not None"),
        ('{"prompt": "p", "arms": {"small": {}}}', "rewards"),
        ('{"prompt": "p", "arms": [1]}', "by model"),
        (
            '{"prompt": "p", "costs": {"small": -1}}',
            "the cost of 'small' must be a number from 0 to 1000, not -1",
        ),
        ('{"prompt": "p", "costs": {"small": Infinity}}', "not inf"),
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
    with pytest.raises(UnusableJudgements, match="5 prompts, and 5 components need 6 at least"):
        fit(path, tmp_path / "out", sentences=HashedSentences(), components=5, console=console)
    assert not (tmp_path / "out").exists()


def test_bills_become_sums_of_their_logarithms_and_a_mean_with_zeros(
    tmp_path: Path, console: Console
) -> None:
    rows = [
        judged(n, small=0.5)
        | {"costs": {"small": 0.0 if n % 5 == 0 else 1e-4 * (n + 1), "billed": 2e-3}}
        for n in range(20)
    ]
    summary = fit(
        write_lines(tmp_path / "in.jsonl", rows),
        tmp_path,
        sentences=HashedSentences(),
        components=3,
        console=console,
    )
    priors = load_priors(tmp_path)
    x = Projection.load(tmp_path).project(HashedSentences().embed([row["prompt"] for row in rows]))
    paid = [n for n in range(20) if n % 5]
    small: Any = cost_prior_for_wire(priors, "small")
    assert small is not None
    np.testing.assert_allclose(small["A"], x[paid].T @ x[paid], atol=1e-9)
    np.testing.assert_allclose(
        small["b"], np.log([1e-4 * (n + 1) for n in paid]) @ x[paid], atol=1e-9
    )
    assert small["mean_usd"] == pytest.approx(
        np.mean([0.0 if n % 5 == 0 else 1e-4 * (n + 1) for n in range(20)])
    )
    assert fields_for_wire(priors, "small").keys() == {"prior", "cost_prior"}
    assert fields_for_wire(priors, "billed").keys() == {"cost_prior"}
    assert (summary.costs, summary.rewards) == ({"billed": 20, "small": 20}, {"small": 20})


def test_priors_without_bills_are_the_same_file_as_before_there_were_any(
    tmp_path: Path, console: Console
) -> None:
    rows = [judged(n, small=n / 20) for n in range(20)]
    fit(
        write_lines(tmp_path / "in.jsonl", rows),
        tmp_path,
        sentences=HashedSentences(),
        components=3,
        console=console,
    )
    priors = load_priors(tmp_path)
    assert priors.costs is None
    assert json.loads((tmp_path / "priors.json").read_text())["details"].keys() == {
        "models",
        "projection",
    }


def test_bills_of_zero_alone_and_no_rewards_are_nothing_to_learn_from(
    tmp_path: Path, console: Console
) -> None:
    rows = [{"prompt": f"prompt {n}", "costs": {"small": 0.0}} for n in range(20)]
    with pytest.raises(UnusableJudgements, match="neither a reward nor a bill"):
        fit(
            write_lines(tmp_path / "in.jsonl", rows),
            tmp_path / "out",
            sentences=HashedSentences(),
            components=3,
            console=console,
        )
    assert not (tmp_path / "out").exists()


async def test_a_declaration_that_names_the_folder_gets_rewards_and_costs_of_it(
    tmp_path: Path, console: Console
) -> None:
    rows = [judged(n, small=n / 20) | {"costs": {"small": 1e-4, "billed": 2e-3}} for n in range(20)]
    folder = tmp_path / "fitted"
    fit(
        write_lines(tmp_path / "in.jsonl", rows),
        folder,
        sentences=HashedSentences(),
        components=3,
        console=console,
    )
    read, checksum = prior_reader(tmp_path), load_priors(folder).checksum
    references = {
        name: await read(ReferencedPrior(ref=f"fitted#{name}", sha256=checksum))
        for name in ("small", "billed")
    }
    document = {"input_price_per_m": 1.0, "output_price_per_m": 1.0}
    models = {
        name: {**document, "prior": {"ref": f"fitted#{name}", "sha256": checksum}}
        for name in references
    }
    declared = decode(
        RouterDeclared, json.dumps({"router_id": "r", "models": models, "dimensions": 4}).encode()
    )
    config = config_of(declared, offset=0, references=references)
    small, billed = config.models["small"], config.models["billed"]
    assert small.prior is not None and small.prior.A is not None and small.cost_prior is not None
    assert billed.prior is None and billed.cost_prior is not None
    assert (small.cost_prior.mean_usd, billed.cost_prior.mean_usd) == pytest.approx((1e-4, 2e-3))


class TellingSentences(HashedSentences):
    """Embeds a prompt by the number in it, on which its rewards depend."""

    def embed(self, prompts: Sequence[str], *, progress: Progress | None = None) -> Array:
        embeddings = super().embed(prompts, progress=progress)
        embeddings[:, 0] = [3.0 * (int(prompt.split()[1]) % 2) for prompt in prompts]
        return embeddings


def test_the_encoder_that_tells_prompts_apart_is_worth_more(console: Console) -> None:
    def load(backend: str) -> SentenceEncoder:
        if backend == "sentence-transformers":
            raise EncoderError("not installed")
        return TellingSentences() if backend == "static" else HashedSentences()

    costs = {"small": 1e-5, "large": 1e-3}
    rows = [
        JudgedPrompt(f"prompt {n}", {"small": float(n % 2), "large": float(1 - n % 2)}, costs)
        for n in range(120)
    ]
    telling, hashed, missing = compare_encoders(rows, load, components=4, console=console)
    assert (telling.encoder, hashed.encoder, missing.encoder) == (
        "static",
        "onnx",
        "sentence-transformers",
    )
    assert telling.routed is not None and hashed.routed is not None and hashed.mix is not None
    assert telling.routed > hashed.routed + 0.1
    assert (telling.reward_error or 1.0) < 0.1
    assert (hashed.reward_error or 0.0) > 0.4
    assert (missing.problem, missing.routed) == ("not installed", None)
    assert within_chance([hashed], 120) == pytest.approx(
        2 * 2**0.5 * (hashed.reward_error or 0) / 120**0.5
    )


def test_rewards_alone_compare_encoders_without_a_frontier(console: Console) -> None:
    rows = [JudgedPrompt(f"prompt {n}", {"small": n / 60}, {}) for n in range(60)]
    for worth in compare_encoders(
        rows, lambda backend: HashedSentences(), components=4, console=console
    ):
        assert (worth.routed, worth.cost_error) == (None, None)
        assert worth.reward_error is not None


class FlatSentences(HashedSentences):
    """Embeds prompts in a plane, whatever they are."""

    def embed(self, prompts: Sequence[str], *, progress: Progress | None = None) -> Array:
        embeddings = super().embed(prompts, progress=progress)
        embeddings[:, 2:] = 0.5
        return embeddings


def test_prompts_that_differ_in_few_directions_are_refused_with_how_many_components_they_allow(
    tmp_path: Path, console: Console
) -> None:
    lines = write_lines(tmp_path / "flat.jsonl", [judged(n, a=0.5, b=0.25) for n in range(30)])
    with pytest.raises(UnusableJudgements, match=r"differ in 2 directions.* or --components 2$"):
        fit(lines, tmp_path / "priors", sentences=FlatSentences(), components=5, console=console)
    fit(lines, tmp_path / "priors", sentences=FlatSentences(), components=2, console=console)
    projection = Projection.load(tmp_path / "priors")
    assert np.abs(projection.project(FlatSentences().embed(["another"]))).max() < 10.0
