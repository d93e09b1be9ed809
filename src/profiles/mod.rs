//! Endpoints by name: those of the configuration file, and those that are known without one.
//!
//! The file is `agentchat/config.toml` in the configuration folder:
//!
//! ```toml
//! default_profile = "work"
//!
//! [profiles.work]
//! dialect = "openai"                       # openai, ark, ollama, llama.cpp, vllm, lmstudio, generic
//! base_url = "https://gateway.example.com/v1"
//! key_command = ["pass", "show", "gateway"] # or key_env = "GATEWAY_API_KEY"
//! model = "gpt-5"
//! context = 400000                         # tokens; for the built-in agent
//! tools = ["mcp"]                           # tool types beyond function and web_search
//! headers = { "x-team" = "editors", "x-token" = "env:GATEWAY_TOKEN" }
//! ca_file = "/etc/ssl/gateway.pem"
//! stall_timeout = 120                       # seconds; also connect_timeout, first_byte_timeout
//! ```
//!
//! A key is never written into it.

mod choose;
mod file;
mod key;
mod known;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

pub use choose::{Choice, Chosen, choose, find_local, is_any_configured};
pub use file::{Config, config_path};
pub use key::{KeyState, key_state};
pub use known::{KNOWN, known};

use crate::responses::{BaseUrl, Dialect, Endpoint, Timeouts};

/// Why there is no endpoint. Each sentence says what to do.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The file cannot be read or written.
    #[error("the configuration {} cannot be used: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, with the line where that is known.
        reason: String,
    },
    /// There is no profile of that name.
    #[error("there is no profile {name:?}: known are {known}")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// Something in a profile is wrong.
    #[error("profile {name:?}: {reason}")]
    Invalid {
        /// The profile.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// There is neither a profile, nor a key in the environment, nor a local server.
    #[error("no endpoint: no profile, no key in OPENAI_API_KEY or ARK_API_KEY, and no local server on its usual port")]
    None,
    /// There is neither a profile nor a key in the environment, and local servers were not to be looked for.
    #[error(
        "no endpoint: no profile, and no key in OPENAI_API_KEY or ARK_API_KEY; local servers are not looked for now"
    )]
    NotLookedFor,
    /// The key of a profile could not be had.
    #[error("{0}")]
    Key(String),
}

impl ProfileError {
    /// What the user can do about it, where the sentence does not say it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotLookedFor => "say --profile, such as ollama or llama.cpp, or `agentchat profile add`",
            Self::None => "set a key, start Ollama, llama.cpp, vLLM or LM Studio, or `agentchat profile add`",
            Self::Unknown { .. } => "`agentchat profile list` shows them, `agentchat profile add` makes one",
            Self::Key(_) => "set the variable that the profile's key_env names, pass --api-key, or change the profile",
            Self::File { .. } | Self::Invalid { .. } => return None,
        })
    }
}

/// An endpoint as it is configured.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// What kind of server it is.
    pub dialect: Dialect,
    /// The part before `/responses`; that of the dialect if there is none.
    pub base_url: Option<String>,
    /// The environment variable that has the key.
    pub key_env: Option<String>,
    /// A program and its arguments that prints the key; asked if the variable is not set.
    pub key_command: Vec<String>,
    /// The model if none is asked for.
    pub model: Option<String>,
    /// How many tokens the model's context has, which the agent shows, and before whose end it makes its history shorter.
    pub context: Option<u64>,
    /// Types of tools that are passed on to this endpoint, beyond those of every build.
    pub tools: Vec<String>,
    /// Headers that are sent along; a value `env:NAME` is taken from the environment.
    pub headers: BTreeMap<String, String>,
    /// A file of certificates (PEM) to trust in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// Seconds; see [`Timeouts`].
    pub connect_timeout: Option<f64>,
    /// Seconds; see [`Timeouts`].
    pub first_byte_timeout: Option<f64>,
    /// Seconds; see [`Timeouts`].
    pub stall_timeout: Option<f64>,
}

impl Profile {
    /// The base URL: the profile's own, else that of its dialect, for which the environment may have another
    /// (`OPENAI_BASE_URL`, `ARK_BASE_URL`, `OLLAMA_HOST`).
    ///
    /// # Errors
    /// There is none, or it is no URL.
    pub fn base_url(&self, name: &str) -> Result<BaseUrl, ProfileError> {
        let url = self.base_url.clone().or_else(|| known::default_url(self.dialect));
        let invalid = |reason: String| ProfileError::Invalid { name: name.to_owned(), reason };
        let url = url.ok_or_else(|| invalid("it has no base_url, and its dialect has none either".to_owned()))?;
        BaseUrl::parse(&url).map_err(|error| invalid(error.to_string()))
    }

    /// The endpoint, with the key from the environment or the profile's command.
    ///
    /// # Errors
    /// The base URL, a timeout or a header is wrong, or there is no key although one is configured.
    pub async fn endpoint(&self, name: &str) -> Result<Endpoint, ProfileError> {
        let key = key::key_of(name, self).await?;
        Ok(Endpoint { key, ..self.endpoint_without_key(name)? })
    }

    pub(crate) fn endpoint_without_key(&self, name: &str) -> Result<Endpoint, ProfileError> {
        let invalid = |reason: String| ProfileError::Invalid { name: name.to_owned(), reason };
        let mut headers = Vec::new();
        for (header, value) in &self.headers {
            let value = match value.strip_prefix("env:") {
                Some(variable) => std::env::var(variable)
                    .map_err(|_| invalid(format!("the header {header:?} wants {variable}, which is not set")))?,
                None => value.clone(),
            };
            headers.push((header.clone(), value));
        }
        let default = Timeouts::default();
        let seconds = |what: &str, value: Option<f64>, default: Duration| match value {
            None => Ok(default),
            Some(value) => Duration::try_from_secs_f64(value)
                .ok()
                .filter(|duration| !duration.is_zero())
                .ok_or_else(|| invalid(format!("{what} has to be a number of seconds above 0"))),
        };
        Ok(Endpoint {
            name: name.to_owned(),
            base_url: self.base_url(name)?,
            key: None,
            dialect: self.dialect,
            headers,
            ca_file: self.ca_file.clone(),
            timeouts: Timeouts {
                connect: seconds("connect_timeout", self.connect_timeout, default.connect)?,
                first_byte: seconds("first_byte_timeout", self.first_byte_timeout, default.first_byte)?,
                stall: seconds("stall_timeout", self.stall_timeout, default.stall)?,
            },
        })
    }
}
