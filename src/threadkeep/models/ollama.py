"""Where Ollama listens."""

from __future__ import annotations


def ollama_url(host: str, port: int) -> str:
    """`OLLAMA_HOST` as Ollama itself reads it: a host, `host:port`, or a whole URL; `port` where a host names none."""
    if "://" in host:
        return host
    if host.count(":") > 1 and not host.startswith("["):  # an address of IPv6
        host = f"[{host}]"
    names_a_port = ":" in host.rpartition("]")[2]
    return f"http://{host}" if names_a_port else f"http://{host}:{port}"
