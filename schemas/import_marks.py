"""Fields of a model in a declaration, ignored by workers, with the values of its last import. If
today's values differ from them, they were set by hand."""

from __future__ import annotations

IMPORTED, IMPORTED_OFFERS = "imported", "imported_offers"
IMPORTED_CACHE, IMPORTED_OTHERS = "imported_cache", "imported_others"
"""Fields with the imported values: prices; capabilities; prices of cached input; prices of long
inputs and the model's end."""
MARKS = frozenset({IMPORTED, IMPORTED_OFFERS, IMPORTED_CACHE, IMPORTED_OTHERS})
