//! Writes vector loops lane by lane, with one load or store for several neighbouring elements. A
//! lane is one iteration of a vector loop.
//!
//! Lanes that load or store neighbouring elements, starting at a multiple of their number, share
//! one access of a vector type. Each lane uses one component of the vector. All other operations
//! are written out lane by lane:
//!
//! ```text
//! for lane in 4: C[4*i + lane] = A[4*i + lane] * b[i]
//!   →   const float4 A_lanes = *(const float4*)&A[4 * i];
//!       float4 C_results;
//!       C_results.x = A_lanes.x * b[i];
//!       …
//!       *(float4*)&C[4 * i] = C_results;
//! ```
//!
//! A compiler cannot do this by itself, since it does not know the alignment of tensors. Here,
//! tensors begin at a multiple of the widest access.
//!
//! Lanes do not depend on each other, so all lanes finish a statement before the next one. A load
//! is moved before its statement only if every lane executes it. A load behind a condition may be
//! out of range where the condition fails, so it stays behind the condition. This module does not
//! handle loops whose lanes take different branches or contain loops of their own.

use std::collections::BTreeSet;

use tilewright_ir::DType;
use tilewright_ir::nest::{
    Access, Atom, BufferId, Expr, ExprKind, For, IndexExpr, LoopKind, LoopVarId, Scope, Stmt, Store,
};

use super::c_expr::CExpr;
use super::lane_vector::LaneVector;
use super::stmt::{Emit, Emitter};

/// The maximum number of lanes that are written out one by one.
const MAX_LANES: i64 = 16;

/// The elements that the lanes of a statement have loaded, and the names in use for them.
#[derive(Default)]
pub(super) struct LoadedLanes {
    loaded: Vec<(Access, String)>,
    /// The words of narrow elements, by their first elements.
    words: Vec<(Access, String)>,
    names: BTreeSet<String>,
}

impl LoadedLanes {
    /// The name of the vector component that holds an element.
    pub(super) fn find(&self, access: &Access) -> Option<&str> {
        let found = self.loaded.iter().find(|(own, _)| own == access);
        found.map(|(_, name)| name.as_str())
    }

    /// The name of the word that begins with an element.
    pub(super) fn find_word(&self, first: &Access) -> Option<&str> {
        let found = self.words.iter().find(|(own, _)| own == first);
        found.map(|(_, name)| name.as_str())
    }

    /// Adds words of narrow elements, by their first elements.
    pub(super) fn add_words(&mut self, words: impl Iterator<Item = (Access, String)>) {
        self.words.extend(words);
    }
}

/// The variable and the number of lanes of a vector loop.
#[derive(Clone, Copy)]
pub(super) struct VectorLoop {
    pub(super) lane: LoopVarId,
    pub(super) lanes: i64,
}

/// An access of all lanes, split into vector accesses of neighbouring elements.
pub(super) struct WideAccess {
    pub(super) vector: LaneVector,
    /// The first element of each vector access.
    pub(super) first_elements: Vec<Access>,
}

/// A copy of several elements at once.
struct WideCopy<'s> {
    from: WideAccess,
    to: WideAccess,
    /// A condition that is the same for all lanes, and the value that is stored where it does not
    /// hold.
    guard: Option<(&'s Expr, &'s Expr)>,
}

impl WideAccess {
    /// The lanes of one vector access, each with its place in the vector.
    fn lanes(&self, part: usize) -> impl Iterator<Item = (i64, usize)> + use<> {
        let first = part as i64 * self.vector.width;
        (first..first + self.vector.width).zip(0..)
    }
}

