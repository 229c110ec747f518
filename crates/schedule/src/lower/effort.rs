//! Estimates how long compilation takes, so that a schedule that unrolls too much is refused.
//!
//! The unit is an operation on one vector register, or on one number. LLVM's time grows faster than
//! the code where much of it is in one stretch without a loop. Measured on matrix products and on
//! long sums of exponentials, for all kinds of vectors, a stretch of n operations takes as long as
//! n·(1 + n/[`LONG_STRETCH`]) single ones. At [`MOST_ADDED_EFFORT`], with the versions that
//! remainders add, that is two to five seconds.
//!
//! Only the code that a schedule adds is limited. The loops of the program's text always compile,
//! however long their expressions are.

use tilewright_ir::nest::{
    Access, Combine, Expr, ExprKind, For, IndexExpr, LoopKind, LoopVarId, Stmt, Store,
};
use tilewright_ir::{BinaryOp, Builtin, LoopNest};
use tilewright_target::Target;

use crate::draft::Legal;
use crate::draft::simplify::Ranges;
use crate::illegal::Illegal;

/// The length of a stretch, in operations, that takes twice as long as the same operations in short
/// stretches.
const LONG_STRETCH: u64 = 2500;
/// The effort of every stretch beside its operations.
const STRETCH_EFFORT: u64 = 10;
/// The effort that a schedule may add: that of one stretch of ten thousand operations.
const MOST_ADDED_EFFORT: u64 = 50_000;
/// The operations of a function such as `exp` or `sin`, which is computed by a polynomial.
const FUNCTION_OPERATIONS: u64 = 30;
/// The operations of the ten rounds of `philox`.
const PHILOX_OPERATIONS: u64 = 100;

/// The number of operations of scheduled statements, and the effort that the schedule adds to that
/// of the program's own loops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Effort {
    operations: u64,
    added: u64,
}

impl Effort {
    /// The effort of statements, for vectors with this many bytes.
    pub fn measure(stmts: &[Stmt], vector_bytes: usize) -> Effort {
        let (scheduled, plain) =
            (CodeSize::measure(stmts, Some(vector_bytes)), CodeSize::measure(stmts, None));
        Effort { operations: scheduled.operations, added: scheduled.effort.saturating_sub(plain.effort) }
    }

    /// The sum of two efforts.
    pub fn plus(self, other: Effort) -> Effort {
        Effort {
            operations: self.operations.saturating_add(other.operations),
            added: self.added.saturating_add(other.added),
        }
    }

    /// The effort without that of a part.
    pub fn minus(self, part: Effort) -> Effort {
        Effort {
            operations: self.operations.saturating_sub(part.operations),
            added: self.added.saturating_sub(part.added),
        }
    }

    /// Refuses an effort that takes too long to compile.
    pub fn check(self) -> Legal<()> {
        match self.added > MOST_ADDED_EFFORT {
            true => Err(Illegal::TooMuchCode { operations: self.operations }),
            false => Ok(()),
        }
    }
}

/// The effort to compile a nest, for comparison with other nests for the same target.
pub fn compilation_effort(nest: &LoopNest, target: Target<'_>) -> u64 {
    let vector_bytes = target.hardware().capabilities().vector_bytes;
    let efforts = [&nest.setup, &nest.body].map(|stmts| CodeSize::measure(stmts, Some(vector_bytes)).effort);
    efforts.iter().fold(0, |sum, effort| sum.saturating_add(*effort))
}

/// The number of operations of a value in one lane, including its store.
pub(crate) fn operations_per_lane(value: &Expr) -> u64 {
    OperationCounter::new(None).value(value).saturating_add(1)
}

/// The size of some code and the effort to compile it.
#[derive(Clone, Copy, Default)]
struct CodeSize {
    /// The number of all operations.
    operations: u64,
    /// The effort of the stretches that have ended.
    effort: u64,
    /// The number of operations in the current stretch.
    stretch: u64,
}

impl CodeSize {
    /// The code of statements with unrolled loops written out, for vectors with this many bytes.
    /// Without vectors, every loop counts as in the program's text.
    fn measure(stmts: &[Stmt], vector_bytes: Option<usize>) -> CodeSize {
        let mut code = CodeSize::default();
        OperationCounter::new(vector_bytes).stmts(stmts, &mut code);
        code.end_stretch();
        code
    }

    fn add(&mut self, operations: u64) {
        self.operations = self.operations.saturating_add(operations);
        self.stretch = self.stretch.saturating_add(operations);
    }

    fn end_stretch(&mut self) {
        if self.stretch == 0 {
            return;
        }
        let long = self.stretch.saturating_mul(self.stretch) / LONG_STRETCH;
        self.effort =
            self.effort.saturating_add(STRETCH_EFFORT).saturating_add(self.stretch).saturating_add(long);
        self.stretch = 0;
    }

    /// Adds code that is written out this many times.
    fn repeat(&mut self, inner: CodeSize, times: u64) {
        self.operations = self.operations.saturating_add(inner.operations.saturating_mul(times));
        self.effort = self.effort.saturating_add(inner.effort.saturating_mul(times));
        self.stretch = self.stretch.saturating_add(inner.stretch.saturating_mul(times));
    }
}

