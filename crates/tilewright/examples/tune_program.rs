//! Searches for a fast schedule of a convolution, and compares it with the default schedule.
//!
//!     cargo run --release -p tilewright --example tune_program
//!
//! Every trial is stored in a cache, so a second run starts where the first one ended.

use std::fs;
use std::time::Duration;

use tilewright::{Compile, Error, Module, ScheduleChoice, Tune, serve_if_worker};

const SOURCE: &str = "
def conv2d(float(N, C, H, W) I, float(O, C, KH, KW) F) -> (out) {
  out(n, o, h, w) +=! I(n, c, h + kh, w + kw) * F(o, c, kh, kw)
}";

fn main() -> Result<(), Error> {
    // Candidates run in worker processes, which start this program again.
    serve_if_worker();
    let module = Module::parse(SOURCE)?;
    let sizes = [("N", 1), ("C", 32), ("H", 58), ("W", 58), ("O", 32), ("KH", 3), ("KW", 3)];
    let program = module.program("conv2d", sizes)?;

    let cache = std::env::temp_dir().join("tilewright-example.sqlite");
    let options = Tune::default().time(Duration::from_secs(5)).cache(&cache);
    let tuned = program.tune_watched(&options, |progress| {
        eprint!("\r{} trials, best {:.1} us ", progress.trials, 1e6 * progress.best_seconds);
    })?;
    eprintln!();
    println!("default  {:.1} us", 1e6 * tuned.default_seconds);
    println!("tuned    {:.1} us after {} trials", 1e6 * tuned.seconds, tuned.trials);
    println!("{}", tuned.proof.describe().unwrap_or_default());
    println!("{}", tuned.kept.as_deref().unwrap_or_default());

    // The page shows every trial, the winner's loops, and how the time was spent.
    let page = std::env::temp_dir().join("tilewright-example.html");
    match fs::write(&page, tuned.report()?) {
        Ok(()) => println!("the report is {}", page.display()),
        Err(error) => eprintln!("the report cannot be written to {}: {error}", page.display()),
    }

    // From now on, every compilation with this cache uses the tuned schedule.
    let options = Compile { schedule: ScheduleChoice::Cache(cache), ..Compile::default() };
    let kernel = program.compile_with(&options)?;
    print!("\n{}", kernel.schedule());
    Ok(())
}
