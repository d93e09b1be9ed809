//! Reading files without the client's help.

use std::path::Path;

use tokio::fs;

/// A larger file is not read. In bytes.
const LARGEST_FILE: u64 = 1024 * 1024;

/// The text of a file. `Err` holds the reason for the user.
pub(super) async fn read_text(path: &Path) -> Result<String, String> {
    // Asked before opening: a FIFO would block.
    let meta = fs::metadata(path).await.map_err(|error| error.to_string())?;
    if !meta.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if meta.len() > LARGEST_FILE {
        return Err(format!("it is larger than {LARGEST_FILE} bytes"));
    }
    fs::read_to_string(path).await.map_err(|error| error.to_string())
}

/// Whether something has this name already.
pub(super) async fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).await.is_ok()
}
