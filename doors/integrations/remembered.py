"""Remember the payloads of a door: attempts, whose bills add up; labels, which a later payload
corrects; and names of scores, of which one has to be chosen.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping

from doors.integrations.payload_items import Found, Unconvertible
from paretobandit_client.attempt_sums import Attempts

LABELS = 100_000
"""Most labels that are remembered; the oldest is forgotten first."""
NAMES = 8
"""Most names of scores that are listed."""


class Remembered:
    """The earlier payloads of one door, as far as this process has seen them."""

    def __init__(self) -> None:
        self._names: dict[str, None] = {}
        self._met: set[str] = set()
        self._attempts = Attempts()
        self._labels: OrderedDict[tuple[object, str], tuple[object, int]] = OrderedDict()

    def note_scores(self, found: Iterable[Found]) -> None:
        """Note the names of scores."""
        for one in found:
            if one.score is not None and len(self._names) < NAMES:
                self._names[str(one.score)] = None

    @property
    def names(self) -> str:
        """Return the first names of scores, to be shown."""
        return _shown(self._names)

    def wants(self, label: Found, scores: Collection[str]) -> bool:
        """Tell whether a label is of a score that becomes the reward.

        Args:
            scores: names of the chosen scores; empty: the only score of the payload.

        Raises:
            Unconvertible: there are several scores, and none was chosen.
        """
        if label.score is None:
            return True
        if label.score in scores:
            self._met.add(label.score)
        if scores:
            return label.score in scores
        if len(self._names) > 1:
            raise Unconvertible(
                f"name: there are several scores: {self.names}. Only one of them is the reward: "
                "choose it with --score NAME, over HTTP with ?score=NAME, in a mapping file with "
                "score"
            )
        return True

    def unmet(self, scores: Collection[str]) -> str | None:
        """Return a sentence if a mapping names scores and no payload so far had one of them, as the
        names may be mistyped.
        """
        if not scores or not self._met.isdisjoint(scores):
            return None
        others = f"; those that came are named {self.names}" if self._names else ""
        return f"score: none that came so far is named {_shown(scores)}{others}"

    def revised(self, one: Found, fields: Mapping[str, object]) -> Mapping[str, object]:
        """Return the fields of an event after comparison with earlier ones: a bill becomes that of
        all attempts so far, and a label with another value gets a higher revision.
        """
        if one.attempt is not None:
            # Each call of a plan has a bill of its own; tries of the same call add up.
            request = fields["router_id"], fields["request_id"], fields.get("attempt") or 0
            return self._attempts.add(request, one.attempt, fields)
        if one.label_id is not None:
            return {**fields, "revision": self._revision(one.label_id, fields)}
        return fields

    def _revision(self, label_id: str, fields: Mapping[str, object]) -> int:
        key, value, said = (fields["router_id"], label_id), fields["reward"], fields.get("revision")
        revision = said if isinstance(said, int) else 0
        before = self._labels.get(key)
        if before is not None:
            revision = max(revision, before[1] + (value != before[0]))
        self._labels[key] = value, revision
        self._labels.move_to_end(key)
        while len(self._labels) > LABELS:
            self._labels.popitem(last=False)
        return revision


def _shown(names: Iterable[str]) -> str:
    return ", ".join(name[:60].encode("utf-8", "replace").decode() for name in names)
