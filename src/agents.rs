//! The agents that are known by name. Data, in one place; everything else treats all agents alike.

use std::collections::BTreeMap;
use std::path::Path;

use crate::core::config::AgentSpec;

/// The built-in guide, which needs nothing.
pub const TOUR: &str = "tour";

/// An agent that is offered when its program is found.
struct Known {
    name: &'static str,
    command: &'static [&'static str],
}

/// In the order in which one becomes the default.
const KNOWN: &[Known] = &[
    Known { name: "claude-agent-acp", command: &["claude-agent-acp"] },
    Known { name: "codex-acp", command: &["codex-acp"] },
    Known { name: "gemini-cli", command: &["gemini", "--acp"] },
    Known { name: "opencode", command: &["opencode", "acp"] },
];

/// The agents that can be started here, and the default one: the user's by name, and the known ones that `is_found`;
/// `own` is this program, which serves the tour.
pub fn available(
    configured: BTreeMap<String, AgentSpec>,
    default: Option<String>,
    own: &Path,
    is_found: impl Fn(&str) -> bool,
) -> (BTreeMap<String, AgentSpec>, String) {
    let found: Vec<&Known> = KNOWN.iter().filter(|known| is_found(known.command[0])).collect();
    let only_configured = match configured.keys().collect::<Vec<_>>().as_slice() {
        [only] => Some((*only).clone()),
        _ => None,
    };
    let default = default
        .or(only_configured)
        .or_else(|| found.first().map(|known| known.name.to_owned()))
        .unwrap_or_else(|| TOUR.to_owned());
    let mut agents = configured;
    for known in found {
        agents.entry(known.name.to_owned()).or_insert_with(|| AgentSpec {
            command: known.command.iter().map(|&word| word.to_owned()).collect(),
            ..AgentSpec::default()
        });
    }
    agents.entry(TOUR.to_owned()).or_insert_with(|| AgentSpec {
        command: vec![own.to_string_lossy().into_owned(), "agent".to_owned()],
        ..AgentSpec::default()
    });
    (agents, default)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn default_of(configured: &[&str], default: Option<&str>, found: &[&str]) -> String {
        let configured = configured.iter().map(|&name| (name.to_owned(), AgentSpec::default())).collect();
        let (agents, default) =
            available(configured, default.map(str::to_owned), Path::new("/bin/agentchat"), |program| {
                found.contains(&program)
            });
        assert!(agents.contains_key(TOUR));
        default
    }

    #[test]
    fn the_tour_is_the_default_only_where_there_is_nothing_else() {
        assert_eq!(default_of(&[], None, &[]), TOUR);
        assert_eq!(default_of(&[], None, &["opencode", "gemini"]), "gemini-cli");
        assert_eq!(default_of(&["mine"], None, &["gemini"]), "mine");
        assert_eq!(default_of(&["mine", "other"], None, &["gemini"]), "gemini-cli");
        assert_eq!(default_of(&["mine", "other"], Some("other"), &["gemini"]), "other");
    }
}
