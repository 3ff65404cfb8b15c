"""What a turn in a LangGraph graph costs as the talk grows: ours and the peer on the same database, in one run."""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.checkpoints_measure import Plan, Samples, measured
from bench.checkpoints_savers import OURS, Contestant, on_mysql, on_postgres, on_sqlite
from bench.report import median, table

QUICK = Plan(turns=12, early=6, young=1, timed_turns=3, reads=3, cold_reads=1, alone=3)
TIMED = ("put", "put alone", "put_writes", "put_writes alone", "get_tuple", "get_tuple, cold", "list")
Rounds = list[dict[str, Samples]]


def main(args: argparse.Namespace) -> dict[str, Any]:
    plan = QUICK if args.quick else Plan()
    count = args.rounds or (1 if args.quick else 5)
    result: dict[str, Any] = {"bench": "checkpoints", "turns": plan.turns, "rounds": count, "databases": {}}
    for database, opened in (("sqlite", _sqlite), ("postgres", _postgres), ("mariadb", _mariadb)):
        if args.store not in (database, "all"):
            continue
        rounds = _rounds(database, opened, plan, count)
        if rounds:
            result["databases"][database] = _summary(rounds, plan)
    if not args.json:
        print(rendered(result))
    return result


def _rounds(database: str, opened: Callable[[], Any], plan: Plan, count: int) -> Rounds:
    """Each in a process of its own: in memory that other rounds have left in pieces, all that is large takes longer."""
    rounds: Rounds = []
    for number in range(count):
        print(f"{database}: round {number + 1} of {count}", file=sys.stderr)
        try:
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
                rounds.append(process.submit(_round, opened, plan).result())
        except FileNotFoundError as missing:
            print(f"{database}: left out, {missing}", file=sys.stderr)
            break
    return rounds


def _round(opened: Callable[[], Any], plan: Plan) -> dict[str, Samples]:
    with opened() as contestants:
        return asyncio.run(measured(contestants, plan))


@contextmanager
def _sqlite() -> Iterator[list[Contestant]]:
    with TemporaryDirectory(prefix="bench-checkpoints-") as folder:
        yield on_sqlite(Path(folder))


@contextmanager
def _postgres() -> Iterator[list[Contestant]]:
    from tests.servers.locate import POSTGRES
    from tests.servers.postgres import PostgresServer

    with PostgresServer(_program(POSTGRES)) as server:
        yield on_postgres(server.url)


@contextmanager
def _mariadb() -> Iterator[list[Contestant]]:
    from tests.servers.locate import MARIADB
    from tests.servers.mariadb import MariaDbServer

    with MariaDbServer(_program(MARIADB)) as server:
        yield on_mysql(server.url)


def _program(kind: Any) -> str:
    from tests.servers.locate import Missing, locate_program

    found = locate_program(kind)
    if isinstance(found, Missing):
        raise FileNotFoundError(str(found))
    return found.place


def _summary(rounds: Rounds, plan: Plan) -> dict[str, Any]:
    """Timings are medians over all rounds; ratios are taken within a round, then their median. Bytes do not vary."""
    names = list(rounds[0])
    peer = next(name for name in names if name != OURS)
    return {
        "contestants": {name: _figures([one[name] for one in rounds], plan) for name in names},
        "peer": peer,
        "must_show": _must_show(rounds, peer, plan),
    }


def _figures(rounds: list[Samples], plan: Plan) -> dict[str, Any]:
    kept = rounds[0].bytes
    return {
        "ms": {
            verb: {
                stage: median([sample for one in rounds for sample in one.calls[verb][stage]])
                for stage in ("early", "late")
            }
            for verb in TIMED
        },
        "bytes_of_turn": {str(turn): kept[turn] - kept[turn - 1] for turn in sorted(kept) if turn - 1 in kept},
        "bytes_total": {str(turn): kept[turn] for turn in (plan.early, 50, plan.turns) if turn in kept},
        "bytes_on_disk": rounds[0].on_disk,
    }


def _must_show(rounds: Rounds, peer: str, plan: Plan) -> dict[str, float]:
    kept = rounds[0]

    def of_turn(name: str, turn: int) -> int:
        return kept[name].bytes[turn] - kept[name].bytes[turn - 1]

    def over(verb: str, stage: str) -> float:
        return median([median(one[peer].calls[verb][stage]) / median(one[OURS].calls[verb][stage]) for one in rounds])

    def grown(verb: str) -> float:
        return median(
            [median(one[OURS].calls[verb]["late"]) / median(one[OURS].calls[verb]["early"]) for one in rounds]
        )

    shown = {
        "peer_over_ours_bytes_total": kept[peer].bytes[plan.turns] / kept[OURS].bytes[plan.turns],
        "peer_over_ours_bytes_on_disk": kept[peer].on_disk / kept[OURS].on_disk,
        "bytes_of_last_turn_over_early": of_turn(OURS, plan.turns) / of_turn(OURS, plan.early),
        "put_alone_late_over_early": grown("put alone"),
        "put_writes_alone_late_over_early": grown("put_writes alone"),
        "put_late_over_early": grown("put"),
        "put_writes_late_over_early": grown("put_writes"),
    }
    for verb in TIMED:
        for stage in ("early", "late"):
            shown[f"peer_over_ours_{verb}_{stage}".replace(", ", "_").replace(" ", "_")] = over(verb, stage)
    return shown


def rendered(result: dict[str, Any]) -> str:
    blocks: list[str] = []
    for database, told in result["databases"].items():
        contestants: dict[str, Any] = told["contestants"]
        turns = list(contestants[OURS]["bytes_of_turn"])
        blocks += [
            table(
                f"{database}: ms, median, early and late",
                ("", *(f"{verb} {stage}" for verb in TIMED for stage in ("early", "late"))),
                [
                    (name, *(its["ms"][v][s] for v in TIMED for s in ("early", "late")))
                    for name, its in contestants.items()
                ],
            ),
            table(
                f"{database}: bytes",
                ("", *(f"turn {turn}" for turn in turns), "total", "on disk"),
                [
                    (
                        name,
                        *(its["bytes_of_turn"][t] for t in turns),
                        list(its["bytes_total"].values())[-1],
                        its["bytes_on_disk"],
                    )
                    for name, its in contestants.items()
                ],
            ),
            table(
                f"{database}: must show (peer over ours: above 1, ours is better)",
                ("", "value"),
                list(told["must_show"].items()),
            ),
        ]
    return "\n".join(blocks)
