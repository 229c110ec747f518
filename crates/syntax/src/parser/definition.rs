//! Parses the named integers at the beginning of a body: `int tiles = (N + 15) / 16`.

use super::{Parse, Parser};
use crate::ast::Definition;
use crate::lexer::TokenKind;

impl Parser<'_> {
    /// Parses the named integers before the first statement.
    pub(super) fn definitions(&mut self) -> Parse<Vec<Definition>> {
        let mut definitions = Vec::new();
        while self.is_at_definition() {
            let ty = self.ty()?;
            let name = self.name("an integer")?;
            self.advance();
            definitions.push(Definition { ty, name, value: self.expr()? });
            self.eat(&TokenKind::Semicolon);
        }
        Ok(definitions)
    }

    /// Returns true at `int name =`.
    pub(super) fn is_at_definition(&self) -> bool {
        self.is_at_type()
            && matches!(self.peek_ahead(1), TokenKind::Word(_))
            && *self.peek_ahead(2) == TokenKind::Assign
    }
}
