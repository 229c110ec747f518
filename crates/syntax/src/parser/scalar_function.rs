//! Parses functions on numbers, such as `fn lerp(a, b, t) = a * (1 - t) + b * t`.

use super::{Parse, Parser};
use crate::ast::{Clause, Expr, Name, ScalarFunction, ScalarParam};
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::TokenKind;

impl Parser<'_> {
    pub(super) fn scalar_function(&mut self) -> Parse<ScalarFunction> {
        self.advance();
        let name = self.name("a function")?;
        self.expect(&TokenKind::LeftParen, "`(` and the parameters")?;
        let params = self.list("a parameter", Self::scalar_param)?;
        self.report_repeated_params(&params);
        self.expect(&TokenKind::Assign, "`=` and the value of the function")?;
        let value = self.expr()?;
        let clauses = self.where_clauses()?;
        let bindings =
            clauses.into_iter().map(|clause| self.scalar_binding(clause)).collect::<Parse<Vec<_>>>()?;
        Ok(ScalarFunction { name, params, value, bindings })
    }

    fn report_repeated_params(&mut self, params: &[ScalarParam]) {
        for (at, param) in params.iter().enumerate() {
            let first = params[..at].iter().find(|first| first.name.text == param.name.text);
            if let Some(first) = first {
                let message = format!("`{}` is already a parameter", param.name.text);
                self.diagnostics.push(
                    Diagnostic::error(Code::NameCollision, param.name.span, message)
                        .secondary_label(first.name.span, "the other is here")
                        .help("choose another name"),
                );
            }
        }
    }

    fn scalar_param(&mut self) -> Parse<ScalarParam> {
        let ty = if self.is_at_type() { Some(self.ty()?) } else { None };
        if let Some(ty) = ty.as_ref().filter(|ty| !ty.dims.is_empty()) {
            let message = "a parameter of `fn` is a number, not a tensor";
            return self.report(
                Diagnostic::error(Code::Syntax, ty.span, message)
                    .help("give it an element of the tensor, or write a function with `def`"),
            );
        }
        let name = self.name("a parameter")?;
        Ok(ScalarParam { ty, name })
    }

    fn scalar_binding(&mut self, clause: Clause) -> Parse<(Name, Expr)> {
        let span = match clause {
            Clause::Let { name, value } => return Ok((name, value)),
            Clause::In { name, .. } => name.span,
            Clause::Exists(expr) => expr.span,
        };
        let message = "a function on numbers has no variables and no ranges";
        self.report(
            Diagnostic::error(Code::Syntax, span, message).help("`where` names values here: `t = x / 2`"),
        )
    }
}
