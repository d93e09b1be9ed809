//! Text files on disk: read whole, written atomically.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest text that is read, in bytes: 64 MiB. A whole disk image would be more than memory has room for.
pub const MAX_TEXT: usize = 64 * 1024 * 1024;

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// There is no such file.
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
    /// Its bytes are no UTF-8.
    #[error("{} is not a UTF-8 text file", .0.display())]
    NotText(PathBuf),
    /// It is a folder, a device, or something else that is no file.
    #[error("{} is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// It is longer than [`MAX_TEXT`].
    #[error("{} has more than {MAX_TEXT} bytes, which is the most that is read; look at parts of it with a program", .0.display())]
    TooLarge(PathBuf),
    /// The system said no.
    #[error("{}: {source}", path.display())]
    Io {
        /// What it was about.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl DiskError {
    fn io(path: &Path, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::NotFound {
            Self::Missing(path.to_owned())
        } else {
            Self::Io { path: path.to_owned(), source }
        }
    }
}

/// The text of a file, byte for byte.
///
/// # Errors
/// See [`DiskError`].
pub fn read(path: &Path) -> Result<String, DiskError> {
    // Opening a FIFO would wait for whoever writes to it.
    let metadata = fs::metadata(path).map_err(|source| DiskError::io(path, source))?;
    if !metadata.is_file() {
        return Err(DiskError::NotAFile(path.to_owned()));
    }
    let expected = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
    if expected > MAX_TEXT {
        return Err(DiskError::TooLarge(path.to_owned()));
    }
    let mut bytes = Vec::with_capacity(expected);
    // It may have grown since, and some files (`/proc`) do not tell their length.
    let read = File::open(path).and_then(|file| file.take(MAX_TEXT as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|source| DiskError::io(path, source))?;
    if bytes.len() > MAX_TEXT {
        return Err(DiskError::TooLarge(path.to_owned()));
    }
    String::from_utf8(bytes).map_err(|_| DiskError::NotText(path.to_owned()))
}

/// Writes a file so that a reader sees either the old or the new text: into a new file beside it, which then takes its
/// place. Folders are created, the mode is kept. `path` has no links in it (see [`super::paths::resolve`]).
///
/// Where the folder lets nothing be put into it, or a file be replaced, the file itself is written over, as any editor does.
///
/// # Errors
/// See [`DiskError`]; the old text is still there then, unless the disk was full while the file itself was written over.
pub fn write(path: &Path, text: &str) -> Result<(), DiskError> {
    let error = |source| DiskError::Io { path: path.to_owned(), source };
    let replacement = prepare(path, text)?;
    let Some(temporary) = replacement.temporary() else { return Ok(()) };
    match fs::rename(temporary, path) {
        Err(source) if path.exists() && is_about_the_folder(&source) => write_over(path, text).map_err(error),
        result => result.map_err(error),
    }
}

/// A complete new file beside the one whose place it is to take. It is gone when this is dropped before.
#[derive(Debug)]
pub struct Replacement {
    temporary: Option<PathBuf>,
    path: PathBuf,
}

impl Replacement {
    /// Where it is until somebody moves it; `None` if it is in its place already.
    pub fn temporary(&self) -> Option<&Path> {
        self.temporary.as_deref()
    }

    /// Where it belongs.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            // Not there any more once it has taken its place.
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Writes a new file beside `path`, with the mode of the one that is there. If the folder lets nothing be put into it, the
/// file itself is written over at once.
///
/// # Errors
/// See [`DiskError`].
pub fn prepare(path: &Path, text: &str) -> Result<Replacement, DiskError> {
    let error = |source| DiskError::Io { path: path.to_owned(), source };
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder).map_err(error)?;
    let old = match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Err(DiskError::NotAFile(path.to_owned())),
        Ok(metadata) => Some(metadata.permissions()),
        Err(_) => None,
    };
    if old.as_ref().is_some_and(fs::Permissions::readonly) {
        return Err(error(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only")));
    }
    match write_beside(path, text, old.as_ref()) {
        Err(source) if old.is_some() && is_about_the_folder(&source) => {
            write_over(path, text).map_err(error)?;
            Ok(Replacement { temporary: None, path: path.to_owned() })
        }
        result => result.map_err(error),
    }
}

/// Whether the folder is the reason: it is read-only, the file belongs to somebody else in a sticky folder, or it is a
/// mount of its own.
fn is_about_the_folder(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ResourceBusy)
}

fn write_beside(path: &Path, text: &str, old: Option<&fs::Permissions>) -> io::Result<Replacement> {
    let (temporary, mut file) = create_beside(path, old.is_some())?;
    let replacement = Replacement { temporary: Some(temporary), path: path.to_owned() };
    file.write_all(text.as_bytes())?;
    if let Some(permissions) = old {
        file.set_permissions(permissions.clone())?;
    }
    file.sync_all()?;
    Ok(replacement)
}

fn write_over(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).truncate(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// The next number of a temporary file: any number of writes of this process may be under way in one folder.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Creates a new file in the same folder, so that it can take the place of `path`. Nobody else may read it as long as it
/// has not got the mode of the one that it replaces.
fn create_beside(path: &Path, is_private: bool) -> io::Result<(PathBuf, File)> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if is_private {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    #[cfg(not(unix))]
    let _ = is_private;
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Without the file's own name, which may be as long as a name can be.
        let temporary = path.with_file_name(format!(".agentchat-{}-{number}", std::process::id()));
        match options.open(&temporary) {
            // Left by a process that was killed and had the same number.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return result.map(|file| (temporary, file)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_gets_its_folders_and_an_old_one_keeps_its_mode() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a/b/c.txt");
        write(&path, "one\r\n")?;
        assert_eq!(read(&path)?, "one\r\n");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o750))?;
            write(&path, "two")?;
            assert_eq!(fs::metadata(&path)?.permissions().mode() & 0o777, 0o750);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o440))?;
            assert!(matches!(write(&path, "three"), Err(DiskError::Io { .. })));
        }
        assert_eq!(read(&path)?, "two");
        assert_eq!(fs::read_dir(folder.path().join("a/b"))?.count(), 1, "nothing else is left in the folder");
        Ok(())
    }

    #[test]
    fn any_number_of_files_may_be_in_the_way() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        for number in 0..5_000 {
            fs::write(folder.path().join(format!(".agentchat-{}-{number}", std::process::id())), "")?;
        }
        write(&folder.path().join("x"), "text")?;
        assert_eq!(read(&folder.path().join("x"))?, "text");
        Ok(())
    }

    #[test]
    fn what_is_no_text_file_has_an_error_of_its_own() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("x");
        assert!(matches!(read(&path), Err(DiskError::Missing(_))));
        assert!(matches!(read(folder.path()), Err(DiskError::NotAFile(_))));
        assert!(matches!(write(folder.path(), ""), Err(DiskError::NotAFile(_))));
        fs::write(&path, b"\xff\xfe")?;
        assert!(matches!(read(&path), Err(DiskError::NotText(_))));
        Ok(())
    }

    #[test]
    fn a_text_without_bounds_is_not_read() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("disk.img");
        File::create(&path)?.set_len(6 << 30)?;
        assert!(matches!(read(&path), Err(DiskError::TooLarge(_))));
        #[cfg(target_os = "linux")]
        assert!(read(Path::new("/proc/self/status"))?.contains("Pid:"), "a file that does not tell its length");
        Ok(())
    }

    #[cfg(unix)]
    #[test]
    fn the_longest_name_and_a_closed_folder_are_no_obstacle() -> Result<(), Box<dyn std::error::Error>> {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir()?;
        let long = folder.path().join("n".repeat(255));
        write(&long, "one")?;
        write(&long, "two")?;
        assert_eq!(read(&long)?, "two");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555))?;
        let written = write(&long, "three");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        written?;
        assert_eq!(read(&long)?, "three");
        Ok(())
    }

    #[cfg(unix)]
    #[test]
    fn a_private_text_is_private_while_it_is_written() -> Result<(), Box<dyn std::error::Error>> {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir()?;
        let path = folder.path().join("x");
        let mode = |path: &Path| fs::metadata(path).map(|metadata| metadata.permissions().mode() & 0o777);
        let (temporary, _file) = create_beside(&path, true)?;
        assert_eq!(mode(&temporary)?, 0o600);
        write(&path, "secret")?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        write(&path, "other secret")?;
        assert_eq!(mode(&path)?, 0o600);
        Ok(())
    }
}
