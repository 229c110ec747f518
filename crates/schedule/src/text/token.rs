//! Splits one line into tokens.
//!
//! The language's own lexer decides which words are names. It does not split the line, because in
//! schedules brackets are always tokens of their own and a dot always stands between names.

use tilewright_syntax::Span;
use tilewright_syntax::lexer::{TokenKind, lex};

/// A token and its place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Span,
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name of the language, or a word of a step.
    Word,
    /// Decimal digits.
    Integer,
    Arrow,
    Comma,
    Colon,
    Dot,
    LeftParen,
    RightParen,
    LeftBracket,
    RightBracket,
    Slash,
    Percent,
    /// Characters that have no meaning in a schedule.
    Unknown,
    /// The end of the line, after the last token.
    End,
}

const SYMBOLS: &[(&str, Kind)] = &[
    ("->", Kind::Arrow),
    ("→", Kind::Arrow),
    (",", Kind::Comma),
    (":", Kind::Colon),
    (".", Kind::Dot),
    ("(", Kind::LeftParen),
    (")", Kind::RightParen),
    ("[", Kind::LeftBracket),
    ("]", Kind::RightBracket),
    ("/", Kind::Slash),
    ("%", Kind::Percent),
];

/// The tokens of a line that begins at byte `start` of its text. A line without a step has no
/// tokens.
pub(super) fn tokens(line: &str, start: usize) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(next) = line[at..].chars().next() {
        let rest = &line[at..];
        if next == '#' {
            break;
        }
        if next.is_whitespace() {
            at += next.len_utf8();
            continue;
        }
        let (kind, length) = if is_word(next) { word(rest) } else { symbol(rest) };
        tokens.push(Token { kind, span: Span::new(start + at, start + at + length) });
        at += length;
    }
    tokens
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn word(rest: &str) -> (Kind, usize) {
    let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    let text = &rest[..length];
    let kind = if text.bytes().all(|byte| byte.is_ascii_digit()) {
        Kind::Integer
    } else if is_name(text) {
        Kind::Word
    } else {
        Kind::Unknown
    };
    (kind, length)
}

/// Returns true when a word is a name of the language. A word that begins with a digit, such as
/// `1e5`, may be a number there.
fn is_name(word: &str) -> bool {
    if !word.starts_with(|first: char| first.is_ascii_digit()) {
        return true;
    }
    let (tokens, _) = lex(word);
    matches!(tokens.first(), Some(first) if matches!(first.kind, TokenKind::Word(_)))
}

/// A symbol, or a run of characters that belong to no token.
fn symbol(rest: &str) -> (Kind, usize) {
    if let Some((text, kind)) = SYMBOLS.iter().find(|(text, _)| rest.starts_with(text)) {
        return (*kind, text.len());
    }
    let known = |c: char| {
        is_word(c) || c.is_whitespace() || c == '#' || SYMBOLS.iter().any(|(text, _)| text.starts_with(c))
    };
    let first = rest.chars().next().map_or(0, char::len_utf8);
    let more = rest[first..].find(known).unwrap_or(rest.len() - first);
    (Kind::Unknown, first + more)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds_and_texts(line: &str) -> Vec<(Kind, &str)> {
        tokens(line, 0).into_iter().map(|token| (token.kind, token.span.text(line))).collect()
    }

    #[test]
    fn a_name_may_begin_with_a_digit() {
        assert_eq!(
            kinds_and_texts("1LUT[2].3x"),
            [
                (Kind::Word, "1LUT"),
                (Kind::LeftBracket, "["),
                (Kind::Integer, "2"),
                (Kind::RightBracket, "]"),
                (Kind::Dot, "."),
                (Kind::Word, "3x"),
            ]
        );
    }

    #[test]
    fn what_the_language_takes_for_a_number_is_no_name() {
        assert_eq!(kinds_and_texts("1e5 0x1F 12u"), ["1e5", "0x1F", "12u"].map(|text| (Kind::Unknown, text)));
    }

    #[test]
    fn strange_characters_are_one_token_a_run() {
        assert_eq!(
            kinds_and_texts("@@-é - -> →# @"),
            [
                (Kind::Unknown, "@@"),
                (Kind::Unknown, "-é"),
                (Kind::Unknown, "-"),
                (Kind::Arrow, "->"),
                (Kind::Arrow, "→")
            ]
        );
    }
}
