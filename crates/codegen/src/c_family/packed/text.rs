//! Writes the words of a plan as C expressions.

use tilewright_ir::nest::Expr;
use tilewright_ir::{BinaryOp, DType};

use super::plan::{Node, Plan};
use super::words::Window;
use super::{Lanes, Operation};
use crate::c_family::c_expr::CExpr;
use crate::c_family::prelude::Helper;
use crate::c_family::stmt::{Emit, Emitter};
use crate::idiom::number;

impl Emitter<'_> {
    /// Writes one of the words of a plan, counted from that of the first lane.
    pub(super) fn packed_word(&mut self, plan: &Plan, at: i64) -> Emit<CExpr> {
        match &*plan.node {
            Node::Load(window) => Ok(self.window_word(window, at as usize)),
            Node::EverySecond(window) => {
                let pair = [0, 1].map(|next| self.window_word(window, 2 * at as usize + next));
                Ok(self.operation(window.half(), window.lanes.unsigned(), &pair))
            }
            Node::Same(expr) => self.replicated(expr, plan.lanes),
            Node::Plain(op, parts) => {
                let [left, right] = parts.each_ref().map(|part| self.packed_word(part, at));
                Ok(CExpr::binary(*op, &left?, &right?))
            }
            Node::Scaled(part, by) => {
                let part = self.packed_word(part, at)?;
                Ok(CExpr::binary(BinaryOp::Mul, &part, &CExpr::atom(format!("{by}u"))))
            }
            Node::Shifted(op, part, count) => {
                let all = i128::from(u32::MAX >> (u32::BITS - plan.lanes.bits()));
                let kept = if *op == BinaryOp::ShiftLeft { all << count } else { all >> count };
                let part = self.packed_word(part, at)?;
                let shifted = CExpr::binary(*op, &part, &CExpr::atom(count.to_string()));
                Ok(CExpr::binary(BinaryOp::BitAnd, &shifted, &word(plan.lanes.replicated(kept))))
            }
            Node::ByNumber(operation, dtype, part, number) => {
                let number = match operation {
                    Operation::ShiftRight => CExpr::atom(number.to_string()),
                    _ => CExpr::atom(format!("{number}u")),
                };
                let part = self.packed_word(part, at)?;
                Ok(self.operation(*operation, *dtype, &[part, number]))
            }
            Node::Operation(operation, dtype, parts) => {
                let parts: Emit<Vec<CExpr>> = parts.iter().map(|part| self.packed_word(part, at)).collect();
                Ok(self.operation(*operation, *dtype, &parts?))
            }
            Node::Widened(dtype, part) => {
                let bytes = self.packed_word(part, at / 2)?;
                let half = if at % 2 == 0 { Operation::WidenFirst } else { Operation::WidenLast };
                Ok(self.operation(half, *dtype, &[bytes]))
            }
            Node::Narrowed(part) => {
                let halves = [self.packed_word(part, 2 * at)?, self.packed_word(part, 2 * at + 1)?];
                Ok(self.operation(Operation::Even, DType::UInt8, &halves))
            }
            Node::Chosen(condition, parts) => {
                let condition = self.value(condition)?;
                let [then, otherwise] = parts.each_ref().map(|part| self.packed_word(part, at));
                Ok(CExpr::conditional(&condition, &then?, &otherwise?))
            }
        }
    }

    fn operation(&mut self, operation: Operation, dtype: DType, parts: &[CExpr]) -> CExpr {
        CExpr::call(&self.require_helper(Helper::Packed(operation), dtype), parts)
    }

    /// A word of a load. Lanes that begin inside a word of memory take the last bytes of that word
    /// and the first bytes of the next one, by one instruction.
    fn window_word(&self, window: &Window, at: usize) -> CExpr {
        let loaded = |at: usize| {
            let name = self.lanes.find_word(&window.words[at]);
            CExpr::atom(name.expect("all words of a plan are loaded before they are used"))
        };
        if window.joined_shift() == 0 {
            return loaded(at);
        }
        let bits = window.joined_shift() * i64::from(window.lanes.bits());
        let number = |bits: i64| CExpr::atom(bits.to_string());
        let low = CExpr::binary(BinaryOp::ShiftRight, &loaded(at), &number(bits));
        let high = CExpr::binary(BinaryOp::ShiftLeft, &loaded(at + 1), &number(i64::from(u32::BITS) - bits));
        CExpr::binary(BinaryOp::BitOr, &low, &high)
    }

    /// A value in all lanes.
    fn replicated(&mut self, expr: &Expr, lanes: Lanes) -> Emit<CExpr> {
        if expr.dtype == DType::Bool {
            let condition = self.value(expr)?;
            return Ok(CExpr::conditional(&condition, &word(u32::MAX), &word(0)));
        }
        if let Some(number) = number(expr) {
            return Ok(word(lanes.replicated(number)));
        }
        let lane =
            self.value(expr)?.cast(self.type_name(lanes.unsigned())).cast(self.type_name(DType::UInt32));
        Ok(CExpr::binary(BinaryOp::Mul, &lane, &CExpr::atom(format!("{:#x}u", lanes.ones()))))
    }
}

/// A number as a word, in hexadecimal digits.
fn word(number: u32) -> CExpr {
    CExpr::atom(if number == 0 { "0u".to_owned() } else { format!("{number:#010x}u") })
}
