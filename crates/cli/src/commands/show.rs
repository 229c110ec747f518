//! `tilewright show`

mod cost;
mod space;

use clap::ValueEnum;
use tilewright_codegen::c_family::gpu_code;
use tilewright_codegen::{CodegenError, assembly, llvm_ir};
use tilewright_ir::{LoopNest, print as text};
use tilewright_syntax::{Bindings, check, ranges};
use tilewright_target::{Cpu, Gpu, GpuApi};

use crate::args::{ShowArgs, Stage};
use crate::failure::Failure;
use crate::inputs::{bindings, refuse_unknown_sizes};
use crate::kernel::{Compiler, codegen_failure};
use crate::machine::gpu_or_stand_in;
use crate::output::print;
use crate::problem::concrete_program;
use crate::schedule::ScheduleSource;
use crate::source::Source;
use crate::target::Target;

/// Shows a stage of a program.
pub fn run(args: &ShowArgs) -> Result<(), Failure> {
    let show = match args.stage {
        Stage::Program | Stage::Ranges => of_text,
        Stage::Dependences => of_instances,
        Stage::Llvm | Stage::Asm => of_compiler,
        Stage::Cuda | Stage::Opencl => of_gpu,
        Stage::Space | Stage::Cost | Stage::Schedule | Stage::Loops => match gpu(args)? {
            Some(_) => of_gpu,
            None => of_compiler,
        },
        Stage::Hls | Stage::C => {
            return Err(not_yet(args.stage));
        }
    };
    let (source, function) = Source::read_function(&args.file)?;
    let bindings = bindings(&args.sizes)?;
    refuse_unknown_sizes(&source, &[source.function(&function)], &bindings)?;
    print(&show(args, &source, &function, &bindings)?)
}

fn not_yet(stage: Stage) -> Failure {
    let name = |stage: &Stage| Some(stage.to_possible_value()?.get_name().to_owned());
    let shown = Stage::value_variants()
        .iter()
        .filter(|stage| stage.to_possible_value().is_some_and(|value| !value.is_hide_set()));
    let has: Vec<String> = shown.filter_map(name).collect();
    Failure::Machine(format!(
        "this build has no stage {} yet; it has: {}",
        name(&stage).unwrap_or_default(),
        has.join(", ")
    ))
}

/// What is known of a program before it is compiled; sizes may be open.
fn of_text(args: &ShowArgs, source: &Source, function: &str, bindings: &Bindings) -> Result<String, Failure> {
    let checked = check(&source.parsed.ast, function, bindings);
    source.print(&checked.diagnostics);
    let Some(program) = &checked.program else { return Err(Failure::Reported) };
    Ok(match args.stage {
        Stage::Ranges => ranges(&source.file.text, &checked, program),
        _ => text::program(program),
    })
}

/// What is known of a program's instances at given sizes, whatever the target.
fn of_instances(
    args: &ShowArgs,
    source: &Source,
    function: &str,
    bindings: &Bindings,
) -> Result<String, Failure> {
    let program = concrete_program(source, function, bindings, args.rounding, "")?;
    tilewright_polyhedral::text::describe(&program).map_err(|why| {
        Failure::Machine(format!("the dependences of this program take too long to compute: {why}"))
    })
}

/// What the compiler makes of a program at given sizes.
fn of_compiler(
    args: &ShowArgs,
    source: &Source,
    function: &str,
    bindings: &Bindings,
) -> Result<String, Failure> {
    match Target::find(&args.target)? {
        Target::Cpu => {}
        Target::Interp => {
            return Err(Failure::Usage("--target interp runs a program as it is written".to_owned()));
        }
        Target::Gpu(..) => {
            let name = args.stage.to_possible_value().map(|value| value.get_name().to_owned());
            return Err(Failure::Usage(format!("--stage {} is for --target cpu", name.unwrap_or_default())));
        }
    }
    let compiler = Compiler::new(&args.compile)?;
    let program = concrete_program(source, function, bindings, args.rounding, "")?;
    let code = |generate: fn(&LoopNest, &Cpu) -> Result<String, CodegenError>| {
        generate(&compiler.loops(&program)?, &compiler.cpu).map_err(codegen_failure)
    };
    match args.stage {
        Stage::Space => Ok(space::space(&program, &compiler.cpu)),
        Stage::Cost => Ok(cost::cost(&compiler.loops(&program)?, &compiler.cpu)),
        Stage::Schedule => Ok(compiler.schedule.schedule(&program, &compiler.cpu).to_string()),
        Stage::Llvm => code(llvm_ir),
        Stage::Asm => code(assembly),
        _ => Ok(text::nest(&compiler.loops(&program)?)),
    }
}

/// The GPU that a stage is for, if it is for one. Text can be written for a GPU that is not there.
fn gpu(args: &ShowArgs) -> Result<Option<Gpu>, Failure> {
    let named = Target::find(&args.target)?;
    let wanted = match (args.stage, named) {
        (Stage::Cuda, Target::Gpu(GpuApi::Cuda, number)) => Some((GpuApi::Cuda, number)),
        (Stage::Opencl, Target::Gpu(GpuApi::OpenCl, number)) => Some((GpuApi::OpenCl, number)),
        (Stage::Cuda, _) => Some((GpuApi::Cuda, 0)),
        (Stage::Opencl, _) => Some((GpuApi::OpenCl, 0)),
        (_, Target::Gpu(api, number)) => Some((api, number)),
        (_, Target::Cpu | Target::Interp) => None,
    };
    Ok(wanted.map(|(api, number)| gpu_or_stand_in(api, number)))
}

/// What the compiler makes of a program for a GPU.
fn of_gpu(args: &ShowArgs, source: &Source, function: &str, bindings: &Bindings) -> Result<String, Failure> {
    let gpu = gpu(args)?.ok_or_else(|| Failure::Usage(format!("{} is no GPU", args.target)))?;
    let program = concrete_program(source, function, bindings, args.rounding, "")?;
    let schedule = ScheduleSource::read(args.compile.schedule.as_deref())?;
    match args.stage {
        Stage::Space => return Ok(space::space(&program, &gpu)),
        Stage::Schedule => return Ok(schedule.schedule(&program, &gpu).to_string()),
        _ => {}
    }
    let nest = schedule.apply(&program, &gpu)?;
    match args.stage {
        Stage::Cost => return Ok(cost::on_gpu(&nest, &gpu)),
        Stage::Loops => return Ok(text::nest(&nest)),
        _ => {}
    }
    let about = format!("{function}\n\n{}", schedule.schedule(&program, &gpu));
    Ok(gpu_code(&nest, &gpu, &about).map_err(codegen_failure)?.text)
}
