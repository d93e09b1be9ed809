//! How fast the guide talks.

use std::time::Duration;

/// The environment variable that [`Pace::from_env`] reads.
pub const PACE_VARIABLE: &str = "AGENTCHAT_TOUR_PACE";

/// Between two chunks at the natural pace: 40 chunks a second, about as fast as a model streams.
const CHUNK_INTERVAL: Duration = Duration::from_millis(25);

/// A longer stop, so that a step can be seen before the next one begins.
const BREATH: Duration = Duration::from_millis(400);

/// A slower tour than this is taken for a slip of the keyboard.
const SLOWEST: f64 = 20.0;

/// A factor on every delay of the guide: 1 is natural, 2 is half as fast, 0 does not wait at all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace(f64);

impl Pace {
    /// 40 chunks a second.
    pub const NATURAL: Self = Self(1.0);
    /// No delay anywhere: for tests and benches.
    pub const AT_ONCE: Self = Self(0.0);

    /// The pace for a factor; what is not a number or negative is the natural pace.
    pub fn new(factor: f64) -> Self {
        if factor.is_finite() && factor >= 0.0 { Self(factor.min(SLOWEST)) } else { Self::NATURAL }
    }

    /// The factor in `AGENTCHAT_TOUR_PACE`; the natural pace when it is unset or not a number.
    pub fn from_env() -> Self {
        std::env::var(PACE_VARIABLE).ok().and_then(|text| text.trim().parse().ok()).map_or(Self::NATURAL, Self::new)
    }

    /// Waits between two chunks of text.
    pub(super) async fn chunk(self) {
        self.wait(CHUNK_INTERVAL).await;
    }

    /// Waits between two steps.
    pub(super) async fn breath(self) {
        self.wait(BREATH).await;
    }

    async fn wait(self, natural: Duration) {
        if self.0 == 0.0 {
            // Without this a chapter would run to its end before a cancel in the input is looked at.
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(natural.mul_f64(self.0)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_that_makes_no_sense_is_the_natural_pace() {
        for factor in [-1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Pace::new(factor), Pace::NATURAL);
        }
        assert_eq!(Pace::new(0.0), Pace::AT_ONCE);
        assert_eq!(Pace::new(1e9), Pace::new(SLOWEST));
    }
}
