"""Commands that need no cluster, in a process that the kernel ends as soon as it, or a child of it, makes a socket."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

TOPICS = Path(__file__).parents[2] / "topics"
SOCKET_CALLS = {"x86_64": 41, "aarch64": 198}
"""The number of socket(2), by machine."""

SANDBOX = """
import ctypes, os
def refuse_sockets(program):
    # Source: linux/prctl.h, linux/seccomp.h; a filter is kept by children and cannot be taken off.
    PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
    filters = ctypes.create_string_buffer(program, len(program))
    class SockFprog(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filters", ctypes.c_void_p)]
    libc = ctypes.CDLL(None, use_errno=True)
    bound = SockFprog(len(program) // 8, ctypes.cast(filters, ctypes.c_void_p))
    unused = [ctypes.c_ulong(0)] * 2
    for call in ((PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), ctypes.c_ulong(0), *unused),
                 (PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), ctypes.byref(bound), *unused)):
        if libc.prctl(*call):
            raise OSError(ctypes.get_errno(), "no filter")
"""
COMMANDS = [
    ["validate", str(TOPICS)],
    ["validate", "bad", "--format", "json"],
    ["validate", "bad", "--format", "github"],
    ["validate", "bad"],
    ["explain", "payments.orders", "--environment", "local", "--topics", str(TOPICS)],
    ["explain", "TOP204"],
    ["explain"],
    ["schema", "topic"],
    ["schema"],
    ["new", "web.visits", "--owner", "team-web", "--topics", "mine"],
    ["fmt", "mine"],
    ["fmt", "--check", "mine"],
    ["retire", "web.visits", "--reason", "Over.", "--topics", "mine"],
]
CLIENTS = ["pyspark", "pandas", "pyarrow", "confluent_kafka", "kafka", "kazoo", "airflow", "great_expectations"]


def filter_program() -> bytes:
    """Load the number of the call; that of socket(2) ends the process, all others pass."""
    load, jump_if_equal, answer = 0x20, 0x15, 0x06
    kill_process, allow = 0x80000000, 0x7FFF0000
    number = SOCKET_CALLS[os.uname().machine]
    return b"".join(
        struct.pack("HBBI", *each)
        for each in (
            (load, 0, 0, 0),
            (jump_if_equal, 0, 1, number),
            (answer, 0, 0, kill_process),
            (answer, 0, 0, allow),
        )
    )


def run_without_sockets(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    text = f"{SANDBOX}\nrefuse_sockets({filter_program()!r})\n{program}"
    return subprocess.run([sys.executable, "-c", text], cwd=folder, capture_output=True, text=True, timeout=60)


def test_commands_that_need_no_cluster_make_no_socket_and_load_no_client(tmp_path: Path) -> None:
    (tmp_path / "bad" / "web").mkdir(parents=True)
    (tmp_path / "bad" / "web" / "clicks.yaml").write_text("kind: Topic\nspec: {partitions: 010}\n")
    (tmp_path / "mine").mkdir()
    program = (
        "import sys; from topicops.cli import run\n"
        f"ends = [run(command) for command in {COMMANDS!r}]\n"
        f"import json; print(json.dumps([ends, [name for name in {CLIENTS!r} if name in sys.modules]]))"
    )

    ended = run_without_sockets(program, tmp_path)

    counts = "0 of 1 file changed\n0 of 1 file would change\n"
    assert (ended.returncode, ended.stderr) == (0, counts)
    assert json.loads(ended.stdout.splitlines()[-1]) == [[0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0], []]


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("import socket; socket.socket()", id="the process itself"),
        pytest.param("import ctypes; ctypes.CDLL(None).socket(2, 1, 0)", id="a library in C"),
    ],
)
def test_the_kernel_ends_a_process_that_makes_a_socket(program: str, tmp_path: Path) -> None:
    assert run_without_sockets(program, tmp_path).returncode == -signal.SIGSYS
