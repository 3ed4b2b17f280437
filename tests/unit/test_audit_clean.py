"""An audit of true topics finds nothing."""

from streams.audit.run import audit
from streams.settings import Settings
from tests.audit_world import busy_world

SETTINGS = Settings(prefix="pb.", app_id="audited", partitions=3)


async def test_busy_service_is_clean() -> None:
    world = await busy_world(SETTINGS)
    findings = audit(world.topics(), SETTINGS)
    assert findings.as_json()["violations"] == {}, findings.examples
    assert findings.as_json()["unprovable"] == {}, findings.examples
    assert findings.checked["decisions"] == 300
    assert findings.checked["routers_recomputed"] == 4
