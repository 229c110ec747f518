//! Parses the storage order of a tensor: `img(c, y, x) stored (y, x, c)`.

use super::{Parse, Parser};
use crate::ast::{Name, Type};
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::TokenKind;
use crate::span::Span;
use crate::storage_order::StorageOrder;

impl Parser<'_> {
    /// Parses the names of subscripts and their order in memory after the name of a tensor, if they
    /// are there. Takes the extents of the type to the order of memory.
    pub(super) fn stored(&mut self, name: &Name, ty: Option<&mut Type>) -> Parse<Option<StorageOrder>> {
        // A parenthesis at the beginning of a line begins a statement.
        if *self.peek() != TokenKind::LeftParen || self.starts_line() {
            return Ok(None);
        }
        let subscripts = self.dimension_names()?;
        if !self.eat_word("stored") {
            return self.report_expected("`stored` and the order in memory, such as `stored (y, x, c)`");
        }
        let start = self.span();
        if *self.peek() != TokenKind::LeftParen {
            return self.report_expected("`(` and the order in memory");
        }
        let stored = self.dimension_names()?;
        let span = start.to(self.previous_span());
        let Some(order) = StorageOrder::new(&texts(&subscripts), &texts(&stored)) else {
            return self.report_no_permutation(&subscripts, span);
        };
        if let Some(ty) = ty {
            self.check_rank(name, &order, ty)?;
            ty.dims = order.to_memory(&ty.dims);
        }
        Ok(Some(order))
    }

    fn dimension_names(&mut self) -> Parse<Vec<Name>> {
        self.advance();
        self.list("a subscript", |parser| parser.name("a subscript"))
    }

    fn report_no_permutation<T>(&mut self, subscripts: &[Name], span: Span) -> Parse<T> {
        let message = format!("the order in memory must list each of {} once", texts(subscripts).join(", "));
        self.report(Diagnostic::error(Code::Syntax, span, message))
    }

    fn check_rank(&mut self, name: &Name, order: &StorageOrder, ty: &Type) -> Parse<()> {
        if order.rank() == ty.dims.len() {
            return Ok(());
        }
        let (rank, found) = (ty.dims.len(), order.rank());
        let message =
            format!("number of extents of `{}`: {rank}; number of named subscripts: {found}", name.text);
        self.report(
            Diagnostic::error(Code::Syntax, name.span, message).secondary_label(ty.span, "the extents"),
        )
    }
}

fn texts(names: &[Name]) -> Vec<&str> {
    names.iter().map(|name| name.text.as_str()).collect()
}
