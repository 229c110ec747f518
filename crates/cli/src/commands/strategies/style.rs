//! The style of the page, and of a drawing that stands alone.
//!
//! Both sheets have one rule a line and their light colours in a `:root` at the start of a line, which is how the rules
//! of a drawing are found here.

use crate::page::STYLE;

/// What only this page has.
const OWN: &str = include_str!("strategies.css");

/// For the page.
pub fn sheet() -> String {
    format!("{STYLE}\n{OWN}")
}

/// For a drawing alone: light, and without variables, which the renderer does not know.
pub fn light() -> String {
    let sheet = sheet();
    let rules = sheet.lines().filter(|line| line.starts_with("svg .") || line.starts_with("svg text"));
    let rules = rules.chain(sheet.lines().filter(|line| line.starts_with('.')));
    let rules = rules.collect::<Vec<_>>().join("\n");
    variables(&sheet)
        .into_iter()
        .fold(rules, |rules, (name, value)| rules.replace(&format!("var({name})"), value))
}

/// The light colours with their names. Dark ones are indented.
fn variables(sheet: &str) -> Vec<(&str, &str)> {
    let roots = sheet.lines().filter_map(|line| line.strip_prefix(":root {"));
    let settings = roots.flat_map(|root| root.trim_end_matches(['}', ' ']).split(';'));
    let pairs = settings.filter_map(|setting| setting.split_once(':'));
    pairs
        .map(|(name, value)| (name.trim(), value.trim()))
        .filter(|(name, _)| name.starts_with("--"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_variable_is_left_and_none_is_dark() {
        let light = light();
        assert!(!light.contains("var("), "{light}");
        assert!(light.contains(".s0 { color: #0072b2; }") && light.contains("fill: #1d2330;"), "{light}");
        assert!(!light.contains("#3f97d3"), "{light}");
    }
}
