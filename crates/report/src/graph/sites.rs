//! Finds where a loop nest computes the statements of its program: the loops around each store, the
//! buffer that it writes, and the loop nest or kernel that it belongs to.

use tilewright_ir::LoopNest;
use tilewright_ir::nest::{BufferId, ClaimRole, For, LoopKind, Stmt, Store};
use tilewright_ir::walk;

/// A store of a loop nest.
pub struct Site<'n> {
    /// The region that the store is in.
    pub region: usize,
    /// The loops around the store, outermost first, without those of the host.
    pub loops: Vec<&'n For>,
    /// The store.
    pub store: &'n Store,
}

/// A part of a loop nest: on a GPU a kernel or a loop of the host, else an outermost loop.
pub struct Region<'n> {
    /// What the part is.
    pub kind: RegionKind<'n>,
    /// The region around this one.
    pub parent: Option<usize>,
}

/// What a part of a loop nest is.
#[derive(Clone, Copy)]
pub enum RegionKind<'n> {
    /// A loop with all inside, or a statement outside of loops.
    Loops,
    /// What a device runs at once.
    Kernel,
    /// A loop around kernels.
    Host(&'n For),
    /// What runs once for given constant inputs.
    Setup,
}

/// The regions of a loop nest, and all stores, in order.
pub struct Sites<'n> {
    /// The regions; the region around another one comes first.
    pub regions: Vec<Region<'n>>,
    /// The stores.
    pub sites: Vec<Site<'n>>,
    has_kernels: bool,
}

impl<'n> Sites<'n> {
    /// Finds the stores of a loop nest.
    pub fn new(nest: &'n LoopNest) -> Sites<'n> {
        let has_kernels = walk::any_loop(&nest.body, For::is_block_or_thread_loop);
        let mut own = Sites { regions: Vec::new(), sites: Vec::new(), has_kernels };
        if !nest.setup.is_empty() {
            own.regions.push(Region { kind: RegionKind::Setup, parent: None });
            own.stores(&nest.setup, 0, &mut Vec::new());
        }
        own.outer(&nest.body, None);
        own
    }

    /// Walks statements outside of all loops, or inside loops of the host.
    fn outer(&mut self, stmts: &'n [Stmt], host: Option<usize>) {
        for stmt in stmts {
            match stmt {
                Stmt::For(own) if self.has_kernels && is_around_kernels(own) => {
                    self.regions.push(Region { kind: RegionKind::Host(own), parent: host });
                    let inner = self.regions.len() - 1;
                    self.outer(&own.body, Some(inner));
                }
                Stmt::For(_) | Stmt::Store(_) | Stmt::Combine(_) => {
                    let kind = if self.has_kernels { RegionKind::Kernel } else { RegionKind::Loops };
                    self.regions.push(Region { kind, parent: host });
                    let region = self.regions.len() - 1;
                    self.stores(std::slice::from_ref(stmt), region, &mut Vec::new());
                }
                Stmt::If(_) | Stmt::Allocate(_) | Stmt::Prefetch(_) | Stmt::Sync(_) => {
                    stmt.bodies().for_each(|body| self.outer(body, host));
                }
            }
        }
    }

    /// Walks the statements of a region.
    fn stores(&mut self, stmts: &'n [Stmt], region: usize, loops: &mut Vec<&'n For>) {
        for stmt in stmts {
            if let Some(store) = stmt.store() {
                self.sites.push(Site { region, loops: loops.clone(), store });
            }
            let own = if let Stmt::For(own) = stmt { Some(own) } else { None };
            loops.extend(own);
            stmt.bodies().for_each(|body| self.stores(body, region, loops));
            own.inspect(|_| _ = loops.pop());
        }
    }

    /// The loops that all stores of a region share, outermost first.
    pub fn shared_loops(&self, region: usize) -> Vec<&'n For> {
        let mut sites = self.sites.iter().filter(|site| site.region == region);
        let Some(first) = sites.next() else { return Vec::new() };
        sites.fold(first.loops.clone(), |shared, site| shared_prefix(&shared, &site.loops))
    }
}

/// Returns true for a loop that the host runs: kernels begin inside of it.
fn is_around_kernels(own: &For) -> bool {
    !own.is_block_or_thread_loop() && walk::any_loop(&own.body, For::is_block_or_thread_loop)
}

/// The loops with the same variables at the start of two lists.
pub fn shared_prefix<'n>(one: &[&'n For], other: &[&'n For]) -> Vec<&'n For> {
    let same = one.iter().zip(other).take_while(|(one, other)| one.var == other.var);
    same.map(|(own, _)| *own).collect()
}

impl Site<'_> {
    /// The buffer that the store writes.
    pub fn buffer(&self) -> BufferId {
        self.store.target.tensor
    }

    /// The statement that the store computes, by its position in the program, and the number of
    /// the computation. A copy computes none, and neither does a store of a part of a recurrence.
    pub fn computes(&self) -> Option<(usize, usize)> {
        let claim = self.store.claim.as_ref().filter(|claim| claim.part.is_none());
        claim.map(|claim| (claim.statement, claim.computation))
    }

    /// Whether the store computes values, and does not only start or move them.
    pub fn has_values(&self) -> bool {
        let role = self.store.claim.as_ref().map(|claim| claim.role);
        matches!(role, Some(ClaimRole::Value | ClaimRole::Total))
    }

    /// The buffers that the value is computed from.
    pub fn reads(&self) -> Vec<BufferId> {
        let mut found = Vec::new();
        self.store.value.visit_reads(&mut |access| {
            if !found.contains(&access.tensor) {
                found.push(access.tensor);
            }
        });
        found
    }
}

/// A loop as text: `vector x:64`.
pub fn loop_text(nest: &LoopNest, own: &For) -> String {
    let kind = match own.kind {
        LoopKind::Serial => String::new(),
        LoopKind::Parallel => "parallel ".to_owned(),
        LoopKind::Vector => "vector ".to_owned(),
        LoopKind::Unrolled => "unroll ".to_owned(),
        LoopKind::Block(axis) => format!("block.{} ", axis.name()),
        LoopKind::Thread(axis) => format!("thread.{} ", axis.name()),
    };
    let extent = own.extent.as_constant().map_or(String::new(), |extent| format!(":{extent}"));
    format!("{kind}{}{extent}", nest.var_name(own.var))
}

/// Loops as text, outermost first.
pub fn loop_texts(nest: &LoopNest, loops: &[&For]) -> Vec<String> {
    loops.iter().map(|own| loop_text(nest, own)).collect()
}
