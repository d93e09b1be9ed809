//! The log: a bounded, private file without secrets, that never stands in anybody's way.
//!
//! * **Bounded**: at most [`MAX_FILE_BYTES`] in the file and as much in its predecessor (`name.1`); one event has at most
//!   [`MAX_EVENT_BYTES`]. Several helpers may share one file.
//! * **Private**: mode 0600, and [`redact`](redact::redact) runs over every event before it is written.
//! * **Harmless**: a full disk costs the lines that did not fit, and their number is logged when there is room again.
//!   Nothing here panics, and nothing waits for a reader.
//!
//! `AGENTCHAT_LOG` sets what is logged, in the syntax of [`EnvFilter`], such as `debug` or `warn,agentchat::acp=trace`;
//! without it `info`.

mod file;
mod panics;
pub mod redact;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::{EnvFilter, Layer as _, layer::SubscriberExt as _};

use file::BoundedFile;
pub use panics::install_panic_hook;

/// The size at which the file is renamed to `name.1` and a new one is begun, in bytes.
pub const MAX_FILE_BYTES: u64 = 5 * 1024 * 1024;

/// The size to which one event is cut, in bytes, so that one huge message does not push all others out.
pub const MAX_EVENT_BYTES: usize = 16 * 1024;

/// The environment variable that says what is logged.
pub const LEVEL_VARIABLE: &str = "AGENTCHAT_LOG";

/// Why there is no log. The program works without it.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// The folder is not there and could not be created.
    #[error("the log's folder {} could not be created ({source}): check its parent's permissions", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system says about it.
        source: io::Error,
    },
    /// The file could not be opened for appending, or not be made private.
    #[error("the log {} could not be opened ({source}): check its permissions, or delete it", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system says about it.
        source: io::Error,
    },
    /// [`init`] was called before in this process.
    #[error("the log was already opened by this process")]
    AlreadyInitialized,
}

/// The file of this process, for the panic hook, which cannot go through `tracing` when the panic came from there.
static SINK: OnceLock<Arc<BoundedFile>> = OnceLock::new();

/// Opens `folder/file_name`, creating the folder, and sends everything that `tracing` collects in this process there.
/// Returns the file's path.
///
/// A value of `AGENTCHAT_LOG` that is not understood is logged as a warning, and means `info`.
///
/// # Errors
/// See [`LoggingError`].
pub fn init(folder: &Path, file_name: &str) -> Result<PathBuf, LoggingError> {
    create_private_folder(folder).map_err(|source| LoggingError::Folder { path: folder.to_owned(), source })?;
    let path = folder.join(file_name);
    let file =
        BoundedFile::open(&path, MAX_FILE_BYTES).map_err(|source| LoggingError::Open { path: path.clone(), source })?;
    let file = Arc::new(file);
    SINK.set(Arc::clone(&file)).map_err(|_| LoggingError::AlreadyInitialized)?;

    let (filter, misunderstood) = filter_from(std::env::var_os(LEVEL_VARIABLE));
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        // It would be an `eprintln!`, which panics once Neovim has closed our standard error.
        .log_internal_errors(false)
        .with_writer(EventWriter { file })
        .with_filter(filter);
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))
        .map_err(|_| LoggingError::AlreadyInitialized)?;
    if let Some(problem) = misunderstood {
        tracing::warn!("{LEVEL_VARIABLE} is not understood, so `info` is used: {problem}");
    }
    Ok(path)
}

fn filter_from(value: Option<std::ffi::OsString>) -> (EnvFilter, Option<String>) {
    let builder = || EnvFilter::builder().with_default_directive(LevelFilter::INFO.into());
    let Some(value) = value.filter(|value| !value.is_empty()) else {
        return (builder().parse_lossy(""), None);
    };
    match value.to_str().map(|text| builder().parse(text)) {
        Some(Ok(filter)) => (filter, None),
        Some(Err(error)) => (builder().parse_lossy(""), Some(error.to_string())),
        None => (builder().parse_lossy(""), Some("it is not UTF-8".to_owned())),
    }
}

#[cfg(unix)]
pub(crate) fn create_private_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
pub(crate) fn create_private_folder(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)
}

/// Turns one formatted event into one redacted, cut write.
struct EventWriter {
    file: Arc<BoundedFile>,
}

impl<'a> MakeWriter<'a> for EventWriter {
    type Writer = EventSink<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        EventSink { file: &self.file }
    }
}

/// `tracing_subscriber::fmt` hands over each event in one call of `write_all`.
struct EventSink<'a> {
    file: &'a BoundedFile,
}

impl io::Write for EventSink<'_> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.file.append(&presentable(&String::from_utf8_lossy(event)));
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `event` as it may be written: cut, without secrets, ending in a newline.
///
/// It is cut first: half a secret still looks like one, and looking through megabytes that are thrown away costs time.
fn presentable(event: &str) -> String {
    let event = event.trim_end_matches('\n');
    let kept = event.floor_char_boundary(MAX_EVENT_BYTES);
    let text = redact::redact(&event[..kept]);
    match event.len() - kept {
        0 => format!("{text}\n"),
        cut => format!("{text} … ({cut} bytes cut)\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_event_is_cut_between_characters_and_says_so() {
        let event = format!("a{}\n", "é".repeat(MAX_EVENT_BYTES));
        let text = presentable(&event);
        assert!(text.len() <= MAX_EVENT_BYTES + 40, "{}", text.len());
        assert!(text.ends_with(" bytes cut)\n"), "{}", &text[text.len() - 60..]);
    }

    #[test]
    fn a_secret_that_is_cut_in_half_stays_secret() {
        let event = format!("{} OPENAI_API_KEY=abcdefghijklmnop", "x".repeat(MAX_EVENT_BYTES - 20));
        assert!(!presentable(&event).contains("abc"));
    }

    #[test]
    fn a_level_that_is_not_understood_is_reported_and_means_info() {
        let (filter, problem) = filter_from(Some("a=b=c".into()));
        assert_eq!(filter.max_level_hint(), Some(LevelFilter::INFO));
        assert!(problem.is_some());
        let (filter, problem) = filter_from(Some("debug".into()));
        assert_eq!((filter.max_level_hint(), problem), (Some(LevelFilter::DEBUG), None));
        assert_eq!(filter_from(None).0.max_level_hint(), Some(LevelFilter::INFO));
    }
}
