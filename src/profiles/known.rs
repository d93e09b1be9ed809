//! The endpoints that are known without any configuration.

use super::Profile;
use crate::responses::Dialect;

/// An endpoint that is known by name.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// Its name as a profile.
    pub name: &'static str,
    /// What kind of server it is.
    pub dialect: Dialect,
    /// The part before `/responses`.
    pub base_url: &'static str,
    /// The variable that has its key, by which it is found; none for servers on this machine, which are found by their port.
    pub key_env: Option<&'static str>,
}

/// All of them, in the order in which they are looked for.
pub const KNOWN: [Known; 6] = [
    Known {
        name: "openai",
        dialect: Dialect::OpenAi,
        base_url: "https://api.openai.com/v1",
        key_env: Some("OPENAI_API_KEY"),
    },
    Known {
        name: "ark",
        dialect: Dialect::Ark,
        base_url: "https://ark.cn-beijing.volces.com/api/v3",
        key_env: Some("ARK_API_KEY"),
    },
    Known { name: "ollama", dialect: Dialect::Ollama, base_url: "http://localhost:11434/v1", key_env: None },
    Known { name: "llama.cpp", dialect: Dialect::LlamaCpp, base_url: "http://localhost:8080/v1", key_env: None },
    Known { name: "lmstudio", dialect: Dialect::LmStudio, base_url: "http://localhost:1234/v1", key_env: None },
    Known { name: "vllm", dialect: Dialect::Vllm, base_url: "http://localhost:8000/v1", key_env: None },
];

/// The profile of a known endpoint.
pub fn known(name: &str) -> Option<Profile> {
    let known = KNOWN.iter().find(|known| known.name == name)?;
    Some(Profile { dialect: known.dialect, key_env: known.key_env.map(str::to_owned), ..Profile::default() })
}

/// The base URL of a dialect's usual server. The variables are those of the servers' own programs.
pub(super) fn default_url(dialect: Dialect) -> Option<String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let from_environment = match dialect {
        Dialect::OpenAi => variable("OPENAI_BASE_URL"),
        Dialect::Ark => variable("ARK_BASE_URL"),
        Dialect::Ollama => variable("OLLAMA_HOST").map(|host| ollama_url(host.trim())),
        _ => None,
    };
    from_environment
        .or_else(|| KNOWN.iter().find(|known| known.dialect == dialect).map(|known| known.base_url.to_owned()))
}

/// What Ollama makes of `OLLAMA_HOST`: host, port and scheme may each be missing, and `0.0.0.0` is where it listens.
fn ollama_url(host: &str) -> String {
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let rest = rest.trim_end_matches('/').replace("0.0.0.0", "127.0.0.1");
    let has_port =
        rest.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()));
    let host = if rest.starts_with(':') { format!("127.0.0.1{rest}") } else { rest };
    if has_port || scheme == "https" { format!("{scheme}://{host}/v1") } else { format!("{scheme}://{host}:11434/v1") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responses::BaseUrl;

    #[test]
    fn the_known_urls_are_urls() {
        for known in KNOWN {
            let url = BaseUrl::parse(known.base_url).unwrap();
            assert_eq!(url.is_loopback(), known.key_env.is_none(), "{}", known.name);
        }
    }

    #[test]
    fn ollamas_own_variable_is_understood() {
        assert_eq!(ollama_url("0.0.0.0"), "http://127.0.0.1:11434/v1");
        assert_eq!(ollama_url(":1234"), "http://127.0.0.1:1234/v1");
        assert_eq!(ollama_url("box:1"), "http://box:1/v1");
        assert_eq!(ollama_url("https://box/"), "https://box/v1");
    }
}
