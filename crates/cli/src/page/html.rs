//! Text as part of a page.

use std::fmt::Write;

/// Text with nothing in it that a page would take for its own: usable between tags and in quoted attributes. What is no
/// character of such a page becomes a replacement.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}

/// A part of the page under a heading. The content is markup already.
pub fn section(heading: &str, content: &str) -> String {
    format!("<section>\n<h2>{}</h2>\n{content}\n</section>\n", escape(heading))
}

/// Text as it is, in a fixed width.
pub fn verbatim(text: &str) -> String {
    format!("<pre>{}</pre>", escape(text.trim_end()))
}

/// Names with values.
pub fn table(rows: &[(&str, String)]) -> String {
    let mut out = String::from("<table>\n");
    for (name, value) in rows {
        let _ = writeln!(out, "<tr><th>{}</th><td>{}</td></tr>", escape(name), escape(value));
    }
    out + "</table>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        let escaped = escape("<b a=\"1\" c='2'>&amp;\u{0}\u{1b}\n");
        assert_eq!(escaped, "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;\u{fffd}\u{fffd}\n");
    }
}
