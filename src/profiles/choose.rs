//! Which endpoint is used.

use std::time::Duration;

use futures::future::join_all;
use serde_json::Value;

use super::{Config, KNOWN, Profile, ProfileError, known};
use crate::responses::{BaseUrl, Client, Dialect, Endpoint, Key, Timeouts};

/// How long a server on this machine may take to answer when it is looked for.
const LOOK_FOR: Duration = Duration::from_millis(500);

/// What was asked for.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// A profile by name.
    pub profile: Option<String>,
    /// Another base URL than the profile's.
    pub base_url: Option<String>,
    /// Another key than the profile's.
    pub key: Option<Key>,
    /// The key is not needed, and servers on this machine are not looked for.
    pub offline: bool,
}

/// An endpoint, and the profile that it comes from.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// Where requests go.
    pub endpoint: Endpoint,
    /// The profile, for its model and tools.
    pub profile: Profile,
}

/// The endpoint of `choice`. Without a profile it is, in this order: `$AGENTCHAT_PROFILE`, the file's `default_profile`, the
/// only profile of the file, the first known endpoint whose key is in the environment, the first local server that answers.
///
/// A profile's key only goes to the profile's own server: with another base URL, a key has to be given for it, unless it
/// is on this machine.
///
/// # Errors
/// See [`ProfileError`].
pub async fn choose(config: &Config, choice: &Choice) -> Result<Chosen, ProfileError> {
    let Some(text) = &choice.base_url else {
        let (name, profile) = select(config, choice).await?;
        let endpoint = match &choice.key {
            Some(key) => Endpoint { key: Some(key.clone()), ..profile.endpoint_without_key(&name)? },
            None if choice.offline => profile.endpoint_without_key(&name)?,
            None => profile.endpoint(&name).await?,
        };
        return Ok(Chosen { endpoint, profile });
    };
    let url = BaseUrl::parse(text)
        .map_err(|error| ProfileError::Invalid { name: "--base-url".to_owned(), reason: error.to_string() })?;
    let (name, profile) = match named(config, choice) {
        Some(name) => (name.clone(), config.profile(&name)?),
        None => by_host(config, &url),
    };
    let same_server = profile.base_url(&name).is_ok_and(|own| own.host() == url.host());
    let profile = Profile { base_url: Some(url.to_string()), ..profile };
    let mut endpoint = match &choice.key {
        None if same_server && !choice.offline => profile.endpoint(&name).await?,
        _ => profile.endpoint_without_key(&name)?,
    };
    if !same_server {
        endpoint.headers.clear();
    }
    if let Some(key) = &choice.key {
        endpoint.key = Some(key.clone());
    } else if !choice.offline && endpoint.key.is_none() && !url.is_loopback() && !same_server {
        return Err(ProfileError::Key(format!(
            "--base-url requires --api-key: the key of profile {name:?} is not sent to {}",
            url.host()
        )));
    }
    Ok(Chosen { endpoint, profile })
}

/// Whether there is an endpoint without looking for servers on this machine: a profile, or a key in the environment.
pub fn is_any_configured() -> bool {
    let is_set = |name: &str| std::env::var(name).is_ok_and(|value| !value.trim().is_empty());
    let has_key = || KNOWN.iter().any(|known| known.key_env.is_some_and(is_set));
    let in_file = || {
        let config = super::config_path().and_then(|path| Config::read(&path));
        config.is_ok_and(|config| config.default_profile.is_some() || !config.profiles.is_empty())
    };
    is_set("AGENTCHAT_PROFILE") || has_key() || in_file()
}

/// The profile that was asked for, by option, environment or file.
fn named(config: &Config, choice: &Choice) -> Option<String> {
    let variable = || std::env::var("AGENTCHAT_PROFILE").ok().filter(|name| !name.is_empty());
    choice.profile.clone().or_else(variable).or_else(|| config.default_profile.clone())
}

async fn select(config: &Config, choice: &Choice) -> Result<(String, Profile), ProfileError> {
    if let Some(name) = named(config, choice) {
        return Ok((name.clone(), config.profile(&name)?));
    }
    if let (1, Some((name, profile))) = (config.profiles.len(), config.profiles.iter().next()) {
        return Ok((name.clone(), profile.clone()));
    }
    let is_set = |name: &str| std::env::var(name).is_ok_and(|value| !value.trim().is_empty());
    let by_key = KNOWN.iter().find(|known| known.key_env.is_some_and(is_set));
    if let Some(profile) = by_key.and_then(|found| known(found.name)) {
        return Ok((by_key.map_or("", |found| found.name).to_owned(), profile));
    }
    if choice.offline {
        return Err(ProfileError::NotLookedFor);
    }
    find_local().await.into_iter().next().ok_or(ProfileError::None)
}

/// A profile for a URL of which nothing else is known: that of the file or the known server at this host and port, else a
/// generic one.
fn by_host(config: &Config, url: &BaseUrl) -> (String, Profile) {
    let configured =
        config.profiles.iter().find(|(name, profile)| profile.base_url(name).is_ok_and(|own| own.host() == url.host()));
    if let Some((name, profile)) = configured {
        return (name.clone(), profile.clone());
    }
    let same =
        |name: &str| known(name).is_some_and(|profile| profile.base_url(name).is_ok_and(|own| same_server(&own, url)));
    match KNOWN.iter().find(|candidate| same(candidate.name)) {
        Some(found) => (found.name.to_owned(), known(found.name).unwrap_or_default()),
        None => (url.host(), Profile { dialect: Dialect::Generic, ..Profile::default() }),
    }
}

/// Local servers are the same under each of this machine's names.
fn same_server(one: &BaseUrl, other: &BaseUrl) -> bool {
    let port = |url: &BaseUrl| url.host().rsplit_once(':').map(|(_, port)| port.to_owned());
    one.host() == other.host() || one.is_loopback() && other.is_loopback() && port(one) == port(other)
}

/// The servers on this machine that answer on their usual ports, in the order of [`KNOWN`]. What kind they are is taken from
/// their list of models, since these ports are not theirs alone.
pub async fn find_local() -> Vec<(String, Profile)> {
    let local = KNOWN.iter().filter(|known| known.key_env.is_none());
    let found = join_all(local.map(|server| async move {
        let profile = known(server.name)?;
        let dialect = look_at(&profile, server.name).await?;
        Some((
            dialect.name().to_owned(),
            Profile { dialect, base_url: Some(profile.base_url(server.name).ok()?.to_string()), ..profile },
        ))
    }));
    found.await.into_iter().flatten().collect()
}

/// What kind of server answers there, if one does.
async fn look_at(profile: &Profile, name: &str) -> Option<Dialect> {
    let mut endpoint = profile.endpoint_without_key(name).ok()?;
    endpoint.timeouts = Timeouts { connect: LOOK_FOR, first_byte: LOOK_FOR, stall: LOOK_FOR };
    let models = Client::new(endpoint).ok()?.list_models().await.ok()?;
    let owner = models.first().and_then(|model| model.get("owned_by")).and_then(Value::as_str).unwrap_or_default();
    Some(match owner {
        "llamacpp" => Dialect::LlamaCpp,
        "vllm" => Dialect::Vllm,
        "library" => Dialect::Ollama,
        "organization_owner" => Dialect::LmStudio,
        _ => profile.dialect,
    })
}
