//! Random schedules: steps that mostly fit, each kept if it is accepted after the steps before it.
//!
//! The names that exist after some steps come from `apply` itself: the refusal of an unknown name
//! lists the known ones. So the generator knows the loops exactly, however steps name them.

#![allow(dead_code, reason = "the tests of loops and of compiled code each use their part")]

use std::collections::BTreeMap;

use tilewright_ir::nest::Axis;
use tilewright_ir::{Access, Expr, ExprKind, IndexExpr, LoopNest, Program, Role, TensorId, Update, VarKind};
use tilewright_schedule::analysis::accesses;
use tilewright_schedule::{
    Illegal, LayoutDim, LoopLevel, LoopName, ParallelUnit, PromoteScope, Refusal, Schedule, StatementName,
    Step, Storage, apply,
};
use tilewright_target::Gpu;

use super::rng::Rng;
use crate::support::cpu;

/// A kind of step, as the counts distinguish them.
pub type StepKind = &'static str;

/// The kinds of steps, with their weights.
pub const KINDS: [(StepKind, usize); 17] = [
    ("split", 22),
    ("fuse", 8),
    ("reorder", 14),
    ("unroll", 8),
    ("vectorize", 9),
    ("parallel", 7),
    ("inline", 5),
    ("clone", 5),
    ("compute_at", 9),
    ("store_at", 4),
    ("compute_with", 6),
    ("promote operand", 11),
    ("promote gathered", 11),
    ("promote result", 9),
    ("rfactor", 7),
    ("scan", 10),
    ("prefetch", 4),
];

/// The kinds of steps for a GPU, with their weights.
pub const GPU_KINDS: [(StepKind, usize); 16] = [
    ("split", 20),
    ("fuse", 6),
    ("reorder", 12),
    ("unroll", 5),
    ("vectorize", 10),
    ("bind", 35),
    ("inline", 4),
    ("clone", 4),
    ("compute_at", 10),
    ("store_at", 4),
    ("compute_with", 6),
    ("promote operand", 6),
    ("promote gathered", 9),
    ("promote result", 6),
    ("rfactor", 12),
    ("scan", 10),
];

/// The machine that a schedule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    Cpu,
    Gpu,
}

impl Machine {
    pub fn apply(self, program: &Program, schedule: &Schedule) -> Result<LoopNest, Refusal> {
        match self {
            Machine::Cpu => apply(program, schedule, &cpu()),
            Machine::Gpu => apply(program, schedule, &Gpu::h200()),
        }
    }
}

/// The kinds of steps that concern code generation most.
const FINISHING: [(StepKind, usize); 8] = [
    ("split", 10),
    ("vectorize", 40),
    ("promote result", 20),
    ("promote operand", 5),
    ("promote gathered", 5),
    ("unroll", 15),
    ("parallel", 10),
    ("prefetch", 5),
];

/// How often each kind of step was tried and accepted.
#[derive(Clone, Debug, Default)]
pub struct Counts(pub BTreeMap<StepKind, (usize, usize)>);

impl Counts {
    fn add(&mut self, kind: StepKind, accepted: bool) {
        let entry = self.0.entry(kind).or_default();
        entry.0 += 1;
        entry.1 += usize::from(accepted);
    }
}

/// The names that exist after some steps.
struct Names {
    /// The statements, and the loops around each.
    statements: Vec<(StatementName, Vec<String>)>,
    tensors: Vec<String>,
}

const NOTHING: &str = "nothing";

fn refusal(machine: Machine, program: &Program, steps: &[Step], probe: Step) -> Option<Illegal> {
    let steps = steps.iter().cloned().chain([probe]).collect();
    machine.apply(program, &Schedule { steps }).err().map(|refusal| refusal.reason)
}

impl Names {
    fn after(machine: Machine, program: &Program, steps: &[Step]) -> Names {
        let statement = Step::Unroll(StatementName::first(NOTHING).loop_named(NOTHING));
        let known = match refusal(machine, program, steps, statement) {
            Some(Illegal::UnknownStatement { known, .. }) => known,
            other => panic!("asked for the statements and got {other:?}"),
        };
        let tensors = match refusal(machine, program, steps, Step::Inline { tensor: NOTHING.to_string() }) {
            Some(Illegal::UnknownTensor { known, .. }) => known,
            other => panic!("asked for the tensors and got {other:?}"),
        };
        let with_loops = |name: &String| {
            let name = statement_name(name);
            match refusal(machine, program, steps, Step::Unroll(name.loop_named(NOTHING))) {
                Some(Illegal::UnknownLoop { known, .. }) => (name, known),
                other => panic!("asked for the loops of {name} and got {other:?}"),
            }
        };
        Names { statements: known.iter().map(with_loops).collect(), tensors }
    }
}

