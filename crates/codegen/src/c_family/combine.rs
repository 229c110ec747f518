//! Writes reductions across the threads of a block: the values of the threads become one total,
//! which every thread receives.
//!
//! All threads of the block run the same code, so nothing here is inside a condition. A thread past
//! the end of its loop, or excluded by a condition, takes part with the neutral element. The method
//! depends on the shape of the block:
//!
//! | row of threads | method |
//! |---|---|
//! | a part of a warp, in CUDA | shuffles |
//! | several whole warps, in CUDA | shuffles, and shared memory between the warps of a row |
//! | any other, and all in OpenCL | shared memory |

use tilewright_ir::arithmetic::neutral;
use tilewright_ir::nest::{Axis, Combining, Scope};
use tilewright_ir::{BinaryOp, DType, Expr, IndexExpr, ReduceOp};

use super::c_expr::CExpr;
use super::dialect::Dialect;
use super::expr::{Stored, arithmetic};
use super::prelude::Helper;
use super::stmt::{Emit, Emitter};

/// The number of threads of a warp on every CUDA device.
const WARP: u32 = 32;

/// The method by which a row of threads computes its total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Shuffles alone: a row is a whole warp or a part of one.
    Warp,
    /// Shuffles and shared memory: a row is this number of whole warps.
    Warps(u32),
    /// Shared memory alone.
    Memory,
}

impl Way {
    /// The method for the shape of a block.
    pub(super) fn of(dialect: Dialect, block: [u32; 3]) -> Way {
        match block[0] {
            _ if !dialect.has_shuffles() => Way::Memory,
            row if WARP.is_multiple_of(row) => Way::Warp,
            row if row.is_multiple_of(WARP) => Way::Warps(row / WARP),
            _ => Way::Memory,
        }
    }

    /// The number of values in shared memory that a block needs.
    pub(super) fn values(self, block: [u32; 3]) -> i64 {
        let rows = i64::from(block[1]) * i64::from(block[2]);
        match self {
            Way::Warp => 0,
            Way::Warps(warps) => rows * i64::from(warps),
            Way::Memory => rows * i64::from(block[0]),
        }
    }

