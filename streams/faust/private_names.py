"""List the private names of Faust, mode and aiokafka that this folder uses, each with its reason.

Private is what begins with an underscore, and what stands in a module that the library does not
document for applications. No other folder uses any.
`tests/streams/faust/test_private_names.py` compares this list with the code and with the installed
libraries.
"""

from __future__ import annotations

from dataclasses import dataclass

CONSUMER = "aiokafka.consumer.consumer:AIOKafkaConsumer"
FETCHER = "aiokafka.consumer.fetcher:Fetcher"
COORDINATOR = "aiokafka.consumer.group_coordinator:GroupCoordinator"
DRIVER = "faust.transport.drivers.aiokafka"
RECOVERY = "faust.tables.recovery:Recovery"


@dataclass(frozen=True, slots=True)
class Private:
    """Names of one object, used for one reason.

    Attributes:
        owner: the module, and behind a colon the class, that has the names.
        why: the reason why the names are needed.
        instead: what the library offers in their place, and why that is not enough; empty where it
            offers nothing.
    """

    owner: str
    names: tuple[str, ...]
    why: str
    instead: str = ""


PRIVATE = (
    # Faust: the app
    Private(
        "faust.app.base:App",
        ("_crash",),
        "A crash ends the process at once; an orderly stop would commit what was not done.",
        "`crash` is public, but a service that crashes calls `_crash` of those above it.",
    ),
    Private(
        "faust.app.base:App",
        ("_init_fixups",),
        "Looking for fixups searches the metadata of all installed packages at every start.",
    ),
    Private(
        "faust.app.base:App",
        ("_fetcher",),
        "The end of a recovery starts the fetching, as the method does that it replaces.",
    ),
    # Faust: the table
    Private(
        "faust.stores.memory",
        ("Store",),
        "The table has an empty store; naming it by URL searches the metadata of all packages.",
    ),
    # Faust: recovery
    Private(
        "faust.tables.recovery",
        ("Recovery",),
        "Faust loses events at the end of a recovery: it resumes the sources before it seeks them.",
    ),
    Private(
        "faust.tables.recovery",
        ("ServiceStopped", "RebalanceAgain"),
        "Faust raises them out of a wait, and does not take them from a task that it leaves.",
    ),
    Private(
        RECOVERY,
        ("_set_recovery_started", "_set_recovery_ended", "_build_highwaters", "_wait"),
        "A recovery that has been overtaken reads on, in the phases that Faust gives it.",
    ),
    Private(
        RECOVERY,
        ("_active_events_received_at", "_last_flush_at"),
        "Records are applied as they were fetched; Faust warns where it sees no progress.",
    ),
    Private(
        "faust.tables.manager",
        ("TableManager",),
        "The manager makes the recovery, and Faust takes the manager by the setting TableManager.",
    ),
    Private(
        "faust.tables.manager:TableManager",
        ("_update_channels", "_recovery"),
        "It begins at once; Faust waits a second for tables that are declared late.",
    ),
    # Faust: the transport
    Private(
        "faust.transport.drivers",
        ("aiokafka",),
        "The consumer, its thread, the producer and the transport are derived from the driver's.",
    ),
    Private(
        f"{DRIVER}:Consumer",
        ("_drain_messages", "_get_active_partitions", "_buffered_partitions"),
        "Fetched records go to the lanes as lists; Faust makes an event and four tasks of each.",
    ),
    Private(
        f"{DRIVER}:Consumer",
        ("_filter_tps_with_pending_acks", "_filter_committable_offsets", "_should_commit"),
        "What lanes have finished is committed; Faust commits messages that were acknowledged.",
    ),
    Private(
        f"{DRIVER}:Consumer",
        ("_new_consumer_thread", "_thread"),
        "The consumer's thread is a task of the lanes' event loop.",
    ),
    Private(
        "mode.threads:ServiceThread",
        ("_serve", "_gather_remaining_tasks"),
        "The task serves what the thread would; its end leaves the loop's other tasks alone.",
    ),
    Private(
        f"{DRIVER}:AIOKafkaConsumerThread",
        ("_create_worker_consumer", "_consumer", "_ensure_consumer"),
        "aiokafka's consumer is set up further, and asked for its state.",
    ),
    Private(
        f"{DRIVER}:AIOKafkaConsumerThread",
        ("_fetch_records", "_seek_wait"),
        "No fetch crosses a seek: both wait for one lock.",
    ),
    Private(
        f"{DRIVER}:Producer",
        ("_new_producer", "_settings_extra"),
        "Producing is idempotent, for which Faust has no setting.",
    ),
    Private(
        f"{DRIVER}:Producer",
        ("_ensure_producer",),
        "Whole batches are sent, for which Faust has no method.",
    ),
    # aiokafka: fetching
    Private(
        CONSUMER,
        ("_fetch_max_wait_ms", "_isolation_level"),
        "Faust gives no setting for how long brokers hold fetches, nor for what was aborted.",
        "Both are arguments of AIOKafkaConsumer, which Faust makes with twenty others.",
    ),
    Private(
        CONSUMER,
        ("_fetcher",),
        "How long and how large a fetch is changes while the consumer runs.",
    ),
    Private(
        CONSUMER,
        ("_coordinator",),
        "Its errors end the worker, its heartbeats renew the session, its offsets come at once.",
        "`committed` asks for one partition after the other; no method returns errors alone.",
    ),
    Private(
        CONSUMER,
        ("_subscription",),
        "Positions of all partitions are read and restored around every fetch.",
        "`position` waits where there is none yet.",
    ),
    Private(
        FETCHER,
        ("_fetch_max_wait_ms", "_max_partition_fetch_bytes"),
        "A recovery fetches much and seeks often; afterwards little is fetched at a time.",
    ),
    Private(
        FETCHER,
        ("_records",),
        "What was fetched and is not taken is dropped: it would hold up its broker's next fetch.",
    ),
    Private(
        FETCHER,
        ("_get_actions_per_node",),
        "The next fetch leaves a tick later while the event loop is busy.",
        "Nothing tells when a fetch leaves; `fetch_min_bytes` lets the broker look at each record.",
    ),
    Private("aiokafka.consumer.fetcher", ("Fetcher",), "Type of what keeps to that pace."),
    Private(
        "aiokafka.protocol.fetch",
        ("FetchRequest_v11", "FetchResponse_v11"),
        "Fetches are written and read at once: a call for each field took a seventh of the CPU.",
    ),
    Private(
        "aiokafka.protocol.produce",
        ("ProduceRequest_v7", "ProduceResponse_v7"),
        "Produce requests are written and read at once, as fetches are.",
    ),
    Private(
        "aiokafka.consumer.subscription_state",
        ("Assignment", "Subscription", "TopicPartitionState"),
        "Types of what is handed over.",
    ),
    # aiokafka: batches that can't be read
    Private(
        "aiokafka.consumer",
        ("fetcher",),
        "`PartitionRecords` is replaced: aiokafka loses what comes before a damaged batch.",
    ),
    Private(
        "aiokafka.consumer.fetcher:PartitionRecords",
        ("_records_iterator", "_tp"),
        "The records before the damaged batch are handed over, then its place is raised.",
    ),
    Private("aiokafka.record.default_records", ("DefaultRecordBatch",), "Type of a batch."),
    Private("aiokafka.record.memory_records", ("MemoryRecords",), "Type of a fetch's batches."),
    # aiokafka: membership
    Private(
        "aiokafka.consumer.group_coordinator",
        ("GroupCoordinator",),
        "Type of the coordinator, whose methods are wrapped.",
    ),
    Private(
        COORDINATOR,
        ("_do_heartbeat",),
        "A heartbeat that the group confirms renews the session in which a worker may write.",
    ),
    Private(
        COORDINATOR,
        ("_do_rejoin_group", "_session_timeout_ms"),
        "A session that the broker refuses as too short is asked for again, longer.",
    ),
    Private(
        COORDINATOR,
        ("_send_req",),
        "The group is asked who has this worker's instance id now, before it joins again.",
    ),
    Private(
        COORDINATOR,
        ("_group_instance_id",),
        "A static member that stops tells its group; aiokafka lets it go silently.",
    ),
    Private(
        "aiokafka.protocol.api",
        ("Request", "RequestStruct", "Response"),
        "Requests that aiokafka does not have: a heartbeat with an instance id, and rights.",
    ),
    Private(
        "aiokafka.protocol.types",
        ("Array", "Boolean", "Int16", "Int32", "Schema", "String"),
        "The fields of these requests.",
    ),
    Private(
        "aiokafka.protocol.group",
        ("HeartbeatResponse_v1",),
        "The answer to the heartbeat, whose fields are the same.",
    ),
    Private(
        "aiokafka.protocol.admin",
        ("DescribeGroupsRequest_v3", "DescribeGroupsResponse_v3"),
        "The rights on a group, which version 3 tells.",
        "`describe_consumer_groups` of the admin client does not ask for them.",
    ),
    # aiokafka: sending
    Private(
        "aiokafka.producer.message_accumulator",
        ("BatchBuilder",),
        "A changelog's batch has a limit of its own and is not compressed, answers are.",
        "`create_batch` gives one with the producer's limit and compression.",
    ),
    Private(
        "aiokafka.producer",
        ("sender",),
        "`SendProduceReqHandler` is replaced: answers go with the next batch in one request.",
    ),
    # aiokafka: a connection
    Private(
        "aiokafka.conn",
        ("AIOKafkaConnection",),
        "One connection says why Kafka refuses it; clients tell their log.",
    ),
    Private(
        "aiokafka.conn:AIOKafkaConnection",
        ("_protocol",),
        "Its end is waited for only where there was one.",
    ),
)
