"""Replacements of methods of Faust and aiokafka, and nothing else."""
