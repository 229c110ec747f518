//! Formats times and dates as text, and reads the current time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Formats seconds with four digits and a suitable unit.
pub fn seconds(time: f64) -> String {
    let (value, unit) = match time {
        _ if time < 1e-6 => (time * 1e9, "ns"),
        _ if time < 1e-3 => (time * 1e6, "us"),
        _ if time < 1.0 => (time * 1e3, "ms"),
        _ => (time, "s"),
    };
    let digits = if value < 10.0 {
        3
    } else if value < 100.0 {
        2
    } else {
        1
    };
    format!("{value:.digits$} {unit}")
}

/// The last second of the year 9999, the last date that can be formatted.
const LAST_SECOND: i64 = 253_402_300_799;

/// Formats seconds since 1970 as `2026-11-15 08:30:00`, in UTC.
pub fn date(unix: i64) -> String {
    let since = Duration::from_secs(unix.clamp(0, LAST_SECOND) as u64);
    let written = humantime::format_rfc3339_seconds(UNIX_EPOCH + since).to_string();
    written.trim_end_matches('Z').replace('T', " ")
}

/// The current time in seconds since 1970.
pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00:00");
        assert_eq!(date(1_700_000_000), "2023-11-14 22:13:20");
        assert_eq!(date(i64::MAX), "9999-12-31 23:59:59");
        assert_eq!(date(-5), date(0));
    }

    #[test]
    fn seconds_have_a_unit() {
        assert_eq!(
            [2.5e-9, 1.5e-5, 0.25, 12.0].map(seconds),
            ["2.500 ns", "15.00 us", "250.0 ms", "12.00 s"]
        );
    }
}
