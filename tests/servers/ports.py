"""Free loopback ports that stay ours while a server is down."""

import random
import socket

LOOPBACK = "127.0.0.1"
# Below Linux's ephemeral range: inside it, a client that retries while the server is down may be given the very port it
# dials as its own source port, connect to itself, and keep the server from coming back.
LOWEST, HIGHEST = 20_000, 32_000
_system_random = random.SystemRandom()  # Hypothesis seeds the shared one, and every xdist worker would draw alike


def free_port() -> int:
    for _ in range(100):
        port = _system_random.randint(LOWEST, HIGHEST)
        if is_free(port):
            return port
    raise RuntimeError(f"no free loopback port between {LOWEST} and {HIGHEST}")


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
