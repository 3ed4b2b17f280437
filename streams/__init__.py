"""The worker: Faust, tables, Kafka's log, the encoder, the settings and the start.

Everything from `doors` upwards may import it. It imports `agents` and what lies below.
"""
