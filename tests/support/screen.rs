//! What the user sees: the grid of a UI, kept from redraw events (`:help ui-linegrid`, with `ext_hlstate`).

use std::collections::HashMap;
use std::fmt;

use rmpv::Value;

use super::rpc::text;

#[derive(Clone)]
struct Cell {
    /// Empty in the second half of a wide character.
    text: String,
    highlight: u64,
}

impl Cell {
    fn blank() -> Self {
        Self { text: " ".into(), highlight: 0 }
    }
}

/// The grid while events come in.
#[derive(Default)]
pub struct Grid {
    screen: Screen,
    /// Whether events came since the last `flush`: the grid is then half drawn.
    unfinished: bool,
}

/// One finished picture of the screen. Rows and columns are 0-based; a wide character takes two columns.
#[derive(Clone, Default)]
pub struct Screen {
    rows: Vec<Vec<Cell>>,
    cursor: (usize, usize),
    mode: String,
    groups: HashMap<u64, Vec<String>>,
}

impl Grid {
    /// The screen, unless it is half drawn.
    pub fn finished(&self) -> Option<Screen> {
        (!self.unfinished).then(|| self.screen.clone())
    }

    /// The screen, even if it is half drawn.
    pub fn as_it_is(&self) -> Screen {
        self.screen.clone()
    }

    /// Applies `[name, arguments, arguments, …]`.
    pub fn apply(&mut self, batch: &Value) {
        let Some([name, calls @ ..]) = batch.as_array().map(Vec::as_slice) else {
            return;
        };
        for call in calls {
            let arguments = call.as_array().map(Vec::as_slice).unwrap_or_default();
            match name.as_str().unwrap_or_default() {
                "grid_resize" => self.resize(number(arguments, 2), number(arguments, 1)),
                "grid_clear" => self.resize(self.screen.rows.len(), self.width()),
                "grid_line" => self.line(arguments),
                "grid_scroll" => self.scroll(arguments),
                "grid_cursor_goto" => {
                    self.screen.cursor = (number(arguments, 1), number(arguments, 2));
                }
                "mode_change" => self.screen.mode = arguments.first().map(text).unwrap_or_default(),
                "hl_attr_define" => self.define_highlight(arguments),
                _ => {}
            }
        }
        self.unfinished = name.as_str() != Some("flush");
    }

    fn width(&self) -> usize {
        self.screen.rows.first().map_or(0, Vec::len)
    }

    fn resize(&mut self, height: usize, width: usize) {
        self.screen.rows = vec![vec![Cell::blank(); width]; height];
    }

    fn line(&mut self, arguments: &[Value]) {
        let Some(row) = self.screen.rows.get_mut(number(arguments, 1)) else {
            return;
        };
        let mut column = number(arguments, 2);
        let mut highlight = 0;
        for cell in arguments.get(3).and_then(Value::as_array).into_iter().flatten() {
            let Some([shown, rest @ ..]) = cell.as_array().map(Vec::as_slice) else {
                continue;
            };
            highlight = rest.first().and_then(Value::as_u64).unwrap_or(highlight);
            for _ in 0..rest.get(1).and_then(Value::as_u64).unwrap_or(1) {
                if let Some(place) = row.get_mut(column) {
                    *place = Cell { text: text(shown), highlight };
                }
                column += 1;
            }
        }
    }

    fn scroll(&mut self, arguments: &[Value]) {
        let (top, bottom) = (number(arguments, 1), number(arguments, 2));
        let (left, right) = (number(arguments, 3), number(arguments, 4));
        let by = arguments.get(5).and_then(Value::as_i64).unwrap_or(0);
        let before = self.screen.rows.clone();
        for row in top..bottom {
            let source = i64::try_from(row).ok().and_then(|row| usize::try_from(row + by).ok());
            if let Some(source) = source.filter(|source| (top..bottom).contains(source)) {
                self.screen.rows[row][left..right].clone_from_slice(&before[source][left..right]);
            }
        }
    }

    fn define_highlight(&mut self, arguments: &[Value]) {
        let [id, .., info] = arguments else { return };
        let names = info
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|part| part.as_map()?.iter().find(|(key, _)| key.as_str() == Some("hi_name")))
            .map(|(_, name)| text(name));
        self.screen.groups.insert(id.as_u64().unwrap_or(0), names.collect());
    }
}

fn number(arguments: &[Value], index: usize) -> usize {
    arguments.get(index).and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok()).unwrap_or(0)
}

impl Screen {
    /// The text of every row, without the blanks at its end.
    pub fn rows(&self) -> Vec<String> {
        (0..self.rows.len()).map(|row| self.row(row)).collect()
    }

    /// The text of one row, without the blanks at its end.
    pub fn row(&self, row: usize) -> String {
        let text: String = self.rows[row].iter().map(|cell| cell.text.as_str()).collect();
        text.trim_end().to_owned()
    }

    /// The text of one cell; empty in the second half of a wide character.
    pub fn cell(&self, row: usize, column: usize) -> &str {
        &self.rows[row][column].text
    }

    /// Whether some row contains `wanted`.
    pub fn contains(&self, wanted: &str) -> bool {
        self.find(wanted).is_some()
    }

    /// Where `wanted` begins on the screen, as row and column: the first place from the top.
    pub fn find(&self, wanted: &str) -> Option<(usize, usize)> {
        self.rows.iter().enumerate().find_map(|(row, cells)| {
            let text: String = cells.iter().map(|cell| cell.text.as_str()).collect();
            let mut offset = text.find(wanted)?;
            let column = cells.iter().position(|cell| {
                let here = offset < cell.text.len();
                offset = offset.saturating_sub(cell.text.len());
                here
            });
            Some((row, column?))
        })
    }

    /// The names of the highlight groups that colour a cell, lowest priority first.
    pub fn groups_at(&self, row: usize, column: usize) -> &[String] {
        self.groups.get(&self.rows[row][column].highlight).map_or(&[], Vec::as_slice)
    }

    /// The highlight groups at the place where `wanted` begins.
    pub fn groups_of(&self, wanted: &str) -> Option<&[String]> {
        let (row, column) = self.find(wanted)?;
        Some(self.groups_at(row, column))
    }

    /// Row and column of the cursor.
    pub fn cursor(&self) -> (usize, usize) {
        self.cursor
    }

    /// Neovim's name for the mode that the cursor shows: `normal`, `insert`, `cmdline_normal`, …
    pub fn mode(&self) -> &str {
        &self.mode
    }
}

impl fmt::Display for Screen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in self.rows() {
            writeln!(formatter, "│{row}")?;
        }
        write!(formatter, "cursor {:?}, mode {}", self.cursor, self.mode)
    }
}
