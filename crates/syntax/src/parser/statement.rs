//! Parses the statements of a function's body into [`Stmt`]s, and skips a statement with a syntax
//! error after the report.

use super::{Parse, Parser, Reported, hints};
use crate::ast::{AssignOp, Clause, Comprehension, Declaration, Expr, ExprKind, Name, Stmt, StmtKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::TokenKind;
use tilewright_ir::ReduceOp;

impl Parser<'_> {
    /// Parses statements up to and including the closing brace. The second result says whether
    /// there was a closing brace.
    pub(super) fn statements(&mut self) -> (Vec<Stmt>, bool) {
        let mut body = Vec::new();
        loop {
            match self.peek() {
                TokenKind::RightBrace => {
                    self.advance();
                    return (body, true);
                }
                TokenKind::End => return (body, false),
                TokenKind::Word(_) if self.is_at_next_function() => return (body, false),
                TokenKind::Semicolon => {
                    self.advance();
                }
                _ => match self.statement() {
                    Ok(statements) => body.extend(statements),
                    Err(Reported) => self.skip_statement(),
                },
            }
        }
    }

    /// Skips to a token that may begin a statement on a new line, or to the end of the block.
    fn skip_statement(&mut self) {
        let mut braces = 0usize;
        loop {
            match self.peek() {
                TokenKind::End => return,
                TokenKind::RightBrace if braces == 0 => return,
                TokenKind::RightBrace => braces -= 1,
                TokenKind::LeftBrace => braces += 1,
                _ => {}
            }
            let before = self.at;
            self.advance();
            if self.at == before {
                return;
            }
            let may_begin = matches!(self.peek(), TokenKind::Word(_) | TokenKind::LeftParen);
            if braces == 0 && self.starts_line() && may_begin && !self.is_at_word("where") {
                return;
            }
        }
    }

    /// Parses one statement. A reduction of several values becomes several statements.
    fn statement(&mut self) -> Parse<Vec<Stmt>> {
        let start = self.span();
        let kind = if self.is_at_word("for") && matches!(self.peek_ahead(1), TokenKind::Word(_)) {
            self.for_loop()?
        } else if self.is_at_definition() {
            let span = self.span();
            let message = "a named integer must stand before the first statement of the body";
            let help =
                "for a value that statements compute, leave the type out: it is a tensor without dimensions";
            return self.report(Diagnostic::error(Code::Syntax, span, message).help(help));
        } else if self.is_at_type() {
            let mut ty = self.ty()?;
            if self.is_at_assignment() {
                return self.report_type_as_name(&ty, "a tensor");
            }
            let name = self.tensor_name("a tensor")?;
            let stored = self.stored(&name, Some(&mut ty))?;
            StmtKind::Declare(Declaration { ty: Some(ty), name, stored })
        } else if *self.peek() == TokenKind::LeftParen {
            self.advance();
            let targets = self.list("a result", Self::target)?;
            let is_bare = targets.iter().all(|target| target.indices.is_none());
            if !is_bare || *self.peek() != TokenKind::Assign {
                return self.tuple_reduction(targets, start);
            }
            self.call(targets.into_iter().map(|target| target.name).collect())?
        } else {
            let target = self.tensor_name("a tensor")?;
            match self.peek() {
                TokenKind::Comma => self.call_with_bare_targets(target)?,
                TokenKind::Assign if self.is_call_of_name() => self.call(vec![target])?,
                _ => StmtKind::Comprehension(self.comprehension(target)?),
            }
        };
        Ok(vec![Stmt { kind, span: start.to(self.previous_span()) }])
    }

    /// Returns true when `= f(` follows a bare name. The checker decides whether `f` is a function.
    fn is_call_of_name(&self) -> bool {
        matches!(self.peek_ahead(1), TokenKind::Word(_)) && *self.peek_ahead(2) == TokenKind::LeftParen
    }

    fn call_with_bare_targets(&mut self, first: Name) -> Parse<StmtKind> {
        let mut targets = vec![first];
        while self.eat(&TokenKind::Comma) {
            targets.push(self.tensor_name("a tensor")?);
        }
        self.call(targets)
    }

    /// Parses `= f(a, b)`. With one bare target the statement may turn out to define a
    /// 0-dimensional tensor.
    fn call(&mut self, targets: Vec<Name>) -> Parse<StmtKind> {
        let op_span = self.expect(&TokenKind::Assign, "`=` and the call of a function")?;
        let value = self.expr()?;
        match value.kind {
            ExprKind::Apply(callee, arguments) if !self.is_at_word("where") => {
                Ok(StmtKind::Call { targets, callee, arguments, value: value.span })
            }
            _ => match <[Name; 1]>::try_from(targets) {
                Ok([target]) => {
                    let clauses = self.where_clauses()?;
                    let op = AssignOp::Assign;
                    let indices = Vec::new();
                    Ok(StmtKind::Comprehension(Comprehension {
                        target,
                        indices,
                        op,
                        op_span,
                        value,
                        clauses,
                    }))
                }
                Err(_) => self.report(
                    Diagnostic::error(Code::Syntax, value.span, "several targets require a function call")
                        .help("write `(A, B) = f(C)`"),
                ),
            },
        }
    }

    fn comprehension(&mut self, target: Name) -> Parse<Comprehension> {
        let indices = if *self.peek() == TokenKind::LeftParen && !self.starts_line() {
            self.advance();
            self.list("a subscript", Self::expr)?
        } else {
            Vec::new()
        };
        let op_span = self.span();
        if let (false, Some(help)) = (self.is_at_assignment(), hints::word_hint(&target.text)) {
            let message = format!("unexpected word `{}`", target.text);
            return self.report(Diagnostic::error(Code::Syntax, target.span, message).help(help));
        }
        let op = self.assign_op()?;
        let value = self.expr()?;
        let clauses = self.where_clauses()?;
        Ok(Comprehension { target, indices, op, op_span, value, clauses })
    }

    fn is_at_assignment(&self) -> bool {
        is_assignment(self.peek())
    }

    pub(super) fn assign_op(&mut self) -> Parse<AssignOp> {
        let (op, reset) = match *self.peek() {
            TokenKind::Assign => {
                self.advance();
                return Ok(AssignOp::Assign);
            }
            TokenKind::AddAssign(reset) => (ReduceOp::Add, reset),
            TokenKind::MulAssign(reset) => (ReduceOp::Mul, reset),
            TokenKind::MinAssign(reset) => (ReduceOp::Min, reset),
            TokenKind::MaxAssign(reset) => (ReduceOp::Max, reset),
            TokenKind::Minus | TokenKind::Slash if *self.peek_ahead(1) == TokenKind::Assign => {
                let span = self.span();
                let diagnostic = Diagnostic::error(Code::Syntax, span, "this is not a reduction").help(
                    "reductions are `+=`, `*=`, `min=` and `max=`; to subtract, add the negative: `+= -x`",
                );
                return self.report(diagnostic);
            }
            _ => return self.report_expected("`=` or a reduction such as `+=!`"),
        };
        self.advance();
        Ok(AssignOp::Reduce { op, reset })
    }

    pub(super) fn where_clauses(&mut self) -> Parse<Vec<Clause>> {
        let mut clauses = Vec::new();
        if !self.eat_word("where") {
            return Ok(clauses);
        }
        loop {
            clauses.push(self.clause()?);
            if !self.eat(&TokenKind::Comma) {
                return Ok(clauses);
            }
        }
    }

    fn clause(&mut self) -> Parse<Clause> {
        let names_exists = *self.peek_ahead(1) == TokenKind::Assign
            || matches!(self.peek_ahead(1), TokenKind::Word(word) if word == "in");
        if self.is_at_word("exists") && !names_exists {
            self.advance();
            return Ok(Clause::Exists(self.expr()?));
        }
        let name = self.name("a variable")?;
        if self.eat(&TokenKind::Assign) {
            let value = self.expr()?;
            if *self.peek() == TokenKind::Colon {
                let help = format!("write `{} in` and the range", name.text);
                let message = "`=` names a value, not a range";
                return self.report(Diagnostic::error(Code::Syntax, self.span(), message).help(help));
            }
            return Ok(Clause::Let { name, value });
        }
        if !self.eat_word("in") {
            return self.report_expected("`in` and a range, or `=` and an expression");
        }
        let (from, to) = self.range()?;
        Ok(Clause::In { name, from, to })
    }

    fn range(&mut self) -> Parse<(Expr, Expr)> {
        let from = self.expr()?;
        self.expect(&TokenKind::Colon, "`:` and the end of the range")?;
        Ok((from, self.expr()?))
    }

    fn for_loop(&mut self) -> Parse<StmtKind> {
        self.nested(|parser| {
            parser.advance();
            let var = parser.name("a variable")?;
            if !parser.eat_word("in") {
                return parser.report_expected("`in` and a range");
            }
            let (from, to) = parser.range()?;
            let open = parser.expect(&TokenKind::LeftBrace, "`{` and the body of the loop")?;
            let (body, closed) = parser.statements();
            let already_reported =
                parser.diagnostics.last().is_some_and(|last| last.primary.0 == parser.span());
            if !closed && already_reported {
                return Err(Reported);
            }
            if !closed {
                let span = parser.span();
                let diagnostic = Diagnostic::error(Code::Syntax, span, "the body of the loop is not closed")
                    .label("expected `}`")
                    .secondary_label(open, "the body begins here");
                return parser.report(diagnostic);
            }
            Ok(StmtKind::For { var, from, to, body })
        })
    }
}

/// Returns true for `=` and the reductions.
pub(super) fn is_assignment(kind: &TokenKind) -> bool {
    use TokenKind::{AddAssign, Assign, MaxAssign, MinAssign, MulAssign};
    matches!(kind, Assign | AddAssign(_) | MulAssign(_) | MinAssign(_) | MaxAssign(_))
}
