//! Runs programs: every statement is a loop over all points of its box.

use std::collections::BTreeMap;

use tilewright_ir::{
    DType, ForLoop, IndexExpr, Node, Number, Program, ReduceOp, Role, Statement, Tensor, TensorId, Update,
    VarId, VarKind,
};

use crate::bounded::Bounded;
use crate::compare::Expected;
use crate::error::RunError;
use crate::memory::{Inputs, Memory, results, scalars, supplied, tensors};
use crate::state::{Place, Run, State};
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
    tensors(program, evaluated::<Number>(program, inputs, progress)?)
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
    let results = results(program, evaluated::<Bounded>(program, inputs, progress)?)?;
    Ok(results
        .into_iter()
        .map(|(name, (tensor, errors))| (name, Expected::bounded(tensor, errors.0)))
        .collect())
}

/// The tensors of a program after it has run.
fn evaluated<V: Value>(
    program: &Program,
    inputs: Inputs,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Run<Vec<Memory<V>>> {
    let mut machine = Machine::<V>::new(program, inputs, progress)?;
    for stage in &program.stages {
        machine.nodes(&stage.body)?;
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
pub fn bytes_needed(program: &Program) -> Option<u128> {
    /// The bytes of one total, including the overhead of the map that holds it.
    const TOTAL: u128 = 96;
    bytes(program, 0, TOTAL)
}

/// The bytes that [`expect`] takes. It stores an error bound for each element that the program
/// defines.
pub fn bytes_to_expect(program: &Program) -> Option<u128> {
    /// The bytes of one total and the statistics of its terms, including the overhead of the map.
    const TOTAL: u128 = 192;
    bytes(program, size_of::<f64>() as u128, TOTAL)
}

/// Counts the bytes that a run takes. An element that the program may write takes `beside` extra
/// bytes, and an element of a scatter's target takes `total` extra bytes.
fn bytes(program: &Program, beside: u128, total: u128) -> Option<u128> {
    let mut bytes = 0u128;
    let mut elements = Vec::new();
    for (at, tensor) in program.tensors.iter().enumerate() {
        let shape = program.shape(TensorId(at as u32))?;
        let size = tilewright_ir::tensor::byte_size(tensor.dtype, &shape)? as u128;
        elements.push(size / tensor.dtype.bytes() as u128);
        let mark = u128::from(!tensor.role.is_supplied());
        let distance = if matches!(tensor.role, Role::Input { .. }) { 0 } else { beside };
        bytes += size + elements[at] * (mark + distance);
    }
    let statements = program.statements();
    let scatters = statements.iter().filter(|(statement, _)| is_scatter(program, statement));
    let largest = scatters.map(|(statement, _)| elements[statement.target.index()]).max().unwrap_or(0);
    Some(bytes + total * largest)
}

/// The number of points that all statements of a program visit, as far as it is known.
pub fn points(program: &Program) -> u64 {
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

struct Machine<'a, V: Value> {
    program: &'a Program,
    state: State<'a, V>,
    points: u64,
    progress: &'a mut dyn FnMut(u64) -> bool,
}

/// The number of points between two calls of `progress`.
const PROGRESS_EVERY: u64 = 1 << 16;

impl<'a, V: Value> Machine<'a, V> {
    fn new(
        program: &'a Program,
        mut inputs: Inputs,
        progress: &'a mut dyn FnMut(u64) -> bool,
    ) -> Run<Machine<'a, V>> {
        let memory = supplied(program, &mut inputs)?;
        let scalars = scalars(&program.scalars, &inputs)?;
        let state = State::new(program, memory, scalars, program.vars.len());
        Ok(Machine { program, state, points: 0, progress })
    }

    fn nodes(&mut self, nodes: &[Node]) -> Run<()> {
        for node in nodes {
            match node {
                Node::Statement(statement) if statement.is_filler => {}
                Node::Statement(statement) => self.statement(statement)?,
                Node::For(inner) => self.for_loop(inner)?,
            }
        }
        Ok(())
    }

    fn for_loop(&mut self, inner: &ForLoop) -> Run<()> {
        let (from, to) = self.range(inner.var);
        self.state.live.push(inner.var);
        for value in from..to {
            self.state.vars[inner.var.index()] = value;
            self.nodes(&inner.body)?;
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

    fn statement(&mut self, statement: &Statement) -> Run<()> {
        match statement.update {
            Update::Assign => self.assign(statement),
            Update::Reduce { op, reset } => self.reduce(statement, op, reset),
        }
    }

    /// Stores each value immediately: a checked statement never reads an element that another of
    /// its points has written.
    fn assign(&mut self, statement: &Statement) -> Run<()> {
        let mut all_certain = true;
        self.each_point(statement, &mut |machine, place| {
            all_certain &= place.is_certain;
            let value = machine.state.value(&statement.value)?;
            machine.state.store(statement.target, place.at, value)
        })?;
        self.settle(statement.target, all_certain);
        Ok(())
    }

    /// Accumulates in a wide type and rounds once at the end. The reduction starts from the
    /// previous value or from the neutral element.
    fn reduce(&mut self, statement: &Statement, op: ReduceOp, reset: bool) -> Run<()> {
        let dtype = self.state.memory[statement.target.index()].tensor.dtype();
        let wide = if dtype.is_float() { DType::Float64 } else { dtype };
        let neutral = V::begin(op, None, wide);
        let scatters = is_scatter(self.program, statement);
        if reset && !scatters && self.reduces_nothing(statement) {
            return self.clear(statement, neutral, dtype.compute_type());
        }
        // A scatter returns to an element repeatedly, and kernels store the element in its own type
        // in between.
        let kept_in = if scatters { dtype } else { dtype.compute_type() };
        let mut all_certain = true;
        let mut totals: BTreeMap<usize, V::Total> = BTreeMap::new();
        if reset && statement.indices.iter().any(IndexExpr::has_data) {
            totals.extend(
                (0..self.state.memory[statement.target.index()].tensor.len()).map(|place| (place, neutral)),
            );
        }
        self.each_point(statement, &mut |machine, place| {
            all_certain &= place.is_certain;
            let value = machine.state.value(&statement.value)?;
            let total = match totals.get(&place.at) {
                Some(total) => *total,
                None if reset => neutral,
                None => {
                    let first = machine.state.load(statement.target, place.at, statement.origin)?;
                    V::begin(op, Some(first), wide)
                }
            };
            if !scatters && !totals.contains_key(&place.at) {
                // Reduction variables are innermost, so the previous element is complete.
                machine.store_all(statement.target, &mut totals, kept_in)?;
            }
            totals.insert(place.at, V::reduce(total, op, value, wide));
            Ok(())
        })?;
        self.store_all(statement.target, &mut totals, kept_in)?;
        self.settle(statement.target, all_certain);
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
    fn clear(&mut self, statement: &Statement, neutral: V::Total, kept_in: DType) -> Run<()> {
        let free = |var: &VarId| self.program.var(*var).kind != VarKind::Reduction;
        let vars = statement.vars.iter().copied().filter(free).collect();
        let cleared = Statement { vars, ..statement.clone() };
        self.each_point(&cleared, &mut |machine, place| {
            machine.state.store(cleared.target, place.at, V::end(neutral, kept_in))
        })
    }

    fn store_all(
        &mut self,
        tensor: TensorId,
        totals: &mut BTreeMap<usize, V::Total>,
        kept_in: DType,
    ) -> Run<()> {
        while let Some((place, total)) = totals.pop_first() {
            self.state.store(tensor, place, V::end(total, kept_in))?;
        }
        Ok(())
    }

    /// Marks the whole tensor as undecided if kernels may have stored to other elements.
    fn settle(&mut self, tensor: TensorId, all_certain: bool) {
        if !all_certain {
            self.state.memory[tensor.index()].blur();
        }
    }

    /// Visits every point of the statement's box in lexicographic order, with the target element.
    fn each_point(
        &mut self,
        statement: &Statement,
        visit: &mut dyn FnMut(&mut Self, Place<usize>) -> Run<()>,
    ) -> Run<()> {
        let live = self.state.live.len();
        self.state.live.extend(&statement.vars);
        self.points_of(statement, 0, visit)?;
        self.state.live.truncate(live);
        Ok(())
    }

    fn points_of(
        &mut self,
        statement: &Statement,
        depth: usize,
        visit: &mut dyn FnMut(&mut Self, Place<usize>) -> Run<()>,
    ) -> Run<()> {
        if let Some(var) = statement.vars.get(depth) {
            let (from, to) = self.range(*var);
            for value in from..to {
                self.state.vars[var.index()] = value;
                self.points_of(statement, depth + 1, visit)?;
            }
            return Ok(());
        }
        self.points += 1;
        if self.points.is_multiple_of(PROGRESS_EVERY) && !(self.progress)(self.points) {
            return Err(RunError::Stopped);
        }
        let place = self.state.place(statement.target, &statement.indices, statement.origin)?;
        visit(self, place)
    }
}
