//! Chooses the CSS classes that distinguish strategies: by colour first, then by the dashes of
//! their line.
//!
//! The seven colours are those of Okabe and Ito, which people of every colour vision can
//! distinguish, without the yellow, which is too light for paper. The colours are defined in
//! `strategies.css`, because they differ between the light and the dark style.

const COLOURS: usize = 7;
const DASHES: usize = 3;

/// The CSS class with the colour of a strategy, by its index.
pub fn colour(strategy: usize) -> String {
    format!("s{}", strategy % COLOURS)
}

/// The CSS classes of a strategy's line: its colour, and a dash pattern where colours repeat.
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
    use crate::comparison::style::light_style;

    #[test]
    fn lines_differ_and_have_a_style() {
        let lines: BTreeSet<String> = (0..21).map(line).collect();
        assert_eq!(lines.len(), 21);
        let style = light_style();
        for class in lines.iter().flat_map(|line| line.split(' ')) {
            assert!(style.contains(&format!(".{class} {{")), "{class}");
        }
    }
}
