"""Topics, rights and the log, through Kafka's own protocol."""
