"""Keep cases on disk while they are first read, so that further passes need no decoding and no
memory.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any, Self

import numpy as np

from studies.history.happened import Declared
from studies.simulate.cases import Case

CASES_AT_ONCE = 500
"""Cases of one write."""
_fields = attrgetter(*(name for name in Case.__struct_fields__ if name != "x"))


class CaseFile:
    """A temporary file of cases and declarations, in order, deleted when it is closed."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="pbstream-cases-")  # noqa: SIM115
        self._open: list[Case] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._file.close()

    def keep(self, cases: Iterable[Case | Declared]) -> Iterator[Case | Declared]:
        """Hand cases on and write each of them."""
        waiting = self._open
        for case in cases:
            if type(case) is Declared:
                self._write()
                pickle.dump(case, self._file, protocol=5)
            else:
                # Contexts of one write are one array; a router that is declared with other
                # dimensions begins the next.
                if len(waiting) >= CASES_AT_ONCE or (
                    waiting and waiting[0].x.shape != case.x.shape
                ):
                    self._write()
                waiting.append(case)
            yield case
        self._write()

    def __iter__(self) -> Iterator[Case | Declared]:
        """Read everything from the beginning."""
        self._file.seek(0)
        while True:
            try:
                # Safe to unpickle: the file has no name, so only this process can have written it.
                read: Any = pickle.load(self._file)
            except EOFError:
                return
            if type(read) is Declared:
                yield read
            else:
                x, columns = read
                yield from map(Case, *columns[:2], x, *columns[2:])

    def _write(self) -> None:
        cases = self._open
        if cases:
            # Stored by columns: pickle handles a few long lists faster than many cases.
            columns = list(zip(*map(_fields, cases), strict=True))
            pickle.dump((np.array([case.x for case in cases]), columns), self._file, protocol=5)
            cases.clear()
