//! Checks that no thread reads a value that is in the registers of another thread.
//!
//! A register buffer that is allocated outside thread loops is distributed over the threads: an
//! element is in the registers of the thread that wrote it last. The total of combined threads is
//! in the registers of all threads of the block along x: those that take no part in the reduction
//! run it too, with neutral elements.

use tilewright_ir::nest::{Access, Axis, BufferId, Scope};
use tilewright_isl::{Affine, Map};

use super::kernels::{different_vectors, kernel_loop, storing_threads, threads};
use super::nest::{Nest, Site};
use super::single_valued::SingleValuedBuffers;
use super::sources::{Source, Sources, writes_seen};
use super::{ProofResult, refuted};

/// Compares the thread of every load from registers with the thread of the store that it sees.
pub fn check(nest: &Nest, sources: &Sources, single_valued: &SingleValuedBuffers) -> ProofResult<()> {
    let in_registers = |access: &Access| nest.nest.buffer(access.tensor).scope == Scope::Register;
    for (at, site) in nest.sites.iter().enumerate() {
        if kernel_loop(site).is_none() {
            continue;
        }
        for (access, source) in site.loads.iter().zip(&sources.loads[at]) {
            let reader = threads(&nest.context, site, source.coordinates.len());
            RegisterRead { nest, site, source, reader }.check_same_thread(access.tensor)?;
        }
        // `Sources` omits the elements that a run carries or updates, so they are looked up here.
        let carried = if sources.loads[at].is_empty() { site.loads.as_slice() } else { &[] };
        for access in carried.iter().filter(|access| in_registers(access)) {
            let source = &writes_seen(nest, single_valued, (at, access))?;
            let reader = threads(&nest.context, site, source.coordinates.len());
            RegisterRead { nest, site, source, reader }.check_same_thread(access.tensor)?;
        }
        if site.store.reduce.is_some() && in_registers(&site.store.target) {
            let source = &writes_seen(nest, single_valued, (at, &site.store.target))?;
            let reader = storing_threads(&nest.context, site, source.coordinates.len());
            RegisterRead { nest, site, source, reader }.check_same_thread(site.store.target.tensor)?;
        }
    }
    Ok(())
}

struct RegisterRead<'a, 'n> {
    nest: &'a Nest<'n>,
    site: &'a Site<'n>,
    source: &'a Source,
    /// The coordinates of the reading thread.
    reader: Vec<Affine>,
}

impl RegisterRead<'_, '_> {
    fn check_same_thread(&self, buffer: BufferId) -> ProofResult<()> {
        if self.nest.nest.buffer(buffer).scope != Scope::Register {
            return Ok(());
        }
        for (writer, pairs) in &self.source.writers {
            let store = &self.nest.sites[*writer];
            let axes: &[Axis] = if store.combines { &[Axis::Y, Axis::Z] } else { &Axis::ALL };
            let foreign = self.pairs_of_different_threads(store, pairs, axes);
            let Some((one, other)) = foreign.sample()? else { continue };
            let name = &self.nest.nest.buffer(buffer).name;
            return refuted(format!(
                "{} reads an element of `{name}` that is in a register of another thread, from {}",
                self.nest.describe(self.site, &other),
                self.nest.describe(store, &one)
            ));
        }
        Ok(())
    }

    /// The pairs whose threads differ along one of `axes`.
    fn pairs_of_different_threads(&self, store: &Site, pairs: &Map, axes: &[Axis]) -> Map {
        let context = &self.nest.context;
        let own = storing_threads(context, store, store.coordinates.len());
        let along = |all: usize, threads: &[Affine]| {
            let some: Vec<Affine> = axes.iter().map(|axis| threads[*axis as usize].clone()).collect();
            Map::from_functions(context, all, &some)
        };
        let writers = along(store.coordinates.len(), &own);
        let readers = along(self.source.coordinates.len(), &self.reader);
        pairs.intersect(
            &writers.apply_range(&different_vectors(context, axes.len())).apply_range(&readers.reverse()),
        )
    }
}
