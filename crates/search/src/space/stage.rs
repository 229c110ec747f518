//! Analyses the statements of a program. The result for one statement is a [`Stage`]: its loops,
//! its operands with their strides along these loops, and its number of operations.

use tilewright_ir::{
    Access, DType, Expr, ExprKind, Node, Program, Role, Statement, TensorId, VarId, VarKind,
};
use tilewright_schedule::analysis::{Stride, accesses, operations, stride};
use tilewright_schedule::{StatementName, Step};

/// One statement of a program.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub name: StatementName,
    pub dtype: DType,
    /// The loops of the statement, in the order of the source text.
    pub loops: Vec<StageLoop>,
    /// The tensors that the statement reads. Each tensor occurs once, with its first access.
    pub operands: Vec<Operand>,
    /// The stride of the result along each loop.
    pub result: Vec<Stride>,
    /// The number of operations of all iterations.
    pub work: f64,
    /// True inside an ordered loop: the statement cannot be moved or run in parallel as a whole.
    pub is_ordered: bool,
    /// True if the indices of the written elements depend on data.
    pub scatters: bool,
    /// The steps that create the loops of this stage from those of the program.
    pub creation_steps: Vec<Step>,
}

/// A loop of a statement.
#[derive(Clone, Debug)]
pub(crate) struct StageLoop {
    pub name: String,
    pub trips: i64,
    pub is_reduced: bool,
    /// True if the iterations are the remainders by which results differ. Each iteration then has
    /// its own operands.
    pub is_over_remainders: bool,
}

/// A tensor that a statement reads.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub tensor: String,
    /// The stride of the access along each loop of the statement.
    pub strides: Vec<Stride>,
    /// For every dimension, the loops of the statement that occur in its subscript.
    pub dimensions: Vec<Vec<usize>>,
    /// The extent of every dimension.
    pub shape: Vec<i64>,
    pub elements: f64,
    /// True if the caller promises not to change the tensor.
    pub is_constant: bool,
    /// True if a statement of the program writes the tensor.
    pub is_computed: bool,
    /// The dimensions whose subscript depends on data. Empty if the statement accesses the tensor
    /// more than once.
    pub data_dimensions: Vec<usize>,
}

impl Operand {
    /// Returns the operand as a gathering promotion stores it. The loops that the data-dependent
    /// subscripts use replace the dimensions of these subscripts. Returns `None` if no subscript
    /// depends on data.
    pub fn gathered(&self, loops: &[StageLoop]) -> Option<Operand> {
        let first = *self.data_dimensions.first()?;
        let mut keys: Vec<usize> =
            self.data_dimensions.iter().flat_map(|at| self.dimensions[*at].clone()).collect();
        keys.sort_unstable();
        keys.dedup();
        let own = |range: std::ops::Range<usize>| {
            let kept = range.filter(|at| !self.data_dimensions.contains(at));
            kept.map(|at| (self.dimensions[at].clone(), self.shape[at]))
        };
        let keys = keys.into_iter().map(|at| (vec![at], loops[at].trips));
        let all = own(0..first).chain(keys).chain(own(first..self.shape.len()));
        let (dimensions, shape) = all.unzip();
        Some(Operand { dimensions, shape, data_dimensions: Vec::new(), is_constant: false, ..self.clone() })
    }

    /// The distance in elements between neighbours along a dimension.
    pub fn inner_elements(&self, dimension: usize) -> i64 {
        self.shape[dimension + 1..].iter().product()
    }
}

impl Stage {
    /// The indices of the loops that are worth scheduling: those that run more than once.
    pub fn repeated_loops(&self, reduced: bool) -> Vec<usize> {
        let wanted = |at: &usize| self.loops[*at].is_reduced == reduced && self.loops[*at].trips > 1;
        (0..self.loops.len()).filter(wanted).collect()
    }
}

/// The least share of all operations for which a statement gets knobs. Other statements are left to
/// the default schedule.
const MIN_SHARE: f64 = 0.005;
/// The largest number of statements that get knobs.
const MAX_TILED: usize = 16;

/// For each statement, whether it has a significant share of the work.
pub(super) fn significant_statements(stages: &[Stage]) -> Vec<bool> {
    let total: f64 = stages.iter().map(|stage| stage.work).sum();
    let mut order: Vec<usize> = (0..stages.len()).collect();
    order.sort_by(|left, right| stages[*right].work.total_cmp(&stages[*left].work));
    let mut matters = vec![false; stages.len()];
    for at in order.into_iter().take(MAX_TILED) {
        matters[at] = stages[at].work >= MIN_SHARE * total;
    }
    matters
}

