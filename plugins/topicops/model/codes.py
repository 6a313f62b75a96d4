"""Every code, in one list: what it means, how it comes about, and what to do.

TOP1xx file and YAML, 2xx shape and scalars, 3xx meaning offline, 4xx spec against the live cluster, 5xx while applying,
6xx verify and drift, 7xx trust, 8xx the environment; Vxx the checks of verify, Qxx the rules of quality. A code has one
cause, and is never given another meaning or number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum, unique
from types import MappingProxyType
from typing import Self

_NUMBER = re.compile(r"TOP\d{3}|[VQ]\d\d")
_QUALITY = "docs/reference/quality.md"
_PAGES = {"V": "docs/reference/checks.md", "Q": _QUALITY}


@unique
class Code(StrEnum):
    """A code is its own number as text: files and JSON hold that alone."""

    meaning: str
    cause: str
    fix: str
    example: str
    """Example of the cause; empty for checks and quality rules, which have many."""

    def __new__(cls, number: str, meaning: str, cause: str, fix: str, example: str = "") -> Self:
        """Make the member; a name such as ``Code.NO_LEADER`` is what findings use."""
        code = str.__new__(cls, number)
        code._value_ = number
        code.meaning, code.cause, code.fix, code.example = meaning, cause, fix, example
        return code

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        """Take a code of a later release, as a plan or a report of it may name one."""
        if not isinstance(value, str) or not _NUMBER.fullmatch(value):
            return None
        later = str.__new__(cls, value)
        later._name_ = later._value_ = value
        later.meaning, later.cause, later.fix, later.example = "a code of a later release", "", "", ""
        return later

    @property
    def page(self) -> str:
        """Place in the docs that says more about a check or a quality rule; empty for problems."""
        page = _PAGES.get(self[0], "")
        return f"{page}#{self.lower()}" if page == _QUALITY else page

    # fmt: off
    NOT_UTF8 = ("TOP101", "not UTF-8", "A byte that UTF-8 does not have, often from Latin-1.",
        "Save the file as UTF-8.", "`description: Café`, saved as Latin-1: the byte 0xE9.")
    HIDDEN_CHARACTER = ("TOP102", "forbidden or invisible character",
        "A control, zero-width or direction mark, U+2028, a bare CR.",
        "Delete it; in a text that needs it, write an escape in double quotes.",
        "`name: ord\\u200bers`, pasted from a chat with a zero-width space in it.")
    FILE_TOO_LARGE = ("TOP103", "file too large", "More than 64 KiB.", "One topic a file; shorten comments.",
        "A file of 70,000 bytes, most of them comments.")
    NESTED_TOO_DEEP = ("TOP104", "nested too deep", "More than 16 lists or mappings inside each other.",
        "No field needs that.", "`[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]`.")
    TOO_MANY_VALUES = ("TOP105", "too many nodes or files", "More than 2,000 values in a file.",
        "Put what topics share into a profile.", "A profile with 2,500 made-up configs.")
    YAML_SYNTAX = ("TOP106", "YAML syntax", "A quote or bracket without its end, or a wrong indentation.",
        "Correct the marked character; look at the line above too.",
        '`description: "One event for each order.`, and the quote never ends.')
    TAB_INDENTATION = ("TOP107", "tab indentation", "A line is indented by a tab.", "Indent by blanks.",
        "A tab before `partitions: 6`.")
    ANCHOR = ("TOP108", "anchor or alias", "`&name` or `*name`: the file would mean more than it shows.",
        "Write the value out, or share it by a profile.", "`configs: &defaults {retention.ms: 7d}`.")
    MERGE_KEY = ("TOP109", "merge key", "`<<:` pulls in another mapping.", "Write the fields out, or use a profile.",
        "`<<: {partitions: 3}`.")
    TAG = ("TOP110", "tag or directive", "`!type` on a value, or `%YAML` above.",
        "Delete it; each field knows its type.", "`partitions: !!str 12`.")
    DUPLICATE_KEY = ("TOP111", "duplicate key", "A key stands twice in one mapping.", "Keep one of the two.",
        "`partitions: 6` on line 8 and `partitions: 12` on line 11.")
    SECOND_DOCUMENT = ("TOP112", "more than one document", "A second `---`.", "Give each topic a file.",
        "Two topics in one file, with `---` between them.")
    EMPTY_DOCUMENT = ("TOP113", "empty document", "Only comments, or nothing.", "Describe a topic, or delete the file.",
        "A file that holds only `# to be written`.")
    KEY_NOT_PLAIN = ("TOP114", "key is not a plain string", "A list, a mapping or nothing where a key belongs.",
        "Name the field.", "`? [a, b]`.")
    UNREADABLE_FILE = ("TOP115", "not a regular readable file", "A link, a pipe, a device, or a missing permission.",
        "Put a regular, readable file there.", "`orders.yaml` is a link to `../shared/orders.yaml`.")
    MISPLACED_FILE = ("TOP116", "path outside topics/ or bad name",
        "Not `topics/<domain>/<name>.yaml`, or odd characters in it.", "Move or rename the file.",
        "`topics/shop/eu/orders.yaml`: one folder too deep.")
    FILE_NAME_DIFFERS = ("TOP117", "file name differs from topic name", "`orders.yaml` with the name `order`.",
        "Make the two equal.", "`topics/shop/orders.yaml` with `name: order`.")
    WRONG_EXTENSION = ("TOP118", "extension is not .yaml", "`orders.yml`: topicops would not find it.", "Rename it.",
        "`topics/shop/orders.yml`.")
    UTF16 = ("TOP119", "UTF-16/32", "Saved by an editor in another encoding.", "Save it as UTF-8.",
        "A file that starts with the bytes FF FE.")
    UNKNOWN_FIELD = ("TOP201", "unknown field", "`replicas: 3`; or a field of another block.",
        "Follow the hint, or delete it.", "`replicas: 3`, where `replicationFactor: 3` is meant.")
    MISSING_FIELD = ("TOP202", "missing field", "A required field is not there, or no layer gives it.", "Write it.",
        "A topic without `owner`.")
    WRONG_TYPE = ("TOP203", "wrong type", "Text where a number, or a list where a mapping belongs.",
        "Write the wanted type.", "`partitions: few`.")
    AMBIGUOUS_SCALAR = ("TOP204", "ambiguous scalar", "`010`, `1_000`, `1e3`, `yes`: readers of YAML disagree.",
        "Write plain digits, `true` or `false`.", "`partitions: 010`: 8 to some, 10 to others.")
    OUT_OF_RANGE = ("TOP205", "out of range", "A number or word that the field does not take.",
        "Choose one that it takes.", "`partitions: 0`.")
    UNKNOWN_KIND = ("TOP206", "unknown apiVersion or kind", "The folder holds another kind.",
        "Move the file, or correct it.", "`kind: Profile` in `topics/shop/`.")
    NAME_CHARACTERS = ("TOP207", "characters not allowed in a topic name",
        "Other than letters, digits, dot, underscore, dash.", "Rename the topic.", "`name: orders/eu`.")
    NAME_TOO_LONG = ("TOP208", "topic name too long", "More than 249 characters.", "Shorten it.",
        "A name of 250 characters.")
    NAME_OF_FOLDER = ("TOP209", "name is . or ..", "These mean folders on the brokers' disks.", "Choose another name.",
        "`name: ..`.")
    RESERVED_NAME = ("TOP210", "reserved or protected name", "`__consumer_offsets`, or a pattern of the environment.",
        "Leave it to its owner.", "`name: __consumer_offsets`.")
    TEXT_LIMITS = ("TOP211", "text limits", "A description above 2,000 characters, an odd label key.",
        "Shorten or rename it.", "`labels: {cost centre: 12}`: a key with a blank.")
    UNKNOWN_UNIT = ("TOP214", "unit not understood", "`7 days`, `5GB`.",
        "ms s m h d, or B KiB MiB GiB TiB, right behind the number.", "`retention.ms: 7 days`.")
    NO_TIME = ("TOP215", "timestamp is not RFC 3339 UTC", "`tomorrow`, or another offset than Z.",
        "Write it like 2030-01-31T12:00:00Z.", "`until: tomorrow`.")
    DEFINED_TWICE = ("TOP301", "topic defined twice", "Two files have one name.", "Keep one.",
        "`topics/shop/orders.yaml` and `topics/web/orders.yaml`.")
    NAMES_COLLIDE = ("TOP302", "names that differ in dots and underscores alone",
        "`a.b` and `a_b` share their metrics; Kafka refuses the second.",
        "Rename one.", "`web.clicks` and `web_clicks`.")
    DIFFERS_BY_CASE = ("TOP303", "differs only by case", "`Orders` and `orders`.", "Rename one.",
        "`Orders` and `orders`.")
    LOOK_ALIKE_NAME = ("TOP304", "look-alike name", "`payrnents` beside `payments`.",
        "Rename one, if they are not meant as a pair.", "`payrnents`, with r and n, beside `payments`.")
    UNKNOWN_CONFIG = ("TOP305", "unknown config key",
        "No release of Kafka has it: a misspelling, or a broker's setting.", "Follow the hint.", "`retention.mss: 7d`.")
    INVALID_CONFIG = ("TOP306", "config value invalid",
        "Brokers of the release in cluster.kafkaVersion refuse the value.",
        "Choose one within the shown range, or correct cluster.kafkaVersion.",
        '`segment.bytes: 512KiB` with `kafkaVersion: "4.1"`; brokers of 4.0 took it.')
    COMPACTION_LAGS = ("TOP307", "compaction lag conflict", "min.compaction.lag.ms above max.compaction.lag.ms.",
        "Swap or correct.", "`min.compaction.lag.ms: 2h` with `max.compaction.lag.ms: 1h`.")
    MIN_ISR_ABOVE_REPLICAS = ("TOP308", "min ISR above RF",
        "Brokers take it for the replication factor: any replica away fails acks=all.", "Lower min.insync.replicas.",
        "`min.insync.replicas: 4` with `replicationFactor: 3`.")
    MIN_ISR_EQUALS_REPLICAS = ("TOP309", "min ISR equals RF", "One broker's restart stops all writers.",
        "Lower min.insync.replicas by one.", "`min.insync.replicas: 3` with `replicationFactor: 3`.")
    FEW_REPLICAS = ("TOP310", "RF below the environment's minimum", "policy.minReplicationFactor asks for more.",
        "Raise it.", "`replicationFactor: 2` where the environment asks for 3.")
    CONFIG_NOT_ALLOWED = ("TOP311", "config not on the allow-list", "policy.alterableConfigs does not name it.",
        "Take it out, or add it.", "`max.message.bytes: 1MiB` where only `retention.ms` may change.")
    UNCLEAN_ELECTION = ("TOP312", "unclean leader election", "Acknowledged records may be lost.",
        "Set it only where losing records is acceptable.", "`unclean.leader.election.enable: true`.")
    THROTTLE = ("TOP313", "throttle configs", "Kafka's reassignment tools set and remove them.", "Take them out.",
        '`leader.replication.throttled.replicas: "*"`.')
    UNUSABLE_CONFIG = ("TOP314", "config not usable on this version or mode",
        "The release in cluster.kafkaVersion does not have it, or ignores it; or it is for KRaft only.",
        "Take it out, or correct cluster.kafkaVersion.", '`compression.gzip.level: 9` with `kafkaVersion: "3.7"`.')
    LOCAL_RETENTION = ("TOP315", "local above total retention",
        "local.retention.* above retention.*; or below it while remote.log.copy.disable keeps all on the brokers.",
        "Lower it, or write -2.", "`local.retention.ms: 2d` with `retention.ms: 1d`.")
    LONG_SEGMENT = ("TOP316", "segment larger than retention", "segment.ms above retention.ms: data stays too long.",
        "Lower segment.ms.", "`segment.ms: 7d` with `retention.ms: 1d`.")
    UNKNOWN_PROFILE = ("TOP318", "unknown profile", "No file in profiles/ has that name.",
        "Follow the hint, or write the profile.", "`profile: durabel`.")
    UNKNOWN_OVERRIDDEN = ("TOP319", "override for an unknown topic", "overrides names a topic without a file.",
        "Correct or delete it.", "`overrides: {click: {partitions: 12}}`, and the topic is called clicks.")
    MANY_PARTITIONS = ("TOP320", "partitions over the limit", "limits.partitionsPerTopic allows fewer.",
        "Lower them, or raise the limit.", "`partitions: 500` where 128 are allowed.")
    OVER_BUDGET = ("TOP321", "budget of an owner exceeded",
        "More partitions or replicas than `owners.yaml` grants the owner.", "Lower them, or raise the budget.",
        "`{owner: team-shop, partitions: 100}`, and its topics have 112.")
    INCOMPLETE_LIFECYCLE = ("TOP322", "tombstone or pause incomplete",
        "No reason, no end, a spec in a tombstone; or the pause is over.", "Complete it, or take it out.",
        "`lifecycle: {state: absent}` without a reason.")
    COMPACTED_NOT_KEYED = ("TOP323", "compacted but not keyed", "A broker refuses records without a key there.",
        "keyed: true, or delete.", "`cleanup.policy: compact` with `keyed: false`.")
    REMOTE_AND_COMPACTED = ("TOP324", "remote storage with compaction", "The two exclude each other.", "Choose one.",
        "`remote.storage.enable: true` with `cleanup.policy: compact`.")
    INCOMPLETE_ENVIRONMENT = ("TOP325", "environment incomplete",
        "No address, a production cluster without its id, or a lease or a release without ZooKeeper.",
        "Copy it from /cluster/id.", "`class: production` without `id`.")
    EXCEPTION_OVER = ("TOP326", "exception is over", "Its `until` has passed; it no longer applies.",
        "Take it out, or renew it.", "An exception with `until: 2020-01-01T00:00:00Z`.")
    SMALL_SEGMENT = ("TOP327", "segment smaller than a batch",
        "segment.bytes below max.message.bytes; such batches are refused.", "Raise segment.bytes, or lower the other.",
        "`segment.bytes: 512KiB` with `max.message.bytes: 1MiB`.")
    SEGMENT_JITTER = ("TOP328", "segment jitter above segment age", "segment.jitter.ms above segment.ms.",
        "Lower segment.jitter.ms.", "`segment.jitter.ms: 2h` with `segment.ms: 1h`.")
    NAME_PATTERN = ("TOP329", "name does not fit the pattern", "`policy.namePattern` says how topics are named.",
        "Choose a name that fits, or ask for an exception.", "`orders` where the pattern is `[a-z]+\\.[a-z]+`.")
    LABEL_MISSING = ("TOP330", "required label missing", "`policy.requiredLabels` names it.",
        "Write it below metadata.labels.", "A topic without the label `tier`.")
    OWNER_NOT_ALLOWED = ("TOP331", "owner may have no topics here",
        "`policy.allowedOwners` or `owners.yaml` does not name the owner.", "Correct the owner, or add it.",
        "`owner: team-shpo`, and owners.yaml has only team-shop.")
    NAME_OF_OTHER_OWNER = ("TOP332", "name of another owner",
        "`owners.yaml` gives names like this one to another owner.", "Choose another name, or correct the owner.",
        "`payments.refunds` of team-shop, where `payments.*` is team-payments'.")
    ENVIRONMENT_ORDER = ("TOP333", "order of environments", "policy.after names no environment, or makes a circle.",
        "Take the name out.", "`after: [prod]` in prod.yaml, or prod after staging and staging after prod.")
    UNKNOWN_RELEASE = ("TOP334", "release not known",
        "cluster.kafkaVersion is newer than topicops, or missing in production.",
        "Write the brokers' release; `topicops doctor` shows it.", "`class: production` without `kafkaVersion`.")
    NUMBER_WITHOUT_UNIT = ("TOP335", "number without a unit",
        "A small plain number of ms or bytes, which Kafka takes as it stands.",
        "Write the unit: `7d`, or `7ms` if that is meant.", "`retention.ms: 7`, which is 7 ms.")
    UNKNOWN_ENVIRONMENT = ("TOP336", "unknown environment", "No file in environments/ has this name.",
        "Correct the name.", "`metadata.environments: [prdo]`.")
    UNKNOWN_EXCEPTED = ("TOP337", "exception for an unknown topic",
        "An exception names a topic that no file describes.", "Correct the name, or take the exception out.",
        "`topic: shop.oders` below `exceptions`.")
    APPROVES_ALONE = ("TOP338", "one person approves alone in production",
        "The policy lets the author of a change approve it.",
        "Write approvals: [question] and authorApproves: notice, or leave both out.",
        "`authorApproves: destructive`: who starts a run deletes a topic with it, and nobody else has looked.")
    SHARED_NAMES = ("TOP339", "two environments share names of topics",
        "Two environments of one cluster have prefixes of which one begins with the other.",
        "Choose other prefixes; an environment without one looks at all topics.",
        "`prefix: dev.` beside `prefix: dev.eu.`.")
    POLICY_RULE = ("TOP340", "value that a rule forbids",
        "A rule of the environment's policy.rules allows other values.",
        "Choose a value within the rule, or write an exception.",
        '`retention.ms: 60d` in `pay.cards`, where `{match: {names: "pay.*"}, configs: {retention.ms: {max: 30d}}}`.')
    FEWER_PARTITIONS = ("TOP401", "fewer partitions than live", "Kafka cannot take partitions away.",
        "Write the live number, or move to a new topic.", "12 partitions live, `partitions: 6` in the file.")
    REPLICATION_FACTOR = ("TOP402", "replication factor differs from live", "Only a reassignment changes it.",
        "Run the plan's JSON through Kafka's tool.", "2 replicas live, `replicationFactor: 3` in the file.")
    KEYED_EXPANSION = ("TOP403", "expanding a keyed topic", "Keys move to other partitions; their order breaks once.",
        "Approve it, or keep the number.", "From 6 to 12 partitions with `keyed: true`.")
    COMPACTED_EXPANSION = ("TOP404", "expanding a compacted topic",
        "Old values of moved keys stay in their old partition.", "Approve it, or build a new topic.",
        "From 6 to 12 partitions under `cleanup.policy: compact`.")
    EXPANSION_FACTOR = ("TOP405", "expansion factor over the limit",
        "More than limits.expansionFactor times the live number.", "Grow in steps.",
        "From 6 to 60 partitions where the factor is 4.")
    PROTECTED_TOPIC = ("TOP408", "protected topic",
        "A pattern protects it: a built-in one, or one of policy.protectedTopics.", "Leave it to its owner.",
        "`protectedTopics` names the topic since yesterday.")
    RECENT_TRAFFIC = ("TOP409", "recent traffic",
        "A topic to delete has a record newer than restsFor, or one since the plan.",
        "Find the writer; deleteActive: allow overrules.", "Its last record is of 09:12 today, and `restsFor` is 24h.")
    ACTIVE_GROUP = ("TOP410", "active consumer group",
        "A group reads a topic to delete, has offsets on it, or is of a type that cannot be read.",
        "Find the reader; deleteActive: allow overrules.", "The group billing reads it.")
    OTHER_TOPIC_ID = ("TOP411", "topic id differs from the tombstone or plan", "Another topic has the name now.",
        "Check the live topic, then renew the tombstone.",
        "The tombstone names the id of the topic that was deleted and made anew last week.")
    NOT_BEFORE = ("TOP412", "cool-down not over", "The tombstone's notBefore is still to come.",
        "Wait, or change the time.", "`notBefore` is next Monday.")
    RETENTION_DELETES = ("TOP413", "change deletes data (retention)",
        "Records that are there now would be too old, or too many.", "Approve it.", "`retention.ms` from 30d to 7d.")
    CLEANUP_POLICY = ("TOP414", "cleanup.policy change", "Delete and compact throw away different records.",
        "Approve it.", "`cleanup.policy` from delete to compact.")
    MIN_ISR_ABOVE_ISR = ("TOP415", "min ISR above a current ISR", "Writers would stop at once.",
        "Wait until the ISR is complete.", "`min.insync.replicas: 2` while one replica of partition 3 is in sync.")
    SHRUNKEN_SNAPSHOT = ("TOP416", "snapshot empty or shrunken", "Many topics fewer than last time.",
        "Check chroot and cluster first.", "1,000 topics yesterday, 12 today: a wrong chroot.")
    COLLIDES_WITH_LIVE = ("TOP417", "collides with a live unmanaged topic", "A live name differs by . and _ only.",
        "Choose another name.", "The spec `web.clicks`, and a live `web_clicks` that no spec names.")
    BEING_DELETED = ("TOP418", "topic is being deleted", "A deletion marker stands in ZooKeeper.",
        "Wait until it is gone.", "`/admin/delete_topics/orders` is there.")
    REASSIGNMENT_RUNS = ("TOP419", "reassignment in progress", "Its replicas are moving.",
        "Wait until the move has ended.", "`/admin/reassign_partitions` names it.")
    TOO_FEW_BROKERS = ("TOP420", "RF above live brokers or racks", "Not enough brokers are registered.",
        "Start brokers, or lower it.", "`replicationFactor: 3` with two live brokers.")
    BROKER_DOWN = ("TOP421", "broker down that holds replicas",
        "A broker that is down cannot delete the replicas that it holds.", "Start the broker, then plan again.",
        "A tombstone for a topic with a replica on broker 2, which is down.")
    MIXED_REPLICATION_FACTOR = ("TOP423", "mixed replication factor",
        "Partitions of one topic have different numbers of replicas.", "Reassign them.",
        "Partition 0 has three replicas and partition 1 has two.")
    MESSAGE_SIZE_LOWERED = ("TOP424", "max.message.bytes lowered", "Writers of large records will be refused.",
        "Approve it.", "`max.message.bytes` from 2MiB to 1MiB.")
    ASSIGNMENT_DIFFERS = ("TOP425", "assignment differs", "The live replicas are not the spec's.",
        "Run the plan's JSON through Kafka's tool.", "`0: [1, 2, 3]` in the spec, 2, 3, 1 live.")
    MALFORMED_PARTITIONS = ("TOP426", "malformed partitions",
        "Ids with gaps, no partition, or replicas that are none or named twice: its znode was written by hand.",
        "Repair or rebuild the topic.", "Partitions 0, 1 and 3.")
    ASSIGNED_BROKER_DOWN = ("TOP427", "assignment names a broker that is not live",
        "A broker of the spec is not registered.", "Start it, or correct the id.",
        "`0: [1, 2, 9]`, and there is no broker 9.")
    LARGE_ZNODE = ("TOP428", "topic znode too large", "So many replicas that ZooKeeper would refuse the node.",
        "Fewer partitions.", "20,000 partitions with three replicas each.")
    DELETED_BY_NAME = ("TOP429", "deleted by name", "The topic has no topic id, and Kafka deletes by name.",
        "Raise the version; deleteByName: allow overrules.", "A cluster with `inter.broker.protocol.version=2.7`.")
    LOST_TOPIC = ("TOP430", "deleted outside git", "An earlier snapshot had the topic, and topicops did not delete it.",
        "Find out who; or retire the topic.",
        "Somebody deleted it with Kafka's own tool, and its file still asks for it.")
    COMES_BACK_EMPTY = ("TOP431", "comes back empty", "A run of topicops deleted a topic of this name before.",
        "Approve only what may begin without records.", "The commit that retired the topic was reverted.")
    NO_CONTROLLER = ("TOP432", "no controller",
        "No broker is the controller, so no request for a topic can be answered.",
        "Wait; if none ends, read the brokers' controller logs.", "An election is going on, or has failed.")
    FEW_BROKERS = ("TOP433", "few live brokers", "Fewer than cluster.minLiveBrokers are registered.",
        "Start the missing brokers.", "`minLiveBrokers: 3`, and broker 2 is down.")
    MIXED_RACKS = ("TOP434", "racks on some brokers only", "Kafka refuses to place replicas there.",
        "Give every broker a broker.rack, or none.", "Brokers 1 and 2 have `broker.rack`, broker 3 has none.")
    FAILED_LOG_DIRECTORY = ("TOP435", "failed log directory", "A broker cannot create, serve or delete replicas there.",
        "Repair the disk and start the broker again.", "The disk of `/data/2` of broker 1 has failed.")
    KEPT_CHANGING = ("TOP436", "topic kept changing", "It changed each time it was read, so it cannot be compared.",
        "Plan again when those changes have ended.", "Somebody expands it while the plan is made.")
    USE_NOT_KNOWN = ("TOP437", "use of a topic not known",
        "Whether clients use a topic to delete cannot be read: its records, their times or its groups.",
        "Give the reader the right, or newer brokers; or check by hand and write deleteActive: allow.",
        "The reader may not Describe the groups.")
    MANY_CREATES = ("TOP440", "many creates",
        "More than limits.createsPerRun; often these files are for another cluster.",
        "Write metadata.environments into the files that are not for it; or approve the creates.",
        "The first plan of a second cluster creates all 60 topics of the first one.")
    STALE_PLAN = ("TOP501", "stale plan", "The topic or its file changed since the plan was made.", "Plan again.",
        "A config was set by hand between plan and apply.")
    LEASE_HELD = ("TOP502", "lock held", "Another run holds the lease.", "Wait, or use --lock-timeout.",
        "A DAG run applies while someone types `topicops apply`.")
    SESSION_LOST = ("TOP503", "lock or session lost", "ZooKeeper ended the session; nothing more was sent.",
        "Run again.", "The host slept for a minute in the middle of a run.")
    WRONG_CLUSTER = ("TOP504", "wrong cluster", "Another cluster id or chroot answered.",
        "Correct the environment or the connection.", "The connection leads to staging.")
    OUTCOME_UNKNOWN = ("TOP505", "outcome unknown", "No answer came, and reading back gave no clear result.",
        "Run again; topicops reads the topic first.", "The controller died between request and answer.")
    CONTROLLER_MOVED = ("TOP508", "controller moved", "Another broker became controller meanwhile.", "Run again.",
        "The controller epoch rose from 7 to 8 during the run.")
    DIGEST_MISMATCH = ("TOP509", "digest or signature mismatch", "A file of a run is damaged or was edited.",
        "Make it again.", "`plan.json` was edited by hand.")
    UNKNOWN_FORMAT = ("TOP511", "format version not supported", "A newer topicops wrote the file.", "Update topicops.",
        '`format_version: "2.0"` read by a version that knows 1.')
    OTHER_COMMIT = ("TOP513", "files of another commit",
        "Main was rewritten or moved while a run worked on one of its commits.", "Start a new run.",
        "A force-push between the tasks `gate` and `create`.")
    NO_LEADER = ("TOP601", "partition without leader", "No live replica may lead.", "Start the named broker.",
        "Partition 3 has leader -1.")
    INCOMPLETE_ISR = ("TOP602", "ISR incomplete", "A replica has fallen behind or its broker is down.",
        "Check the named broker.", "Replicas 1, 2, 3, in sync 1 and 3.")
    CONFIG_DIFFERS = ("TOP603", "config differs after apply", "Another program or person set it again.",
        "Find out who, then run again.", "`retention.ms` is 7d again a second after the apply.")
    PARTITIONS_DIFFER = ("TOP604", "partitions differ after apply",
        "The number of partitions, or their replicas, are not as planned.", "Plan again.",
        "12 partitions were asked for, 24 are live.")
    BROKERS_DISAGREE = ("TOP605", "brokers disagree",
        "A broker's own view of a topic is not the source's: it is old, or znodes were removed by hand.",
        "Wait; restart the named broker if it stays.", "ZooKeeper has 12 partitions, broker 2 reports 6.")
    CREATED_AGAIN = ("TOP606", "topic re-created outside git", "Another topic id under a known name.",
        "Find out who made it.", "The same name with another topic id than at the last run.")
    RETIRED_IS_BACK = ("TOP607", "retired topic is back", "A tombstoned name is live again.",
        "Find the writer; auto-creation may be on.", "A writer with auto-creation wrote to a deleted topic.")
    TOPIC_MISSING = ("TOP609", "topic missing",
        "A topic that must exist is not there: it was not created, or was deleted meanwhile.",
        "Plan again; find out who deleted it.", "Verify looks for `orders`, and somebody has deleted it.")
    STRANGE_STATE = ("TOP610", "state that Kafka does not write",
        "A leader or an ISR without the replica, a leader outside its ISR, or a leader epoch that went back.",
        "Find the program that writes to ZooKeeper; move the controller, then compare again.",
        "Replicas 1 and 2, in sync 1 and 3.")
    UNKNOWN_BROKER = ("TOP611", "replicas on an unknown broker",
        "An assignment names a broker that is not registered.",
        "Start the broker, or move its replicas with Kafka's tool.", "Replicas 1 and 9, and there is no broker 9.")
    NO_STATE = ("TOP612", "partition without state", "No broker has ever led it: none of its replicas' brokers lived.",
        "Start a broker of its assignment.", "Partition 3 of a new topic, whose only broker is down.")
    NO_ANSWER = ("TOP613", "broker gave no answer", "Its own view of a topic, its configs or its disks is not known.",
        "Restart the named broker, or give the right; then verify again.",
        "Broker 2 hangs, or the reader lacks a right.")
    BELOW_MIN_ISR = ("TOP614", "ISR below min.insync.replicas", "Brokers refuse producers with acks=all.",
        "Start the missing brokers at once.", "One replica in sync, and `min.insync.replicas` is 2.")
    NOT_DELETED = ("TOP615", "still there after its delete",
        "Znodes of a deleted topic are left, and no deletion marker asks for more.",
        "Plan again; read the controller's log.", "The config znode of `orders` is left.")
    NO_LOG = ("TOP616", "replica without a log",
        "A broker has no log of a replica that it holds, or does not serve it.",
        "Restart the named broker; read its log if it stays.", "The log was made for another topic id.")
    POLICY_AND_SPECS = ("TOP702", "policy and specs changed together", "One change moves a limit and needs it.",
        "Split it in two: first what the other half needs.",
        "`partitionsPerTopic: 500` and `partitions: 400` in one pull request.")
    KRAFT = ("TOP801", "KRaft migration or KRaft", "ZooKeeper is only a copy there, or is about to be.",
        "Use source: kafka.", "`/migration` is there, or the controller is a KRaft one.")
    READ_ONLY_SERVER = ("TOP802", "read-only ZooKeeper server", "The server has lost its quorum.",
        "Repair the ensemble.", "One ZooKeeper server of three runs, in read-only mode.")
    MISSING_RIGHT = ("TOP804", "missing permission", "The principal may do too little.", "Correct the ACLs.",
        "The applier may not Create on the cluster.")
    DELETION_DISABLED = ("TOP805", "topic deletion disabled", "delete.topic.enable is false on the brokers.",
        "Turn it on, or leave the topic.", "`delete.topic.enable=false` in server.properties.")
    AUTO_CREATE = ("TOP806", "auto-create enabled", "Any client can make topics by asking for them.",
        "auto.create.topics.enable=false.", "`auto.create.topics.enable=true`, which is Kafka's default.")
    CLOCK_SKEW = ("TOP807", "clock skew", "Clocks of brokers, ZooKeeper and this host differ.",
        "Repair time synchronisation.", "Broker 2 is ten minutes behind ZooKeeper.")
    STRAY_LEASE = ("TOP808", "lease znode of no session", "The lease's znode does not end with any session.",
        "Remove it.", "`/topicops/lease` was made by hand, or restored from a backup.")
    NO_TOPIC_IDS = ("TOP809", "no topic ids",
        "The brokers give a topic no id, which tells it from a later one of its name.",
        "Use source: zookeeper, or raise the protocol.", "`source: kafka`, and brokers of Kafka 2.5.")
    OLD_BROKERS = ("TOP810", "brokers too old", "topicops cannot be tried with brokers of this release.",
        "Upgrade them to a supported release.", "The brokers run Kafka 0.11.")
    REQUEST_NOT_OFFERED = ("TOP811", "request not offered", "The brokers leave out a request that topicops needs.",
        "Ask who runs the brokers for it.", "A managed service without DescribeLogDirs.")
    READABLE_PASSWORD = ("TOP812", "readable password",
        "A login sends its password or token over the network without TLS.",
        "Write SASL_SSL, or use SCRAM; policy.readablePasswords: allow accepts it.",
        "`security.protocol: SASL_PLAINTEXT` with `sasl.mechanism: PLAIN`.")
    EXCESSIVE_RIGHT = ("TOP813", "excessive permission", "The reader may change the cluster.",
        "Take the right away: only the applier sends changes.", "The reader may Create on the cluster.")
    V01 = ("V01", "one cluster", "The brokers that were asked belong to another cluster than the source.",
        "Correct one of the two addresses.")
    V02 = ("V02", "the topic as planned",
        "The topic is missing, malformed, or has other partitions or replicas than planned.", "Plan again.")
    V03 = ("V03", "the topic of the plan", "It has another topic id than planned, or brokers know it by another.",
        "Find out who deleted and created it.")
    V04 = ("V04", "no reassignment", "Its replicas are being moved.", "Wait until the move has ended.")
    V05 = ("V05", "no deletion marker", "The topic is marked for deletion.",
        "`topicops why` names what the deletion waits for.")
    V06 = ("V06", "a state for every partition", "No broker has led the partition yet.",
        "Start a broker of its assignment.")
    V07 = ("V07", "live leaders", "A leader is missing, not live, no replica, or outside the ISR.",
        "Start the named broker.")
    V08 = ("V08", "complete ISRs", "A replica is not in sync, or its broker is not live.",
        "Wait, or start the named broker.")
    V09 = ("V09", "enough replicas in sync", "Fewer are in sync and live than min.insync.replicas asks for.",
        "Start the missing brokers at once.")
    V10 = ("V10", "preferred leaders", "Always healthy: other leaders are only noted.",
        "Nothing; brokers move leaders back by themselves.")
    V11 = ("V11", "steady leaders", "A leader epoch went back; or leaders still change.",
        "Find the program that writes to ZooKeeper.")
    V12 = ("V12", "controller epochs", "A state has a later controller epoch than ZooKeeper.",
        "Wait for the election to end.")
    V13 = ("V13", "one controller", "The cluster cannot be read, no controller is elected, or it changed.",
        "Wait; `topicops doctor` says what is wrong.")
    V14 = ("V14", "the brokers' metadata", "A broker gives no answer, or does not see what the source has.",
        "Wait; restart the named broker if it stays.")
    V15 = ("V15", "overrides", "Overrides are not as planned, in the source or on the brokers.",
        "Find out who set them, then run again.")
    V16 = ("V16", "logs on the disks", "A broker has no log of its replica, does not serve it, or gives no answer.",
        "Restart the named broker; read its log.")
    V17 = ("V17", "the topic is gone", "Znodes are left, a broker knows the name, or the topic is back.",
        "`topicops why` names what the deletion waits for.")
    Q01 = ("Q01", "No topic is described twice", "Two files describe one topic.",
        "Remove or rename one; `topicops validate` names both places.")
    Q02 = ("Q02", "Every listed topic was read with all its partitions and replicas, or is marked unstable",
        "A topic without partitions, or a partition without replicas, was read.",
        "Run again; check the topic's znode if it stays.")
    Q03 = ("Q03", "The snapshot has not shrunk past the limit",
        "More than limits.shrinkPercent of the topics are gone since the last good snapshot.",
        "Find out why; if it is intended, remove the cluster's file in `$TOPICOPS_HOME/last-good/`.")
    Q04 = ("Q04", "Every described topic has an owner", "`owner` is blank.", "Write the owner into the file.")
    Q05 = ("Q05", "Every config of a spec is one that a broker takes", "A broker would refuse a value of a spec.",
        "Correct it where `topicops explain TOPIC` says that it is set.")
    Q06 = ("Q06", "Every override in the cluster is one that brokers of cluster.kafkaVersion take",
        "A value was set in a way that checks nothing, or with an older Kafka.",
        "Set or remove it with a spec that names it.")
    Q07 = ("Q07", "As many brokers live as changes need",
        "Fewer brokers live than cluster.minLiveBrokers; creates would fill those that are left.",
        "Start the brokers, then run again; lower the number only for a cluster that is smaller for good.")
    Q08 = ("Q08", "The cluster has a controller", "No controller is elected, or the elected one is not registered.",
        "Wait for an election; ask `topicops doctor`.")
    Q09 = ("Q09", "No partition is offline before the changes",
        "A partition had no live leader before the run changed anything.",
        "Start the brokers that `topicops list --unavailable` names.")
    Q10 = ("Q10", "All brokers name their rack, or none does", "Some brokers name a rack and some do not.",
        "Set `broker.rack` on all, or on none.")
    Q11 = ("Q11", "Every partition is led by a live broker",
        "A partition has no live leader, so no client can use it.",
        "Start the brokers that `topicops list --unavailable` names; an unclean election loses records.")
    Q12 = ("Q12", "Every ISR is complete",
        "A follower is behind, or its broker is down; one that a reassignment adds does not count.",
        "Wait until it has caught up; if it does not, check disk, network and log of its broker.")
    Q13 = ("Q13", "No ISR is below min.insync.replicas", "Brokers refuse producers with `acks=all`.",
        "Start the missing brokers at once: the loss of another one may lose records.")
    Q14 = ("Q14", "No deletion is stuck",
        "A deletion marker is older than five minutes, or is of a topic that this run deleted.",
        "Start the broker that it waits for; `topicops why` names it.")
    Q15 = ("Q15", "Replicas are spread over the racks", "Replicas of a partition are on fewer racks than possible.",
        "Move them with Kafka's reassignment tool.")
    Q16 = ("Q16", "Each broker leads the partitions that prefer it, as far as Kafka itself asks for it",
        "Other brokers lead more than 10 % of the partitions that prefer one, the share at which Kafka acts.",
        "Wait for `leader.imbalance.check.interval.seconds` (300), or run `kafka-leader-election.sh`.")
    Q17 = ("Q17", "Partition ids are 0 to n-1", "An id is missing: the topic's znode was written by hand.",
        "Repair the topic before it is changed.")
    Q18 = ("Q18", "All partitions of a topic have the same replication factor",
        "A reassignment gave some partitions more replicas than others.",
        "Give all the same number with Kafka's reassignment tool.")
    Q19 = ("Q19", "min.insync.replicas is not above the replication factor",
        "Brokers take the number of replicas instead: the loss of any one stops `acks=all`.",
        "Lower it, or raise the replication factor.")
    Q20 = ("Q20", "No config is left of a topic that is gone",
        "A config znode has no topic; a new topic of the name would start with it.",
        "Remove it with `kafka-configs.sh --alter --delete-config`.")
    Q21 = ("Q21", "No reassignment is left over", "A reassignment runs, or was stopped half-way.",
        "Wait, or cancel it with `kafka-reassign-partitions.sh`.")
    Q22 = ("Q22", "No replication throttle is left over", "A topic lists throttled replicas without a reassignment.",
        "Run `kafka-reassign-partitions.sh --verify`; the brokers' throttle rates are not checked.")
    Q23 = ("Q23", "The source and the brokers agree on every topic",
        "Brokers report another leader or ISR in three readings, or none answered.",
        "Run `topicops verify`; restart a broker that stays behind.")
    Q24 = ("Q24", "No managed topic was made again outside git",
        "A topic that a spec names was deleted and created again since the last check: its records are gone.",
        "Find out who did it, and restore the records if they are needed; it fails once for each such topic.")
    Q25 = ("Q25", "No more topics are unmanaged than the limit allows",
        "More live topics are in no file than limits.unmanagedPercent allows.",
        "Import them; `topicops list --unmanaged` lists them.")
    Q26 = ("Q26", "Every leader is in its ISR", "The state was written by hand, or read during an election.",
        "Run again; then elect leaders with `kafka-leader-election.sh`.")
    Q27 = ("Q27", "Every replica is on a broker that lives",
        "A replica is assigned to a broker that is not registered.",
        "Start the broker, or move its replicas with Kafka's tool.")
    # fmt: on


CODES: Mapping[str, Code] = MappingProxyType({code.value: code for code in Code})
"""Codes by number, in order."""
WARNINGS = frozenset(
    {
        Code.LOOK_ALIKE_NAME,
        Code.MIN_ISR_EQUALS_REPLICAS,
        Code.UNCLEAN_ELECTION,
        Code.LONG_SEGMENT,
        Code.EXCEPTION_OVER,
        Code.SMALL_SEGMENT,
        Code.SEGMENT_JITTER,
        Code.UNKNOWN_RELEASE,
        Code.NUMBER_WITHOUT_UNIT,
        Code.APPROVES_ALONE,
    }
)
"""Codes that are always warnings; every other code of ``validate`` is an error unless the place says otherwise."""
