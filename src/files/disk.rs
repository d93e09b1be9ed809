//! Text files on disk: read whole, written atomically.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

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
    let bytes = fs::read(path).map_err(|source| DiskError::io(path, source))?;
    String::from_utf8(bytes).map_err(|_| DiskError::NotText(path.to_owned()))
}

/// Writes a file so that a reader sees either the old or the new text: into a new file beside it, which then takes its
/// place. Folders are created, the mode is kept. `path` has no links in it (see [`super::paths::resolve`]).
///
/// # Errors
/// See [`DiskError`]; the old text is still there then.
pub fn write(path: &Path, text: &str) -> Result<(), DiskError> {
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
    let (temporary, mut file) = create_beside(path).map_err(error)?;
    let written = (|| {
        file.write_all(text.as_bytes())?;
        if let Some(permissions) = old {
            file.set_permissions(permissions)?;
        }
        file.sync_all()?;
        drop(file);
        fs::rename(&temporary, path)
    })();
    written.map_err(|source| {
        // The error that counts is the first; what is left of the attempt has no value.
        let _ = fs::remove_file(&temporary);
        error(source)
    })
}

/// Creates a new file in the same folder, so that it can take the place of `path`.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut attempt = 0_u32;
    loop {
        let temporary = path.with_file_name(format!(".{name}.agentchat-{}-{attempt}", std::process::id()));
        match File::create_new(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < 100 => attempt += 1,
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
}
