//! Writes the texts of drawings: lines of SVG text, and names that are cut to fit.

use super::html::escape;

/// Formats a line of text. The anchor is `start`, `middle` or `end`.
pub fn line(class: &str, anchor: &str, (x, y): (f64, f64), text: &str) -> String {
    let text = escape(text);
    format!("<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>\n")
}

/// Shortens a text to a number of characters. Keeps both ends, because names of a family often
/// differ only in their last characters.
pub fn shorten(text: &str, characters: usize) -> String {
    let all = text.chars().count();
    if all <= characters {
        return text.to_owned();
    }
    let kept = characters.saturating_sub(1);
    let (start, end) = (kept.div_ceil(2), all - kept / 2);
    text.chars().take(start).chain(['…']).chain(text.chars().skip(end)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_their_ends() {
        assert_eq!(shorten("ärger", 5), "ärger");
        assert_eq!(shorten("ärgerlich", 5), "är…ch");
        assert_eq!(shorten("ärger", 0), "…");
    }

    #[test]
    fn text_is_no_markup() {
        assert!(line("a", "end", (0.0, 0.0), "<b>").contains(">&lt;b&gt;</text>"));
    }
}
