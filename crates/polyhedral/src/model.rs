//! Builds the [`Model`] of a program: which instances of its statements exist, which elements they
//! read and write, and in which order they run.

use tilewright_ir::{
    Access, Atom, BinaryOp, Expr, ExprKind, IndexExpr, Node, Program, Statement, TensorId, Update, VarId,
    VarKind,
};
use tilewright_isl::{Context, Map, Set};

use crate::coordinates::Coordinates;

/// All instances of a program whose sizes are numbers.
#[derive(Debug)]
pub struct Model<'p> {
    /// The program.
    pub program: &'p Program,
    /// The program's statements, in the order of [`Program::statements`].
    pub statements: Vec<Instances<'p>>,
}

/// The instances of one statement, as integer vectors. A vector holds the variables of the ordered
/// loops around the statement, outermost first, then those of the statement's own box.
#[derive(Debug)]
pub struct Instances<'p> {
    /// The statement.
    pub statement: &'p Statement,
    /// The variables of the ordered loops around the statement, outermost first.
    pub loops: Vec<VarId>,
    /// The variables that the coordinates of an instance's vector stand for.
    pub coordinates: Coordinates,
    /// The instances that exist.
    pub domain: Set,
    /// The elements that the statement writes.
    pub write: AccessRelation,
    /// Whether one reduced variable or several together choose the element, as in `y(3*g + k)`.
    pub reduces_into_several: bool,
    /// For each subscript of the written element, whether data or reduced variables choose its
    /// value. The values of the other subscripts follow from the variables that are not reduced.
    pub chosen: Vec<bool>,
    /// The elements that the statement reads, one entry for each access, in source order. The
    /// elements that a reduction updates are not included.
    pub reads: Vec<AccessRelation>,
    /// The statement's positions among its siblings: outside all loops, then in each loop around
    /// it.
    positions: Vec<usize>,
}

/// The elements of one tensor that instances read or write by one access.
#[derive(Clone, Debug)]
pub struct AccessRelation {
    /// The tensor.
    pub tensor: TensorId,
    /// The subscripts.
    pub indices: Vec<IndexExpr>,
    /// Maps instances to elements.
    pub elements: Map,
    /// Whether each instance touches exactly these elements; otherwise data decides which of these
    /// elements are touched.
    pub exact: bool,
}

impl<'p> Model<'p> {
    /// The instances of a program, or `None` if one of its sizes is not a number.
    pub fn new(context: &Context, program: &'p Program) -> Option<Model<'p>> {
        let shapes: Option<Vec<Vec<i64>>> =
            (0..program.tensors.len()).map(|at| shape(program, TensorId(at as u32))).collect();
        let mut builder = Builder {
            context,
            program,
            shapes: shapes?,
            loops: Vec::new(),
            positions: vec![0],
            statements: Vec::new(),
        };
        for stage in &program.stages {
            builder.nodes(&stage.body)?;
        }
        Some(Model { program, statements: builder.statements })
    }

    /// All elements of a tensor.
    pub fn elements(&self, context: &Context, tensor: TensorId) -> Set {
        let shape = shape(self.program, tensor).unwrap_or_default();
        crate::coordinates::elements_of(context, &shape)
    }

    /// Pairs of instances of which the first runs before the second. Instances of one statement
    /// that differ only in the statement's own variables have no order.
    pub fn before(&self, first: usize, second: usize) -> Map {
        let (a, b) = (&self.statements[first], &self.statements[second]);
        let common = a.common_loops(b);
        let mut equal = Map::from_domain_and_range(&a.domain, &b.domain);
        let mut pairs: Option<Map> = None;
        for at in 0..common {
            let level = equal.where_less(at, at);
            pairs = Some(pairs.map_or_else(|| level.clone(), |pairs| pairs.union(&level)));
            equal = equal.where_equal(at, at);
        }
        let context = a.domain.context();
        let none = || Map::empty(context, a.coordinates.len(), b.coordinates.len());
        let ordered = pairs.unwrap_or_else(none);
        if a.positions[common] < b.positions[common] { ordered.union(&equal) } else { ordered }
    }
}

impl Instances<'_> {
    /// The number of ordered loops around both statements.
    pub fn common_loops(&self, other: &Instances) -> usize {
        let both = self.loops.iter().zip(&other.loops);
        both.take_while(|(own, other)| own == other).count()
    }

    /// The statement's position among its siblings inside `depth` loops; 0 if fewer loops are
    /// around it.
    pub fn position(&self, depth: usize) -> usize {
        self.positions.get(depth).copied().unwrap_or(0)
    }

    /// Checks whether the statement reduces values into elements.
    pub fn is_reduction(&self) -> bool {
        matches!(self.statement.update, Update::Reduce { .. })
    }

    /// Checks whether the statement needs the values that its elements had before.
    pub fn needs_previous_value(&self) -> bool {
        matches!(self.statement.update, Update::Reduce { reset: false, .. })
    }
}

fn shape(program: &Program, tensor: TensorId) -> Option<Vec<i64>> {
    Some(program.shape(tensor)?.into_iter().map(|extent| extent as i64).collect())
}

struct Builder<'a, 'p> {
    context: &'a Context,
    program: &'p Program,
    shapes: Vec<Vec<i64>>,
    loops: Vec<VarId>,
    /// The position of the next node, outside all loops and in each open loop.
    positions: Vec<usize>,
    statements: Vec<Instances<'p>>,
}

impl<'p> Builder<'_, 'p> {
    fn nodes(&mut self, nodes: &'p [Node]) -> Option<()> {
        for node in nodes {
            match node {
                Node::Statement(statement) => {
                    let instances = self.instances(statement)?;
                    self.statements.push(instances);
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

    fn instances(&self, statement: &'p Statement) -> Option<Instances<'p>> {
        let mut coordinates = Coordinates::new(self.context);
        let mut bounds = Vec::new();
        for var in self.loops.iter().chain(&statement.vars) {
            let range = &self.program.var(*var).range;
            let ends = range.from.as_constant().zip(range.to.as_constant());
            coordinates.add(*var, ends.map(|(from, to)| (from, to - 1)));
            bounds.push(IndexExpr::var(*var).sub(&range.from));
            bounds.push(range.to.sub(&IndexExpr::var(*var)).offset(-1));
        }
        let (domain, is_box) = coordinates.all_nonnegative(&bounds);
        if !is_box {
            return None;
        }
        let mut reads = Reads { builder: self, coordinates: &coordinates, accesses: Vec::new() };
        reads.expr(&statement.value, &domain, true);
        for index in &statement.indices {
            reads.index(index, &domain, true);
        }
        let reads = reads.accesses;
        let write = self.access_relation(&coordinates, statement.target, &statement.indices, (&domain, true));
        let reduced = |var: &VarId| self.program.var(*var).kind == VarKind::Reduction;
        let reduces_into_several = statement.indices.iter().any(|index| index.vars().iter().any(reduced));
        let is_chosen =
            |index: &IndexExpr| coordinates.affine(index).is_none() || index.vars().iter().any(reduced);
        let chosen = statement.indices.iter().map(is_chosen).collect();
        let loops = self.loops.clone();
        Some(Instances {
            statement,
            loops,
            coordinates,
            domain,
            write,
            reduces_into_several,
            chosen,
            reads,
            positions: self.positions.clone(),
        })
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

/// Collects the elements that an expression reads, with the instances that read them.
struct Reads<'a, 'p> {
    builder: &'a Builder<'a, 'p>,
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
            self.builder.access_relation(self.coordinates, access.tensor, &access.indices, (at, exact));
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
