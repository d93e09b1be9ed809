//! The configuration file: read as a whole, changed in place, so that comments and what others wrote stay.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, value};

use super::{Profile, ProfileError, known};
use crate::logging::redact::redact;

/// The variable that names another configuration file.
const PATH_VARIABLE: &str = "AGENTCHAT_CONFIG";

/// What the file says.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The profile if none is asked for.
    pub default_profile: Option<String>,
    /// The file's profiles by name.
    pub profiles: BTreeMap<String, Profile>,
}

#[derive(Deserialize)]
struct Raw {
    default_profile: Option<String>,
    #[serde(default)]
    profiles: BTreeMap<String, Profile>,
}

/// Where the file is: `$AGENTCHAT_CONFIG`, else `agentchat/config.toml` in `$XDG_CONFIG_HOME` or `~/.config`.
///
/// # Errors
/// There is no home folder.
pub fn config_path() -> Result<PathBuf, ProfileError> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(path) = std::env::var_os(PATH_VARIABLE).filter(|path| !path.is_empty()) {
        return Ok(path.into());
    }
    let base = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
    let base = base.ok_or_else(|| ProfileError::File {
        path: "config.toml".into(),
        reason: "neither XDG_CONFIG_HOME nor HOME says where it is".to_owned(),
    })?;
    Ok(base.join("agentchat").join("config.toml"))
}

impl Config {
    /// Reads the file; one that is not there is an empty one.
    ///
    /// # Errors
    /// [`ProfileError::File`]
    pub fn read(path: &Path) -> Result<Self, ProfileError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(wrong(path, &error)),
        };
        let raw: Raw =
            toml_edit::de::from_str(&text).map_err(|error| wrong(path, &redact(error.to_string().trim_end())))?;
        Ok(Self { default_profile: raw.default_profile, profiles: raw.profiles })
    }

    /// The profile of that name: the file's, else a known one.
    ///
    /// # Errors
    /// [`ProfileError::Unknown`]
    pub fn profile(&self, name: &str) -> Result<Profile, ProfileError> {
        self.profiles
            .get(name)
            .cloned()
            .or_else(|| known(name))
            .ok_or_else(|| ProfileError::Unknown { name: name.to_owned(), known: self.names().join(", ") })
    }

    /// Every name: the file's, then the known ones.
    pub fn names(&self) -> Vec<String> {
        let known = known::KNOWN.iter().map(|known| known.name.to_owned());
        let known = known.filter(|name| !self.profiles.contains_key(name));
        self.profiles.keys().cloned().chain(known).collect()
    }

    /// Writes a profile into the file, which is created if need be; all else in it stays as it is.
    ///
    /// # Errors
    /// The file cannot be read or written, or has a profile of that name and `replace` is false.
    pub fn add(path: &Path, name: &str, profile: &Profile, default: bool, replace: bool) -> Result<(), ProfileError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(wrong(path, &error)),
        };
        let mut document: DocumentMut =
            text.parse().map_err(|error: toml_edit::TomlError| wrong(path, &redact(&error.to_string())))?;
        if default {
            document["default_profile"] = value(name);
        }
        let profiles = document.entry("profiles").or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        let profiles = profiles.as_table_like_mut().ok_or_else(|| wrong(path, &"profiles is no table"))?;
        if profiles.contains_key(name) && !replace {
            let reason = "there is one already: say --replace, or choose another name".to_owned();
            return Err(ProfileError::Invalid { name: name.to_owned(), reason });
        }
        profiles.insert(name, Item::Table(to_table(profile)));
        write(path, &document.to_string())
    }
}

fn wrong(path: &Path, reason: &dyn std::fmt::Display) -> ProfileError {
    ProfileError::File { path: path.to_owned(), reason: reason.to_string() }
}

