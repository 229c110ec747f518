//! Parses the tokens of an expression into an [`Expr`], by precedence climbing.

use super::statement::is_assignment;
use super::{MOST_NESTING, Parse, Parser};
use crate::ast::{Expr, ExprKind, Name, type_named};
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::{Suffix, TokenKind};
use crate::span::Span;
use tilewright_ir::{BinaryOp, UnaryOp};

/// The precedence of a binary operator; a larger number binds more tightly.
fn precedence(kind: &TokenKind) -> Option<(u8, BinaryOp)> {
    Some(match kind {
        TokenKind::Or => (1, BinaryOp::Or),
        TokenKind::And => (2, BinaryOp::And),
        TokenKind::Equal => (3, BinaryOp::Equal),
        TokenKind::NotEqual => (3, BinaryOp::NotEqual),
        TokenKind::Less => (4, BinaryOp::Less),
        TokenKind::LessEqual => (4, BinaryOp::LessEqual),
        TokenKind::Greater => (4, BinaryOp::Greater),
        TokenKind::GreaterEqual => (4, BinaryOp::GreaterEqual),
        TokenKind::BitOr => (5, BinaryOp::BitOr),
        TokenKind::BitXor => (6, BinaryOp::BitXor),
        TokenKind::BitAnd => (7, BinaryOp::BitAnd),
        TokenKind::ShiftLeft => (8, BinaryOp::ShiftLeft),
        TokenKind::ShiftRight => (8, BinaryOp::ShiftRight),
        TokenKind::Plus => (9, BinaryOp::Add),
        TokenKind::Minus => (9, BinaryOp::Sub),
        TokenKind::Star => (10, BinaryOp::Mul),
        TokenKind::Slash => (10, BinaryOp::Div),
        TokenKind::Percent => (10, BinaryOp::Mod),
        _ => return None,
    })
}

