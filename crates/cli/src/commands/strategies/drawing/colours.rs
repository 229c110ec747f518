//! What tells strategies apart: the colour first, then how a line is dashed.
//!
//! The colours are those of Okabe and Ito, which people of every colour vision can tell apart, without the yellow, which
//! is too light for paper. They are in `strategies.css`, as they depend on light and dark.

const COLOURS: usize = 7;
const DASHES: usize = 3;

/// The class with the colour of a strategy, by its place among the others.
pub fn colour(strategy: usize) -> String {
    format!("s{}", strategy % COLOURS)
}

/// The classes of a strategy's line: its colour, and a dash where colours repeat.
pub fn line(strategy: usize) -> String {
    match strategy / COLOURS % DASHES {
        0 => colour(strategy),
        dash => format!("{} d{dash}", colour(strategy)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::commands::strategies::style::light;

    #[test]
    fn lines_differ_and_have_a_style() {
        let lines: BTreeSet<String> = (0..21).map(line).collect();
        assert_eq!(lines.len(), 21);
        let style = light();
        for class in lines.iter().flat_map(|line| line.split(' ')) {
            assert!(style.contains(&format!(".{class} {{")), "{class}");
        }
    }
}
