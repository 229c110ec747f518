//! Parses the preconditions of a function: `requires C % G == 0, P <= H`.

use super::{Parse, Parser};
use crate::ast::Requirement;
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// Parses the clause after the results, if there is one.
    pub(super) fn requires(&mut self) -> Parse<Vec<Requirement>> {
        let mut conditions = Vec::new();
        if !self.eat_word("requires") {
            return Ok(conditions);
        }
        loop {
            conditions.push(Requirement { condition: self.expr()?, statics: Vec::new() });
            if !self.eat(&TokenKind::Comma) {
                return Ok(conditions);
            }
        }
    }
}
