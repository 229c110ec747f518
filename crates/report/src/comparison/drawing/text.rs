//! Formats names, numbers and headings for drawings, as SVG texts that fit their width.

use super::WIDTH;
use crate::page::html::escape;
pub use crate::page::text::line;
use crate::page::text::shorten as shorten_to;

/// An upper estimate of the width of a character. The page's font is unknown here, so the estimate
/// is generous.
pub const CHARACTER_WIDTH: f64 = 7.0;
/// An upper estimate of the width of a character of a heading.
const HEADING_CHARACTER_WIDTH: f64 = 8.0;

/// Starts a drawing with its heading. The heading is the name `of` the subject, cut if it is too
/// long, followed by `shows`.
pub fn open_drawing(height: f64, left: f64, of: &str, shows: &str) -> String {
    let room = (WIDTH - left) / HEADING_CHARACTER_WIDTH - shows.chars().count() as f64;
    let heading =
        line("heading", "start", (left, 18.0), &format!("{}{shows}", shorten_to(of, room as usize)));
    let (of, shows) = (escape(of), escape(shows));
    format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{of}{shows}\">\n{heading}")
}

/// Shortens a name in the middle if it is wider than `width`.
pub fn shorten(text: &str, width: f64) -> String {
    shorten_to(text, (width / CHARACTER_WIDTH) as usize)
}

/// Formats a number with three significant digits, or more if it is large.
pub fn number(value: f64) -> String {
    format!("{value:.*}", decimals(value, 2))
}

/// Formats a round number along an axis, with no more digits than it needs.
pub fn tick(value: f64) -> String {
    format!("{value:.*}", decimals(value, 0))
}

/// The number of decimals, such that `following` digits follow the first significant one.
fn decimals(value: f64, following: i32) -> usize {
    // The factor is slightly more than 1, because 1000 may be stored as 999.9999.
    let power = (value.abs() * (1.0 + 1e-9)).log10().floor();
    if power.is_finite() { (following - power as i32).clamp(0, 9) as usize } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_that_matter() {
        assert_eq!(
            [0.0, 0.001234, 0.5, 12.34, 4567.8].map(number),
            ["0", "0.00123", "0.500", "12.3", "4568"]
        );
        assert_eq!([0.02, 0.5, 1.0, 20.0, 1e4].map(tick), ["0.02", "0.5", "1", "20", "10000"]);
    }

    #[test]
    fn long_names_keep_their_ends() {
        assert_eq!(shorten("ärger", 5.0 * CHARACTER_WIDTH), "ärger");
        assert_eq!(shorten("ärgerlich", 5.0 * CHARACTER_WIDTH), "är…ch");
    }

    #[test]
    fn a_heading_says_what_is_shown() {
        let start = open_drawing(10.0, 0.0, &"name".repeat(90), ": by trials");
        assert!(
            start.starts_with("<svg viewBox=\"0 0 860 10\"") && start.contains("name: by trials</text>"),
            "{start}"
        );
    }
}
