"""Define what a declaration may state about a model before its first reward: arrays, a reference,
or "like model X".
"""

from typing import Annotated, Self

from pydantic import Field, model_validator

from schemas.event import Content, optional
from schemas.fields import Label, ModelName, form, one_form, refuse
from schemas.reasons import Reason

Row = Annotated[tuple[float, ...], Field(min_length=1, fail_fast=True)]
Pseudo = Annotated[float, Field(gt=0, le=1e9)]

_N_EFF = "Observations that the prior counts for; absent: follows from the router's t_adapt"
"""Description of the field, alike in each form of a prior."""


def _require_square(A: tuple[Row, ...], b: Row) -> None:
    if len(A) != len(b) or any(len(row) != len(b) for row in A):
        raise refuse(Reason.WRONG_PRIOR, "has A that is not (d, d) for b of (d,)")


class InlinePrior(Content):
    """Give the offline statistics themselves: A = Σ xxᵀ, shape (d, d), and b = Σ reward·x, shape
    (d,).
    """

    A: Annotated[tuple[Row, ...], Field(min_length=1, fail_fast=True)]
    b: Row
    n_eff: Pseudo | None = optional(_N_EFF)

    @model_validator(mode="after")
    def _is_square(self) -> Self:
        _require_square(self.A, self.b)
        return self


class CostPrior(Content):
    """Give sums over earlier bills of the model, at the list prices declared beside it.

    A = Σ xxᵀ, shape (d, d), and b = Σ ln(dollars)·x, shape (d,), both over the bills above zero.
    """

    A: Annotated[tuple[Row, ...], Field(min_length=1, fail_fast=True)]
    b: Row
    mean_usd: Annotated[
        float, Field(ge=0, le=1000, description="Mean bill in US dollars, bills of zero included")
    ]
    n_eff: Pseudo | None = optional(
        "Bills that the prior counts for; absent: as many as A counts, at most 200"
    )

    @model_validator(mode="after")
    def _is_square(self) -> Self:
        _require_square(self.A, self.b)
        return self


class Reference(Content):
    """Name a folder of arrays that the worker can read, and the checksum of the arrays."""

    ref: Annotated[
        Label, Field(description="File name or address, resolved by the worker's settings")
    ]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ReferencedPrior(Reference):
    """Name a file of arrays that the worker can read, and the checksum of its bytes; what it says
    of costs is taken as well.
    """

    n_eff: Pseudo | None = optional(_N_EFF)


class LikePrior(Content):
    """Start from the evidence on another model of the same router."""

    like: ModelName
    n_eff: Pseudo | None = optional(_N_EFF)


def _form(prior: object) -> str | None:
    """Tell the form of a prior by its one distinctive field; none or several of them are an
    error.
    """
    if isinstance(prior, Content):
        return next(tag for tag, form in _FORMS.items() if isinstance(prior, form))
    forms = [tag for tag in _FORMS if isinstance(prior, dict) and prior.get(tag) is not None]
    return forms[0] if len(forms) == 1 else None


_FORMS: dict[str, type[Content]] = {"A": InlinePrior, "ref": ReferencedPrior, "like": LikePrior}
"""Each form by the field that only it has."""

Prior = Annotated[
    Annotated[InlinePrior, form("A")]
    | Annotated[ReferencedPrior, form("ref")]
    | Annotated[LikePrior, form("like")],
    one_form(
        _form,
        custom_error_type=Reason.WRONG_PRIOR.value,
        custom_error_message="must have one of A (with b), ref and like",
    ),
]
