//! Lists the stores of a loop nest, each as a set of iterations with their times and the elements
//! that they touch ([`Site`]).
//!
//! A *memory location* of a buffer is an iteration of the loops around the buffer's allocation,
//! then the subscripts. A *time* is a vector of positions, sides of conditions and loop values,
//! from the outside in. Times are compared lexicographically. Read next: `order.rs`.

use std::cell::OnceCell;
use std::collections::HashMap;

use tilewright_ir::TensorId;
use tilewright_ir::ids::InNest;
use tilewright_ir::nest::{
    Access, BufferId, Combine, Expr, ExprKind, For, If, IndexExpr, LoopNest, Scope, Stmt, Store, Sync,
};
use tilewright_isl::{Affine, Context, Map, Set};

use super::order::TimedIterations;
use super::{ProofResult, undecided};
use crate::coordinates::Coordinates;

/// A loop nest, with a list of its stores.
pub struct Nest<'n> {
    /// The nest.
    pub nest: &'n LoopNest,
    /// The isl context of all sets and relations.
    pub context: Context,
    /// All stores, in the order of the text.
    pub sites: Vec<Site<'n>>,
    /// All synchronisation points of thread blocks, in the order of the text.
    pub syncs: Vec<SyncSite<'n>>,
    allocations: HashMap<BufferId, Allocation>,
    /// The number of coordinates of a time.
    pub depth: usize,
}

/// One store, with the loops and conditions around it.
pub struct Site<'n> {
    /// The store.
    pub store: &'n Store,
    /// The loops around the store, outermost first.
    pub loops: Vec<&'n For>,
    /// The variables of an iteration's coordinates.
    pub coordinates: Coordinates<InNest>,
    /// The iterations that run.
    pub domain: Set,
    /// The loads in the store's value and subscripts, in order and without duplicates.
    pub loads: Vec<&'n Access>,
    /// Whether the store combines the threads of its innermost loop. Each lane then reduces its
    /// value into the total.
    pub combines: bool,
    /// The time at which the store runs, from the outside in.
    pub time: Vec<TimeComponent>,
    /// The memory locations of the loads and of the target, computed on first use.
    locations: Vec<OnceCell<(Map, bool)>>,
    /// The times of the store's iterations, computed on first use.
    times: OnceCell<Map>,
}

/// A synchronisation point of the threads of a block.
pub struct SyncSite<'n> {
    /// The kind of synchronisation.
    pub sync: Sync,
    /// The loops around the point, outermost first.
    pub loops: Vec<&'n For>,
    coordinates: Coordinates<InNest>,
    domain: Set,
    time: Vec<TimeComponent>,
}

/// The allocation of a buffer.
struct Allocation {
    /// The number of loops around the allocation.
    loops: usize,
    /// The time of the allocation.
    time: Vec<TimeComponent>,
}

/// One component of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeComponent {
    /// The position of a statement among its siblings.
    Position(usize),
    /// The side of a condition that is taken.
    Side(bool),
    /// The iteration of a loop, as the number of the loop's coordinate.
    Loop(usize),
}

