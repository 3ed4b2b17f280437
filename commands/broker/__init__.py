"""A Kafka broker for one machine: named, in Docker, or from Maven's jars."""