/// The value of a word that is a literal.
pub(super) fn literal_word(word: &str) -> Option<ExprKind> {
    match word {
        "true" => Some(ExprKind::Bool(true)),
        "false" => Some(ExprKind::Bool(false)),
        "inf" => Some(ExprKind::Float(f64::INFINITY, Suffix::None)),
        "nan" => Some(ExprKind::Float(f64::NAN, Suffix::None)),
        _ => None,
    }
}

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Parse<Expr> {
        self.nested(|parser| {
            let condition = parser.binary(1)?;
            if !parser.eat(&TokenKind::Question) {
                return Ok(condition);
            }
            let then = parser.expr()?;
            parser.expect(&TokenKind::Colon, "`:` and the other value")?;
            let otherwise = parser.expr()?;
            let span = condition.span.to(otherwise.span);
            parser.make_expr(ExprKind::Ternary(Box::new([condition, then, otherwise])), span)
        })
    }

    fn binary(&mut self, least: u8) -> Parse<Expr> {
        let mut left = self.unary()?;
        while let Some((tightness, op)) = precedence(self.peek()).filter(|(tightness, _)| *tightness >= least)
        {
            self.advance();
            let right = self.binary(tightness + 1)?;
            let span = left.span.to(right.span);
            left = self.make_expr(ExprKind::Binary(op, Box::new([left, right])), span)?;
        }
        Ok(left)
    }

    /// Creates an expression, unless its tree is too high: chains such as `a + b + c` grow the tree
    /// without nesting.
    fn make_expr(&mut self, kind: ExprKind, span: Span) -> Parse<Expr> {
        let expr = Expr::new(kind, span);
        if expr.height as usize > MOST_NESTING { self.too_deep() } else { Ok(expr) }
    }

    fn unary(&mut self) -> Parse<Expr> {
        let start = self.span();
        let op = match self.peek() {
            TokenKind::Minus => UnaryOp::Neg,
            TokenKind::Not => UnaryOp::Not,
            TokenKind::Complement => UnaryOp::Complement,
            TokenKind::Plus => {
                self.advance();
                return self.nested(Self::unary);
            }
            _ => return self.power(),
        };
        self.advance();
        let operand = self.nested(Self::unary)?;
        let span = start.to(operand.span);
        self.make_expr(ExprKind::Unary(op, Box::new(operand)), span)
    }

    /// A power, which binds tighter than a sign before it, but not than one before its exponent. It
    /// associates to the right: the exponent may be a power.
    fn power(&mut self) -> Parse<Expr> {
        let base = self.primary()?;
        if !self.eat(&TokenKind::Power) {
            return Ok(base);
        }
        let exponent = self.nested(Self::unary)?;
        let span = base.span.to(exponent.span);
        self.make_expr(ExprKind::Binary(BinaryOp::Power, Box::new([base, exponent])), span)
    }

    fn primary(&mut self) -> Parse<Expr> {
        let span = self.span();
        let kind = match self.peek().clone() {
            TokenKind::Int(value, suffix) => {
                self.advance();
                ExprKind::Int(value, suffix)
            }
            TokenKind::Float(value, suffix) => {
                self.advance();
                ExprKind::Float(value, suffix)
            }
            TokenKind::LeftParen => {
                self.advance();
                let inner = self.expr()?;
                self.expect(&TokenKind::RightParen, "`)`")?;
                return Ok(Expr { span: span.to(self.previous_span()), ..inner });
            }
            TokenKind::DotDot => {
                self.advance();
                ExprKind::Dimensions
            }
            TokenKind::Word(word) => self.word(&word)?,
            TokenKind::LeftBracket => {
                let message = "there are no lists of numbers in expressions";
                let help = "choose a number by its place, `mux(k, 1, 2, 1)`, or define each element of a \
                            tensor: `w(0) = 1` and so on";
                return self.report(Diagnostic::error(Code::Syntax, span, message).help(help));
            }
            _ => return self.report_expected("an expression"),
        };
        self.make_expr(kind, span.to(self.previous_span()))
    }

    /// A literal word, a conversion, or an expression that begins with a name.
    fn word(&mut self, word: &str) -> Parse<ExprKind> {
        if let Some(literal) = literal_word(word) {
            self.advance();
            return Ok(literal);
        }
        let begins_value = matches!(
            self.peek_ahead(1),
            TokenKind::Word(_) | TokenKind::Int(..) | TokenKind::Float(..) | TokenKind::Not
        );
        if word == "if" && begins_value && !self.tokens[self.at + 1].starts_line {
            let message = "`if` does not begin an expression";
            let help = "a choice is written `condition ? value : other`";
            return self.report(Diagnostic::error(Code::Syntax, self.span(), message).help(help));
        }
        let Some(dtype) = type_named(word) else { return self.name_or_application() };
        self.advance();
        self.expect(&TokenKind::LeftParen, "`(` and the value to convert")?;
        let value = self.expr()?;
        self.expect(&TokenKind::RightParen, "`)`")?;
        Ok(ExprKind::Cast(dtype, Box::new(value)))
    }

    /// Refuses `repeat(x)(i, j)`: only a name has subscripts. A parenthesis may also begin the next
    /// statement, `(A, B) = f(C)`.
    fn refuse_second_subscripts(&mut self, start: Span) -> Parse<()> {
        if *self.peek() != TokenKind::LeftParen || self.starts_line() || self.is_at_tuple_of_targets() {
            return Ok(());
        }
        let call = start.to(self.previous_span());
        let text = call.text(self.source);
        let message = format!("`{text}` has no name, so it cannot have subscripts");
        let help = format!("give it a name first, `v = {text}`, and then write `v(…)`");
        self.report(
            Diagnostic::error(Code::Syntax, self.span(), message).secondary_label(call, "").help(help),
        )
    }

    /// Returns true at an opening parenthesis whose closing one is before an assignment.
    fn is_at_tuple_of_targets(&self) -> bool {
        let mut depth = 0usize;
        let close = self.tokens[self.at..].iter().position(|token| {
            match token.kind {
                TokenKind::LeftParen => depth += 1,
                TokenKind::RightParen => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        close.is_some_and(|close| is_assignment(self.peek_ahead(close + 1)))
    }

    fn name_or_application(&mut self) -> Parse<ExprKind> {
        let name: Name = self.tensor_name("a value")?;
        if *self.peek() == TokenKind::LeftParen && !self.starts_line() {
            self.advance();
            let start = name.span;
            let arguments = self.list("an argument", Self::expr)?;
            self.refuse_second_subscripts(start)?;
            return Ok(ExprKind::Apply(name, arguments));
        }
        if *self.peek() == TokenKind::Dot {
            self.advance();
            return match *self.peek() {
                TokenKind::Int(dimension, Suffix::None) if dimension < 64 => {
                    self.advance();
                    Ok(ExprKind::Extent(name, dimension as u32))
                }
                _ => self.report_expected("the number of a dimension, as in `A.1`"),
            };
        }
        Ok(if name.element.is_some() { ExprKind::Element(name) } else { ExprKind::Name(name.text) })
    }
}
