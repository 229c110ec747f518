//! Adds up the work of one statement: its operations, the values in its subscripts, and its
//! accesses to memory.
//!
//! Compilers fold constants, compute a value outside of the loops that it does not depend on, and
//! load an element once for all its uses. So a value counts in the loops that it depends on and in
//! the loops around them, and loads of neighbouring elements are looked at together
//! ([`LoadGroup`]).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use tilewright_ir::BinaryOp;
use tilewright_ir::nest::{Access, Atom, Expr, ExprKind, IndexExpr, LoopKind, LoopVarId, Scope, Store};
use tilewright_schedule::analysis::unclamped;

use super::cache;
use super::lanes::{AccessCost, Pattern, SECTOR_BYTES};
use super::walk::Walk;
use crate::cost::cpu::{Region, Shares, operation_cost, shares};

/// The number of instructions for an address in global and in shared memory.
const PER_ADDRESS: f64 = 3.0;
const PER_SHARED_ADDRESS: f64 = 1.0;
/// The number of instructions of an index division by a number, and of an index minimum.
const INDEX_DIVISION: f64 = 5.0;
const INDEX_MINIMUM: f64 = 1.0;
/// The number of instructions of a use of the division unit.
const DIVISION: f64 = 8.0;
/// The number of instructions that cut a result to 8 or 16 bits, where that is needed.
const NARROWING: f64 = 0.5;
/// An access to a register buffer that is in memory, as a number of dependent instructions.
const LOCAL_MEMORY_STEPS: f64 = 8.0;

/// The most combinations of iterations for which a condition is evaluated.
const MOST_COMBINATIONS: i64 = 256;
/// The bytes of a table that stays in the cache of a multiprocessor from block to block.
const SMALL_TABLE: f64 = 65536.0;

/// How an element is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessKind {
    Load,
    /// A load under a condition that differs between the lanes of a vector, so that each lane loads
    /// separately.
    GuardedLoad,
    Store,
}

/// The loops that a value depends on, as a set of positions among the loops around its statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loops(u64);

impl Loops {
    const NONE: Loops = Loops(0);
    const ALL: Loops = Loops(!0);

    fn contains(self, at: usize) -> bool {
        self.0 >> at.min(63) & 1 == 1
    }

    fn with(self, other: Loops) -> Loops {
        Loops(self.0 | other.0)
    }
}

/// A value's loops, those that it depends on, and whether compilers know its number.
#[derive(Clone, Copy, Debug)]
struct Value {
    loops: Loops,
    is_constant: bool,
}

/// A load, and the share of the iterations that execute it where that is known at compile time.
struct Load<'e> {
    access: Cow<'e, Access>,
    kind: AccessKind,
    share: f64,
}

/// Loads of one buffer whose subscripts differ by constants alone, such as those of a stencil.
struct LoadGroup<'e> {
    /// The loads as they are away from borders.
    members: Vec<Load<'e>>,
    /// The least and the greatest constant of each subscript.
    offsets: Vec<(i64, i64)>,
    /// The number of addresses that must be computed: one, and one for each load at a border.
    addresses: usize,
}

