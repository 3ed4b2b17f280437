"""What replaces methods of Faust and aiokafka; nothing else stands here."""
