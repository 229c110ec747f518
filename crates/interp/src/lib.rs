//! Naive evaluation of programs: the oracle for everything else.
//!
//! Every statement is a loop over all points of its box that walks the expression tree. Nothing is reordered,
//! cached or vectorised, so what it computes can be seen from the code. Integers are computed exactly and wrapped
//! to their type after every operation; floats are computed in double precision and rounded to their type after
//! every operation, which for float32 gives the same bits as float32 arithmetic. Reductions accumulate in double
//! precision or in wide integers and are rounded once, so the oracle is more exact than any order of summation.
//!
//! Every access is checked against its tensor, and every element that is read must have been written, also where
//! the checker has proved it: what depends on data can fail here, and any other failure is a bug of the checker.
//!
//! What operators and functions do to single numbers is in [`tilewright_ir::arithmetic`].

use std::collections::BTreeMap;

use thiserror::Error;
use tilewright_ir::{
    Access, Atom, BinaryOp, DType, Expr, ExprKind, ForLoop, IndexExpr, Node, Number, Origin, Program,
    ReduceOp, Statement, Tensor, TensorId, Update, VarId, VarKind, arithmetic, tensor::TensorError,
};

/// Why a program could not be run to its end.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RunError {
    /// The program still has sizes without a value.
    #[error("size `{0}` has no value")]
    OpenSize(String),
    /// A tensor or scalar that the caller must supply is missing.
    #[error("`{0}` was not supplied")]
    Missing(String),
    /// A supplied tensor does not have the type or shape that the program says.
    #[error("`{name}` must be {wanted}, and is {found}")]
    Mismatch {
        /// The tensor.
        name: String,
        /// What the program says.
        wanted: String,
        /// What was supplied.
        found: String,
    },
    /// A tensor could not be made.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// An index left its tensor.
    #[error("{}", .0.describe())]
    OutOfBounds(Box<OutOfBounds>),
    /// An element was needed that nothing had defined.
    #[error("{}", .0.describe())]
    Undefined(Box<Undefined>),
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
}

/// An access that left its tensor, and where the program was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfBounds {
    /// The tensor.
    pub tensor: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// The element that was asked for.
    pub element: Vec<i64>,
    /// The dimension whose index is outside.
    pub dimension: usize,
    /// Lower and upper bound that a `where` clause declared, if that is what was broken.
    pub declared: Option<(i64, i64)>,
    /// The variables and their values.
    pub point: Vec<(String, i64)>,
    /// Where the access was written.
    pub origin: Origin,
}

/// An element that was needed before anything defined it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undefined {
    /// The tensor.
    pub tensor: String,
    /// The element.
    pub element: Vec<usize>,
    /// The variables and their values; empty for a result that was never defined.
    pub point: Vec<(String, i64)>,
    /// Where the access was written.
    pub origin: Origin,
}

impl Undefined {
    /// What happened, in one sentence.
    pub fn describe(&self) -> String {
        let element: Vec<String> = self.element.iter().map(usize::to_string).collect();
        format!("`{}({})` is needed, but nothing has defined it", self.tensor, element.join(", "))
    }
}

impl OutOfBounds {
    /// What happened, in one sentence.
    pub fn describe(&self) -> String {
        let element: Vec<String> = self.element.iter().map(i64::to_string).collect();
        let index = self.element[self.dimension];
        match self.declared {
            Some((from, to)) => {
                format!("a computed index is {index}, but `where` says that it is in {from}:{to}")
            }
            None => {
                let last = self.shape[self.dimension] as i64 - 1;
                let place = if self.shape.len() == 1 {
                    String::new()
                } else {
                    format!(" of dimension {}", self.dimension)
                };
                format!(
                    "`{}({})` does not exist: index {index}{place} must be in 0 to {last}",
                    self.tensor,
                    element.join(", ")
                )
            }
        }
    }
}

/// What the caller supplies: tensors and scalars by name.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Inputs and in-out tensors.
    pub tensors: BTreeMap<String, Tensor>,
    /// Scalar parameters.
    pub scalars: BTreeMap<String, Number>,
}

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
    machine.finish()?;
    let names = program.tensors.iter().map(|tensor| (tensor.role, tensor.name.clone()));
    let results = names.zip(machine.tensors).filter(|((role, _), _)| role.is_result());
    Ok(results.map(|((_, name), tensor)| (name, tensor)).collect())
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
    tensors: Vec<Tensor>,
    /// Which elements hold something; empty for tensors that the caller supplies.
    defined: Vec<Vec<bool>>,
    scalars: Vec<Number>,
    vars: Vec<i64>,
    /// Variables that have a value, for messages.
    live: Vec<VarId>,
    points: u64,
    progress: &'a mut dyn FnMut(u64) -> bool,
}

type Run<T> = Result<T, RunError>;

/// Points between two calls of `progress`.
const PROGRESS_EVERY: u64 = 1 << 16;

