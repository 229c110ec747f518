//! Checks whether a draft keeps the dependences of its program. All of legality comes down to this
//! question.
//!
//! A schedule is legal if two conditions hold. Every two instances (executions of statements) that
//! depend on each other still run in their order. A value that is computed again elsewhere reads
//! the same operands there. For a statement's own loops the steps keep both conditions by
//! construction: the statement's instances are independent, up to the order of a reduction. Other
//! changes are checked here, after the step has changed the draft: inlined and moved statements
//! that read tensors which the program changes later, and ordered loops that are reordered or run
//! in parallel.
//!
//! In: a draft, and the statements that a step has moved. Out: the first dependence that no longer
//! holds, with a pair of instances. The dependences are those of [`tilewright_polyhedral`]; read
//! its `dependence.rs` next. Loops that were apart and are joined are checked by the elements that
//! they use ([`joined`]). Recurrences that are computed in parts need not keep all dependences
//! ([`scan`]).

mod joined;
mod scan;

use tilewright_ir::TensorId;
use tilewright_ir::ids::InNest;
use tilewright_ir::nest::{Access, Atom, Axis, BufferId, IndexExpr, LoopKind, LoopVarId};
use tilewright_polyhedral::coordinates::elements_of;
use tilewright_polyhedral::dependence::between;
use tilewright_polyhedral::isl::{Affine, Answer, Context, Map, Set};
use tilewright_polyhedral::{Coordinates, Dependence, DependenceKind, Model, text};

use crate::draft::{Draft, Instance, Legal, LoopRole, Parent, StatementId};
use crate::illegal::Illegal;

pub(crate) use joined::Meeting;

/// The isl operations that one legality query may take: about a second.
const MOST_OPERATIONS: u64 = 20_000_000;

