//! Nothing typed is ever lost, and nothing is ever answered by it: random keys while places and permission requests arrive.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::follow::{at, beside, follow_state, lines, shown};
use crate::permissions::{ASK, cancelled, float};
use crate::support::scenario::{Step, ask_permission, delay, repeat};
use crate::support::{Editor, Setup};

const KEYS: usize = 2_000;
/// Of places and of requests, one each.
const INTERVAL: Duration = Duration::from_millis(20);

/// Numbers that look like chance and follow from their seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % limit
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// The seed of this run: `$AGENTCHAT_SEED`, or one that is always the same.
fn seed() -> u64 {
    std::env::var("AGENTCHAT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(11)
}

/// Keys in insert, normal and command-line mode, those that answer a request among them in each.
fn keys(seed: u64) -> Vec<String> {
    const TEXT: [&str; 14] = ["y", "n", "1", "2", "9", "q", "a", "e", "t", "x", " ", "<CR>", "<BS>", "."];
    const NORMAL: [&str; 24] = [
        "x", "u", "j", "k", "yy", "yw", "p", "dd", "w", "0", "J", "n", "N", "2j", "1G", "9k", "ma", "'a", "vj<Esc>",
        "Vjy", "qaq", "gg", "<C-r>", "~",
    ];
    let mut chance = Chance(seed);
    let mut keys = Vec::new();
    while keys.len() < KEYS {
        match chance.below(5) {
            0 | 1 => {
                keys.push(chance.one_of(&["o", "A", "i", "O"]).to_owned());
                let length = chance.below(30);
                keys.extend((0..length).map(|_| chance.one_of(&TEXT).to_owned()));
                keys.push("<Esc>".to_owned());
            }
            2 => {
                let command = chance.one_of(&["call setline(1, getline(1) . 'y1n')", "s/e/y/e", "2", "normal! yyp"]);
                keys.push(":".to_owned());
                keys.extend(command.chars().map(String::from));
                keys.push(chance.one_of(&["<CR>", "<Esc>"]).to_owned());
            }
            3 => {
                keys.extend("/mine 1".chars().map(String::from));
                keys.push("<CR>".to_owned());
            }
            _ => keys.push(chance.one_of(&NORMAL).to_owned()),
        }
    }
    keys
}

/// What a Neovim has in its files, by their names.
fn texts(editor: &Editor) -> Json {
    editor.lua(
        "local all = {} for _, b in ipairs(vim.api.nvim_list_bufs()) do local n = vim.fs.basename(vim.api.nvim_buf_get_name(b))
        if vim.bo[b].buftype == '' and vim.api.nvim_buf_is_loaded(b) and n:find('%.txt$') then all[n] = vim.api.nvim_buf_get_lines(b, 0, -1, true) end end
        return all",
        json!([]),
    )
}

fn type_all(editor: &Editor, keys: &[String], pause: Duration) {
    for some in keys.chunks(5) {
        editor.input(&some.concat());
        std::thread::sleep(pause);
    }
    editor.input("<Esc><Esc>");
    editor.wait_until("normal mode", |e| e.lua("return vim.api.nvim_get_mode().mode", json!([])) == json!("n"));
}

/// A place and a request, over and over.
fn traffic() -> [Step; 1] {
    [repeat(
        400,
        [
            at("t$i", "a.txt", 250),
            ask_permission("p$i", "Thing $i").without_waiting(),
            delay(INTERVAL),
            at("u$i", "b.txt", 130),
            ask_permission("q$i", "Other $i").without_waiting(),
            delay(INTERVAL),
        ],
    )]
}

#[test]
fn two_thousand_keys_while_places_and_requests_come_are_exactly_what_was_typed() {
    let seed = seed();
    let keys = keys(seed);
    let plain = Editor::start(Setup::new().file("mine.txt", lines("mine", 200)).arg("mine.txt"));
    type_all(&plain, &keys, Duration::ZERO);
    let expected = texts(&plain);
    drop(plain);
    let (editor, agent) = beside(traffic());
    // The user is in one of two windows; the other follows.
    editor.lua("vim.api.nvim_set_current_win(_G.code) vim.cmd('belowright split | resize 8')", json!([]));
    editor.lua("_G.mine = vim.api.nvim_get_current_win()", json!([]));
    agent.open_gate("go");
    editor.wait_until("it follows, and asks", |e| shown(e).0 != "mine.txt" && float(e).is_some());
    type_all(&editor, &keys, INTERVAL);

    let seed = format!("with AGENTCHAT_SEED={seed}");
    assert_eq!(follow_state(&editor), "on", "{seed}: {}", editor.messages());
    let after = texts(&editor);
    assert_eq!(after["mine.txt"], expected["mine.txt"], "{seed}");
    for name in ["a", "b"] {
        let expected: Vec<String> = lines(name, 300).lines().map(str::to_owned).collect();
        let file = format!("{name}.txt");
        assert!(after[&file].is_null() || after[&file] == json!(expected), "{seed}: {file} is as it was");
    }
    assert_eq!(editor.lua("return vim.api.nvim_get_current_win() == _G.mine", json!([])), json!(true), "{seed}");
    let jumps = editor.events("AgentChatFollow").iter().filter(|event| event["path"].is_string()).count();
    assert!(jumps > 10, "{seed}: {jumps} jumps");

    assert!(agent.answers(ASK).is_empty(), "{seed}: a key answered {:?}", agent.answers(ASK));
    let asked = agent.unanswered().len();
    assert!(asked > 100, "{seed}: {asked} requests came while keys were typed");
    assert!(float(&editor).is_some_and(|window| !window.current), "{seed}");
    editor.command("AgentChat cancel");
    editor.wait_until(&format!("{seed}: every request answered"), |_| agent.unanswered().is_empty());
    assert!(agent.answers(ASK).iter().all(|answer| answer["result"] == cancelled()), "{seed}");
    assert!(agent.stray_answers().is_empty(), "{seed}");
    assert!(float(&editor).is_none(), "{seed}");
}
