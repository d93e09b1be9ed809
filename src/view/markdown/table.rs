//! Tables whose columns stand below each other.

use std::ops::Range;

use unicode_width::UnicodeWidthChar;

use super::mark::{Pad, narrow};
use super::starts::Alignment;

/// A table that would be wider than this, in columns, is left as it is: wrapped lines are not read any better for it.
const MAX_WIDTH: usize = 160;

/// The cells of a table's row.
#[derive(Debug, Clone)]
pub(super) struct TableRow {
    row: u32,
    is_delimiter: bool,
    cells: Vec<Cell>,
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    start: u32,
    end: u32,
    /// The first dash in it, if any.
    dash: u32,
    /// Columns that it takes on the screen.
    width: u16,
    /// Whether a sign stands behind it.
    is_closed: bool,
}

impl TableRow {
    /// `cells` are ranges of `text`, which begins at the byte `at` of the row.
    pub(super) fn new(text: &str, cells: &[Range<usize>], row: u32, at: usize, is_delimiter: bool) -> Self {
        let cells = cells.iter().map(|cell| Cell {
            start: narrow(at + cell.start),
            end: narrow(at + cell.end),
            dash: narrow(at + cell.start + text[cell.clone()].find('-').unwrap_or(0)),
            width: width(&text[cell.clone()]),
            is_closed: text[cell.end..].starts_with('|'),
        });
        Self { row, is_delimiter, cells: cells.collect() }
    }
}

/// How many columns Neovim needs for a text that begins anywhere.
fn width(text: &str) -> u16 {
    let columns: usize = text.chars().map(|c| c.width().unwrap_or(2)).sum();
    u16::try_from(columns).unwrap_or(u16::MAX)
}

/// What brings the cells of a complete table below each other.
pub(super) fn pads<'a>(rows: impl Iterator<Item = &'a TableRow> + Clone, alignments: &[Alignment]) -> Vec<Pad> {
    let mut widths = vec![0u16; alignments.len()];
    for row in rows.clone() {
        for (widest, cell) in widths.iter_mut().zip(&row.cells) {
            *widest = cell.width.max(*widest);
        }
    }
    if widths.iter().map(|&width| usize::from(width) + 1).sum::<usize>() > MAX_WIDTH {
        return Vec::new();
    }
    let mut pads = Vec::new();
    for row in rows {
        for ((cell, &widest), &alignment) in row.cells.iter().zip(&widths).zip(alignments) {
            let missing = widest - cell.width;
            let mut pad = |col, width| {
                if width > 0 {
                    pads.push(Pad { row: row.row, col, width, is_dashes: row.is_delimiter });
                }
            };
            if row.is_delimiter {
                pad(cell.dash, missing);
                continue;
            }
            let before = match alignment {
                Alignment::Left => 0,
                Alignment::Center => missing / 2,
                Alignment::Right => missing,
            };
            pad(cell.start, before);
            if cell.is_closed {
                pad(cell.end, missing - before);
            }
        }
    }
    pads
}
