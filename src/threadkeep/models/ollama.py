"""Where Ollama listens."""

from __future__ import annotations


def ollama_url(host: str, port: int) -> str:
    """`OLLAMA_HOST`: a host, `host:port`, or a whole URL; `port` where it names none, unless it is one of TLS.

    What stands behind `https://` is a proxy with a port of its own kind; Ollama itself speaks no TLS.
    """
    scheme, has_scheme, rest = host.partition("://")
    if has_scheme:
        where, slash, path = rest.partition("/")
        names_a_port = ":" in where.rpartition("]")[2].rpartition("@")[2]
        return host if scheme.lower() != "http" or names_a_port else f"{scheme}://{where}:{port}{slash}{path}"
    if host.count(":") > 1 and not host.startswith("["):  # an address of IPv6
        host = f"[{host}]"
    names_a_port = ":" in host.rpartition("]")[2]
    return f"http://{host}" if names_a_port else f"http://{host}:{port}"
