"""The directions that a fit keeps do not flatter predictions of held-out prompts."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from ground.extras import MissingExtra
from ground.files.array_folder import Array
from streams.encoder.encoder_errors import EncoderError
from streams.encoder.projected_encoder import Encoder
from streams.encoder.projection import Projection
from streams.encoder.static import StaticEncoder
from studies.warm_start.lines import held_out, predict
from studies.warm_start.projecting import choose_projection

WIDTH = 40
COMPONENTS = 12


def world(prompts: int, noise: float, *, seed: int = 0) -> tuple[Array, Array]:
    """Return embeddings, and rewards of six models that depend on one direction of small
    variance.
    """
    rng = np.random.default_rng(seed)
    scale = np.linspace(1.2, 1.0, WIDTH)
    embeddings = rng.normal(size=(prompts, WIDTH)) * scale
    told = embeddings[:, -1:] / scale[-1]
    rewards = told * rng.normal(size=(1, 6)) + noise * rng.normal(size=(prompts, 6))
    return embeddings, rewards


def test_what_tells_rewards_is_kept_where_prompts_differ_more_in_other_ways() -> None:
    embeddings, rewards = world(300, 0.5)
    chosen = choose_projection(embeddings, rewards, COMPONENTS)
    assert chosen.kind == "pls" and min(chosen.errors.values()) < 0.7 * chosen.errors[COMPONENTS]
    X = chosen.projection.project(embeddings)[:, :-1]
    np.testing.assert_allclose(np.cov(X.T), np.eye(X.shape[1]), atol=1e-9)
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-9)
    assert 0.0 < chosen.kept < 0.5


def test_where_nothing_tells_rewards_principal_components_stay() -> None:
    rng = np.random.default_rng(1)
    kinds = [
        choose_projection(rng.normal(size=(200, WIDTH)), rng.normal(size=(200, 6)), 2).kind
        for _ in range(5)
    ]
    assert kinds == ["pca"] * 5


@pytest.mark.parametrize("known", ["none", "constant", "few"])
def test_outcomes_that_say_nothing_leave_principal_components(known: str) -> None:
    embeddings, rewards = world(100, 0.5)
    rewards = {
        "none": np.full_like(rewards, np.nan),
        "constant": np.ones_like(rewards),
        "few": np.where(np.arange(100)[:, None] < 5, rewards, np.nan),
    }[known]
    chosen = choose_projection(embeddings, rewards, COMPONENTS)
    assert (chosen.kind, chosen.unseen, chosen.errors) == ("pca", None, {})


def test_held_out_predictions_know_nothing_of_directions_that_chance_chose() -> None:
    embeddings, rewards = world(300, 0.5)
    noise = np.random.default_rng(2).normal(size=(300, 6))
    chosen = choose_projection(embeddings, np.column_stack([rewards, noise]), COMPONENTS)
    assert chosen.unseen is not None
    seen, unseen = (
        float(((held_out(X, noise) - noise) ** 2).mean())
        for X in (chosen.projection.project(embeddings), chosen.unseen)
    )
    assert unseen > max(seen, 0.99 * float(noise.var()))


def test_predictions_are_ridge_regressions_of_what_is_known_and_means_of_the_rest() -> None:
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=(80, 3)), np.ones(80)])
    Y = X @ rng.normal(size=(4, 2)) + 0.1 * rng.normal(size=(80, 2))
    Y[:70, 1] = np.nan  # ten are known: too few for more than their mean
    found = predict(X, Y, X[:5])
    centre = X[:, :3].mean(axis=0)
    Z, y = X[:, :3] - centre, Y[:, 0] - Y[:, 0].mean()
    theta = np.linalg.solve(Z.T @ Z + np.eye(3), Z.T @ y)
    np.testing.assert_allclose(found[:, 0], Y[:, 0].mean() + Z[:5] @ theta, atol=1e-9)
    np.testing.assert_allclose(found[:, 1], Y[70:, 1].mean())


def test_without_scikit_learn_a_fit_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.decomposition", None)
    with pytest.raises(MissingExtra, match=r"'\.\[fit\]'"):
        Projection.fit(np.eye(5), 2)


def test_a_projection_of_another_encoder_is_refused() -> None:
    sentences = StaticEncoder()
    arrays = (np.zeros(sentences.width), np.eye(sentences.width)[:2], np.ones(2))
    assert Encoder(sentences, Projection(*arrays, source=sentences.source)).dimensions == 3
    with pytest.raises(EncoderError, match="fitted with another encoder"):
        Encoder(sentences, Projection(*arrays, source="model-of-somebody"))
