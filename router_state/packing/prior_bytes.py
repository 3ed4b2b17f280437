"""A shared prior as bytes and back."""

from __future__ import annotations

from router_state.kernel import SharedPrior
from router_state.packing import layout
from router_state.packing.framing import floats, packed


def pack_prior(prior: SharedPrior) -> bytes:
    """Return a shared prior as bytes."""
    return packed(layout.SHARED.of(prior), prior.mean, prior.center)


def restore_prior(prior: SharedPrior, data: bytes) -> None:
    """Invert `pack_prior`. Raises DamagedState."""
    size, d = len(layout.SHARED), prior.d
    values = floats(data, prior.name.strip(), least=size + 2 * d, most=size + 2 * d)
    layout.SHARED.put(prior, values[:size].tolist())
    prior.mean, prior.center = values[size : size + d].copy(), values[size + d :].copy()
