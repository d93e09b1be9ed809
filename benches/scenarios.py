"""The turns that `make bench` measures."""

from collections.abc import Callable
from dataclasses import dataclass

from measure import Scenario
from stream import flood


@dataclass(frozen=True)
class Plan:
    """How to make a scenario (only when its turn comes: the largest is 60 MB), and when and how often to run it."""

    make: Callable[[], Scenario]
    full: bool = True
    quick: bool = True
    max_runs: int = 100


def _paced(seconds: int) -> Scenario:
    rate = 100
    title = f"{rate} chunks/s, {seconds} s"
    # 50 key presses a second cost a tenth of what the reference costs here, and would hide a difference.
    return Scenario("paced", title, flood(rate * seconds), rate=rate, probe_pause=0.05)


PLANS: dict[str, Plan] = {
    "flood-2000": Plan(lambda: Scenario("flood-2000", "flood, 2,000 chunks", flood(2_000))),
    "flood-20000": Plan(lambda: Scenario("flood-20000", "flood, 20,000 chunks", flood(20_000))),
    "flood-200000": Plan(
        lambda: Scenario("flood-200000", "flood, 200,000 chunks", flood(200_000), timeout=600), quick=False, max_runs=3
    ),
    "paced": Plan(lambda: _paced(10), quick=False),
    "paced-short": Plan(lambda: _paced(2), full=False),
}
