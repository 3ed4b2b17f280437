"""Topics, rights and the log itself, as seen through Kafka's own protocol."""
