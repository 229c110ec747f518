//! Headers of text, as PFM, PGM and PPM have them: words between white space, and comments.

/// The rest of a file behind the words that were taken.
pub struct Header<'a> {
    rest: &'a [u8],
}

/// The longest word of a header. The numbers of a header are shorter.
const MAX_WORD_LENGTH: usize = 40;

impl<'a> Header<'a> {
    /// The header of a file, behind its first two letters.
    pub fn new(bytes: &'a [u8]) -> Header<'a> {
        Header { rest: bytes.get(2..).unwrap_or_default() }
    }

    /// Takes a number.
    pub fn number<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, String> {
        let word = self.word().ok_or_else(|| format!("its header has no {what}"))?;
        word.parse().map_err(|_| format!("its header has the {what} `{word}`"))
    }

    /// Takes the next word. White space before the word is skipped, and so are comments from `#` to
    /// the end of the line.
    fn word(&mut self) -> Option<&'a str> {
        loop {
            match self.rest.first()? {
                b'#' => {
                    let line = self.rest.iter().position(|byte| *byte == b'\n')?;
                    self.rest = &self.rest[line..];
                }
                byte if byte.is_ascii_whitespace() => self.rest = &self.rest[1..],
                _ => break,
            }
        }
        let length = self.rest.iter().take(MAX_WORD_LENGTH).position(|byte| byte.is_ascii_whitespace())?;
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        std::str::from_utf8(word).ok()
    }

    /// The samples: they begin behind the one white space that ends the header.
    pub fn samples(&self, bytes: usize) -> Result<&'a [u8], String> {
        let rest = self.rest.get(1..).unwrap_or_default();
        rest.get(..bytes).ok_or_else(|| {
            format!(
                "it is cut short: its header announces {bytes} bytes of samples, and it has {}",
                rest.len()
            )
        })
    }
}
