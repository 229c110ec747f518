//! Writes reductions across threads: the values of a row of threads, along the x axis of a block,
//! become one total, which every thread of the row receives.
//!
//! All threads of the block must run the same code, so this module puts no barrier and no shuffle
//! inside a condition. A thread past the end of its loop, or excluded by a condition, takes part
//! with the neutral element. The method depends on the shape of the block:
//!
//! | row of threads | method |
//! |---|---|
//! | a warp, or 1, 2, 4, 8 or 16 threads, in CUDA | shuffles |
//! | several whole warps, in CUDA | shuffles, and shared memory between the warps of a row |
//! | any other, and all in OpenCL | shared memory |

use tilewright_ir::arithmetic::neutral;
use tilewright_ir::nest::{Axis, CombineNest, Expr, IndexExpr, Scope};
use tilewright_ir::{BinaryOp, DType, ReduceOp};

use super::c_expr::CExpr;
use super::dialect::Dialect;
use super::expr::{StoredValue, arithmetic};
use super::prelude::Helper;
use super::stmt::{Emit, Emitter};

/// The number of threads of a warp on every CUDA device.
const WARP: u32 = 32;

/// The method by which a row of threads computes its total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReductionMethod {
    /// Shuffles alone: a row is a whole warp or a part of one.
    Warp,
    /// Shuffles and shared memory: a row is this number of whole warps.
    Warps(u32),
    /// Shared memory alone.
    SharedMemory,
}

impl ReductionMethod {
    /// The method for the shape of a block.
    pub(super) fn for_block(dialect: Dialect, block: [u32; 3]) -> ReductionMethod {
        match block[0] {
            _ if !dialect.has_shuffles() => ReductionMethod::SharedMemory,
            row if WARP.is_multiple_of(row) => ReductionMethod::Warp,
            row if row.is_multiple_of(WARP) => ReductionMethod::Warps(row / WARP),
            _ => ReductionMethod::SharedMemory,
        }
    }

    /// The number of values in shared memory that a block needs.
    pub(super) fn shared_values(self, block: [u32; 3]) -> i64 {
        let rows = i64::from(block[1]) * i64::from(block[2]);
        match self {
            ReductionMethod::Warp => 0,
            ReductionMethod::Warps(warps) => rows * i64::from(warps),
            ReductionMethod::SharedMemory => rows * i64::from(block[0]),
        }
    }

    /// The threads over which the prelude function for this method computes a total.
    fn group(self) -> Group {
        match self {
            ReductionMethod::Warp => Group::Warp,
            ReductionMethod::Warps(_) => Group::Warps,
            ReductionMethod::SharedMemory => Group::Threads,
        }
    }
}

/// The threads over which a prelude function computes a total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// A whole warp or a part of one, by shuffles.
    Warp,
    /// Several whole warps, by shuffles and shared memory.
    Warps,
    /// Any row of threads, by shared memory.
    Threads,
}

impl Group {
    /// Its name, in names of functions.
    pub(super) fn name(self) -> &'static str {
        match self {
            Group::Warp => "warp",
            Group::Warps => "warps",
            Group::Threads => "threads",
        }
    }
}