impl Walk<'_> {
    /// Counts a statement.
    pub(super) fn store(&mut self, store: &Store) {
        let warps = self.warps();
        let shared = self.shared_values(&store.value);
        // A product that is added is one multiply-add instruction.
        let is_product = matches!(&store.value.kind, ExprKind::Binary(BinaryOp::Mul, _));
        if store.reduce.is_some() && !is_product {
            self.operate(1.0, Loops::ALL, warps);
        }
        self.operations(&store.value, &shared, warps);
        self.address_operations(store, warps);
        for group in self.load_groups(&store.value) {
            self.load(&group, warps);
        }
        self.save(&store.target, warps);
    }

    /// The values that the innermost unrolled iterations of a statement share.
    fn shared_values(&self, value: &Expr) -> Shares {
        let trips = self.written_out_trips();
        shares(value, &|var| trips.get(&var).copied().unwrap_or(1.0))
    }

    /// The innermost unrolled loops.
    fn written_out_trips(&self) -> HashMap<LoopVarId, f64> {
        let written_out = self.loops.iter().rev().take_while(|own| own.kind == LoopKind::Unrolled);
        written_out.map(|own| (own.var, own.trips)).collect()
    }

    /// Counts the operations of a value. Divisions and functions take several instructions, and
    /// values that unrolled iterations share count once.
    fn operations(&mut self, expr: &Expr, shared: &Shares, warps: f64) -> Value {
        if let ExprKind::Select(arms) = &expr.kind
            && let Some(taken) = self.decided_share(&arms[0])
        {
            return self.decided_operations(arms, taken, shared, warps);
        }
        let operands: Vec<Value> =
            expr.operands().iter().map(|operand| self.operations(operand, shared, warps)).collect();
        let value = Value {
            loops: operands.iter().fold(self.loops_of_leaf(expr), |loops, own| loops.with(own.loops)),
            is_constant: match &expr.kind {
                ExprKind::Literal(_) => true,
                ExprKind::Index(index) => index.as_constant().is_some(),
                ExprKind::Scalar(_) | ExprKind::Load(_) => false,
                _ => operands.iter().all(|own| own.is_constant),
            },
        };
        if !value.is_constant && !expr.operands().is_empty() {
            let cost = operation_cost(expr);
            let distinct = shared.get(&std::ptr::from_ref(expr)).copied().unwrap_or(1.0);
            let narrow = if wraps_to_narrow(expr) { NARROWING } else { 0.0 };
            let instructions = cost.instructions + DIVISION * cost.divisions + narrow;
            self.operate(distinct * instructions, value.loops, warps);
        }
        value
    }

    /// Counts the operations of both sides of a selection, each for its share of the iterations.
    fn decided_operations(&mut self, arms: &[Expr; 3], taken: f64, shared: &Shares, warps: f64) -> Value {
        let before = self.share;
        self.share = before * taken;
        let then = self.operations(&arms[1], shared, warps);
        self.share = before * (1.0 - taken);
        let otherwise = self.operations(&arms[2], shared, warps);
        self.share = before;
        Value {
            loops: then.loops.with(otherwise.loops),
            is_constant: then.is_constant && otherwise.is_constant,
        }
    }

    /// The loops that a value without operands depends on.
    fn loops_of_leaf(&self, expr: &Expr) -> Loops {
        match &expr.kind {
            ExprKind::Index(index) => self.loops_of(std::slice::from_ref(index)),
            ExprKind::Load(access) => self.loops_of_load(access),
            _ => Loops::NONE,
        }
    }

    /// The loops that a loaded element depends on. What the kernel itself writes may change in
    /// every loop.
    fn loops_of_load(&self, access: &Access) -> Loops {
        if self.written.contains(&access.tensor) { Loops::ALL } else { self.loops_of(&access.indices) }
    }

    fn loops_of(&self, indices: &[IndexExpr]) -> Loops {
        let mentions = |var: LoopVarId| indices.iter().any(|index| index.mentions(var));
        let found = self.loops.iter().enumerate().filter(|(_, own)| mentions(own.var));
        found.fold(Loops::NONE, |loops, (at, _)| loops.with(Loops(1 << at.min(63))))
    }

    /// These loops but for those of some kinds.
    fn without(&self, loops: Loops, kinds: &[LoopKind]) -> Loops {
        let gone = self.loops.iter().enumerate().filter(|(_, own)| kinds.contains(&own.kind));
        Loops(gone.fold(loops.0, |left, (at, _)| left & !(1 << at.min(63))))
    }

    /// How often one thread computes a value that depends on these loops.
    fn runs_in(&self, loops: Loops) -> f64 {
        let innermost = (0..self.loops.len()).rev().find(|at| loops.contains(*at));
        let Some(innermost) = innermost else { return self.share };
        let mut runs = self.share;
        for (at, own) in self.loops.iter().enumerate().take(innermost + 1) {
            runs *= match own.kind {
                LoopKind::Block(_) | LoopKind::Thread(_) => 1.0,
                LoopKind::Unrolled | LoopKind::Vector
                    if !loops.contains(at) && !self.has_loop_between(at, innermost) =>
                {
                    1.0
                }
                _ => own.trips,
            };
        }
        runs
    }

    /// Counts instructions of arithmetic.
    fn operate(&mut self, instructions: f64, loops: Loops, warps: f64) {
        let runs = self.runs_in(loops);
        self.block.arithmetic += instructions * runs * warps;
        self.block.instructions += instructions * runs * warps;
        self.block.chain += instructions * runs;
    }

    /// Counts the divisions, minima and data-dependent values among the subscripts of a statement.
    /// Each is computed once for all its uses, and for the first lane of a vector.
    fn address_operations(&mut self, store: &Store, warps: f64) {
        let mut counted: BTreeSet<&Atom> = BTreeSet::new();
        let mut add = |index| visit_atoms(index, &mut counted);
        store.target.indices.iter().for_each(&mut add);
        store.value.visit_indices(&mut add);
        for atom in counted {
            let instructions = match atom {
                Atom::FloorDiv(pair) | Atom::Mod(pair) => division(&pair.1),
                Atom::Min(_) | Atom::Max(_) => INDEX_MINIMUM,
                Atom::Data(data) => {
                    self.operations(&data.value, &Shares::default(), warps);
                    continue;
                }
                _ => continue,
            };
            let loops = self.loops_of(&[IndexExpr::atom(atom.clone())]);
            let runs = self.runs_in(self.without(loops, &[LoopKind::Vector]));
            self.block.instructions += instructions * runs * warps;
            self.block.chain += instructions * runs;
        }
    }

    /// The loads of a value, including those in subscripts, each once.
    fn load_groups<'e>(&self, value: &'e Expr) -> Vec<LoadGroup<'e>> {
        let certain = value.certain_loads();
        let is_uniform = self.has_uniform_condition(value);
        let mut shares: BTreeMap<&Access, f64> = BTreeMap::new();
        self.visit_shares(value, 1.0, &mut |access, share| {
            let known = shares.entry(access).or_default();
            *known = (*known + share).min(1.0);
        });
        let mut groups: Vec<LoadGroup<'e>> = Vec::new();
        for (access, share) in shares {
            let kind = match is_uniform || certain.contains(&access) {
                true => AccessKind::Load,
                false => AccessKind::GuardedLoad,
            };
            let load = Load { access: away_from_borders(access), kind, share };
            match groups.iter_mut().find(|group| group.includes(&load.access)) {
                Some(group) => group.add(load),
                None => groups.push(LoadGroup::new(load)),
            }
        }
        groups
    }

    /// Calls `visit` for every load of a value with the share of the iterations that execute it.
    fn visit_shares<'e>(&self, value: &'e Expr, share: f64, visit: &mut dyn FnMut(&'e Access, f64)) {
        match &value.kind {
            ExprKind::Load(_) | ExprKind::Index(_) => value.visit_reads(&mut |access| visit(access, share)),
            ExprKind::Select(arms) if let Some(taken) = self.decided_share(&arms[0]) => {
                for (arm, part) in [(&arms[1], taken), (&arms[2], 1.0 - taken)] {
                    if part > 0.0 {
                        self.visit_shares(arm, share * part, visit);
                    }
                }
            }
            _ => value.operands().iter().for_each(|operand| self.visit_shares(operand, share, visit)),
        }
    }

    /// The share of the iterations for which a condition holds, if it depends on loops alone that
    /// are written out: a compiler then keeps one side of each copy.
    fn decided_share(&self, condition: &Expr) -> Option<f64> {
        let trips = self.written_out_trips();
        let mut vars: BTreeSet<LoopVarId> = BTreeSet::new();
        let mut is_known = true;
        condition.visit_indices(&mut |index| {
            vars.extend(index.vars());
            is_known &= !index.has_data();
        });
        let mut combinations = 1;
        for var in &vars {
            combinations *= *trips.get(var)? as i64;
        }
        if !is_known || !(1..=MOST_COMBINATIONS).contains(&combinations) {
            return None;
        }
        let mut taken = 0;
        for combination in 0..combinations {
            let mut rest = combination;
            let values = vars.iter().map(|var| {
                let count = trips[var] as i64;
                let value = rest % count;
                rest /= count;
                (*var, value)
            });
            taken += i64::from(holds(condition, &values.collect())?);
        }
        Some(taken as f64 / combinations as f64)
    }

    /// Whether a value is a selection whose condition is the same for all lanes of the vector, so
    /// that whole vectors are loaded.
    fn has_uniform_condition(&self, value: &Expr) -> bool {
        let Some(vector) = self.loops.last().filter(|own| own.kind == LoopKind::Vector) else { return false };
        matches!(&value.kind, ExprKind::Select(arms) if !arms[0].mentions(vector.var))
    }

    /// Counts loads of neighbouring elements. What unrolled iterations share is loaded once.
    fn load(&mut self, group: &LoadGroup<'_>, warps: f64) {
        let distinct = self.distinct_share(group);
        let first = &*group.members[0].access;
        let is_global = self.is_global(first);
        self.addresses(group.addresses, first, warps);
        let fetched = if is_global { self.fetched_sectors(group) } else { 0.0 };
        let mut requested = Vec::new();
        for own in &group.members {
            requested.push(self.request(&own.access, own.kind, distinct * own.share, warps));
        }
        let all_requested: f64 = requested.iter().map(|(_, sectors): &(f64, f64)| sectors).sum();
        // Rounds that find everything in the cache of the multiprocessor do not wait.
        let missing = (fetched / all_requested.max(1.0)).min(1.0);
        for (rounds, sectors) in requested.iter().filter(|_| is_global) {
            self.transfer(rounds * missing, sectors * missing);
        }
    }

    /// The share of the loads of a group that remain if unrolled iterations and other loads share
    /// what they load.
    fn distinct_share(&self, group: &LoadGroup<'_>) -> f64 {
        let trips = self.written_out_trips();
        let region = |own: &Load| Region::of(&own.access, &|var| trips.get(&var).copied().unwrap_or(1.0));
        let mut all = region(&group.members[0]);
        group.members.iter().skip(1).for_each(|own| all.join(&region(own)));
        let copies = |own: &Load| -> f64 {
            let mentions = |var: &LoopVarId| own.access.indices.iter().any(|index| index.mentions(*var));
            own.share * trips.iter().filter(|(var, _)| mentions(var)).map(|(_, trips)| trips).product::<f64>()
        };
        let each: f64 = group.members.iter().map(copies).sum();
        (all.elements() / each).min(1.0)
    }

    /// The sectors that loads fetch because the cache of the multiprocessor does not have them. A
    /// small table stays in this cache, so only the first block of a multiprocessor fetches it.
    fn fetched_sectors(&mut self, group: &LoadGroup<'_>) -> f64 {
        let (access, spans) = (&*group.members[0].access, group.spans());
        let of_block = self.share * cache::fetched_sectors(self.nest, access, &spans, &self.loops_of_block());
        let of_all = self.touch(access, &spans);
        if of_all > SMALL_TABLE {
            return of_block;
        }
        let blocks_each = (self.block.blocks / self.gpu.processors.max(1) as f64).max(1.0);
        of_block.min(of_all / SECTOR_BYTES as f64 / blocks_each)
    }

    /// Counts the computation of some addresses, of which others differ by constants alone: those
    /// are part of the instructions that use them. Loops that are written out add such constants.
    fn addresses(&mut self, addresses: usize, access: &Access, warps: f64) {
        let buffer = self.nest.buffer(access.tensor);
        if buffer.scope == Scope::Register && self.is_known_register(access) {
            return;
        }
        let loops = self.loops_of(&access.indices);
        let runs = self.runs_in(self.without(loops, &[LoopKind::Vector, LoopKind::Unrolled]));
        let each = if self.is_global(access) { PER_ADDRESS } else { PER_SHARED_ADDRESS };
        self.block.instructions += addresses as f64 * each * runs * warps;
    }

    /// Counts a store.
    fn save(&mut self, target: &Access, warps: f64) {
        self.addresses(1, target, warps);
        let (_, sectors) = self.request(target, AccessKind::Store, 1.0, warps);
        if self.is_global(target) {
            self.transfer(1.0, sectors);
            self.touch(target, &vec![0; target.indices.len()]);
        }
    }

    fn is_global(&self, access: &Access) -> bool {
        !matches!(self.nest.buffer(access.tensor).scope, Scope::Shared | Scope::Register)
    }

    /// Counts the instructions of an access. It executes in the loops that it depends on and in the
    /// loops around them. Returns its rounds and the sectors that it requests. `distinct` is the
    /// share of the loads that remain where iterations share them.
    fn request(&mut self, access: &Access, kind: AccessKind, distinct: f64, warps: f64) -> (f64, f64) {
        let buffer = self.nest.buffer(access.tensor);
        if buffer.scope == Scope::Register && self.is_known_register(access) {
            return (0.0, 0.0);
        }
        let mentioned = |var: LoopVarId| access.indices.iter().any(|index| index.mentions(var));
        let innermost = self.loops.iter().rposition(|own| mentioned(own.var)).unwrap_or(0);
        let mut runs = self.share * distinct;
        for (at, own) in self.loops.iter().enumerate() {
            let written_out = matches!(own.kind, LoopKind::Unrolled | LoopKind::Vector);
            let counts = match own.kind {
                LoopKind::Block(_) | LoopKind::Thread(_) => false,
                _ if written_out => mentioned(own.var) || self.has_loop_between(at, innermost),
                _ => at <= innermost || kind == AccessKind::Store,
            };
            runs *= if counts { own.trips } else { 1.0 };
        }
        let pattern =
            Pattern::of(self.nest, access, &self.thread_loops(), &self.widenable_loops(access, kind));
        let AccessCost { width, bank_cycles: turns, sectors } = pattern.cost(self.gpu.warp.max(1) as i64);
        let instructions = runs / width;
        self.block.instructions += instructions * warps;
        self.block.chain += instructions;
        self.block.bank_accesses += instructions
            * warps
            * match buffer.scope {
                Scope::Register => 1.0,
                _ => turns,
            };
        if buffer.scope == Scope::Register {
            self.block.chain += instructions * LOCAL_MEMORY_STEPS;
        }
        (self.rounds(innermost), instructions * warps * sectors)
    }
}

