//! Files and URLs that go along with a prompt.

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::failure::Failure;
use crate::responses::{Capabilities, Client, part};

/// The largest file that is put into a request. Larger ones are uploaded, if the endpoint takes uploads.
const MAX_INLINE_BYTES: usize = 20 * 1024 * 1024;

/// What the extension of a name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Image,
    Video,
    Audio,
    File,
}

/// One `--input`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// A URL that the endpoint fetches.
    Url(String),
    /// A file of this machine, which exists.
    File(PathBuf),
}

/// Reads `--input`: `@path`, `path`, `file://…`, or a URL.
pub(crate) fn parse(text: &str) -> Result<Input, Failure> {
    if ["http://", "https://", "tos://", "data:"].iter().any(|scheme| text.starts_with(scheme)) {
        return Ok(Input::Url(text.to_owned()));
    }
    let path = text.strip_prefix("file://").or_else(|| text.strip_prefix('@')).unwrap_or(text);
    let path = PathBuf::from(path);
    if path.is_file() {
        return Ok(Input::File(path));
    }
    let failure = Failure::validation(format!("input file not found: {}", path.display()));
    Err(if path.is_dir() {
        failure.hint("it is a folder")
    } else {
        failure.hint("a path is taken from the working directory")
    })
}

/// The part of the message. `client` uploads where that is needed; without one, a stand-in takes the place.
pub(crate) async fn to_part(input: &Input, endpoint: Capabilities, client: Option<&Client>) -> Result<Value, Failure> {
    match input {
        Input::Url(url) => Ok(of_url(url)),
        Input::File(path) => of_file(path, endpoint, client).await,
    }
}

fn of_url(url: &str) -> Value {
    let kind = match url.strip_prefix("data:") {
        Some(data) => ["image/", "video/", "audio/"]
            .iter()
            .position(|kind| data.starts_with(kind))
            .map_or(Kind::File, |at| [Kind::Image, Kind::Video, Kind::Audio][at]),
        None => kind_of(url.split(['?', '#']).next().unwrap_or_default()),
    };
    match kind {
        Kind::Image => part::image_url(url),
        Kind::Video => json!({"type": "input_video", "video_url": url}),
        Kind::Audio => json!({"type": "input_audio", "audio_url": url}),
        Kind::File => json!({"type": "input_file", "file_url": url}),
    }
}

async fn of_file(path: &Path, endpoint: Capabilities, client: Option<&Client>) -> Result<Value, Failure> {
    let shown = path.display();
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::validation(format!("input file {shown} cannot be read: {}", reason(&error))))?;
    let name = path.file_name().map_or_else(|| "file".to_owned(), |name| name.to_string_lossy().into_owned());
    let kind = kind_of(&name);
    let data_url = || format!("data:{};base64,{}", media_type(&name), STANDARD.encode(&bytes));
    let is_small = bytes.len() <= MAX_INLINE_BYTES;
    match kind {
        Kind::Image if is_small => return Ok(part::image_url(data_url())),
        // Ark reads documents, videos and sounds from uploads.
        Kind::File if is_small && endpoint.inlines_files && !endpoint.ark_fields => {
            return Ok(part::file_data(name.as_str(), data_url()));
        }
        Kind::File if !endpoint.uploads && !endpoint.inlines_files => {
            let text = String::from_utf8(bytes).map_err(|_| {
                Failure::validation(format!(
                    "input file {shown} is neither text nor a picture, which is all that this endpoint takes"
                ))
                .hint("use a profile whose endpoint takes files (openai, ark), or convert it to text")
            })?;
            return Ok(part::text(format!("<file name=\"{name}\">\n{text}\n</file>")));
        }
        _ => {}
    }
    if !endpoint.uploads {
        return Err(Failure::validation(format!("input file {shown} cannot be sent: this endpoint takes no uploads"))
            .hint("name a URL that the endpoint can fetch, or use a profile of openai or ark"));
    }
    let id = match client {
        Some(client) => {
            client.upload(&name, &bytes).await.map_err(|error| Failure::of_request("upload_file", &error))?
        }
        None => format!("(id of the upload of {shown})"),
    };
    Ok(match kind {
        Kind::Image => json!({"type": "input_image", "detail": "auto", "file_id": id}),
        Kind::Video => json!({"type": "input_video", "file_id": id}),
        Kind::Audio => json!({"type": "input_audio", "file_id": id}),
        Kind::File => json!({"type": "input_file", "file_id": id}),
    })
}

