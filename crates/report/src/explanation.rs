//! Formats the parts of an [`Explanation`](tilewright_search::explain::Explanation) as text.

use tilewright_ir::LoopNest;
use tilewright_schedule::Illegal;
use tilewright_schedule::partial::Freedom;
use tilewright_search::explain::{
    Alternative, ComputedStatement, Decision, NOTABLE_DIFFERENCE, RefusedPlace, StageExplanation,
};

use crate::graph::buffer_text;

/// The most alternatives that a line of text names.
const NAMED: usize = 3;
/// Larger differences are shown as factors.
const MOST_PERCENT: f64 = 900.0;

/// Formats the buffers that a statement writes; empty for one that only writes tensors of the
/// caller.
pub fn storage(own: &ComputedStatement, nest: &LoopNest) -> String {
    let mut texts: Vec<String> = Vec::new();
    for text in own.buffers.iter().filter_map(|buffer| buffer_text(nest.buffer(*buffer))) {
        // Whole and partial tiles often have a buffer each.
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.join(", ")
}

/// Formats the reason for the place of a stage in one line. `seconds` is the predicted time of the
/// program.
pub fn reason(stage: &StageExplanation, seconds: f64) -> String {
    match &stage.decision {
        Decision::Forced(freedom) => forced(*freedom).to_owned(),
        Decision::Compared { alternatives, refused } if alternatives.is_empty() => {
            refused.first().map_or(forced(Freedom::Open).to_owned(), refusal)
        }
        Decision::Compared { alternatives, .. } => {
            let place = stage.statements.last().map(|own| &own.place);
            let different = best_of_each_place(alternatives);
            let named = different.iter().take(NAMED).map(|own| {
                let text = if Some(&own.place) == place { own.to_string() } else { own.in_short() };
                format!("{text} {}", difference(own, seconds))
            });
            let more = different.len().saturating_sub(NAMED);
            let more = (more > 0).then(|| format!("{more} more"));
            let named: Vec<String> = named.chain(more).collect();
            format!("{}: {}", rank(alternatives, seconds), named.join("; "))
        }
    }
}

/// The fastest alternative of each place; first the place that the stage has.
fn best_of_each_place(alternatives: &[Alternative]) -> Vec<&Alternative> {
    let mut best: Vec<&Alternative> = Vec::new();
    for own in alternatives {
        let key = (&own.place, own.is_own_place);
        if best.iter().all(|other| (&other.place, other.is_own_place) != key) {
            best.push(own);
        }
    }
    best.sort_by_key(|own| !own.is_own_place);
    best
}

/// The rank of the place among the alternatives, by predicted time.
fn rank(alternatives: &[Alternative], seconds: f64) -> String {
    let others = || alternatives.iter().filter(|own| !own.is_own_place);
    let faster = others().filter(|own| own.is_faster_than(seconds)).count();
    match faster {
        0 => format!("best of {}", others().count() + 1),
        _ => format!("number {} of {}", faster + 1, others().count() + 1),
    }
}

/// Why nothing was to be decided.
pub fn forced(freedom: Freedom) -> &'static str {
    match freedom {
        Freedom::NoReaders => "no other stage reads it",
        Freedom::InsideLoop => "inside an ordered loop of the program",
        Freedom::ReadOnce => "each value is read once",
        Freedom::Open => "no other place was found",
    }
}

/// The predicted time with an alternative, relative to the schedule: `+31 %`.
pub fn difference(own: &Alternative, seconds: f64) -> String {
    let ratio = own.seconds / seconds;
    match ratio - 1.0 {
        change if change.abs() < NOTABLE_DIFFERENCE => "±0 %".to_owned(),
        change if change < 0.0 => format!("−{:.0} %", -100.0 * change),
        change if change < MOST_PERCENT / 100.0 => format!("+{:.0} %", 100.0 * change),
        _ => format!("{ratio:.0} times"),
    }
}

/// Formats a refused place.
pub fn refusal(refused: &RefusedPlace) -> String {
    match &refused.why {
        why @ (Illegal::Inline { .. } | Illegal::ComputeAt { .. }) => why.to_string(),
        why => format!("not {}: {why}", refused.place),
    }
}

/// The meaning of the numbers, in sentences.
pub const LEGEND: &str = "All times are predictions of the cost model. A percentage after a place says how the \
                          predicted time of the whole program changes if the stage is computed there and the \
                          rest of the schedule stays.";