impl<'e> LoadGroup<'e> {
    fn new(load: Load<'e>) -> LoadGroup<'e> {
        let offsets = load.access.indices.iter().map(|index| (index.constant_part(), index.constant_part()));
        LoadGroup { offsets: offsets.collect(), addresses: 1, members: vec![load] }
    }

    /// Whether a load differs from those of the group by constants alone.
    fn includes(&self, access: &Access) -> bool {
        let own = &self.members[0].access;
        let same = |(one, other): (&IndexExpr, &IndexExpr)| one.terms() == other.terms();
        own.tensor == access.tensor && own.indices.iter().zip(&access.indices).all(same)
    }

    fn add(&mut self, load: Load<'e>) {
        for (index, (least, most)) in load.access.indices.iter().zip(&mut self.offsets) {
            *least = index.constant_part().min(*least);
            *most = index.constant_part().max(*most);
        }
        self.addresses += usize::from(matches!(load.access, Cow::Owned(_)));
        self.members.push(load);
    }

    /// The distance between the first and the last load along each dimension.
    fn spans(&self) -> Vec<i64> {
        self.offsets.iter().map(|(least, most)| most - least).collect()
    }
}

/// Whether the result of an operation is cut to fewer bits than the registers have.
fn wraps_to_narrow(expr: &Expr) -> bool {
    let wraps = matches!(
        &expr.kind,
        ExprKind::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::ShiftLeft, _)
    );
    wraps && expr.dtype.is_integer() && expr.dtype.bits() < 32
}

