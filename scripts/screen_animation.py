"""Draws a series of screens of Neovim as one SVG that plays them over and over, without a script and without a picture twice.

A row that stays as it is from one screen to the next is drawn once, and shown for as long as it lasts. What does not play
animations, and whoever wants no motion, sees one of the screens.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple
from xml.sax.saxutils import escape

from screen_svg import (
    BAR, FONT_SIZE, FONTS, HEIGHT, PADDING, WIDTH, Cells, Look, backgrounds, cursor_shape, frame, line_of_text,
    most_common_background,
)  # fmt: skip


class Shot(NamedTuple):
    """A screen, and when it came into view: seconds from the start."""

    at: float
    cells: Cells
    cursor: tuple[int, int]
    mode: str


Span = tuple[int, int]
"""The shots from the first up to, without, the last in which something is seen."""


def animate(shots: Sequence[Shot], length: float, poster: int, title: str, description: str) -> str:
    """The SVG text. It takes `length` seconds and begins anew; `poster` is the shot for those who see only one."""
    default = most_common_background(shots[poster].cells)
    columns, rows = len(shots[0].cells[0]), len(shots[0].cells)
    width, height = columns * WIDTH + 2 * PADDING, rows * HEIGHT + BAR + PADDING
    drawn: dict[str, list[Span]] = {}
    for row in range(rows):
        _add(drawn, [_row(shot, row, default) for shot in shots])
    _add(drawn, [_cursor(shot) for shot in shots])

    spans = sorted({tuple(spans) for spans in drawn.values()})
    names = {span: f"s{number}" for number, span in enumerate(spans)}
    always = ((0, len(shots)),)
    times = [*(shot.at for shot in shots), length]
    style = [
        f"g[class]{{animation:{length:g}s step-end infinite;opacity:0}}",
        *(_keyframes(names[span], span, times, length) for span in spans if span != always),
        "@media(prefers-reduced-motion){g[class]{animation:none!important}}",
    ]
    body = []
    for content, places in drawn.items():
        span = tuple(places)
        if span == always:
            body.append(content)
            continue
        shown = any(first <= poster < last for first, last in span)
        body.append(f'<g class="{names[span]}"{" style=" + chr(34) + "opacity:1" + chr(34) if shown else ""}>{content}</g>')
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            f' role="img" font-family="{FONTS}" font-size="{FONT_SIZE}">',
            f"<title>{escape(description)}</title>",
            f"<style>{''.join(style)}</style>",
            *frame(width, height, default, title),
            f'<g transform="translate({PADDING} {BAR})" xml:space="preserve">',
            *body,
            "</g>",
            "</svg>",
            "",
        ]
    )


def _row(shot: Shot, row: int, default: str) -> str:
    looks = [Look.of(attrs) for _, attrs in shot.cells[row]]
    texts = [text for text, _ in shot.cells[row]]
    # Each function draws where the row is, which it is told as the place in a list of rows.
    above: list[list[Look]] = [[] for _ in range(row)]
    return "".join([*backgrounds([*above, looks], default), *line_of_text(row, texts, looks)])


def _cursor(shot: Shot) -> str:
    looks = [[Look.of(attrs) for _, attrs in row] for row in shot.cells]
    texts = [[text for text, _ in row] for row in shot.cells]
    return "".join(cursor_shape(texts, looks, shot.cursor, shot.mode))


def _add(drawn: dict[str, list[Span]], contents: Sequence[str]) -> None:
    """Notes for how long each of these is seen, of which one belongs to each shot."""
    changes = [0, *(at + 1 for at, (before, after) in enumerate(pairwise(contents)) if before != after), len(contents)]
    for first, last in pairwise(changes):
        if contents[first]:
            drawn.setdefault(contents[first], []).append((first, last))


def _keyframes(name: str, spans: Sequence[Span], times: Sequence[float], length: float) -> str:
    def percent(shot: int) -> str:
        return f"{times[shot] / length * 100:.2f}".rstrip("0").rstrip(".")

    steps: dict[str, int] = {"0": 0}
    for first, last in spans:
        steps[percent(first)] = 1
        steps[percent(last)] = 0
    frames = "".join(f"{at}%{{opacity:{opacity}}}" for at, opacity in steps.items())
    return f"@keyframes {name}{{{frames}}}.{name}{{animation-name:{name}!important}}"
