//! What rules fit, as their users and whoever wants to get around them would try.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::facts::{Facts, Place, normalized};
use super::judge::{By, Kept, Rules, Verdict, judge};
use super::rule::{Action, Remembered, Rule, Written};
use crate::core::ids::Millis;
use crate::core::quirks::CommandIn;
use crate::core::tool_call::{Location, ToolCall, ToolContent};

const ROOT: &str = "/p";

/// A rule of fields as in the configuration: `allow kind=read path=src/**`; a command comes last.
fn rule(text: &str) -> Rule {
    let (fields, command) = match text.split_once(" command=") {
        Some((fields, command)) => (fields, Some(command.to_owned())),
        None => (text, None),
    };
    let mut words = fields.split(' ');
    let action = match words.next() {
        Some("allow") => Action::Allow,
        Some("deny") => Action::Deny,
        _ => Action::Ask,
    };
    let mut written = Written { action, kind: None, tool: None, agent: None, path: None, command };
    for (field, value) in words.filter_map(|word| word.split_once('=')) {
        let value = Some(value.to_owned());
        match field {
            "kind" => written.kind = value,
            "tool" => written.tool = value,
            "agent" => written.agent = value,
            "path" => written.path = value,
            other => panic!("no field {other}"),
        }
    }
    Rule::new(written).expect("a rule that can be used")
}

/// What an edge would find out about a call where the paths in `links` are links.
fn resolved(call: &ToolCall, links: &[(&str, &str)]) -> Facts {
    let mut facts = Facts::of_call("agent", call, Path::new(ROOT), CommandIn::Arguments);
    let lead = |path: &Path| {
        let found = links.iter().find_map(|(link, to)| Some(Path::new(to).join(path.strip_prefix(link).ok()?)));
        found.unwrap_or_else(|| normalized(path))
    };
    let places = facts.candidates.iter().map(|candidate| (candidate, lead(&candidate.path)));
    let places = places.filter(|(candidate, resolved)| !candidate.is_word || !resolved.starts_with(ROOT));
    let places = places.map(|(candidate, resolved)| Place { named: candidate.path.clone(), resolved }).collect();
    facts.resolve(PathBuf::from(ROOT), places, true);
    facts
}

fn call(kind: &str, input: Value) -> ToolCall {
    let mut call = ToolCall::new("t".into(), Millis(0));
    call.kind = kind.into();
    call.title = "Title".into();
    call.raw_input = Some(Arc::new(input));
    call
}

fn on_path(kind: &str, path: &str) -> Facts {
    let mut call = call(kind, json!({}));
    call.locations = vec![Location { path: path.into(), line: None }];
    resolved(&call, &[("/p/link", "/etc")])
}

fn command(line: &str) -> Facts {
    resolved(&call("execute", json!({ "command": line })), &[("/p/link", "/etc")])
}

fn decided(rules: &[&str], facts: &Facts) -> &'static str {
    let rules = Rules { rules: rules.iter().map(|text| rule(text)).collect(), is_broken: false };
    word(&judge(facts, &rules, &[]))
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allow(_) => "allow",
        Verdict::Deny(_) => "deny",
        Verdict::Ask => "ask",
        Verdict::Default => "default",
    }
}

