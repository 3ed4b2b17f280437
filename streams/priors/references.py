"""Read priors and check projections that a declaration references."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from agents.refusal_kinds import WrongPrior, WrongProjection
from ground.files.array_folder import UnusableArrays, folder_named
from router_state.config import Prior, ProjectionRef
from schemas.priors import ReferencedPrior
from streams.encoder.projections import require_projection
from streams.priors.fitted_priors import load_priors
from streams.settings import Settings


def prior_reader(folder: Path | None) -> Callable[[ReferencedPrior], Awaitable[Prior]]:
    """Return the function that reads a referenced prior, `NAME#MODEL`, from a folder that `pbstream
    fit` wrote.

    Args:
        folder: holds those folders by NAME; None refuses all references.
    """

    async def read_prior(reference: ReferencedPrior) -> Prior:
        name, _, model = reference.ref.partition("#")
        try:
            # In a thread: megabytes from a disk, while the loop has heartbeats to send.
            priors = await asyncio.to_thread(load_priors, folder_named(name, inside=folder))
        except UnusableArrays as error:
            raise WrongPrior(f"the prior can't be read: {error}") from None
        # Workers must start from the same numbers, whatever lies in their folders by that name.
        if priors.checksum != reference.sha256:
            raise WrongPrior("the prior has another checksum than declared")
        prior = priors.of(model)
        if prior.A is not None:
            return replace(prior, n_eff=reference.n_eff)
        if prior.costs is None:
            raise WrongPrior("the folder has no prior of this model")
        return prior

    return read_prior


def blocking_prior_reader(folder: Path | None) -> Callable[[ReferencedPrior], Prior]:
    """Return the function of `prior_reader` for synchronous code: it blocks until it has read."""
    read = prior_reader(folder)

    async def awaited(reference: ReferencedPrior) -> Prior:
        return await read(reference)

    return lambda reference: asyncio.run(awaited(reference))


def projection_checker(settings: Settings) -> Callable[[ProjectionRef, int], Awaitable[None]]:
    """Return the function that checks whether a projection is available as declared, with these
    dimensions.
    """

    async def check(named: ProjectionRef, dimensions: int) -> None:
        try:
            await asyncio.to_thread(require_projection, named, dimensions, settings)
        except UnusableArrays as error:
            raise WrongProjection(str(error)) from None

    return check
