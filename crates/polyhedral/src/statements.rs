//! Defines [`Statements`]: the instances of each statement of a program, computed when they are
//! first asked for. A question about one statement of a long program needs few of them.

use std::cell::OnceCell;
use std::ops::Index;

use tilewright_ir::{
    Access, Atom, BinaryOp, Expr, ExprKind, IndexExpr, Node, Program, Statement, TensorId, VarId, VarKind,
};
use tilewright_isl::{Context, Set};

use crate::coordinates::Coordinates;
use crate::model::{AccessRelation, Instances, shape};

/// The instances of all statements, in the order of [`Program::statements`].
#[derive(Debug)]
pub struct Statements<'p> {
    program: &'p Program,
    /// The shape of each tensor.
    shapes: Vec<Vec<i64>>,
    outlines: Vec<Outline<'p>>,
}

/// The facts about a statement that need no sets.
#[derive(Debug)]
struct Outline<'p> {
    statement: &'p Statement,
    loops: Vec<VarId>,
    positions: Vec<usize>,
    coordinates: Coordinates,
    /// At least 0 at the instances that exist.
    bounds: Vec<IndexExpr>,
    /// The tensors that the statement reads.
    reads: Vec<TensorId>,
    instances: OnceCell<Instances<'p>>,
}

impl<'p> Statements<'p> {
    /// Returns `None` if one of the program's sizes is not a number.
    pub(crate) fn new(context: &Context, program: &'p Program) -> Option<Statements<'p>> {
        let shapes = (0..program.tensors.len()).map(|at| shape(program, TensorId(at as u32)));
        let shapes = shapes.collect::<Option<_>>()?;
        let mut outliner =
            Outliner { context, program, loops: Vec::new(), positions: vec![0], outlines: Vec::new() };
        for stage in &program.stages {
            outliner.nodes(&stage.body)?;
        }
        Some(Statements { program, shapes, outlines: outliner.outlines })
    }

    /// The number of statements.
    pub fn len(&self) -> usize {
        self.outlines.len()
    }

    /// Whether the program has no statements.
    pub fn is_empty(&self) -> bool {
        self.outlines.is_empty()
    }

    /// The instances of a statement, if there is one of this number.
    pub fn get(&self, at: usize) -> Option<&Instances<'p>> {
        let outline = self.outlines.get(at)?;
        Some(outline.instances.get_or_init(|| self.instances(outline)))
    }

    /// The instances of all statements.
    pub fn iter(&self) -> impl Iterator<Item = &Instances<'p>> {
        (0..self.len()).map(|at| &self[at])
    }

    pub(crate) fn share_a_written_tensor(&self, one: usize, other: usize) -> bool {
        let [one, other] = [&self.outlines[one], &self.outlines[other]];
        let touches =
            |own: &Outline, tensor: TensorId| own.statement.target == tensor || own.reads.contains(&tensor);
        touches(one, other.statement.target) || touches(other, one.statement.target)
    }

    fn instances(&self, outline: &Outline<'p>) -> Instances<'p> {
        let Outline { statement, coordinates, .. } = outline;
        let (domain, _) = coordinates.all_nonnegative(&outline.bounds);
        let mut reads = Reads { statements: self, coordinates, accesses: Vec::new() };
        reads.expr(&statement.value, &domain, true);
        for index in &statement.indices {
            reads.index(index, &domain, true);
        }
        let reads = reads.accesses;
        let write = self.access_relation(coordinates, statement.target, &statement.indices, (&domain, true));
        let reduced = |var: &VarId| self.program.var(*var).kind == VarKind::Reduction;
        let reduces_into_several = statement.indices.iter().any(|index| index.vars().iter().any(reduced));
        let is_chosen =
            |index: &IndexExpr| coordinates.affine(index).is_none() || index.vars().iter().any(reduced);
        Instances {
            statement,
            loops: outline.loops.clone(),
            coordinates: coordinates.clone(),
            domain,
            write,
            reduces_into_several,
            chosen: statement.indices.iter().map(is_chosen).collect(),
            reads,
            positions: outline.positions.clone(),
        }
    }

    /// The elements of one access. `at` holds the instances that make the access, and whether
    /// exactly these instances make it.
    fn access_relation(
        &self,
        coordinates: &Coordinates,
        tensor: TensorId,
        indices: &[IndexExpr],
        at: (&Set, bool),
    ) -> AccessRelation {
        let (elements, exact) = coordinates.elements(indices, &self.shapes[tensor.index()]);
        AccessRelation {
            tensor,
            indices: indices.to_vec(),
            elements: elements.intersect_domain(at.0),
            exact: exact && at.1,
        }
    }
}

impl<'p> Index<usize> for Statements<'p> {
    type Output = Instances<'p>;

    fn index(&self, at: usize) -> &Instances<'p> {
        self.get(at).expect("the program has a statement of this number")
    }
}

struct Outliner<'a, 'p> {
    context: &'a Context,
    program: &'p Program,
    loops: Vec<VarId>,
    /// The position of the next node, outside all loops and in each open loop.
    positions: Vec<usize>,
    outlines: Vec<Outline<'p>>,
}

