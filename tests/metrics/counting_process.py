"""Counts into a shared folder and then waits to be killed: `… FOLDER TIMES` prints a line when it has counted."""

import sys
import time

from threadkeep.compose.memory import meter_for
from threadkeep.metrics.measured import CACHE, RECALL
from threadkeep.settings import Settings

folder, times = sys.argv[1:]
meter = meter_for(Settings(PROMETHEUS_MULTIPROC_DIR=folder))  # type: ignore[call-arg]
assert meter is not None
for _ in range(int(times)):
    meter.count(CACHE, outcome="hit")
    meter.observe(RECALL, 0.02, status="whole")
print("counted", flush=True)
time.sleep(600)
