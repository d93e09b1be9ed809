//! What a prompt mentions, looked up in tasks of its own: files as the user sees them, images, and the diff of the
//! project. None of it passes through Neovim's channel except the text of buffers with unsaved changes.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::files::{Files, TextError};
use crate::core::effect::{GatherJob, ReadRange};
use crate::core::prompt::{Found, PromptCapabilities, Source};
use crate::files::edits;

/// The longest text that goes along, in bytes: a longer file is better read by the agent, piece by piece.
const MAX_TEXT: u64 = 512 * 1024;
/// The largest image that goes along, in bytes.
const MAX_IMAGE: u64 = 10 * 1024 * 1024;
/// How long `git diff` may take.
const DIFF_PATIENCE: Duration = Duration::from_secs(10);

/// Looks up all of it, in order.
pub async fn gather(files: Files, job: GatherJob) -> Vec<Found> {
    let mut found = Vec::with_capacity(job.sources.len());
    for source in &job.sources {
        found.push(match source {
            Source::File { path, lines } => file(&files, path, *lines, job.takes).await,
            Source::Diff => diff(&job.cwd).await,
            Source::Text { .. } => Found::Nothing,
        });
    }
    found
}

/// What the disk says of a path.
enum OnDisk {
    Missing,
    Image(Found),
    Other,
    File(u64),
}

async fn file(files: &Files, path: &Path, lines: Option<(u64, u64)>, takes: PromptCapabilities) -> Found {
    let owned = path.to_owned();
    let looked = tokio::task::spawn_blocking(move || look(&owned, takes.image)).await;
    let on_disk = match looked {
        Ok(Ok(on_disk)) => on_disk,
        Ok(Err(error)) => return Found::Failed(error.to_string()),
        Err(error) => return Found::Failed(error.to_string()),
    };
    match on_disk {
        OnDisk::Image(image) => return image,
        OnDisk::Other => return Found::Link,
        OnDisk::File(size) if size > MAX_TEXT && lines.is_none() => return Found::TooLarge(size),
        OnDisk::File(_) if lines.is_none() && !takes.embedded_context => return Found::Link,
        // A file that is not written yet may be in a buffer.
        OnDisk::File(_) | OnDisk::Missing => {}
    }
    let text = match files.text(path).await {
        Ok(text) => text,
        Err(TextError::Missing) => return Found::Nothing,
        Err(TextError::NotText) => return Found::Link,
        Err(TextError::Other(why)) => return Found::Failed(why),
    };
    let range = lines.map(|(first, last)| ReadRange {
        line: Some(first),
        limit: Some(last.saturating_sub(first).saturating_add(1)),
    });
    match edits::lines(&text, range.unwrap_or_default()) {
        Ok(part) if part.len() as u64 > MAX_TEXT => Found::TooLarge(part.len() as u64),
        Ok(part) => Found::Text(part.to_owned()),
        Err(problem) => Found::Failed(problem),
    }
}

fn look(path: &Path, wants_image: bool) -> std::io::Result<OnDisk> {
    // Whatever the reason is: what cannot be looked at is not there for the user either.
    let Ok(metadata) = fs::metadata(path) else { return Ok(OnDisk::Missing) };
    // Opening a FIFO would wait for whoever writes to it.
    if !metadata.is_file() {
        return Ok(OnDisk::Other);
    }
    let mut file = File::open(path)?;
    let mut head = Vec::new();
    file.by_ref().take(16).read_to_end(&mut head)?;
    let Some(mime) = image_type(&head) else { return Ok(OnDisk::File(metadata.len())) };
    if !wants_image {
        return Ok(OnDisk::Image(Found::Image { mime, data: None }));
    }
    if metadata.len() > MAX_IMAGE {
        return Ok(OnDisk::Image(Found::TooLarge(metadata.len())));
    }
    file.take(MAX_IMAGE).read_to_end(&mut head)?;
    Ok(OnDisk::Image(Found::Image { mime, data: Some(BASE64.encode(head)) }))
}

/// The type of an image by its first bytes; the name may say anything.
fn image_type(head: &[u8]) -> Option<&'static str> {
    Some(match head {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => return None,
    })
}

/// What is changed and not committed, as git tells it.
async fn diff(cwd: &Path) -> Found {
    let child = tokio::process::Command::new("git")
        .arg("-C")
        .arg(cwd)
        .args(["--no-pager", "diff", "--no-color", "--no-ext-diff", "--no-textconv", "HEAD", "--", "."])
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return Found::Failed(format!("git could not be started ({error})")),
    };
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Found::Failed("git has no output".to_owned());
    };
    let read = async {
        let (mut text, mut problem) = (Vec::new(), Vec::new());
        let (mut stdout, mut stderr) = (stdout.take(MAX_TEXT + 1), stderr.take(2000));
        tokio::try_join!(stdout.read_to_end(&mut text), stderr.read_to_end(&mut problem))?;
        if text.len() as u64 > MAX_TEXT {
            return Ok(Found::Failed(format!("the diff is longer than {} KiB", MAX_TEXT / 1024)));
        }
        Ok::<_, std::io::Error>(if child.wait().await?.success() {
            let text = String::from_utf8_lossy(&text).into_owned();
            Found::Text(if text.is_empty() { "No changes.\n".to_owned() } else { text })
        } else {
            let problem = String::from_utf8_lossy(&problem);
            let line = problem.lines().next().unwrap_or("git failed").trim_start_matches("fatal: ");
            Found::Failed(line.trim_end_matches('.').to_owned())
        })
    };
    match timeout(DIFF_PATIENCE, read).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => Found::Failed(error.to_string()),
        Err(_) => Found::Failed("git did not answer in time".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_known_by_its_bytes() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("picture.txt");
        fs::write(&path, b"\x89PNG\r\n\x1a\n")?;
        let Ok(OnDisk::Image(image)) = look(&path, true) else { panic!("no image") };
        assert_eq!(image, Found::Image { mime: "image/png", data: Some("iVBORw0KGgo=".into()) });
        let Ok(OnDisk::Image(image)) = look(&path, false) else { panic!("no image") };
        assert_eq!(image, Found::Image { mime: "image/png", data: None });
        fs::write(&path, "text")?;
        assert!(matches!(look(&path, true), Ok(OnDisk::File(4))));
        assert!(matches!(look(folder.path(), true), Ok(OnDisk::Other)));
        assert!(matches!(look(&path.join("x"), true), Ok(OnDisk::Missing)));
        Ok(())
    }

    #[test]
    fn types_of_images() {
        assert_eq!(image_type(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(image_type(b"GIF89a"), Some("image/gif"));
        assert_eq!(image_type(b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(image_type(b"RIFF\0\0\0\0WAVE"), None);
        assert_eq!(image_type(b""), None);
    }
}
