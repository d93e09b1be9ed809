"""Draws a screen of Neovim as SVG: its cells with their colours, the cursor, and a plain window around them.

Fonts differ from reader to reader, so each run of characters is told how wide to be, what is not ASCII stands alone in
its cell, and lines of boxes are drawn as shapes, which meet whatever the font.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

Cells = Sequence[Sequence[tuple[str, dict[str, Any]]]]

WIDTH, HEIGHT = 9, 19  # of a cell, in pixels
FONT_SIZE = 15
BASELINE = 14.5  # below the top of a cell
BAR = 34  # height of the window's title bar
PADDING = 10  # between the window's edge and the screen
FONTS = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
BUTTONS = ("#ff5f57", "#febc2e", "#28c840")

# Lines of a box, as the sides of the cell that they reach from its middle; "o" rounds the corner between them.
BOX_LINES = {
    "─": "lr", "│": "ud", "┌": "rd", "┐": "ld", "└": "ru", "┘": "lu", "├": "udr", "┤": "udl", "┬": "lrd", "┴": "lru",
    "┼": "lrud", "╭": "rdo", "╮": "ldo", "╰": "ruo", "╯": "luo",
}  # fmt: skip


class Look(NamedTuple):
    """How a cell is drawn."""

    foreground: str
    background: str
    bold: bool
    italic: bool
    line: str | None
    """The colour of the line below the text."""
    struck: bool

    @classmethod
    def of(cls, attrs: dict[str, Any]) -> "Look":
        colours = [attrs["foreground"], attrs["background"]]
        if attrs.get("reverse"):
            colours.reverse()
        foreground, background = map(colour, colours)
        lined = any(attrs.get(kind) for kind in ("underline", "undercurl", "underdouble", "underdotted", "underdashed"))
        return cls(
            foreground,
            background,
            bool(attrs.get("bold")),
            bool(attrs.get("italic")),
            (colour(attrs["special"]) if "special" in attrs else foreground) if lined else None,
            bool(attrs.get("strikethrough")),
        )


def colour(rgb: int) -> str:
    return f"#{rgb:06x}"


def number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def draw(cells: Cells, cursor: tuple[int, int], mode: str, title: str, description: str) -> str:
    """The SVG text. `cursor` is (row, column), 0-based; `mode` as in the UI event `mode_change`."""
    default = most_common_background(cells)
    looks = [[Look.of(attrs) for _, attrs in row] for row in cells]
    texts = [[text for text, _ in row] for row in cells]
    columns, rows = len(texts[0]), len(texts)
    width, height = columns * WIDTH + 2 * PADDING, rows * HEIGHT + BAR + PADDING
    body = [
        *backgrounds(looks, default),
        *(piece for row in range(rows) for piece in line_of_text(row, texts[row], looks[row])),
        *cursor_shape(texts, looks, cursor, mode),
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            f' role="img" font-family="{FONTS}" font-size="{FONT_SIZE}">',
            f"<title>{escape(description)}</title>",
            *frame(width, height, default, title),
            f'<g transform="translate({PADDING} {BAR})" xml:space="preserve">',
            *body,
            "</g>",
            "</svg>",
            "",
        ]
    )


def most_common_background(cells: Cells) -> str:
    count: dict[str, int] = {}
    for row in cells:
        for _, attrs in row:
            background = Look.of(attrs).background
            count[background] = count.get(background, 0) + 1
    return max(count, key=lambda each: count[each])


def frame(width: int, height: int, background: str, title: str) -> Iterator[str]:
    # The half-transparent grey is seen on a page of any colour.
    yield (
        f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="10" fill="{background}"'
        ' stroke="#808080" stroke-opacity=".45"/>'
    )
    for place, button in enumerate(BUTTONS):
        yield f'<circle cx="{20 + 20 * place}" cy="17" r="6" fill="{button}"/>'
    yield (
        f'<text x="{width // 2}" y="22" text-anchor="middle" font-size="13" fill="#808890">{escape(title)}</text>'
    )


def backgrounds(looks: list[list[Look]], default: str) -> Iterator[str]:
    for row, line in enumerate(looks):
        column = 0
        for background, cells in groupby(look.background for look in line):
            length = len(list(cells))
            if background != default:
                yield rect(row, column, length, background)
            column += length


def rect(row: int, column: int, length: float, fill: str) -> str:
    return (
        f'<rect x="{column * WIDTH}" y="{row * HEIGHT}" width="{number(length * WIDTH)}" height="{HEIGHT}"'
        f' fill="{fill}" shape-rendering="crispEdges"/>'
    )


def line_of_text(row: int, texts: list[str], looks: list[Look]) -> Iterator[str]:
    column = 0
    cells = list(zip(texts, looks))
    while column < len(cells):
        text, look = cells[column]
        end = column + 1
        if text in BOX_LINES:
            while end < len(cells) and text == "─" and cells[end] == cells[column]:
                end += 1
            yield box_line(row, column, end - column, text, look)
        elif text.isascii() and text:
            while end < len(cells) and cells[end][0].isascii() and cells[end][0] and cells[end][1] == look:
                end += 1
            yield from run(row, column, "".join(texts[column:end]), look)
        elif text:
            yield from glyph(row, column, text, look)
        column = end


def box_line(row: int, column: int, length: int, text: str, look: Look) -> str:
    left, top = column * WIDTH, row * HEIGHT
    right, bottom = left + length * WIDTH, top + HEIGHT
    middle = f"{number((left + right) / 2)} {number((top + bottom) / 2)}"
    x, y = middle.split()
    ends = {"l": f"{left} {y}", "r": f"{right} {y}", "u": f"{x} {top}", "d": f"{x} {bottom}"}
    sides = BOX_LINES[text]
    if sides.endswith("o"):
        path = f"M{ends[sides[0]]}Q{middle} {ends[sides[1]]}"
    else:
        path = "".join(f"M{middle}L{ends[side]}" for side in sides)
    return f'<path d="{path}" fill="none" stroke="{look.foreground}"/>'


def run(row: int, column: int, text: str, look: Look) -> Iterator[str]:
    yield from lines(row, column, len(text), look)
    bare = text.strip()
    if bare:
        start = column + len(text) - len(text.lstrip())
        yield (
            f'<text x="{start * WIDTH}" y="{number(row * HEIGHT + BASELINE)}" textLength="{len(bare) * WIDTH}"'
            f"{style(look)}>{escape(bare)}</text>"
        )


def glyph(row: int, column: int, text: str, look: Look) -> Iterator[str]:
    yield from lines(row, column, 1, look)
    yield (
        f'<text x="{number((column + 0.5) * WIDTH)}" y="{number(row * HEIGHT + BASELINE)}" text-anchor="middle"'
        f"{style(look)}>{escape(text)}</text>"
    )


def lines(row: int, column: int, length: int, look: Look) -> Iterator[str]:
    for shown, colour_of_line, offset in (
        (look.line is not None, look.line, HEIGHT - 2.5),
        (look.struck, look.foreground, HEIGHT / 2),
    ):
        if shown:
            y = number(row * HEIGHT + offset)
            yield f'<path d="M{column * WIDTH} {y}h{length * WIDTH}" stroke="{colour_of_line}"/>'


def style(look: Look) -> str:
    weight = ' font-weight="bold"' if look.bold else ""
    slant = ' font-style="italic"' if look.italic else ""
    return f' fill="{look.foreground}"{weight}{slant}'


def cursor_shape(
    texts: list[list[str]], looks: list[list[Look]], cursor: tuple[int, int], mode: str
) -> Iterator[str]:
    row, column = cursor
    look = looks[row][column]
    if mode in ("insert", "cmdline_insert"):
        yield rect(row, column, 0.2, look.foreground)
        return
    yield rect(row, column, 1, look.foreground)
    yield from line_of_text(
        row, ["" if place != column else text for place, text in enumerate(texts[row])],
        [look._replace(foreground=look.background)] * len(texts[row]),
    )  # fmt: skip
