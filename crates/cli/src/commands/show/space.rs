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
    let all = knobs.size_log10();
    let allowed = all + knobs.allowed_share(DRAWS, 0).log10();
    let (all, allowed) = (scientific(all), scientific(allowed));
    let _ = writeln!(out, "\n{all} points; about {allowed} of them fit {}", limit_names(target));
    out
}

/// Writes a number that is given by its decimal logarithm: spaces of long programs have more points
/// than a float can hold.
fn scientific(log10: f64) -> String {
    if log10 == f64::NEG_INFINITY {
        return "0".to_owned();
    }
    let exponent = log10.floor();
    let mantissa = format!("{:.3}", 10f64.powf(log10 - exponent));
    match mantissa.as_str() {
        "10.000" => format!("1.000e{}", exponent + 1.0),
        _ => format!("{mantissa}e{exponent}"),
    }
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

#[cfg(test)]
mod tests {
    use super::scientific;

    #[test]
    fn numbers_from_their_logarithms() {
        for (number, text) in
            [(1.0, "1.000e0"), (484_000.0, "4.840e5"), (999_999.0, "1.000e6"), (7e300, "7.000e300")]
        {
            assert_eq!(scientific(f64::log10(number)), text);
        }
        assert_eq!(scientific(f64::log10(0.0)), "0");
        assert_eq!(scientific(400.5), "3.162e400");
    }
}
