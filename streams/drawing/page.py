"""Pages from templates: everything is escaped unless it was drawn here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from streams.drawing.inks import INKS, variable

HERE = Path(__file__).parent


def page(template: Path, values: Mapping[str, object]) -> str:
    """Return a template filled in; it may extend `page.html` of this folder.

    Raises:
        jinja2.UndefinedError: the template names a value that is not among these.
    """
    written = Environment(
        loader=FileSystemLoader([template.parent, HERE]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    written.filters["variable"] = variable
    return written.get_template(template.name).render(inks=INKS, **values)
