//! When a request is sent again: after the statuses 408, 409, 429 and 5xx only, before anything of an answer came, and never
//! if the endpoint may have run tools for it.

use std::time::Duration;

use super::error::ApiError;

/// How often a request is sent again.
pub const MAX_RETRIES: u32 = 2;

/// The longest that is waited between two attempts. An endpoint that wants more is not waited for.
pub const MAX_WAIT: Duration = Duration::from_mins(1);

const FIRST_WAIT: Duration = Duration::from_millis(500);

/// A request is about to be sent again.
#[derive(Debug, Clone)]
pub struct Retry {
    /// How often it was sent before, from 1.
    pub attempt: u32,
    /// How long is waited.
    pub wait: Duration,
    /// What the endpoint said.
    pub error: ApiError,
}

/// How long to wait before the next attempt; nothing if there is to be none. `attempt` is how often it was sent, from 1;
/// `spread` is from 0 to 1, so that many clients do not come back at the same moment.
pub(super) fn wait(error: &ApiError, attempt: u32, may_have_run_tools: bool, spread: f64) -> Option<Duration> {
    let again = match error.status? {
        // Refused before anything was done.
        408 | 409 | 429 => true,
        500..=599 => !may_have_run_tools,
        _ => false,
    };
    // An account that is used up is not filled by waiting.
    if !again || attempt > MAX_RETRIES || error.reason() == super::Reason::Quota {
        return None;
    }
    let backoff = FIRST_WAIT * 2_u32.saturating_pow(attempt - 1);
    let wait = error.retry_after.unwrap_or_else(|| backoff.mul_f64(1.0 - spread / 4.0));
    (wait <= MAX_WAIT).then_some(wait)
}

/// Reads `retry-after-ms` and `retry-after`: seconds, or a date, of which `now` (the server's `date` header, or the time
/// here, in seconds since 1970) is taken off.
pub(super) fn retry_after(milliseconds: Option<&str>, header: Option<&str>, now: Option<u64>) -> Option<Duration> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    if let Some(milliseconds) = milliseconds.and_then(number) {
        return Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
    }
    let header = header?;
    if let Some(seconds) = number(header) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    Some(Duration::from_secs(http_date(header)?.saturating_sub(now?)))
}

/// Seconds since 1970 of a date as HTTP writes it: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(super) fn http_date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.split_once(", ")?.1.split(' ');
    let day: u64 = words.next()?.parse().ok()?;
    let month_name = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month_name)? as u64 + 1;
    let year: u64 = words.next()?.parse().ok().filter(|year| (1970..10_000).contains(year))?;
    let mut clock = words.next()?.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    // Days since 1970, with the year beginning in March, so that the leap day is its last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    let days = (365 * year + leap_days + (153 * month + 2) / 5 + day).checked_sub(719_469)?;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(status: u16) -> ApiError {
        ApiError { status: Some(status), ..ApiError::default() }
    }

    #[test]
    fn only_some_statuses_are_tried_again_and_not_for_ever() {
        for status in [408, 409, 429, 500, 502, 503, 504, 529] {
            assert!(wait(&error(status), 1, false, 0.0).is_some(), "{status}");
        }
        for status in [400, 401, 403, 404, 413, 422, 200, 302] {
            assert_eq!(wait(&error(status), 1, false, 0.0), None, "{status}");
        }
        assert_eq!(wait(&error(500), MAX_RETRIES, false, 0.0), Some(Duration::from_secs(1)));
        assert_eq!(wait(&error(500), MAX_RETRIES + 1, false, 0.0), None);
        assert_eq!(wait(&ApiError::default(), 1, false, 0.0), None);
    }

    #[test]
    fn what_may_have_run_tools_is_not_sent_again() {
        assert_eq!(wait(&error(500), 1, true, 0.0), None);
        assert!(wait(&error(429), 1, true, 0.0).is_some());
    }

    #[test]
    fn the_endpoint_says_how_long() {
        let after = |seconds| ApiError { retry_after: Some(Duration::from_secs(seconds)), ..error(429) };
        assert_eq!(wait(&after(7), 1, false, 1.0), Some(Duration::from_secs(7)));
        assert_eq!(wait(&after(61), 1, false, 1.0), None);
        assert_eq!(retry_after(Some("250"), Some("9"), None), Some(Duration::from_millis(250)));
        assert_eq!(retry_after(None, Some("1.5"), None), Some(Duration::from_millis(1500)));
        assert_eq!(
            retry_after(None, Some("Sun, 06 Nov 1994 08:49:47 GMT"), Some(784_111_777)),
            Some(Duration::from_secs(10))
        );
        assert_eq!(retry_after(None, Some("soon"), Some(0)), None);
        assert_eq!(retry_after(None, Some("-1"), Some(0)), None);
        assert_eq!(retry_after(None, None, None), None);
    }

    #[test]
    fn dates_are_read() {
        assert_eq!(http_date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(http_date("Thu, 29 Feb 2024 12:00:00 GMT"), Some(1_709_208_000));
        assert_eq!(http_date("Sunday"), None);
    }
}
