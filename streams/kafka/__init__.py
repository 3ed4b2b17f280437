"""A real Kafka broker on this machine, from Maven's jars: for tests, the demo and trying things out."""