impl<'a> Machine<'a> {
    fn new(
        program: &'a Program,
        mut inputs: Inputs,
        progress: &'a mut dyn FnMut(u64) -> bool,
    ) -> Run<Machine<'a>> {
        if let Some(open) = program.symbols.iter().find(|symbol| symbol.value.is_none()) {
            return Err(RunError::OpenSize(open.name.clone()));
        }
        let mut tensors = Vec::with_capacity(program.tensors.len());
        let mut defined = Vec::with_capacity(program.tensors.len());
        for (at, declared) in program.tensors.iter().enumerate() {
            let shape = program
                .shape(TensorId(at as u32))
                .ok_or_else(|| RunError::OpenSize(declared.name.clone()))?;
            tensors.push(if declared.role.is_supplied() {
                let found = inputs
                    .tensors
                    .remove(&declared.name)
                    .ok_or_else(|| RunError::Missing(declared.name.clone()))?;
                if found.dtype() != declared.dtype || found.shape() != shape {
                    return Err(RunError::Mismatch {
                        name: declared.name.clone(),
                        wanted: format!("{}{shape:?}", declared.dtype),
                        found: format!("{}{:?}", found.dtype(), found.shape()),
                    });
                }
                found
            } else {
                Tensor::zeros(declared.dtype, &shape)?
            });
            let elements = if declared.role.is_supplied() { 0 } else { shape.iter().product() };
            defined.push(vec![false; elements]);
        }
        let mut scalars = Vec::with_capacity(program.scalars.len());
        for scalar in &program.scalars {
            let value =
                inputs.scalars.get(&scalar.name).ok_or_else(|| RunError::Missing(scalar.name.clone()))?;
            scalars.push(value.convert(scalar.dtype));
        }
        Ok(Machine {
            program,
            tensors,
            defined,
            scalars,
            vars: vec![0; program.vars.len()],
            live: Vec::new(),
            points: 0,
            progress,
        })
    }

    fn nodes(&mut self, nodes: &[Node]) -> Run<()> {
        for node in nodes {
            match node {
                Node::Statement(statement) => self.statement(statement)?,
                Node::For(inner) => self.for_loop(inner)?,
            }
        }
        Ok(())
    }

    fn for_loop(&mut self, inner: &ForLoop) -> Run<()> {
        let (from, to) = self.range(inner.var);
        self.live.push(inner.var);
        for value in from..to {
            self.vars[inner.var.index()] = value;
            self.nodes(&inner.body)?;
        }
        self.live.pop();
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
            let value = machine.value(&statement.value)?;
            machine.store(statement.target, place, value);
            Ok(())
        })
    }

    /// Accumulates wide, starting from what is there or from the neutral element, and rounds once at the end.
    fn reduce(&mut self, statement: &Statement, op: ReduceOp, reset: bool) -> Run<()> {
        let dtype = self.tensors[statement.target.index()].dtype();
        let wide = if dtype.is_float() { DType::Float64 } else { dtype };
        let neutral = arithmetic::neutral(op, wide);
        let scatters = is_scatter(self.program, statement);
        let mut totals: BTreeMap<usize, Number> = BTreeMap::new();
        if reset && statement.indices.iter().any(IndexExpr::has_data) {
            totals.extend((0..self.tensors[statement.target.index()].len()).map(|place| (place, neutral)));
        }
        self.each_point(statement, &mut |machine, place| {
            let value = machine.value(&statement.value)?;
            let total = match totals.get(&place) {
                Some(total) => *total,
                None if reset => neutral,
                None => machine.load(statement.target, place, statement.origin)?,
            };
            if !scatters && !totals.contains_key(&place) {
                // Reduction variables run innermost, so the element before is done.
                machine.store_all(statement.target, &mut totals);
            }
            totals.insert(place, arithmetic::reduce(op, total, value, wide));
            Ok(())
        })?;
        self.store_all(statement.target, &mut totals);
        Ok(())
    }

    fn store_all(&mut self, tensor: TensorId, totals: &mut BTreeMap<usize, Number>) {
        while let Some((place, total)) = totals.pop_first() {
            self.store(tensor, place, total);
        }
    }

    /// Visits every point of the statement's box in lexicographic order, with the element it names.
    fn each_point(
        &mut self,
        statement: &Statement,
        visit: &mut dyn FnMut(&mut Self, usize) -> Run<()>,
    ) -> Run<()> {
        let live = self.live.len();
        self.live.extend(&statement.vars);
        self.points_of(statement, 0, visit)?;
        self.live.truncate(live);
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
                self.vars[var.index()] = value;
                self.points_of(statement, depth + 1, visit)?;
            }
            return Ok(());
        }
        self.points += 1;
        if self.points.is_multiple_of(PROGRESS_EVERY) && !(self.progress)(self.points) {
            return Err(RunError::Stopped);
        }
        let place = self.place(statement.target, &statement.indices, statement.origin)?;
        visit(self, place)
    }

    /// The place of an element in row-major order.
    fn place(&self, tensor: TensorId, indices: &[IndexExpr], origin: Origin) -> Run<usize> {
        let mut place = 0;
        for (dimension, index) in indices.iter().enumerate() {
            let value = self.index(index, origin)?;
            let extent = self.tensors[tensor.index()].shape()[dimension];
            if value < 0 || value >= extent as i64 {
                return Err(self.out_of_bounds(tensor, indices, dimension, origin));
            }
            place = place * extent + value as usize;
        }
        Ok(place)
    }

    fn store(&mut self, tensor: TensorId, place: usize, value: Number) {
        self.tensors[tensor.index()].set(place, value);
        if let Some(defined) = self.defined[tensor.index()].get_mut(place) {
            *defined = true;
        }
    }

    fn load(&self, tensor: TensorId, place: usize, origin: Origin) -> Run<Number> {
        match self.defined[tensor.index()].get(place) {
            Some(false) => Err(self.undefined(tensor, place, origin)),
            _ => Ok(self.tensors[tensor.index()].get(place)),
        }
    }

    fn undefined(&self, tensor: TensorId, place: usize, origin: Origin) -> RunError {
        let mut element = Vec::new();
        let mut rest = place;
        for extent in self.tensors[tensor.index()].shape().iter().rev() {
            element.insert(0, rest % extent);
            rest /= extent;
        }
        let tensor = self.program.tensor(tensor).name.clone();
        RunError::Undefined(Box::new(Undefined { tensor, element, point: self.point(), origin }))
    }

    /// A result must be defined in full.
    fn finish(&self) -> Run<()> {
        for (id, _) in self.program.tensors_with(|role| role.is_result()) {
            if let Some(place) = self.defined[id.index()].iter().position(|defined| !defined) {
                return Err(self.undefined(id, place, Origin::default()));
            }
        }
        Ok(())
    }

    fn out_of_bounds(
        &self,
        tensor: TensorId,
        indices: &[IndexExpr],
        dimension: usize,
        origin: Origin,
    ) -> RunError {
        let element = indices.iter().map(|index| self.index(index, origin).unwrap_or(i64::MIN)).collect();
        RunError::OutOfBounds(Box::new(OutOfBounds {
            tensor: self.program.tensor(tensor).name.clone(),
            shape: self.tensors[tensor.index()].shape().to_vec(),
            element,
            dimension,
            declared: None,
            point: self.point(),
            origin,
        }))
    }

    fn point(&self) -> Vec<(String, i64)> {
        self.live.iter().map(|var| (self.program.var(*var).name.clone(), self.vars[var.index()])).collect()
    }

    /// The value of a subscript. One that leaves 64 bits is outside of every tensor.
    fn index(&self, index: &IndexExpr, origin: Origin) -> Run<i64> {
        let mut failure = None;
        let value = index.eval(&mut |atom| match atom {
            Atom::Var(var) => Some(self.vars[var.index()]),
            Atom::Data(data) => match self.data(data, origin) {
                Ok(value) => Some(value),
                Err(error) => {
                    failure.get_or_insert(error);
                    None
                }
            },
            _ => None,
        });
        match failure {
            Some(error) => Err(error),
            None => Ok(value.unwrap_or(i64::MIN)),
        }
    }

    /// An integer from data, checked against the bounds that the program declares for it.
    fn data(&self, data: &tilewright_ir::Data, origin: Origin) -> Run<i64> {
        let value = i64::try_from(self.value(&data.value)?.as_i128()).unwrap_or(i64::MAX);
        let Some((from, to)) = &data.declared else { return Ok(value) };
        let (from, to) = (self.index(from, origin)?, self.index(to, origin)?);
        if (from..to).contains(&value) {
            return Ok(value);
        }
        Err(RunError::OutOfBounds(Box::new(OutOfBounds {
            tensor: String::new(),
            shape: Vec::new(),
            element: vec![value],
            dimension: 0,
            declared: Some((from, to)),
            point: self.point(),
            origin,
        })))
    }

    fn value(&self, expr: &Expr) -> Run<Number> {
        Ok(match &expr.kind {
            ExprKind::Literal(number) => *number,
            ExprKind::Index(index) => {
                Number::Int(self.index(index, Origin::default())? as i128).convert(expr.dtype)
            }
            ExprKind::Scalar(scalar) => self.scalars[scalar.index()],
            ExprKind::Load(Access { tensor, indices, origin }) => {
                self.load(*tensor, self.place(*tensor, indices, *origin)?, *origin)?
            }
            ExprKind::Unary(op, operand) => arithmetic::unary(*op, self.value(operand)?, expr.dtype),
            ExprKind::Binary(op, operands) => {
                let left = self.value(&operands[0])?;
                match (op, left.is_true()) {
                    (BinaryOp::And, false) | (BinaryOp::Or, true) => left,
                    _ => arithmetic::binary(*op, left, self.value(&operands[1])?, expr.dtype),
                }
            }
            ExprKind::Select(operands) => {
                let chosen = if self.value(&operands[0])?.is_true() { &operands[1] } else { &operands[2] };
                self.value(chosen)?
            }
            ExprKind::Call(builtin, arguments) => {
                let arguments: Vec<Number> =
                    arguments.iter().map(|argument| self.value(argument)).collect::<Run<_>>()?;
                arithmetic::call(*builtin, &arguments, expr.dtype)
            }
            ExprKind::Cast(operand) => self.value(operand)?.convert(expr.dtype),
        })
    }
}
