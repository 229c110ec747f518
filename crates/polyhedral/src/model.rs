//! Builds the [`Model`] of a program: which instances of its statements exist, which elements they
//! read and write, and in which order they run.

use tilewright_ir::{IndexExpr, Program, Statement, TensorId, Update, VarId};
use tilewright_isl::{Context, Map, Set};

use crate::coordinates::Coordinates;
pub use crate::statements::Statements;

/// All instances of a program whose sizes are numbers.
#[derive(Debug)]
pub struct Model<'p> {
    /// The program.
    pub program: &'p Program,
    /// The program's statements, in the order of [`Program::statements`].
    pub statements: Statements<'p>,
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
    pub(crate) positions: Vec<usize>,
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
        Some(Model { program, statements: Statements::new(context, program)? })
    }

    /// Whether instances of one statement may depend on instances of another: both touch a tensor
    /// that at least one of them writes. Tells without any work.
    pub fn share_a_written_tensor(&self, one: usize, other: usize) -> bool {
        self.statements.share_a_written_tensor(one, other)
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

pub(crate) fn shape(program: &Program, tensor: TensorId) -> Option<Vec<i64>> {
    Some(program.shape(tensor)?.into_iter().map(|extent| extent as i64).collect())
}
