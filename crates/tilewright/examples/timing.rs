//! Scratch: times a program under a schedule.
use std::time::Instant;
use tilewright::*;
use tilewright_runtime::timing::{measure, Options};
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let a: Vec<String> = std::env::args().collect();
    let src = std::fs::read_to_string(&a[1])?;
    let m = Module::parse(&src)?;
    let name = m.functions().last().unwrap().to_string();
    let sizes: Vec<(&str, i64)> = a[2].split(',').map(|p| { let (n, v) = p.split_once('=').unwrap(); (n, v.parse().unwrap()) }).collect();
    let threads: usize = a[3].parse()?;
    let prog = m.program(&name, sizes.iter().copied()).map_err(|e| { eprintln!("{e}"); e })?;
    let schedule = match a.get(4) { Some(p) if p != "-" => Some(parse_schedule(&std::fs::read_to_string(p)?)?), _ => None };
    let t = Instant::now();
    let k = prog.compile_with(&Compile { schedule, threads, ..Default::default() })?;
    let compile = t.elapsed();
    if std::env::var("SHOW").is_ok() { println!("{}\n{}", k.schedule(), tilewright_ir::print::nest(k.loops())); }
    if std::env::var("ASM").is_ok() { println!("{}", tilewright_codegen::assembly(k.loops(), &Cpu::host())?); }
    let sig = k.executable().signature();
    let fill = |p: &tilewright_runtime::signature::Parameter, seed: usize| -> Buffer {
        let mut b = Buffer::zeros(p.layout.dtype(), p.layout.shape()).unwrap();
        if let Some(s) = b.as_mut_slice::<f32>() { for (i, x) in s.iter_mut().enumerate() { *x = ((i * 31 + seed * 7) % 17) as f32 / 16.0 - 0.5; } }
        b
    };
    let cs: Vec<Buffer> = sig.constants.iter().enumerate().map(|(i, p)| fill(p, i)).collect();
    let is: Vec<Buffer> = sig.inputs.iter().enumerate().map(|(i, p)| fill(p, i + 5)).collect();
    let mut rs = sig.zero_results()?;
    let scalars: Vec<Number> = sig.scalars.iter().map(|s| Number::Float(s.fixed.map_or(1e-5, |f| f as f64))).collect();
    let cv: Vec<View> = cs.iter().map(|b| b.view()).collect();
    let b = k.bind(&cv)?;
    let iv: Vec<View> = is.iter().map(|b| b.view()).collect();
    let mut rv: Vec<ViewMut> = rs.iter_mut().map(|b| b.view_mut()).collect();
    if let Ok(n) = std::env::var("CALLS") { for _ in 0..n.parse::<usize>()? { b.run(&iv, &mut rv, &scalars)?; } return Ok(()); }
    let t = measure(&Options::default(), || b.run(&iv, &mut rv, &scalars))?;
    let gf: f64 = a.get(5).map_or(0.0, |g| g.parse().unwrap());
    println!("median {:.1} us p10 {:.1} p90 {:.1}; {:.1} GFLOP/s; compile {:.1} ms {:?}", t.median * 1e6, t.p10 * 1e6, t.p90 * 1e6, gf / t.median, compile.as_secs_f64() * 1e3, k.executable().kernel().compile_time());
    Ok(())
}
