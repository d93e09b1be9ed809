//! What goes along with a prompt, and what completes it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::support::scenario::{Scenario, chunk, end_turn, gate, initialized, new_session, update};
use crate::support::{Editor, ScriptedAgent, Setup, processes};

/// The smallest PNG.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

fn takes(image: bool, embedded: bool) -> Scenario {
    let prompts = json!({ "image": image, "embeddedContext": embedded });
    Scenario::new().on_initialize([initialized(json!({ "promptCapabilities": prompts }))])
}

fn setup(agent: &ScriptedAgent) -> Setup {
    Setup::new()
        .agent("scripted", agent)
        .file("a.txt", "one\ntwo\nthree\n")
        .file("sub/b c.txt", "b\n")
        .file("i.png", PNG)
        .file(".gitignore", "ignored/\n")
        .file("ignored/x.txt", "")
        // Later ones do so in the prompt by themselves; a single match would be inserted at once.
        .init("if vim.fn.has('nvim-0.11') == 0 then vim.o.completeopt = 'menuone,noselect' end")
}

fn chat_with(scenario: &Scenario) -> (Editor, ScriptedAgent) {
    let agent = ScriptedAgent::new(scenario);
    let editor = Editor::start(setup(&agent));
    editor.command("edit a.txt");
    editor.command("AgentChat open");
    editor.wait_state("idle");
    (editor, agent)
}

fn nth_prompt(agent: &ScriptedAgent, number: usize) -> Vec<Json> {
    agent.wait_received("session/prompt", number)["params"]["prompt"].as_array().unwrap().clone()
}

fn uri(editor: &Editor, path: &str) -> String {
    format!("file://{}", editor.project().canonicalize().unwrap().join(path).display())
}

/// The lines of the prompt buffer.
fn prompt_text(editor: &Editor) -> String {
    let text = editor.lua(
        "local c = require('agentchat.chats').current() return c and require('agentchat.prompt').text(c) or ''",
        json!([]),
    );
    text.as_str().unwrap().to_owned()
}

#[test]
fn an_agent_that_takes_everything_gets_texts_and_images() {
    let (editor, agent) = chat_with(&takes(true, true));
    editor.input("iread @a.txt, @\"sub/b c.txt\" and @a.txt#L2-3; see @i.png, not @param");
    editor.wait_screen("with 3 files, 1 image");
    editor.input("<C-s>");
    let text = |text: &str| json!({ "type": "text", "text": text });
    let resource = |uri: String, text: &str| json!({ "type": "resource", "resource": { "uri": uri, "text": text } });
    assert_eq!(
        nth_prompt(&agent, 1),
        [
            text("read "),
            resource(uri(&editor, "a.txt"), "one\ntwo\nthree\n"),
            text(", "),
            resource(uri(&editor, "sub/b%20c.txt"), "b\n"),
            text(" and "),
            resource(format!("{}#L2:3", uri(&editor, "a.txt")), "two\nthree\n"),
            text("; see "),
            json!({ "type": "image", "mimeType": "image/png", "data": "iVBORw0KGgoAAAANSUhEUg==", "uri": uri(&editor, "i.png") }),
            text(", not @param"),
        ]
    );
    editor.wait_transcript("see @i.png, not @param");
}

#[test]
fn an_agent_that_takes_text_gets_links_and_the_user_is_told_before() {
    let (editor, agent) = chat_with(&takes(false, false));
    editor.input("isee @a.txt @i.png @a.txt#L1-1");
    editor.wait_screen("scripted takes no images:");
    editor.wait_screen("i.png as a link");
    editor.wait_screen("takes files as links");
    editor.input("<C-s>");
    let link = |name: &str| json!({ "type": "resource_link", "name": name, "uri": uri(&editor, name) });
    let text = |text: &str| json!({ "type": "text", "text": text });
    assert_eq!(
        nth_prompt(&agent, 1),
        [text("see "), link("a.txt"), text(" "), link("i.png"), text(" "), text("\n@a.txt#L1-1:\n```\none\n```\n")]
    );
    editor.wait_transcript("scripted takes no images: i.png goes as a link.");
}

