"""Replicas given by hand: ``{0: [1, 2, 3], 1: [2, 3, 1]}``, or Kafka's text ``1:2:3,2:3:1``."""

from __future__ import annotations

from topicops.model.cluster.snapshot import Assignment
from topicops.model.codes import Code
from topicops.model.specs.document import Fields, Items, Node, Span, Text
from topicops.steps.specs.fields import WHOLE_NUMBER, read_integer
from topicops.steps.specs.findings import FileFindings, Finding, Unreadable


def read_assignment(node: Node, file: str) -> tuple[Assignment | None, tuple[Finding, ...]]:
    """The assignment, or everything that is wrong with it."""
    reading = _AssignmentReader(file)
    match node:
        case Text():
            rows = reading.text_form(node)
        case Fields():
            rows = reading.fields(node)
        case Items():
            reading.findings.add(
                Code.WRONG_TYPE, node.span, "a mapping of partition to brokers is needed here, not a list"
            )
            rows = {}
    return (None if reading.findings.found else rows), tuple(reading.findings.found)


class _AssignmentReader:
    def __init__(self, file: str) -> None:
        self.findings = FileFindings(file)

    def fields(self, node: Fields) -> dict[int, tuple[int, ...]]:
        rows: dict[int, tuple[int, ...]] = {}
        size: int | None = None
        partitions = [read_integer(key, self.findings, lowest=0) for key, _ in node.entries]
        for partition, (_, value) in zip(partitions, node.entries, strict=True):
            row = self._row(value)
            if row is None:
                continue
            size = len(row) if size is None else size
            self._check_row(row, value.span, size)
            if isinstance(partition, int):
                rows[partition] = row
        are_numbers = not any(isinstance(partition, Unreadable) for partition in partitions)
        if are_numbers and (not partitions or set(partitions) != set(range(len(partitions)))):
            self.findings.add(Code.OUT_OF_RANGE, node.span, "partitions run from 0 without a gap")
        return dict(sorted(rows.items()))

    def _row(self, node: Node) -> tuple[int, ...] | None:
        if not isinstance(node, Items):
            self.findings.add(
                Code.WRONG_TYPE, node.span, "a list of broker ids is needed here", "preferred leader first: [1, 2, 3]"
            )
            return None
        brokers = [read_integer(item, self.findings, lowest=0) for item in node.items]
        read = tuple(broker for broker in brokers if isinstance(broker, int))
        return read if len(read) == len(brokers) else None

    def _check_row(self, row: tuple[int, ...], span: Span, size: int) -> None:
        if not row:
            self.findings.add(Code.OUT_OF_RANGE, span, "a partition needs at least one broker")
        elif min(row) < 0:
            self.findings.add(Code.OUT_OF_RANGE, span, f"broker ids start at 0, unlike {min(row)}")
        elif len(set(row)) < len(row):
            self.findings.add(Code.OUT_OF_RANGE, span, "a broker holds one replica of a partition at most")
        elif len(row) != size:
            self.findings.add(Code.OUT_OF_RANGE, span, f"{len(row)} replicas here, {size} in the first row")

    def text_form(self, node: Text) -> dict[int, tuple[int, ...]]:
        """Kafka's own form. Source: TopicCommand#parseReplicaAssignment (3.9)."""
        rows = [row.split(":") for row in node.text.split(",")]
        if not all(WHOLE_NUMBER.fullmatch(broker.strip()) and len(broker) < 12 for row in rows for broker in row):
            self.findings.add(
                Code.OUT_OF_RANGE, node.span, "not broker ids joined by : and rows joined by ,", "as in 1:2:3,2:3:1"
            )
            return {}
        assignment = {partition: tuple(map(int, row)) for partition, row in enumerate(rows)}
        for row in assignment.values():
            self._check_row(row, node.span, len(assignment[0]))
            if self.findings.found:
                break  # all rows have one place
        return assignment
