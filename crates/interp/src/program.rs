//! Runs programs on given inputs, and returns the results, with error bounds if the caller wants
//! them. Every statement runs as a loop over all points of its box, which is the product of the
//! ranges of its variables. Other functions compute the memory and the number of points of a run.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::ids::InProgram;
use tilewright_ir::{
    DType, ForLoop, IndexExpr, Node, Number, Program, ReduceOp, Role, Statement, Tensor, TensorId, Update,
    VarId, VarKind,
};

use crate::bounded::Bounded;
use crate::compare::Expected;
use crate::error::RunError;
use crate::memory::{Inputs, Memory, initial_tensors, result_tensors, results, scalar_values};
use crate::recurrence::{Recurrence, Size, Sizes};
use crate::state::{IndexValue, RunResult, State};
use crate::value::Value;

/// Runs a program whose sizes are all known, and returns its results by name.
pub fn run(program: &Program, inputs: Inputs) -> Result<BTreeMap<String, Tensor>, RunError> {
    run_with_progress(program, inputs, &mut |_| true)
}

/// Runs a program, and regularly calls `progress` with the number of points done so far. The run
/// stops if `progress` returns false.
pub fn run_with_progress(
    program: &Program,
    inputs: Inputs,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<BTreeMap<String, Tensor>, RunError> {
    result_tensors(program, evaluate::<Number>(program, inputs, progress)?)
}

/// Runs a program, and computes for every element of its results how far a kernel's value may be
/// off.
pub fn expect(program: &Program, inputs: Inputs) -> Result<BTreeMap<String, Expected>, RunError> {
    expect_with_progress(program, inputs, &mut |_| true)
}

/// The same as `expect`, with calls of `progress` as in [`run_with_progress`].
pub fn expect_with_progress(
    program: &Program,
    inputs: Inputs,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<BTreeMap<String, Expected>, RunError> {
    let results = results(program, evaluate::<Bounded>(program, inputs, progress)?)?;
    Ok(results
        .into_iter()
        .map(|(name, (tensor, errors))| (name, Expected::bounded(tensor, errors.0)))
        .collect())
}

/// The tensors of a program after it has run.
fn evaluate<V: Value>(
    program: &Program,
    inputs: Inputs,
    progress: &mut dyn FnMut(u64) -> bool,
) -> RunResult<Vec<Memory<V>>> {
    let mut machine = ProgramInterpreter::<V>::new(program, inputs, progress)?;
    for stage in &program.stages {
        machine.run_nodes(&stage.body)?;
    }
    Ok(machine.state.memory)
}

/// Checks whether a reduction may return to an element after other elements. This is so if a
/// reduction variable occurs in the target's subscripts.
fn is_scatter(program: &Program, statement: &Statement) -> bool {
    let reduced = |var: &&VarId| program.var(**var).kind == VarKind::Reduction;
    statement
        .vars
        .iter()
        .filter(reduced)
        .any(|var| statement.indices.iter().any(|index| index.mentions(*var)))
}

/// The bytes that running a program takes: its tensors, a flag for each element that the program
/// defines, and the totals of scatters. Returns `None` if a shape is unknown or too large for the
/// address space.
pub fn bytes_to_run(program: &Program) -> Option<u128> {
    /// The bytes of one total, including the overhead of the map that holds it.
    const TOTAL: u128 = 96;
    count_bytes(program, 0, TOTAL)
}

/// The bytes that [`expect`] takes. It stores an error bound for each element that the program
/// defines.
pub fn bytes_to_expect(program: &Program) -> Option<u128> {
    /// The bytes of one total and the statistics of its terms, including the overhead of the map.
    const TOTAL: u128 = 192;
    let sizes = size_of::<Option<Size>>() as u128 * elements_of_recurrences(program)?;
    Some(count_bytes(program, size_of::<f64>() as u128, TOTAL)? + sizes)
}

/// The number of elements of the tensors that recurrences write.
fn elements_of_recurrences(program: &Program) -> Option<u128> {
    let targets: BTreeSet<TensorId> = program
        .statements()
        .iter()
        .filter_map(|(statement, loops)| {
            let dtype = program.tensor(statement.target).dtype;
            Recurrence::find(statement, *loops.last()?, dtype).map(|_| statement.target)
        })
        .collect();
    let elements = |tensor: TensorId| {
        Some(program.shape(tensor)?.iter().map(|extent| *extent as u128).product::<u128>())
    };
    targets.into_iter().map(elements).sum()
}

/// Counts the bytes that a run takes. An element that the program may write takes
/// `annotation_bytes` extra bytes, and an element of a scatter's target takes `total` extra bytes.
fn count_bytes(program: &Program, annotation_bytes: u128, total: u128) -> Option<u128> {
    let mut bytes = 0u128;
    let mut elements = Vec::new();
    for (at, tensor) in program.tensors.iter().enumerate() {
        let shape = program.shape(TensorId(at as u32))?;
        let size = tilewright_ir::tensor::byte_size(tensor.dtype, &shape)? as u128;
        elements.push(size / tensor.dtype.bytes() as u128);
        let mark = u128::from(!tensor.role.is_supplied());
        let distance = if matches!(tensor.role, Role::Input { .. }) { 0 } else { annotation_bytes };
        bytes += size + elements[at] * (mark + distance);
    }
    let statements = program.statements();
    let scatters = statements.iter().filter(|(statement, _)| is_scatter(program, statement));
    let largest = scatters.map(|(statement, _)| elements[statement.target.index()]).max().unwrap_or(0);
    Some(bytes + total * largest)
}

/// The number of points that all statements of a program visit, as far as it is known.
pub fn count_points(program: &Program) -> u64 {
    let extent = |var: &VarId| {
        let range = &program.var(*var).range;
        let (from, to) = (range.from.as_constant().unwrap_or(0), range.to.as_constant().unwrap_or(0));
        u64::try_from(to.saturating_sub(from)).unwrap_or(0)
    };
    program
        .statements()
        .iter()
        .map(|(statement, loops)| {
            loops.iter().chain(&statement.vars).map(extent).fold(1u64, u64::saturating_mul)
        })
        .fold(0, u64::saturating_add)
}

struct ProgramInterpreter<'a, V: Value> {
    program: &'a Program,
    state: State<'a, InProgram, V>,
    points: u64,
    progress: &'a mut dyn FnMut(u64) -> bool,
    /// The sizes of the values of recurrences.
    sizes: Sizes,
}

/// The number of points between two calls of `progress`.
const PROGRESS_EVERY: u64 = 1 << 16;

impl<'a, V: Value> ProgramInterpreter<'a, V> {
    fn new(
        program: &'a Program,
        mut inputs: Inputs,
        progress: &'a mut dyn FnMut(u64) -> bool,
    ) -> RunResult<ProgramInterpreter<'a, V>> {
        let memory = initial_tensors(program, &mut inputs)?;
        let scalars = scalar_values(program, &program.scalars, &inputs)?;
        let state = State::new(program, memory, scalars, program.vars.len());
        Ok(ProgramInterpreter { program, state, points: 0, progress, sizes: Sizes::new() })
    }

    fn run_nodes(&mut self, nodes: &[Node]) -> RunResult<()> {
        for node in nodes {
            match node {
                Node::Statement(statement) if statement.is_filler => {}
                Node::Statement(statement) => self.run_statement(statement)?,
                Node::For(inner) => self.run_loop(inner)?,
            }
        }
        Ok(())
    }

    fn run_loop(&mut self, inner: &ForLoop) -> RunResult<()> {
        let (from, to) = self.range(inner.var);
        self.state.live.push(inner.var);
        for value in from..to {
            self.state.vars[inner.var.index()] = value;
            self.run_nodes(&inner.body)?;
        }
        self.state.live.pop();
        Ok(())
    }

    fn range(&self, var: VarId) -> (i64, i64) {
        let range = &self.program.var(var).range;
        let end = |expr: &IndexExpr| {
            expr.as_constant().expect("the ranges of a program with known sizes are numbers")
        };
        (end(&range.from), end(&range.to))
    }

    fn run_statement(&mut self, statement: &Statement) -> RunResult<()> {
        match statement.update {
            Update::Assign => self.assign(statement),
            Update::Reduce { op, reset } => self.reduce(statement, op, reset),
        }
    }

    /// Stores each value immediately: a checked statement never reads an element that another of
    /// its points has written.
    fn assign(&mut self, statement: &Statement) -> RunResult<()> {
        let mut all_certain = true;
        let recurrence = self.recurrence(statement);
        self.for_each_point(statement, &mut |machine, place| {
            all_certain &= place.is_certain;
            let mut value = machine.state.eval(&statement.value)?;
            if let Some(recurrence) = &recurrence {
                value = recurrence.widen(value, place.value, (&machine.state, &mut machine.sizes))?;
            }
            machine.state.store(statement.target, place.value, value)
        })?;
        self.mark_uncertain_target(statement.target, all_certain);
        Ok(())
    }

    /// The recurrence that a statement is, if kernels may compute it in parts with other errors.
    fn recurrence<'s>(&self, statement: &'s Statement) -> Option<Recurrence<'s>> {
        let var = self.state.live.last().copied().filter(|_| V::HAS_BOUNDS)?;
        Recurrence::find(statement, var, self.program.tensor(statement.target).dtype)
    }

    /// Accumulates in a wide type and rounds once at the end. The reduction starts from the
    /// previous value or from the neutral element.
    fn reduce(&mut self, statement: &Statement, op: ReduceOp, reset: bool) -> RunResult<()> {
        let dtype = self.state.memory[statement.target.index()].tensor.dtype();
        let wide = if dtype.is_float() { DType::Float64 } else { dtype };
        let neutral = V::begin_reduction(op, None, wide);
        let scatters = is_scatter(self.program, statement);
        if reset && !scatters && self.reduces_nothing(statement) {
            return self.store_neutral(statement, neutral, dtype.compute_type());
        }
        // A scatter returns to an element repeatedly, and kernels store the element in its own type
        // in between.
        let partial_type = if scatters { dtype } else { dtype.compute_type() };
        let mut all_certain = true;
        let mut totals: BTreeMap<usize, V::Total> = BTreeMap::new();
        if reset && statement.indices.iter().any(IndexExpr::has_data) {
            totals.extend(
                (0..self.state.memory[statement.target.index()].tensor.len()).map(|place| (place, neutral)),
            );
        }
        self.for_each_point(statement, &mut |machine, place| {
            all_certain &= place.is_certain;
            let value = machine.state.eval(&statement.value)?;
            let total = match totals.get(&place.value) {
                Some(total) => *total,
                None if reset => neutral,
                None => {
                    let first = machine.state.load(statement.target, place.value, statement.origin)?;
                    V::begin_reduction(op, Some(first), wide)
                }
            };
            if !scatters && !totals.contains_key(&place.value) {
                // Reduction variables are innermost, so the previous element is complete.
                machine.store_all(statement.target, &mut totals, partial_type)?;
            }
            totals.insert(place.value, V::reduce(total, op, value, wide));
            Ok(())
        })?;
        self.store_all(statement.target, &mut totals, partial_type)?;
        self.mark_uncertain_target(statement.target, all_certain);
        Ok(())
    }

    /// Whether the range of a reduction variable is empty.
    fn reduces_nothing(&self, statement: &Statement) -> bool {
        let is_empty = |var: VarId| {
            let (from, to) = self.range(var);
            from >= to
        };
        let reduced = |var: &&VarId| self.program.var(**var).kind == VarKind::Reduction;
        statement.vars.iter().filter(reduced).any(|var| is_empty(*var))
    }

    /// Stores the neutral element at every point of the variables that are not reduced.
    fn store_neutral(
        &mut self,
        statement: &Statement,
        neutral: V::Total,
        partial_type: DType,
    ) -> RunResult<()> {
        let free = |var: &VarId| self.program.var(*var).kind != VarKind::Reduction;
        let vars = statement.vars.iter().copied().filter(free).collect();
        let cleared = Statement { vars, ..statement.clone() };
        self.for_each_point(&cleared, &mut |machine, place| {
            machine.state.store(cleared.target, place.value, V::end_reduction(neutral, partial_type))
        })
    }

    fn store_all(
        &mut self,
        tensor: TensorId,
        totals: &mut BTreeMap<usize, V::Total>,
        partial_type: DType,
    ) -> RunResult<()> {
        while let Some((place, total)) = totals.pop_first() {
            self.state.store(tensor, place, V::end_reduction(total, partial_type))?;
        }
        Ok(())
    }

    /// Marks the whole tensor as undecided if kernels may have stored to other elements.
    fn mark_uncertain_target(&mut self, tensor: TensorId, all_certain: bool) {
        if !all_certain {
            self.state.memory[tensor.index()].mark_undecided();
        }
    }

    /// Visits every point of the statement's box in lexicographic order, with the target element.
    fn for_each_point(
        &mut self,
        statement: &Statement,
        visit: &mut dyn FnMut(&mut Self, IndexValue<usize>) -> RunResult<()>,
    ) -> RunResult<()> {
        let live = self.state.live.len();
        self.state.live.extend(&statement.vars);
        self.visit_points(statement, 0, visit)?;
        self.state.live.truncate(live);
        Ok(())
    }

    fn visit_points(
        &mut self,
        statement: &Statement,
        depth: usize,
        visit: &mut dyn FnMut(&mut Self, IndexValue<usize>) -> RunResult<()>,
    ) -> RunResult<()> {
        if let Some(var) = statement.vars.get(depth) {
            let (from, to) = self.range(*var);
            for value in from..to {
                self.state.vars[var.index()] = value;
                self.visit_points(statement, depth + 1, visit)?;
            }
            return Ok(());
        }
        self.points += 1;
        if self.points.is_multiple_of(PROGRESS_EVERY) && !(self.progress)(self.points) {
            return Err(RunError::Stopped);
        }
        let place = self.state.element_index(statement.target, &statement.indices, statement.origin)?;
        visit(self, place)
    }
}