#[test]
fn the_text_of_a_buffer_with_unsaved_changes_goes_along() {
    let (editor, agent) = chat_with(&takes(true, true));
    editor.lua("vim.api.nvim_buf_set_lines(vim.fn.bufnr('a.txt'), 0, 1, true, { 'changed' })", json!([]));
    editor.lua("vim.fn.bufload(vim.fn.bufadd('new.txt'))", json!([]));
    editor.lua("vim.api.nvim_buf_set_lines(vim.fn.bufnr('new.txt'), 0, -1, true, { 'new' })", json!([]));
    editor.prompt("@a.txt @new.txt");
    let sent = nth_prompt(&agent, 1);
    assert_eq!(sent[0]["resource"]["text"], "changed\ntwo\nthree\n");
    assert_eq!(sent[2]["resource"]["text"], "new\n");
}

#[test]
fn what_is_too_large_or_no_text_is_linked() {
    let (editor, agent) = chat_with(&takes(true, true));
    fs::write(editor.project().join("big.txt"), "x".repeat(600 * 1024)).unwrap();
    fs::write(editor.project().join("binary"), b"\xff\xfe\0\x01").unwrap();
    editor.input("i@big.txt @binary @sub");
    editor.wait_screen("big.txt is large: as a link");
    editor.input("<C-s>");
    let kinds: Vec<Json> = nth_prompt(&agent, 1).iter().map(|block| block["type"].clone()).collect();
    assert_eq!(kinds, ["resource_link", "text", "resource_link", "text", "resource_link"]);
    editor.wait_transcript("big.txt is too large to go along");
}

#[test]
fn lines_are_added_from_the_buffer_and_followed_when_it_changes() {
    let (editor, agent) = chat_with(&takes(true, true));
    editor.command("wincmd p");
    editor.command("2,3AgentChat add");
    editor.command("AgentChat add i.png");
    assert_eq!(prompt_text(&editor), "@a.txt#L2-3 @i.png ");
    editor.wait_screen("with 2 lines, 1 image");
    editor.lua("vim.api.nvim_buf_set_lines(vim.fn.bufnr('a.txt'), 0, 0, true, { 'zero' })", json!([]));
    editor.lua("require('agentchat').open()", json!([]));
    editor.input("<Esc><CR>");
    let sent = nth_prompt(&agent, 1);
    assert_eq!(sent[0]["resource"]["text"], "two\nthree\n");
    assert_eq!(sent[0]["resource"]["uri"], format!("{}#L3:4", uri(&editor, "a.txt")));
    editor.wait_state("idle");
    editor.command("wincmd p");
    editor.command("1AgentChat prompt explain");
    let sent = nth_prompt(&agent, 2);
    assert_eq!((&sent[0]["text"], &sent[1]["resource"]["text"]), (&json!("explain\n"), &json!("zero\n")));
    editor.command("new");
    editor.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, { 'no', 'name' })", json!([]));
    editor.command("2AgentChat prompt what");
    assert_eq!(nth_prompt(&agent, 3)[1]["resource"]["text"], "name\n");
}

#[test]
fn words_stand_for_what_neovim_knows() {
    let (editor, agent) = chat_with(&takes(false, true));
    editor.command("wincmd p");
    editor.input("ggVj<Esc>");
    editor.lua(
        r"vim.diagnostic.set(vim.api.nvim_create_namespace('t'), vim.fn.bufnr('a.txt'), { { lnum = 1, col = 2, message = 'wrong\nvery', severity = 1, source = 'x' } })
        vim.fn.setqflist({ { filename = 'a.txt', lnum = 3, col = 1, text = 'look' } })
        vim.fn.bufadd('i.png')",
        json!([]),
    );
    editor.lua("require('agentchat').open()", json!([]));
    editor.input("i@selection @diagnostics @quickfix @buffers @diff");
    editor.wait_screen("with selection 2 lines, 1 diagnostic,");
    editor.wait_screen("1 quickfix entry, 1 buffer, diff");
    editor.input("<C-s>");
    let sent = nth_prompt(&agent, 1);
    let texts: Vec<&Json> = sent.iter().step_by(2).map(|block| &block["resource"]["text"]).collect();
    assert_eq!(texts[0], "one\ntwo\n");
    assert_eq!(texts[1], "a.txt:2:3: error: wrong very (x)\n");
    assert_eq!(texts[2], "a.txt:3:1: look\n");
    assert_eq!(texts[3], "one\ntwo\nthree\n");
    editor.wait_transcript("@diff does not go along");
    assert_eq!(sent.last().unwrap()["text"], " @diff");
}

