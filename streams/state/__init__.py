"""The durable table: records per partition, contexts, snapshots."""
