//! Cuts text into tokens.
//!
//! Two rules are unusual. An identifier may begin with a digit if it contains a letter (`2LUT`), so
//! a word is a number only if the whole word is one. And a token records whether it is the first on
//! its line. A statement ends where the next one begins, and `(A, B) = f(C)` on a new line is not
//! an argument list.

use crate::diagnostic::{Code, Diagnostic};
use crate::span::Span;

/// A token and its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// The kind of token.
    pub kind: TokenKind,
    /// The position of the token.
    pub span: Span,
    /// Whether the token is the first on its line.
    pub starts_line: bool,
}

/// The type suffix of a number, as in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Suffix {
    None,
    Float,
    Unsigned,
    Long,
    UnsignedLong,
}

/// The kinds of token. Keywords are words; the parser recognises them by their position.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum TokenKind {
    Word(String),
    Int(i128, Suffix),
    Float(f64, Suffix),
    LeftParen,
    RightParen,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    Comma,
    Colon,
    Semicolon,
    Dot,
    DotDot,
    Question,
    Arrow,
    Assign,
    /// `+=`, or `+=!` if the flag is set.
    AddAssign(bool),
    /// `*=`, or `*=!` if the flag is set.
    MulAssign(bool),
    /// `min=`, or `min=!` if the flag is set.
    MinAssign(bool),
    /// `max=`, or `max=!` if the flag is set.
    MaxAssign(bool),
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Power,
    Not,
    And,
    Or,
    BitAnd,
    BitOr,
    BitXor,
    Complement,
    ShiftLeft,
    ShiftRight,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    End,
}

/// The maximal length of a name.
const LONGEST_NAME: usize = 200;

/// Operators and punctuation, longest first.
const SYMBOLS: &[(&str, TokenKind)] = &[
    ("+=!", TokenKind::AddAssign(true)),
    ("*=!", TokenKind::MulAssign(true)),
    ("+=", TokenKind::AddAssign(false)),
    ("*=", TokenKind::MulAssign(false)),
    ("->", TokenKind::Arrow),
    ("→", TokenKind::Arrow),
    ("==", TokenKind::Equal),
    ("!=", TokenKind::NotEqual),
    ("≠", TokenKind::NotEqual),
    ("<=", TokenKind::LessEqual),
    ("≤", TokenKind::LessEqual),
    (">=", TokenKind::GreaterEqual),
    ("≥", TokenKind::GreaterEqual),
    ("&&", TokenKind::And),
    ("||", TokenKind::Or),
    ("<<", TokenKind::ShiftLeft),
    (">>", TokenKind::ShiftRight),
    ("**", TokenKind::Power),
    ("=", TokenKind::Assign),
    ("<", TokenKind::Less),
    (">", TokenKind::Greater),
    ("(", TokenKind::LeftParen),
    (")", TokenKind::RightParen),
    ("[", TokenKind::LeftBracket),
    ("]", TokenKind::RightBracket),
    ("{", TokenKind::LeftBrace),
    ("}", TokenKind::RightBrace),
    (",", TokenKind::Comma),
    (":", TokenKind::Colon),
    (";", TokenKind::Semicolon),
    ("..", TokenKind::DotDot),
    (".", TokenKind::Dot),
    ("?", TokenKind::Question),
    ("+", TokenKind::Plus),
    ("-", TokenKind::Minus),
    ("*", TokenKind::Star),
    ("/", TokenKind::Slash),
    ("%", TokenKind::Percent),
    ("!", TokenKind::Not),
    ("&", TokenKind::BitAnd),
    ("|", TokenKind::BitOr),
    ("^", TokenKind::BitXor),
    ("~", TokenKind::Complement),
];

/// Returns the tokens of a text, the last one being [`TokenKind::End`], and errors about text that
/// is not a token.
pub fn lex(source: &str) -> (Vec<Token>, Vec<Diagnostic>) {
    // Some editors begin every file with a byte order mark.
    let at = if source.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut lexer = Lexer { source, at, tokens: Vec::new(), diagnostics: Vec::new(), starts_line: true };
    lexer.run();
    (lexer.tokens, lexer.diagnostics)
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    tokens: Vec<Token>,
    diagnostics: Vec<Diagnostic>,
    starts_line: bool,
}