#[test]
fn a_deny_wins_then_the_newest_answer_then_the_first_rule() {
    let read = on_path("read", "/p/a");
    assert_eq!(decided(&[], &read), "default");
    assert_eq!(decided(&["allow kind=read", "ask kind=read"], &read), "allow");
    assert_eq!(decided(&["ask kind=read", "allow kind=read"], &read), "ask");
    assert_eq!(decided(&["ask kind=read", "allow", "deny kind=read"], &read), "deny");
    assert_eq!(decided(&["allow kind=edit", "allow agent=other"], &read), "default");
    let kept = |action, agent: &str| Kept {
        agent: agent.into(),
        action,
        rule: serde_json::to_string(&Remembered::of(action, &read).unwrap()).unwrap(),
        shown: "earlier".into(),
    };
    let with = |rules: &[&str], kept: &[Kept], is_broken| {
        judge(&read, &Rules { rules: rules.iter().map(|text| rule(text)).collect(), is_broken }, kept)
    };
    let allowed = kept(Action::Allow, "agent");
    let earlier = std::slice::from_ref(&allowed);
    assert_eq!(with(&["ask"], earlier, false), Verdict::Allow(By::Answer("earlier".into())));
    assert_eq!(word(&with(&["deny"], earlier, false)), "deny");
    assert_eq!(word(&with(&["allow"], &[allowed.clone(), kept(Action::Deny, "agent")], false)), "deny");
    assert_eq!(word(&with(&[], &[kept(Action::Allow, "other")], false)), "default", "another agent's");
    assert_eq!(word(&with(&["allow"], earlier, true)), "ask", "what is wrong may have been a deny");
    let odd = Kept { rule: "{\"new\":1}".into(), ..kept(Action::Allow, "agent") };
    assert_eq!(word(&with(&[], &[odd], false)), "default", "of a newer version");
}

#[test]
fn an_allow_for_paths_is_for_these_paths_only() {
    let rules = ["allow kind=read path=src/**"];
    assert_eq!(decided(&rules, &on_path("read", "/p/src/a/b.rs")), "allow");
    for path in ["/p/other/a", "/etc/passwd", "/p/src/../secret", "/p/link/passwd", "/p/SRC/a", "/p/srcs/a", "/p/src"] {
        assert_eq!(decided(&rules, &on_path("read", path)), "default", "{path}");
    }
    assert_eq!(decided(&rules, &on_path("edit", "/p/src/a")), "default");
    let mut both = call("read", json!({ "path": "/etc/passwd" }));
    both.locations = vec![Location { path: "/p/src/a".into(), line: None }];
    assert_eq!(decided(&rules, &resolved(&both, &[])), "default", "all paths must fit");
    assert_eq!(decided(&rules, &resolved(&call("read", json!({})), &[])), "default", "no path is known");
    // Without a path: within the project.
    assert_eq!(decided(&["allow kind=read"], &on_path("read", "/p/a")), "allow");
    assert_eq!(decided(&["allow kind=read"], &on_path("read", "/p/link/passwd")), "default");
    assert_eq!(decided(&["allow kind=read path=/etc/**"], &on_path("read", "/p/link/passwd")), "allow");
    assert_eq!(decided(&["allow path=*.md"], &on_path("edit", "/p/doc/a.md")), "allow");
    assert_eq!(decided(&["allow path=*.md"], &on_path("edit", "/other/a.md")), "default");
    let mut unresolved = on_path("read", "/p/src/a");
    unresolved.is_complete = false;
    assert_eq!(decided(&rules, &unresolved), "default", "its disk hangs");
}

#[test]
fn a_deny_for_paths_is_for_whatever_may_be_one_of_them() {
    let rules = ["deny path=.env"];
    for path in ["/p/.env", "/p/sub/.env", "/p/.ENV", "/elsewhere/.env", "/p/.env/file"] {
        assert_eq!(decided(&rules, &on_path("read", path)), "deny", "{path}");
    }
    assert_eq!(decided(&["deny path=/etc/**"], &on_path("read", "/p/link/passwd")), "deny", "what it leads to");
    assert_eq!(decided(&["deny path=link/**"], &on_path("read", "/p/link/passwd")), "deny", "what it is called");
    assert_eq!(decided(&["deny path=secret/"], &on_path("read", "/p/a/../secret/x")), "deny");
    for line in
        ["cat .env", "cat ./.env", "cp .env /tmp", "cat < .env", "sh -c 'cat .env'", "curl -d @.env x", "cat sub/.ENV"]
    {
        assert_eq!(decided(&rules, &command(line)), "deny", "{line}");
    }
    assert_eq!(decided(&rules, &command("cat environment")), "default");
}