/// Splits `C[2]` into the tensor and the ordinal.
fn statement_name(text: &str) -> StatementName {
    match text.split_once('[') {
        Some((tensor, rest)) => StatementName {
            tensor: tensor.to_string(),
            ordinal: rest.trim_end_matches(']').parse().expect("a number in brackets"),
        },
        None => StatementName::first(text),
    }
}

/// A schedule under construction.
pub struct Walk<'a> {
    rng: &'a mut Rng,
    machine: Machine,
    program: &'a Program,
    names: Names,
    /// Statements of the program, each with a tensor that it reads and that another statement
    /// computes.
    uses: Vec<(StatementName, String)>,
    /// Statements of the program, each with a tensor that it reads at data-dependent subscripts.
    gathers: Vec<(StatementName, String)>,
    /// The kinds of steps, with their weights.
    kinds: &'static [(StepKind, usize)],
    /// The statement that most steps are about.
    focus: usize,
    /// Whether steps are also tried that will rarely be accepted: moves of any tensor to any loop,
    /// and orders of all loops.
    everything: bool,
    fresh: usize,
    /// The steps so far.
    pub steps: Vec<Step>,
}

/// The pairs of a statement and a tensor that it reads and another statement writes, or that it
/// writes again.
fn uses(program: &Program) -> Vec<(StatementName, String)> {
    let mut uses = Vec::new();
    let mut written: Vec<TensorId> = Vec::new();
    for (statement, _) in program.statements() {
        let plain = statement.indices.iter().all(|index| index.as_var().is_some());
        let again = plain && written.contains(&statement.target);
        written.push(statement.target);
        let ordinal = written.iter().filter(|own| **own == statement.target).count();
        let name = StatementName { tensor: program.tensor(statement.target).name.clone(), ordinal };
        let read = loaded(&statement.value).into_iter();
        let read = read.filter(|tensor| *tensor != statement.target && written.contains(tensor));
        let read: Vec<TensorId> = read.chain(again.then_some(statement.target)).collect();
        uses.extend(read.into_iter().map(|tensor| (name.clone(), program.tensor(tensor).name.clone())));
    }
    uses
}

/// The pairs of a statement and a tensor that it reads at data-dependent subscripts.
fn gathers(program: &Program) -> Vec<(StatementName, String)> {
    let mut found = Vec::new();
    let mut written: Vec<TensorId> = Vec::new();
    for (statement, _) in program.statements() {
        written.push(statement.target);
        let ordinal = written.iter().filter(|own| **own == statement.target).count();
        let name = StatementName { tensor: program.tensor(statement.target).name.clone(), ordinal };
        let chosen = |access: &Access| access.indices.iter().any(IndexExpr::has_data);
        let reads = accesses(&statement.value).into_iter().filter(chosen);
        found.extend(reads.map(|read| (name.clone(), program.tensor(read.tensor).name.clone())));
    }
    found
}

/// Returns true when a single assignment defines a temporary.
fn is_simple(program: &Program, name: &str) -> bool {
    let Some(id) = program.find_tensor(name) else { return false };
    let statements = program.statements();
    let mut updates = statements.iter().filter(|(statement, _)| statement.target == id);
    let first = updates.next().is_some_and(|(first, _)| first.update == Update::Assign);
    program.tensor(id).role == Role::Temporary && first && updates.next().is_none()
}

/// The tensors that an expression loads from.
fn loaded(expr: &Expr) -> Vec<TensorId> {
    match &expr.kind {
        ExprKind::Load(access) => vec![access.tensor],
        _ => expr.operands().iter().flat_map(loaded).collect(),
    }
}

/// Steps for a program, all of which are accepted; or the steps at which `apply` panics.
pub fn schedule(rng: &mut Rng, program: &Program, counts: &mut Counts) -> Schedule {
    schedule_for(Machine::Cpu, rng, program, counts)
}

/// The same, for a given machine.
pub fn schedule_for(machine: Machine, rng: &mut Rng, program: &Program, counts: &mut Counts) -> Schedule {
    random_schedule(machine, rng, program, counts, false)
}