/// Whether a condition on subscripts holds for these values of the loops; `None` for other
/// conditions.
fn holds(condition: &Expr, values: &HashMap<LoopVarId, i64>) -> Option<bool> {
    let number = |expr: &Expr| match &expr.kind {
        ExprKind::Literal(number) => Some(number.as_f64()),
        ExprKind::Index(index) => {
            let mut leaf = |atom: &Atom| match atom {
                Atom::Var(var) => values.get(var).copied(),
                _ => None,
            };
            Some(index.eval(&mut leaf)? as f64)
        }
        _ => None,
    };
    let ExprKind::Binary(op, pair) = &condition.kind else { return None };
    Some(match op {
        BinaryOp::And => holds(&pair[0], values)? && holds(&pair[1], values)?,
        BinaryOp::Or => holds(&pair[0], values)? || holds(&pair[1], values)?,
        BinaryOp::Less => number(&pair[0])? < number(&pair[1])?,
        BinaryOp::LessEqual => number(&pair[0])? <= number(&pair[1])?,
        BinaryOp::Greater => number(&pair[0])? > number(&pair[1])?,
        BinaryOp::GreaterEqual => number(&pair[0])? >= number(&pair[1])?,
        BinaryOp::Equal => number(&pair[0])? == number(&pair[1])?,
        BinaryOp::NotEqual => number(&pair[0])? != number(&pair[1])?,
        _ => return None,
    })
}

/// The access without the borders that its subscripts are clamped to.
fn away_from_borders(access: &Access) -> Cow<'_, Access> {
    let is_clamped =
        |index: &IndexExpr| index.any_atom(&mut |atom| matches!(atom, Atom::Min(_) | Atom::Max(_)));
    if !access.indices.iter().any(is_clamped) {
        return Cow::Borrowed(access);
    }
    Cow::Owned(Access { indices: access.indices.iter().map(unclamped).collect(), ..access.clone() })
}

/// Collects the atoms of a subscript, also those in other subscripts inside.
fn visit_atoms<'e>(index: &'e IndexExpr, found: &mut BTreeSet<&'e Atom>) {
    index.visit_atoms(&mut |atom| {
        found.insert(atom);
    });
}

/// The number of instructions of an index division. One by a power of two is a shift.
fn division(by: &IndexExpr) -> f64 {
    let is_shift = by.as_constant().is_some_and(|by| by > 0 && (by as u64).is_power_of_two());
    if is_shift { 1.0 } else { INDEX_DIVISION }
}
