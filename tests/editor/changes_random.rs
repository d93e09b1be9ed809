//! Anything that agent and user do to a file, in any order, in a real Neovim: the text, the file on disk, the table and the
//! undo tree are those of the model (`agentchat::changes`).

use agentchat::changes::{Hunk, Table};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

use crate::changes::{table_of, write_loaded};
use crate::files::{is_modified, lines_of, on_disk};
use crate::support::{Editor, Setup};

const CASES: u32 = 200;

/// As many as wanted: `make test-long` wants more.
fn cases() -> u32 {
    std::env::var("EDITOR_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(CASES)
}

#[derive(Debug, Clone)]
enum Act {
    Agent(Vec<(usize, usize, Vec<String>)>),
    /// Rows that are replaced, by lines of their own or such as were there before.
    User(usize, usize, Vec<Option<String>>),
    Save,
    Accept(usize),
    Reject(usize),
    RejectAll,
    Undo,
    Redo,
}

fn act() -> impl Strategy<Value = Act> {
    let lines = prop::collection::vec("[abc]{1,2}", 0..3);
    let edit = (any::<usize>(), 0..4_usize, lines);
    prop_oneof![
        3 => prop::collection::vec(edit, 1..4).prop_map(Act::Agent),
        4 => (any::<usize>(), 0..4_usize, prop::collection::vec(prop::option::of("[abc]"), 0..3))
            .prop_map(|(at, old, new)| Act::User(at, old, new)),
        1 => Just(Act::Save),
        2 => any::<usize>().prop_map(Act::Accept),
        2 => any::<usize>().prop_map(Act::Reject),
        1 => Just(Act::RejectAll),
        3 => Just(Act::Undo),
        2 => Just(Act::Redo),
    ]
}

#[derive(Debug, Clone, PartialEq)]
struct State {
    /// Its number in Neovim's undo tree.
    seq: u64,
    lines: Vec<String>,
    hunks: Vec<Hunk>,
}

/// The undo states up to now and beyond, and the file.
#[derive(Debug)]
struct Model {
    states: Vec<State>,
    at: usize,
    /// The number of the newest state that there ever was.
    newest: u64,
    disk: Vec<String>,
    /// The state that was saved last.
    saved: u64,
    typed: usize,
}

/// What can be seen of a file.
#[derive(Debug, PartialEq)]
struct Seen {
    state: State,
    newest: u64,
    is_modified: bool,
    disk: String,
}

impl Model {
    fn now(&self) -> &State {
        &self.states[self.at]
    }

    /// A text and its table; the same text is the same undo state.
    fn enter(&mut self, lines: Vec<String>, hunks: Vec<Hunk>) {
        if lines == self.now().lines {
            self.states[self.at].hunks = hunks;
            return;
        }
        self.states.truncate(self.at + 1);
        self.newest += 1;
        self.states.push(State { seq: self.newest, lines, hunks });
        self.at += 1;
    }

    fn is_modified(&self) -> bool {
        self.saved != self.now().seq
    }

    fn save(&mut self) {
        let State { seq, lines, .. } = self.now().clone();
        (self.disk, self.saved) = (lines, seq);
    }

    /// A rejection, which saves what had no unsaved changes.
    fn enter_rejected(&mut self, lines: Vec<String>, hunks: Vec<Hunk>) {
        let was_modified = self.is_modified();
        self.enter(lines, hunks);
        if !was_modified && self.is_modified() {
            self.save();
        }
    }

    fn seen(&self) -> Seen {
        let disk = self.disk.iter().fold(String::new(), |text, line| text + line + "\n");
        Seen { state: self.now().clone(), newest: self.newest, is_modified: self.is_modified(), disk }
    }

    fn table(&self) -> Table {
        Table::new(self.now().hunks.clone(), self.now().lines.len()).unwrap()
    }
}

fn decide(editor: &Editor, name: &str, verb: &str, index: Option<usize>) {
    let code = r"
    local path, verb, index = ...
    local file = require('agentchat.changes.store').get(path)
    local hunks = index == vim.NIL and vim.list_slice(file.hunks) or { file.hunks[index + 1] }
    require('agentchat.changes.decide')[verb](file, hunks)
    ";
    editor.lua(code, json!([editor.project().join(name), verb, index]));
}

/// Rejects hunks from the last on, so that the indexes stay.
fn rejected(model: &Model, indexes: impl DoubleEndedIterator<Item = usize>) -> (Vec<String>, Vec<Hunk>) {
    let (mut table, mut lines) = (model.table(), model.now().lines.clone());
    for index in indexes.rev() {
        let replacement = table.reject(index, &lines).unwrap();
        lines.splice(replacement.rows, replacement.lines);
    }
    (lines, table.hunks().to_vec())
}

fn perform(editor: &Editor, name: &str, model: &mut Model, act: &Act) {
    let State { lines, hunks, .. } = model.now().clone();
    match act {
        Act::Agent(edits) => {
            let mut new = lines.clone();
            for (at, count, put) in edits {
                let first = at % (new.len() + 1);
                let last = (first + count).min(new.len());
                new.splice(first..last, put.iter().cloned());
            }
            if !new.is_empty() {
                let table = model.table().written(&lines, &new);
                write_loaded(editor, name, &new.iter().map(String::as_str).collect::<Vec<_>>(), json!({ "chat": 1 }));
                model.enter(new, table.hunks().to_vec());
                model.save();
            }
        }
        Act::Save => {
            editor.command("silent write");
            model.save();
        }
        Act::User(at, count, put) => {
            let first = at % (lines.len() + 1);
            let last = (first + count).min(lines.len());
            let own = |number: usize| format!("user {}", model.typed + number);
            let typed = put.iter().enumerate().map(|(number, line)| line.clone().unwrap_or_else(|| own(number)));
            let typed: Vec<String> = typed.collect();
            let mut new = lines.clone();
            new.splice(first..last, typed.clone());
            if !new.is_empty() && new != lines {
                model.typed += put.len();
                let mut table = model.table();
                table.edited(first, last, first + put.len());
                table.drop_restored(&new);
                let code = "local first, last, lines = ...
                vim.api.nvim_buf_set_lines(0, first, last, true, lines)
                vim.cmd('let &l:undolevels = &l:undolevels')";
                editor.lua(code, json!([first, last, typed]));
                model.enter(new, table.hunks().to_vec());
            }
        }
        Act::Accept(number) if !hunks.is_empty() => {
            let index = number % hunks.len();
            let accepted = hunks[index].clone();
            decide(editor, name, "accept", Some(index));
            let same =
                |hunk: &Hunk| (hunk.id, &hunk.authors, &hunk.old) == (accepted.id, &accepted.authors, &accepted.old);
            model.states[model.at].hunks.remove(index);
            for state in &mut model.states {
                state.hunks.retain(|hunk| !same(hunk));
            }
        }
        Act::Reject(number) if !hunks.is_empty() => {
            let index = number % hunks.len();
            let (new, left) = rejected(model, index..=index);
            if !new.is_empty() {
                decide(editor, name, "reject", Some(index));
                model.enter_rejected(new, left);
            }
        }
        Act::RejectAll if !hunks.is_empty() => {
            let (new, left) = rejected(model, 0..hunks.len());
            if !new.is_empty() {
                decide(editor, name, "reject", None);
                model.enter_rejected(new, left);
            }
        }
        Act::Undo if model.at > 0 => {
            editor.command("silent undo");
            model.at -= 1;
        }
        Act::Redo if model.at + 1 < model.states.len() => {
            editor.command("silent redo");
            model.at += 1;
        }
        _ => {}
    }
}

/// The file as Neovim and the disk have it.
fn look(editor: &Editor, name: &str) -> Seen {
    let tree = editor.lua("local t = vim.fn.undotree() return { t.seq_cur, t.seq_last }", json!([]));
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    let hunks = table_of(editor, &editor.project().join(name)).0;
    Seen {
        state: State { seq: number(&tree[0]), lines: lines_of(editor, name), hunks },
        newest: number(&tree[1]),
        is_modified: is_modified(editor, name),
        disk: on_disk(editor, name),
    }
}

#[test]
fn text_disk_table_and_undo_tree_are_those_of_the_model() {
    let editor = Editor::start(Setup::new());
    let mut runner = TestRunner::new(Config { cases: cases(), ..Config::default() });
    let case = std::cell::Cell::new(0);
    let result = runner.run(&prop::collection::vec(act(), 4..16), |acts| {
        case.set(case.get() + 1);
        let name = format!("case{}.txt", case.get());
        std::fs::write(editor.project().join(&name), "a\nb\nc\na\nb\n").unwrap();
        editor.command(&format!("silent edit {name}"));
        let lines = lines_of(&editor, &name);
        let start = State { seq: 0, lines: lines.clone(), hunks: Vec::new() };
        let mut model = Model { states: vec![start], at: 0, newest: 0, disk: lines, saved: 0, typed: 0 };
        for (step, act) in acts.iter().enumerate() {
            perform(&editor, &name, &mut model, act);
            prop_assert_eq!(look(&editor, &name), model.seen(), "after act {}", step);
        }
        editor.command(&format!("bwipeout! {name}"));
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}
