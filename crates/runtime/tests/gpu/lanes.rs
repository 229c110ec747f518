//! Vector loops in kernels: which accesses cover several elements, and that all results are right.

use tilewright_codegen::c_family::gpu_code;
use tilewright_ir::nest::{
    Access, Axis, BufferId, Expr, ExprKind, For, If, IndexExpr, LoopKind, LoopNest, LoopVarId, Stmt, Store,
};
use tilewright_ir::{BinaryOp, DType, Number, Origin, Program, verify_nest};
use tilewright_target::{Gpu, GpuApi};

use crate::case::{nest, on_every_device, program};
use crate::scheduled::{Case, agrees, compiles_as_cuda, nest_agrees, nest_of};

/// Four neighbouring results of a row. The operands are a whole row, a column, shifted elements,
/// and elements behind a condition.
const POINTWISE: Case = Case {
    source: "def f(float(N, M) A, float(M) b, float(N) c) -> (C) {
        C(i, j) = A(i, j) * b(j) + c(i) + (j >= 3 ? A(i, j - 3) : 0) + (j < M - 4 ? b(j + 4) : 0) }",
    sizes: &[("N", 30), ("M", 20)],
    steps: "fuse C.i, C.j -> t
        split C.t -> q, v:4
        split C.q -> qb, qt:32
        bind C.qb -> block.x
        bind C.qt -> thread.x
        vectorize C.v",
};

/// Vectors that begin at any element, in loads and in stores.
const SHIFTED: Case = Case {
    source: "def f(float(N) A) -> (C, D) { C(i) = A(i) + A(i + 1) where i in 0:(N - 1)
        D(i) = 0 where i in 0:N
        D(i + 1) = A(i) * 2 where i in 0:(N - 1) }",
    sizes: &[("N", 65)],
    steps: "split C.i -> o, v:4
        bind C.o -> thread.x
        vectorize C.v
        bind D.i -> thread.x
        split D[2].i -> o, v:4
        bind D[2].o -> thread.x
        vectorize D[2].v",
};

/// A loop with lanes past the end.
const REMAINDER: Case = Case {
    source: "def f(float(N) A) -> (C) { C(i) = A(i) * 2 }",
    sizes: &[("N", 103)],
    steps: "split C.i -> o, v:4
        split C.o -> ob, ot:8
        bind C.ob -> block.x
        bind C.ot -> thread.x
        vectorize C.v",
};

/// More lanes than one access covers.
const SIXTEEN: Case = Case {
    sizes: &[("N", 128)],
    steps: "split C.i -> o, v:16
        bind C.o -> thread.x
        vectorize C.v",
    ..REMAINDER
};

/// Rows of which every other one begins in the middle of a group of four elements.
const HALVES: Case = Case {
    source: "def f(float(N, 6) A) -> (C) { C(i, j) = A(i, j) * 2 where j in 0:4 }",
    sizes: &[("N", 5)],
    steps: "bind C.i -> thread.x
        vectorize C.j",
};

/// Types of every size, with conversions to other types.
const TYPES: Case = Case {
    source: "def f(uint8(K) A, int64(K) B, double(K) C, half(K) D, int16(K) E, bfloat16(K) F, bool(K) G) -> (a, b, c, d, e, f, g) {
        a(k) = clz(A(k))
        b(k) = B(k) * 3
        c(k) = C(k) + D(k)
        d(k) = D(k) * 2
        e(k) = E(k)
        f(k) = F(k) + A(k)
        g(k) = !G(k) }",
    sizes: &[("K", 64)],
    steps: "split a.k -> o, v:4\nbind a.o -> thread.x\nvectorize a.v
        split b.k -> o, v:4\nbind b.o -> thread.x\nvectorize b.v
        split c.k -> o, v:4\nbind c.o -> thread.x\nvectorize c.v
        split d.k -> o, v:4\nbind d.o -> thread.x\nvectorize d.v
        split e.k -> o, v:4\nbind e.o -> thread.x\nvectorize e.v
        split f.k -> o, v:4\nbind f.o -> thread.x\nvectorize f.v
        split g.k -> o, v:4\nbind g.o -> thread.x\nvectorize g.v",
};

/// Eight and sixteen elements of one and two bytes: pixels, with sums in memory, and copies.
const PIXELS: Case = Case {
    source: "def f(uint8(K) A, uint16(K) B, half(K) C, bool(K) D, int8(3, K) E) -> (a, b, c, d, e, z) {
        a(k) = (A(k) + A(K - 1 - k)) / 2
        b(k) = popcount(B(k)) + A(k)
        c(k) = C(k) + B(k)
        d(k) = !D(k)
        e(k) *=! E(r, k) where k in 0:K, r in 0:3
        z(k) = B(k) }",
    sizes: &[("K", 64)],
    steps: "split a.k -> o, v:16\nbind a.o -> thread.x\nvectorize a.v
        split b.k -> o, v:8\nbind b.o -> thread.x\nvectorize b.v
        split c.k -> o, v:16\nbind c.o -> thread.x\nvectorize c.v
        split d.k -> o, v:8\nbind d.o -> thread.x\nvectorize d.v
        split e.k -> o, v:16\nreorder e.o, e.r, e.v\nbind e.o -> thread.x\nvectorize e.v
        split z.k -> o, v:8\nbind z.o -> thread.x\nvectorize z.v",
};

