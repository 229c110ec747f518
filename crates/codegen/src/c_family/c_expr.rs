//! Builds C expressions. A [`CExpr`] is the text of an expression together with its precedence.
//!
//! Every function here puts parentheses around each operand that binds more loosely than its
//! operator requires, so the text is correct wherever these functions put it. [`CExpr::text`]
//! returns the text itself, for places between delimiters only: a line of its own, `if (…)`, the
//! right-hand side of `=`. No other module writes an expression next to an operator.

use tilewright_ir::BinaryOp;

/// The text of a C expression, and its precedence.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CExpr {
    text: String,
    precedence: Precedence,
}

/// The precedence of an expression, loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Precedence {
    /// `a ? b : c`
    Conditional,
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equality,
    Comparison,
    Shift,
    Sum,
    Product,
    /// `-a`, `(int)a`
    Prefix,
    /// `a`, `1`, `f(a)`, `a[b]`, `a.x`
    Primary,
}

impl Precedence {
    /// The precedence of a binary operator. Minima, maxima and powers are calls, not operators.
    fn for_operator(op: BinaryOp) -> Precedence {
        match op {
            BinaryOp::Add | BinaryOp::Sub => Precedence::Sum,
            BinaryOp::Mul | BinaryOp::Div | BinaryOp::Mod => Precedence::Product,
            BinaryOp::Equal | BinaryOp::NotEqual => Precedence::Equality,
            BinaryOp::Less | BinaryOp::LessEqual | BinaryOp::Greater | BinaryOp::GreaterEqual => {
                Precedence::Comparison
            }
            BinaryOp::And => Precedence::And,
            BinaryOp::Or => Precedence::Or,
            BinaryOp::BitOr => Precedence::BitOr,
            BinaryOp::BitXor => Precedence::BitXor,
            BinaryOp::BitAnd => Precedence::BitAnd,
            BinaryOp::ShiftLeft | BinaryOp::ShiftRight => Precedence::Shift,
            BinaryOp::Min | BinaryOp::Max | BinaryOp::Power => {
                unreachable!("minima, maxima and powers are calls")
            }
        }
    }

    /// The next tighter precedence.
    fn tighter(self) -> Precedence {
        match self {
            Precedence::Conditional => Precedence::Or,
            Precedence::Or => Precedence::And,
            Precedence::And => Precedence::BitOr,
            Precedence::BitOr => Precedence::BitXor,
            Precedence::BitXor => Precedence::BitAnd,
            Precedence::BitAnd => Precedence::Equality,
            Precedence::Equality => Precedence::Comparison,
            Precedence::Comparison => Precedence::Shift,
            Precedence::Shift => Precedence::Sum,
            Precedence::Sum => Precedence::Product,
            Precedence::Product => Precedence::Prefix,
            Precedence::Prefix | Precedence::Primary => Precedence::Primary,
        }
    }
}

impl CExpr {
    /// An identifier, or a literal without a sign.
    pub(super) fn atom(text: impl Into<String>) -> CExpr {
        CExpr { text: text.into(), precedence: Precedence::Primary }
    }

    /// A literal, which may begin with a sign.
    pub(super) fn literal(text: String) -> CExpr {
        let precedence = if text.starts_with('-') { Precedence::Prefix } else { Precedence::Primary };
        CExpr { text, precedence }
    }

    /// `function(a, b)`
    pub(super) fn call(function: &str, arguments: &[CExpr]) -> CExpr {
        let arguments: Vec<&str> = arguments.iter().map(CExpr::text).collect();
        CExpr::atom(format!("{function}({})", arguments.join(", ")))
    }

    /// `buffer[at]`
    pub(super) fn element(buffer: &str, at: &CExpr) -> CExpr {
        CExpr::atom(format!("{buffer}[{}]", at.text()))
    }

    /// `(type)operand`
    pub(super) fn cast(self, to: &str) -> CExpr {
        self.prefixed(&format!("({to})"))
    }

    /// `-operand`
    pub(super) fn negated(self) -> CExpr {
        // Two adjacent minus signs would be the decrement operator.
        if self.text.starts_with('-') {
            return CExpr::atom(format!("({})", self.text)).negated();
        }
        self.prefixed("-")
    }

    /// `!operand`
    pub(super) fn complement(self) -> CExpr {
        self.prefixed("!")
    }

    /// `&operand`
    pub(super) fn address(self) -> CExpr {
        self.prefixed("&")
    }

    /// `*operand`
    pub(super) fn dereference(self) -> CExpr {
        self.prefixed("*")
    }

    fn prefixed(self, prefix: &str) -> CExpr {
        let text = format!("{prefix}{}", self.parenthesised(Precedence::Prefix));
        CExpr { text, precedence: Precedence::Prefix }
    }

    /// `left op right`
    pub(super) fn binary(op: BinaryOp, left: &CExpr, right: &CExpr) -> CExpr {
        let precedence = Precedence::for_operator(op);
        // Comparisons do not chain; all other operators associate to the left.
        let left_precedence = if op.is_comparison() { precedence.tighter() } else { precedence };
        let (left, right) = (left.parenthesised(left_precedence), right.parenthesised(precedence.tighter()));
        CExpr { text: format!("{left} {} {right}", op.symbol()), precedence }
    }

    /// `condition ? then : otherwise`
    pub(super) fn conditional(condition: &CExpr, then: &CExpr, otherwise: &CExpr) -> CExpr {
        let [condition, then, otherwise] =
            [condition, then, otherwise].map(|own| own.parenthesised(Precedence::Or));
        CExpr { text: format!("{condition} ? {then} : {otherwise}"), precedence: Precedence::Conditional }
    }

