//! Makes a failing case smaller, as long as it fails in the same way.

use tilewright_schedule::{Schedule, Step};

use super::case::Case;

/// The smallest case found that still fails.
pub fn shrink(mut case: Case, fails: impl Fn(&Case) -> bool) -> Case {
    loop {
        let smaller = candidates(&case).into_iter().find(|candidate| fails(candidate));
        match smaller {
            Some(smaller) => case = smaller,
            None => return case,
        }
    }
}

/// The cases that are smaller by one change.
fn candidates(case: &Case) -> Vec<Case> {
    let mut found = Vec::new();
    for at in 0..case.schedule.steps.len() {
        let mut steps = case.schedule.steps.clone();
        steps.remove(at);
        found.push(Case { schedule: Schedule { steps }, ..case.clone() });
    }
    for at in 0..case.source.body.len() {
        let mut smaller = case.clone();
        smaller.source.body.remove(at);
        found.push(smaller);
    }
    for at in 0..case.source.results.len() {
        let mut smaller = case.clone();
        smaller.source.results.remove(at);
        found.push(smaller);
    }
    for at in 0..case.source.params.len() {
        let mut smaller = case.clone();
        smaller.source.params.remove(at);
        found.push(smaller);
    }
    found.extend(with_smaller_sizes(case));
    found.extend(with_smaller_factors(case));
    found
}

fn with_smaller_sizes(case: &Case) -> Vec<Case> {
    let mut found = Vec::new();
    for (at, (_, value)) in case.source.sizes.iter().enumerate() {
        for less in 1..*value {
            let mut smaller = case.clone();
            smaller.source.sizes[at].1 = less;
            found.push(smaller);
        }
    }
    found
}

fn with_smaller_factors(case: &Case) -> Vec<Case> {
    let mut found = Vec::new();
    for (at, step) in case.schedule.steps.iter().enumerate() {
        let Step::Split { inner, .. } = step else { continue };
        for (part, (_, factor)) in inner.iter().enumerate() {
            for less in 1..(*factor).min(5) {
                let mut smaller = case.clone();
                if let Step::Split { inner, .. } = &mut smaller.schedule.steps[at] {
                    inner[part].1 = less;
                }
                found.push(smaller);
            }
        }
    }
    found
}
