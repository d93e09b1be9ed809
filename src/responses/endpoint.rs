//! Where requests go, and with which key.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::{Dialect, Error};

/// A key, which neither `Debug` nor any error shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Takes a key; white space around it, such as the end of the line of a command's output, is no part of it.
    pub fn new(key: &str) -> Option<Self> {
        Some(key.trim()).filter(|key| !key.is_empty()).map(|key| Self(key.to_owned()))
    }

    /// The key itself, to be sent.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Key(…)")
    }
}

/// How long to wait for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For the connection.
    pub connect: Duration,
    /// For the first byte of the answer: a local model may read a long prompt first, a large one think.
    pub first_byte: Duration,
    /// Between two pieces of the answer.
    pub stall: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), first_byte: Duration::from_mins(10), stall: Duration::from_mins(5) }
    }
}

/// An endpoint of the Responses API.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// What the user calls it.
    pub name: String,
    /// The part before `/responses`.
    pub base_url: BaseUrl,
    /// Sent as a bearer token.
    pub key: Option<Key>,
    /// What kind of server it is.
    pub dialect: Dialect,
    /// Headers that are sent along. Their values count as secrets.
    pub headers: Vec<(String, String)>,
    /// A file of certificates (PEM) that are trusted in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// How long to wait.
    pub timeouts: Timeouts,
}

/// A checked base URL: `http` or `https`, with a host, without query and last slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl(reqwest::Url);

impl BaseUrl {
    /// Reads a URL. The path of an operation at its end (`/responses`) is taken off, since it is often copied along.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Setup(format!("base URL {text:?} {why}"));
        let mut url = reqwest::Url::parse(text.trim())
            .map_err(|error| wrong(&format!("is not a URL ({error}): it looks like https://api.example.com/v1")))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return Err(wrong("has to begin with http:// or https:// and a host"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Error::Setup(
                "a base URL must not contain a user or password: use key_env or headers".to_owned(),
            ));
        }
        url.set_query(None);
        url.set_fragment(None);
        let path = url.path().trim_end_matches('/');
        let path = path.strip_suffix("/responses").unwrap_or(path).to_owned();
        url.set_path(&path);
        Ok(Self(url))
    }

    /// The URL of an operation, which is made of path segments.
    pub(super) fn join(&self, segments: &[&str]) -> reqwest::Url {
        let mut url = self.0.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    /// Scheme, host and port, for messages and for telling whether two endpoints are the same server.
    pub fn host(&self) -> String {
        self.0.origin().ascii_serialization()
    }

    /// Whether this is a server on this machine, which no proxy is asked for.
    pub fn is_loopback(&self) -> bool {
        let host = self.0.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        host == "localhost"
            || host.ends_with(".localhost")
            || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Whether what is sent can be read on the way.
    pub fn is_plain(&self) -> bool {
        self.0.scheme() == "http"
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

/// Takes the secrets of an endpoint out of what others say.
#[derive(Clone)]
pub(super) struct Scrubber(Vec<String>);

impl Scrubber {
    pub(super) fn new(endpoint: &Endpoint) -> Self {
        let headers = endpoint.headers.iter().map(|(_, value)| value.clone()).filter(|value| value.len() >= 8);
        let mut secrets: Vec<String> = headers.collect();
        secrets.extend(endpoint.key.as_ref().map(|key| key.reveal().to_owned()));
        Self(secrets)
    }

    pub(super) fn clean(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, crate::logging::redact::REDACTED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_checked_and_cleaned() {
        let shown = |text: &str| BaseUrl::parse(text).unwrap().to_string();
        assert_eq!(shown("https://api.openai.com/v1/"), "https://api.openai.com/v1");
        assert_eq!(shown(" http://localhost:8080/v1/responses?x=1 "), "http://localhost:8080/v1");
        assert_eq!(shown("http://localhost:8080"), "http://localhost:8080");
        for wrong in ["", "localhost:8080", "file:///etc/passwd", "https://u:secret@host/v1", "https://"] {
            let error = BaseUrl::parse(wrong).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn operations_are_paths_below_it() {
        let url = BaseUrl::parse("http://localhost:1/api/v3").unwrap();
        assert_eq!(url.join(&["responses", "a/../b?c"]).as_str(), "http://localhost:1/api/v3/responses/a%2F..%2Fb%3Fc");
        assert_eq!(BaseUrl::parse("http://h").unwrap().join(&["models"]).as_str(), "http://h/models");
    }

    #[test]
    fn loopback_is_this_machine() {
        let loopback = |text: &str| BaseUrl::parse(text).unwrap().is_loopback();
        assert!(loopback("http://localhost:1") && loopback("http://127.0.0.9") && loopback("http://[::1]:8080/v1"));
        assert!(!loopback("http://localhost.example.com") && !loopback("https://10.0.0.1"));
    }

    #[test]
    fn a_key_is_not_shown() {
        let key = Key::new(" secret-value\n").unwrap();
        assert_eq!((format!("{key:?}").as_str(), key.reveal()), ("Key(…)", "secret-value"));
        assert!(Key::new("\n").is_none());
    }
}
