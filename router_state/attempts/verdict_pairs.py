"""Test verifiers by pairs of a verdict and a label: whether verdicts tell anything, and whether
they tell as much as before.

Of each pair counts by how much the label is above what was expected of the answer. Among answers
that passed the mean is higher than among those that did not, by the *separation*: 0 for a coin, and
for a verifier that only likes one model. All intervals hold at every look (`learning.intervals`).
"""

from __future__ import annotations
