//! C expressions as text together with their precedence.
//!
//! Every function here puts parentheses around each operand that binds more loosely than its
//! operator requires, so the text is correct wherever these functions put it. [`CExpr::whole`]
//! returns the text itself, for places between delimiters only: a line of its own, `if (…)`, the
//! right-hand side of `=`. No other module writes an expression next to an operator.

use tilewright_ir::BinaryOp;

/// The text of a C expression, and its precedence.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CExpr {
    text: String,
    binding: Binding,
}

/// The precedence of an expression, loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    /// `a ? b : c`
    Choice,
    Or,
    And,
    Equality,
    Order,
    Sum,
    Product,
    /// `-a`, `(int)a`
    Prefix,
    /// `a`, `1`, `f(a)`, `a[b]`, `a.x`
    Primary,
}

impl Binding {
    /// The precedence of a binary operator. Minima and maxima are calls, not operators.
    fn of(op: BinaryOp) -> Binding {
        match op {
            BinaryOp::Add | BinaryOp::Sub => Binding::Sum,
            BinaryOp::Mul | BinaryOp::Div | BinaryOp::Mod => Binding::Product,
            BinaryOp::Equal | BinaryOp::NotEqual => Binding::Equality,
            BinaryOp::Less | BinaryOp::LessEqual | BinaryOp::Greater | BinaryOp::GreaterEqual => {
                Binding::Order
            }
            BinaryOp::And => Binding::And,
            BinaryOp::Or => Binding::Or,
            BinaryOp::Min | BinaryOp::Max => unreachable!("minima and maxima are calls"),
        }
    }

    /// The next tighter precedence.
    fn tighter(self) -> Binding {
        match self {
            Binding::Choice => Binding::Or,
            Binding::Or => Binding::And,
            Binding::And => Binding::Equality,
            Binding::Equality => Binding::Order,
            Binding::Order => Binding::Sum,
            Binding::Sum => Binding::Product,
            Binding::Product => Binding::Prefix,
            Binding::Prefix | Binding::Primary => Binding::Primary,
        }
    }
}

impl CExpr {
    /// An identifier, or a literal without a sign.
    pub(super) fn atom(text: impl Into<String>) -> CExpr {
        CExpr { text: text.into(), binding: Binding::Primary }
    }

    /// A literal, which may begin with a sign.
    pub(super) fn literal(text: String) -> CExpr {
        let binding = if text.starts_with('-') { Binding::Prefix } else { Binding::Primary };
        CExpr { text, binding }
    }

    /// `function(a, b)`
    pub(super) fn call(function: &str, arguments: &[CExpr]) -> CExpr {
        let arguments: Vec<&str> = arguments.iter().map(CExpr::whole).collect();
        CExpr::atom(format!("{function}({})", arguments.join(", ")))
    }