impl<'n> Nest<'n> {
    /// Collects the stores of a nest.
    pub fn new(context: &Context, nest: &'n LoopNest) -> ProofResult<Nest<'n>> {
        let mut walk = Walk { context, nest, ..Walk::new(context, nest) };
        for (phase, stmts) in [&nest.setup, &nest.body].into_iter().enumerate() {
            walk.time.push(TimeComponent::Position(phase));
            walk.stmts(stmts)?;
            walk.time.pop();
        }
        let times = walk.sites.iter().map(|site| &site.time).chain(walk.syncs.iter().map(|sync| &sync.time));
        let depth = times.map(Vec::len).max().unwrap_or(1);
        let Walk { sites, syncs, allocations, .. } = walk;
        Ok(Nest { nest, context: context.clone(), sites, syncs, allocations, depth })
    }

    /// Maps iterations of a store to the memory location of an accessed element: the loops around
    /// the buffer's allocation, then the subscripts. Subscripts that depend on data may have any
    /// value. Also returns whether no subscript depends on data.
    pub fn locations(&self, site: &Site, access: &Access) -> (Map, bool) {
        let known = match site.loads.iter().position(|own| std::ptr::eq(*own, access)) {
            Some(load) => &site.locations[load],
            None if std::ptr::eq(access, &site.store.target) => &site.locations[site.loads.len()],
            None => return self.compute_locations(site, access),
        };
        known.get_or_init(|| self.compute_locations(site, access)).clone()
    }

    fn compute_locations(&self, site: &Site, access: &Access) -> (Map, bool) {
        let (all, loops) = (site.coordinates.len(), self.loops_around_allocation(access.tensor));
        let outer = self.outer_iteration(all, loops);
        let shape = &self.nest.buffer(access.tensor).shape;
        let (places, exact) = site.coordinates.elements_after(&outer, &access.indices, shape);
        (places.intersect_domain(&site.domain), exact)
    }

    /// Maps iterations of a store to the allocation of a buffer: the iteration of the loops around
    /// the allocation.
    pub fn allocation_of(&self, site: &Site, buffer: BufferId) -> Map {
        let (all, loops) = (site.coordinates.len(), self.loops_around_allocation(buffer));
        Map::from_functions(&self.context, all, &self.outer_iteration(all, loops))
            .intersect_domain(&site.domain)
    }

    /// The first `loops` coordinates of vectors with `all` coordinates: the iteration of the
    /// outermost loops.
    pub fn outer_iteration(&self, all: usize, loops: usize) -> Vec<Affine> {
        (0..loops).map(|at| Affine::variable(&self.context, all, at)).collect()
    }

    /// The number of loops around a buffer's allocation. All of these loops are around every store
    /// to the buffer, too.
    pub fn loops_around_allocation(&self, buffer: BufferId) -> usize {
        self.allocations.get(&buffer).map_or(0, |room| room.loops)
    }

    /// Checks whether the allocation of one buffer is inside that of the other.
    pub fn have_nested_allocations(&self, one: BufferId, other: BufferId) -> bool {
        let [one, other] =
            [one, other].map(|buffer| self.allocations.get(&buffer).map_or(&[][..], |room| &room.time));
        one.starts_with(other) || other.starts_with(one)
    }

    /// Maps iterations of a store to times, which are compared lexicographically.
    pub fn times(&self, site: &Site) -> Map {
        let times = || self.times_in(&site.domain, site.coordinates.len(), &site.time);
        site.times.get_or_init(times).clone()
    }

    /// Maps iterations of a synchronisation point to times.
    pub fn sync_times(&self, sync: &SyncSite) -> Map {
        self.times_in(&sync.domain, sync.coordinates.len(), &sync.time)
    }

    fn times_in(&self, domain: &Set, all: usize, time: &[TimeComponent]) -> Map {
        let number = |value: usize| Affine::constant(&self.context, all, value as i64);
        let part = |at: usize| match time.get(at) {
            Some(TimeComponent::Position(place)) => number(*place),
            // No iteration takes both sides of a condition, so the order of the two sides does not
            // matter.
            Some(TimeComponent::Side(holds)) => number(usize::from(!holds)),
            Some(TimeComponent::Loop(at)) => Affine::variable(&self.context, all, *at),
            None => number(0),
        };
        let parts: Vec<Affine> = (0..self.depth).map(part).collect();
        Map::from_functions(&self.context, all, &parts).intersect_domain(domain)
    }

    /// Describes a store in text, with the values of its loops.
    pub fn describe(&self, site: &Site, values: &[i64]) -> String {
        let name = &self.nest.buffer(site.store.target.tensor).name;
        format!("the store to `{name}`{}", self.iteration(site, values))
    }

    /// The values of the loops around a store, as text to put after a noun.
    pub fn iteration(&self, site: &Site, values: &[i64]) -> String {
        let loops = site.loops.iter().zip(values);
        let loops: Vec<String> =
            loops.map(|(own, value)| format!("{}={value}", self.nest.var_name(own.var))).collect();
        match loops.is_empty() {
            true => String::new(),
            false => format!(" at ({})", loops.join(", ")),
        }
    }
}

impl SyncSite<'_> {
    /// The times at which threads reach the point.
    pub fn timed_iterations(&self) -> TimedIterations<'_> {
        TimedIterations { domain: &self.domain, time: &self.time, coordinates: self.coordinates.len() }
    }
}

