//! Rows that data chooses, staged in shared memory: from schedule to device. Without a device, the
//! generated CUDA is compiled.

use ndarray::Array2;
use tilewright_codegen::c_family::gpu_code;
use tilewright_ir::{LoopNest, Program, verify_nest};
use tilewright_runtime::RunError;
use tilewright_runtime::gpu::{Device, GpuBound, GpuError, GpuExecutable, compile_cuda};
use tilewright_schedule::{apply, text};
use tilewright_target::Gpu;

use crate::case::{on_every_device, program, skip};

const SOURCE: &str = "def lut(float(E, D) LUT, int32(B, L) I) -> (O) { O(b, d) +=! LUT(I(b, l), d) }";
const ROWS: usize = 9;

/// Blocks of eight batches and sixteen columns; a thread copies four elements of a row at once.
const STEPS: &str = "split O.b -> bb, bt:4, bi:2
    split O.d -> db, dt:16
    split O.l -> lo, lk:3
    reorder O.bb, O.db, O.lo, O.bt, O.dt, O.lk, O.bi
    fuse O.bb, O.db -> block
    fuse O.bt, O.dt -> t
    bind O.block -> block.x
    bind O.t -> thread.x
    unroll O.bi
    promote O at O.block -> tile registers
    promote LUT at O.lo -> rows shared gathered
    fuse rows.l0, rows.l1, rows.l2 -> l
    split rows.l -> lr, lt:64, lv:4
    reorder rows.lt, rows.lr, rows.lv
    bind rows.lt -> thread.x
    vectorize rows.lv";

/// Stages the indices in shared memory too.
const INDICES: &str = "
    promote I at O.lo -> Is shared
    fuse Is.l0, Is.l1 -> l
    bind Is.l -> thread.x";

const AHEAD: &str = "\npipeline O.lo stages 3";

fn nest_of(sizes: [i64; 3], steps: &str, gpu: &Gpu) -> (Program, LoopNest) {
    let [b, d, l] = sizes;
    let program = program(SOURCE, &[("E", ROWS as i64), ("B", b), ("D", d), ("L", l)]);
    let parsed = text::parse(steps);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let nest = apply(&program, &parsed.schedule, gpu).unwrap_or_else(|refusal| panic!("{refusal}"));
    verify_nest(&nest).unwrap();
    (program, nest)
}

fn bound(device: &Device, sizes: [i64; 3], steps: &str) -> GpuBound {
    let (program, nest) = nest_of(sizes, steps, device.gpu());
    let code = gpu_code(verify_nest(&nest).unwrap(), device.gpu(), "a test").unwrap();
    let text = code.text.clone();
    let built = GpuExecutable::new(&program, &nest, code, device);
    built.unwrap_or_else(|error| panic!("{error}\n{text}")).bind(&[]).unwrap()
}

/// A table, indices, and the expected sums of rows.
fn data([b, d, l]: [i64; 3]) -> (Array2<f32>, Array2<i32>, Array2<f32>) {
    let [b, d, l] = [b, d, l].map(|extent| extent as usize);
    let table = Array2::from_shape_fn((ROWS, d), |(row, column)| (100 * row + column) as f32);
    let indices = Array2::from_shape_fn((b, l), |(b, l)| ((5 * b + 3 * l) % ROWS) as i32);
    let sum = |(b, d)| (0..l).map(|l| table[[indices[[b, l]] as usize, d]]).sum();
    let sums = Array2::from_shape_fn((b, d), sum);
    (table, indices, sums)
}

/// Sizes with whole tiles only, and sizes with partial tiles in every dimension.
const SIZES: [[i64; 3]; 2] = [[16, 32, 9], [13, 27, 7]];

fn all_steps() -> [String; 4] {
    ["", INDICES, AHEAD, &format!("{INDICES}{AHEAD}")].map(|more| format!("{STEPS}{more}"))
}

#[test]
fn gathered_rows_are_those_that_data_chooses() {
    on_every_device(|device| {
        for (sizes, steps) in SIZES.into_iter().flat_map(|sizes| all_steps().map(|steps| (sizes, steps))) {
            let (table, indices, wanted) = data(sizes);
            let mut found = Array2::<f32>::zeros(wanted.raw_dim());
            let inputs = [table.view().into(), indices.view().into()];
            bound(device, sizes, &steps).run(&inputs, &mut [found.view_mut().into()], &[]).unwrap();
            assert_eq!(found, wanted, "{sizes:?}\n{steps}");
        }
    });
}

#[test]
fn a_gather_reports_the_table_that_it_leaves() {
    on_every_device(|device| {
        let sizes = SIZES[1];
        let (table, mut indices, wanted) = data(sizes);
        indices[[12, 6]] = ROWS as i32;
        let mut found = Array2::<f32>::zeros(wanted.raw_dim());
        let inputs = [table.view().into(), indices.view().into()];
        let ended = bound(device, sizes, STEPS).run(&inputs, &mut [found.view_mut().into()], &[]);
        let error = ended.unwrap_err();
        let told = matches!(&error, RunError::OutOfBounds(out) if (out.buffer.as_str(), out.dimension) == ("LUT", 0));
        assert!(told, "{error}");
    });
}

#[test]
fn gathers_become_cuda_that_compiles() {
    let gpu = Gpu::h200();
    for (sizes, steps) in SIZES.into_iter().flat_map(|sizes| all_steps().map(|steps| (sizes, steps))) {
        let (_, nest) = nest_of(sizes, &steps, &gpu);
        let code = gpu_code(verify_nest(&nest).unwrap(), &gpu, "a test").unwrap();
        // Rows of 32 elements begin at an address where four elements can be accessed at once; rows
        // of 27 do not.
        let whole = sizes == SIZES[0];
        assert_eq!(
            code.text.contains("(const float4*)&LUT_") || code.text.contains("tw_copy_async_16"),
            whole,
            "{}",
            code.text
        );
        match compile_cuda(&code.text, gpu.architecture) {
            Err(GpuError::NoCompiler) => skip("nvrtc", "there is no NVRTC"),
            Err(error) => panic!("{error}\n{}", code.text),
            Ok(cubin) => assert!(cubin.bytes.starts_with(b"\x7fELF")),
        }
    }
}
