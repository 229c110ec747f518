//! What static analysis knows of one statement: its loops, and how its accesses move with them.

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
    /// Its own loops, outermost first as the text has them.
    pub loops: Vec<StageLoop>,
    /// The tensors that it reads, each once by its first access.
    pub operands: Vec<Operand>,
    /// How its result moves with each of its loops.
    pub result: Vec<Stride>,
    /// Operations of all points.
    pub work: f64,
    /// Inside an ordered loop, so that it cannot be moved or run in parallel as a whole.
    pub ordered: bool,
    /// Which elements it writes depends on data.
    pub scatters: bool,
    /// The steps that make its loops of those of the program.
    pub made_by: Vec<Step>,
}

/// A loop of a statement.
#[derive(Clone, Debug)]
pub(crate) struct StageLoop {
    pub name: String,
    pub trips: i64,
    pub reduced: bool,
    /// Its iterations are the remainders that results differ in, so each has operands of its own.
    pub remainders: bool,
}

/// A tensor that a statement reads.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub tensor: String,
    /// How the access moves with each of the statement's loops.
    pub strides: Vec<Stride>,
    /// For every dimension, the statement's loops in its subscript.
    pub dimensions: Vec<Vec<usize>>,
    /// The extent of every dimension.
    pub shape: Vec<i64>,
    pub elements: f64,
    /// The caller promises not to change it.
    pub constant: bool,
    /// A statement of the program writes it.
    pub computed: bool,
    /// The dimensions in which data chooses, if it does so by one access.
    pub by_data: Vec<usize>,
}

impl Operand {
    /// The operand as a promotion gathers it: the loops that data depends on in the place of the dimensions in which it
    /// chooses. None where it does not.
    pub fn gathered(&self, loops: &[StageLoop]) -> Option<Operand> {
        let first = *self.by_data.first()?;
        let mut keys: Vec<usize> = self.by_data.iter().flat_map(|at| self.dimensions[*at].clone()).collect();
        keys.sort_unstable();
        keys.dedup();
        let own = |range: std::ops::Range<usize>| {
            let kept = range.filter(|at| !self.by_data.contains(at));
            kept.map(|at| (self.dimensions[at].clone(), self.shape[at]))
        };
        let keys = keys.into_iter().map(|at| (vec![at], loops[at].trips));
        let all = own(0..first).chain(keys).chain(own(first..self.shape.len()));
        let (dimensions, shape) = all.unzip();
        Some(Operand { dimensions, shape, by_data: Vec::new(), constant: false, ..self.clone() })
    }

    /// Elements from one place of a dimension to the next.
    pub fn inner_elements(&self, dimension: usize) -> i64 {
        self.shape[dimension + 1..].iter().product()
    }
}

impl Stage {
    /// The loops that are worth arranging: those that run more than once.
    pub fn busy(&self, reduced: bool) -> Vec<usize> {
        let wanted = |at: &usize| self.loops[*at].reduced == reduced && self.loops[*at].trips > 1;
        (0..self.loops.len()).filter(wanted).collect()
    }
}

/// Statements with less than this share of all operations are left to the default schedule.
const LEAST_SHARE: f64 = 0.005;
/// And so are all but so many.
const MOST_TILED: usize = 16;

/// Which statements have a share in the work.
pub(super) fn heavy(stages: &[Stage]) -> Vec<bool> {
    let total: f64 = stages.iter().map(|stage| stage.work).sum();
    let mut order: Vec<usize> = (0..stages.len()).collect();
    order.sort_by(|left, right| stages[*right].work.total_cmp(&stages[*left].work));
    let mut matters = vec![false; stages.len()];
    for at in order.into_iter().take(MOST_TILED) {
        matters[at] = stages[at].work >= LEAST_SHARE * total;
    }
    matters
}

/// The statements of a program whose sizes are known, in order.
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
                found.push(analysed(program, statement, name, ordered));
            }
            Node::For(inner) => collect(program, &inner.body, true, found),
        }
    }
}

/// What is known of a statement of a program whose sizes are known.
pub(super) fn analysed(
    program: &Program,
    statement: &Statement,
    name: StatementName,
    ordered: bool,
) -> Stage {
    let loops: Vec<StageLoop> = statement.vars.iter().map(|var| stage_loop(program, *var)).collect();
    let target =
        Access { tensor: statement.target, indices: statement.indices.clone(), origin: statement.origin };
    let points: f64 = loops.iter().map(|own| own.trips as f64).product();
    let mut operands: Vec<Operand> = Vec::new();
    let reads = accesses(&statement.value);
    for read in &reads {
        let mut operand = operand(program, &statement.vars, read);
        if reads.iter().filter(|other| other.tensor == read.tensor).count() > 1 {
            operand.by_data.clear();
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
        ordered,
        scatters: target.indices.iter().any(|index| index.has_data()),
        made_by: Vec::new(),
        name,
        loops,
    }
}

fn stage_loop(program: &Program, var: VarId) -> StageLoop {
    let declared = program.var(var);
    StageLoop {
        name: declared.name.clone(),
        trips: declared.range.extent().as_constant().unwrap_or(1).max(0),
        reduced: declared.kind == VarKind::Reduction,
        remainders: false,
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
        constant: declared.role == Role::Input { constant: true },
        computed: is_written(program, access.tensor),
        by_data: (0..access.indices.len()).filter(|at| access.indices[*at].has_data()).collect(),
    }
}

fn is_written(program: &Program, tensor: TensorId) -> bool {
    program.statements().iter().any(|(statement, _)| statement.target == tensor)
}

/// Whether an expression reads a tensor.
pub(crate) fn reads(expr: &Expr, tensor: TensorId) -> bool {
    match &expr.kind {
        ExprKind::Load(access) if access.tensor == tensor => true,
        _ => expr.operands().iter().any(|operand| reads(operand, tensor)),
    }
}