impl Site<'_> {
    /// The times at which the store's iterations run.
    pub fn timed_iterations(&self) -> TimedIterations<'_> {
        TimedIterations { domain: &self.domain, time: &self.time, coordinates: self.coordinates.len() }
    }

    /// The number of outermost loops that both stores have in common.
    pub fn common_loops(&self, other: &Site) -> usize {
        let both = self.loops.iter().zip(&other.loops);
        both.take_while(|(own, other)| std::ptr::eq(**own, **other)).count()
    }
}

struct Walk<'a, 'n> {
    context: &'a Context,
    nest: &'n LoopNest,
    loops: Vec<&'n For>,
    conditions: Vec<(&'n If, bool)>,
    time: Vec<TimeComponent>,
    sites: Vec<Site<'n>>,
    syncs: Vec<SyncSite<'n>>,
    allocations: HashMap<BufferId, Allocation>,
}

impl<'a, 'n> Walk<'a, 'n> {
    fn new(context: &'a Context, nest: &'n LoopNest) -> Walk<'a, 'n> {
        Walk {
            context,
            nest,
            loops: Vec::new(),
            conditions: Vec::new(),
            time: Vec::new(),
            sites: Vec::new(),
            syncs: Vec::new(),
            allocations: HashMap::new(),
        }
    }

    fn stmts(&mut self, stmts: &'n [Stmt]) -> ProofResult<()> {
        for (place, stmt) in stmts.iter().enumerate() {
            self.time.push(TimeComponent::Position(place));
            self.stmt(stmt)?;
            self.time.pop();
        }
        Ok(())
    }

    fn stmt(&mut self, stmt: &'n Stmt) -> ProofResult<()> {
        match stmt {
            Stmt::For(own) => {
                self.time.push(TimeComponent::Loop(self.loops.len()));
                self.loops.push(own);
                self.stmts(&own.body)?;
                self.loops.pop();
                self.time.pop();
            }
            Stmt::If(own) => {
                for (holds, side) in [(true, &own.then), (false, &own.otherwise)] {
                    self.time.push(TimeComponent::Side(holds));
                    self.conditions.push((own, holds));
                    self.stmts(side)?;
                    self.conditions.pop();
                    self.time.pop();
                }
            }
            Stmt::Allocate(own) => {
                let allocation = Allocation { loops: self.loops.len(), time: self.time.clone() };
                self.allocations.insert(own.buffer, allocation);
                self.stmts(&own.body)?;
            }
            Stmt::Store(store) => {
                let site = self.site(store)?;
                self.sites.push(site);
            }
            Stmt::Prefetch(_) => {}
            Stmt::Sync(sync) => {
                let (coordinates, domain) = self.iterations("whether a synchronisation is executed")?;
                let (loops, time) = (self.loops.clone(), self.time.clone());
                self.syncs.push(SyncSite { sync: *sync, loops, coordinates, domain, time });
            }
            Stmt::Combine(own) => {
                let site = self.combination(own)?;
                self.sites.push(site);
            }
        }
        Ok(())
    }