#[test]
fn the_diff_is_gits() {
    let (editor, agent) = chat_with(&takes(false, true));
    let git = |arguments: &[&str]| {
        let output = std::process::Command::new("git")
            .current_dir(editor.project())
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-q", "-m", "x"]);
    fs::write(editor.project().join("a.txt"), "one\n2\nthree\n").unwrap();
    editor.prompt("review @diff");
    let sent = nth_prompt(&agent, 1);
    let text = sent[1]["resource"]["text"].as_str().unwrap();
    assert!(text.contains("-two\n+2\n"), "{text}");
}

#[test]
fn a_prompt_that_is_taken_back_is_what_the_user_wrote() {
    let scenario = takes(true, true).on_prompt([gate("end"), end_turn()]);
    let (editor, agent) = chat_with(&scenario);
    editor.prompt("first");
    editor.wait_state("running");
    editor.input("i@a.txt and @selection<C-s>");
    editor.wait_until("it waits", |e| e.status()["queued"] == 1);
    editor.input("<C-p>");
    editor.wait_until("it is back", |e| prompt_text(e) == "@a.txt and @selection");
    agent.open_gate("end");
    editor.wait_state("idle");
    assert_eq!(agent.received("session/prompt").len(), 1);
}

fn pum(editor: &Editor) -> Vec<String> {
    let words = editor.lua(
        "return vim.tbl_map(function(i) return i.abbr end, vim.fn.complete_info({ 'items' }).items or {})",
        json!([]),
    );
    words.as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
}

fn wait_for_server(editor: &Editor) {
    editor.wait_until("the language server is there", |e| {
        e.lua("return #vim.lsp.get_clients({ bufnr = 0, name = 'agentchat' })", json!([])) == 1
    });
}

/// Asks for completion as the key does that every Neovim has, and waits for what is offered.
fn complete(editor: &Editor, wanted: &str) -> Vec<String> {
    wait_for_server(editor);
    // Whoever asks again is not interested in the answer to what they asked before.
    let mut asked: Option<Instant> = None;
    editor.wait(&format!("{wanted} is offered"), |e| {
        let words = pum(e);
        if words.iter().any(|word| word == wanted) {
            return Some(words);
        }
        if asked.is_none_or(|asked| asked.elapsed() > Duration::from_secs(3)) {
            e.input("<C-x><C-o>");
            asked = Some(Instant::now());
        }
        None
    })
}

#[test]
fn files_and_words_are_completed_after_an_at() {
    let (editor, _agent) = chat_with(&takes(true, true));
    editor.input("isee @bc");
    assert_eq!(complete(&editor, "sub/b c.txt"), ["sub/b c.txt"]);
    editor.input("<C-n><C-y>");
    editor.wait_until("it is written with quotes", |e| prompt_text(e) == "see @\"sub/b c.txt\"");
    editor.input(" @");
    let offered = complete(&editor, "a.txt");
    assert_eq!(offered[..5], ["@buffers", "@diagnostics", "@diff", "@quickfix", "@selection"]);
    assert!(!offered.iter().any(|path| path.contains("ignored")), "{offered:?}");
}

#[test]
fn commands_of_the_agent_are_completed_at_the_start() {
    let commands = json!([
        { "name": "test", "description": "Runs the tests", "input": { "hint": "which ones" } },
        { "name": "plan", "description": "Makes a plan" },
    ]);
    let early = update(json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands }));
    let (editor, agent) = chat_with(&takes(true, true).on_new_session([early, new_session()]));
    editor.input("i/te");
    assert_eq!(complete(&editor, "/test"), ["/test"]);
    editor.wait_screen("which ones");
    editor.input("<C-n><C-y>this<C-s>");
    assert_eq!(nth_prompt(&agent, 1), [json!({ "type": "text", "text": "/test this" })]);
    editor.input("a word /");
    editor.wait_until("typed", |e| prompt_text(e) == "a word /");
    editor.input("<C-x><C-o>");
    assert_eq!(pum(&editor), [""; 0]);
}