    /// `a && b && c`; `true` for no conditions.
    pub(super) fn all(conditions: &[CExpr]) -> CExpr {
        let both = |left: CExpr, right: &CExpr| CExpr::binary(BinaryOp::And, &left, right);
        match conditions {
            [] => CExpr::atom("true"),
            [first, others @ ..] => others.iter().fold(first.clone(), both),
        }
    }

    /// `a + b + c`; `0` for no parts.
    pub(super) fn sum(parts: &[CExpr]) -> CExpr {
        match parts {
            [] => CExpr::atom("0"),
            [first, others @ ..] => {
                others.iter().fold(first.clone(), |left, right| CExpr::binary(BinaryOp::Add, &left, right))
            }
        }
    }

    /// The text without parentheses, for a place between delimiters.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The text for a place that requires at least the precedence `least`.
    fn parenthesised(&self, least: Precedence) -> String {
        if self.precedence >= least { self.text.clone() } else { format!("({})", self.text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> CExpr {
        CExpr::atom(text)
    }

    fn binary(op: BinaryOp, left: &CExpr, right: &CExpr) -> CExpr {
        CExpr::binary(op, left, right)
    }

    #[test]
    fn operands_that_bind_more_loosely_get_parentheses() {
        let (a, b, c) = (name("a"), name("b"), name("c"));
        let sum = binary(BinaryOp::Add, &a, &b);
        assert_eq!(binary(BinaryOp::Mul, &sum, &c).text(), "(a + b) * c");
        assert_eq!(binary(BinaryOp::Mul, &c, &sum).text(), "c * (a + b)");
        assert_eq!(binary(BinaryOp::Add, &binary(BinaryOp::Mul, &a, &b), &c).text(), "a * b + c");
        assert_eq!(sum.clone().cast("int").text(), "(int)(a + b)");
        assert_eq!(binary(BinaryOp::Mul, &a.clone().cast("int"), &b).text(), "(int)a * b");
        assert_eq!(sum.clone().negated().text(), "-(a + b)");
        let less = binary(BinaryOp::Less, &sum, &c);
        assert_eq!(less.clone().complement().text(), "!(a + b < c)");
        assert_eq!(binary(BinaryOp::Equal, &less, &name("true")).text(), "a + b < c == true");
        assert_eq!(CExpr::element("A", &sum).text(), "A[a + b]");
        assert_eq!(CExpr::call("f", &[sum, less]).cast("int").text(), "(int)f(a + b, a + b < c)");
        assert_eq!(CExpr::element("A", &a).address().cast("float4*").dereference().text(), "*(float4*)&A[a]");
    }

    #[test]
    fn operators_of_one_kind_are_done_from_the_left() {
        let (a, b, c) = (name("a"), name("b"), name("c"));
        let difference = binary(BinaryOp::Sub, &a, &b);
        assert_eq!(binary(BinaryOp::Sub, &difference, &c).text(), "a - b - c");
        assert_eq!(binary(BinaryOp::Sub, &c, &difference).text(), "c - (a - b)");
        assert_eq!(binary(BinaryOp::Mod, &c, &binary(BinaryOp::Mul, &a, &b)).text(), "c % (a * b)");
        let bits = binary(BinaryOp::BitAnd, &a, &binary(BinaryOp::Add, &b, &c));
        assert_eq!(bits.text(), "a & b + c");
        assert_eq!(binary(BinaryOp::Equal, &bits, &c).text(), "(a & b + c) == c");
        assert_eq!(binary(BinaryOp::BitOr, &binary(BinaryOp::BitXor, &a, &b), &c).text(), "a ^ b | c");
        assert_eq!(binary(BinaryOp::BitAnd, &binary(BinaryOp::BitXor, &a, &b), &c).text(), "(a ^ b) & c");
        assert_eq!(binary(BinaryOp::ShiftLeft, &a, &difference).text(), "a << a - b");
        assert_eq!(binary(BinaryOp::Add, &binary(BinaryOp::ShiftRight, &a, &b), &c).text(), "(a >> b) + c");
        let less = binary(BinaryOp::Less, &a, &b);
        assert_eq!(binary(BinaryOp::Less, &less, &c).text(), "(a < b) < c");
        assert_eq!(binary(BinaryOp::Equal, &binary(BinaryOp::Equal, &a, &b), &c).text(), "(a == b) == c");
    }

    #[test]
    fn choices_and_conditions_nest() {
        let (a, b, c) = (name("a"), name("b"), name("c"));
        let choice = CExpr::conditional(&a, &b, &c);
        assert_eq!(
            CExpr::conditional(&choice, &choice, &choice).text(),
            "(a ? b : c) ? (a ? b : c) : (a ? b : c)"
        );
        assert_eq!(binary(BinaryOp::Add, &choice, &a).text(), "(a ? b : c) + a");
        let either = binary(BinaryOp::Or, &a, &b);
        assert_eq!(CExpr::all(&[either, c, choice]).text(), "(a || b) && c && (a ? b : c)");
        assert_eq!(CExpr::all(&[]).text(), "true");
    }

    #[test]
    fn adjacent_signs_are_separated() {
        let minus_one = CExpr::literal("-1".into());
        assert_eq!(minus_one.clone().negated().text(), "-(-1)");
        assert_eq!(name("a").negated().negated().text(), "-(-a)");
        assert_eq!(binary(BinaryOp::Sub, &name("a"), &minus_one).text(), "a - -1");
        assert_eq!(minus_one.clone().cast("unsigned int").text(), "(unsigned int)-1");
        assert_eq!(CExpr::call("f", &[minus_one]).negated().text(), "-f(-1)");
    }
}