/// A window of bytes with padding, of which groups of sixteen are staged in shared memory.
const BYTES: Case = Case {
    source: "def widest(uint8(H, W) I) -> (O) {
        O(y, x) max=! (0 <= u && u < H && 0 <= v && v < W) ? I(u, v) : 7
          where y in 0:H, x in 0:W, dy in 0:3, dx in 0:3, u = y + dy - 1, v = x + dx - 1 }",
    sizes: &[("H", 5), ("W", 96)],
    steps: "split O.x -> xb, xt:32
        bind O.y -> block.y
        bind O.xb -> block.x
        bind O.xt -> thread.x
        promote O at O.xb -> total registers
        promote I at O.xb -> Is shared (d0, d1/16, d1%16)
        bind Is.l1 -> thread.x
        vectorize Is.l2",
};

/// Reductions into memory, and into one element by all lanes.
const REDUCTIONS: Case = Case {
    source: "def f(float(K, N) A, half(K, N) H, int32(K, N) I) -> (C, D, E, s) {
        C(i) +=! A(k, i)
        D(i) +=! H(k, i)
        E(i) max=! I(k, i)
        s(k) +=! A(k, i) }",
    sizes: &[("K", 7), ("N", 32)],
    steps: "split C.i -> o, v:4\nreorder C.o, C.k, C.v\nbind C.o -> thread.x\nvectorize C.v
        split D.i -> o, v:4\nreorder D.o, D.k, D.v\nbind D.o -> thread.x\nvectorize D.v
        split E.i -> o, v:2\nreorder E.o, E.k, E.v\nbind E.o -> thread.x\nvectorize E.v
        split s.i -> o, v:4\nbind s.k -> thread.x\nvectorize s.v",
};

/// Rows that data chooses.
const GATHERED: Case = Case {
    source: "def f(float(N, M) A, int32(K) rows) -> (C) { C(i, j) = A(rows(i), j) }",
    sizes: &[("N", 5), ("M", 8), ("K", 6)],
    steps: "split C.j -> o, v:4
        bind C.i -> block.x
        bind C.o -> thread.x
        vectorize C.v",
};

/// An operand in shared memory, results in registers.
const TILES: Case = Case {
    source: "def gemm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }",
    sizes: &[("M", 16), ("N", 32), ("K", 12)],
    steps: "split C.i -> ib, it:4
        split C.j -> jt, ji:4
        split C.k -> ko, ki:4
        reorder C.ib, C.ko, C.it, C.jt, C.ki, C.ji
        bind C.ib -> block.x
        bind C.it -> thread.y
        bind C.jt -> thread.x
        vectorize C.ji
        promote C at C.ib -> tile registers
        promote B at C.ko -> Bs shared
        split Bs.l1 -> lo, v:4
        bind Bs.l0 -> thread.y
        bind Bs.lo -> thread.x
        vectorize Bs.v",
};

/// A window with padding, of which whole groups of elements are staged in shared memory.
const GROUPS: Case = Case {
    source: "def blur(float(H, W) I) -> (O) {
        O(y, x) +=! (0 <= u && u < H && 0 <= v && v < W) ? I(u, v) : 7
          where y in 0:H, x in 0:W, dy in 0:3, dx in 0:3, u = y + dy - 1, v = x + dx - 1 }",
    sizes: &[("H", 5), ("W", 48)],
    steps: "split O.x -> xb, xt:16
        bind O.y -> block.y
        bind O.xb -> block.x
        bind O.xt -> thread.x
        promote O at O.xb -> total registers
        promote I at O.xb -> Is shared (d0, d1/4, d1%4)
        bind Is.l1 -> thread.x
        vectorize Is.l2",
};

const ALL: [&Case; 12] = [
    &POINTWISE,
    &SHIFTED,
    &REMAINDER,
    &SIXTEEN,
    &HALVES,
    &TYPES,
    &PIXELS,
    &BYTES,
    &REDUCTIONS,
    &GATHERED,
    &TILES,
    &GROUPS,
];

fn opencl() -> Gpu {
    Gpu { api: GpuApi::OpenCl, ..Gpu::h200() }
}

/// The kernels of a case, with single spaces between words.
fn text(case: &Case, gpu: &Gpu) -> String {
    text_of(&nest_of(case, gpu).1, gpu)
}

