//! On real files.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::core::ids::{Millis, SessionKey};
use crate::core::plan::{Plan, PlanStatus, PlanStep};
use crate::core::tool_call::{ToolCall, ToolContent, ToolStatus};
use crate::core::transcript::{Entry, Severity, Speaker};

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/agentchat").join(FILE_NAME);
    (folder, path)
}

fn answer(project: &str, rule: &str) -> NewAnswer {
    NewAnswer {
        project: project.into(),
        agent: "tour".to_owned(),
        action: Action::Allow,
        rule: rule.to_owned(),
        shown: format!("allow {rule}"),
    }
}

fn response(id: &str, output: &str) -> NewResponse {
    NewResponse {
        id: id.to_owned(),
        endpoint: "http://localhost:1234/v1".to_owned(),
        previous_id: None,
        created_at: 1,
        input: r#"[{"role":"user"}]"#.to_owned(),
        output: output.to_owned(),
        expires_at: None,
    }
}

/// Everything in the folder of the store, as bytes.
fn all_bytes(path: &Path) -> Vec<u8> {
    let files = fs::read_dir(path.parent().unwrap()).unwrap();
    files.flat_map(|file| fs::read(file.unwrap().path()).unwrap()).collect()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    memchr::memmem::find(bytes, text.as_bytes()).is_some()
}

#[test]
fn answers_are_remembered_over_restarts_by_project_and_can_be_revoked() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    let first = store.remember(&answer("/a", "1")).unwrap();
    let second = store.remember(&NewAnswer { action: Action::Deny, ..answer("/a", "2") }).unwrap();
    store.remember(&answer("/b", "1")).unwrap();
    drop(store);
    let mut store = Store::open(&path).unwrap();
    let of_a = store.answers(Some(Path::new("/a"))).unwrap();
    assert_eq!(of_a.iter().map(|answer| answer.id).collect::<Vec<_>>(), [second, first]);
    assert_eq!((of_a[0].action, of_a[1].action), (Action::Deny, Action::Allow));
    assert_eq!((of_a[1].shown.as_str(), of_a[1].agent.as_str()), ("allow 1", "tour"));
    assert!(of_a[1].made_at_ms > 1_700_000_000_000);
    assert_eq!(store.answers(None).unwrap().len(), 3);
    assert!(store.revoke(first).unwrap());
    assert!(!store.revoke(first).unwrap());
    assert_eq!(store.answers(Some(Path::new("/a"))).unwrap().len(), 1);
}

#[test]
fn the_newest_answer_to_the_same_replaces_the_one_before() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    let first = store.remember(&answer("/a", "1")).unwrap();
    let second = store.remember(&NewAnswer { action: Action::Deny, ..answer("/a", "1") }).unwrap();
    assert!(second > first);
    let answers = store.answers(None).unwrap();
    assert_eq!(answers.iter().map(|answer| (answer.id, answer.action)).collect::<Vec<_>>(), [(second, Action::Deny)]);
}

#[cfg(unix)]
#[test]
fn projects_whose_names_are_no_text_are_told_apart() {
    use std::os::unix::ffi::OsStrExt as _;
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    let project = Path::new(std::ffi::OsStr::from_bytes(b"/p\xff"));
    store.remember(&NewAnswer { project: project.to_owned(), ..answer("", "1") }).unwrap();
    assert_eq!(store.answers(Some(project)).unwrap()[0].project, project);
    assert!(store.answers(Some(Path::new("/p\u{fffd}"))).unwrap().is_empty());
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_any_of_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    store.remember(&answer("/a", "1")).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let parent = path.parent().unwrap();
    assert_eq!(mode(parent), 0o700);
    let files: Vec<_> = fs::read_dir(parent).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.iter().any(|file| file.to_string_lossy().ends_with("-wal")), "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    drop(store);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    drop(Store::open(&path).unwrap());
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn two_neovims_see_what_the_other_remembers_and_lose_nothing_when_both_write() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    let other = path.clone();
    let writer = std::thread::spawn(move || {
        let mut store = Store::open(&other).unwrap();
        for number in 0..100 {
            store.remember(&answer("/other", &number.to_string())).unwrap();
        }
    });
    for number in 0..100 {
        store.remember(&answer("/a", &number.to_string())).unwrap();
    }
    writer.join().unwrap();
    assert_eq!(store.answers(None).unwrap().len(), 200);
}