fn extension(name: &str) -> String {
    Path::new(name).extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase()
}

fn kind_of(name: &str) -> Kind {
    match extension(name).as_str() {
        "jpg" | "jpeg" | "png" | "webp" | "gif" | "bmp" => Kind::Image,
        "mp4" | "mov" | "webm" | "mkv" | "avi" => Kind::Video,
        "mp3" | "wav" | "m4a" | "aac" | "flac" | "ogg" => Kind::Audio,
        _ => Kind::File,
    }
}

fn media_type(name: &str) -> &'static str {
    match extension(name).as_str() {
        "jpg" | "jpeg" => "image/jpeg",
        "png" => "image/png",
        "webp" => "image/webp",
        "gif" => "image/gif",
        "bmp" => "image/bmp",
        "pdf" => "application/pdf",
        "json" => "application/json",
        "html" | "htm" => "text/html",
        "csv" => "text/csv",
        "md" => "text/markdown",
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "pptx" => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "zip" | "gz" | "bin" | "exe" => "application/octet-stream",
        _ => "text/plain",
    }
}

/// What the system says about a file, in the words of the command that this one is like.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::InvalidData => "it is not UTF-8".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responses::Dialect;

    async fn part_of(name: &str, bytes: &[u8], dialect: Dialect) -> Result<Value, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        to_part(&parse(path.to_str().unwrap()).unwrap(), dialect.capabilities(), None).await
    }

    #[test]
    fn paths_and_urls_are_told_apart() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        for text in [path.to_owned(), format!("@{path}"), format!("file://{path}")] {
            assert_eq!(parse(&text).unwrap(), Input::File(path.into()));
        }
        assert_eq!(parse("https://x/a.png").unwrap(), Input::Url("https://x/a.png".into()));
        for missing in ["/nowhere/a.png", "@/nowhere/a.png"] {
            assert_eq!(parse(missing).unwrap_err().message, "input file not found: /nowhere/a.png");
        }
    }

    #[test]
    fn the_extension_decides() {
        assert_eq!(of_url("https://x/a.PNG?x=1")["type"], "input_image");
        assert_eq!(of_url("tos://b/a.mp4")["type"], "input_video");
        assert_eq!(of_url("https://x/a.mp3")["type"], "input_audio");
        assert_eq!(of_url("https://x/a.pdf")["type"], "input_file");
        assert_eq!(of_url("data:image/png;base64,AA==")["type"], "input_image");
    }

    #[tokio::test]
    async fn a_picture_is_inlined_everywhere() {
        for dialect in Dialect::ALL {
            let part = part_of("a.png", b"abc", dialect).await.unwrap();
            assert_eq!(
                part,
                json!({"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,YWJj"})
            );
        }
    }

    #[tokio::test]
    async fn a_document_goes_as_the_endpoint_takes_it() {
        let openai = part_of("a.pdf", b"abc", Dialect::OpenAi).await.unwrap();
        assert_eq!(
            openai,
            json!({"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,YWJj"})
        );
        assert!(part_of("a.pdf", b"abc", Dialect::Ark).await.unwrap()["file_id"].is_string());
        let local = part_of("a.rs", b"fn main() {}", Dialect::Ollama).await.unwrap();
        assert_eq!(local["text"], "<file name=\"a.rs\">\nfn main() {}\n</file>");
        assert!(
            part_of("a.pdf", b"\xff\xfe", Dialect::Ollama)
                .await
                .unwrap_err()
                .message
                .contains("neither text nor a picture")
        );
        assert!(part_of("a.mp4", b"abc", Dialect::Ollama).await.unwrap_err().message.contains("no uploads"));
    }
}
