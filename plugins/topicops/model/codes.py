"""Every code, in one list; ``codes.json`` says of each what it means, how it comes about, and what to do.

TOP1xx file and YAML, 2xx shape and scalars, 3xx meaning offline, 4xx spec against the live cluster, 5xx while applying,
6xx verify and drift, 7xx trust, 8xx the environment; Vxx the checks of verify, Qxx the rules of quality. A code has one
cause, and is never given another meaning or number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum, unique
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Self, cast

_NUMBER = re.compile(r"TOP\d{3}|[VQ]\d\d")
_QUALITY = "docs/reference/quality.md"
_PAGES = {"V": "docs/reference/checks.md", "Q": _QUALITY}


@unique
class Code(StrEnum):
    """A code is its own number as text: files and JSON hold that alone."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        """Take a code of a later release, as a plan or a report of it may name one."""
        if not isinstance(value, str) or not _NUMBER.fullmatch(value):
            return None
        later = str.__new__(cls, value)
        later._name_ = later._value_ = value
        return later

    @property
    def meaning(self) -> str:
        return _texts().get(self, ("a code of a later release",))[0]

    @property
    def cause(self) -> str:
        return self._said(1)

    @property
    def fix(self) -> str:
        return self._said(2)

    @property
    def example(self) -> str:
        """Example of the cause; empty for checks and quality rules, which have many."""
        return self._said(3)

    def _said(self, place: int) -> str:
        return "".join(_texts().get(self, ())[place : place + 1])

    @property
    def page(self) -> str:
        """Place in the docs that says more about a check or a quality rule; empty for problems."""
        page = _PAGES.get(self[0], "")
        return f"{page}#{self.lower()}" if page == _QUALITY else page

    NOT_UTF8 = "TOP101"
    HIDDEN_CHARACTER = "TOP102"
    FILE_TOO_LARGE = "TOP103"
    NESTED_TOO_DEEP = "TOP104"
    TOO_MANY_VALUES = "TOP105"
    YAML_SYNTAX = "TOP106"
    TAB_INDENTATION = "TOP107"
    ANCHOR = "TOP108"
    MERGE_KEY = "TOP109"
    TAG = "TOP110"
    DUPLICATE_KEY = "TOP111"
    SECOND_DOCUMENT = "TOP112"
    EMPTY_DOCUMENT = "TOP113"
    KEY_NOT_PLAIN = "TOP114"
    UNREADABLE_FILE = "TOP115"
    MISPLACED_FILE = "TOP116"
    FILE_NAME_DIFFERS = "TOP117"
    WRONG_EXTENSION = "TOP118"
    UTF16 = "TOP119"
    UNKNOWN_FIELD = "TOP201"
    MISSING_FIELD = "TOP202"
    WRONG_TYPE = "TOP203"
    AMBIGUOUS_SCALAR = "TOP204"
    OUT_OF_RANGE = "TOP205"
    UNKNOWN_KIND = "TOP206"
    NAME_CHARACTERS = "TOP207"
    NAME_TOO_LONG = "TOP208"
    NAME_OF_FOLDER = "TOP209"
    RESERVED_NAME = "TOP210"
    TEXT_LIMITS = "TOP211"
    UNKNOWN_UNIT = "TOP214"
    NO_TIME = "TOP215"
    DEFINED_TWICE = "TOP301"
    NAMES_COLLIDE = "TOP302"
    DIFFERS_BY_CASE = "TOP303"
    LOOK_ALIKE_NAME = "TOP304"
    UNKNOWN_CONFIG = "TOP305"
    INVALID_CONFIG = "TOP306"
    COMPACTION_LAGS = "TOP307"
    MIN_ISR_ABOVE_REPLICAS = "TOP308"
    MIN_ISR_EQUALS_REPLICAS = "TOP309"
    FEW_REPLICAS = "TOP310"
    CONFIG_NOT_ALLOWED = "TOP311"
    UNCLEAN_ELECTION = "TOP312"
    THROTTLE = "TOP313"
    UNUSABLE_CONFIG = "TOP314"
    LOCAL_RETENTION = "TOP315"
    LONG_SEGMENT = "TOP316"
    UNKNOWN_PROFILE = "TOP318"
    UNKNOWN_OVERRIDDEN = "TOP319"
    MANY_PARTITIONS = "TOP320"
    OVER_BUDGET = "TOP321"
    INCOMPLETE_LIFECYCLE = "TOP322"
    COMPACTED_NOT_KEYED = "TOP323"
    REMOTE_AND_COMPACTED = "TOP324"
    INCOMPLETE_ENVIRONMENT = "TOP325"
    EXCEPTION_OVER = "TOP326"
    SMALL_SEGMENT = "TOP327"
    SEGMENT_JITTER = "TOP328"
    NAME_PATTERN = "TOP329"
    LABEL_MISSING = "TOP330"
    OWNER_NOT_ALLOWED = "TOP331"
    NAME_OF_OTHER_OWNER = "TOP332"
    ENVIRONMENT_ORDER = "TOP333"
    UNKNOWN_RELEASE = "TOP334"
    NUMBER_WITHOUT_UNIT = "TOP335"
    UNKNOWN_ENVIRONMENT = "TOP336"
    UNKNOWN_EXCEPTED = "TOP337"
    APPROVES_ALONE = "TOP338"
    SHARED_NAMES = "TOP339"
    POLICY_RULE = "TOP340"
    FEWER_PARTITIONS = "TOP401"
    REPLICATION_FACTOR = "TOP402"
    KEYED_EXPANSION = "TOP403"
    COMPACTED_EXPANSION = "TOP404"
    EXPANSION_FACTOR = "TOP405"
    PROTECTED_TOPIC = "TOP408"
    RECENT_TRAFFIC = "TOP409"
    ACTIVE_GROUP = "TOP410"
    OTHER_TOPIC_ID = "TOP411"
    NOT_BEFORE = "TOP412"
    RETENTION_DELETES = "TOP413"
    CLEANUP_POLICY = "TOP414"
    MIN_ISR_ABOVE_ISR = "TOP415"
    SHRUNKEN_SNAPSHOT = "TOP416"
    COLLIDES_WITH_LIVE = "TOP417"
    BEING_DELETED = "TOP418"
    REASSIGNMENT_RUNS = "TOP419"
    TOO_FEW_BROKERS = "TOP420"
    BROKER_DOWN = "TOP421"
    MIXED_REPLICATION_FACTOR = "TOP423"
    MESSAGE_SIZE_LOWERED = "TOP424"
    ASSIGNMENT_DIFFERS = "TOP425"
    MALFORMED_PARTITIONS = "TOP426"
    ASSIGNED_BROKER_DOWN = "TOP427"
    LARGE_ZNODE = "TOP428"
    DELETED_BY_NAME = "TOP429"
    LOST_TOPIC = "TOP430"
    COMES_BACK_EMPTY = "TOP431"
    NO_CONTROLLER = "TOP432"
    FEW_BROKERS = "TOP433"
    MIXED_RACKS = "TOP434"
    FAILED_LOG_DIRECTORY = "TOP435"
    KEPT_CHANGING = "TOP436"
    USE_NOT_KNOWN = "TOP437"
    NO_PLACEMENT = "TOP438"
    MANY_CREATES = "TOP440"
    MANY_MOVED_BYTES = "TOP441"
    NO_THROTTLE = "TOP442"
    UNMANAGED_MOVE = "TOP443"
    OLD_LOG = "TOP444"
    STALE_PLAN = "TOP501"
    LEASE_HELD = "TOP502"
    SESSION_LOST = "TOP503"
    WRONG_CLUSTER = "TOP504"
    OUTCOME_UNKNOWN = "TOP505"
    CONTROLLER_MOVED = "TOP508"
    DIGEST_MISMATCH = "TOP509"
    UNKNOWN_FORMAT = "TOP511"
    OTHER_COMMIT = "TOP513"
    NO_LEADER = "TOP601"
    INCOMPLETE_ISR = "TOP602"
    CONFIG_DIFFERS = "TOP603"
    PARTITIONS_DIFFER = "TOP604"
    BROKERS_DISAGREE = "TOP605"
    CREATED_AGAIN = "TOP606"
    RETIRED_IS_BACK = "TOP607"
    TOPIC_MISSING = "TOP609"
    STRANGE_STATE = "TOP610"
    UNKNOWN_BROKER = "TOP611"
    NO_STATE = "TOP612"
    NO_ANSWER = "TOP613"
    BELOW_MIN_ISR = "TOP614"
    NOT_DELETED = "TOP615"
    NO_LOG = "TOP616"
    POLICY_AND_SPECS = "TOP702"
    KRAFT = "TOP801"
    READ_ONLY_SERVER = "TOP802"
    MISSING_RIGHT = "TOP804"
    DELETION_DISABLED = "TOP805"
    AUTO_CREATE = "TOP806"
    CLOCK_SKEW = "TOP807"
    STRAY_LEASE = "TOP808"
    NO_TOPIC_IDS = "TOP809"
    OLD_BROKERS = "TOP810"
    REQUEST_NOT_OFFERED = "TOP811"
    READABLE_PASSWORD = "TOP812"  # noqa: S105 - a number
    EXCESSIVE_RIGHT = "TOP813"
    V01 = "V01"
    V02 = "V02"
    V03 = "V03"
    V04 = "V04"
    V05 = "V05"
    V06 = "V06"
    V07 = "V07"
    V08 = "V08"
    V09 = "V09"
    V10 = "V10"
    V11 = "V11"
    V12 = "V12"
    V13 = "V13"
    V14 = "V14"
    V15 = "V15"
    V16 = "V16"
    V17 = "V17"
    Q01 = "Q01"
    Q02 = "Q02"
    Q03 = "Q03"
    Q04 = "Q04"
    Q05 = "Q05"
    Q06 = "Q06"
    Q07 = "Q07"
    Q08 = "Q08"
    Q09 = "Q09"
    Q10 = "Q10"
    Q11 = "Q11"
    Q12 = "Q12"
    Q13 = "Q13"
    Q14 = "Q14"
    Q15 = "Q15"
    Q16 = "Q16"
    Q17 = "Q17"
    Q18 = "Q18"
    Q19 = "Q19"
    Q20 = "Q20"
    Q21 = "Q21"
    Q22 = "Q22"
    Q23 = "Q23"
    Q24 = "Q24"
    Q25 = "Q25"
    Q26 = "Q26"
    Q27 = "Q27"


@cache
def _texts() -> Mapping[str, Sequence[str]]:
    """Return meaning, cause, fix and example by number; most commands need none of them."""
    return cast("Mapping[str, Sequence[str]]", json.loads(Path(__file__).with_name("codes.json").read_bytes()))


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