/// Analyses the statements of a program whose sizes are known, in order.
pub(crate) fn stages(program: &Program) -> Vec<Stage> {
    let mut found = Vec::new();
    for stage in &program.stages {
        collect(program, &stage.body, false, &mut found);
    }
    found
}

fn collect(program: &Program, nodes: &[Node], ordered: bool, found: &mut Vec<Stage>) {
    for node in nodes {
        match node {
            Node::Statement(statement) => {
                let tensor = &program.tensor(statement.target).name;
                let before = found.iter().filter(|stage| stage.name.tensor == *tensor).count();
                let name = StatementName { tensor: tensor.clone(), ordinal: before + 1 };
                found.push(analyse(program, statement, name, ordered));
            }
            Node::For(inner) => collect(program, &inner.body, true, found),
        }
    }
}

/// Analyses one statement of a program whose sizes are known.
pub(super) fn analyse(program: &Program, statement: &Statement, name: StatementName, ordered: bool) -> Stage {
    let loops: Vec<StageLoop> = statement.vars.iter().map(|var| stage_loop(program, *var)).collect();
    let target =
        Access { tensor: statement.target, indices: statement.indices.clone(), origin: statement.origin };
    let points: f64 = loops.iter().map(|own| own.trips as f64).product();
    let mut operands: Vec<Operand> = Vec::new();
    let reads = accesses(&statement.value);
    for read in &reads {
        let mut operand = operand(program, &statement.vars, read);
        if reads.iter().filter(|other| other.tensor == read.tensor).count() > 1 {
            operand.data_dimensions.clear();
        }
        if operands.iter().all(|other| other.tensor != operand.tensor) {
            operands.push(operand);
        }
    }
    Stage {
        dtype: program.tensor(statement.target).dtype,
        operands,
        result: strides(program, &statement.vars, &target),
        work: points * (operations(&statement.value) as f64 + 1.0),
        is_ordered: ordered,
        scatters: target.indices.iter().any(|index| index.has_data()),
        creation_steps: Vec::new(),
        name,
        loops,
    }
}

fn stage_loop(program: &Program, var: VarId) -> StageLoop {
    let declared = program.var(var);
    StageLoop {
        name: declared.name.clone(),
        trips: declared.range.extent().as_constant().unwrap_or(1).max(0),
        is_reduced: declared.kind == VarKind::Reduction,
        is_over_remainders: false,
    }
}

fn strides(program: &Program, vars: &[VarId], access: &Access) -> Vec<Stride> {
    let shape = program.shape(access.tensor).unwrap_or_default();
    let mut distances = vec![1i64; shape.len()];
    for at in (1..shape.len()).rev() {
        distances[at - 1] = distances[at].saturating_mul(shape[at] as i64);
    }
    vars.iter().map(|var| stride(&access.indices, &distances, *var)).collect()
}

fn operand(program: &Program, vars: &[VarId], access: &Access) -> Operand {
    let declared = program.tensor(access.tensor);
    let mentioned = |index: &tilewright_ir::IndexExpr| {
        (0..vars.len()).filter(|at| index.mentions(vars[*at])).collect::<Vec<usize>>()
    };
    let shape = program.shape(access.tensor).unwrap_or_default();
    let shape: Vec<i64> = shape.iter().map(|extent| *extent as i64).collect();
    Operand {
        tensor: declared.name.clone(),
        strides: strides(program, vars, access),
        dimensions: access.indices.iter().map(mentioned).collect(),
        elements: shape.iter().map(|extent| *extent as f64).product(),
        shape,
        is_constant: declared.role == Role::Input { constant: true },
        is_computed: is_written(program, access.tensor),
        data_dimensions: (0..access.indices.len()).filter(|at| access.indices[*at].has_data()).collect(),
    }
}

fn is_written(program: &Program, tensor: TensorId) -> bool {
    program.statements().iter().any(|(statement, _)| statement.target == tensor)
}

/// Returns true when an expression reads a tensor.
pub(crate) fn reads_tensor(expr: &Expr, tensor: TensorId) -> bool {
    match &expr.kind {
        ExprKind::Load(access) if access.tensor == tensor => true,
        _ => expr.operands().iter().any(|operand| reads_tensor(operand, tensor)),
    }
}