fn to_table(profile: &Profile) -> Table {
    let mut table = Table::new();
    table["dialect"] = value(profile.dialect.name());
    let ca_file = profile.ca_file.as_ref().map(|path| path.to_string_lossy().into_owned());
    let texts = [
        ("base_url", &profile.base_url),
        ("key_env", &profile.key_env),
        ("model", &profile.model),
        ("ca_file", &ca_file),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            table[name] = value(text);
        }
    }
    for (name, list) in [("key_command", &profile.key_command), ("tools", &profile.tools)] {
        if !list.is_empty() {
            table[name] = value(list.iter().collect::<Array>());
        }
    }
    if let Some(tokens) = profile.context.and_then(|tokens| i64::try_from(tokens).ok()) {
        table["context"] = value(tokens);
    }
    if !profile.headers.is_empty() {
        table["headers"] = value(profile.headers.iter().collect::<InlineTable>());
    }
    let seconds = [
        ("connect_timeout", profile.connect_timeout),
        ("first_byte_timeout", profile.first_byte_timeout),
        ("stall_timeout", profile.stall_timeout),
    ];
    for (name, seconds) in seconds {
        if let Some(seconds) = seconds {
            table[name] = value(seconds);
        }
    }
    table
}

/// In place of the old file at once, so that nobody reads half of it.
fn write(path: &Path, text: &str) -> Result<(), ProfileError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = std::fs::create_dir_all(folder).and_then(|()| {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    });
    written.map_err(|error| wrong(path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responses::Dialect;

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agentchat/config.toml");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn every_field_is_read_and_written() {
        let profile = Profile {
            dialect: Dialect::LlamaCpp,
            base_url: Some("http://box:8080/v1".into()),
            key_env: Some("K".into()),
            key_command: vec!["pass".into(), "show".into()],
            model: Some("m".into()),
            context: Some(4096),
            tools: vec!["mcp".into()],
            headers: [("x-team".to_owned(), "a".to_owned())].into(),
            ca_file: Some("/ca.pem".into()),
            connect_timeout: Some(1.5),
            first_byte_timeout: Some(2.0),
            stall_timeout: Some(3.0),
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/config.toml");
        Config::add(&path, "box", &profile, true, false).unwrap();
        let config = Config::read(&path).unwrap();
        assert_eq!(config.profile("box").unwrap(), profile);
        assert_eq!(config.default_profile.as_deref(), Some("box"));
    }

    #[test]
    fn what_the_user_wrote_stays() {
        let (_folder, path) = file("# mine\n[profiles.a] # first\nmodel = \"m\"\n\n[other]\nx = 1\n");
        Config::add(&path, "b", &Profile::default(), false, false).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.contains("# mine\n[profiles.a] # first\nmodel = \"m\"\n") && text.contains("[other]\nx = 1\n"),
            "{text}"
        );
        assert!(Config::add(&path, "a", &Profile::default(), false, false).is_err());
        Config::add(&path, "a", &Profile::default(), false, true).unwrap();
        assert_eq!(Config::read(&path).unwrap().profile("a").unwrap().model, None);
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let (_folder, path) = file("[profiles.a]\nmodell = \"m\"\n");
        let error = Config::read(&path).unwrap_err().to_string();
        assert!(error.contains("modell") && error.contains("line 2"), "{error}");
        let (_folder, path) = file("[profiles.a\n");
        assert!(Config::read(&path).unwrap_err().to_string().contains("line 1"));
    }

    #[test]
    fn a_key_in_the_file_is_refused_and_not_repeated() {
        let (_folder, path) = file("[profiles.a]\napi_key = \"sk-1234567890abcdefghij\"\n");
        let error = Config::read(&path).unwrap_err().to_string();
        assert!(error.contains("api_key"), "{error}");
        assert!(!error.contains("1234567890"), "{error}");
    }

    #[test]
    fn known_profiles_are_there_without_a_file() {
        let config = Config::read(Path::new("/nowhere/config.toml")).unwrap();
        assert_eq!(config.profile("ark").unwrap().key_env.as_deref(), Some("ARK_API_KEY"));
        let error = config.profile("arc").unwrap_err().to_string();
        assert!(error.contains("\"arc\"") && error.contains("openai, ark, ollama"), "{error}");
    }
}
