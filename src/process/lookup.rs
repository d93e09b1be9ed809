//! Where a program is: the search that `execvp` does, done before the start so that each failure has a name.
//!
//! The operating system reports a missing program, a missing working directory and a missing interpreter as the same
//! `ENOENT`, which helps nobody who has to repair their configuration.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::child::SpawnError;

/// The path of `program` as a child with this `cwd` and `PATH` would find it.
///
/// A name with a separator in it is taken relative to `cwd`; any other is looked up in the folders of `path`, of which
/// relative and empty ones mean folders below `cwd`, as for `execvp`.
///
/// # Errors
/// [`SpawnError::ProgramNotFound`], or [`SpawnError::NotExecutable`] when the only file of that name may not be run.
pub fn find_program(program: &str, cwd: &Path, path: Option<&OsStr>) -> Result<PathBuf, SpawnError> {
    let folders: Vec<PathBuf> = if program.contains(std::path::is_separator) {
        Vec::new()
    } else {
        let default = OsString::from(DEFAULT_PATH);
        std::env::split_paths(path.unwrap_or(&default)).collect()
    };
    let places: Vec<PathBuf> = if program.contains(std::path::is_separator) {
        vec![cwd.join(program)]
    } else {
        folders.iter().map(|folder| cwd.join(folder).join(program)).collect()
    };

    let mut not_executable = None;
    for candidate in places.iter().flat_map(|place| with_extensions(place)) {
        if !candidate.is_file() {
            continue;
        }
        if may_run(&candidate) {
            return Ok(candidate);
        }
        not_executable.get_or_insert(candidate);
    }
    if let Some(path) = not_executable {
        return Err(SpawnError::NotExecutable { path });
    }
    let searched = if folders.is_empty() {
        places.iter().map(|place| place.display().to_string()).collect()
    } else {
        std::env::join_paths(&folders).unwrap_or_default().to_string_lossy().into_owned()
    };
    Err(SpawnError::ProgramNotFound { program: program.to_owned(), searched })
}

/// What `execvp` searches when `PATH` is not set.
#[cfg(unix)]
const DEFAULT_PATH: &str = "/bin:/usr/bin";
#[cfg(not(unix))]
const DEFAULT_PATH: &str = "";

#[cfg(unix)]
fn with_extensions(place: &Path) -> Vec<PathBuf> {
    vec![place.to_owned()]
}

/// On Windows most agents are installed as `name.cmd`, which the system's own search does not find.
#[cfg(not(unix))]
fn with_extensions(place: &Path) -> Vec<PathBuf> {
    let extensions = std::env::var("PATHEXT").unwrap_or_else(|_| ".COM;.EXE;.BAT;.CMD".to_owned());
    let mut candidates = Vec::new();
    if place.extension().is_some() {
        candidates.push(place.to_owned());
    }
    for extension in extensions.split(';').filter(|extension| !extension.is_empty()) {
        let mut name = place.as_os_str().to_owned();
        name.push(extension);
        candidates.push(PathBuf::from(name));
    }
    candidates
}

#[cfg(unix)]
fn may_run(path: &Path) -> bool {
    nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok()
}

#[cfg(not(unix))]
fn may_run(_path: &Path) -> bool {
    true
}