/// Counts operations, inside or outside a vector loop.
struct OperationCounter {
    /// The bytes of the target's vectors; none if loops count as in the program's text.
    vector_bytes: Option<usize>,
    /// The variable of the vector loop around, and its number of lanes.
    vector: Option<(LoopVarId, u64)>,
    /// The ranges of the loops around.
    ranges: Ranges,
}

impl OperationCounter {
    fn new(vector_bytes: Option<usize>) -> OperationCounter {
        OperationCounter { vector_bytes, vector: None, ranges: Ranges::default() }
    }

    fn stmts(&mut self, stmts: &[Stmt], code: &mut CodeSize) {
        for stmt in stmts {
            match stmt {
                Stmt::Store(own) | Stmt::Combine(Combine { store: own, .. }) => code.add(self.store(own)),
                Stmt::Prefetch(_) | Stmt::Sync(_) => code.add(1),
                Stmt::Allocate(own) => self.stmts(&own.body, code),
                Stmt::If(own) => {
                    for side in [&own.then, &own.otherwise] {
                        code.end_stretch();
                        self.stmts(side, code);
                    }
                    code.end_stretch();
                }
                Stmt::For(own) => self.for_loop(own, code),
            }
        }
    }

    fn for_loop(&mut self, own: &For, code: &mut CodeSize) {
        let most = own.extent.as_constant().or_else(|| self.ranges.greatest_value(&own.extent));
        if let Some(most) = most {
            self.ranges.set_extent(own.var, most);
        }
        match (own.kind, most.filter(|_| self.vector_bytes.is_some())) {
            (LoopKind::Unrolled, Some(most)) => {
                let mut inner = CodeSize::default();
                self.stmts(&own.body, &mut inner);
                code.repeat(inner, most.max(1) as u64);
            }
            (LoopKind::Vector, Some(most)) => {
                self.vector = Some((own.var, most.max(1) as u64));
                self.stmts(&own.body, code);
                self.vector = None;
            }
            _ => {
                code.end_stretch();
                self.stmts(&own.body, code);
                code.end_stretch();
            }
        }
        self.ranges.remove_range(own.var);
    }

    fn store(&self, own: &Store) -> u64 {
        let bytes = own.value.dtype.bytes();
        let reduced = if own.reduce.is_some() { self.registers(bytes) } else { 0 };
        let stored = self.access(&own.target, bytes);
        self.value(&own.value).saturating_add(stored).saturating_add(reduced)
    }

    fn value(&self, expr: &Expr) -> u64 {
        let own = match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Index(_) | ExprKind::Scalar(_) => 0,
            ExprKind::Load(access) => self.access(access, expr.dtype.bytes()),
            ExprKind::Call(Builtin::Philox, _) => {
                PHILOX_OPERATIONS.saturating_mul(self.registers(expr.dtype.bytes()))
            }
            ExprKind::Call(function, _) if !is_instruction(*function) => {
                FUNCTION_OPERATIONS.saturating_mul(self.registers(expr.dtype.bytes()))
            }
            ExprKind::Binary(BinaryOp::Power, _) => {
                FUNCTION_OPERATIONS.saturating_mul(self.registers(expr.dtype.bytes()))
            }
            _ => self.registers(expr.dtype.bytes()),
        };
        expr.operands().iter().map(|operand| self.value(operand)).fold(own, u64::saturating_add)
    }

    /// The number of registers that the lanes of a value take.
    fn registers(&self, bytes: usize) -> u64 {
        match (self.vector_bytes, self.vector) {
            (Some(whole), Some((_, lanes))) => lanes.saturating_mul(bytes as u64).div_ceil(whole as u64),
            _ => 1,
        }
    }

    /// The operations of an access: one for each register where lanes are adjacent, otherwise
    /// separate ones for every lane.
    fn access(&self, access: &Access, bytes: usize) -> u64 {
        let Some((var, lanes)) = self.vector else { return 1 };
        let is_next = |index: &IndexExpr| !index.sub(&IndexExpr::var(var)).mentions(var);
        match access.indices.iter().filter(|index| index.mentions(var)).count() {
            0 => 1,
            1 if access.indices.last().is_some_and(is_next) => self.registers(bytes),
            // An address for each lane, and in a remainder also a condition.
            _ => 2 * lanes,
        }
    }
}

/// Returns true when a function takes only an instruction or two.
fn is_instruction(function: Builtin) -> bool {
    matches!(
        function,
        Builtin::Abs
            | Builtin::Ceil
            | Builtin::Clz
            | Builtin::Copysign
            | Builtin::Ctz
            | Builtin::Floor
            | Builtin::Fma
            | Builtin::IsFinite
            | Builtin::IsInf
            | Builtin::IsNan
            | Builtin::Popcount
            | Builtin::Rint
            | Builtin::Rsqrt
            | Builtin::Sqrt
            | Builtin::Trunc
    )
}
