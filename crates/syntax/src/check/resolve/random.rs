//! Writes `random` and `random_bits` with the builtin `philox`.
//!
//! `philox(k0, k1, c0, c1, c2, c3)` is the first word of Philox4x32-10, with two words of a key and
//! four of a counter. The seed is the key, and the coordinates are the counter, so every point has
//! a number of its own, whatever order the points are computed in.

use tilewright_ir::{BinaryOp, Builtin, DType};

use super::Resolver;
use crate::ast::Name;
use crate::check::value::{Value, ValueKind};
use crate::lexer::Suffix;
use crate::span::Span;

/// The words of the counter: the maximal number of coordinates.
const MOST_COORDINATES: usize = 4;

impl Resolver<'_> {
    /// A random uint32.
    pub(super) fn random_bits(
        &mut self,
        name: &Name,
        arguments: Vec<Option<Value>>,
        span: Span,
    ) -> Option<Value> {
        self.check_argument_count(name, (1, 1 + MOST_COORDINATES), arguments.len(), span)?;
        let mut arguments = arguments.into_iter().collect::<Option<Vec<Value>>>()?.into_iter();
        let seed = arguments.next()?;
        self.refuse_large_argument(&seed, seed.span)?;
        let number = |value: i128| self.placed(ValueKind::Int(value, Suffix::None), span);
        let wide = self.placed(ValueKind::Cast(DType::UInt64, Box::new(seed.clone())), span);
        let upper = ValueKind::Binary(BinaryOp::ShiftRight, Box::new([wide, number(32)]));
        let mut words = vec![seed, self.placed(upper, span)];
        words.extend(arguments);
        words.resize_with(2 + MOST_COORDINATES, || number(0));
        Some(self.placed(ValueKind::Call(Builtin::Philox, words), span))
    }

    /// A random float32 from 0 to 1: the upper 24 bits of a random uint32, divided by 2^24. Both
    /// steps are exact.
    pub(super) fn random(&mut self, name: &Name, arguments: Vec<Option<Value>>, span: Span) -> Option<Value> {
        let bits = self.random_bits(name, arguments, span)?;
        let eight = self.placed(ValueKind::Int(8, Suffix::None), span);
        let upper = self.placed(ValueKind::Binary(BinaryOp::ShiftRight, Box::new([bits, eight])), span);
        let float = self.placed(ValueKind::Cast(DType::Float32, Box::new(upper)), span);
        let unit = self.placed(ValueKind::Float(1.0 / 16_777_216.0, Suffix::Float), span);
        Some(self.placed(ValueKind::Binary(BinaryOp::Mul, Box::new([float, unit])), span))
    }
}
