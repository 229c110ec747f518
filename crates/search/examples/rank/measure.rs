//! Measures the times of schedules and writes them to a file.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tilewright::{Buffer, Compile, Cpu, DType, Number, OpenTarget, Pool, Program, Schedule, ScheduleChoice};
use tilewright_ir::Tensor;
use tilewright_runtime::Signature;
use tilewright_runtime::signature::Parameter;
use tilewright_search::space::Space;

use crate::operators::Operator;
use crate::sample;

/// How long one operator is measured before the next operator follows.
const OPERATOR_TIME: Duration = Duration::from_secs(6);
/// How long a kernel is repeated. The shortest call counts, because every disturbance makes a call
/// longer.
const REPEAT: Duration = Duration::from_millis(40);
const MIN_CALLS: usize = 3;
/// A kernel is not called again once its calls have taken this long.
const MAX_TIME: Duration = Duration::from_millis(900);

/// The separator of the steps of a schedule within a line.
pub const STEPS: &str = "; ";

/// Measures the operators in turn, on one thread and on two, until the time is up.
pub fn measure(file: &str, time: Duration, operators: &[&Operator]) -> Result<(), Box<dyn Error>> {
    let mut out = OpenOptions::new().create(true).append(true).open(file)?;
    let started = Instant::now();
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let mut rng = Pcg64Mcg::seed_from_u64(since_epoch.as_nanos() as u64);
    while started.elapsed() < time {
        for operator in operators {
            for threads in [1, 2] {
                measure_operator(operator, threads, &mut rng, &mut out)?;
            }
        }
    }
    Ok(())
}

fn measure_operator(
    operator: &Operator,
    threads: usize,
    rng: &mut Pcg64Mcg,
    out: &mut impl Write,
) -> Result<(), Box<dyn Error>> {
    let program = operator.program()?;
    let cpu = Cpu { cores: threads, ..Cpu::host() };
    let space = Space::new(program.ir(), &cpu);
    let mut call = Call::new(&program, operator, threads, &cpu)?;
    let started = Instant::now();
    while started.elapsed() < OPERATOR_TIME {
        let Some(schedule) = sample::schedule(&space, rng) else { break };
        let text = schedule.to_string();
        match call.time(&program, schedule) {
            Ok(seconds) => {
                let line = text.trim().replace('\n', STEPS);
                writeln!(out, "{},{threads},{seconds:e},{line}", operator.name)?;
            }
            Err(error) => eprintln!("{}: {error}\n{text}", operator.name),
        }
    }
    Ok(())
}

/// Measures all schedules of a file once more. The shorter of both times then excludes disturbances
/// of the first measurement.
pub fn repeat(file: &str, operators: &[&Operator]) -> Result<(), Box<dyn Error>> {
    let text = std::fs::read_to_string(file)?;
    let mut out = OpenOptions::new().append(true).open(file)?;
    for threads in [1, 2] {
        for operator in operators {
            let program = operator.program()?;
            let mut call = Call::new(&program, operator, threads, &Cpu { cores: threads, ..Cpu::host() })?;
            let own = format!("{},{threads},", operator.name);
            let schedules: BTreeSet<&str> = text
                .lines()
                .filter_map(|line| line.strip_prefix(own.as_str()))
                .filter_map(|rest| rest.split_once(',').map(|(_, steps)| steps))
                .collect();
            for steps in schedules {
                let schedule = tilewright::parse_schedule(&steps.replace(STEPS, "\n"))?;
                let seconds = call.time(&program, schedule)?;
                writeln!(out, "{own}{seconds:e},{steps}")?;
            }
        }
    }
    Ok(())
}

/// The arguments of a program, which all its schedules share.
struct Call {
    options: Compile,
    pool: Arc<Pool>,
    constants: Vec<Buffer>,
    inputs: Vec<Buffer>,
    results: Vec<Buffer>,
    scalars: Vec<Number>,
}

impl Call {
    fn new(
        program: &Program,
        operator: &Operator,
        threads: usize,
        cpu: &Cpu,
    ) -> Result<Call, Box<dyn Error>> {
        let signature = Signature::new(program.ir())?;
        let fill = |parameters: &[Parameter]| {
            parameters
                .iter()
                .map(|own| filled_buffer(own, operator))
                .collect::<Result<Vec<_>, Box<dyn Error>>>()
        };
        let scalars = signature.scalars.iter();
        Ok(Call {
            options: Compile::default().on(OpenTarget::Cpu(cpu.clone())).threads(threads),
            pool: Arc::new(Pool::new(threads)),
            constants: fill(&signature.constants)?,
            inputs: fill(&signature.inputs)?,
            results: signature.zero_results()?,
            scalars: scalars
                .map(|own| own.fixed.map_or(Number::Float(1e-5), |value| Number::Int(value.into())))
                .collect(),
        })
    }

    /// Returns the time of the shortest of several calls.
    fn time(&mut self, program: &Program, schedule: Schedule) -> Result<f64, Box<dyn Error>> {
        self.options.schedule = ScheduleChoice::Given(schedule);
        let kernel = program.compile_on(&self.options, Arc::clone(&self.pool))?;
        let constants: Vec<_> = self.constants.iter().map(Buffer::view).collect();
        let bound = kernel.bind(&constants)?;
        let inputs: Vec<_> = self.inputs.iter().map(Buffer::view).collect();
        let mut results: Vec<_> = self.results.iter_mut().map(Buffer::view_mut).collect();
        let mut best = f64::INFINITY;
        let (started, mut calls) = (Instant::now(), 0);
        while calls < MIN_CALLS || started.elapsed() < REPEAT {
            let begun = Instant::now();
            bound.run(&inputs, &mut results, &self.scalars)?;
            best = best.min(begun.elapsed().as_secs_f64());
            calls += 1;
            if started.elapsed() > MAX_TIME {
                break;
            }
        }
        Ok(best)
    }
}

fn filled_buffer(parameter: &Parameter, operator: &Operator) -> Result<Buffer, Box<dyn Error>> {
    let (dtype, mut rng) = (parameter.layout.dtype(), Pcg64Mcg::seed_from_u64(1));
    let mut tensor = Tensor::zeros(dtype, parameter.layout.shape())?;
    for at in 0..tensor.len() {
        let drawn = rng.next_u64() >> 11;
        tensor.set(
            at,
            match dtype {
                _ if dtype.is_float() => Number::Float(drawn as f64 / (1u64 << 53) as f64),
                DType::UInt8 => Number::Int((drawn & 255).into()),
                _ => Number::Int((drawn % operator.integers_below).into()),
            },
        );
    }
    Ok(Buffer::from_tensor(&tensor)?)
}