fn text_of(nest: &LoopNest, gpu: &Gpu) -> String {
    let code = gpu_code(verify_nest(nest).unwrap(), gpu, "").unwrap();
    code.text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part}:\n{text}");
    }
}

#[test]
fn neighbours_are_one_access() {
    let cuda = text(&POINTWISE, &Gpu::h200());
    has(
        &cuda,
        &[
            "const float4 A_lanes = *(const float4*)&A[128 * qb + 4 * qt];",
            "const float4 b_lanes = *(const float4*)&b[(128 * qb + 4 * qt) % 20];",
            "float4 C_results; C_results.x = ",
            "fmaf(A_lanes.w, b_lanes.w, ",
            "*(float4*)&C[128 * qb + 4 * qt] = C_results;",
        ],
    );
    let opencl = text(&POINTWISE, &opencl());
    has(
        &opencl,
        &[
            "const float4 A_lanes = *(const __global float4*)&A[128 * qb + 4 * qt];",
            "*(__global float4*)&C[128 * qb + 4 * qt] = C_results;",
        ],
    );
}

#[test]
fn what_a_condition_guards_is_read_behind_it() {
    let cuda = text(&POINTWISE, &Gpu::h200());
    // Four lanes each, in full blocks and in the last block, whose vectors are whole as well. The
    // shifted lanes of `b` would be aligned, but a condition guards them.
    assert_eq!(cuda.matches("? A[").count(), 8, "{cuda}");
    assert_eq!(cuda.matches("? b[").count(), 8, "{cuda}");
    assert_eq!(cuda.matches("*(const float4*)&").count(), 4, "{cuda}");
}

#[test]
fn neighbours_that_begin_anywhere_are_apart() {
    let cuda = text(&SHIFTED, &Gpu::h200());
    has(
        &cuda,
        &[
            "*(const float4*)&A[4 * o]",
            "*(float4*)&C[4 * o] = C_results",
            "C_results.w = A_lanes.w + A[4 * o + 4];",
        ],
    );
    has(&cuda, &["D[4 * o_1 + 1] = A_lanes.x * 2.0f", "D[4 * o_1 + 4] = A_lanes.w * 2.0f"]);
    // An access does not cover lanes past the end.
    let cuda = text(&REMAINDER, &Gpu::h200());
    has(&cuda, &["#pragma unroll for (int v = 0;"]);
}

#[test]
fn accesses_are_as_wide_as_they_can_be() {
    let cuda = text(&SIXTEEN, &Gpu::h200());
    assert_eq!(cuda.matches("*(const float4*)&A").count(), 4, "{cuda}");
    has(&cuda, &["*(float4*)&C[16 * o + 12] = C_results_3;"]);
    let cuda = text(&HALVES, &Gpu::h200());
    has(
        &cuda,
        &["const float2 A_lanes_1 = *(const float2*)&A[6 * i + 2];", "*(float4*)&C[4 * i] = C_results;"],
    );
}

#[test]
fn every_type_has_its_lanes() {
    let cuda = text(&TYPES, &Gpu::h200());
    has(&cuda, &["uchar4 a_results", "longlong2 b_results_1", "double2 c_results", "const ushort4 D_lanes"]);
    has(&cuda, &["*(short4*)&e[4 * o_4] = *(const short4*)&E[4 * o_4];", "tw_load_half_bfloat16(F_lanes.w)"]);
    let opencl = text(&TYPES, &opencl());
    has(&opencl, &["uchar4 a_results", "long2 b_results_1", "double2 c_results", "const ushort4 D_lanes"]);
}

#[test]
fn narrow_elements_are_moved_as_integers() {
    let cuda = text(&PIXELS, &Gpu::h200());
    has(
        &cuda,
        &[
            "const union { uint4 whole; unsigned char at[16]; } A_lanes = { *(const uint4*)&A[16 * o] };",
            "const union { uint2 whole; unsigned char at[8]; } A_lanes = { *(const uint2*)&A[8 * o_1] };",
            "union { uint4 whole; unsigned short at[8]; } b_results; b_results.at[0] = ",
            "*(uint4*)&b[8 * o_1] = b_results.whole;",
            "tw_load_half_float16(C_lanes_1.at[7])",
            "union { uint4 whole; signed char at[16]; } e_results = { *(uint4*)&e[16 * o_4] };",
            "*(uint4*)&z[8 * o_5] = *(const uint4*)&B[8 * o_5];",
        ],
    );
    has(&text(&PIXELS, &opencl()), &["{ *(const __global uint4*)&A[16 * o] };", "*(__global uint4*)&b["]);
    let group = "Is_lanes.at[15] = (unsigned char)7; if (";
    has(&text(&BYTES, &Gpu::h200()), &[group, ") Is_lanes.whole = *(const uint4*)&I["]);
}

