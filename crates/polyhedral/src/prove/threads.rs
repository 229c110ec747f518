//! Checks that barriers and waits order all conflicting accesses of the threads of a GPU.
//!
//! Two accesses of one element in one kernel, of which at least one writes, are ordered if
//!
//! - one thread makes both;
//! - or two threads of one block make them, and a barrier comes between them;
//! - or both are atomic updates by one operator, whose order does not matter.
//!
//! An asynchronous store happens at some time before a wait for its group. A later access by the
//! same thread must come after such a wait. A later access by another thread must come after a
//! barrier that comes after such a wait. Nothing orders the blocks of a kernel.
//!
//! Any thread may run an iteration of a parallel loop ([`super::flat`]). [`super::races`] shows
//! that the iterations of such a loop do not conflict. This module checks their order with all
//! other accesses.
//!
//! A shared buffer is one memory area for each block, even if a loop inside the block allocates it
//! repeatedly: memory that is freed and allocated again is the same memory.

use tilewright_ir::nest::{Access, LoopKind, Scope, Sync};
use tilewright_isl::{Affine, Map, Set};

use super::accesses::{Evaluations, for_each_access};
use super::kernels::{
    are_in_one_kernel, blocks, different_vectors, is_in_thread, kernel_loop, storing_threads, threads,
};
use super::nest::{Nest, Site, SyncSite};
use super::order::running_before;
use super::races::are_atomic_updates;
use super::{ProofResult, refuted, undecided};

/// Refutes nests in which accesses of different threads conflict without a barrier between them.
pub fn check(nest: &Nest) -> ProofResult<()> {
    let mut accesses: Vec<KernelAccess> = Vec::new();
    for site in &nest.sites {
        accesses.extend(self::kernel_accesses(nest, site)?);
    }
    if accesses.is_empty() {
        return Ok(());
    }
    let order = Synchronisation::new(nest)?;
    for (at, first) in accesses.iter().enumerate() {
        for second in &accesses[at..] {
            if first.may_conflict_with(second) {
                Pair { nest, order: &order, first, second }.check()?;
            }
        }
    }
    Ok(())
}

/// An access of a store to memory that several threads reach.
struct KernelAccess<'a, 'n> {
    site: &'a Site<'n>,
    access: &'a Access,
    writes: bool,
    /// Maps iterations to the kernel and the memory location of the element.
    locations: Map,
    /// Whether data decides neither the element nor whether it is touched.
    exact: bool,
    blocks: Map,
    threads: Map,
    times: Map,
}

fn kernel_accesses<'a, 'n>(nest: &Nest<'n>, site: &'a Site<'n>) -> ProofResult<Vec<KernelAccess<'a, 'n>>> {
    let Some(kernel) = kernel_loop(site) else { return Ok(Vec::new()) };
    let mut loads: Vec<Option<Evaluations>> = site.loads.iter().map(|_| None).collect();
    for_each_access(site, &mut |access, at| {
        let load = site.loads.iter().position(|own| *own == access);
        if let Some(load) = load.filter(|_| !std::ptr::eq(access, &site.store.target)) {
            let known = loads[load].take();
            loads[load] = Some(known.map_or_else(|| at.clone(), |known| known.union(at)));
        }
        Ok(())
    })?;
    let loads = site.loads.iter().zip(loads).filter_map(|(access, at)| Some((*access, false, at?)));
    let whole = Evaluations { iterations: site.domain.clone(), is_certain: true };
    let all = loads.chain([(&site.store.target, true, whole)]);
    let in_memory = all.filter(|(access, ..)| nest.nest.buffer(access.tensor).scope != Scope::Register);
    Ok(in_memory
        .map(|(access, writes, at)| kernel_access(nest, site, kernel, (access, writes, &at)))
        .collect())
}

