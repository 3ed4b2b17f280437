"""Replace parts of Faust and aiokafka; whatever touches their private names stands here."""