    /// The threads over which the prelude function for this method computes a total.
    fn group(self) -> Group {
        match self {
            Way::Warp => Group::Warp,
            Way::Warps(_) => Group::Warps,
            Way::Memory => Group::Threads,
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
    /// Writes thread loops that end in a reduction across threads. `around` is a condition around
    /// the loops that is the same for all threads of the block. All threads run the code even where
    /// it does not hold.
    pub(super) fn combine(&mut self, combining: &Combining<'_>, around: &[IndexExpr]) -> Emit<()> {
        self.open("");
        for own in &combining.loops {
            self.thread_variable(own);
        }
        let done = self.combined(combining, around);
        for own in &combining.loops {
            self.ranges.leave(own.var);
        }
        self.close();
        done
    }

    fn combined(&mut self, combining: &Combining<'_>, around: &[IndexExpr]) -> Emit<()> {
        let own = combining.combine;
        let dtype = own.store.value.dtype;
        let t = self.unit.dialect.value_type(dtype);
        let around = self.conditions(around)?;
        let parts: Vec<CExpr> = around.iter().cloned().chain(self.takes_part(combining)?).collect();
        let value = self.own_value(&own.store.value, own.op, !parts.is_empty())?;
        if !parts.is_empty() {
            self.line(&format!("const bool tw_inside = {};", CExpr::all(&parts).whole()));
        }
        let total = self.total(own.op, value, dtype);
        self.line(&format!("const {t} tw_total = {};", total.whole()));
        let in_registers = self.unit.nest.buffer(own.store.target.tensor).scope == Scope::Register;
        if in_registers && around.is_empty() {
            return self.put(&own.store, Stored::Value(CExpr::atom("tw_total")));
        }
        let lane = CExpr::atom(self.unit.names.var(own.lane));
        let is_first = CExpr::binary(BinaryOp::Equal, &lane, &CExpr::atom("0"));
        let inside = (!parts.is_empty()).then(|| CExpr::atom("tw_inside"));
        let writes = match in_registers {
            true => CExpr::all(&around),
            false => CExpr::all(&inside.into_iter().chain([is_first]).collect::<Vec<_>>()),
        };
        self.open(&format!("if ({}) ", writes.whole()));
        self.put(&own.store, Stored::Value(CExpr::atom("tw_total")))?;
        self.close();
        Ok(())
    }

    /// The conditions for a thread to take part; empty if all threads do.
    fn takes_part(&mut self, combining: &Combining<'_>) -> Emit<Vec<CExpr>> {
        let mut conditions = Vec::new();
        for own in &combining.loops {
            let extent = own.extent.as_constant().unwrap_or(1);
            if let Some(axis) =
                own.thread_axis().filter(|axis| i64::from(self.block[*axis as usize]) != extent)
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

    /// The value of the thread, or the neutral element if the thread does not take part.
    fn own_value(&mut self, value: &Expr, op: ReduceOp, conditional: bool) -> Emit<CExpr> {
        let own = self.value(value)?;
        let neutral = self.literal(neutral(op, value.dtype), value.dtype);
        Ok(if conditional { CExpr::choice(&CExpr::atom("tw_inside"), &own, &neutral) } else { own })
    }

    fn total(&mut self, op: ReduceOp, value: CExpr, dtype: DType) -> CExpr {
        let way = Way::of(self.unit.dialect, self.block);
        let function = self.needs(Helper::Total(op, way.group()), dtype);
        self.needs_extreme(op.operator(), dtype);
        if let Way::Warps(_) = way {
            self.needs(Helper::Total(op, Group::Warp), dtype);
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
        let start = CExpr::atom(self.combine_room.to_string());
        let room = CExpr::binary(BinaryOp::Add, &CExpr::atom("tw_shared"), &start);
        let room = room.cast(&format!("{space}{memory}*"));
        let lane = thread(Axis::X);
        match way {
            Way::Warp => CExpr::call(&function, &[value, row_threads]),
            Way::Warps(warps) => {
                CExpr::call(&function, &[value, room, row, lane, CExpr::atom(warps.to_string())])
            }
            Way::Memory => CExpr::call(&function, &[value, room, row, lane, row_threads]),
        }
    }
}

/// The definition of the prelude function that reduces across a group of threads.
pub(super) fn function(dialect: Dialect, (op, group): (ReduceOp, Group), dtype: DType, head: &str) -> String {
    let (own, total) = (Helper::Total(op, group).name(dtype), op.total());
    let (t, memory, space) = (dialect.value_type(dtype), dialect.memory_type(dtype), dialect.shared());
    let joined = |left: &str, right: &str| {
        let both = arithmetic(dialect, op.operator(), &CExpr::atom(left), &CExpr::atom(right), dtype);
        both.whole().to_owned()
    };
    let barrier = dialect.sync(tilewright_ir::nest::Sync::Barrier).unwrap_or_default();
    match group {
        Group::Warp => {
            let lanes = shuffled(t, dtype);
            let both = joined("x", "other");
            format!(
                "// The {total} of neighbouring threads, as many as a power of two, in each of them.\n{head} {t} {own}({t} x, int \
                 threads) {{\n  #pragma unroll\n  for (int step = threads / 2; step > 0; step /= 2) {{\n    const {t} other = \
                 {lanes};\n    x = {both};\n  }}\n  return x;\n}}\n"
            )
        }
        Group::Warps => {
            let warp = Helper::Total(op, Group::Warp).name(dtype);
            let both = joined("x", "room[warps * row + warp]");
            format!(
                "// The {total} of a row of threads, some whole warps, in each of them.\n{head} {t} {own}({t} x, {memory}* room, \
                 int row, int lane, int warps) {{\n  x = {warp}(x, {WARP});\n  if (lane % {WARP} == 0) room[warps * row + lane / \
                 {WARP}] = x;\n  {barrier}\n  x = room[warps * row];\n  for (int warp = 1; warp < warps; ++warp) x = {both};\n  \
                 {barrier}\n  return x;\n}}\n"
            )
        }
        Group::Threads => {
            let both = joined("room[lane]", "room[lane + step]");
            format!(
                "// The {total} of a row of threads in each of them.\n{head} {t} {own}({t} x, {space}{memory}* room, int row, int \
                 lane, int threads) {{\n  room += threads * row;\n  room[lane] = x;\n  int step = 1;\n  while (step < threads) \
                 step *= 2;\n  for (step /= 2; step > 0; step /= 2) {{\n    {barrier}\n    if (lane < step && lane + step < \
                 threads) room[lane] = {both};\n  }}\n  {barrier}\n  x = room[0];\n  {barrier}\n  return x;\n}}\n"
            )
        }
    }
}

/// The value of the thread at distance `step`. Shuffles exist for 32 and 64 bits only.
fn shuffled(t: &str, dtype: DType) -> String {
    let shuffle = |value: &str| format!("__shfl_xor_sync(0xffffffffu, {value}, step)");
    match dtype.bits() < 32 {
        true => format!("({t}){}", shuffle("(int)x")),
        false => shuffle("x"),
    }
}