impl Emitter<'_> {
    /// Writes a vector loop lane by lane with vector accesses. Returns false, and writes nothing,
    /// if no access can be widened.
    pub(super) fn vector_loop(&mut self, inner: &For) -> Emit<bool> {
        let vector = VectorLoop { lane: inner.var, lanes: inner.extent.as_constant().unwrap_or(0) };
        let written_here = vector.lanes <= MAX_LANES && has_uniform_stores(&inner.body, vector.lane);
        if !written_here || !self.has_wide_access(&inner.body, vector) {
            return Ok(false);
        }
        self.in_first_threads(|this| this.lane_stmts(&inner.body, vector))?;
        Ok(true)
    }

    /// Whether a vector loop has a wide load that the compiler could not form by itself. The
    /// compiler can form wide loads from shared memory, since it knows where shared buffers begin.
    pub(super) fn has_profitable_wide_load(&self, inner: &For) -> bool {
        let vector = VectorLoop { lane: inner.var, lanes: inner.extent.as_constant().unwrap_or(0) };
        let shared = |access: &Access| self.unit.nest.buffer(access.tensor).scope == Scope::Shared;
        let [Stmt::Store(store)] = inner.body.as_slice() else { return false };
        inner.kind == LoopKind::Vector && self.wide_loads(store, vector).iter().any(|(load, _)| !shared(load))
    }

    /// Whether at least one access becomes a vector access.
    fn has_wide_access(&self, stmts: &[Stmt], vector: VectorLoop) -> bool {
        stmts.iter().any(|stmt| match stmt {
            Stmt::Store(store) => {
                self.wide_target(store, vector).is_some() || !self.wide_loads(store, vector).is_empty()
            }
            Stmt::If(conditional) => {
                self.has_wide_access(&conditional.then, vector)
                    || self.has_wide_access(&conditional.otherwise, vector)
            }
            _ => false,
        })
    }

    /// The vector accesses that a store makes, if it can. An atomic store updates each element by
    /// itself.
    fn wide_target(&self, store: &Store, vector: VectorLoop) -> Option<WideAccess> {
        if store.is_atomic { None } else { self.wide_access(&store.target, vector) }
    }

    fn lane_stmts(&mut self, stmts: &[Stmt], vector: VectorLoop) -> Emit<()> {
        stmts.iter().try_for_each(|stmt| match stmt {
            Stmt::Store(store) => self.store_lanes(store, vector),
            Stmt::If(conditional) => {
                self.conditional(conditional, &mut |this, stmts| this.lane_stmts(stmts, vector))
            }
            _ => Ok(()),
        })
    }

    fn store_lanes(&mut self, store: &Store, vector: VectorLoop) -> Emit<()> {
        if let Some(copy) = self.wide_copy(store, vector) {
            return self.copy_lanes(store, &copy);
        }
        if store.is_asynchronous && self.unit.has_async_copies {
            return self.store_lane_by_lane(store, vector);
        }
        let target = self.wide_target(store, vector);
        if let Some(wide) = &target
            && self.store_packed(store, wide, vector)?
        {
            return Ok(());
        }
        let loads = self.wide_loads(store, vector);
        if loads.is_empty() && target.is_none() {
            return self.store_lane_by_lane(store, vector);
        }
        self.open("");
        for (load, wide) in &loads {
            self.load_lanes(load, wide, vector)?;
        }
        match target {
            Some(wide) => self.store_vectors(store, &wide, vector)?,
            None => self.store_lane_by_lane(store, vector)?,
        }
        self.close();
        self.lanes = LoadedLanes::default();
        Ok(())
    }

    /// Writes a separate store for each lane.
    fn store_lane_by_lane(&mut self, store: &Store, vector: VectorLoop) -> Emit<()> {
        (0..vector.lanes).try_for_each(|lane| {
            let (target, value) =
                (access_at_lane(&store.target, vector.lane, lane), value_at_lane(store, vector, lane));
            self.store(&Store {
                target,
                value,
                reduce: store.reduce,
                is_asynchronous: store.is_asynchronous,
                is_atomic: store.is_atomic,
                claim: None,
            })
        })
    }

    fn load_lanes(&mut self, load: &Access, wide: &WideAccess, vector: VectorLoop) -> Emit<()> {
        for (part, first) in wide.first_elements.iter().enumerate() {
            let name = self.lane_name(load.tensor, "lanes");
            let place = self.wide_element(first, wide.vector, "const ")?;
            let declaration = wide.vector.declaration(self.unit.dialect, &name, Some(place.text()));
            self.line(&format!("const {declaration}"));
            let element =
                |(lane, at)| (access_at_lane(load, vector.lane, lane), wide.vector.element(&name, at));
            self.lanes.loaded.extend(wide.lanes(part).map(element));
        }
        Ok(())
    }

    /// Writes the values of all lanes into vectors, and stores each vector at once.
    fn store_vectors(&mut self, store: &Store, wide: &WideAccess, vector: VectorLoop) -> Emit<()> {
        for (part, first) in wide.first_elements.iter().enumerate() {
            let name = self.lane_name(store.target.tensor, "results");
            let place = self.wide_element(first, wide.vector, "")?;
            let before = store.reduce.map(|_| place.text());
            self.line(&wide.vector.declaration(self.unit.dialect, &name, before));
            for (lane, at) in wide.lanes(part) {
                let lane_store = Store { value: value_at_lane(store, vector, lane), ..store.clone() };
                let stored = self.stored_value(&lane_store)?;
                self.store_value_at(CExpr::atom(wide.vector.element(&name, at)), store, stored);
            }
            self.line(&format!("{} = {};", place.text(), wide.vector.whole(&name)));
        }
        Ok(())
    }

    /// Returns a store as a copy, if it is one and both sides split into the same vector accesses.
    fn wide_copy<'s>(&self, store: &'s Store, vector: VectorLoop) -> Option<WideCopy<'s>> {
        let (source, guard) = match &store.value.kind {
            ExprKind::Select(arms) if !arms[0].mentions(vector.lane) => {
                (&arms[1], Some((&arms[0], &arms[2])))
            }
            _ => (&store.value, None),
        };
        let (ExprKind::Load(source), None) = (&source.kind, store.reduce) else { return None };
        let (from, to) = (self.wide_access(source, vector)?, self.wide_access(&store.target, vector)?);
        // Any non-zero byte is a true `bool`, so a copy of bytes could differ from a store of
        // values.
        let same = from.vector == to.vector && to.vector.dtype != DType::Bool;
        let constant = guard.is_none_or(|(_, outside)| matches!(outside.kind, ExprKind::Literal(_)));
        (same && constant).then_some(WideCopy { from, to, guard })
    }

    fn copy_lanes(&mut self, store: &Store, copy: &WideCopy<'_>) -> Emit<()> {
        let WideCopy { from, to, guard } = copy;
        for (from, target) in from.first_elements.iter().zip(&to.first_elements) {
            if store.is_asynchronous && self.unit.has_async_copies {
                let dtype = store.value.dtype;
                let load = Expr { dtype, kind: ExprKind::Load(from.clone()) };
                let value = match guard {
                    Some((condition, outside)) => {
                        let arms = [(*condition).clone(), load, (*outside).clone()];
                        Expr { dtype, kind: ExprKind::Select(Box::new(arms)) }
                    }
                    None => load,
                };
                self.copy_async(target, &value, to.vector.bytes())?;
                continue;
            }
            let from = self.wide_element(from, to.vector, "const ")?;
            let target = self.wide_element(target, to.vector, "")?;
            match guard {
                Some((condition, outside)) => self.copy_guarded((&from, &target), condition, outside, to)?,
                None => self.line(&format!("{} = {};", target.text(), from.text())),
            }
        }
        Ok(())
    }

    /// Copies one vector where a condition holds, and stores a constant in each component
    /// elsewhere.
    fn copy_guarded(
        &mut self,
        (from, target): (&CExpr, &CExpr),
        condition: &Expr,
        outside: &Expr,
        to: &WideAccess,
    ) -> Emit<()> {
        let name = self.lane_name(to.first_elements[0].tensor, "lanes");
        let (condition, outside) = (self.value(condition)?, self.value(outside)?);
        self.open("");
        self.line(&to.vector.declaration(self.unit.dialect, &name, None));
        for (_, at) in to.lanes(0) {
            self.line(&format!("{} = {};", to.vector.element(&name, at), outside.text()));
        }
        let whole = to.vector.whole(&name);
        self.line(&format!("if ({}) {whole} = {};", condition.text(), from.text()));
        self.line(&format!("{} = {whole};", target.text()));
        self.close();
        self.lanes = LoadedLanes::default();
        Ok(())
    }

    /// `*(float4*)&A[…]`.
    pub(super) fn wide_element(&mut self, first: &Access, vector: LaneVector, constant: &str) -> Emit<CExpr> {
        let t = vector.access_type(self.unit.dialect);
        let space = match self.unit.nest.buffer(first.tensor).scope {
            Scope::Shared => self.unit.dialect.shared(),
            _ => self.unit.dialect.global(),
        };
        Ok(self.element(first)?.address().cast(&format!("{constant}{space}{t}*")).dereference())
    }

    pub(super) fn lane_name(&mut self, tensor: BufferId, suffix: &str) -> String {
        let like = format!("{}_{suffix}", self.unit.names.buffer(tensor));
        self.unit.names.new_local(&like, &mut self.lanes.names)
    }

    /// The loads of a store that every lane executes and that can be vector accesses.
    fn wide_loads(&self, store: &Store, vector: VectorLoop) -> Vec<(Access, WideAccess)> {
        // Loads run before the store, unless a lane could load an element that another lane has
        // stored.
        let target = &store.target;
        let loads = store.value.certain_loads().into_iter();
        let loads = loads.filter(|load| load.tensor != target.tensor || *load == target);
        loads.filter_map(|load| Some((load.clone(), self.wide_access(load, vector)?))).collect()
    }

    /// Splits an access into as few vector accesses as possible. The lanes must be neighbours, in
    /// memory that is not private to the thread.
    fn wide_access(&self, access: &Access, vector: VectorLoop) -> Option<WideAccess> {
        let buffer = self.unit.nest.buffer(access.tensor);
        if buffer.scope != Scope::Shared && !self.unit.is_parameter(access.tensor) {
            return None;
        }
        LaneVector::that_divide(buffer.dtype, vector.lanes).find_map(|own| {
            let starts = (0..vector.lanes / own.width).map(|part| part * own.width);
            let firsts = starts.map(|start| self.aligned(access, vector.lane, start, own.width));
            let first_elements = firsts.collect::<Option<Vec<Access>>>()?;
            Some(WideAccess { vector: own, first_elements })
        })
    }

    /// The element of lane `start`, if the `lanes` lanes from there on are neighbours and the
    /// element's offset is a multiple of `lanes`.
    pub(super) fn aligned(&self, access: &Access, lane: LoopVarId, start: i64, lanes: i64) -> Option<Access> {
        let from_start = IndexExpr::var(lane).offset(start);
        let access = separate_lane(&substitute_lane_in_access(access, lane, &from_start), lane, lanes);
        let (step, first) = self.place(&access, lanes)?.split_on(&Atom::Var(lane))?;
        let aligned = step.as_constant() == Some(1) && !first.mentions(lane) && first.is_multiple_of(lanes);
        let by_lane = access.indices.iter().any(|index| index.has_data() && index.mentions(lane));
        (aligned && !by_lane).then(|| access_at_lane(&access, lane, 0))
    }

    /// The distance in memory of the elements of neighbouring lanes, if it is a number.
    pub(super) fn lane_step(&self, access: &Access, lane: LoopVarId) -> Option<i64> {
        let by_lane = access.indices.iter().any(|index| index.has_data() && index.mentions(lane));
        let (step, first) = self.place(access, 1)?.split_on(&Atom::Var(lane))?;
        step.as_constant().filter(|_| !by_lane && !first.mentions(lane))
    }

    /// Whether the offset of an element is a multiple of `count`.
    pub(super) fn begins_at_multiple(&self, element: &Access, count: i64) -> bool {
        self.place(element, count).is_some_and(|place| place.is_multiple_of(count))
    }

    /// The offset of an element, without the subscripts that depend on data. They must move it by a
    /// multiple of `count`.
    fn place(&self, access: &Access, count: i64) -> Option<IndexExpr> {
        let mut place = IndexExpr::constant(0);
        for (index, stride) in access.indices.iter().zip(self.unit.thread_strides(access.tensor)) {
            match index.has_data() {
                false => place = place.add(&index.scale(stride)),
                true if stride % count != 0 => return None,
                true => {}
            }
        }
        Some(place.merge_quotients())
    }
}

