#![allow(missing_docs, clippy::unwrap_used)]
mod harness;
#[path = "../../schedule/tests/support/mod.rs"]
mod support;
use harness::lent::Placement;
use harness::*;
#[test]
fn scratch() {
    let text = std::fs::read_to_string(std::env::var("SCRATCH").unwrap()).unwrap();
    let (source, rest) = text.split_once("--sizes").unwrap();
    let (sizes, steps) = rest.split_once("--schedule").unwrap();
    let sizes: Vec<(&str, i64)> = sizes
        .trim()
        .split(',')
        .filter(|p| !p.is_empty())
        .map(|p| {
            let (n, v) = p.split_once('=').unwrap();
            (n.trim(), v.trim().parse().unwrap())
        })
        .collect();
    let m = tilewright::Module::parse(source).unwrap_or_else(|e| panic!("{e}"));
    let p = m.program("f", sizes).unwrap_or_else(|e| panic!("{e}"));
    let s = tilewright::parse_schedule(steps).unwrap_or_else(|e| panic!("{e}"));
    let vectors: Vec<_> = harness::vectors();
    let at_end = std::env::var("START").is_err();
    for v in vectors {
        for threads in [1, 2] {
            let k = compile(&p, Some(s.clone()), v, threads);
            let k = match k {
                Ok(k) => k,
                Err(e) => {
                    println!("{v:?}: {e}");
                    continue;
                }
            };
            if threads == 1 {
                println!("{v:?}\n{}", tilewright_ir::print::nest(k.loops()));
            }
            if std::env::var("IR").is_ok() && threads == 1 {
                println!(
                    "{}",
                    tilewright_codegen::llvm_ir(
                        k.loops(),
                        &tilewright::Cpu { vectors: v, ..tilewright::Cpu::host() }
                    )
                    .unwrap()
                );
            }
            if std::env::var("ASM").is_ok() && threads == 1 {
                println!(
                    "{}",
                    tilewright_codegen::assembly(
                        k.loops(),
                        &tilewright::Cpu { vectors: v, ..tilewright::Cpu::host() }
                    )
                    .unwrap()
                );
            }
            let inputs = support::inputs(p.ir(), 1);
            let wanted = tilewright_interp::run(p.ir(), inputs.clone()).unwrap();
            let place = || Placement { at_end, ..Placement::contiguous() };
            eprintln!("run {v:?} {threads}");
            let found = Arguments::new(&k, &inputs, place).run(&k, &inputs, 2, place);
            match found {
                Ok(f) => println!("{:?}", difference(&wanted, &f, false)),
                Err(e) => println!("ERR {e}"),
            }
        }
    }
}
