"""From the figures of single runs to medians, ratios and promises."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from measure import Figures

REFERENCE = "reference"
PLUGIN = "plugin"

Results = Mapping[str, Mapping[str, Sequence[Figures]]]
"""By scenario, then by client: the figures of each run."""


@dataclass(frozen=True)
class Measure:
    """A column of figures to compare."""

    title: str
    unit: str
    of: Callable[[Figures], float]


MEASURES = (
    Measure("wall, prompt to marker", "s", lambda run: run.wall),
    Measure("CPU, Neovim + helper", "s", lambda run: run.cpu),
    Measure("  of it Neovim", "s", lambda run: run.nvim_cpu),
    Measure("  of it the helper", "s", lambda run: run.helper_cpu),
    Measure("worst key press", "ms", lambda run: run.key_max),
    Measure("RSS of Neovim, peak growth", "MB", lambda run: run.nvim_rss),
    Measure("RSS of the helper, peak growth", "MB", lambda run: run.helper_rss),
    Measure("highlights", "", lambda run: run.marks),
)


@dataclass(frozen=True)
class Promise:
    """A promise of the project, with what was measured."""

    text: str
    value: float
    limit: float

    @property
    def kept(self) -> bool:
        """Whether the measured value is within the limit."""
        return self.value <= self.limit


def promises(results: Results) -> list[Promise]:
    """Those that the scenarios in `results` can judge. Values are medians over the runs."""
    judged: list[Promise] = []

    def middle(scenario: str, client: str, of: Callable[[Figures], float]) -> float | None:
        runs = results.get(scenario, {}).get(client)
        return median(map(of, runs)) if runs else None

    def ratio(text: str, scenario: str, of: Callable[[Figures], float], limit: float) -> None:
        value, base = middle(scenario, PLUGIN, of), middle(scenario, REFERENCE, of)
        if value is not None and base:
            judged.append(Promise(f"{text}, ratio to the reference", value / base, limit))

    ratio("flood of 20,000: wall", "flood-20000", lambda run: run.wall, 1.0)
    ratio("flood of 20,000: CPU", "flood-20000", lambda run: run.cpu, 1.0)
    key, reference_key = (middle("flood-20000", client, lambda run: run.key_max) for client in (PLUGIN, REFERENCE))
    if key is not None and reference_key is not None:
        text = "flood of 20,000: worst key press in ms, limit max(20, 2 x the reference's)"
        judged.append(Promise(text, key, max(20.0, 2 * reference_key)))
    ratio("100 chunks/s: CPU", "paced", lambda run: run.cpu, 1.0)
    small, large = (middle(scenario, PLUGIN, lambda run: run.wall) for scenario in ("flood-20000", "flood-200000"))
    if small and large:
        judged.append(Promise("10 x the chunks: times the wall", large / small, 11.0))
    ratio("flood of 200,000: growth of Neovim's RSS", "flood-200000", lambda run: run.nvim_rss, 3.0)
    helper_rss = middle("flood-200000", PLUGIN, lambda run: run.helper_rss)
    if helper_rss is not None:
        judged.append(Promise("flood of 200,000: growth of the helper's RSS in MB", helper_rss, 64.0))
    for scenario in ("output", "code", "table", "replay"):
        key = middle(scenario, PLUGIN, lambda run: run.key_max)
        if key is not None:
            judged.append(Promise(f"{scenario}: worst key press in ms", key, 20.0))
    return judged


def table(scenario: str, clients: Mapping[str, Sequence[Figures]]) -> str:
    """One scenario for people: medians, with the smallest and the largest, and the plugin's ratio to the reference."""
    runs = max(map(len, clients.values()))
    lines = [f"{scenario}  (median of {runs}, smallest..largest)"]
    lines.append(f"  {'':32}" + "".join(f"{client:>28}" for client in clients) + f"{'ratio':>9}")
    for measure in MEASURES:
        middles = {client: median(map(measure.of, figures)) for client, figures in clients.items()}
        cells = "".join(f"{_cell(measure, [*map(measure.of, figures)]):>28}" for figures in clients.values())
        base, value = middles.get(REFERENCE), middles.get(PLUGIN)
        ratio = f"{value / base:9.2f}" if base and value is not None else f"{'-':>9}"
        lines.append(f"  {measure.title:32}{cells}{ratio}")
    return "\n".join(lines)


def verdict(judged: Sequence[Promise]) -> str:
    """The promises for people."""
    lines = ["promises"]
    for promise in judged:
        word = "kept  " if promise.kept else "MISSED"
        lines.append(f"  {word}  {promise.value:8.2f} <= {promise.limit:6.2f}  {promise.text}")
    return "\n".join(lines)


def as_json(results: Results, judged: Sequence[Promise]) -> dict:
    """Everything for programs: each run's figures and each promise."""
    return {
        "scenarios": {
            scenario: {client: [dataclasses.asdict(run) for run in runs] for client, runs in clients.items()}
            for scenario, clients in results.items()
        },
        "promises": [{**dataclasses.asdict(promise), "kept": promise.kept} for promise in judged],
    }


def _cell(measure: Measure, values: Sequence[float]) -> str:
    digits = {"s": 3, "ms": 1, "MB": 1}.get(measure.unit, 0)
    low, middle, high = (f"{value:.{digits}f}" for value in (min(values), median(values), max(values)))
    return f"{middle} {measure.unit} ({low}..{high})" if high != low else f"{middle} {measure.unit}"
