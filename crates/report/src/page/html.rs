//! Formats text as parts of an HTML page: escaped text, sections and tables.

use std::fmt::Write;

/// Escapes text for use between tags and in quoted attributes. Control characters, which HTML
/// forbids, become the replacement character.
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

/// Returns the text that [`escape`] was given, except for control characters.
#[cfg(feature = "png")]
pub fn unescape(text: &str) -> String {
    let marks = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    marks.iter().fold(text.to_owned(), |text, (escaped, mark)| text.replace(escaped, mark))
}

/// A section with a heading. The content is markup already.
pub fn section(heading: &str, content: &str) -> String {
    format!("<section>\n<h2>{}</h2>\n{content}\n</section>\n", escape(heading))
}

/// Preformatted text in a fixed-width font.
pub fn verbatim(text: &str) -> String {
    format!("<pre>{}</pre>", escape(text.trim_end()))
}

/// A table of names and values.
pub fn table(rows: &[(&str, String)]) -> String {
    let mut out = String::from("<table>\n");
    for (name, value) in rows {
        let _ = writeln!(out, "<tr><th>{}</th><td>{}</td></tr>", escape(name), escape(value));
    }
    out + "</table>"
}

/// Quotes a command line so that a shell reads the same words.
pub fn command_line(words: impl Iterator<Item = String>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
    let quoted = |word: String| match !word.is_empty() && word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        let escaped = escape("<b a=\"1\" c='2'>&amp;\u{0}\u{1b}\n");
        assert_eq!(escaped, "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;\u{fffd}\u{fffd}\n");
    }

    #[test]
    #[cfg(feature = "png")]
    fn a_text_comes_back() {
        let text = "<b a=\"1\" c='2'>&amp; &lt;\n";
        assert_eq!(unescape(&escape(text)), text);
    }

    #[test]
    fn a_shell_understands_the_command() {
        let words = ["tilewright", "tune", "my file.tw", "--sizes", "M=1,N=2", "it's", ""];
        let wanted = r"tilewright tune 'my file.tw' --sizes M=1,N=2 'it'\''s' ''";
        assert_eq!(command_line(words.into_iter().map(str::to_owned)), wanted);
    }
}
