//! `tilewright show --stage cost`: formats the time that the cost model predicts for a loop nest,
//! and the parts of that time.

use tilewright::cost::{Breakdown, CostModel, Group, Quantity};
use tilewright::ir::LoopNest;

use tilewright::report::time::seconds;

/// Formats the predicted time of a loop nest and its parts.
pub fn cost(nest: &LoopNest, model: &dyn CostModel) -> String {
    let Breakdown { seconds: whole, groups } = model.breakdown(nest);
    let groups = groups.iter().map(group).collect::<String>();
    format!(
        "{}{groups}\nThe components overlap in time, so their sum may exceed the expected time.\n",
        row("expected", &seconds(whole))
    )
}

/// Formats the parts that belong together, below the name of their kernel if they have one.
fn group(group: &Group) -> String {
    let head = group.kernel.as_ref().map(|(name, time)| row(name, &seconds(*time)));
    let indent = if head.is_some() { "  " } else { "" };
    let parts = group.parts.iter().map(|(name, own)| row(&format!("{indent}{name}"), &amount(own)));
    format!("\n{}{}", head.unwrap_or_default(), parts.collect::<String>())
}

fn row(name: &str, value: &str) -> String {
    format!("{name:<20} {value}\n")
}

fn amount(quantity: &Quantity) -> String {
    match quantity {
        Quantity::Seconds(time) => seconds(*time),
        Quantity::Share(share) => format!("{:.0} %", 100.0 * share),
        Quantity::Amount(amount) => amount.clone(),
    }
}