#[test]
fn a_trigger_character_shows_completions_by_itself() {
    let (editor, _agent) = chat_with(&takes(true, true));
    let shows_by_itself = editor.lua("return vim.lsp.completion ~= nil", json!([])) == json!(true);
    editor.input("i");
    wait_for_server(&editor);
    editor.input("@");
    if shows_by_itself {
        editor.wait_until("files are offered", |e| pum(e).iter().any(|word| word == "a.txt"));
        assert_eq!(prompt_text(&editor), "@", "nothing is chosen");
        editor.input("sub");
        editor.wait_until("what fits is offered", |e| pum(e).first().is_some_and(|word| word == "sub/"));
    } else {
        // Neovim 0.10 completes when it is asked to.
        complete(&editor, "a.txt");
    }
}

/// What a completion plugin does that looks for language servers when insert mode begins, and only then.
const LOOKS_ON_INSERT_ENTER: &str = "
    package.loaded['cmp_nvim_lsp'] = true
    found = {}
    vim.api.nvim_create_autocmd('InsertEnter', {
      group = vim.api.nvim_create_augroup('cmp_nvim_lsp', {}),
      callback = function()
        for _, client in ipairs(vim.lsp.get_clients({ bufnr = 0 })) do
          if client.initialized and client.server_capabilities.completionProvider then
            found[client.name] = true
          end
        end
      end,
    })";

#[test]
fn a_plugin_that_looks_for_servers_when_insert_mode_begins_finds_it_the_first_time() {
    let (editor, _agent) = chat_with(&takes(true, true));
    editor.lua(LOOKS_ON_INSERT_ENTER, json!([]));
    wait_for_server(&editor);
    editor.input("i");
    editor.wait_until("the plugin knows the server", |e| e.lua("return found.agentchat == true", json!([])) == true);
}

#[test]
fn a_plugin_finds_the_server_also_when_insert_mode_begins_before_it_is_there() {
    let (editor, _agent) = chat_with(&takes(true, true));
    editor.lua(LOOKS_ON_INSERT_ENTER, json!([]));
    // One piece of input: nothing that is scheduled comes between.
    editor.input(":AgentChat new<CR>i");
    editor.wait_until("the plugin knows the server", |e| e.lua("return found.agentchat == true", json!([])) == true);
}

#[test]
fn a_completion_plugin_that_is_loaded_late_is_not_disturbed_by_neovims_own() {
    let (editor, _agent) = chat_with(&takes(true, true));
    wait_for_server(&editor);
    editor.input("i@");
    editor.wait_until("typed", |e| prompt_text(e) == "@");
    editor.input("<Esc>");
    editor.lua("package.loaded['blink.cmp'] = {}", json!([]));
    editor.input("S@");
    editor.wait_until("typed", |e| prompt_text(e) == "@");
    // Whatever was asked of the helper for this `@` is answered before a later question.
    let answered = "vim.lsp.buf_request(0, 'textDocument/completion', vim.lsp.util.make_position_params(0, 'utf-8'), function(_, r)
          asked = #r.items
        end)";
    editor.lua(answered, json!([]));
    editor.wait_until("the server answered", |e| e.lua("return asked or 0", json!([])) != 0);
    assert_eq!(pum(&editor), [""; 0]);
    assert_eq!(editor.lua("return vim.fn.pumvisible()", json!([])), 0);
}