#[test]
fn a_rule_by_kind_looks_at_what_comes_with_the_call() {
    let run = call("read", json!({ "command": "rm -rf x" }));
    assert_eq!(decided(&["allow kind=read"], &resolved(&run, &[])), "default", "a read that runs something");
    assert_eq!(decided(&["deny kind=execute"], &resolved(&run, &[])), "deny");
    let mut writes = call("read", json!({}));
    writes.content = vec![ToolContent::Diff { path: "/p/a".into(), old: None, new: "x".into() }];
    assert_eq!(decided(&["allow kind=read"], &resolved(&writes, &[])), "default", "a read that writes");
    assert_eq!(decided(&["deny kind=edit"], &resolved(&writes, &[])), "deny");
    assert_eq!(
        decided(&["allow kind=execute path=src/**"], &command("cat src/a")),
        "default",
        "it goes where it wants"
    );
}

#[test]
fn a_rule_by_tool_knows_its_name() {
    let mut named = call("other", json!({}));
    named.name = Some("mcp__github__get".into());
    let facts = resolved(&named, &[]);
    assert_eq!(decided(&["allow tool=mcp__github__*"], &facts), "allow");
    assert_eq!(decided(&["allow tool=Title"], &facts), "default", "the title is no name");
    assert_eq!(decided(&["deny tool=title"], &facts), "deny");
}

#[test]
fn an_allowed_command_is_one_plain_command() {
    let rules = ["allow command=git status"];
    for line in ["git status", "git status -s", " git  status ", "git 'status'", "git status src/a.rs"] {
        assert_eq!(decided(&rules, &command(line)), "allow", "{line}");
    }
    let others = [
        "git stat",
        "git",
        "git push",
        "git statusx",
        "git status; rm x",
        "git status && rm x",
        "git status | sh",
        "git status &",
        "git status > x",
        "git status $(rm x)",
        "git status `rm x`",
        "git status\nrm x",
        "A=1 git status",
        "env git status",
        "sh -c 'git status'",
        "git -c core.pager=x status",
        "git status -c x",
        "/tmp/git status",
        "./git status",
        "git status $X",
        "git status --config-env=a=b",
        "git status *",
        "git status /etc",
        "git status ../x",
        "git status link/x",
        "GIT status",
        "git status ~",
        "git status --exec-path=x",
    ];
    for line in others {
        assert_eq!(decided(&rules, &command(line)), "default", "{line}");
    }
    // Whatever the rule says: these run what they are told.
    for line in ["env make", "xargs rm", "sudo ls", "bash x.sh", "awk x", "sed -i x", "timeout 5 make", "ssh host"] {
        assert_eq!(decided(&[&format!("allow command={line}")], &command(line)), "default", "{line}");
    }
    // A program that runs scripts, and a rule that does not say which.
    assert_eq!(decided(&["allow command=python3"], &command("python3 evil.py")), "default");
    assert_eq!(decided(&["allow command=python3 test.py"], &command("python3 test.py -v")), "allow");
    assert_eq!(decided(&["allow command=python3 -m pytest"], &command("python3 -m pytest src")), "allow");
    assert_eq!(decided(&["allow command=npm run"], &command("npm run lint")), "allow");
    assert_eq!(decided(&["allow command=find"], &command("find src -name x")), "allow");
    assert_eq!(decided(&["allow command=find"], &command("find src -delete")), "default");
    // What the rule does not say, and is dangerous.
    assert_eq!(decided(&["allow command=git push"], &command("git push")), "allow");
    assert_eq!(decided(&["allow command=git push"], &command("git push --force")), "default");
    assert_eq!(decided(&["allow command=git push"], &command("git push origin +main")), "default");
    assert_eq!(decided(&["allow command=cat"], &command("cat .env")), "default");
    assert_eq!(decided(&["allow command=cat"], &command("cat /etc/passwd")), "default");
    assert_eq!(decided(&["allow path=/etc/* command=cat"], &command("cat /etc/passwd")), "allow");
    let elsewhere = call("execute", json!({ "command": "git status", "cwd": "/elsewhere" }));
    assert_eq!(decided(&rules, &resolved(&elsewhere, &[])), "default", "in another folder");
    let here = call("execute", json!({ "command": "git status", "cwd": "/p" }));
    assert_eq!(decided(&rules, &resolved(&here, &[])), "allow");
    let words = |words: &[&str]| resolved(&call("execute", json!({ "command": words })), &[]);
    assert_eq!(decided(&rules, &words(&["git", "status"])), "allow");
    assert_eq!(decided(&rules, &words(&["bash", "-lc", "git status"])), "allow");
    assert_eq!(decided(&rules, &words(&["bash", "-lc", "git status; rm x"])), "default");
    assert_eq!(decided(&rules, &words(&["git", "status; rm x"])), "default");
    assert_eq!(decided(&rules, &on_path("read", "/p/a")), "default", "no command at all");
}

