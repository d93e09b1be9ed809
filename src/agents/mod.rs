//! Agents by name: those that are known ([`known`]), those that can be started here, and a look at each of them
//! ([`probe`], [`list`]).

pub mod known;
pub mod list;
pub mod probe;

use std::collections::BTreeMap;
use std::path::Path;

pub use known::{KNOWN, Known, known, quirks_of};

use crate::core::config::AgentSpec;

/// The built-in agent, which needs an endpoint for its model.
pub const BUILT_IN: &str = "agentchat";
/// The built-in guide, which needs nothing.
pub const TOUR: &str = "tour";

impl Known {
    fn spec(&self) -> AgentSpec {
        AgentSpec { command: self.command.iter().map(|&word| word.to_owned()).collect(), ..AgentSpec::default() }
    }
}

/// The agents that are part of the program itself, which is `own`.
fn built_in(own: &Path) -> [(&'static str, AgentSpec); 2] {
    let spec = |word: &str| AgentSpec {
        command: vec![own.to_string_lossy().into_owned(), word.to_owned()],
        ..AgentSpec::default()
    };
    [(BUILT_IN, spec("agent")), (TOUR, spec("tour"))]
}

/// The agents that can be started here, and the default one: the user's by name, and the known ones that `is_found`;
/// `own` is this program, which serves the built-in ones; `has_endpoint` is whether its agent would have a model.
pub fn available(
    configured: BTreeMap<String, AgentSpec>,
    default: Option<String>,
    own: &Path,
    is_found: impl Fn(&str) -> bool,
    has_endpoint: bool,
) -> (BTreeMap<String, AgentSpec>, String) {
    let found: Vec<&Known> = KNOWN.iter().filter(|known| is_found(known.command[0])).collect();
    let only_configured = match configured.keys().collect::<Vec<_>>().as_slice() {
        [only] => Some((*only).clone()),
        _ => None,
    };
    let default = default
        .or(only_configured)
        .or_else(|| found.first().map(|known| known.name.to_owned()))
        .unwrap_or_else(|| if has_endpoint { BUILT_IN } else { TOUR }.to_owned());
    let mut agents = configured;
    for known in found {
        agents.entry(known.name.to_owned()).or_insert_with(|| known.spec());
    }
    for (name, spec) in built_in(own) {
        agents.entry(name.to_owned()).or_insert(spec);
    }
    (agents, default)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn default_of(configured: &[&str], default: Option<&str>, found: &[&str]) -> String {
        default_with(configured, default, found, false)
    }

    fn default_with(configured: &[&str], default: Option<&str>, found: &[&str], has_endpoint: bool) -> String {
        let configured = configured.iter().map(|&name| (name.to_owned(), AgentSpec::default())).collect();
        let is_found = |program: &str| found.contains(&program);
        let own = Path::new("/bin/agentchat");
        let (agents, default) = available(configured, default.map(str::to_owned), own, is_found, has_endpoint);
        assert_eq!(agents[TOUR].command, ["/bin/agentchat", "tour"]);
        assert_eq!(agents[BUILT_IN].command, ["/bin/agentchat", "agent"]);
        default
    }

    #[test]
    fn the_tour_is_the_default_only_where_there_is_nothing_else() {
        assert_eq!(default_of(&[], None, &[]), TOUR);
        assert_eq!(default_of(&[], None, &["opencode", "gemini"]), "gemini-cli");
        assert_eq!(default_of(&["mine"], None, &["gemini"]), "mine");
        assert_eq!(default_of(&["mine", "other"], None, &["gemini"]), "gemini-cli");
        assert_eq!(default_of(&["mine", "other"], Some("other"), &["gemini"]), "other");
        assert_eq!(default_with(&[], None, &[], true), BUILT_IN, "an endpoint makes an agent of it");
        assert_eq!(default_with(&[], None, &["gemini"], true), "gemini-cli");
    }
}
