"""A real PgBouncer in transaction mode, as Supabase's pooler is."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.servers.ports import LOOPBACK
from tests.servers.postgres import answers, wipe_database
from tests.servers.server import OwnedServer, Server
from tests.servers.waiting import run_coroutine


class PgBouncerServer(OwnedServer):
    """Stands in front of `upstream`; its data is the upstream's, and so is the wipe."""

    name = "pgbouncer"

    def __init__(self, program: str, upstream: Server) -> None:
        super().__init__()
        self._program, self._upstream = program, upstream

    @property
    def url(self) -> str:
        there = urlsplit(self._upstream.url)
        return there._replace(netloc=f"{there.username}:{there.password}@{LOOPBACK}:{self.port}").geturl()

    def command(self) -> Sequence[str | Path]:
        # Written at every start: the port is known only now, and the upstream's may have changed.
        self._write_users()
        self._write_settings()
        return [self._program, self.folder / "pgbouncer.ini"]

    def answers(self) -> bool:
        return run_coroutine(answers(self.url))

    def wipe(self) -> None:
        wipe_database(self._upstream.url)

    def _write_users(self) -> None:
        there = urlsplit(self._upstream.url)
        self._write("users.txt", f'"{unquote(there.username or "")}" "{unquote(there.password or "")}"\n')

    def _write_settings(self) -> None:
        there = urlsplit(self._upstream.url)
        settings = {
            "listen_addr": LOOPBACK,
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_type": "scram-sha-256",
            "auth_file": self.folder / "users.txt",
            "pool_mode": "transaction",
            "default_pool_size": 10,
            "max_client_conn": 200,
            "server_login_retry": 0.1,  # a restarted PostgreSQL is tried again at once, not after 15 s
        }
        lines = [f"{name} = {value}" for name, value in settings.items()]
        databases = f"[databases]\n* = host={there.hostname} port={there.port or 5432}\n"
        self._write("pgbouncer.ini", databases + "[pgbouncer]\n" + "\n".join(lines) + "\n")

    def _write(self, name: str, text: str) -> None:
        file = self.folder / name
        file.write_text(text)
        file.chmod(0o644)  # the folder is closed to others; the server's account must read it