impl Emitter<'_> {
    /// Writes thread loops that end in a reduction across threads. `outer_conditions` are around
    /// the loops, and are the same for all threads of the block. All threads run the code even
    /// where these conditions do not hold.
    pub(super) fn combine(
        &mut self,
        combining: &CombineNest<'_>,
        outer_conditions: &[IndexExpr],
    ) -> Emit<()> {
        self.open("");
        for thread_loop in &combining.loops {
            self.thread_variable(thread_loop);
        }
        let done = self.write_reduction(combining, outer_conditions);
        for thread_loop in &combining.loops {
            self.ranges.leave(thread_loop.var);
        }
        self.close();
        done
    }

    fn write_reduction(&mut self, combining: &CombineNest<'_>, outer_conditions: &[IndexExpr]) -> Emit<()> {
        let combine = combining.combine;
        let dtype = combine.store.value.dtype;
        let t = self.unit.dialect.value_type(dtype);
        let outer_conditions = self.conditions(outer_conditions)?;
        let conditions: Vec<CExpr> =
            outer_conditions.iter().cloned().chain(self.participation_conditions(combining)?).collect();
        let value = self.thread_value(&combine.store.value, combine.op, !conditions.is_empty())?;
        if !conditions.is_empty() {
            self.line(&format!("const bool tw_active = {};", CExpr::all(&conditions).text()));
        }
        let total = self.total(combine.op, value, dtype);
        self.line(&format!("const {t} tw_total = {};", total.text()));
        let in_registers = self.unit.nest.buffer(combine.store.target.tensor).scope == Scope::Register;
        if in_registers && outer_conditions.is_empty() {
            return self.store_value(&combine.store, StoredValue::Value(CExpr::atom("tw_total")));
        }
        let lane = CExpr::atom(self.unit.names.var(combine.lane));
        let is_first = CExpr::binary(BinaryOp::Equal, &lane, &CExpr::atom("0"));
        let inside = (!conditions.is_empty()).then(|| CExpr::atom("tw_active"));
        let writes = match in_registers {
            true => CExpr::all(&outer_conditions),
            false => CExpr::all(&inside.into_iter().chain([is_first]).collect::<Vec<_>>()),
        };
        self.open(&format!("if ({}) ", writes.text()));
        self.store_value(&combine.store, StoredValue::Value(CExpr::atom("tw_total")))?;
        self.close();
        Ok(())
    }

    /// The conditions for a thread to take part; empty if all threads do.
    fn participation_conditions(&mut self, combining: &CombineNest<'_>) -> Emit<Vec<CExpr>> {
        let mut conditions = Vec::new();
        for thread_loop in &combining.loops {
            let extent = thread_loop.extent.as_constant().unwrap_or(1);
            if let Some(axis) =
                thread_loop.thread_axis().filter(|axis| i64::from(self.block[*axis as usize]) != extent)
            {
                let thread = self.unit.dialect.thread_index(axis);
                conditions.push(CExpr::binary(BinaryOp::Less, &thread, &self.number(extent)));
            }
        }
        let used: Vec<Axis> = combining.loops.iter().filter_map(|own| own.thread_axis()).collect();
        for axis in Axis::ALL.into_iter().filter(|axis| !used.contains(axis)) {
            if self.block[axis as usize] > 1 {
                conditions.push(self.unit.dialect.is_first_thread(axis));
            }
        }
        conditions.extend(self.conditions(combining.conditions.iter().copied())?);
        Ok(conditions)
    }

    /// The value of the thread, or the neutral element if the thread does not take part. Minima and
    /// maxima ignore NaN, so a thread whose value is NaN contributes the neutral element too.
    fn thread_value(&mut self, value: &Expr, op: ReduceOp, conditional: bool) -> Emit<CExpr> {
        let neutral = self.literal(neutral(op, value.dtype), value.dtype);
        let mut thread_value = self.value(value)?;
        if value.dtype.is_float() && matches!(op, ReduceOp::Min | ReduceOp::Max) {
            thread_value = self.reduce_value(op, &neutral, &thread_value, value.dtype);
        }
        Ok(if conditional {
            CExpr::conditional(&CExpr::atom("tw_active"), &thread_value, &neutral)
        } else {
            thread_value
        })
    }

    fn total(&mut self, op: ReduceOp, value: CExpr, dtype: DType) -> CExpr {
        let method = ReductionMethod::for_block(self.unit.dialect, self.block);
        let function = self.require_helper(Helper::Total(op, method.group()), dtype);
        self.require_min_max_helper(op.operator(), dtype);
        if let ReductionMethod::Warps(_) = method {
            self.require_helper(Helper::Total(op, Group::Warp), dtype);
        }
        let [row_threads, rows, _] = self.block.map(|threads| CExpr::atom(threads.to_string()));
        let thread = |axis| self.unit.dialect.thread_index(axis);
        let row = match (self.block[1] > 1, self.block[2] > 1) {
            (false, false) => CExpr::atom("0"),
            (true, false) => thread(Axis::Y),
            _ => {
                let before = CExpr::binary(BinaryOp::Mul, &rows, &thread(Axis::Z));
                CExpr::binary(BinaryOp::Add, &thread(Axis::Y), &before)
            }
        };
        let (space, memory) = (self.unit.dialect.shared(), self.unit.dialect.memory_type(dtype));
        let start = CExpr::atom(self.reduction_offset.to_string());
        let partials = CExpr::binary(BinaryOp::Add, &CExpr::atom("tw_shared"), &start);
        let partials = partials.cast(&format!("{space}{memory}*"));
        let lane = thread(Axis::X);
        match method {
            ReductionMethod::Warp => CExpr::call(&function, &[value, row_threads]),
            ReductionMethod::Warps(warps) => {
                CExpr::call(&function, &[value, partials, row, lane, CExpr::atom(warps.to_string())])
            }
            ReductionMethod::SharedMemory => {
                CExpr::call(&function, &[value, partials, row, lane, row_threads])
            }
        }
    }
}

