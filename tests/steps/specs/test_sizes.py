"""Sizes in environment files: bytes with a unit, or bytes alone."""

from pathlib import Path

import pytest

from fixtures.spec_folder import LOCAL, validated


def local(size: str) -> str:
    assert LOCAL.endswith("\n")
    return f"{LOCAL}  apply: {{throttle: {size}}}\n"


@pytest.mark.parametrize(
    ("text", "size"),
    [
        pytest.param("50MiB", 50 << 20, id="mebibytes"),
        pytest.param('"1GiB"', 1 << 30, id="quoted"),
        pytest.param("1048576", 1 << 20, id="without a unit"),
        pytest.param("5B", 5, id="bytes"),
        pytest.param("3000000000", 3_000_000_000, id="more than 32 bits"),
    ],
)
def test_a_size_is_bytes_with_or_without_a_unit(tmp_path: Path, text: str, size: int) -> None:
    environment, _ = validated(tmp_path, {}, local=local(text)).require()
    assert environment.spec.apply.throttle == size


@pytest.mark.parametrize(
    ("text", "code", "remedy"),
    [
        pytest.param("50MB", "TOP214", "write 50MiB", id="another unit"),
        pytest.param("50mib", "TOP214", "write 50MiB", id="lower case"),
        pytest.param("1_000", "TOP204", "write plain digits", id="an ambiguous number"),
        pytest.param("fast", "TOP203", "write it like 50MiB", id="a word"),
        pytest.param("0", "TOP205", "write 1 or more", id="too small"),
        pytest.param("-5", "TOP203", "write it like 50MiB", id="negative"),
        pytest.param("9999999999999999999999", "TOP203", "write it like 50MiB", id="more than 64 bits"),
        pytest.param("[1]", "TOP203", "", id="a list"),
    ],
)
def test_what_is_no_size_is_named_with_what_to_write(tmp_path: Path, text: str, code: str, remedy: str) -> None:
    (found,) = validated(tmp_path, {}, local=local(text)).diagnostics
    assert (found.code, found.line) == (code, len(local(text).splitlines()))
    assert remedy in found.help
