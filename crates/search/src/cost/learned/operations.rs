//! Counts the operations of one point of a stage: features of the algorithm, which no schedule
//! changes except by inlining.

use tilewright_ir::nest::{Atom, Expr, ExprKind};

use super::stages::Stage;
use crate::cost::cpu::operation_cost;

/// The operations of one point, by kind. A function counts by its instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Operations {
    /// Operations on floats.
    pub float: f64,
    /// Operations on integers.
    pub integer: f64,
    /// Uses of the division unit: divisions and roots.
    pub divisions: f64,
    /// Instructions of functions such as `exp`.
    pub functions: f64,
    /// Comparisons and choices.
    pub choices: f64,
    /// Conversions between types.
    pub conversions: f64,
    /// Loads.
    pub loads: f64,
    /// Divisions, remainders, minima and data in subscripts.
    pub subscripts: f64,
    /// The bytes of an element of the result.
    pub element_bytes: f64,
    /// 1 if the stage is a reduction, otherwise 0.
    pub reduction: f64,
}

impl Operations {
    /// The number of features.
    pub const COUNT: usize = 10;
    /// The name of each feature, for people.
    pub const NAMES: [&'static str; Self::COUNT] = [
        "float operations",
        "integer operations",
        "divisions",
        "function instructions",
        "choices",
        "conversions",
        "loads",
        "computed subscripts",
        "bytes of an element",
        "reduction",
    ];

    pub(super) fn of(stage: &Stage) -> Operations {
        let mut counts = Operations {
            element_bytes: stage.store.value.dtype.bytes() as f64,
            reduction: f64::from(u8::from(stage.store.reduce.is_some())),
            ..Operations::default()
        };
        counts.add(&stage.store.value);
        counts
    }

    fn add(&mut self, expr: &Expr) {
        let cost = operation_cost(expr);
        match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Scalar(_) => return,
            ExprKind::Index(_) => self.integer += 1.0,
            ExprKind::Load(access) => {
                self.loads += 1.0;
                let computed = access.indices.iter().flat_map(|index| index.terms());
                let computed =
                    computed.flat_map(|term| &term.factors).filter(|factor| !matches!(factor, Atom::Var(_)));
                self.subscripts += computed.count() as f64;
            }
            ExprKind::Call(..) => self.functions += cost.instructions,
            ExprKind::Cast(_) => self.conversions += 1.0,
            ExprKind::Select(..) => self.choices += 1.0,
            ExprKind::Binary(operator, _) if operator.is_comparison() => self.choices += 1.0,
            _ if expr.dtype.is_float() => self.float += cost.instructions,
            _ => self.integer += cost.instructions,
        }
        self.divisions += cost.divisions;
        expr.operands().iter().for_each(|operand| self.add(operand));
    }

    /// All instructions of a point, about.
    pub fn instructions(&self) -> f64 {
        let plain = self.float + self.integer + self.choices + self.conversions + self.loads;
        1.0 + plain + self.functions + 4.0 * self.divisions + 2.0 * self.subscripts
    }

    pub(super) fn values(&self) -> [f64; Self::COUNT] {
        [
            self.float,
            self.integer,
            self.divisions,
            self.functions,
            self.choices,
            self.conversions,
            self.loads,
            self.subscripts,
            self.element_bytes,
            self.reduction,
        ]
    }
}
