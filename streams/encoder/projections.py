"""Find and check declared projections, and combine them with the sentence encoder."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path

from ground.files.array_folder import UnusableArrays, folder_named
from router_state.config import ProjectionRef
from streams.encoder.encoder_by_settings import backend_of, projection_of
from streams.encoder.projected_encoder import Encoder
from streams.encoder.projection import Projection
from streams.settings import Settings

KEPT = 256
"""Most projections in memory; one of 25 components of MiniLM takes 77 kB."""


def read_projection(named: ProjectionRef, *, inside: Path | None) -> Projection:
    """Read the projection that a declaration refers to.

    Args:
        inside: holds folders that `pbstream fit` wrote, by name.

    Raises:
        UnusableArrays: it is missing, damaged, or not the one that was declared.
    """
    found = Projection.load(folder_named(named.ref, inside=inside))
    if found.checksum != named.sha256:
        raise UnusableArrays(f"projection {named.ref!r} has another checksum than declared")
    return found


def require_projection(named: ProjectionRef, dimensions: int, settings: Settings) -> None:
    """Raise UnusableArrays if a projection is missing, differs from its declaration, or was fitted
    with another encoder.
    """
    found = read_projection(named, inside=settings.priors_path)
    if found.dimensions != dimensions:
        raise UnusableArrays(
            f"projection {named.ref!r} makes {found.dimensions} numbers of a prompt; the router "
            f"declares dimensions {dimensions}"
        )
    # The width of a network is known once it is loaded; that of a table stands beside it.
    if settings.encoder_backend != "none" and backend_of(settings) == "static":
        width = projection_of(settings).embedding_width
        if found.embedding_width != width:
            raise UnusableArrays(
                f"projection {named.ref!r} takes embeddings of width {found.embedding_width}, this "
                f"worker's encoder makes {width}: fit it with the encoder that the workers run"
            )


class Encoders:
    """The sentence encoder with the projections of all routers."""

    def __init__(
        self, own: Encoder, folder: Path | None, *, others: Iterable[Projection] = ()
    ) -> None:
        """Take the encoder with the service's own projection, the folder of declared projections,
        and further projections for routers that declare none.
        """
        self._own = own
        self._folder = folder
        self._by_dimensions = {other.dimensions: own.projected(other) for other in others}
        self._kept: OrderedDict[ProjectionRef, Encoder] = OrderedDict()

    def of(self, named: ProjectionRef | int) -> Encoder:
        """Return the encoder with a router's projection.

        Args:
            named: the declared projection; a number: the router declares none, and has this number
                of dimensions.

        Raises:
            UnusableArrays: as `read_projection`.
            EncoderError: it was fitted with another encoder.
        """
        if isinstance(named, int):
            return self._by_dimensions.get(named, self._own)
        if named not in self._kept:
            found = read_projection(named, inside=self._folder)
            self._kept[named] = self._own.projected(found)
            if len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(named)
        return self._kept[named]
