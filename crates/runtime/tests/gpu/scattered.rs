//! Scatters whose threads share the elements that data chooses: atomic updates of global and of
//! shared memory, and tables of blocks that are added up. Without a device, the generated CUDA is
//! compiled.

use crate::case::on_every_device;
use crate::scheduled::{Case, agrees, compiles_as_cuda};

/// All threads of all blocks update one table in global memory.
const GLOBAL: Case = Case {
    source: "def f(uint8(H, W) x, int32(H, W) v, uint32(H, W) u) -> (count, least, most) {
        count(x(y, i)) +=! 1
        least(x(y, i) % 8) min=! v(y, i)
        most(x(y, i) % 8) max=! u(y, i)
      }",
    sizes: &[("H", 21), ("W", 83)],
    steps: "bind count.y -> block.x
        split count.i -> io, it:32
        bind count.it -> thread.x
        bind least.y -> block.y
        bind least.i -> block.x
        fuse most.y, most.i -> n
        split most.n -> nb, nt:64
        bind most.nb -> block.x
        bind most.nt -> thread.x",
};

/// Each block has a table in shared memory, and adds it to the global one.
const SHARED: Case = Case {
    source: "def f(uint8(H, W) x) -> (h) {
        rows(y, x(y, i) % 100) +=! i
        h(b) +=! rows(y, b)
      }",
    sizes: &[("H", 22), ("W", 70)],
    steps: "reorder h.y, h.b
        split h.y -> yo, yi:4
        rfactor h.yo -> part
        reorder part.b, part.yi
        compute_at rows, part.yo
        bind part.yo -> block.x
        bind part.b -> thread.x
        bind rows.y -> thread.y
        split rows.i -> io, it:16
        bind rows.it -> thread.x",
};

/// The schedules of the repository.
const HISTOGRAM: Case = Case {
    source: include_str!("../../../../examples/pipelines/hist.tw"),
    sizes: &[("H", 19), ("W", 45)],
    steps: include_str!("../../../../schedules/pipelines/hist.cuda.sched"),
};

const CASES: [&Case; 3] = [&GLOBAL, &SHARED, &HISTOGRAM];

#[test]
fn threads_share_tables() {
    on_every_device(|device| CASES.iter().for_each(|case| agrees(device, case)));
}

#[test]
fn shared_tables_compile_as_cuda() {
    CASES.iter().for_each(|case| compiles_as_cuda(case));
}