/// The definition of the prelude function that reduces across a group of threads.
pub(super) fn function(dialect: Dialect, (op, group): (ReduceOp, Group), dtype: DType, head: &str) -> String {
    let (own, total) = (Helper::Total(op, group).name(dtype), op.result_noun());
    let (t, memory, space) = (dialect.value_type(dtype), dialect.memory_type(dtype), dialect.shared());
    let joined = |left: &str, right: &str| {
        let both = arithmetic(dialect, op.operator(), &CExpr::atom(left), &CExpr::atom(right), dtype);
        both.text().to_owned()
    };
    let barrier = dialect.sync(tilewright_ir::nest::Sync::Barrier).unwrap_or_default();
    match group {
        Group::Warp => {
            let lanes = shuffle_value(t, dtype);
            let both = joined("x", "other");
            format!(
                "// Each of `threads` neighbouring threads, a power of two, gets their {total}.\n{head} {t} {own}({t} x, int \
                 threads) {{\n  #pragma unroll\n  for (int step = threads / 2; step > 0; step /= 2) {{\n    const {t} other = \
                 {lanes};\n    x = {both};\n  }}\n  return x;\n}}\n"
            )
        }
        Group::Warps => {
            let warp = Helper::Total(op, Group::Warp).name(dtype);
            let both = joined("x", "partials[warps * row + warp]");
            format!(
                "// Each thread of a row of `warps` whole warps gets the {total} of the row.\n{head} {t} {own}({t} x, {memory}* partials, \
                 int row, int lane, int warps) {{\n  x = {warp}(x, {WARP});\n  if (lane % {WARP} == 0) partials[warps * row + lane / \
                 {WARP}] = x;\n  {barrier}\n  x = partials[warps * row];\n  for (int warp = 1; warp < warps; ++warp) x = {both};\n  \
                 {barrier}\n  return x;\n}}\n"
            )
        }
        Group::Threads => {
            let both = joined("partials[lane]", "partials[lane + step]");
            format!(
                "// Each thread of a row gets the {total} of the row.\n{head} {t} {own}({t} x, {space}{memory}* partials, int row, int \
                 lane, int threads) {{\n  partials += threads * row;\n  partials[lane] = x;\n  int step = 1;\n  while (step < threads) \
                 step *= 2;\n  for (step /= 2; step > 0; step /= 2) {{\n    {barrier}\n    if (lane < step && lane + step < \
                 threads) partials[lane] = {both};\n  }}\n  {barrier}\n  x = partials[0];\n  {barrier}\n  return x;\n}}\n"
            )
        }
    }
}

/// The value of the thread at distance `step`. Shuffles exist for 32 and 64 bits only.
fn shuffle_value(t: &str, dtype: DType) -> String {
    let shuffle = |value: &str| format!("__shfl_xor_sync(0xffffffffu, {value}, step)");
    match dtype.bits() < 32 {
        true => format!("({t}){}", shuffle("(int)x")),
        false => shuffle("x"),
    }
}
