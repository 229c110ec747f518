//! `tilewright show --stage space`: formats the search space of a program, with every knob, its
//! values, and the number of points.

use std::fmt::Write;

use tilewright::ir::Program;
use tilewright::kind::limit_names;
use tilewright::knob::Domain;
use tilewright::space::Space;
use tilewright::target::Target;

/// The number of random points that estimate which share of the space fits the limits.
const DRAWS: usize = 20_000;

/// Formats every knob with its values, and the number of points.
pub fn space<'t>(program: &'t Program, target: impl Into<Target<'t>>) -> String {
    let target = target.into();
    let space = Space::new(program, target);
    let knobs = space.knobs();
    let width = knobs.iter().map(|knob| knob.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for knob in knobs.iter() {
        let _ = writeln!(out, "{:<width$}  {}", knob.name, domain(&knob.domain));
    }
    let all = knobs.size() as f64;
    let share = knobs.allowed_share(DRAWS, 0);
    let _ =
        writeln!(out, "\n{all:.3e} points; about {:.3e} of them fit {}", all * share, limit_names(target));
    out
}

fn domain(domain: &Domain) -> String {
    match domain {
        Domain::Factorisation(own) => {
            format!("{} in {} parts: {} ways", own.extent(), own.parts(), domain.size())
        }
        Domain::Permutation(own) => format!("order of {}", own.0),
        Domain::Ordinal(own) => {
            let values: Vec<String> = own.values().iter().map(i64::to_string).collect();
            values.join(" < ")
        }
        Domain::Categorical(own) => own.choices().join(" | "),
    }
}
