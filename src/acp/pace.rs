//! When an agent's output is read again: what piles up in the pipe for a moment costs one wake-up instead of many.

use std::time::{Duration, Instant};

/// Reads that follow each other closer than this are a stream, which may wait.
const STREAM_GAP: Duration = Duration::from_millis(150);
/// How long text that trickles in is left to pile up: less than between two frames.
const TRICKLE_PAUSE: Duration = Duration::from_millis(50);
/// The same for text that comes faster than anybody reads: this many bytes of messages or more in a read.
const FAST_PAUSE: Duration = Duration::from_millis(100);
const FAST: usize = 1024;
/// How long a flood is left to pile up; far below what anybody notices.
const FLOOD_PAUSE: Duration = Duration::from_millis(1);
/// Text of this many bytes at once does not trickle.
const FLOOD: usize = 4 * 1024;

/// What a read brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Brought {
    /// Pieces of messages: nobody waits for an answer to them.
    Text,
    /// Anything else.
    Other,
}

/// The pace of one agent's output.
#[derive(Debug)]
pub(super) struct Pace {
    /// Most bytes of a read.
    most: usize,
    last_read: Option<Instant>,
}

impl Pace {
    /// Of an agent whose output is read `most` bytes at once.
    pub(super) const fn new(most: usize) -> Self {
        Self { most, last_read: None }
    }

    /// How long to wait after a read of `length` bytes at `now`.
    pub(super) fn pause(&mut self, now: Instant, length: usize, brought: Brought) -> Option<Duration> {
        let is_stream = self.last_read.replace(now).is_some_and(|last| now.duration_since(last) < STREAM_GAP);
        // After half a buffer there is probably more, and the pipe may be full.
        if !is_stream || length >= self.most / 2 {
            None
        } else if length >= FLOOD {
            Some(FLOOD_PAUSE)
        } else {
            (brought == Brought::Text).then_some(if length < FAST { TRICKLE_PAUSE } else { FAST_PAUSE })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_waits_and_a_flood_hardly() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut pace = Pace::new(100_000);
        assert_eq!(pace.pause(at(0), 200, Brought::Text), None, "the first word comes at once");
        assert_eq!(pace.pause(at(10), 200, Brought::Text), Some(TRICKLE_PAUSE));
        assert_eq!(pace.pause(at(61), 600, Brought::Text), Some(TRICKLE_PAUSE));
        assert_eq!(pace.pause(at(112), 1_600, Brought::Text), Some(FAST_PAUSE));
        assert_eq!(pace.pause(at(213), 600, Brought::Other), None, "an answer may be waited for");
        assert_eq!(pace.pause(at(214), 20_000, Brought::Other), Some(FLOOD_PAUSE));
        assert_eq!(pace.pause(at(215), 60_000, Brought::Text), None, "there is more");
        assert_eq!(pace.pause(at(400), 600, Brought::Text), None, "after a silence");
    }
}
