"""Cut a peer off from every network but its own loopback, so that nothing can call out whatever its settings say.

The process moves into a fresh network namespace, which its children inherit. Where the kernel refuses (no rights, not
Linux) the peer runs unsealed with its telemetry disabled by its own settings only, and a line on stderr says so.
"""

import ctypes
import fcntl
import os
import socket
import struct
import sys

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS = 0x8914
_IFF_UP_RUNNING = 0x41

os.environ.update(
    DO_NOT_TRACK="1",
    LANGSMITH_TRACING="false",
    LANGCHAIN_TRACING_V2="false",
    RESTATE_DISABLE_TELEMETRY="true",
    OTEL_SDK_DISABLED="true",
)


def seal() -> bool:
    """Leave the network. Must be called while the process has one thread."""
    flags = _CLONE_NEWNET if os.geteuid() == 0 else _CLONE_NEWNET | _CLONE_NEWUSER
    try:
        failed = ctypes.CDLL(None, use_errno=True).unshare(flags) != 0
    except (OSError, AttributeError):
        failed = True
    if failed:
        print("no private network here: the peer runs with its telemetry switched off only", file=sys.stderr)
        return False
    _raise_loopback()
    return True


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP_RUNNING))
