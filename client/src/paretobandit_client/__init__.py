"""Ask paretobandit-streams which model shall answer a prompt, and report what it cost and how good
it was.
"""

from paretobandit_client.async_router import Counts, Router
from paretobandit_client.attempt import Attempt
from paretobandit_client.client_errors import (
    NoDecision,
    Refused,
    RouterError,
    Undelivered,
    Unreachable,
)
from paretobandit_client.decision import Decision
from paretobandit_client.ready_verifiers import is_json, json_schema, matches, non_empty
from paretobandit_client.sent_events import Candidate, Needs, Refusal, Route, Signals
from paretobandit_client.sync import SyncAttempt, SyncDecision, SyncRouter
from paretobandit_client.verifying import Verifier

__all__ = [
    "Attempt",
    "Candidate",
    "Counts",
    "Decision",
    "Needs",
    "NoDecision",
    "Refusal",
    "Refused",
    "Route",
    "Router",
    "RouterError",
    "Signals",
    "SyncAttempt",
    "SyncDecision",
    "SyncRouter",
    "Undelivered",
    "Unreachable",
    "Verifier",
    "is_json",
    "json_schema",
    "matches",
    "non_empty",
]