/// Whether the statements are only stores, each executed by all lanes or by none.
fn has_uniform_stores(stmts: &[Stmt], lane: LoopVarId) -> bool {
    stmts.iter().all(|stmt| match stmt {
        Stmt::Store(_) => true,
        Stmt::If(conditional) => {
            let same_for_all = !conditional.conditions.iter().any(|condition| condition.mentions(lane));
            same_for_all
                && has_uniform_stores(&conditional.then, lane)
                && has_uniform_stores(&conditional.otherwise, lane)
        }
        _ => false,
    })
}

pub(super) fn access_at_lane(access: &Access, lane: LoopVarId, at: i64) -> Access {
    substitute_lane_in_access(access, lane, &IndexExpr::constant(at))
}

/// The value that lane `at` stores.
fn value_at_lane(store: &Store, vector: VectorLoop, at: i64) -> Expr {
    let mut value = store.value.clone();
    value.map_indices(&mut |index| substitute_lane(index, vector.lane, &IndexExpr::constant(at)));
    value
}

/// An access with `replacement` substituted for its lane variable.
fn substitute_lane_in_access(access: &Access, lane: LoopVarId, replacement: &IndexExpr) -> Access {
    let indices = access.indices.iter().map(|index| substitute_lane(index, lane, replacement)).collect();
    Access { indices, ..access.clone() }
}

fn substitute_lane(index: &IndexExpr, lane: LoopVarId, replacement: &IndexExpr) -> IndexExpr {
    index.substitute(&mut |atom| (*atom == Atom::Var(lane)).then(|| replacement.clone()))
}

/// Moves the lane variable out of quotients and remainders, where the lanes begin at a multiple of
/// their number: `(4*t + lane) % 128` becomes `4*t % 128 + lane`.
fn separate_lane(access: &Access, lane: LoopVarId, lanes: i64) -> Access {
    let alone = |atom: &Atom| {
        let (Atom::FloorDiv(pair) | Atom::Mod(pair)) = atom else { return None };
        let (step, first) = pair.0.split_on(&Atom::Var(lane))?;
        let by = pair.1.as_constant()?;
        let whole = step.as_constant() == Some(1) && by % lanes == 0 && first.is_multiple_of(lanes);
        whole.then(|| match atom {
            Atom::FloorDiv(_) => first.floor_div(&pair.1),
            _ => first.modulo(&pair.1).add(&IndexExpr::var(lane)),
        })
    };
    let indices = access.indices.iter().map(|index| index.substitute(&mut |atom| alone(atom))).collect();
    Access { indices, ..access.clone() }
}