#[test]
fn many_neovims_that_start_at_once_make_one_file() {
    let (_folder, path) = folder();
    let starts: Vec<_> = (0..8)
        .map(|number: u32| {
            let path = path.clone();
            std::thread::spawn(move || {
                Store::open(&path).unwrap().remember(&answer("/a", &number.to_string())).unwrap()
            })
        })
        .collect();
    for start in starts {
        start.join().unwrap();
    }
    assert_eq!(Store::open(&path).unwrap().answers(None).unwrap().len(), 8);
}

#[test]
fn a_file_of_the_first_format_is_brought_forward_with_all_that_is_in_it() {
    let (_folder, path) = folder();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let old = Connection::open(&path).unwrap();
    old.execute_batch(include_str!("../../tests/fixtures/store-1.sql")).unwrap();
    drop(old);
    let store = Store::open(&path).unwrap();
    assert_eq!(migrations::version(&store.connection).unwrap(), migrations::NEWEST);
    let answers = store.answers(Some(Path::new("/home/me/project"))).unwrap();
    assert_eq!(answers.len(), 1);
    assert_eq!((answers[0].id, answers[0].action), (AnswerId(7), Action::Deny));
    assert_eq!(store.response("resp_1").unwrap().unwrap().output, r#"{"id":"resp_1"}"#);
}

#[test]
fn a_file_of_a_newer_version_is_left_alone() {
    let (_folder, path) = folder();
    drop(Store::open(&path).unwrap());
    let newer = Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", migrations::NEWEST + 1).unwrap();
    drop(newer);
    let before = fs::read(&path).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, StoreError::Newer { .. }));
    assert!(error.to_string().contains("update agentchat"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_damaged_file_is_set_aside_whole_and_the_user_is_told() {
    let damages: [fn(&mut Vec<u8>); 3] = [
        |bytes| *bytes = b"this is no database, but it may be dear to somebody".repeat(100),
        |bytes| bytes[..16].fill(0),
        |bytes| bytes.iter_mut().skip(100).for_each(|byte| *byte = 0x5a),
    ];
    for damage in damages {
        let (_folder, path) = folder();
        let mut store = Store::open(&path).unwrap();
        store.remember(&answer("/a", "1")).unwrap();
        drop(store);
        let mut bytes = fs::read(&path).unwrap();
        damage(&mut bytes);
        fs::write(&path, &bytes).unwrap();
        let mut store = Store::open(&path).unwrap();
        let notice = store.notice().expect("the user is told");
        let aside = notice.rsplit_once(" is kept as ").unwrap().1.trim_end_matches('.');
        assert_eq!(fs::read(aside).unwrap(), bytes);
        store.remember(&answer("/a", "2")).unwrap();
        assert_eq!(store.answers(None).unwrap().len(), 1);
        drop(store);
        assert_eq!(Store::open(&path).unwrap().notice(), None);
    }
}

#[test]
fn a_place_where_nothing_can_be_written_is_an_error_that_names_it() {
    let (folder, _path) = folder();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Store::open(&file.join(FILE_NAME)).unwrap_err();
    assert!(error.to_string().contains(&*file.to_string_lossy()), "{error}");
    let error = Store::open(folder.path()).unwrap_err();
    assert!(matches!(error, StoreError::Open { .. }), "{error}");
}

#[test]
fn a_full_disk_costs_what_did_not_fit_and_nothing_else() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    store.remember(&answer("/a", "1")).unwrap();
    let pages: u32 = store.connection.query_row("PRAGMA page_count", (), |row| row.get(0)).unwrap();
    store.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
    let error = store.keep_response(&response("resp_1", &"x".repeat(100_000))).unwrap_err();
    assert!(matches!(error, StoreError::Full), "{error}");
    assert_eq!(store.answers(None).unwrap().len(), 1);
    assert_eq!(store.response("resp_1").unwrap(), None);
    store.connection.pragma_update_and_check(None, "max_page_count", 100_000, |_| Ok(())).unwrap();
    store.keep_response(&response("resp_1", &"x".repeat(100_000))).unwrap();
    assert!(store.response("resp_1").unwrap().is_some());
}

#[test]
fn no_secret_reaches_the_disk() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    let secret = "sk-proj-abcdefghijklmnop";
    let shown = format!("allow curl -H 'x-api-key: {secret}'");
    store.remember(&NewAnswer { shown, ..answer("/a", "1") }).unwrap();
    let rule = format!(r#"{{"command":["curl","{secret}"]}}"#);
    assert!(matches!(store.remember(&answer("/a", &rule)), Err(StoreError::Secret)));
    store.keep_response(&response("resp_1", &format!(r#"{{"text":"the key is {secret}"}}"#))).unwrap();
    assert_eq!(store.response("resp_1").unwrap().unwrap().output, r#"{"text":"the key is [redacted]"}"#);
    let bytes = all_bytes(&path);
    assert!(contains(&bytes, "the key is") && !contains(&bytes, secret));
}

#[test]
fn responses_are_listed_by_pages_and_gone_when_they_expire_or_are_deleted() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    for number in 1..=5 {
        store.keep_response(&response(&format!("resp_{number}"), "{}")).unwrap();
    }
    store.keep_response(&NewResponse { expires_at: Some(2), ..response("old", "{}") }).unwrap();
    store.keep_response(&response("resp_2", r#"{"again":true}"#)).unwrap();
    let ids = |responses: Vec<KeptResponse>| responses.into_iter().map(|kept| kept.id).collect::<Vec<_>>();
    assert_eq!(ids(store.responses(3, None).unwrap()), ["resp_2", "resp_5", "resp_4"]);
    assert_eq!(ids(store.responses(3, Some("resp_4")).unwrap()), ["resp_3", "resp_1"]);
    assert_eq!(store.response("old").unwrap(), None);
    assert!(store.delete_response("resp_5").unwrap());
    assert!(!store.delete_response("resp_5").unwrap());
    assert_eq!(ids(store.responses(1, Some("resp_2")).unwrap()), ["resp_4"]);
}

#[test]
fn the_oldest_goes_when_there_is_too_much_but_never_the_newest() {
    let (_folder, path) = folder();
    let limits = Limits { answers: 3, response_bytes: 1000, ..Limits::default() };
    let mut store = Store::open_with(&path, limits).unwrap();
    for number in 0..5 {
        store.remember(&answer("/a", &number.to_string())).unwrap();
        store.keep_response(&response(&number.to_string(), &"x".repeat(400))).unwrap();
    }
    let rules: Vec<String> = store.answers(None).unwrap().into_iter().map(|answer| answer.rule).collect();
    assert_eq!(rules, ["4", "3", "2"]);
    assert_eq!(store.responses(9, None).unwrap().len(), 2);
    store.keep_response(&response("huge", &"x".repeat(4000))).unwrap();
    assert_eq!(store.responses(9, None).unwrap().len(), 1);
    assert!(store.response("huge").unwrap().is_some());
}

#[tokio::test]
async fn a_handle_does_what_is_asked_in_order_and_says_when_there_is_no_store() {
    let (folder, path) = folder();
    let handle = Handle::new(path.clone());
    assert_eq!(handle.notice().await, None);
    for number in 0..5 {
        handle.post(move |store| store.remember(&answer("/a", &number.to_string())).map(drop));
    }
    let id = handle.remember(answer("/a", "last")).await.unwrap();
    assert_eq!(handle.answers(Some(Path::new("/a"))).await.unwrap().len(), 6);
    assert!(handle.revoke(id).await.unwrap());
    handle.keep_response(response("resp_1", "{}")).await.unwrap();
    assert!(handle.response("resp_1").await.unwrap().is_some());
    let nowhere = Handle::new(folder.path().to_owned());
    let notice = nowhere.notice().await.expect("the user is told");
    assert!(notice.contains("cannot be opened"), "{notice}");
    assert_eq!(nowhere.answers(None).await.unwrap_err().to_string(), notice);
}

fn said(entry: usize, part: usize, speaker: Speaker, text: &str) -> SessionEvent {
    SessionEvent { entry, part, piece: Piece::Text(speaker, text.to_owned()) }
}

fn batch(key: u64, events: Vec<SessionEvent>) -> Batch {
    let about = About { agent: "tour".into(), id: format!("s{key}"), cwd: "/p".into(), title: None };
    Batch { key: SessionKey(key), about, replaces: None, events }
}

fn texts(session: &KeptSession) -> Vec<String> {
    session.entries.iter().map(|entry| entry.text().map_or_else(|| format!("{entry:?}"), ToString::to_string)).collect()
}

#[test]
fn a_session_is_kept_in_order_and_what_is_replaced_is_there_once() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    let mut call = ToolCall::new("c1".into(), Millis(5));
    call.content = vec![ToolContent::Diff { path: "/p/a".into(), old: None, new: "x".into() }];
    let tool =
        |call: &ToolCall| SessionEvent { entry: 1, part: 0, piece: Piece::Whole(Entry::Tool(Box::new(call.clone()))) };
    let mut first = batch(1, vec![said(0, 0, Speaker::User, "fix\nit"), tool(&call)]);
    store.record(&first).unwrap();
    call.set_status(ToolStatus::Completed, Millis(9));
    let plan = Plan::Steps(vec![PlanStep { content: "one".into(), status: PlanStatus::InProgress }]);
    first.events = vec![
        tool(&call),
        said(2, 0, Speaker::Agent, "done "),
        said(2, 1, Speaker::Agent, "so"),
        SessionEvent { entry: 3, part: 0, piece: Piece::Whole(Entry::Plan(plan.clone())) },
        SessionEvent { entry: 4, part: 0, piece: Piece::Whole(Entry::Notice(Severity::Stop, "Cancelled.".into())) },
    ];
    first.about.title = Some("A title".into());
    store.record(&first).unwrap();
    drop(store);
    let store = Store::open(&path).unwrap();
    let kept = store.session(&Which::Key(SessionKey(1))).unwrap().unwrap();
    assert_eq!(kept.entries.len(), 5);
    assert_eq!(kept.entries[0].text().unwrap().to_string(), "fix\nit");
    assert_eq!(kept.entries[2].text().unwrap().to_string(), "done so");
    assert_eq!(kept.entries[3..], [Entry::Plan(plan), Entry::Notice(Severity::Stop, "Cancelled.".into())]);
    let Entry::Tool(kept_call) = &kept.entries[1] else { panic!("{:?}", kept.entries[1]) };
    assert_eq!((&kept_call.id, &kept_call.status, &kept_call.content), (&call.id, &call.status, &call.content));
    assert_eq!(kept_call.ended.unwrap().since(kept_call.started), 4);
    let row = &store.sessions(Some(Path::new("/p")), 9).unwrap()[0];
    assert_eq!((row.about.title.as_deref(), row.opening.as_deref()), (Some("A title"), Some("fix")));
    assert_eq!(row.last.as_deref(), Some("done "));
    assert!(store.sessions(Some(Path::new("/other")), 9).unwrap().is_empty());
    let lines = store.session_lines(SessionKey(1)).unwrap();
    assert_eq!(lines.len(), 6);
    assert!(lines.iter().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
}

#[test]
fn a_session_that_is_continued_replaces_what_was_kept_of_it_and_keeps_its_age() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    store.record(&batch(1, vec![said(0, 0, Speaker::User, "old")])).unwrap();
    store.record(&batch(2, vec![said(0, 0, Speaker::User, "other")])).unwrap();
    let born = store.session(&Which::Key(SessionKey(1))).unwrap().unwrap().row.created_at_ms;
    let mut next = batch(3, vec![said(0, 0, Speaker::User, "old"), said(1, 0, Speaker::User, "new")]);
    next.replaces = Some(SessionKey(1));
    store.record(&next).unwrap();
    next.events = vec![said(2, 0, Speaker::Agent, "more")];
    store.record(&next).unwrap();
    assert_eq!(store.session(&Which::Key(SessionKey(1))).unwrap(), None);
    let kept = store.session(&Which::Named { agent: "tour".into(), id: "s3".into() }).unwrap().unwrap();
    assert_eq!((texts(&kept).len(), kept.row.created_at_ms), (3, born));
    assert_eq!(store.sessions(None, 9).unwrap().len(), 2);
    assert!(store.delete_session(&Which::Named { agent: "tour".into(), id: "s2".into() }).unwrap());
    assert!(!store.delete_session(&Which::Key(SessionKey(2))).unwrap());
    assert_eq!(store.sessions(None, 9).unwrap().len(), 1);
    assert!(store.session_lines(SessionKey(2)).unwrap().is_empty());
}

#[test]
fn what_was_said_is_bounded_by_session_and_in_all_and_the_newest_stays() {
    let (_folder, path) = folder();
    let limits = Limits { session_bytes: 4000, sessions_bytes: 8000, ..Limits::default() };
    let mut store = Store::open_with(&path, limits).unwrap();
    for key in 1..=5 {
        for entry in 0..20 {
            let text = format!("{entry} {}", "x".repeat(400));
            store.record(&batch(key, vec![said(entry, 0, Speaker::Agent, &text)])).unwrap();
        }
        let kept = store.session(&Which::Key(SessionKey(key))).unwrap().unwrap();
        assert!(texts(&kept).last().unwrap().starts_with("19 "));
        let bytes: usize = texts(&kept).iter().map(String::len).sum();
        assert!((2000..4000).contains(&bytes), "{bytes}");
    }
    let keys: Vec<u64> = store.sessions(None, 9).unwrap().iter().map(|row| row.key.0).collect();
    assert!(keys.contains(&5) && keys.len() < 4, "{keys:?}");
    let huge = "y".repeat(20_000);
    store.record(&batch(9, vec![said(0, 0, Speaker::Agent, &huge)])).unwrap();
    let kept = store.session(&Which::Key(SessionKey(9))).unwrap().unwrap();
    assert_eq!(texts(&kept), [huge], "the newest entry is whole");
}

#[test]
fn no_secret_of_a_session_reaches_the_disk() {
    let (_folder, path) = folder();
    let mut store = Store::open(&path).unwrap();
    let secret = "sk-proj-abcdefghijklmnop";
    let mut call = ToolCall::new("c1".into(), Millis(0));
    call.title = format!("curl {secret}");
    call.raw_input = Some(std::sync::Arc::new(serde_json::json!({"command": ["curl", secret], "apiKey": secret})));
    call.content = vec![ToolContent::Text(format!("x {secret} y").into())];
    let mut batch = batch(1, vec![said(0, 0, Speaker::User, &format!("my key is {secret}"))]);
    batch.events.push(SessionEvent { entry: 1, part: 0, piece: Piece::Whole(Entry::Tool(Box::new(call))) });
    batch.about.title = Some(format!("about {secret}"));
    store.record(&batch).unwrap();
    let bytes = all_bytes(&path);
    assert!(contains(&bytes, "my key is") && !contains(&bytes, secret));
}

#[cfg(unix)]
#[test]
fn the_state_folder_is_the_one_that_neovim_uses() {
    let of = |set: &[(&str, &str)]| {
        let set: Vec<(String, String)> = set.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        state_folder(|name| set.iter().find(|(set, _)| set == name).map(|(_, value)| value.into()))
    };
    let home = ("HOME", "/home/me");
    assert_eq!(of(&[home]), Some("/home/me/.local/state/nvim/agentchat".into()));
    assert_eq!(of(&[home, ("XDG_STATE_HOME", "/s")]), Some("/s/nvim/agentchat".into()));
    assert_eq!(of(&[home, ("XDG_STATE_HOME", "")]), Some("/home/me/.local/state/nvim/agentchat".into()));
    assert_eq!(of(&[("XDG_STATE_HOME", "/s"), ("NVIM_APPNAME", "other")]), Some("/s/other/agentchat".into()));
    assert_eq!(of(&[]), None);
}

#[test]
fn a_plan_of_any_kind_comes_back() -> serde_json::Result<()> {
    let document = Plan::Document { text: "# A\n\n- b\n".into(), path: Some("/p/plan.md".into()) };
    for plan in [document, Plan::Removed] {
        let piece = Piece::Whole(Entry::Plan(plan));
        assert_eq!(Piece::from_json(&piece.to_json()?), Some(piece));
    }
    Ok(())
}
