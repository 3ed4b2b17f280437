"""The pipeline of one partition, from fetched records to answers."""
