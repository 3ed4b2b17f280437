"""A router's last record stays unpacked, as its table has it."""

from agents.table import keys
from router_state.state import record_bytes
from tests.agents.crashing import CONTEXT, HOME, Dying, Log
from tests.audit_world import router


async def test_the_last_record_is_kept_as_the_table_has_it_and_no_other_is() -> None:
    worker, log = Dying(), Log()
    await worker.start()
    await worker.take("routers", [log.event("routers", router(HOME))])
    for name in ("first", "last"):
        asked = {"request_id": name, "context": CONTEXT}
        await worker.take("requests", [log.event("requests", asked)])
    engine = worker.partitions[0].routers.engine(HOME)
    assert engine is not None
    records = engine.records
    last = records["last"]
    assert records["last"] is last and records["first"] is not records["first"]
    for topic, said in (
        ("costs", {"cost_usd": 1e-4}),
        ("rewards", {"reward": 0.5, "source": "judge"}),
    ):
        await worker.take(topic, [log.event(topic, {"request_id": "last", **said})])
        assert records["last"] is last
        kept = worker.table(0)[keys.key(keys.REQUEST, HOME, "last")]
        assert record_bytes.pack_record(last) == kept
    await worker.take("costs", [log.event("costs", {"request_id": "first", "cost_usd": 1e-4})])
    assert records["last"] is not last
