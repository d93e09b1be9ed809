"""The turns that `make bench` measures."""

from collections.abc import Callable
from dataclasses import dataclass

from heavy import code_blocks, growing_output, replay, table
from measure import Scenario
from stream import flood


@dataclass(frozen=True)
class Plan:
    """How to make a scenario (only when its turn comes: the largest is 60 MB), and when and how often to run it."""

    make: Callable[[], Scenario]
    full: bool = True
    quick: bool = True
    max_runs: int = 100
    plugin_only: bool = False
    """What the reference cannot show; only the key presses are judged."""


def _paced(seconds: int) -> Scenario:
    rate = 100
    title = f"{rate} chunks/s, {seconds} s"
    # 50 key presses a second cost a tenth of what the reference costs here, and would hide a difference.
    return Scenario("paced", title, flood(rate * seconds), rate=rate, probe_pause=0.05)


def _heavy(make: Callable[[], Scenario]) -> Plan:
    return Plan(make, quick=False, plugin_only=True)


PLANS: dict[str, Plan] = {
    "flood-2000": Plan(lambda: Scenario("flood-2000", "flood, 2,000 chunks", flood(2_000))),
    "flood-20000": Plan(lambda: Scenario("flood-20000", "flood, 20,000 chunks", flood(20_000))),
    "flood-200000": Plan(
        lambda: Scenario("flood-200000", "flood, 200,000 chunks", flood(200_000), timeout=600), quick=False, max_runs=3
    ),
    "paced": Plan(lambda: _paced(10), quick=False),
    "paced-short": Plan(lambda: _paced(2), full=False),
    "output": _heavy(lambda: Scenario("output", "2,000 updates of a call, each with all of the output", growing_output())),
    "code": _heavy(lambda: Scenario("code", "20 code blocks of 200 lines", code_blocks(), rate=1_000)),
    "table": _heavy(lambda: Scenario("table", "a table of 500 x 8, a cell at a time", table(), rate=1_000)),
    "replay": _heavy(lambda: Scenario("replay", "2,800 messages of 87,000 lines", replay())),
}
