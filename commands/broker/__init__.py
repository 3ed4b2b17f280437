"""Find or start a Kafka broker: one named by a variable, one in Docker, or one from Maven's
jars."""
