//! The guided tour, driven by a client over pipes.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod cancel;
mod client;
mod script;
mod wire;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

/// Everything that the tour can use.
fn everything() -> Value {
    json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true})
}

/// A copy of the sample project.
fn sample_project() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/sample-project");
    for entry in fs::read_dir(sample).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
    }
    folder
}
