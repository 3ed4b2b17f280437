"""Priors that a declaration names instead of holding them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from agents.refusals import WrongPrior
from router_state.config import CostPrior, Prior
from schemas.priors import ReferencedPrior
from streams.files.array_folder import UnusableArrays
from streams.warm_start.priors import Priors, load_priors


def prior_reader(folder: Path | None) -> Callable[[ReferencedPrior], Awaitable[Prior]]:
    """Return the function that reads a referenced prior, `NAME#MODEL`, from a folder that `pbstream
    fit` wrote.

    Args:
        folder: holds those folders by NAME; None refuses all references.
    """

    async def read_prior(reference: ReferencedPrior) -> Prior:
        name, _, model = reference.ref.partition("#")
        if folder is None or Path(name).name != name:
            raise WrongPrior(
                "references need PB_PRIORS_PATH, and the form NAME#MODEL of a folder in it"
            )
        try:
            priors = await asyncio.to_thread(load_priors, folder / name)
        except UnusableArrays as error:
            raise WrongPrior(f"the prior can't be read: {type(error).__name__}") from None
        if priors.checksum != reference.sha256:
            raise WrongPrior("the prior has another checksum than declared")
        costs = _costs(priors, model)
        if model not in priors.models:
            if costs is None:
                raise WrongPrior("the folder has no prior of this model")
            return Prior(costs=costs)
        k = priors.models.index(model)
        return Prior(A=priors.A[k], b=priors.b[k], n_eff=reference.n_eff, costs=costs)

    return read_prior


def _costs(priors: Priors, model: str) -> CostPrior | None:
    costs = priors.costs
    if costs is None or model not in costs.models:
        return None
    k = costs.models.index(model)
    return CostPrior(costs.A[k], costs.b[k], float(costs.means[k]))