#[test]
fn commands_are_offered_as_something_that_takes_no_brackets() {
    let commands = json!([{ "name": "plan", "description": "Makes a plan" }]);
    let early = update(json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands }));
    let (editor, _agent) = chat_with(&takes(true, true).on_new_session([early, new_session()]));
    editor.input("i/");
    wait_for_server(&editor);
    let ask = "vim.lsp.buf_request(0, 'textDocument/completion', vim.lsp.util.make_position_params(0, 'utf-8'),
          function(_, result) item = result.items[1] end)";
    editor.wait_until("the server answered", |e| {
        e.lua(ask, json!([]));
        e.lua("return item ~= nil", json!([])) == true
    });
    let functions = "local kinds = vim.lsp.protocol.CompletionItemKind
        return item.kind == kinds.Function or item.kind == kinds.Method";
    assert_eq!(editor.lua(functions, json!([])), false);
}

#[test]
fn no_key_waits_for_a_helper_that_is_stopped_and_then_it_answers() {
    let (editor, _agent) = chat_with(&takes(true, true));
    let helpers: Vec<i32> = editor
        .processes()
        .into_iter()
        .filter(|process| process.command.contains("agentchat nvim"))
        .map(|process| process.pid)
        .collect();
    let signal = |name: &str| {
        for pid in &helpers {
            let status = std::process::Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
            assert!(status.success());
        }
    };
    editor.input("i");
    wait_for_server(&editor);
    signal("-STOP");
    let ((), delay) = editor.rtt(|e| {
        for character in "@a.t @sub/ /x @".chars() {
            e.input(&character.to_string());
            e.input("<C-x><C-o>");
        }
        e.wait_until("everything is typed", |e| prompt_text(e) == "@a.t @sub/ /x @");
        e.wait_screen("@a.t @sub/ /x @");
    });
    assert!(delay.max < Duration::from_millis(500), "a key waited {:?}", delay.max);
    signal("-CONT");
    complete(&editor, "a.txt");
    assert!(processes::is_alive(helpers[0]));
}

#[test]
fn a_hundred_thousand_files_are_completed_without_a_pause() {
    let (editor, _agent) = chat_with(&takes(true, true));
    for folder in 0..100 {
        let folder = editor.project().join(format!("many/folder{folder}"));
        fs::create_dir_all(&folder).unwrap();
        for file in 0..1000 {
            fs::File::create(folder.join(format!("file_{file}.txt"))).unwrap();
        }
    }
    fs::write(editor.project().join("many/folder57/the_needle.rs"), "").unwrap();
    editor.input("isee @needle");
    let (took, delay) = editor.rtt(|e| {
        let start = Instant::now();
        complete(e, "many/folder57/the_needle.rs");
        start.elapsed()
    });
    assert!(delay.max < Duration::from_millis(500), "a key waited {:?}", delay.max);
    assert!(took < Duration::from_secs(20), "the file was offered after {took:?}");
}

#[test]
fn the_path_of_an_image_that_is_dragged_in_becomes_a_mention() {
    let (editor, _agent) = chat_with(&takes(true, true));
    fs::write(editor.project().join("my shot.png"), PNG).unwrap();
    let project = editor.project();
    let pasted = |text: &str| {
        editor.input("<Esc>ggdGi");
        editor.lua("vim.api.nvim_paste(..., true, -1)", json!([text]));
        prompt_text(&editor)
    };
    let path = project.join("my shot.png").display().to_string();
    let mention = "@\"my shot.png\" ";
    assert_eq!(pasted(&path), mention);
    assert_eq!(pasted(&format!("'{path}'\n")), mention);
    assert_eq!(pasted(&path.replace(' ', "\\ ")), mention);
    assert_eq!(pasted(&format!("file://{}", path.replace(' ', "%20"))), mention);
    assert_eq!(pasted(&format!("'{path}' {}/i.png", project.display())), "@\"my shot.png\" @i.png ");
    assert_eq!(pasted(&format!("{path} is a path")), format!("{path} is a path"));
    assert_eq!(pasted("it's\nplain 'text"), "it's\nplain 'text");
}

