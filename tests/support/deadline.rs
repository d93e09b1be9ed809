//! Waiting for a condition.

use std::thread;
use std::time::{Duration, Instant};

/// How long a wait lasts before it fails, unless a test says otherwise: generous, since a loaded machine is no bug.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// The pause between two looks at a condition.
const INTERVAL: Duration = Duration::from_millis(5);

/// Asks `probe` over and over until it has an answer; `None` when it had none within `patience`.
pub fn poll<T>(patience: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(answer) = probe() {
            return Some(answer);
        }
        if Instant::now() >= deadline {
            return None;
        }
        thread::sleep(INTERVAL);
    }
}
