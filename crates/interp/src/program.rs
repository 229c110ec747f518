//! Runs programs: every statement is a loop over all points of its box.

use std::collections::BTreeMap;

use tilewright_ir::{
    DType, ForLoop, IndexExpr, Node, Number, Program, ReduceOp, Statement, Tensor, TensorId, Update, VarId,
    VarKind, arithmetic,
};

use crate::error::RunError;
use crate::memory::{Inputs, results, scalars, supplied};
use crate::state::{Run, State};

/// Runs a program whose sizes are all known, and gives back its results by name.
pub fn run(program: &Program, inputs: Inputs) -> Result<BTreeMap<String, Tensor>, RunError> {
    run_with_progress(program, inputs, &mut |_| true)
}

/// Runs a program, calling `progress` with the number of points done every so often; it stops if that says false.
pub fn run_with_progress(
    program: &Program,
    inputs: Inputs,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<BTreeMap<String, Tensor>, RunError> {
    let mut machine = Machine::new(program, inputs, progress)?;
    for stage in &program.stages {
        machine.nodes(&stage.body)?;
    }
    results(program, machine.state.memory)
}

/// Whether a reduction comes back to an element after it has left it: then a reduced variable is in its indices.
fn is_scatter(program: &Program, statement: &Statement) -> bool {
    let reduced = |var: &&VarId| program.var(**var).kind == VarKind::Reduction;
    statement
        .vars
        .iter()
        .filter(reduced)
        .any(|var| statement.indices.iter().any(|index| index.mentions(*var)))
}

/// Bytes that running a program takes: its tensors, a mark for each element it defines, and the totals of scatters.
/// `None` if a shape is not known or does not fit the address space.
pub fn bytes_needed(program: &Program) -> Option<u128> {
    /// A number in a map, with what the map takes for itself.
    const TOTAL: u128 = 96;
    let mut bytes = 0u128;
    let mut elements = Vec::new();
    for (at, tensor) in program.tensors.iter().enumerate() {
        let shape = program.shape(TensorId(at as u32))?;
        let size = tilewright_ir::tensor::byte_size(tensor.dtype, &shape)? as u128;
        elements.push(size / tensor.dtype.bytes() as u128);
        bytes += size + if tensor.role.is_supplied() { 0 } else { elements[at] };
    }
    let statements = program.statements();
    let scatters = statements.iter().filter(|(statement, _)| is_scatter(program, statement));
    let largest = scatters.map(|(statement, _)| elements[statement.target.index()]).max().unwrap_or(0);
    Some(bytes + TOTAL * largest)
}

/// How many points all statements of a program visit, as far as that can be counted.
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

struct Machine<'a> {
    program: &'a Program,
    state: State<'a>,
    points: u64,
    progress: &'a mut dyn FnMut(u64) -> bool,
}

/// Points between two calls of `progress`.
const PROGRESS_EVERY: u64 = 1 << 16;

impl<'a> Machine<'a> {
    fn new(
        program: &'a Program,
        mut inputs: Inputs,
        progress: &'a mut dyn FnMut(u64) -> bool,
    ) -> Run<Machine<'a>> {
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

    /// Stores values as they come: a checked statement never reads what another of its points has written.
    fn assign(&mut self, statement: &Statement) -> Run<()> {
        self.each_point(statement, &mut |machine, place| {
            let value = machine.state.value(&statement.value)?;
            machine.state.store(statement.target, place, value)
        })
    }

    /// Accumulates wide, starting from what is there or from the neutral element, and rounds once at the end.
    fn reduce(&mut self, statement: &Statement, op: ReduceOp, reset: bool) -> Run<()> {
        let dtype = self.state.memory[statement.target.index()].tensor.dtype();
        let wide = if dtype.is_float() { DType::Float64 } else { dtype };
        let neutral = arithmetic::neutral(op, wide);
        let scatters = is_scatter(self.program, statement);
        let mut totals: BTreeMap<usize, Number> = BTreeMap::new();
        if reset && statement.indices.iter().any(IndexExpr::has_data) {
            totals.extend(
                (0..self.state.memory[statement.target.index()].tensor.len()).map(|place| (place, neutral)),
            );
        }
        self.each_point(statement, &mut |machine, place| {
            let value = machine.state.value(&statement.value)?;
            let total = match totals.get(&place) {
                Some(total) => *total,
                None if reset => neutral,
                None => machine.state.load(statement.target, place, statement.origin)?,
            };
            if !scatters && !totals.contains_key(&place) {
                // Reduction variables run innermost, so the element before is done.
                machine.store_all(statement.target, &mut totals)?;
            }
            totals.insert(place, arithmetic::reduce(op, total, value, wide));
            Ok(())
        })?;
        self.store_all(statement.target, &mut totals)
    }

    fn store_all(&mut self, tensor: TensorId, totals: &mut BTreeMap<usize, Number>) -> Run<()> {
        while let Some((place, total)) = totals.pop_first() {
            self.state.store(tensor, place, total)?;
        }
        Ok(())
    }

    /// Visits every point of the statement's box in lexicographic order, with the element it names.
    fn each_point(
        &mut self,
        statement: &Statement,
        visit: &mut dyn FnMut(&mut Self, usize) -> Run<()>,
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
        visit: &mut dyn FnMut(&mut Self, usize) -> Run<()>,
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
