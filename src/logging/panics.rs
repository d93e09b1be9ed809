//! What a panic leaves behind: a line and a backtrace in the log, a line on standard error.

use std::backtrace::Backtrace;
use std::fmt::Write as _;
use std::io::Write as _;
use std::panic::PanicHookInfo;

use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};

use super::{SINK, presentable};

/// Replaces the default hook, which panics itself when standard error is closed.
///
/// Works before and without [`init`](super::init); then only standard error gets its line.
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        let line = describe(info);
        if let Some(file) = SINK.get() {
            // Not through `tracing`: it drops events that are sent while one is being formatted, as this may be.
            let mut time = String::new();
            // Without a clock the line is still worth having.
            let _ = SystemTime.format_time(&mut Writer::new(&mut time));
            file.append(&presentable(&format!("{time} ERROR {line}\n{}", Backtrace::force_capture())));
        }
        // Whoever closed our standard error does not want to know.
        let _ = std::io::stderr().write_all(presentable(&format!("agentchat: {line}")).as_bytes());
    }));
}

/// "panic in thread `name` at src/x.rs:1:2: message", on one line.
fn describe(info: &PanicHookInfo<'_>) -> String {
    let message = info.payload_as_str().unwrap_or("(no message)");
    let thread = std::thread::current();
    let mut line = format!("panic in thread `{}`", thread.name().unwrap_or("unnamed"));
    if let Some(place) = info.location() {
        // Writing to a String does not fail.
        let _ = write!(line, " at {place}");
    }
    line.push_str(": ");
    line.push_str(&message.replace(['\n', '\r'], " "));
    line
}