impl Draft<'_> {
    /// Returns true when iterations of a loop may depend on each other, so that a change of their
    /// order must be checked. This is so if the loop is ordered or has an ordered loop inside, or
    /// if a statement inside reads a tensor that a later statement of the program changes there.
    /// Otherwise the iterations of a statement's own loops are independent, up to the order of a
    /// reduction.
    pub fn may_carry_dependence(&self, var: LoopVarId) -> bool {
        let body = self.body_of(var);
        let is_ordered = |var: &LoopVarId| self.loop_of(*var).role == LoopRole::Ordered;
        if is_ordered(&var) || self.loops_in(body).iter().any(is_ordered) {
            return true;
        }
        let statements = self.statements_in(body);
        statements
            .iter()
            .any(|id| self.reads_tensor_changed_later(*id) && self.reads_before_later_write(*id, &statements))
    }

    /// Returns true for a loop over threads if the loops around it, or those inside it, include
    /// another loop over threads and an ordered loop: no barrier can separate the iterations of
    /// that ordered loop. The same holds for loops over blocks, since blocks never wait for each
    /// other.
    pub fn has_unsynchronised_ordered_loop(&self, var: LoopVarId) -> bool {
        let unit = |var: &LoopVarId| match self.loop_of(*var).kind {
            LoopKind::Thread(_) => Some(UnitKind::Thread),
            LoopKind::Block(_) => Some(UnitKind::Block),
            _ => None,
        };
        let Some(own) = unit(&var) else { return false };
        let is_ordered = |var: &LoopVarId| self.loop_of(*var).role == LoopRole::Ordered;
        let [around, inside] = [self.loops_around(var), self.loops_in(self.body_of(var))];
        let is_alike = |var: &LoopVarId| unit(var) == Some(own);
        let has_both = |loops: &[LoopVarId]| loops.iter().any(is_alike) && loops.iter().any(is_ordered);
        has_both(&around) || has_both(&inside)
    }

    /// Returns true when a statement reads a tensor that one of the others, which comes later in
    /// the program, writes. After inlining this also covers a statement that reads other elements
    /// of its own tensor than it writes.
    fn reads_before_later_write(&self, id: StatementId, others: &[StatementId]) -> bool {
        let statement = self.statement(id);
        let Some(first) = statement.first_instance() else { return false };
        let changed = |read: &Access| {
            others.iter().any(|other| {
                let writer = self.statement(*other);
                let is_later = writer.instances.first().is_some_and(|own| own.statement > first);
                let is_own = *other == id && read.indices == writer.target.indices;
                writer.target.tensor == read.tensor && is_later && !is_own
            })
        };
        statement.reads().iter().any(changed)
    }

    /// Refuses a change of loops if one of them is the ordered loop of a tensor with private
    /// elements. [`Draft::violated_dependence`] does not see the dependences of such a recurrence.
    pub fn check_private_recurrence(&self, loops: &[LoopVarId]) -> Legal<()> {
        let is_private = |id: &StatementId| self.has_private_elements(self.statement(*id).target.tensor);
        let found = loops.iter().find(|var| {
            let inside = self.statements_in(self.body_of(**var));
            self.loop_of(**var).role == LoopRole::Ordered && inside.iter().any(is_private)
        });
        let Some(var) = found else { return Ok(()) };
        let why = "its iterations stay in order: its statements are computed at a loop of their consumer";
        Err(Illegal::CarriedDependence { name: self.qualified_loop_name(*var), why: why.to_string() })
    }

    /// Returns the first dependence from or to one of these statements that the draft violates, as
    /// a sentence.
    pub fn violated_dependence(&self, moved: &[StatementId]) -> Option<String> {
        let context = Context::new();
        context.limit_operations(MOST_OPERATIONS);
        let Some(model) = Model::new(&context, self.program) else {
            return Some("its sizes are not known".to_string());
        };
        let check = DependenceCheck { draft: self, context, model };
        match check.first_violation(moved) {
            Ok(found) => found,
            Err(_) => Some("the check of its dependences takes too long".to_string()),
        }
    }

    /// Returns true when subscripts together take all combinations of values from 0 up to their
    /// extents while a statement runs.
    pub fn takes_all_values(&self, id: StatementId, indices: &[(&IndexExpr, i64)]) -> bool {
        let path = self.path(id);
        if self.are_mixed_radix(&path, indices) {
            return true;
        }
        let context = Context::new();
        context.limit_operations(MOST_OPERATIONS);
        let coordinates = coordinates(&context, &path);
        let values = indices.iter().map(|(index, _)| coordinates.affine(index));
        let Some(values) = values.collect::<Option<Vec<Affine>>>() else { return false };
        // A superset of the iterations would also hold values that the subscripts never take.
        let (iterations, true) = self.iterations(&coordinates) else { return false };
        let values = Map::from_functions(&context, coordinates.len(), &values).intersect_domain(&iterations);
        let extents: Vec<i64> = indices.iter().map(|(_, extent)| *extent).collect();
        elements_of(&context, &extents).is_subset(&values.range()).unwrap_or(false)
    }

    /// Returns true when every subscript is a mixed-radix number whose digits are loop variables of
    /// its own, so that the subscripts take each combination of values once. Most subscripts have
    /// this form.
    fn are_mixed_radix(&self, path: &[LoopVarId], indices: &[(&IndexExpr, i64)]) -> bool {
        let mut all: Vec<LoopVarId> = Vec::new();
        let counts = indices.iter().all(|(index, extent)| {
            let digits = self.mixed_radix_digits(index, *extent).unwrap_or_default();
            let are_new = digits.iter().all(|var| !all.contains(var));
            all.extend(&digits);
            are_new && (!digits.is_empty() || *extent == 1 && **index == IndexExpr::constant(0))
        });
        counts && path.iter().all(|var| self.loop_of(*var).guards.is_empty())
    }

    /// The digits of a subscript that is a mixed-radix number below the extent.
    fn mixed_radix_digits(&self, index: &IndexExpr, extent: i64) -> Option<Vec<LoopVarId>> {
        let digits = index.terms().iter().map(|term| match term.factors.as_slice() {
            [Atom::Var(var)] => Some((term.coefficient, *var)),
            _ => None,
        });
        let mut digits = digits.collect::<Option<Vec<_>>>()?;
        digits.sort_unstable();
        let count = digits.iter().try_fold(1, |place: i64, (coefficient, var)| {
            let extent = self.loop_of(*var).extent.as_constant().filter(|_| *coefficient == place)?;
            place.checked_mul(extent)
        });
        let is_number = index.constant_part() == 0 && count == Some(extent);
        is_number.then(|| digits.into_iter().map(|(_, var)| var).collect())
    }

    /// The iterations that loops run, and whether the set holds just these. A bound that depends on
    /// data or multiplies variables is taken to hold, and the set is then a superset.
    fn iterations(&self, coordinates: &Coordinates<InNest>) -> (Set, bool) {
        let bounds = coordinates.vars().flat_map(|var| {
            let own = self.loop_of(var);
            let last = own.extent.sub(&IndexExpr::var(var)).offset(-1);
            [IndexExpr::var(var), last].into_iter().chain(own.guards.iter().cloned())
        });
        coordinates.all_nonnegative(&bounds.collect::<Vec<_>>())
    }

    /// Returns true when the tensor's own subscripts do not identify its elements: its buffer is
    /// allocated anew in every iteration of a loop, or it is not in memory at all. The step that
    /// made the tensor private has already checked its reads.
    fn has_private_elements(&self, tensor: BufferId) -> bool {
        let buffer = &self.buffers[tensor.index()];
        buffer.is_removed || buffer.allocated_at.is_some()
    }
}

