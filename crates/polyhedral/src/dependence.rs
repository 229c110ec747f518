//! Finds the dependences of a [`Model`], and the statement that made each value which a program
//! reads.
//!
//! A dependence is a pair of instances that touch one element, at least one of which writes it. The
//! second instance runs after the first in the program, and must do so in every loop nest. There
//! are three kinds. In a *flow* dependence the second instance reads what the first has written. In
//! an *anti* dependence the second instance overwrites what the first has read. In an *output*
//! dependence the second instance overwrites what the first has written. Instances of one reduction
//! that are reduced into the same element may run in any order, one at a time: such a dependence is
//! *relaxed*.
//!
//! Dependences are *by instance*: they relate all such pairs, even if another instance writes the
//! element in between. [`Flow`] is *by value*: it relates a read to the statement whose value the
//! read sees.

use tilewright_ir::TensorId;
use tilewright_isl::{Accesses, Affine, Answer, Context, Map, Set};

use crate::model::{AccessRelation, Instances, Model};

/// The kind of a dependence between two instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DependenceKind {
    /// The second instance reads what the first has written.
    Flow,
    /// The second instance overwrites what the first has read.
    Anti,
    /// The second instance overwrites what the first has written.
    Output,
}

/// The instances of one statement that depend on instances of another or of the same statement.
#[derive(Clone, Debug)]
pub struct Dependence {
    /// The kind of the dependence.
    pub kind: DependenceKind,
    /// The statement whose instances run first.
    pub from: usize,
    /// The statement whose instances run later.
    pub to: usize,
    /// The tensor that both touch.
    pub tensor: TensorId,
    /// The pairs of instances, from first to second.
    pub pairs: Map,
    /// Whether exactly these pairs depend on each other; otherwise data decides which of these
    /// pairs do.
    pub exact: bool,
    /// Whether both instances are updates of one reduction. Such updates may run in any order, but
    /// not at the same time.
    pub relaxed: bool,
}

/// Finds all dependences of a program, by instance.
pub fn dependences(model: &Model) -> Answer<Vec<Dependence>> {
    let mut found = Vec::new();
    for from in 0..model.statements.len() {
        for to in 0..model.statements.len() {
            found.extend(between(model, from, to)?);
        }
    }
    Ok(found)
}

/// Finds the dependences between the instances of two statements, which may be the same statement.
pub fn between(model: &Model, from: usize, to: usize) -> Answer<Vec<Dependence>> {
    let mut found = Vec::new();
    if !model.share_a_written_tensor(from, to) {
        return Ok(found);
    }
    let (a, b) = (&model.statements[from], &model.statements[to]);
    if !may_precede(a, b, from <= to) {
        return Ok(found);
    }
    let before = model.before(from, to);
    let mut add = |kind, first: &AccessRelation, second: &AccessRelation| -> Answer<()> {
        if first.tensor != second.tensor {
            return Ok(());
        }
        let pairs = first.elements.apply_range(&second.elements.reverse()).intersect(&before).coalesce();
        if !pairs.is_empty()? {
            let exact = first.exact && second.exact;
            found.push(Dependence { kind, from, to, tensor: first.tensor, pairs, exact, relaxed: false });
        }
        Ok(())
    };
    b.reads.iter().try_for_each(|read| add(DependenceKind::Flow, &a.write, read))?;
    a.reads.iter().try_for_each(|read| add(DependenceKind::Anti, read, &b.write))?;
    add(DependenceKind::Output, &a.write, &b.write)?;
    if from == to {
        found.extend(reduction_dependence(a, from)?);
    }
    Ok(found)
}

fn may_precede(a: &Instances, b: &Instances, in_text: bool) -> bool {
    in_text || a.common_loops(b) > 0
}

/// Pairs of instances of one reduction, in the same iteration of the loops around, that are reduced
/// into one element. Each pair is given in one of its two orders only.
fn reduction_dependence(own: &Instances, at: usize) -> Answer<Option<Dependence>> {
    if !own.is_reduction() {
        return Ok(None);
    }
    let (context, all) = (own.domain.context(), own.coordinates.len());
    let mut pairs = own.write.elements.apply_range(&own.write.elements.reverse());
    pairs = (0..own.loops.len()).fold(pairs, |pairs, at| pairs.where_equal(at, at));
    let pairs = pairs.intersect(&Map::lex_less(context, all)).coalesce();
    if pairs.is_empty()? {
        return Ok(None);
    }
    let (tensor, exact) = (own.write.tensor, own.write.exact);
    Ok(Some(Dependence {
        kind: DependenceKind::Output,
        from: at,
        to: at,
        tensor,
        pairs,
        exact,
        relaxed: true,
    }))
}