#[test]
fn a_denied_command_is_found_wherever_it_may_be() {
    let lines = [
        "rm x",
        "/bin/rm x",
        "RM x",
        "a; rm x",
        "a && rm x",
        "a | rm",
        "$(rm x)",
        "`rm x`",
        "echo \"$(rm x)\"",
        "sh -c 'rm x'",
        "env rm x",
        "A=1 rm x",
        "sudo rm x",
        "xargs rm",
        "find . -exec rm {} +",
        "r''m x",
        "r\\m x",
        "\"rm\" x",
        "$X x",
        "eval rm x",
        "{ rm x; }",
        "(rm x)",
        "if a; then rm x; fi",
        "a\nrm x",
        "nohup rm x &",
        "bash -lc \"sh -c 'rm x'\"",
        "timeout 5 rm x",
        "/bin/r? x",
        "a &&rm x",
        "{rm,x}",
        "ssh host rm x",
    ];
    for line in lines {
        assert_eq!(decided(&["deny command=rm"], &command(line)), "deny", "{line}");
    }
    for line in ["ls", "git rm x", "echo rm", "git commit -m 'rm x'", "npm run rm-old", "cat rm"] {
        assert_eq!(decided(&["deny command=rm"], &command(line)), "default", "{line}");
    }
    let push =
        ["git push", "git -C x push", "git --no-pager push origin", "cd x && git push", "git $X", "git -c a=b push"];
    for line in push {
        assert_eq!(decided(&["deny command=git push"], &command(line)), "deny", "{line}");
    }
    assert_eq!(decided(&["deny command=git push"], &command("git log push")), "default");
    for line in ["git push origin main --force", "git push --force=x", "git push --force"] {
        assert_eq!(decided(&["deny command=git push --force"], &command(line)), "deny", "{line}");
    }
    assert_eq!(decided(&["deny command=git push --force"], &command("git push")), "default");
    for line in ["rm -rf x", "rm -fr x", "rm -r -f x", "rm -r x -f"] {
        assert_eq!(decided(&["deny command=rm -rf"], &command(line)), "deny", "{line}");
    }
    assert_eq!(decided(&["deny command=rm"], &command(&"a ".repeat(20_000))), "deny", "too long to tell");
    let hidden = resolved(&call("other", json!({ "commands": ["ls", "rm x"] })), &[]);
    assert_eq!(decided(&["deny command=rm"], &hidden), "deny");
    let mut told = call("execute", json!({}));
    told.title = "Running: rm x".into();
    assert_eq!(decided(&["deny command=rm"], &resolved(&told, &[])), "deny");
}

