use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::core::tool_call::{Location, ToolCallPatch};

const FILE: &str = "/p/hello.py";

fn call(patch: ToolCallPatch) -> ToolCall {
    let mut call = ToolCall::new("t".into(), Millis(0));
    call.apply(patch, Millis(0));
    call
}

fn named(locations: &[(&str, Option<u64>)]) -> ToolCallPatch {
    let locations = locations.iter().map(|&(path, line)| Location { path: path.into(), line }).collect();
    ToolCallPatch { locations: Some(locations), ..ToolCallPatch::default() }
}

fn raw(value: Value) -> ToolCallPatch {
    ToolCallPatch { raw_input: Some(Arc::new(value)), ..ToolCallPatch::default() }
}

fn diff(path: &str) -> ToolContent {
    ToolContent::Diff { path: path.into(), old: Some("a\n".into()), new: "b\n".into() }
}

fn change() -> PlaceChange {
    PlaceChange { old: Some("a\n".into()), new: Some("b\n".into()) }
}

fn found(patch: ToolCallPatch) -> Vec<Place> {
    places(&call(patch), Path::new("/p"), 1)
}

fn at(path: &str, line: Option<u64>) -> Place {
    Place { path: path.into(), line, change: None }
}

#[test]
fn locations_come_first_and_a_line_before_the_first_is_the_first() {
    let patch = ToolCallPatch {
        content: Some(vec![diff("/p/other")]),
        ..named(&[(FILE, Some(7)), (FILE, Some(0)), ("b/c.rs", None), ("", Some(1)), ("file:///p/d", Some(u64::MAX))])
    };
    let lines = [at(FILE, Some(7)), at(FILE, Some(1)), at("/p/b/c.rs", None), at("/p/d", Some(u64::MAX))];
    assert_eq!(found(patch), lines);
}

#[test]
fn lines_of_an_agent_that_counts_from_zero_are_one_more() {
    let lines = |first_line| {
        let places = places(&call(named(&[(FILE, Some(0)), (FILE, Some(9))])), Path::new("/p"), first_line);
        places.into_iter().filter_map(|place| place.line).collect::<Vec<_>>()
    };
    assert_eq!(lines(0), [1, 10]);
    assert_eq!(lines(1), [1, 9]);
}

#[test]
fn a_location_without_a_line_has_the_change_or_the_line_of_the_arguments() {
    let with_diff = ToolCallPatch { content: Some(vec![diff(FILE)]), ..named(&[(FILE, None)]) };
    assert_eq!(found(with_diff), [Place { path: FILE.into(), line: None, change: Some(change()) }]);
    let with_offset =
        ToolCallPatch { locations: named(&[(FILE, None)]).locations, ..raw(json!({ "path": FILE, "offset": 40 })) };
    assert_eq!(found(with_offset), [at(FILE, Some(40))]);
    // The arguments are about another file.
    let of_other =
        ToolCallPatch { locations: named(&[(FILE, None)]).locations, ..raw(json!({ "path": "/p/x", "offset": 40 })) };
    assert_eq!(found(of_other), [at(FILE, None)]);
}

#[test]
fn without_locations_the_diff_says_where() {
    // As codex-acp sends its edits.
    let patch = ToolCallPatch { content: Some(vec![diff("/p/a"), diff("/p/b")]), ..ToolCallPatch::default() };
    let paths: Vec<PathBuf> = found(patch).into_iter().map(|place| place.path).collect();
    assert_eq!(paths, [PathBuf::from("/p/a"), PathBuf::from("/p/b")]);
}

#[test]
fn without_either_the_arguments_say_where_in_each_agents_words() {
    let edit = Some(change());
    let arguments = [
        // claude-agent-acp
        (json!({ "file_path": FILE }), None, None),
        (json!({ "file_path": FILE, "offset": 3, "limit": 9 }), Some(3), None),
        (
            json!({ "file_path": FILE, "old_string": "a\n", "new_string": "b\n", "replace_all": false }),
            None,
            edit.clone(),
        ),
        // copilot
        (json!({ "path": FILE, "view_range": [12, 20] }), Some(12), None),
        (json!({ "path": FILE, "old_str": "a\n", "new_str": "b\n" }), None, edit.clone()),
        (json!({ "fileName": FILE, "diff": "…" }), None, None),
        // kimi-code
        (json!({ "path": FILE, "line_offset": 5 }), Some(5), None),
        // opencode
        (json!({ "filePath": FILE, "oldString": "a\n", "newString": "b\n" }), None, edit),
        (json!({ "filepath": FILE, "parentDir": "/p" }), None, None),
        // zed-codex-acp
        (json!({ "call_id": "c", "changes": { FILE: { "type": "update" } } }), None, None),
    ];
    for (value, line, change) in arguments {
        assert_eq!(found(raw(value.clone())), [Place { path: FILE.into(), line, change }], "{value}");
    }
}

#[test]
fn what_is_no_place_is_none() {
    for value in [
        json!({}),
        json!(null),
        json!("x"),
        json!({ "path": 3 }),
        json!({ "command": "ls" }),
        json!({ "path": "a\nb" }),
    ] {
        assert_eq!(found(raw(value.clone())), [], "{value}");
    }
}

fn seen(path: &str) -> SeenPlace {
    SeenPlace { path: path.into(), size: 1, line: None, kind: String::new(), title: String::new() }
}

#[test]
fn of_news_that_wait_the_later_count() {
    let mut news =
        Whereabouts { clear: false, places: vec![seen("/a"), seen("/b")], newest: Some(seen("/b")), terminal: None };
    news.extend(Whereabouts { clear: false, places: vec![seen("/a")], newest: None, terminal: None });
    assert_eq!((news.places.clone(), news.newest.clone()), (vec![seen("/b"), seen("/a")], Some(seen("/b"))));
    news.extend(Whereabouts { clear: true, ..Whereabouts::default() });
    assert_eq!(news, Whereabouts { clear: true, places: Vec::new(), newest: Some(seen("/b")), terminal: None });
    news.extend(Whereabouts { clear: false, places: vec![seen("/c")], newest: Some(seen("/c")), terminal: None });
    assert_eq!(news, Whereabouts { clear: true, places: vec![seen("/c")], newest: Some(seen("/c")), terminal: None });
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<u64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
        prop::collection::vec(any::<i64>(), 0..3).prop_map(Value::from),
    ];
    let key =
        prop_oneof![Just("path"), Just("changes"), Just("offset"), Just("view_range"), Just("old_str"), Just("x")];
    prop::collection::vec((key, leaf), 0..6)
        .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

proptest! {
    #[test]
    fn whatever_comes_paths_are_absolute_and_lines_begin_with_one(
        locations in prop::collection::vec((".{0,8}", prop::option::of(any::<u64>())), 0..4),
        arguments in json_value(),
        first_line in 0u64..=1,
    ) {
        let locations = locations.into_iter().map(|(path, line)| Location { path, line }).collect();
        let patch = ToolCallPatch { locations: Some(locations), ..raw(arguments) };
        for place in places(&call(patch), Path::new("/p"), first_line) {
            prop_assert!(place.path.is_absolute());
            prop_assert!(place.line != Some(0));
        }
    }
}