/// The parallel units of a GPU.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UnitKind {
    Thread,
    Block,
}

struct DependenceCheck<'a> {
    draft: &'a Draft<'a>,
    context: Context,
    model: Model<'a>,
}

/// The instances of one program statement that a statement of the draft executes.
struct Execution {
    id: StatementId,
    /// The loops around the draft's statement, outermost first.
    path: Vec<LoopVarId>,
    /// The number of the program's statement.
    statement: usize,
    /// Whether these instances were inlined into the draft's statement.
    is_inlined: bool,
    /// The map from iterations of the loops to instances.
    instances: Map,
}

impl DependenceCheck<'_> {
    fn first_violation(&self, moved: &[StatementId]) -> Answer<Option<String>> {
        let all = self.executions(moved);
        for first in &all {
            for second in &all {
                if !moved.contains(&first.id) && !moved.contains(&second.id) {
                    continue;
                }
                for dependence in between(&self.model, first.statement, second.statement)? {
                    if let Some(pair) = self.violating_pair(first, second, &dependence)? {
                        return Ok(Some(self.describe(&dependence, pair)));
                    }
                }
            }
        }
        Ok(None)
    }

    /// The instances that the moved statements execute, and those that may depend on them.
    fn executions(&self, moved: &[StatementId]) -> Vec<Execution> {
        let executed = |id: StatementId| self.draft.statement(id).instances.iter().map(|own| own.statement);
        let all_moved: Vec<usize> = moved.iter().flat_map(|id| executed(*id)).collect();
        let concerns = |instance: &Instance| {
            all_moved.iter().any(|own| self.model.share_a_written_tensor(*own, instance.statement))
        };
        let statements = self.draft.statements_in(self.draft.children(Parent::Body));
        let execution = |id: StatementId| {
            let path = self.draft.path(id);
            let coordinates = coordinates(&self.context, &path);
            // A superset is safe here: it can only add pairs of instances that are out of order.
            let (iterations, _) = self.draft.iterations(&coordinates);
            let of = move |(at, instance): (usize, &Instance)| {
                let instances = self.instances(&coordinates, instance).intersect_domain(&iterations);
                let (path, is_inlined) = (path.clone(), at > 0);
                Execution { id, path, statement: instance.statement, is_inlined, instances }
            };
            let instances = self.draft.statement(id).instances.iter().enumerate();
            instances.filter(|(_, instance)| concerns(instance)).map(of).collect::<Vec<_>>()
        };
        statements.into_iter().flat_map(execution).collect()
    }

    /// The map from iterations to instances. A variable whose value is not known may take any
    /// value.
    fn instances(&self, coordinates: &Coordinates<InNest>, instance: &Instance) -> Map {
        let start = Map::from_functions(&self.context, coordinates.len(), &[]);
        instance.point.iter().fold(start, |map, value| {
            let value = value.as_ref().and_then(|value| coordinates.affine(value));
            map.flat_range_product(&match value {
                Some(value) => Map::from_functions(&self.context, coordinates.len(), &[value]),
                None => Map::universe(&self.context, coordinates.len(), 1),
            })
        })
    }

    /// Returns two instances that depend on each other and that the draft does not run in order.
    fn violating_pair(
        &self,
        first: &Execution,
        second: &Execution,
        dependence: &Dependence,
    ) -> Answer<Option<(Vec<i64>, Vec<i64>)>> {
        if self.draft.has_private_elements(Draft::buffer_of(dependence.tensor))
            || self.writes_elsewhere(first, dependence.tensor)
            || self.writes_elsewhere(second, dependence.tensor)
            || dependence.relaxed && !self.is_concurrent(first)
        {
            return Ok(None);
        }
        let there = first.instances.apply_range(&dependence.pairs);
        let pairs = there.apply_range(&second.instances.reverse());
        let Some(pairs) = self.without_replaced(pairs, (first, second), dependence) else { return Ok(None) };
        // A reduction that resets its elements changes them before all of its reduction loops.
        let begins = dependence.kind != DependenceKind::Flow && !dependence.relaxed && self.resets(second);
        let broken = pairs.subtract(&self.in_order(first, second, begins));
        let Some((iteration, other)) = broken.sample()? else { return Ok(None) };
        let of = |execution: &Execution, iteration: Vec<i64>| -> Answer<Set> {
            Ok(self.point(&iteration).apply(&execution.instances))
        };
        let both = Map::from_domain_and_range(&of(first, iteration)?, &of(second, other)?)
            .intersect(&dependence.pairs);
        both.sample()
    }

    /// The set that holds this one vector.
    fn point(&self, values: &[i64]) -> Set {
        let universe = Set::universe(&self.context, values.len());
        values.iter().enumerate().fold(universe, |set, (at, value)| {
            let coordinate = Affine::variable(&self.context, values.len(), at);
            set.intersect(&coordinate.offset(-value).zero_set())
        })
    }

    /// Returns true when instances that write this tensor in the program write no element of it
    /// here: a `clone` computes them again, for another buffer.
    fn writes_elsewhere(&self, execution: &Execution, tensor: TensorId) -> bool {
        let statement = self.draft.statement(execution.id);
        let is_clone = statement.target.tensor != Draft::buffer_of(tensor) && !statement.is_partial;
        let is_own = self.model.statements[execution.statement].statement.target == tensor;
        is_own && statement.scan.is_none() && (is_clone || execution.is_inlined)
    }

    /// Returns true when several iterations around a statement may run at the same time.
    fn is_concurrent(&self, execution: &Execution) -> bool {
        execution.path.iter().any(|var| !runs_in_order(self.draft.loop_of(*var).kind))
    }

    /// Returns true when a statement sets its elements to the neutral element.
    fn resets(&self, execution: &Execution) -> bool {
        !execution.is_inlined
            && self.draft.statement(execution.id).reduction().is_some_and(|(_, resets)| resets)
    }

    /// The pairs of iterations of which the first ends before the second begins. With `begins`, the
    /// first must end before the reduction loops of the second begin.
    fn in_order(&self, first: &Execution, second: &Execution, before_reduction: bool) -> Map {
        let both = first.path.iter().zip(&second.path);
        let common = both.take_while(|(own, other)| own == other).count();
        let is_reduced = |var: &LoopVarId| before_reduction && self.draft.is_reduced_by(*var, second.id);
        let sizes = (first.path.len(), second.path.len());
        let mut equal = Map::universe(&self.context, sizes.0, sizes.1);
        let mut found = Map::empty(&self.context, sizes.0, sizes.1);
        // A loop over threads has no barrier inside, and blocks never wait for each other. Loops
        // further in therefore order only the iterations of one thread, or of one block.
        let mut units: Vec<UnitKind> = Vec::new();
        for at in 0..common {
            if is_reduced(&first.path[at]) {
                return found;
            }
            let kind = self.draft.loop_of(first.path[at]).kind;
            if runs_in_order(kind) {
                let earlier = equal.where_less(at, at);
                let of_one = |pairs, unit: &UnitKind| self.on_same_unit(*unit, pairs, (first, second), at);
                found = found.union(&units.iter().fold(earlier, of_one));
            }
            match kind {
                LoopKind::Thread(_) => units.push(UnitKind::Thread),
                LoopKind::Block(_) => units.push(UnitKind::Block),
                LoopKind::Serial | LoopKind::Unrolled | LoopKind::Parallel | LoopKind::Vector => {}
            }
            equal = equal.where_equal(at, at);
        }
        let is_earlier = match first.id == second.id {
            // A statement computes its value before it stores it. A reduction is the exception: it
            // resets its element first.
            true => {
                first.is_inlined && !second.is_inlined && self.draft.statement(first.id).reduction().is_none()
            }
            false => self.draft.execution_position(first.id) < self.draft.execution_position(second.id),
        };
        if is_earlier { found.union(&equal) } else { found }
    }

    /// Keeps the pairs of iterations that run on the same thread, or in the same block, judged by
    /// the loops over threads or blocks from depth `at` inwards. A statement without such a loop
    /// along an axis runs on the first thread, or in the first block, of that axis.
    fn on_same_unit(
        &self,
        unit: UnitKind,
        pairs: Map,
        (first, second): (&Execution, &Execution),
        at: usize,
    ) -> Map {
        let along = |execution: &Execution, axis: Axis| {
            let kind = match unit {
                UnitKind::Thread => LoopKind::Thread(axis),
                UnitKind::Block => LoopKind::Block(axis),
            };
            let mut inside = execution.path.iter().enumerate().skip(at);
            inside.find(|(_, var)| self.draft.loop_of(**var).kind == kind).map(|(at, _)| at)
        };
        let first_thread = |execution: &Execution, at: usize| {
            Affine::variable(&self.context, execution.path.len(), at).zero_set()
        };
        Axis::ALL.into_iter().fold(pairs, |pairs, axis| match (along(first, axis), along(second, axis)) {
            (Some(own), Some(other)) => pairs.where_equal(own, other),
            (Some(own), None) => pairs.intersect_domain(&first_thread(first, own)),
            (None, Some(other)) => pairs.intersect_range(&first_thread(second, other)),
            (None, None) => pairs,
        })
    }

    fn describe(&self, dependence: &Dependence, (first, second): (Vec<i64>, Vec<i64>)) -> String {
        let name = |statement: usize, values: &[i64]| {
            let own = &self.model.statements[statement];
            let target = &self.draft.program.tensor(own.statement.target).name;
            let statements = self.draft.program.statements();
            let before = statements[..statement]
                .iter()
                .filter(|(other, _)| other.target == own.statement.target)
                .count();
            let name = crate::step::StatementName { tensor: target.clone(), ordinal: before + 1 };
            match values {
                [] => format!("`{name}`"),
                _ => format!("`{name}` at {}", text::describe_instance(&self.model, own, values)),
            }
        };
        let tensor = &self.draft.program.tensor(dependence.tensor).name;
        let (first, second) = (name(dependence.from, &first), name(dependence.to, &second));
        match dependence.kind {
            _ if dependence.relaxed => {
                format!("{first} and {second} are reduced into one element of `{tensor}`")
            }
            DependenceKind::Flow => format!("{second} must read `{tensor}` after {first} has written it"),
            DependenceKind::Anti => format!("{second} must change `{tensor}` after {first} has read it"),
            DependenceKind::Output => format!("{second} must write `{tensor}` after {first} has written it"),
        }
    }
}

fn coordinates(context: &Context, path: &[LoopVarId]) -> Coordinates<InNest> {
    let mut coordinates = Coordinates::new(context);
    path.iter().for_each(|var| coordinates.add(*var, None));
    coordinates
}

/// Returns true when an iteration of a loop of this kind ends before the next begins.
fn runs_in_order(kind: LoopKind) -> bool {
    matches!(kind, LoopKind::Serial | LoopKind::Unrolled)
}
