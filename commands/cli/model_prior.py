"""Declare a model with a prior from a folder of `pbstream fit`, and the contexts that the prior
needs.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ground.json_values import Document

if TYPE_CHECKING:
    from streams.settings import Settings

SHA256 = 64
"""Hexadecimal digits of a checksum."""


def prior_from(folder: Path, model: str) -> Document:
    """Return the fields of a model's declaration that a folder's priors fill."""
    from streams.priors.fitted_priors import fields_for_wire, load_priors

    return fields_for_wire(load_priors(folder), model)


def fitted_in(prior: Path) -> str | None:
    """Return the checksum of the projection that a folder's priors were fitted with; None for
    priors from a history, whose contexts may have been sent.
    """
    from streams.priors.fitted_priors import load_priors

    made_by = load_priors(prior).projection
    # Priors of a history say "history of ROUTER" there.
    return made_by if len(made_by) == SHA256 and " " not in made_by else None


def projection_in(document: Document, settings: Settings) -> str | None:
    """Return the checksum of the projection that makes a router's contexts of prompts: the one that
    it declares, else the settings' own; None where contexts are sent."""
    from streams.encoder.encoder_by_settings import projection_of

    declared = document.get("projection")
    if declared is not None:
        return str(declared["sha256"])
    return None if settings.encoder_backend == "none" else projection_of(settings).checksum


def reference_to(folder: Path) -> Document:
    """Return the reference of a declaration to the projection in a folder of `pbstream fit`."""
    from streams.encoder.projection import Projection

    return {"ref": folder.resolve().name, "sha256": Projection.load(folder).checksum}


def contexts_of(settings: Settings, prior: Path | None, projection: Path | None) -> Document:
    """Return the `dimensions` that a new router declares, and the prior's projection if it differs
    from the settings'.
    """
    from streams.encoder.encoder_by_settings import projection_of
    from streams.encoder.projection import Projection
    from streams.priors.fitted_priors import load_priors

    takes_prompts = settings.encoder_backend != "none"
    if projection is not None:
        return {"dimensions": Projection.load(projection).dimensions}
    if prior is None:
        return {"dimensions": projection_of(settings).dimensions if takes_prompts else 26}
    # Declared only if it differs; otherwise the workers' own projection makes the same contexts.
    if takes_prompts and fitted_in(prior) not in (None, projection_of(settings).checksum):
        return {"dimensions": Projection.load(prior).dimensions, "projection": reference_to(prior)}
    return {"dimensions": load_priors(prior).dimensions}


def mismatch(settings: Settings, model: Document) -> str | None:
    """Return advice if a prior does not fit the contexts that these settings make of prompts; None
    if it fits.
    """
    from streams.encoder.encoder_by_settings import projections_of

    wanted = _of_prior(model)
    if wanted is None or settings.encoder_backend == "none":
        return None
    sizes = [found.dimensions for found in projections_of(settings)]
    if wanted in sizes:
        return None
    here = " or ".join(map(str, sizes))
    return (
        f"This prior has {wanted} dimensions; prompts become {here} here. The workers need the "
        "projection that was fitted with it: "
        "PB_PROJECTION_PATH=FOLDER pbstream worker"
    )


def _of_prior(model: Document) -> int | None:
    """Return the dimensions of a model's prior; None without arrays."""
    prior = model.get("prior") or {}
    return len(prior["b"]) if "b" in prior else None