fn kernel_access<'a, 'n>(
    nest: &Nest<'n>,
    site: &'a Site<'n>,
    kernel: usize,
    (access, writes, at): (&'a Access, bool, &Evaluations),
) -> KernelAccess<'a, 'n> {
    let (context, all) = (&nest.context, site.coordinates.len());
    let function =
        |parts: &[Affine]| Map::from_functions(context, all, parts).intersect_domain(&at.iterations);
    let buffer = nest.nest.buffer(access.tensor);
    let (elements, known) = site.coordinates.elements(&access.indices, &buffer.shape);
    let block = blocks(context, site, all);
    let around = match buffer.scope {
        Scope::Shared => kernel,
        _ => nest.loops_around_allocation(access.tensor).max(kernel),
    };
    let mut area = nest.outer_iteration(all, around);
    if buffer.scope == Scope::Shared {
        area.extend(block.iter().cloned());
    }
    let thread = if writes { storing_threads(context, site, all) } else { threads(context, site, all) };
    KernelAccess {
        site,
        access,
        writes,
        locations: function(&area).flat_range_product(&elements),
        exact: known && at.is_certain,
        blocks: function(&block),
        threads: function(&thread),
        times: nest.times(site),
    }
}

impl KernelAccess<'_, '_> {
    /// Checks whether the order of the two accesses matters if they touch one element.
    fn may_conflict_with(&self, other: &KernelAccess) -> bool {
        self.access.tensor == other.access.tensor
            && (self.writes || other.writes)
            && !(self.writes && other.writes && are_atomic_updates(self.site, other.site))
            && are_in_one_kernel(self.site, other.site)
    }

    /// Checks whether the access is an asynchronous store.
    fn is_asynchronous(&self) -> bool {
        self.site.store.is_asynchronous
    }

    fn describe(&self, nest: &Nest, values: &[i64]) -> String {
        match self.writes {
            true => nest.describe(self.site, values),
            false => format!("a load by {}", nest.describe(self.site, values)),
        }
    }
}

/// The barriers and waits of a nest, with their times.
struct Synchronisation<'a, 'n> {
    nest: &'a Nest<'n>,
    earlier: Map,
    barriers: Vec<(&'a SyncSite<'n>, Map)>,
    /// Each wait, its times, and a map from its iterations to the time of a commit: the wait covers
    /// all asynchronous stores before that commit.
    waits: Vec<(&'a SyncSite<'n>, Map, Map)>,
}

impl<'a, 'n> Synchronisation<'a, 'n> {
    fn new(nest: &'a Nest<'n>) -> ProofResult<Synchronisation<'a, 'n>> {
        let earlier = Map::lex_less(&nest.context, nest.depth);
        let timed = |test: fn(Sync) -> bool| {
            let own = nest.syncs.iter().filter(move |own| test(own.sync));
            own.map(|own| (own, nest.sync_times(own)))
        };
        let commits = timed(|sync| sync == Sync::Commit).map(|(_, times)| times.range());
        let commits = commits.fold(Set::empty(&nest.context, nest.depth), |all, own| all.union(&own));
        let before = earlier.reverse().intersect_range(&commits);
        let mut waits = Vec::new();
        for (own, times) in timed(|sync| matches!(sync, Sync::Wait(_))) {
            let Sync::Wait(but) = own.sync else { continue };
            let mut last = times.clone();
            for _ in 0..=but {
                last = last.apply_range(&before).lexmax().coalesce();
            }
            waits.push((own, times, last));
        }
        let barriers = timed(|sync| sync == Sync::Barrier).collect();
        Ok(Synchronisation { nest, earlier, barriers, waits })
    }

    /// Maps iterations of `first` to those iterations of `second` that have a later time.
    fn follows(&self, first: &Map, second: &Map) -> Map {
        first.apply_range(&self.earlier).apply_range(&second.reverse())
    }

    /// Maps iterations of one access to those of a later access that come after a barrier in
    /// between.
    fn after_barriers(&self, first: &KernelAccess, second: &KernelAccess) -> Map {
        let barriers = self.barriers.iter().filter(|(own, _)| is_of_kernel(own, first.site));
        self.union(
            first,
            second,
            barriers.map(|(own, barrier)| {
                let to = match first.is_asynchronous() {
                    false => running_before(self.nest, first.site.timed_iterations(), own.timed_iterations()),
                    true => self.after_waits(first, barrier),
                };
                to.apply_range(&running_before(
                    self.nest,
                    own.timed_iterations(),
                    second.site.timed_iterations(),
                ))
            }),
        )
    }

    /// Maps iterations of an asynchronous store to the iterations in `times` that come after a wait
    /// for it.
    fn after_waits(&self, first: &KernelAccess, times: &Map) -> Map {
        let inputs = first.site.coordinates.len();
        let outputs = times.dimensions().map_or(0, |(inputs, _)| inputs);
        let waits = self.waits.iter().filter(|(own, ..)| is_of_kernel(own, first.site));
        let none = Map::empty(&self.nest.context, inputs, outputs);
        waits.fold(none, |all, (_, wait, until)| {
            all.union(&self.follows(&first.times, until).apply_range(&self.follows(wait, times)))
        })
    }

    fn union(&self, first: &KernelAccess, second: &KernelAccess, maps: impl Iterator<Item = Map>) -> Map {
        let [inputs, outputs] = [first, second].map(|touch| touch.site.coordinates.len());
        maps.fold(Map::empty(&self.nest.context, inputs, outputs), |all, own| all.union(&own))
    }
}

/// The position of the outermost parallel loop around a store.
fn parallel_loop(site: &Site) -> Option<usize> {
    site.loops.iter().position(|own| own.kind == LoopKind::Parallel)
}

fn is_of_kernel(sync: &SyncSite, site: &Site) -> bool {
    let kernel = kernel_loop(site).map(|at| site.loops[at]);
    kernel.is_some_and(|kernel| sync.loops.iter().any(|own| std::ptr::eq(*own, kernel)))
}

/// Two accesses of one buffer in one kernel.
struct Pair<'a, 'n> {
    nest: &'a Nest<'n>,
    order: &'a Synchronisation<'a, 'n>,
    first: &'a KernelAccess<'a, 'n>,
    second: &'a KernelAccess<'a, 'n>,
}

impl Pair<'_, '_> {
    fn check(&self) -> ProofResult<()> {
        let same = self.first.locations.apply_range(&self.second.locations.reverse());
        if same.is_empty()? {
            return Ok(());
        }
        self.check_blocks(&same)?;
        let same = same.intersect(&self.first.blocks.apply_range(&self.second.blocks.reverse()));
        let swapped = Pair { first: self.second, second: self.first, ..*self };
        self.check_threads(&same)?;
        match std::ptr::eq(self.first, self.second) {
            true => Ok(()),
            false => swapped.check_threads(&same.reverse()),
        }
    }

    /// Refutes accesses of one element by different blocks, because nothing orders two blocks.
    fn check_blocks(&self, same: &Map) -> ProofResult<()> {
        let has_blocks = |touch: &KernelAccess| {
            let mut loops = touch.site.loops.iter();
            loops.any(|own| matches!(own.kind, LoopKind::Block(_)))
        };
        if !has_blocks(self.first) && !has_blocks(self.second) {
            return Ok(());
        }
        let differing = different_vectors(&self.nest.context, 3);
        let met = same
            .intersect(&self.first.blocks.apply_range(&differing).apply_range(&self.second.blocks.reverse()));
        self.refute(&met, "they are in two blocks of a kernel, which run in any order")
    }

    /// Checks the pairs in one block of which the second access comes after the first.
    fn check_threads(&self, same: &Map) -> ProofResult<()> {
        let (first, second) = (self.first, self.second);
        let is_threaded = is_in_thread(first.site) || is_in_thread(second.site);
        if self.is_by_any_thread() || is_threaded && !self.is_of_one_thread(same)? {
            let met = match self.is_by_any_thread() {
                true => same.subtract(&self.in_one_execution()),
                false => {
                    let differing = different_vectors(&self.nest.context, 3);
                    same.intersect(
                        &first.threads.apply_range(&differing).apply_range(&second.threads.reverse()),
                    )
                }
            };
            let met = met.intersect(&running_before(
                self.nest,
                first.site.timed_iterations(),
                second.site.timed_iterations(),
            ));
            if !met.is_empty()? {
                let met = met.subtract(&self.order.after_barriers(first, second));
                self.refute(&met, "they are in two threads, and no barrier orders them")?;
            }
        }
        if !first.is_asynchronous() {
            return Ok(());
        }
        let met = match self.is_by_any_thread() {
            true => same.clone(),
            false => same.intersect(&first.threads.apply_range(&second.threads.reverse())),
        };
        let met = met.intersect(&running_before(
            self.nest,
            first.site.timed_iterations(),
            second.site.timed_iterations(),
        ));
        let met = met.subtract(&self.order.after_waits(first, &second.times));
        self.refute(&met, "the first is an asynchronous store, and no wait comes before the second")
    }

    /// Checks whether any thread may run one of the two accesses.
    fn is_by_any_thread(&self) -> bool {
        parallel_loop(self.first.site).or(parallel_loop(self.second.site)).is_some()
    }

    /// Pairs of iterations in one execution of a parallel loop that is around both accesses.
    fn in_one_execution(&self) -> Map {
        let [first, second] = [self.first, self.second].map(|touch| touch.site);
        let sizes = (first.coordinates.len(), second.coordinates.len());
        let common = parallel_loop(first).filter(|at| *at < first.common_loops(second));
        match common {
            None => Map::empty(&self.nest.context, sizes.0, sizes.1),
            Some(at) => {
                let all = Map::universe(&self.nest.context, sizes.0, sizes.1);
                (0..at).fold(all, |pairs, at| pairs.where_equal(at, at))
            }
        }
    }

    fn is_of_one_thread(&self, same: &Map) -> ProofResult<bool> {
        Ok(same.is_subset(&self.first.threads.apply_range(&self.second.threads.reverse()))?)
    }

    fn refute(&self, met: &Map, what: &str) -> ProofResult<()> {
        let Some((one, other)) = met.sample()? else { return Ok(()) };
        let name = &self.nest.nest.buffer(self.first.access.tensor).name;
        if !self.first.exact || !self.second.exact {
            return undecided(format!("data decides whether two threads access one element of `{name}`"));
        }
        refuted(format!(
            "{} and {} access one element of `{name}`: {what}",
            self.first.describe(self.nest, &one),
            self.second.describe(self.nest, &other)
        ))
    }
}