/// The origin of the value that a read sees: one statement in one iteration of the loops around it.
///
/// All instances of a statement in one such iteration that are reduced into an element make one
/// *version* of the element. The statement, the values of the loops around it, and the element
/// identify a version.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The reader.
    pub reader: Reader,
    /// The statement that has written the value; `None` if the caller supplied it or nothing wrote
    /// it.
    pub writer: Option<usize>,
    /// Maps instances of the reader to versions: the values of the loops around the writer, then
    /// the element. Without a writer a version is only the element.
    pub versions: Map,
}

/// The reader of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// A statement, and the number of one of its reads.
    Read(usize, usize),
    /// A reduction that starts from the element's previous value.
    Update(usize),
    /// The caller, after the last statement. An instance is the element itself.
    Caller(TensorId),
}

/// Finds the version that each read of a program sees. A write whose element depends on data counts
/// as a write of all elements that it may touch. This is exact for a reduction into them: each
/// element gets a new version.
pub fn flows(context: &Context, model: &Model) -> Answer<Vec<Flow>> {
    let depth = model.statements.iter().map(|own| own.loops.len()).max().unwrap_or(0);
    let mut accesses = Accesses::new(context);
    for own in model.statements.iter() {
        let versions = versions(own);
        let elements = versions.identity().project_out_outputs(0, own.loops.len());
        let times = time(context, own, own.loops.len() + rank(model, own.write.tensor), depth);
        accesses.add_write(own.write.tensor.index(), &elements, &times.intersect_domain(&versions));
    }
    let mut readers = Vec::new();
    for (at, own) in model.statements.iter().enumerate() {
        let times = time(context, own, own.coordinates.len(), depth).intersect_domain(&own.domain);
        for (number, read) in own.reads.iter().enumerate() {
            accesses.add_read(read.tensor.index(), &read.elements, &times);
            readers.push(Reader::Read(at, number));
        }
        if own.needs_previous_value() {
            accesses.add_read(own.write.tensor.index(), &own.write.elements, &times);
            readers.push(Reader::Update(at));
        }
    }
    for (tensor, _) in model.program.tensors_with(|role| role.is_result()) {
        let elements = model.elements(context, tensor);
        let dimensions = rank(model, tensor);
        let end = Affine::constant(context, dimensions, i64::from(i32::MAX));
        let zero = Affine::constant(context, dimensions, 0);
        let times: Vec<Affine> = std::iter::once(end).chain(std::iter::repeat_n(zero, 2 * depth)).collect();
        let times = Map::from_functions(context, dimensions, &times).intersect_domain(&elements);
        accesses.add_read(tensor.index(), &elements.identity(), &times);
        readers.push(Reader::Caller(tensor));
    }
    let flow = accesses.flow()?;
    let mut found = Vec::new();
    for (number, writer, map) in flow.sources {
        found.push(Flow { reader: readers[number], writer: Some(writer), versions: map.reverse() });
    }
    for (number, versions) in flow.without_source {
        found.push(Flow { reader: readers[number], writer: None, versions });
    }
    Ok(found)
}

/// The versions that a statement makes: the values of the loops around it, and the element.
pub fn versions(own: &Instances) -> Set {
    version_of(own).range()
}

/// Maps instances of a statement to the version that each instance is a part of.
pub fn version_of(own: &Instances) -> Map {
    let inner = own.coordinates.len() - own.loops.len();
    own.domain.identity().project_out_outputs(own.loops.len(), inner).flat_range_product(&own.write.elements)
}

fn rank(model: &Model, tensor: TensorId) -> usize {
    model.program.tensor(tensor).shape.len()
}

/// Maps vectors to the time at which the statement runs. The vectors have `coordinates` coordinates
/// and begin with the loops around the statement.
fn time(context: &Context, own: &Instances, coordinates: usize, depth: usize) -> Map {
    let number = |value: usize| Affine::constant(context, coordinates, value as i64);
    let mut parts = Vec::new();
    for at in 0..=depth {
        parts.push(number(own.position(at)));
        if at < depth {
            parts.push(match at < own.loops.len() {
                true => Affine::variable(context, coordinates, at),
                false => number(0),
            });
        }
    }
    Map::from_functions(context, coordinates, &parts)
}
