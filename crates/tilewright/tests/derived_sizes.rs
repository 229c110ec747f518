//! Tests of sizes that scalars determine, in the Rust library: kernels check the scalars of a call,
//! and programs keep the sizes in every form.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use ndarray::{Array1, array};
use tilewright::cache::Canonical;
use tilewright::ir::{Number, Program as Ir, verify};
use tilewright::{Compile, Error, Module, Program};

const BINS: &str = "def bins(float(N) x, float width) -> (y) { int bins = int(1 / width) + 1
    y(b) +=! 1.0 where b = int(clamp(x(i), 0, 1) / width), b in 0:bins }";

fn program(width: f64) -> Program {
    Module::parse(BINS).unwrap().program_with_scalars("bins", [("N", 4)], [("width", width)]).unwrap()
}

#[test]
fn a_kernel_refuses_scalars_of_another_size() {
    let kernel = program(0.5).compile_with(&Compile::default().threads(1)).unwrap();
    let x = array![0.1f32, 0.6, 0.7, 1.0];
    let mut y = Array1::<f32>::zeros(3);
    let mut call = |width: f64| {
        let call = kernel.call().input("x", &x).unwrap().output("y", &mut y).unwrap();
        call.scalar("width", width).unwrap().run()
    };
    call(0.5).unwrap();
    // The same size, so the same kernel.
    call(0.45).unwrap();
    let error = call(0.25).unwrap_err().to_string();
    assert!(error.starts_with("the program is specialised for `bins` = 3, but with width = 0.25"), "{error}");
    assert!(call(0.0).unwrap_err().to_string().contains("it converts inf to an integer"));
    assert!(call(f64::NAN).is_err());
    call(0.5).unwrap();
    assert_eq!(y, array![1.0, 2.0, 1.0]);
}

#[test]
fn the_scalar_or_the_size_is_needed() {
    let module = Module::parse(BINS).unwrap();
    let error = module.program("bins", [("N", 4)]).unwrap_err();
    assert!(matches!(&error, Error::OpenScalar { size, scalar } if size == "bins" && scalar == "width"));
    let by_size = module.program("bins", [("N", 4), ("bins", 3)]).unwrap();
    assert_eq!(by_size.ir(), program(0.5).ir());
    let sizes = [("N", 4), ("bins", 4)];
    let error = module.program_with_scalars("bins", sizes, [("width", 0.5)]).unwrap_err();
    assert!(error.to_string().contains("`bins` is 3 with width = 0.5, but 4 is given for it"), "{error}");
}

#[test]
fn keys_and_texts_have_the_size() {
    let (three, same, five) = (program(0.5), program(0.45), program(0.25));
    let canonical = |program: &Program| Canonical::new(program.ir());
    assert_eq!(canonical(&three).text(), canonical(&five).text());
    assert_eq!(canonical(&three).sizes(), canonical(&same).sizes());
    assert_ne!(canonical(&three).sizes(), canonical(&five).sizes());
    assert_eq!(canonical(&five).title(), "bins N=4,bins=5");
    // Another expression is another program.
    let other = Module::parse(&BINS.replace("+ 1\n", "+ 2\n")).unwrap();
    let other = other.program_with_scalars("bins", [("N", 4)], [("width", 0.5)]).unwrap();
    assert_ne!(canonical(&three).text(), canonical(&other).text());

    let of_ir = Program::try_from(five.ir().clone()).unwrap();
    assert_eq!(of_ir.ir(), five.ir());
}

/// Breaks a program.
type Change = fn(&mut Ir);

#[test]
fn broken_programs_are_not_verified() {
    let fine = program(0.5).ir().clone();
    verify(&fine).unwrap();
    let breaks: [(&str, Change); 4] = [
        ("nothing computes a derived symbol", |program| program.derived.clear()),
        ("is computed twice", |program| program.derived.push(program.derived[0].clone())),
        ("is no such symbol", |program| program.derived[0].symbol.0 = 0),
        ("is a different program", |program| {
            program.derived[0].value =
                tilewright::ir::Expr::literal(program.derived[0].value.dtype, Number::Int(3));
        }),
    ];
    for (reason, change) in breaks {
        let mut broken = fine.clone();
        change(&mut broken);
        let error = verify(&broken).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn other_sizes_follow_from_the_scalars() {
    let source =
        "def f(float(N) x, float a) -> (y) { int m = int(N * a)\n y(i) = x(i) where i in 0:min(m, N) }";
    let module = Module::parse(source).unwrap();
    let program = module.program_with_scalars("f", [("N", 100)], [("a", 0.5)]).unwrap();
    let scalar = |name: &str| (name == "a").then_some(Number::Float(0.5));
    let values = program.ir().derived_values(&|symbol| (symbol.0 == 0).then_some(7), &scalar);
    assert_eq!(values, Some(vec![7, 3]));
    let small = program.ir().at_sizes(&[7, 3]).unwrap();
    assert_eq!(small.shape(small.find_tensor("y").unwrap()), Some(vec![3]));
    assert_eq!(program.ir().derived_values(&|_| Some(7), &|_| None), None);
}
