//! Where the key of a profile comes from. It goes from there to the endpoint and nowhere else.

use std::process::Stdio;
use std::time::Duration;

use super::{Profile, ProfileError};
use crate::responses::Key;

/// How long a command may take that prints a key; it may ask the user for a passphrase.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(1);

/// What is known of a profile's key without asking for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyState {
    /// None is configured.
    NotNeeded,
    /// The variable is set.
    InVariable(String),
    /// The variable is not set, and there is no command.
    MissingVariable(String),
    /// This program prints it.
    FromCommand(String),
}

/// Where the profile's key would come from.
pub fn key_state(profile: &Profile) -> KeyState {
    let command = profile.key_command.first();
    match &profile.key_env {
        Some(name) if variable(name).is_some() => KeyState::InVariable(name.clone()),
        Some(name) if command.is_none() => KeyState::MissingVariable(name.clone()),
        _ => command.map_or(KeyState::NotNeeded, |program| KeyState::FromCommand(program.clone())),
    }
}

fn variable(name: &str) -> Option<Key> {
    Key::new(&std::env::var(name).ok()?)
}

pub(super) async fn key_of(name: &str, profile: &Profile) -> Result<Option<Key>, ProfileError> {
    match key_state(profile) {
        KeyState::NotNeeded => Ok(None),
        KeyState::InVariable(name) => Ok(variable(&name)),
        KeyState::MissingVariable(variable) => Err(ProfileError::Key(format!(
            "API Key is required: profile {name:?} wants it in {variable}, which is not set"
        ))),
        KeyState::FromCommand(_) => from_command(name, &profile.key_command).await.map(Some),
    }
}

async fn from_command(profile: &str, command: &[String]) -> Result<Key, ProfileError> {
    let failed = |why: String| {
        let program = command.first().map_or("", String::as_str);
        ProfileError::Key(format!("API Key is required: the key_command {program:?} of profile {profile:?} {why}"))
    };
    let (program, arguments) = command.split_first().ok_or_else(|| failed("is empty".to_owned()))?;
    let mut process = tokio::process::Command::new(program);
    // Its messages are for the user, and a passphrase is asked for at the terminal.
    process.args(arguments).stdin(Stdio::inherit()).stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
    let output = tokio::time::timeout(COMMAND_TIMEOUT, process.output()).await;
    let output = output.map_err(|_| failed(format!("took longer than {} s", COMMAND_TIMEOUT.as_secs())))?;
    let output = output.map_err(|error| failed(format!("cannot be run: {error}")))?;
    if !output.status.success() {
        return Err(failed(format!("failed ({})", output.status)));
    }
    // Password managers print more below the first line.
    let text = String::from_utf8(output.stdout).map_err(|_| failed("printed no text".to_owned()))?;
    text.lines().next().and_then(Key::new).ok_or_else(|| failed("printed nothing".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_command(command: &[&str]) -> Profile {
        Profile { key_command: command.iter().map(|word| (*word).to_owned()).collect(), ..Profile::default() }
    }

    #[tokio::test]
    async fn a_command_prints_the_key_in_its_first_line() {
        let key = key_of("p", &with_command(&["printf", "abc\nuser: me\n"])).await.unwrap().unwrap();
        assert_eq!(key.reveal(), "abc");
    }

    #[tokio::test]
    async fn a_command_that_fails_is_named_without_its_output() {
        for command in [&["sh", "-c", "echo secret; exit 3"][..], &["/nowhere/at/all"], &["true"]] {
            let error = key_of("p", &with_command(command)).await.unwrap_err().to_string();
            assert!(error.contains(command[0]) && !error.contains("secret"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_variable_that_is_not_set_is_named() {
        let profile = Profile { key_env: Some("AGENTCHAT_NO_SUCH_KEY".into()), ..Profile::default() };
        let error = key_of("p", &profile).await.unwrap_err().to_string();
        assert!(error.contains("API Key is required") && error.contains("AGENTCHAT_NO_SUCH_KEY"), "{error}");
        assert_eq!(key_of("p", &Profile::default()).await.unwrap(), None);
    }
}
