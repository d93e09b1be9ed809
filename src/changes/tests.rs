//! Anything that an agent and a user can do to a text, in any order. `PROPTEST_CASES` says how many cases
//! (`make test-long`).

use proptest::prelude::*;

use super::merge::{merge, merge_texts};
use super::*;

const CASES: u32 = 2_000;

/// As many cases as wanted. (proptest's own reading of the variable would replace the default above.)
fn config() -> ProptestConfig {
    let wanted = std::env::var("PROPTEST_CASES").ok().and_then(|count| count.parse().ok());
    ProptestConfig { cases: wanted.unwrap_or(CASES), ..ProptestConfig::default() }
}

/// Something that happens to a text. Numbers are taken modulo what there is.
#[derive(Debug, Clone)]
enum Act {
    /// The agent replaces rows in several places at once.
    Agent(Vec<(usize, usize, Vec<String>)>),
    /// The user replaces rows.
    User(usize, usize, usize),
    Accept(usize),
    Reject(usize),
    /// Somebody else writes the whole text.
    Other(usize, Vec<String>),
}

/// Few different lines, so that much looks the same.
fn lines(most: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[abc]?", 0..most)
}

fn act() -> impl Strategy<Value = Act> {
    let edit = || (any::<usize>(), 0..4_usize, lines(4));
    prop_oneof![
        3 => prop::collection::vec(edit(), 1..4).prop_map(Act::Agent),
        4 => (any::<usize>(), 0..4_usize, 0..4_usize).prop_map(|(at, old, new)| Act::User(at, old, new)),
        1 => any::<usize>().prop_map(Act::Accept),
        1 => any::<usize>().prop_map(Act::Reject),
        1 => (any::<usize>(), lines(3)).prop_map(|(at, lines)| Act::Other(at, lines)),
    ]
}

/// A text and its table, and what must hold of them.
#[derive(Debug, Clone)]
struct Model {
    now: Vec<String>,
    table: Table,
    /// Lines that the user typed so far: each is another one.
    typed: usize,
}

impl Model {
    fn new(now: Vec<String>) -> Self {
        Self { now, table: Table::default(), typed: 0 }
    }

    fn rows(&self, at: usize, count: usize) -> std::ops::Range<usize> {
        let first = at % (self.now.len() + 1);
        first..(first + count).min(self.now.len())
    }

    fn check(&self) {
        let mut end = 0;
        let mut ids = std::collections::HashSet::new();
        for hunk in self.table.hunks() {
            assert!(hunk.first >= end, "in order and apart: {:?}", self.table);
            end = hunk.end();
            assert!(!hunk.old.is_empty() || hunk.authors.contains(&Author::Agent), "a hunk is about something");
            assert!(ids.insert(hunk.id), "ids are unique");
        }
        assert!(end <= self.now.len());
    }

    /// The lines that are not the agent's pending ones.
    fn not_the_agents(&self) -> Vec<&String> {
        let of_agent = |row: usize| {
            self.table
                .hunks()
                .iter()
                .any(|hunk| (hunk.first..hunk.end()).contains(&row) && hunk.authors[row - hunk.first] == Author::Agent)
        };
        self.now.iter().enumerate().filter(|(row, _)| !of_agent(*row)).map(|(_, line)| line).collect()
    }

