//! Functions of the user's or the project's, each with a program that does it: `tools.json`, in the form of
//! `agentchat chat --tools-file`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Outcome;
use crate::chat::{self, Tools};
use crate::responses::Tool;

/// The file, in the configuration folder and in `.agentchat` of the project.
const FILE: &str = "tools.json";

/// The functions that have a program.
#[derive(Debug, Clone, Default)]
pub(in crate::agent) struct Programs {
    offered: Vec<Tool>,
    commands: BTreeMap<String, Vec<String>>,
    /// What is wrong with a file, for the user.
    pub(in crate::agent) problems: Vec<String>,
}

impl Programs {
    /// Those of the user's folder and of the project in `folder`, which comes first where both have a name.
    pub(in crate::agent) fn load(user: Option<&Path>, folder: &Path) -> Self {
        let paths: Vec<PathBuf> = [Some(folder.join(".agentchat").join(FILE)), user.map(|user| user.join(FILE))]
            .into_iter()
            .flatten()
            .collect();
        let mut all = Self::default();
        for path in paths.into_iter().filter(|path| path.is_file()) {
            match chat::tools_of(&path) {
                Ok(tools) => all.add(tools),
                Err(problem) => all.problems.push(problem),
            }
        }
        all
    }

    fn add(&mut self, mut tools: Tools) {
        for tool in tools.offered {
            let Tool::Other(function) = &tool else { continue };
            let Some(name) = function.get("name").and_then(Value::as_str).map(str::to_owned) else { continue };
            let is_free = !self.commands.contains_key(&name) && !super::NAMES.contains(&name.as_str());
            // One without a program is nothing that the agent could do.
            if let Some(program) = tools.programs.remove(&name).filter(|_| is_free) {
                self.commands.insert(name, program);
                self.offered.push(tool);
            }
        }
    }

    pub(in crate::agent) fn offered(&self) -> &[Tool] {
        &self.offered
    }

    pub(in crate::agent) fn knows(&self, name: &str) -> bool {
        self.commands.contains_key(name)
    }

    pub(in crate::agent) fn names(&self) -> impl Iterator<Item = &str> {
        self.commands.keys().map(String::as_str)
    }

    /// The program of a function, as the user would type it.
    pub(in crate::agent) fn line(&self, name: &str) -> String {
        self.commands.get(name).map(|words| words.join(" ")).unwrap_or_default()
    }

    /// Runs a function with these arguments, in JSON, in the project's folder.
    pub(in crate::agent) async fn run(&self, name: &str, arguments: &str, folder: &Path) -> Outcome {
        let Some(program) = self.commands.get(name) else {
            return Outcome::failed(format!("there is no function {name}"));
        };
        match chat::execute(program, arguments, Some(folder)).await {
            Ok((text, code)) => Outcome {
                content: Some(vec![super::text_content(&text)]),
                text,
                is_failure: code != Some(0),
                ..Outcome::default()
            },
            Err(error) => Outcome::failed(format!("{} could not be run: {error}", program[0])),
        }
    }
}
