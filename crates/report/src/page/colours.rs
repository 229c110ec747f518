//! Resolves the variables of a style sheet to colours, for drawings that stand alone: programs that
//! show or convert SVG files do not all know variables.
//!
//! A style sheet has one rule per line, its light colours in a `:root` at the start of a line, and
//! its dark colours in an indented `:root`.

/// The colours on white or on dark paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Dark text on white paper.
    Light,
    /// Light text on dark paper.
    Dark,
}

/// Replaces the variables in `rules` by the colours that a style sheet gives them.
pub fn resolve(rules: &str, sheet: &str, scheme: Scheme) -> String {
    let colours = colours(sheet, scheme).into_iter();
    colours.fold(rules.to_owned(), |rules, (name, value)| rules.replace(&format!("var({name})"), value))
}

/// The rules with light colours, followed by those with dark colours for viewers that prefer them.
pub fn for_both_schemes(rules: &str, sheet: &str) -> String {
    let coloured: Vec<&str> = rules.lines().filter(|rule| rule.contains("var(")).collect();
    let [light, dark] = [(rules.to_owned(), Scheme::Light), (coloured.join("\n"), Scheme::Dark)]
        .map(|(rules, scheme)| resolve(&rules, sheet, scheme));
    format!("{}\n@media (prefers-color-scheme: dark) {{\n{}\n}}\n", light.trim_end(), dark.trim_end())
}

/// The names and values of a scheme's colours.
fn colours(sheet: &str, scheme: Scheme) -> Vec<(&str, &str)> {
    let root = |line: &'_ str| line.starts_with(' ') == (scheme == Scheme::Dark);
    let roots =
        sheet.lines().filter(|line| root(line)).filter_map(|line| line.trim().strip_prefix(":root {"));
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

    const SHEET: &str = ":root { color-scheme: light dark; --ink: #111; --paper: #fff; }\n\
        @media (prefers-color-scheme: dark) {\n  :root { --ink: #eee; --paper: #000; }\n}\n";

    #[test]
    fn each_scheme_has_its_colours() {
        let rule = ".a { fill: var(--ink); stroke: var(--paper); }";
        assert_eq!(resolve(rule, SHEET, Scheme::Light), ".a { fill: #111; stroke: #fff; }");
        assert_eq!(resolve(rule, SHEET, Scheme::Dark), ".a { fill: #eee; stroke: #000; }");
    }

    #[test]
    fn only_coloured_rules_differ() {
        assert_eq!(
            for_both_schemes(".a { fill: var(--ink); }\n.b { opacity: 1; }\n", SHEET),
            ".a { fill: #111; }\n.b { opacity: 1; }\n\
             @media (prefers-color-scheme: dark) {\n.a { fill: #eee; }\n}\n"
        );
    }
}
