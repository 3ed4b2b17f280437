"""Export to Prometheus how many labels single routers ask for, and how their judges compare with
gold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from ground.json_values import Document

ASKED = {
    "want": ("pb_router_labels_wanted", "Labels that people are asked for in a period"),
    "asked": ("pb_router_labels_period_asked", "Labels asked for in the period that goes on"),
}
"""Gauges of a router: metric and help by field of `labels` on `pb.lambda`."""
BY_MODEL = {
    # Gauges, as a label may be withdrawn.
    "asked": ("pb_router_labels_asked", "Labels that were asked for"),
    "answered": ("pb_router_labels_answered", "Labels that were asked for and given"),
    "unasked": ("pb_router_labels_unasked", "Labels of people that came by themselves"),
}
"""Gauges by model: metric and help by field of a model in `labels`."""
OFFSETS = {
    "pairs": ("pb_router_source_pairs", "Requests with a gold label and the judge's"),
    "value": ("pb_router_source_offset", "The judge's label less the gold one, on average"),
    "low": ("pb_router_source_offset_low", "Between low and high it is, at every look"),
    "high": ("pb_router_source_offset_high", "See low"),
}
"""Gauges of a judge by model: metric and help by field of its model in `sources`, or of its
offset.
"""

Shown = list[tuple[str, Document]]
"""Routers with their last records on `pb.lambda`."""


def label_metrics(shown: Shown, parted: Mapping[tuple[str, str], int]) -> Iterator[Metric]:
    """Yield the metrics of routers' labels.

    Args:
        parted: how often a judge has parted from gold, by router and source.
    """
    asking = [(router_id, said["labels"]) for router_id, said in shown if said.get("labels")]
    judges = [
        (router_id, one)
        for router_id, said in shown
        for one in said.get("sources") or ()
        if not one["gold"]
    ]
    for name, (metric, meaning) in ASKED.items():
        found = [([router_id], one[name]) for router_id, one in asking if name in one]
        yield _gauge(metric, meaning, ["router_id"], found)
    of_model = [
        ([router_id, model["model"]], model)
        for router_id, one in asking
        for model in one.get("models") or ()
    ]
    for name, (metric, meaning) in BY_MODEL.items():
        found = [(labels, model[name]) for labels, model in of_model]
        yield _gauge(metric, meaning, ["router_id", "model"], found)
    of_judge = [
        ([router_id, judge["source"], model["model"]], {**model, **model["offset"]})
        for router_id, judge in judges
        for model in judge.get("models") or ()
    ]
    for name, (metric, meaning) in OFFSETS.items():
        found = [(labels, model[name]) for labels, model in of_judge]
        yield _gauge(metric, meaning, ["router_id", "source", "model"], found)
    yield _gauge(
        "pb_router_source_agreement",
        "Correlation of a judge's labels with gold, within models",
        ["router_id", "source"],
        [
            ([router_id, judge["source"]], judge["agreement"]["value"])
            for router_id, judge in judges
            if judge.get("agreement")
        ],
    )
    counter = CounterMetricFamily(
        "pb_router_source_parted",
        "Alerts that a judge has parted from gold, or from its earlier answers",
        labels=["router_id", "source"],
    )
    for router_id, judge in judges:
        key = router_id, judge["source"]
        counter.add_metric(key, parted.get(key, 0))
    yield counter


def _gauge(
    metric: str, meaning: str, labels: list[str], found: Iterable[tuple[list[str], float]]
) -> Metric:
    family = GaugeMetricFamily(metric, meaning, labels=labels)
    for values, value in found:
        family.add_metric(values, value)
    return family