/// The same, with steps that concern every statement, tensor and loop of a program of many
/// statements.
pub fn everything_for(machine: Machine, rng: &mut Rng, program: &Program, counts: &mut Counts) -> Schedule {
    random_schedule(machine, rng, program, counts, true)
}

fn random_schedule(
    machine: Machine,
    rng: &mut Rng,
    program: &Program,
    counts: &mut Counts,
    everything: bool,
) -> Schedule {
    let names = Names::after(machine, program, &[]);
    let (kinds, turns) = match machine {
        Machine::Cpu => (&KINDS[..], 12),
        Machine::Gpu => (&GPU_KINDS[..], 20),
    };
    let (uses, gathers) = (uses(program), gathers(program));
    let (focus, fresh, steps) = (0, 0, Vec::new());
    Walk { rng, machine, program, names, uses, gathers, kinds, focus, everything, fresh, steps }
        .add_random_steps(turns, counts)
}

/// The schedule with more steps, of the kinds that concern code generation most.
pub fn with_finishing_steps(
    rng: &mut Rng,
    program: &Program,
    schedule: Schedule,
    counts: &mut Counts,
) -> Schedule {
    let steps = schedule.steps;
    if !matches!(super::guarded(|| apply(program, &Schedule { steps: steps.clone() }, &cpu())), Ok(Ok(_))) {
        return Schedule { steps };
    }
    let (machine, names) = (Machine::Cpu, Names::after(Machine::Cpu, program, &steps));
    // The names in the steps before end in smaller numbers.
    let (uses, gathers, kinds, fresh) = (uses(program), gathers(program), &FINISHING[..], 100);
    let (focus, everything) = (0, false);
    Walk { rng, machine, program, names, uses, gathers, kinds, focus, everything, fresh, steps }
        .add_random_steps(10, counts)
}

/// Removes doubtful steps if the whole schedule is still refused because of them.
fn without_doubtful(
    machine: Machine,
    program: &Program,
    mut steps: Vec<Step>,
    doubtful: &[Step],
) -> Vec<Step> {
    let refused = |steps: &[Step]| {
        matches!(super::guarded(|| machine.apply(program, &Schedule { steps: steps.to_vec() })), Ok(Err(_)))
    };
    for step in doubtful.iter().rev() {
        if refused(&steps) {
            steps.retain(|own| own != step);
        }
    }
    while refused(&steps) {
        steps.pop();
    }
    steps
}