    fn act(&mut self, act: &Act) {
        let before = self.clone();
        let base = before.table.base(&before.now);
        match act {
            Act::Agent(edits) => {
                let mut new = self.now.clone();
                for (at, count, lines) in edits {
                    let first = at % (new.len() + 1);
                    let last = (first + count).min(new.len());
                    new.splice(first..last, lines.iter().cloned());
                }
                self.table = self.table.written(&self.now, &new);
                self.now = new;
                assert_eq!(self.table.base(&self.now), base, "a write of the agent is no part of the base");
                assert!(!self.table.hunks().iter().any(Hunk::is_mixed));
            }
            Act::User(at, count, new) => {
                let rows = self.rows(*at, *count);
                let typed: Vec<String> = (0..*new).map(|number| format!("user {}", self.typed + number)).collect();
                self.typed += new;
                self.table.edited(rows.start, rows.end, rows.start + new);
                self.now.splice(rows.clone(), typed.clone());
                self.check_edit(&before, &rows, &typed);
            }
            Act::Accept(number) => {
                let count = self.table.hunks().len();
                if count > 0 {
                    self.table.accept(number % count);
                    assert_eq!(self.table.hunks().len(), count - 1);
                }
            }
            Act::Reject(number) => {
                let count = self.table.hunks().len();
                if count > 0 {
                    let replacement = self.table.reject(number % count, &self.now).expect("there is one");
                    self.now.splice(replacement.rows, replacement.lines);
                    assert_eq!(self.table.base(&self.now), base, "a rejection changes nothing but the agent's lines");
                }
            }
            Act::Other(at, lines) => {
                let mut new = self.now.clone();
                let rows = self.rows(*at, lines.len());
                new.splice(rows, lines.iter().cloned());
                self.table.follow(&self.now, &new);
                self.now = new;
            }
        }
        self.check();
    }

