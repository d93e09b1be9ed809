//! Carrying calls out, and what the model and the user are told of it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;

use super::{Outcome, Seen, location, name, print_of, search, text_content};
use crate::agent::client::{Client, End, Ran, Step, blocking};
use crate::files::edits::as_read;
use crate::files::paths;

/// The most lines that are read at once.
pub(super) const LINES: usize = 2_000;
/// The most bytes that the model is told of one call.
const BYTES: usize = 50 * 1024;
/// The largest picture that is read, in bytes.
const PICTURE: u64 = 5 * 1024 * 1024;
/// Places that are told to the client at most.
const PLACES: usize = 50;

/// Reads a file for the model.
pub(in crate::agent) async fn read(
    client: &Client,
    seen: &mut Seen,
    path: &Path,
    offset: usize,
    limit: usize,
) -> Step<Outcome> {
    if let Some(kind) = picture_kind(path) {
        return Ok(picture(path, kind).await);
    }
    if path.is_dir() {
        return Ok(Outcome::failed(format!("{} is a folder: glob lists its files", name(client, path))));
    }
    let text = match client.read(path).await? {
        Ok(text) => text,
        Err(reason) => return Ok(Outcome::failed(format!("{} cannot be read: {reason}", name(client, path)))),
    };
    seen.insert(path.to_owned(), print_of(&text));
    let lines = as_read(&text);
    let all: Vec<&str> = lines.lines().collect();
    if all.is_empty() {
        return Ok(Outcome { text: "(the file is empty)".to_owned(), ..Outcome::default() });
    }
    if offset > all.len() {
        return Ok(Outcome::failed(format!("the file has only {} lines", all.len())));
    }
    let mut told = String::new();
    let mut last = offset - 1;
    for line in all.iter().skip(offset - 1).take(limit) {
        if told.len() + line.len() > BYTES {
            if told.is_empty() {
                told.push_str(&line[..line.floor_char_boundary(BYTES)]);
                told.push_str(" (this line goes on)\n");
                last += 1;
            }
            break;
        }
        told.push_str(line);
        told.push('\n');
        last += 1;
    }
    let is_all = offset == 1 && last == all.len();
    if !is_all {
        let more = if last < all.len() { format!("; offset {} reads on", last + 1) } else { String::new() };
        let _ = write!(told, "(lines {offset} to {last} of {}{more})", all.len());
    }
    let shown = format!("{} lines", last + 1 - offset);
    Ok(Outcome { text: told, content: Some(vec![text_content(shown)]), ..Outcome::default() })
}

fn picture_kind(path: &Path) -> Option<&'static str> {
    match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "gif" => Some("image/gif"),
        "webp" => Some("image/webp"),
        _ => None,
    }
}

async fn picture(path: &Path, kind: &str) -> Outcome {
    let owned = path.to_owned();
    let bytes = blocking(move || {
        let metadata = std::fs::metadata(&owned).map_err(|error| error.to_string())?;
        if !metadata.is_file() || metadata.len() > PICTURE {
            return Err("it is no file of at most 5 MiB".to_owned());
        }
        std::fs::read(&owned).map_err(|error| error.to_string())
    });
    match bytes.await {
        Ok(bytes) => {
            let data = base64::engine::general_purpose::STANDARD.encode(bytes);
            let picture = Some(format!("data:{kind};base64,{data}"));
            Outcome { text: "The picture follows.".to_owned(), picture, ..Outcome::default() }
        }
        Err(reason) => Outcome::failed(format!("the picture cannot be read: {reason}")),
    }
}

/// Writes a file, and takes note of what is there then.
pub(in crate::agent) async fn write(client: &Client, seen: &mut Seen, path: &Path, text: &str) -> Step<Outcome> {
    if let Err(reason) = client.write(path, text).await? {
        // As it stays: the user's diff must not be replaced by a reason.
        return Ok(Outcome { text: format!("nothing was written: {reason}"), is_failure: true, ..Outcome::default() });
    }
    // A formatter of the user's may have changed it.
    let now = client.read(path).await?.unwrap_or_else(|_| text.to_owned());
    seen.insert(path.to_owned(), print_of(&now));
    let told = if now == text {
        "done".to_owned()
    } else {
        "done; what is in the file now differs from what you wrote (a formatter, or the user): read it before the next change"
            .to_owned()
    };
    if now != text {
        seen.remove(path);
    }
    Ok(Outcome { text: told, ..Outcome::default() })
}

/// What the model is told of a command.
pub(in crate::agent) fn ran(ran: &Ran) -> Outcome {
    let mut text = String::new();
    if ran.is_cut {
        text.push_str("(the beginning of the output is left out)\n");
    }
    text.push_str(ran.output.trim_end());
    if !text.is_empty() {
        text.push('\n');
    }
    let is_failure = ran.end != End::Exited(Some(0));
    match &ran.end {
        End::Exited(Some(0)) if text.is_empty() => text.push_str("(no output)"),
        End::Exited(Some(0)) => {}
        End::Exited(Some(code)) => {
            let _ = write!(text, "(exit code {code})");
        }
        End::Exited(None) => text.push_str("(ended by a signal)"),
        End::TimedOut(limit) => {
            let _ = write!(text, "(stopped after {} s: a longer timeout_s, or a command that ends)", limit.as_secs());
        }
    }
    Outcome { text, is_failure, ..Outcome::default() }
}

/// Looks for lines.
pub(in crate::agent) async fn grep(client: &Client, root: PathBuf, wanted: search::Wanted) -> Outcome {
    let folder = paths::resolve(&client.folder, None).unwrap_or_else(|folder| folder);
    match blocking(move || search::grep(&root, &folder, &wanted)).await {
        Ok(found) if found.lines.is_empty() => Outcome {
            text: "(nothing found)".to_owned(),
            content: Some(vec![text_content("nothing found")]),
            ..Outcome::default()
        },
        Ok(found) => {
            let more = if found.is_more { "(there are more: a narrower pattern, path or glob)" } else { "" };
            let text = capped(&found.lines, more);
            let locations = found.places.iter().take(PLACES).map(|(path, line)| location(path, Some(*line))).collect();
            Outcome { content: Some(vec![text_content(&text)]), text, locations: Some(locations), ..Outcome::default() }
        }
        Err(reason) => Outcome::failed(reason),
    }
}

/// Looks for files.
pub(in crate::agent) async fn glob(client: &Client, root: PathBuf, pattern: String, limit: usize) -> Outcome {
    let folder = paths::resolve(&client.folder, None).unwrap_or_else(|folder| folder);
    match blocking(move || search::glob(&root, &folder, &pattern, limit)).await {
        Ok((found, _)) if found.is_empty() => Outcome {
            text: "(nothing found)".to_owned(),
            content: Some(vec![text_content("nothing found")]),
            ..Outcome::default()
        },
        Ok((found, is_more)) => {
            let text = capped(&found, if is_more { "(there are more: a narrower pattern or path)" } else { "" });
            Outcome { content: Some(vec![text_content(&text)]), text, ..Outcome::default() }
        }
        Err(reason) => Outcome::failed(reason),
    }
}

/// Lines up to the bound, and what to say behind them.
fn capped(lines: &[String], more: &str) -> String {
    let mut text = String::new();
    for (at, line) in lines.iter().enumerate() {
        if text.len() + line.len() > BYTES {
            let _ = write!(text, "({} lines more are left out: narrow the search)", lines.len() - at);
            return text;
        }
        text.push_str(line);
        text.push('\n');
    }
    text.push_str(more);
    text
}
