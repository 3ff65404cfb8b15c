"""`threadkeep mcp` as a client starts it."""

from __future__ import annotations

import os
import sys
from typing import Any, TextIO

from mcp.client.stdio import StdioServerParameters, stdio_client

_KEPT = ("PATH", "HOME", "PYTHONPATH", "VIRTUAL_ENV", "LANG", "TMPDIR")


def stdio_transport(*arguments: str, log: TextIO, **environment: str) -> Any:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    command = ["-m", "threadkeep.cli", "mcp", *arguments]
    return stdio_client(StdioServerParameters(command=sys.executable, args=command, env=kept | environment), log)