    /// `buffer[at]`
    pub(super) fn element(buffer: &str, at: &CExpr) -> CExpr {
        CExpr::atom(format!("{buffer}[{}]", at.whole()))
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
    pub(super) fn at_address(self) -> CExpr {
        self.prefixed("*")
    }

    fn prefixed(self, prefix: &str) -> CExpr {
        let text = format!("{prefix}{}", self.bound(Binding::Prefix));
        CExpr { text, binding: Binding::Prefix }
    }

    /// `left op right`
    pub(super) fn binary(op: BinaryOp, left: &CExpr, right: &CExpr) -> CExpr {
        let binding = Binding::of(op);
        // Comparisons do not chain; all other operators associate to the left.
        let left_binding = if op.is_comparison() { binding.tighter() } else { binding };
        let (left, right) = (left.bound(left_binding), right.bound(binding.tighter()));
        CExpr { text: format!("{left} {} {right}", op.symbol()), binding }
    }

    /// `condition ? then : otherwise`
    pub(super) fn choice(condition: &CExpr, then: &CExpr, otherwise: &CExpr) -> CExpr {
        let [condition, then, otherwise] = [condition, then, otherwise].map(|own| own.bound(Binding::Or));
        CExpr { text: format!("{condition} ? {then} : {otherwise}"), binding: Binding::Choice }
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
    pub(super) fn whole(&self) -> &str {
        &self.text
    }

    /// The text for a place that requires at least the precedence `least`.
    fn bound(&self, least: Binding) -> String {
        if self.binding >= least { self.text.clone() } else { format!("({})", self.text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> CExpr {
        CExpr::atom(text)
    }

    fn two(op: BinaryOp, left: &CExpr, right: &CExpr) -> CExpr {
        CExpr::binary(op, left, right)
    }

    #[test]
    fn operands_that_bind_more_loosely_get_parentheses() {
        let (a, b, c) = (name("a"), name("b"), name("c"));
        let sum = two(BinaryOp::Add, &a, &b);
        assert_eq!(two(BinaryOp::Mul, &sum, &c).whole(), "(a + b) * c");
        assert_eq!(two(BinaryOp::Mul, &c, &sum).whole(), "c * (a + b)");
        assert_eq!(two(BinaryOp::Add, &two(BinaryOp::Mul, &a, &b), &c).whole(), "a * b + c");
        assert_eq!(sum.clone().cast("int").whole(), "(int)(a + b)");
        assert_eq!(two(BinaryOp::Mul, &a.clone().cast("int"), &b).whole(), "(int)a * b");
        assert_eq!(sum.clone().negated().whole(), "-(a + b)");
        let less = two(BinaryOp::Less, &sum, &c);
        assert_eq!(less.clone().complement().whole(), "!(a + b < c)");
        assert_eq!(two(BinaryOp::Equal, &less, &name("true")).whole(), "a + b < c == true");
        assert_eq!(CExpr::element("A", &sum).whole(), "A[a + b]");
        assert_eq!(CExpr::call("f", &[sum, less]).cast("int").whole(), "(int)f(a + b, a + b < c)");
        assert_eq!(CExpr::element("A", &a).address().cast("float4*").at_address().whole(), "*(float4*)&A[a]");
    }

    #[test]
    fn operators_of_one_kind_are_done_from_the_left() {
        let (a, b, c) = (name("a"), name("b"), name("c"));
        let difference = two(BinaryOp::Sub, &a, &b);
        assert_eq!(two(BinaryOp::Sub, &difference, &c).whole(), "a - b - c");
        assert_eq!(two(BinaryOp::Sub, &c, &difference).whole(), "c - (a - b)");
        assert_eq!(two(BinaryOp::Mod, &c, &two(BinaryOp::Mul, &a, &b)).whole(), "c % (a * b)");
        let less = two(BinaryOp::Less, &a, &b);
        assert_eq!(two(BinaryOp::Less, &less, &c).whole(), "(a < b) < c");
        assert_eq!(two(BinaryOp::Equal, &two(BinaryOp::Equal, &a, &b), &c).whole(), "(a == b) == c");
    }

    #[test]
    fn choices_and_conditions_nest() {
        let (a, b, c) = (name("a"), name("b"), name("c"));
        let choice = CExpr::choice(&a, &b, &c);
        assert_eq!(
            CExpr::choice(&choice, &choice, &choice).whole(),
            "(a ? b : c) ? (a ? b : c) : (a ? b : c)"
        );
        assert_eq!(two(BinaryOp::Add, &choice, &a).whole(), "(a ? b : c) + a");
        let either = two(BinaryOp::Or, &a, &b);
        assert_eq!(CExpr::all(&[either, c, choice]).whole(), "(a || b) && c && (a ? b : c)");
        assert_eq!(CExpr::all(&[]).whole(), "true");
    }

    #[test]
    fn signs_do_not_meet() {
        let minus_one = CExpr::literal("-1".into());
        assert_eq!(minus_one.clone().negated().whole(), "-(-1)");
        assert_eq!(name("a").negated().negated().whole(), "-(-a)");
        assert_eq!(two(BinaryOp::Sub, &name("a"), &minus_one).whole(), "a - -1");
        assert_eq!(minus_one.clone().cast("unsigned int").whole(), "(unsigned int)-1");
        assert_eq!(CExpr::call("f", &[minus_one]).negated().whole(), "-f(-1)");
    }
}