#[test]
fn the_clipboards_image_is_pasted_without_waiting() {
    let agent = ScriptedAgent::new(&takes(true, true));
    let editor = Editor::start(
        setup(&agent)
            .env("WAYLAND_DISPLAY", "none")
            .env("DISPLAY", "")
            .init("vim.env.PATH = vim.fn.getcwd() .. '/bin:' .. vim.env.PATH"),
    );
    let program = editor.project().join("bin/wl-paste");
    fs::create_dir_all(editor.project().join("bin")).unwrap();
    fs::write(&program, "#!/bin/sh\nuntil [ -e go ]; do sleep 0.01; done\ncat i.png\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    editor.command("AgentChat open");
    editor.wait_state("idle");
    editor.input("ilook <Plug>(agentchat-paste-image)");
    editor.input("here");
    editor.wait_until("typing goes on", |e| prompt_text(e).contains("here"));
    fs::write(editor.project().join("go"), "").unwrap();
    editor.wait_screen("1 image");
    editor.input("<C-s>");
    let sent = nth_prompt(&agent, 1);
    assert!(sent.iter().any(|block| block["mimeType"] == "image/png"), "{sent:?}");
}

#[test]
fn quitting_does_not_wait_for_the_language_server() {
    let scenario = takes(true, true).on_prompt([chunk("hi"), end_turn()]);
    let (mut editor, _agent) = chat_with(&scenario);
    editor.input("i@");
    complete(&editor, "a.txt");
    editor.input("<Esc>");
    let (status, took) = editor.quit();
    assert!(status.success());
    assert!(took < Duration::from_secs(2), "quitting took {took:?}");
}

#[test]
fn mentions_are_read_as_they_are_written_and_nothing_of_a_prompt_is_lost() {
    let (editor, _agent) = chat_with(&takes(true, true));
    let names = |line: &str| {
        let found = editor.lua(
            "return vim.tbl_map(function(m) return { m.name, m.first or 0, m.last or 0 } end, require('agentchat.mentions').in_line(...))",
            json!([line]),
        );
        found.to_string()
    };
    for (line, wanted) in [
        ("@a.txt", r#"[["a.txt",0,0]]"#),
        ("see (@a.txt), @b/c.rs. Then @d!", r#"[["a.txt",0,0],["b/c.rs",0,0],["d",0,0]]"#),
        ("@\"a b.txt\"#L3-7 @c#L5 @d#L9-2", r#"[["a b.txt",3,7],["c",5,5],["d",9,9]]"#),
        ("mail me@example.org or @ or @\"open", "[]"),
        ("ä@x @ä/ü.txt", r#"[["ä/ü.txt",0,0]]"#),
    ] {
        assert_eq!(names(line), wanted, "{line}");
    }
    for text in
        ["@a.txt", "a\n\n@selection and @buffers\n@b\n", " @diff@x @\"q r\"#L1-2. @buffer:1#L1-2 \u{e4} @", "", "\n"]
    {
        let written = editor.lua(
            "local out = '' for _, p in ipairs(require('agentchat.context').parts(require('agentchat.chats').current(), ...)) do out = out .. (p.label or p.text) end return out",
            json!([text]),
        );
        assert_eq!(written, json!(text));
    }
}

#[test]
fn a_script_gives_blocks_and_wrong_ones_are_refused() {
    let (editor, agent) = chat_with(&takes(true, true));
    editor.lua(
        "require('agentchat').prompt({ { type = 'text', text = 'see' }, { type = 'file', path = vim.fn.getcwd() .. '/a.txt', first = 3, last = 3 }, { type = 'image', path = 'i.png' } })",
        json!([]),
    );
    let kinds: Vec<Json> = nth_prompt(&agent, 1).iter().map(|block| block["type"].clone()).collect();
    assert_eq!(kinds, ["text", "resource", "text", "image"]);
    let error = editor.try_lua("require('agentchat').prompt({ { type = 'dance' } })", json!([])).unwrap_err();
    assert!(error.contains("block 1 is neither a text nor a file"), "{error}");
}
