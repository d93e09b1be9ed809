//! A prompt and its answer, from the window to the agent and back.

use crate::support::scenario::{Scenario, chunk, end_turn, gate, repeat};
use crate::support::{Editor, ScriptedAgent, Setup};

#[test]
fn an_answer_streams_into_the_transcript() {
    let scenario =
        Scenario::new().on_prompt([chunk("first words"), gate("more"), repeat(3, [chunk(" $i")]), end_turn()]);
    let agent = ScriptedAgent::new(&scenario);
    let editor = Editor::start(Setup::new().agent("scripted", &agent));
    editor.command("AgentChat open");
    editor.wait_state("idle");
    editor.prompt("a question");
    editor.wait_screen("first words");
    editor.wait_state("running");
    agent.open_gate("more");
    editor.wait_transcript("first words 0 1 2");
    editor.wait_state("idle");
    let sent = agent.wait_received("session/prompt", 1);
    assert_eq!(sent["params"]["prompt"][0]["text"], "a question");
    assert_eq!(editor.events("AgentChatTurnEnd").len(), 1);
}