impl<'p> Outliner<'_, 'p> {
    fn nodes(&mut self, nodes: &'p [Node]) -> Option<()> {
        for node in nodes {
            match node {
                Node::Statement(statement) => {
                    let outline = self.outline(statement)?;
                    self.outlines.push(outline);
                }
                Node::For(inner) => {
                    self.loops.push(inner.var);
                    self.positions.push(0);
                    self.nodes(&inner.body)?;
                    self.positions.pop();
                    self.loops.pop();
                }
            }
            if let Some(place) = self.positions.last_mut() {
                *place += 1;
            }
        }
        Some(())
    }

    /// Returns `None` if a bound of the statement's loops is not a linear function of variables.
    fn outline(&self, statement: &'p Statement) -> Option<Outline<'p>> {
        let mut coordinates = Coordinates::new(self.context);
        let mut bounds = Vec::new();
        for var in self.loops.iter().chain(&statement.vars) {
            let range = &self.program.var(*var).range;
            let ends = range.from.as_constant().zip(range.to.as_constant());
            coordinates.add(*var, ends.map(|(from, to)| (from, to - 1)));
            bounds.push(IndexExpr::var(*var).sub(&range.from));
            bounds.push(range.to.sub(&IndexExpr::var(*var)).offset(-1));
        }
        let is_box = bounds.iter().all(|bound| coordinates.affine(bound).is_some());
        let mut reads = Vec::new();
        let mut add = |access: &Access| {
            if !reads.contains(&access.tensor) {
                reads.push(access.tensor);
            }
        };
        statement.value.visit_reads(&mut add);
        statement.indices.iter().for_each(|index| index.visit_reads(&mut add));
        is_box.then(|| Outline {
            statement,
            loops: self.loops.clone(),
            positions: self.positions.clone(),
            coordinates,
            bounds,
            reads,
            instances: OnceCell::new(),
        })
    }
}

/// Collects the elements that an expression reads, with the instances that read them.
struct Reads<'a, 'p> {
    statements: &'a Statements<'p>,
    coordinates: &'a Coordinates,
    accesses: Vec<AccessRelation>,
}

impl Reads<'_, '_> {
    /// `at` holds the instances that evaluate the expression; `exact` says whether exactly these
    /// instances do.
    fn expr(&mut self, expr: &Expr, at: &Set, exact: bool) {
        match &expr.kind {
            ExprKind::Load(access) => self.access(access, at, exact),
            ExprKind::Index(index) => self.index(index, at, exact),
            ExprKind::Select(parts) => {
                self.expr(&parts[0], at, exact);
                self.branches(&parts[0], &parts[1], Some(&parts[2]), at, exact);
            }
            ExprKind::Binary(op, pair) if op.is_logical() => {
                self.expr(&pair[0], at, exact);
                match op {
                    BinaryOp::And => self.branches(&pair[0], &pair[1], None, at, exact),
                    _ => self.otherwise(&pair[0], &pair[1], at, exact),
                }
            }
            _ => expr.operands().iter().for_each(|operand| self.expr(operand, at, exact)),
        }
    }

    /// Visits `then` where the condition holds, and `otherwise` where the condition does not hold.
    fn branches(&mut self, condition: &Expr, then: &Expr, otherwise: Option<&Expr>, at: &Set, exact: bool) {
        match self.coordinates.condition(condition) {
            Some(holds) => self.expr(then, &at.intersect(&holds), exact),
            None => self.expr(then, at, false),
        }
        if let Some(otherwise) = otherwise {
            self.otherwise(condition, otherwise, at, exact);
        }
    }

    fn otherwise(&mut self, condition: &Expr, expr: &Expr, at: &Set, exact: bool) {
        match self.coordinates.condition(condition) {
            Some(holds) => self.expr(expr, &at.subtract(&holds), exact),
            None => self.expr(expr, at, false),
        }
    }

    fn access(&mut self, access: &Access, at: &Set, exact: bool) {
        access.indices.iter().for_each(|index| self.index(index, at, exact));
        let touch =
            self.statements.access_relation(self.coordinates, access.tensor, &access.indices, (at, exact));
        self.accesses.push(touch);
    }

    /// Visits the data in a subscript. `IndexExpr::visit` does not fit, because it also visits data
    /// that is nested inside data.
    fn index(&mut self, index: &IndexExpr, at: &Set, exact: bool) {
        for term in index.terms() {
            for factor in &term.factors {
                self.atom(factor, at, exact);
            }
        }
    }

    fn atom(&mut self, atom: &Atom, at: &Set, exact: bool) {
        match atom {
            Atom::Data(data) => self.expr(&data.value, at, exact),
            Atom::FloorDiv(pair) | Atom::Mod(pair) | Atom::Min(pair) | Atom::Max(pair) => {
                self.index(&pair.0, at, exact);
                self.index(&pair.1, at, exact);
            }
            Atom::Var(_) | Atom::Symbol(_) | Atom::Extent(..) | Atom::Overflow => {}
        }
    }
}