#[test]
fn totals_of_lanes_are_loaded_and_stored_together() {
    let cuda = text(&REDUCTIONS, &Gpu::h200());
    has(&cuda, &["float4 C_results = *(float4*)&C[4 * o]; C_results.x += A_lanes.x;", "int2 E_results = "]);
    has(&cuda, &["s[k_3] += A_lanes.x; s[k_3] += A_lanes.y;"]);
}

#[test]
fn rows_that_data_chooses_are_read_in_lanes() {
    let cuda = text(&GATHERED, &Gpu::h200());
    has(&cuda, &["*(float4*)&C[8 * i + 4 * o] = *(const float4*)&A[tw_checked"]);
}

#[test]
fn shared_memory_has_lanes_and_registers_have_not() {
    let cuda = text(&TILES, &Gpu::h200());
    has(&cuda, &["const float4 Bs_lanes = *(const float4*)&Bs[", "tile[0] = fmaf(", "tile[3] = fmaf("]);
    assert!(!cuda.contains("&tile["), "{cuda}");
    has(&text(&TILES, &opencl()), &["*(__local float4*)&Bs[", "= *(const __global float4*)&B["]);
}

#[test]
fn groups_are_inside_or_outside_as_a_whole() {
    let group =
        "float4 Is_lanes; Is_lanes.x = 7.0f; Is_lanes.y = 7.0f; Is_lanes.z = 7.0f; Is_lanes.w = 7.0f; if (";
    has(&text(&GROUPS, &Gpu::h200()), &[group, ") Is_lanes = *(const float4*)&I["]);
    has(&text(&GROUPS, &opencl()), &[group, ") Is_lanes = *(const __global float4*)&I["]);
}

#[test]
fn lanes_come_out_right() {
    on_every_device(|device| {
        for case in ALL {
            agrees(device, case);
        }
    });
}

#[test]
fn lanes_compile_as_cuda() {
    for case in ALL {
        compiles_as_cuda(case);
    }
}

/// `A_lanes(i) = a(i) + 1`, and `C(i)` from it, all in one vector loop. Even threads compute `C(i)`
/// in one way, and odd threads in another.
fn one_after_the_other() -> (Program, LoopNest) {
    let source = "def f(float(N) a) -> (A_lanes, C) { A_lanes(i) = a(i) + 1
        C(i) = i % 8 < 4 ? 2 * A_lanes(i) : A_lanes(i) - 1 where i in 0:N }";
    let program = program(source, &[("N", 64)]);
    let mut nest = nest(&program, &["a", "A_lanes", "C"], &[]);
    let at = IndexExpr::var(LoopVarId(0)).scale(4).add(&IndexExpr::var(LoopVarId(1)));
    let access =
        |buffer| Access { tensor: BufferId(buffer), indices: vec![at.clone()], origin: Origin::default() };
    let load = |buffer| Expr { dtype: DType::Float32, kind: ExprKind::Load(access(buffer)) };
    let number = |value| Expr::literal(DType::Float32, Number::Float(value));
    let store = |buffer, op, left, right| {
        let value = Expr::binary(op, left, right);
        Stmt::Store(Store {
            target: access(buffer),
            value,
            reduce: None,
            is_asynchronous: false,
            is_atomic: false,
            claim: None,
        })
    };
    let even = IndexExpr::var(LoopVarId(0)).modulo(&IndexExpr::constant(2)).scale(-1);
    let choice = Stmt::If(If {
        conditions: vec![even],
        then: vec![store(2, BinaryOp::Mul, number(2.0), load(1))],
        otherwise: vec![store(2, BinaryOp::Sub, load(1), number(1.0))],
    });
    let body = vec![store(1, BinaryOp::Add, load(0), number(1.0)), choice];
    let around = |var, extent, kind, body| {
        Stmt::For(For { var: LoopVarId(var), extent: IndexExpr::constant(extent), kind, body })
    };
    let lanes = around(1, 4, LoopKind::Vector, body);
    nest.body = vec![around(0, 16, LoopKind::Thread(Axis::X), vec![lanes])];
    verify_nest(&nest).unwrap();
    (program, nest)
}

#[test]
fn statements_read_what_those_before_them_stored() {
    let (program, nest) = one_after_the_other();
    let cuda = text_of(&nest, &Gpu::h200());
    // The program already has a name like those that lanes get.
    let stored = cuda.find("*(float4*)&A_lanes[4 * s] = A_lanes_results;").expect("the first is stored");
    let loaded = cuda.find("const float4 A_lanes_lanes = *(const float4*)&A_lanes[4 * s];");
    assert!(loaded.expect("the second loads it") > stored, "{cuda}");
    has(&cuda, &["if (-(s % 2) >= 0) { { const float4", "} else { { const float4"]);
    on_every_device(|device| nest_agrees(device, &program, &nest));
}