    /// After the user replaced `rows` of `before` by what they typed.
    fn check_edit(&self, before: &Self, rows: &std::ops::Range<usize>, typed: &[String]) {
        let base = self.table.base(&self.now);
        for line in typed {
            assert!(base.contains(line), "what the user typed outlives every rejection");
        }
        let olds = |model: &Self| -> Vec<String> {
            model.table.hunks().iter().flat_map(|hunk| hunk.old.iter().cloned()).collect()
        };
        assert_eq!(olds(self), olds(before), "what the agent replaced can still be brought back");
        let is_outside = before.table.hunks().iter().all(|hunk| hunk.end() <= rows.start || hunk.first >= rows.end);
        if is_outside {
            let ids = |model: &Self| model.table.hunks().iter().map(|hunk| hunk.id).collect::<Vec<_>>();
            assert_eq!(ids(self), ids(before), "other hunks are as they were");
            // The same edit in the base, where the rows above it are as many as their hunks leave.
            let above = Table::new(
                before.table.hunks().iter().filter(|hunk| hunk.end() <= rows.start).cloned().collect(),
                rows.start,
            );
            let above = above.expect("a part of a table").base(&before.now[..rows.start]).len();
            let mut expected = before.table.base(&before.now);
            expected.splice(above..above + rows.len(), typed.iter().cloned());
            assert_eq!(base, expected, "the user's edit is part of the base");
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn nothing_of_the_users_is_lost_whatever_happens(start in lines(12), acts in prop::collection::vec(act(), 0..16)) {
        let mut model = Model::new(start);
        for act in &acts {
            let users: Vec<String> =
                model.not_the_agents().into_iter().filter(|line| line.starts_with("user")).cloned().collect();
            model.act(act);
            if matches!(act, Act::Accept(_) | Act::Reject(_)) {
                prop_assert!(users.iter().all(|line| model.now.contains(line)), "{users:?} in {model:?}");
            }
        }

        // All accepted: nothing changes any more.
        let mut accepted = model.clone();
        while accepted.table.accept(0).is_some() {}
        prop_assert_eq!(accepted.table.base(&accepted.now), model.now.clone());

        // All rejected, from either end: the base, byte for byte.
        let base = model.table.base(&model.now);
        for from_below in [false, true] {
            let mut rejected = model.clone();
            while !rejected.table.hunks().is_empty() {
                let index = if from_below { rejected.table.hunks().len() - 1 } else { 0 };
                let replacement = rejected.table.reject(index, &rejected.now).expect("there is one");
                rejected.now.splice(replacement.rows, replacement.lines);
                rejected.check();
            }
            prop_assert_eq!(&rejected.now, &base);
        }
    }

    #[test]
    fn rejecting_all_that_an_agent_did_alone_gives_back_the_text(
        start in lines(20), writes in prop::collection::vec(lines(20), 1..5)
    ) {
        let mut model = Model::new(start.clone());
        for write in &writes {
            model.table = model.table.written(&model.now, write);
            model.now.clone_from(write);
            model.check();
        }
        prop_assert_eq!(model.table.base(&model.now), start);
    }

    #[test]
    fn a_merge_has_what_both_sides_did(base in lines(10), at in any::<usize>(), gap in 1..4_usize, theirs in lines(4)) {
        let refs = |lines: &[String]| lines.iter().map(String::clone).collect::<Vec<_>>();
        // The user changes one row, the agent rows further down.
        let base: Vec<String> = base.iter().enumerate().map(|(row, line)| format!("{row}{line}")).collect();
        let row = at % (base.len() + 1);
        let mut ours = refs(&base);
        let cut = usize::from(row < base.len());
        ours.splice(row..row + cut, ["user".to_owned()]);
        let from = (row + cut + gap).min(base.len());
        let mut their_text = refs(&base);
        their_text.splice(from.., theirs.iter().map(|line| format!("agent {line}")));
        let (b, o, t) = (view(&base), view(&ours), view(&their_text));
        let is_apart = from > row + cut;
        let mut expected = ours[..(from - cut + 1).min(ours.len())].to_vec();
        expected.extend(their_text[from..].iter().cloned());
        match merge(&b, &o, &t) {
            Ok(merged) => {
                prop_assert!(merged.contains(&"user"));
                if is_apart {
                    prop_assert_eq!(merged, view(&expected));
                }
            }
            Err(_) => prop_assert!(!is_apart && b != t),
        }
    }

    #[test]
    fn a_merge_is_even_handed(base in lines(8), ours in lines(8), theirs in lines(8)) {
        let (b, o, t) = (view(&base), view(&ours), view(&theirs));
        prop_assert_eq!(merge(&b, &b, &t), Ok(t.clone()));
        prop_assert_eq!(merge(&b, &o, &b), Ok(o.clone()));
        prop_assert_eq!(merge(&b, &o, &o), Ok(o.clone()));
        match (merge(&b, &o, &t), merge(&b, &t, &o)) {
            (Ok(one), Ok(other)) => prop_assert_eq!(one, other),
            (Err(one), Err(other)) => {
                prop_assert_eq!(one.0.len(), other.0.len());
                for conflict in one.0 {
                    prop_assert_ne!(&o[conflict.ours], &t[conflict.theirs]);
                }
            }
            (one, other) => prop_assert!(false, "{one:?} but {other:?}"),
        }
    }
}

fn view(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).collect()
}

fn split(text: &str) -> Vec<&str> {
    text.split_terminator(' ').collect()
}

/// A table of one hunk: `authors` at row 2 instead of `old`.
fn one_hunk(authors: &str, old: &str) -> Table {
    let hunk = Hunk {
        id: 7,
        first: 2,
        authors: authors.chars().filter_map(Author::from_letter).collect(),
        old: split(old).into_iter().map(str::to_owned).collect(),
    };
    Table::new(vec![hunk], 20).expect("it fits")
}

fn shown(table: &Table) -> String {
    let hunks = table.hunks().iter().map(|hunk| {
        let authors: String = hunk.authors.iter().map(|author| author.letter()).collect();
        format!("{}{authors}-{}", hunk.first, hunk.old.join(" "))
    });
    hunks.collect::<Vec<_>>().join(", ")
}

#[test]
fn edits_beside_a_hunk_are_outside_of_it_and_those_inside_make_it_mixed() {
    let after = |authors, old, (first, last, new_last)| {
        let mut table = one_hunk(authors, old);
        table.edited(first, last, new_last);
        shown(&table)
    };
    assert_eq!(after("aa", "x", (0, 1, 3)), "4aa-x");
    assert_eq!(after("aa", "x", (2, 2, 3)), "3aa-x", "a line above its first one");
    assert_eq!(after("aa", "x", (4, 4, 5)), "2aa-x", "a line below its last one");
    assert_eq!(after("", "x", (2, 2, 3)), "2-x", "a line where the deleted ones were comes after them");
    assert_eq!(after("aa", "x", (3, 3, 4)), "2aua-x");
    assert_eq!(after("aa", "x", (2, 3, 3)), "2ua-x");
    assert_eq!(after("aa", "x", (2, 3, 2)), "2a-x");
    assert_eq!(after("aa", "x", (1, 3, 2)), "1ua-x");
    assert_eq!(after("aa", "", (2, 4, 3)), "", "nothing of the agent's is left");
    assert_eq!(after("aa", "x", (2, 4, 2)), "2-x", "the user deleted what the agent made of x");
}

#[test]
fn a_mixed_hunk_gives_the_users_lines_back() {
    let now = ["0", "1", "u1", "a", "u2", "b", "end"];
    let mut table = one_hunk("uaua", "x y");
    let replacement = table.reject(0, &now);
    let lines = ["u1", "x", "y", "u2"].map(str::to_owned).to_vec();
    assert_eq!(replacement, Some(Replacement { rows: 2..6, lines }));
    assert_eq!(one_hunk("uu", "x").base(&now)[2..5], ["x", "u1", "a"]);
}

#[test]
fn tables_that_do_not_fit_are_refused() {
    let hunk = |first, authors: &str| Hunk {
        id: first as u64,
        first,
        authors: authors.chars().filter_map(Author::from_letter).collect(),
        old: vec![],
    };
    assert!(Table::new(vec![hunk(0, "aa"), hunk(2, "a")], 3).is_some());
    assert!(Table::new(vec![hunk(0, "aa"), hunk(1, "a")], 3).is_none());
    assert!(Table::new(vec![hunk(2, "aa")], 3).is_none());
}

#[test]
fn a_change_is_one_hunk_and_the_same_text_none() {
    let hunks = between(&split("a b c d e"), &split("a B c e f"), 1);
    let table = Table::new(hunks, 5).expect("it fits");
    assert_eq!(shown(&table), "1a-b, 3-d, 4a-");
    assert_eq!(between(&split("a b"), &split("a b"), 1), []);
}

#[test]
fn edits_that_touch_are_a_conflict_with_the_rows_of_both_sides() {
    let merged = |base, ours, theirs| merge(&split(base), &split(ours), &split(theirs)).map(|lines| lines.join(" "));
    assert_eq!(merged("a b c", "A b c", "a b C"), Ok("A b C".to_owned()));
    assert_eq!(merged("a b c", "a X c", "a X c"), Ok("a X c".to_owned()));
    let conflict = |base, ours, theirs| Err(merge::Conflicts(vec![merge::Conflict { base, ours, theirs }]));
    assert_eq!(merged("a b c", "A b c", "a B c"), conflict(0..2, 0..2, 0..2));
    assert_eq!(merged("a b c", "a x b c", "a y z b c"), conflict(1..1, 1..2, 1..3));
    assert_eq!(merged("a b c d", "n a b c D", "a b c"), conflict(3..4, 4..5, 3..3));
}

#[test]
fn the_last_newline_is_merged_for_itself() {
    let merged = |base, ours, theirs| merge_texts(base, ours, theirs).ok();
    assert_eq!(merged("a\nb\nc", "A\nb\nc", "a\nb\nc\n"), Some("A\nb\nc\n".to_owned()));
    assert_eq!(merged("a\nb\nc\n", "a\nb\nc", "A\nb\nc\n"), Some("A\nb\nc".to_owned()));
    assert_eq!(merged("", "", "a"), Some("a".to_owned()));
    assert_eq!(merged("", "mine\n", "theirs\n"), None);
    assert_eq!(merged("a\n", "", "a\n"), Some(String::new()));
}
