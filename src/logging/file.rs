//! An append-only file that is renamed to `name.1` when it is full.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;

/// How long a line waits for another thread's line. It only runs out when the holder is stuck or is this very thread, in
/// a panic; then the line is lost rather than the program stopped.
const LOCK_WAIT: Duration = Duration::from_millis(500);

/// See the [module](self). Shared by threads, and through the file system by processes.
#[derive(Debug)]
pub(super) struct BoundedFile {
    path: PathBuf,
    max_bytes: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    /// Lines that could not be written since the last that could, and why the last of them could not.
    lost: u64,
    reason: Option<io::Error>,
}

impl BoundedFile {
    /// Opens or creates `path` with mode 0600.
    pub(super) fn open(path: &Path, max_bytes: u64) -> io::Result<Self> {
        let state = State { file: open_private(path)?, lost: 0, reason: None };
        Ok(Self { path: path.to_owned(), max_bytes, state: Mutex::new(state) })
    }

    /// Appends `line` in one write. A line that cannot be written is counted, and the count is written before the next
    /// one that can.
    pub(super) fn append(&self, line: &str) {
        let Some(mut state) = self.state.try_lock_for(LOCK_WAIT) else {
            return;
        };
        match self.try_append(&mut state, line) {
            Ok(()) => (state.lost, state.reason) = (0, None),
            Err(error) => (state.lost, state.reason) = (state.lost + 1, Some(error)),
        }
    }

    fn try_append(&self, state: &mut State, line: &str) -> io::Result<()> {
        if state.file.metadata()?.len() + line.len() as u64 > self.max_bytes {
            self.rotate(state)?;
        }
        match &state.reason {
            Some(reason) => {
                let text = format!("({} log lines could not be written: {reason})\n{line}", state.lost);
                state.file.write_all(text.as_bytes())
            }
            None => state.file.write_all(line.as_bytes()),
        }
    }

    /// Begins a new file, unless another process that shares it already did: then that one is used.
    fn rotate(&self, state: &mut State) -> io::Result<()> {
        match state.file.try_lock() {
            Ok(()) => {}
            // Another process is rotating, or stopped while it did. The bound is exceeded by a line for as long.
            Err(std::fs::TryLockError::WouldBlock) => return Ok(()),
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
        }
        if is_still_at(&state.file, &self.path)? {
            std::fs::rename(&self.path, predecessor(&self.path))?;
        }
        // The lock goes with the old file.
        state.file = open_private(&self.path)?;
        Ok(())
    }
}

/// `name.1` beside `name`.
fn predecessor(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".1");
    PathBuf::from(name)
}

#[cfg(unix)]
fn open_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    // An older file may have any mode.
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

#[cfg(not(unix))]
fn open_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

#[cfg(unix)]
fn is_still_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let ours = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(there) => Ok((ours.dev(), ours.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Windows has no stable way to ask; there the size tells: a file that another process has just begun is small.
#[cfg(not(unix))]
fn is_still_at(file: &File, path: &Path) -> io::Result<bool> {
    match std::fs::metadata(path) {
        Ok(there) => Ok(there.len() >= file.metadata()?.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn text(path: &Path) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn two_files_hold_the_newest_lines_and_no_more_than_the_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let file = BoundedFile::open(&path, 100).unwrap();
        for number in 0..100 {
            file.append(&format!("line {number:04}\n"));
        }
        let (old, new) = (text(&predecessor(&path)), text(&path));
        assert!(old.len() <= 100 && new.len() <= 100, "{} {}", old.len(), new.len());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        let lines: Vec<String> = (81..100).map(|number| format!("line {number:04}")).collect();
        assert!((old + &new).trim_end().ends_with(&lines[9..].join("\n")));
    }

    #[test]
    fn two_processes_that_share_a_file_lose_nothing_when_one_begins_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let (one, two) = (BoundedFile::open(&path, 100).unwrap(), BoundedFile::open(&path, 100).unwrap());
        for number in 0..9 {
            one.append(&format!("one {number:05}\n"));
        }
        two.append("two begins a new file\n");
        one.append("one follows\n");
        assert_eq!(text(&path), "two begins a new file\none follows\n");
        assert_eq!(text(&predecessor(&path)).lines().count(), 9);
    }

    #[cfg(unix)]
    #[test]
    fn the_file_is_private_even_when_it_was_not() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let _file = BoundedFile::open(&path, 100).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_costs_the_lines_and_their_number_is_told_later() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let file = BoundedFile::open(&path, 1000).unwrap();
        file.state.lock().file = OpenOptions::new().append(true).open("/dev/full").unwrap();
        file.append("lost\n");
        file.append("lost\n");
        file.state.lock().file = open_private(&path).unwrap();
        file.append("there is room again\n");
        file.append("and still\n");
        let lines = text(&path);
        assert!(lines.starts_with("(2 log lines could not be written: No space left"), "{lines}");
        assert!(lines.ends_with("\nthere is room again\nand still\n"), "{lines}");
    }

    #[test]
    fn a_line_from_inside_the_lock_is_lost_instead_of_stopping_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let file = BoundedFile::open(&folder.path().join("log"), 1000).unwrap();
        let _held = file.state.lock();
        file.append("never written\n");
    }
}