impl Lexer<'_> {
    fn run(&mut self) {
        while let Some(next) = self.rest().chars().next() {
            match next {
                '\n' => {
                    self.starts_line = true;
                    self.at += 1;
                }
                '#' => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
                _ if next.is_whitespace() => self.at += next.len_utf8(),
                _ if next.is_ascii_alphanumeric() || next == '_' => self.word_or_number(),
                '.' if self.starts_fraction() => self.word_or_number(),
                _ => self.symbol(),
            }
        }
        let end = Span::new(self.source.len(), self.source.len());
        self.tokens.push(Token { kind: TokenKind::End, span: end, starts_line: true });
    }

    fn rest(&self) -> &str {
        &self.source[self.at..]
    }

    fn push(&mut self, kind: TokenKind, length: usize) {
        let span = Span::new(self.at, self.at + length);
        self.tokens.push(Token { kind, span, starts_line: std::mem::take(&mut self.starts_line) });
        self.at += length;
    }

    /// `.5` is a number, except directly after a word: `A.1` is an extent.
    fn starts_fraction(&self) -> bool {
        let behind_name = self.tokens.last().is_some_and(|last| {
            last.span.end as usize == self.at
                && matches!(last.kind, TokenKind::Word(_) | TokenKind::RightBracket)
        });
        !behind_name && self.rest()[1..].starts_with(|next: char| next.is_ascii_digit())
    }

    fn word_or_number(&mut self) {
        let rest = self.rest();
        let word = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let number = number_length(rest);
        // `1e5` and `0x1F` are numbers although they could be words; `2LUT` is a word although it
        // begins with a number.
        if number > 0 && number >= word {
            match number_token(&rest[..number]) {
                Some(kind) => self.push(kind, number),
                None => {
                    let span = Span::new(self.at, self.at + number);
                    self.diagnostics.push(
                        Diagnostic::error(Code::Syntax, span, "this number is too large")
                            .help("integers have at most 64 bits"),
                    );
                    self.push(TokenKind::Int(1, Suffix::None), number);
                }
            }
            return;
        }
        if word > LONGEST_NAME {
            let text = rest[..LONGEST_NAME].to_owned();
            let span = Span::new(self.at, self.at + word);
            let message = format!("this name has {word} characters");
            let help = format!("a name has at most {LONGEST_NAME} characters");
            self.diagnostics.push(Diagnostic::error(Code::Syntax, span, message).help(help));
            return self.push(TokenKind::Word(text), word);
        }
        let text = rest[..word].to_owned();
        let reduction = match text.as_str() {
            "min" | "max" => {
                let after = &rest[word..];
                let reset = after.starts_with("=!") && !after.starts_with("=!=");
                (after.starts_with('=') && !after.starts_with("==")).then_some(reset)
            }
            _ => None,
        };
        match reduction {
            Some(reset) if text == "min" => self.push(TokenKind::MinAssign(reset), word + 1 + reset as usize),
            Some(reset) => self.push(TokenKind::MaxAssign(reset), word + 1 + reset as usize),
            None => self.push(TokenKind::Word(text), word),
        }
    }

    fn symbol(&mut self) {
        if let Some((text, kind)) = SYMBOLS.iter().find(|(text, _)| self.rest().starts_with(text)) {
            if *text == "/" && self.rest().starts_with("//") {
                let span = Span::new(self.at, self.at + 2);
                self.diagnostics.push(
                    Diagnostic::error(Code::Syntax, span, "`//` is not an operator").help(
                        "comments begin with `#`; `/` on integers already rounds toward minus infinity",
                    ),
                );
                self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                return;
            }
            return self.push(kind.clone(), text.len());
        }
        let known = |c: char| {
            c.is_whitespace()
                || c.is_ascii_alphanumeric()
                || c == '_'
                || c == '#'
                || SYMBOLS.iter().any(|(text, _)| text.starts_with(c))
        };
        let length = self.rest().find(known).unwrap_or(self.rest().len());
        let span = Span::new(self.at, self.at + length);
        let shown: String = span
            .text(self.source)
            .chars()
            .take(20)
            .map(|c| if c.is_control() { '\u{fffd}' } else { c })
            .collect();
        let what = format!("`{shown}` is not part of the language");
        self.diagnostics.push(Diagnostic::error(Code::Syntax, span, what));
        self.at += length;
    }
}

/// The length of the C number literal at the start of the text, including its suffix; 0 if there is
/// none.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits =
        |from: usize, test: fn(&u8) -> bool| bytes[from..].iter().take_while(|byte| test(byte)).count();
    if text.starts_with("0x") || text.starts_with("0X") {
        let hex = digits(2, u8::is_ascii_hexdigit);
        return if hex == 0 { 0 } else { 2 + hex + suffix_length(&text[2 + hex..], false) };
    }
    let whole = digits(0, u8::is_ascii_digit);
    let mut length = whole;
    let mut fraction = 0;
    let mut float = false;
    if bytes.get(length) == Some(&b'.') {
        fraction = digits(length + 1, u8::is_ascii_digit);
        length += 1 + fraction;
        float = true;
    }
    if whole + fraction == 0 {
        return 0;
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = matches!(bytes.get(length + 1), Some(b'+' | b'-')) as usize;
        let exponent = digits(length + 1 + sign, u8::is_ascii_digit);
        if exponent > 0 {
            length += 1 + sign + exponent;
            float = true;
        }
    }
    length + suffix_length(&text[length..], float)
}

