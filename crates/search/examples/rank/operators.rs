//! The operators that are measured.

use std::error::Error;

use tilewright::{Module, Program};

/// A program at given sizes.
pub struct Operator {
    /// The name in the tables.
    pub name: &'static str,
    file: &'static str,
    sizes: &'static [(&'static str, i64)],
    /// The exclusive upper bound of integer inputs.
    pub integers_below: u64,
}

const fn conv2d(name: &'static str, sizes: &'static [(&'static str, i64)]) -> Operator {
    Operator { name, file: "examples/flextensor/conv2d.tw", sizes, integers_below: 10 }
}

const fn plain(name: &'static str, file: &'static str, sizes: &'static [(&'static str, i64)]) -> Operator {
    Operator { name, file, sizes, integers_below: 10 }
}

/// Matrix products, convolutions of YOLO with their numbers, and operators that are bound by memory
/// or by mathematical functions.
pub const OPERATORS: &[Operator] = &[
    plain("gemm-512", "examples/flextensor/gemm.tw", &[("M", 512), ("K", 512), ("N", 512)]),
    plain("gemm-1024", "examples/flextensor/gemm.tw", &[("M", 1024), ("K", 1024), ("N", 1024)]),
    conv2d(
        "yolo-C6",
        &[
            ("N", 1),
            ("C", 256),
            ("H", 56),
            ("W", 56),
            ("K", 512),
            ("KH", 3),
            ("KW", 3),
            ("stride", 1),
            ("pad", 1),
        ],
    ),
    conv2d(
        "yolo-C8",
        &[
            ("N", 1),
            ("C", 256),
            ("H", 28),
            ("W", 28),
            ("K", 512),
            ("KH", 3),
            ("KW", 3),
            ("stride", 1),
            ("pad", 1),
        ],
    ),
    conv2d(
        "yolo-C13",
        &[
            ("N", 1),
            ("C", 1024),
            ("H", 14),
            ("W", 14),
            ("K", 1024),
            ("KH", 3),
            ("KW", 3),
            ("stride", 1),
            ("pad", 1),
        ],
    ),
    conv2d(
        "yolo-C15",
        &[
            ("N", 1),
            ("C", 1024),
            ("H", 7),
            ("W", 7),
            ("K", 1024),
            ("KH", 3),
            ("KW", 3),
            ("stride", 1),
            ("pad", 1),
        ],
    ),
    plain(
        "depthwise",
        "examples/flextensor/depthwise_conv2d.tw",
        &[
            ("N", 1),
            ("C", 32),
            ("H", 112),
            ("W", 112),
            ("M", 1),
            ("KH", 3),
            ("KW", 3),
            ("stride", 1),
            ("pad", 1),
        ],
    ),
    plain("gemv", "examples/flextensor/gemv.tw", &[("M", 2048), ("K", 2048)]),
    plain("batch-matmul", "examples/benchmarks/tbmm.tw", &[("B", 500), ("N", 26), ("M", 72), ("K", 26)]),
    plain("softmax", "examples/benchmarks/softmax.tw", &[("N", 512), ("D", 1024)]),
    plain("layer-norm", "examples/benchmarks/layer_norm.tw", &[("N", 512), ("D", 1024)]),
    plain(
        "group-norm",
        "examples/benchmarks/group_normalization.tw",
        &[("N", 4), ("G", 32), ("D", 4), ("H", 56), ("W", 56)],
    ),
    Operator {
        name: "1LUT",
        file: "examples/benchmarks/1LUT.tw",
        sizes: &[("B", 128), ("E", 100_000), ("D", 64), ("L", 50)],
        integers_below: 100_000,
    },
    plain("blur", "examples/images/blur_repeat.tw", &[("H", 1024), ("W", 1536)]),
];

impl Operator {
    /// Parses the program from the repository.
    pub fn program(&self) -> Result<Program, Box<dyn Error>> {
        let path = format!("{}/../../{}", env!("CARGO_MANIFEST_DIR"), self.file);
        let module = Module::parse(&std::fs::read_to_string(path)?)?;
        let name = module.functions().next().ok_or("an empty source")?.to_string();
        Ok(module.program(&name, self.sizes.iter().copied())?)
    }
}