impl Walk<'_> {
    /// The steps so far and some more, all of which are accepted; or the steps at which `apply`
    /// panics.
    fn add_random_steps(mut self, most_steps: i64, counts: &mut Counts) -> Schedule {
        let mut doubtful = Vec::new();
        for turn in 0..self.rng.between(0, most_steps) {
            let kind = self.kind(turn);
            let Some(step) = self.step(kind) else { continue };
            self.steps.push(step);
            match super::guarded(|| self.machine.apply(self.program, &Schedule { steps: self.steps.clone() }))
            {
                Ok(Ok(_)) => counts.add(kind, true),
                // Only later steps can make this one legal, as for registers whose loops are
                // unrolled later.
                Ok(Err(Refusal { step: None, .. })) if self.rng.chance(50) => {
                    doubtful.push(self.steps[self.steps.len() - 1].clone());
                }
                Ok(Err(_)) => {
                    counts.add(kind, false);
                    self.steps.pop();
                    continue;
                }
                Err(_) => break,
            }
            self.names = Names::after(self.machine, self.program, &self.steps);
        }
        Schedule { steps: without_doubtful(self.machine, self.program, self.steps, &doubtful) }
    }

    fn kind(&mut self, turn: i64) -> StepKind {
        // Whole stages move before steps change their loops.
        let early = |kind: StepKind| turn < 3 && matches!(kind, "inline" | "compute_at" | "store_at");
        let none_to_gather = self.gathers.is_empty();
        let weight = |(kind, weight): &(StepKind, usize)| match *kind {
            "promote gathered" if none_to_gather => (*kind, 0),
            kind if early(kind) => (kind, 2 * weight),
            kind => (kind, *weight),
        };
        let kinds: Vec<(StepKind, usize)> = self.kinds.iter().map(weight).collect();
        self.rng.weighted(&kinds)
    }

    fn step(&mut self, kind: StepKind) -> Option<Step> {
        let often = if self.everything { 60 } else { 30 };
        if self.rng.chance(often) || self.focus >= self.names.statements.len() {
            self.focus = self.rng.below(self.names.statements.len());
        }
        match kind {
            "split" => self.split(),
            "fuse" => self.fuse(),
            "reorder" => self.reorder(),
            "unroll" => Some(Step::Unroll(self.any_loop()?)),
            "vectorize" => Some(Step::Vectorize(self.late_loop()?)),
            "parallel" => Some(Step::Parallel(self.early_loop()?)),
            "bind" => self.bind(),
            "inline" => self.inline(),
            "clone" => self.clone_for(),
            "compute_at" => self.compute_at(),
            "store_at" => self.store_at(),
            "compute_with" => self.compute_with(),
            "promote operand" => self.promote_operand(),
            "promote gathered" => self.promote_gathered(),
            "promote result" => self.promote_result(),
            "rfactor" => self.rfactor(),
            "scan" => self.scan(),
            _ => self.prefetch(),
        }
    }

    fn loops(&self) -> Vec<LoopName> {
        let (statement, loops) = &self.names.statements[self.focus];
        loops.iter().map(|name| statement.loop_named(name.clone())).collect()
    }

    fn any_loop(&mut self) -> Option<LoopName> {
        let loops = self.loops();
        if loops.is_empty() { None } else { Some(self.rng.pick(&loops).clone()) }
    }

    fn late_loop(&mut self) -> Option<LoopName> {
        if self.rng.chance(50) { self.loops().pop() } else { self.any_loop() }
    }

    fn early_loop(&mut self) -> Option<LoopName> {
        if self.rng.chance(60) { self.loops().into_iter().next() } else { self.any_loop() }
    }

    /// A name for a part of a loop that still shows the name of the variable.
    fn part_of(&mut self, name: &str) -> String {
        self.fresh += 1;
        format!("{}{}", name.trim_end_matches(|digit: char| digit.is_ascii_digit()), self.fresh)
    }

    fn split(&mut self) -> Option<Step> {
        let ordered = self.loops_of(VarKind::Ordered);
        let target = match !ordered.is_empty() && self.rng.chance(20) {
            true => self.rng.pick(&ordered).clone(),
            false => self.any_loop()?,
        };
        let parts = if self.rng.chance(25) { 2 } else { 1 };
        let mut inner = Vec::new();
        for _ in 0..parts {
            let factor =
                self.rng.weighted(&[(1, 3), (2, 20), (3, 14), (4, 22), (5, 8), (8, 14), (16, 6), (40, 3)]);
            inner.push((self.part_of(&target.name), factor));
        }
        let outer = if self.rng.chance(20) { target.name.clone() } else { self.part_of(&target.name) };
        Some(Step::Split { target, outer, inner })
    }

    fn fuse(&mut self) -> Option<Step> {
        let loops = self.loops();
        if loops.len() < 2 {
            return None;
        }
        let count = if loops.len() > 2 && self.rng.chance(20) { 3 } else { 2 };
        let first = self.rng.below(loops.len() - count + 1);
        let loops = loops[first..first + count].to_vec();
        let name = self.part_of(&loops[count - 1].name);
        Some(Step::Fuse { loops, name })
    }

    fn reorder(&mut self) -> Option<Step> {
        let mut loops = self.loops();
        if loops.len() < 2 {
            return None;
        }
        self.rng.shuffle(&mut loops);
        let most = if self.everything { loops.len() } else { loops.len().min(4) };
        let count = self.rng.between(2, most as i64);
        loops.truncate(count as usize);
        Some(Step::Reorder { loops })
    }

    /// Binds outer loops to blocks and inner loops to threads, most often along x.
    fn bind(&mut self) -> Option<Step> {
        let axis = self.rng.weighted(&[(Axis::X, 60), (Axis::Y, 30), (Axis::Z, 10)]);
        Some(match self.rng.chance(35) {
            true => Step::Bind { target: self.early_loop()?, to: ParallelUnit::Block(axis) },
            false => Step::Bind { target: self.late_loop()?, to: ParallelUnit::Thread(axis) },
        })
    }

    fn inline(&mut self) -> Option<Step> {
        if self.everything && self.rng.chance(30) {
            return Some(Step::Inline { tensor: self.rng.pick(&self.names.tensors).clone() });
        }
        let mut tensors: Vec<String> = self.uses.iter().map(|(_, tensor)| tensor.clone()).collect();
        if self.rng.chance(80) {
            tensors.retain(|name| is_simple(self.program, name));
        }
        if tensors.is_empty() { None } else { Some(Step::Inline { tensor: self.rng.pick(&tensors).clone() }) }
    }

    /// Computes a tensor again for one of its readers.
    fn clone_for(&mut self) -> Option<Step> {
        let is_shared = |(reader, tensor): &&(StatementName, String)| {
            self.uses.iter().any(|(other, same)| same == tensor && other != reader)
        };
        let shared: Vec<(StatementName, String)> = self.uses.iter().filter(is_shared).cloned().collect();
        if shared.is_empty() {
            return None;
        }
        let (reader, tensor) = self.rng.pick(&shared).clone();
        self.fresh += 1;
        let name = format!("Q{}", self.fresh);
        // Later steps place the second temporary.
        self.uses.push((reader.clone(), name.clone()));
        Some(Step::Clone { tensor, name, readers: vec![reader] })
    }

    fn compute_at(&mut self) -> Option<Step> {
        if self.everything && self.rng.chance(30) {
            let tensor = self.rng.pick(&self.names.tensors).clone();
            self.focus = self.rng.below(self.names.statements.len());
            return Some(Step::ComputeAt { tensor, at: self.any_loop()?, storage: None });
        }
        if self.uses.is_empty() {
            return None;
        }
        let (reader, tensor) = self.rng.pick(&self.uses).clone();
        if self.rng.chance(90) {
            self.focus = self.names.statements.iter().position(|(name, _)| *name == reader)?;
        }
        Some(Step::ComputeAt { tensor, at: self.any_loop()?, storage: None })
    }

    /// A `compute_at` whose parts are kept, mostly at a loop around.
    fn store_at(&mut self) -> Option<Step> {
        let Step::ComputeAt { tensor, at, .. } = self.compute_at()? else { return None };
        let around = self.loops().into_iter().take_while(|own| *own != at).collect::<Vec<_>>();
        let is_at_root = around.is_empty() || self.rng.chance(25);
        let kept_at =
            if is_at_root { LoopLevel::Root } else { LoopLevel::Loop(self.rng.pick(&around).clone()) };
        let fold = if self.rng.chance(40) { Some(1 + self.rng.below(8) as i64) } else { None };
        Some(Step::ComputeAt { tensor, at, storage: Some(Storage { at: kept_at, fold }) })
    }

    /// Joins two loops, mostly outer ones, of two statements.
    fn compute_with(&mut self) -> Option<Step> {
        let statements = &self.names.statements;
        let first = self.rng.below(statements.len());
        let second = match self.rng.chance(70) {
            true => (first + 1) % statements.len(),
            false => self.rng.below(statements.len()),
        };
        let depth = self.rng.weighted(&[(0, 70), (1, 20), (2, 10)]);
        let loop_of = |(name, loops): &(StatementName, Vec<String>)| Some(name.loop_named(loops.get(depth)?));
        let (target, with) = (loop_of(&statements[first])?, loop_of(&statements[second])?);
        let ahead = self.rng.weighted(&[(0, 60), (1, 20), (2, 15), (9, 5)]);
        Some(Step::ComputeWith { target, with, ahead })
    }

    fn promote_operand(&mut self) -> Option<Step> {
        let tensor = self.rng.pick(&self.names.tensors).clone();
        self.promote(tensor, false)
    }

    /// Promotes a tensor that a statement reads at data-dependent subscripts. Most often this also
    /// focuses the following steps on that statement.
    fn promote_gathered(&mut self) -> Option<Step> {
        let (reader, tensor) = self.rng.pick(&self.gathers).clone();
        if self.rng.chance(90) {
            self.focus = self.names.statements.iter().position(|(name, _)| *name == reader)?;
        }
        self.promote(tensor, true)
    }

    fn promote(&mut self, tensor: String, gathered: bool) -> Option<Step> {
        let at = if self.rng.chance(20) { LoopLevel::Root } else { LoopLevel::Loop(self.any_loop()?) };
        self.fresh += 1;
        let name = format!("P{}", self.fresh);
        let scope = match self.machine {
            Machine::Gpu if self.rng.chance(80) => PromoteScope::Shared,
            Machine::Gpu => PromoteScope::Registers,
            _ if self.rng.chance(97) => PromoteScope::Packed,
            _ => PromoteScope::Registers,
        };
        let layout = self.layout(&tensor);
        Some(Step::Promote { tensor, at, name, scope, gathered, layout, pad: 0 })
    }

    fn promote_result(&mut self) -> Option<Step> {
        let (statement, _) = &self.names.statements[self.focus];
        let tensor = statement.tensor.clone();
        let at = LoopLevel::Loop(self.any_loop()?);
        self.fresh += 1;
        let scope = if self.rng.chance(50) { PromoteScope::Packed } else { PromoteScope::Registers };
        Some(Step::Promote {
            tensor,
            at,
            name: format!("R{}", self.fresh),
            scope,
            gathered: false,
            layout: Vec::new(),
            pad: 0,
        })
    }

    /// A layout that keeps elements apart, or one that almost does.
    fn layout(&mut self, tensor: &str) -> Vec<LayoutDim> {
        if self.rng.chance(35) {
            return Vec::new();
        }
        let declared = self.program.find_tensor(tensor).map(|id| self.program.tensor(id).shape.len());
        let rank = declared.unwrap_or_else(|| self.rng.between(1, 3) as usize);
        let mut layout = Vec::new();
        for dimension in 0..rank {
            layout.extend(self.parts(dimension));
        }
        if self.rng.chance(60) {
            self.rng.shuffle(&mut layout);
        }
        if self.rng.chance(5) {
            layout.pop();
        }
        layout
    }

    fn parts(&mut self, dimension: usize) -> Vec<LayoutDim> {
        let (factor, other) = (self.rng.between(2, 8), self.rng.between(2, 4));
        let part = |modulo, divide| LayoutDim { dimension, modulo, divide };
        match self.rng.weighted(&[(0, 55), (1, 30), (2, 10), (3, 5)]) {
            0 => vec![part(None, None)],
            1 => vec![part(None, Some(factor)), part(Some(factor), None)],
            2 => {
                let both = factor * other;
                vec![part(None, Some(both)), part(Some(both), Some(factor)), part(Some(factor), None)]
            }
            _ => vec![part(None, Some(factor)), part(Some(other), None)],
        }
    }

    fn prefetch(&mut self) -> Option<Step> {
        let tensor = self.rng.pick(&self.names.tensors).clone();
        let (at, other) = (self.any_loop()?, self.early_loop()?);
        let of = if self.rng.chance(50) { at.clone() } else { other };
        Some(Step::Prefetch { tensor, at, ahead: self.rng.between(1, 9), of })
    }

    fn rfactor(&mut self) -> Option<Step> {
        let likely = self.loops_of(VarKind::Reduction);
        let target = if likely.is_empty() { self.any_loop()? } else { self.rng.pick(&likely).clone() };
        self.fresh += 1;
        Some(Step::Rfactor { target, name: format!("F{}", self.fresh) })
    }

    /// Scans a loop that looks like the outer part of an ordered loop.
    fn scan(&mut self) -> Option<Step> {
        let ordered = self.loops_of(VarKind::Ordered);
        let has_parts =
            |name: &&LoopName| ordered.iter().filter(|other| other.statement == name.statement).count() > 1;
        let split: Vec<LoopName> = ordered.iter().filter(has_parts).cloned().collect();
        if split.is_empty() {
            return None;
        }
        let picked = self.rng.pick(&split).clone();
        let outermost = split.into_iter().find(|name| name.statement == picked.statement);
        self.fresh += 1;
        let target = outermost.filter(|_| self.rng.chance(80)).unwrap_or(picked);
        Some(Step::Scan { target, name: format!("S{}", self.fresh) })
    }

    /// The loops whose names show that they are parts of a variable of this kind.
    fn loops_of(&self, kind: VarKind) -> Vec<LoopName> {
        let vars = self.program.vars.iter().filter(|var| var.kind == kind);
        let wanted: Vec<&str> = vars.map(|var| var.name.as_str()).collect();
        let base =
            |name: &LoopName| name.name.trim_end_matches(|digit: char| digit.is_ascii_digit()).to_string();
        let all = self.names.statements.iter();
        let all =
            all.flat_map(|(statement, loops)| loops.iter().map(|name| statement.loop_named(name.clone())));
        all.filter(|name| wanted.contains(&base(name).as_str())).collect()
    }
}