fn suffix_length(text: &str, float: bool) -> usize {
    let word = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    match text[..word].to_ascii_lowercase().as_str() {
        "f" if float => 1,
        suffix @ ("u" | "l" | "ll" | "ul" | "ull" | "lu" | "llu") if !float => suffix.len(),
        _ => 0,
    }
}

fn number_token(text: &str) -> Option<TokenKind> {
    let lower = text.to_ascii_lowercase();
    if let Some(hex) = lower.strip_prefix("0x") {
        let digits = hex.trim_end_matches(['u', 'l']);
        return integer(digits, 16, &hex[digits.len()..]);
    }
    if lower.contains(['.', 'e']) {
        let digits = lower.trim_end_matches('f');
        let suffix = if digits.len() < lower.len() { Suffix::Float } else { Suffix::None };
        return digits.parse().ok().map(|value| TokenKind::Float(value, suffix));
    }
    let digits = lower.trim_end_matches(['u', 'l']);
    integer(digits, 10, &lower[digits.len()..])
}

fn integer(digits: &str, radix: u32, suffix: &str) -> Option<TokenKind> {
    let value = i128::from_str_radix(digits, radix).ok().filter(|value| *value <= u64::MAX as i128)?;
    let suffix = match (suffix.contains('u'), suffix.contains('l')) {
        (false, false) => Suffix::None,
        (true, false) => Suffix::Unsigned,
        (false, true) => Suffix::Long,
        (true, true) => Suffix::UnsignedLong,
    };
    Some(TokenKind::Int(value, suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(source: &str) -> Vec<TokenKind> {
        let (tokens, diagnostics) = lex(source);
        assert_eq!(diagnostics, [], "{source}");
        tokens.into_iter().map(|token| token.kind).take_while(|kind| *kind != TokenKind::End).collect()
    }

    fn word(text: &str) -> TokenKind {
        TokenKind::Word(text.to_owned())
    }

    #[test]
    fn a_word_may_begin_with_a_digit_and_a_number_may_hold_letters() {
        assert_eq!(kinds("2LUT"), [word("2LUT")]);
        assert_eq!(kinds("1e5"), [TokenKind::Float(1e5, Suffix::None)]);
        assert_eq!(kinds("1e-5f"), [TokenKind::Float(1e-5, Suffix::Float)]);
        assert_eq!(kinds("0x1Fu"), [TokenKind::Int(31, Suffix::Unsigned)]);
        assert_eq!(kinds("2i"), [word("2i")]);
        assert_eq!(kinds(".5"), [TokenKind::Float(0.5, Suffix::None)]);
    }

    #[test]
    fn an_extent_is_not_a_fraction() {
        assert_eq!(kinds("A.1"), [word("A"), TokenKind::Dot, TokenKind::Int(1, Suffix::None)]);
    }

    #[test]
    fn reductions_are_one_token() {
        assert_eq!(
            kinds("min=! max= +=!"),
            [TokenKind::MinAssign(true), TokenKind::MaxAssign(false), TokenKind::AddAssign(true)]
        );
        assert_eq!(kinds("min == max"), [word("min"), TokenKind::Equal, word("max")]);
    }

    #[test]
    fn garbage_is_reported_once_a_run() {
        let (_, diagnostics) = lex("@@@@ $ \u{1}\u{2}");
        assert_eq!(diagnostics.len(), 3);
    }

    #[test]
    fn the_longest_operator_wins() {
        use TokenKind as T;
        assert_eq!(
            kinds("<< < <= >> > >= ** * *= && & || | ^ ~ !="),
            [
                T::ShiftLeft,
                T::Less,
                T::LessEqual,
                T::ShiftRight,
                T::Greater,
                T::GreaterEqual,
                T::Power,
                T::Star,
                T::MulAssign(false),
                T::And,
                T::BitAnd,
                T::Or,
                T::BitOr,
                T::BitXor,
                T::Complement,
                T::NotEqual
            ]
        );
    }

    #[test]
    fn integers_have_64_bits() {
        let most = u64::MAX.into();
        assert_eq!(kinds("18446744073709551615"), [TokenKind::Int(most, Suffix::None)]);
        assert_eq!(kinds("18446744073709551615ul"), [TokenKind::Int(most, Suffix::UnsignedLong)]);
        assert_eq!(kinds("0xFFFFFFFFFFFFFFFF"), [TokenKind::Int(most, Suffix::None)]);
        let (_, diagnostics) = lex("18446744073709551616");
        assert_eq!(diagnostics[0].message, "this number is too large");
    }
}
