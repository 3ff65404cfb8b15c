"""Three Redis nodes that share the 16,384 slots: enough to see a key land on the wrong node."""

from itertools import combinations
from typing import Any, Self

from tests.servers.ports import LOOPBACK, free_port
from tests.servers.redis import RedisServer, client
from tests.servers.waiting import wait_until

NODES = 3
SLOTS = 16_384
AGREE_SECONDS = 20


class ClusterNode(RedisServer):
    name = "redis-cluster"

    def __init__(self, program: str) -> None:
        # The usual bus port (port + 10,000) would lie in the ephemeral range, see ports.py.
        self.bus_port = free_port()
        bus = ["--cluster-port", str(self.bus_port), "--cluster-node-timeout", "2000"]
        super().__init__(program, settings=["--cluster-enabled", "yes", *bus])


class RedisCluster:
    """`start`, `wipe` and `stop` for all; kill or restart a single one of `nodes`."""

    def __init__(self, program: str) -> None:
        self.nodes = [ClusterNode(program) for _ in range(NODES)]

    @property
    def url(self) -> str:
        """Of one node; a cluster client finds the others through it."""
        return self.nodes[0].url

    def start(self) -> None:
        try:
            for node in self.nodes:
                node.start()
            self._share_the_slots()
            self._meet()
            wait_until(self._agrees, seconds=AGREE_SECONDS, what="all cluster nodes agree")
        except BaseException:
            self.stop()
            raise

    def wipe(self) -> None:
        for node in self.nodes:
            node.wipe()

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _share_the_slots(self) -> None:
        for index, node in enumerate(self.nodes):
            first, last = SLOTS * index // NODES, SLOTS * (index + 1) // NODES - 1
            self._tell(node, "ADDSLOTSRANGE", str(first), str(last))

    def _meet(self) -> None:
        # Every pair by hand: left to gossip, the third may hear of the second only after seconds.
        for one, other in combinations(self.nodes, 2):
            self._tell(one, "MEET", LOOPBACK, str(other.port), str(other.bus_port))

    def _agrees(self) -> bool:
        return all(self._sees_everyone(node) for node in self.nodes)

    def _sees_everyone(self, node: ClusterNode) -> bool:
        with client(node.url) as redis:
            info: Any = redis.execute_command("CLUSTER INFO")
        return info["cluster_state"] == "ok" and int(info["cluster_known_nodes"]) == NODES

    @staticmethod
    def _tell(node: ClusterNode, *words: str) -> None:
        with client(node.url) as redis:
            redis.execute_command("CLUSTER", *words)