    /// The site of a combination of threads: each lane reduces its value into the total, which
    /// starts from the target's previous value.
    fn combination(&self, own: &'n Combine) -> ProofResult<Site<'n>> {
        let site = self.site(&own.store)?;
        let name = &self.nest.buffer(own.store.target.tensor).name;
        if own.store.reduce != Some(own.op) {
            return undecided(format!(
                "threads are combined into `{name}` by another operator than that of its store"
            ));
        }
        if site.loads.iter().any(|access| access.tensor == own.store.target.tensor) {
            return undecided(format!("threads are combined from and into elements of one buffer, `{name}`"));
        }
        Ok(Site { combines: true, ..site })
    }

    /// The iterations of the enclosing loops that reach a statement.
    fn iterations(&self, what: &str) -> ProofResult<(Coordinates<InNest>, Set)> {
        let mut coordinates = Coordinates::new(self.context);
        let mut bounds = Vec::new();
        for own in &self.loops {
            let most = own.extent.as_constant().or_else(|| {
                let range = coordinates.range(&own.extent)?;
                i64::try_from(range.high).ok()
            });
            coordinates.add(own.var, most.map(|most| (0, most - 1)));
            bounds.push(IndexExpr::var(own.var));
            bounds.push(own.extent.sub(&IndexExpr::var(own.var)).offset(-1));
        }
        let (mut domain, mut exact) = coordinates.all_nonnegative(&bounds);
        for (choice, holds) in &self.conditions {
            let (where_it_holds, known) = coordinates.all_nonnegative(&choice.conditions);
            exact &= known;
            domain = match holds {
                true => domain.intersect(&where_it_holds),
                false => domain.subtract(&where_it_holds),
            };
        }
        if !exact {
            return undecided(format!("data decides {what}"));
        }
        Ok((coordinates, domain))
    }

    fn site(&self, store: &'n Store) -> ProofResult<Site<'n>> {
        let name = &self.nest.buffer(store.target.tensor).name;
        let (coordinates, domain) = self.iterations(&format!("whether a store to `{name}` is executed"))?;
        let mut loads = Vec::new();
        loads_in(&store.value, &mut loads);
        store.target.indices.iter().for_each(|index| loads_in_index(index, &mut loads));
        let (loops, time) = (self.loops.clone(), self.time.clone());
        let places = vec![OnceCell::new(); loads.len() + 1];
        let times = OnceCell::new();
        Ok(Site { store, loops, coordinates, domain, loads, combines: false, time, locations: places, times })
    }
}

/// The loads in an expression, those in subscripts included.
fn loads_in<'e>(expr: &'e Expr, found: &mut Vec<&'e Access>) {
    match &expr.kind {
        ExprKind::Load(access) => {
            access.indices.iter().for_each(|index| loads_in_index(index, found));
            if !found.contains(&access) {
                found.push(access);
            }
        }
        ExprKind::Index(index) => loads_in_index(index, found),
        _ => expr.operands().iter().for_each(|operand| loads_in(operand, found)),
    }
}

fn loads_in_index<'e>(index: &'e IndexExpr, found: &mut Vec<&'e Access>) {
    use tilewright_ir::nest::Atom;
    for term in index.terms() {
        for factor in &term.factors {
            match factor {
                Atom::Data(data) => loads_in(&data.value, found),
                Atom::FloorDiv(pair) | Atom::Mod(pair) | Atom::Min(pair) | Atom::Max(pair) => {
                    loads_in_index(&pair.0, found);
                    loads_in_index(&pair.1, found);
                }
                Atom::Var(_) | Atom::Symbol(_) | Atom::Extent(..) | Atom::Overflow => {}
            }
        }
    }
}

/// The caller's tensor that a buffer stands for, or `None` if the buffer is no argument.
pub fn argument(nest: &LoopNest, buffer: BufferId) -> Option<TensorId> {
    match nest.buffer(buffer).scope {
        Scope::Argument(tensor) => Some(tensor),
        _ => None,
    }
}