#[test]
fn an_answer_is_remembered_for_what_it_was_about() {
    let allowed = |facts: &Facts| Remembered::of(Action::Allow, facts);
    let fits = |memory: &Option<Remembered>, facts: &Facts| memory.as_ref().unwrap().fits(Action::Allow, facts);
    let make = allowed(&command("make test"));
    assert!(fits(&make, &command("make test")));
    for line in ["make", "make test x", "make test; rm x", "make test ", "make tests"] {
        assert!(!fits(&make, &command(line)) || line.trim() == "make test", "{line}");
    }
    for line in ["make test; rm x", "env make", "cat $X", "sh x"] {
        assert_eq!(allowed(&command(line)), None, "{line}");
    }
    let edits = allowed(&on_path("edit", "/p/a"));
    assert!(fits(&edits, &on_path("edit", "/p/sub/b")));
    for path in ["/etc/x", "/p/link/x", "/p/.git/hooks/pre-commit", "/p/.env"] {
        assert!(!fits(&edits, &on_path("edit", path)), "{path}");
    }
    assert!(!fits(&edits, &on_path("delete", "/p/a")));
    let secret = allowed(&on_path("read", "/p/.env"));
    assert!(fits(&secret, &on_path("read", "/p/.env")));
    assert!(!fits(&secret, &on_path("read", "/p/other/.env")) && !fits(&secret, &on_path("read", "/p/a")));
    let odd = |input: Value| resolved(&call("other", input), &[]);
    let this = allowed(&odd(json!({ "query": "a" })));
    assert!(fits(&this, &odd(json!({ "query": "a" }))) && !fits(&this, &odd(json!({ "query": "b" }))));
    let mut unknown = call("execute", json!({}));
    unknown.title = "Bash".into();
    assert_eq!(allowed(&resolved(&unknown, &[])), None, "a command that is not told");
    let denied = Remembered::of(Action::Deny, &command("rm x")).unwrap();
    assert!(denied.fits(Action::Deny, &command("cd y && rm x z")));
    let compound = Remembered::of(Action::Deny, &command("a; b")).unwrap();
    assert!(compound.fits(Action::Deny, &command("a; b")) && !compound.fits(Action::Deny, &command("a; c")));
    assert!(!Remembered::default().fits(Action::Allow, &command("ls")), "nothing allows nothing");
}

/// A word of a shell, or of somebody who wants to get around a rule.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec![
            "git", "status", "push", "-c", "--force", "rm", "-rf", "sh", "env", "x", "/etc/passwd", "..", "=", "A=1", "'", "\"", "cat", "ls",
        ]).prop_map(str::to_owned),
        2 => prop::sample::select(vec![
            ";", "&", "|", "&&", "||", "\n", "\r", "$", "$(", ")", "`", ">", "<", "*", "?", "[", "]", "{", "}", "~", "#", "!", "\\", "^", "\t", "(",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ]
}

/// What no line has that a rule for a command allows.
fn is_special(c: char) -> bool {
    !(c.is_ascii_alphanumeric() || " _@+=:,./-%'\"".contains(c))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_with_a_special_character_is_allowed(
        start in prop::sample::select(vec!["git status", "ls", "cat", "git push", "make test", "python3 x.py"]),
        pieces in prop::collection::vec((piece(), any::<bool>()), 0..8),
    ) {
        let mut line = start.to_owned();
        for (piece, spaced) in &pieces {
            if *spaced {
                line.push(' ');
            }
            line.push_str(piece);
        }
        let facts = command(&line);
        let verdict = decided(&[&format!("allow command={start}")], &facts);
        if line.chars().any(is_special) {
            prop_assert_ne!(verdict, "allow", "{}", line);
            prop_assert_eq!(Remembered::of(Action::Allow, &facts), None);
        }
        if verdict == "allow" {
            prop_assert!(line.trim_start().starts_with(start));
            let is_absolute = line.split([' ', '=']).any(|word| word == "/etc/passwd");
            prop_assert!(!is_absolute, "{}", line);
            prop_assert!(start != "git push" || !line.contains("--force"), "{}", line);
        }
    }

    #[test]
    fn a_command_is_denied_whatever_is_around_it(
        before in prop::collection::vec(piece(), 0..5),
        join in prop::sample::select(vec![";", "&&", "||", "|", "\n", "&", "$(", "`", "("]),
        after in prop::collection::vec(piece(), 0..4),
    ) {
        // An open quote would make a text of it, which is another matter.
        let quotes = before.iter().any(|piece| piece.contains(['\'', '"', '\\', '#']));
        prop_assume!(!quotes);
        let line = format!("{} {join} rm x {}", before.join(" "), after.join(" "));
        prop_assert_eq!(decided(&["deny command=rm"], &command(&line)), "deny", "{}", line);
    }

    #[test]
    fn any_line_is_read(line in ".{0,200}") {
        command(&line);
    }
}
