//! What the bars of the scores mean, and what every node got, in the room there is.

use crate::tui::text::width;
use crate::tui::theme::Scope;
use crate::tui::widget::bar::{self, StyledParts};
use kubestep_api::intern::Symbol;
use kubestep_api::words::count;

/// Blanks between two entries.
const GAP: &str = "  ";

/// Each series of the bars with its fill and name, in lines of `room` columns.
pub fn series(names: &[Symbol], room: usize) -> Vec<StyledParts> {
    let mut lines: Vec<StyledParts> = Vec::new();
    let mut used = 0;
    for (series, name) in names.iter().enumerate() {
        let entry = [
            (bar::fill(series).repeat(2), Scope::of_series(series)),
            (format!(" {name}{GAP}"), Scope::Text),
        ];
        let needed: usize = entry.iter().map(|(text, _)| width(text)).sum();
        match lines.last_mut().filter(|_| used + needed <= room + GAP.len()) {
            Some(line) => line.extend(entry),
            None => {
                used = 0;
                lines.push(entry.into());
            }
        }
        used += needed;
    }
    lines
}

/// Behind the series, or below them, what each folded plugin gave every node; zeros add nothing to say.
pub fn with_equal(
    mut lines: Vec<StyledParts>,
    equal: &[(Symbol, i64)],
    room: usize,
) -> Vec<StyledParts> {
    if equal.is_empty() {
        return lines;
    }
    let used = lines.last().map_or(0, |line| line.iter().map(|(text, _)| width(text)).sum());
    let whole = equal_text(equal, usize::MAX);
    match lines.last_mut().filter(|_| used + width(&whole) <= room) {
        Some(line) => line.push((whole, Scope::TextDim)),
        None => lines.push(vec![(equal_text(equal, room), Scope::TextDim)]),
    }
    lines
}

/// `= on every node (O): TaintToleration 300 and 3 more`: those that gave something, as many as fit.
fn equal_text(equal: &[(Symbol, i64)], room: usize) -> String {
    let given = equal.iter().filter(|(_, score)| *score != 0);
    let given: Vec<String> = given.map(|(name, score)| format!("{name} {score}")).collect();
    if given.is_empty() {
        return format!("= on every node (O): 0 by {}", count(equal.len(), "plugin"));
    }
    let text = |named: usize| match (named, given.len() - named) {
        (0, more) => format!("= on every node (O): {}", count(more, "plugin")),
        (_, 0) => format!("= on every node (O): {}", given.join(", ")),
        (_, more) => format!("= on every node (O): {} and {more} more", given[..named].join(", ")),
    };
    let fitting = (0..=given.len()).rev().map(text).find(|text| width(text) <= room);
    fitting.unwrap_or_else(|| text(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(lines: &[StyledParts]) -> Vec<String> {
        let text = |line: &StyledParts| line.iter().map(|(text, _)| text.as_str()).collect();
        lines.iter().map(text).map(|line: String| line.trim_end().to_owned()).collect()
    }

    #[test]
    fn what_does_not_fit_goes_to_a_line_of_its_own_and_is_counted_at_last() {
        let names = ["PodTopologySpread", "ImageLocality"].map(Symbol::new);
        let equal = [("TaintToleration", 300), ("NodeResourcesFit", 99), ("DynamicResources", 0)];
        let equal = equal.map(|(name, score)| (Symbol::new(name), score));
        let lines = |room| shown(&with_equal(series(&names, room), &equal, room));
        let series = "██ PodTopologySpread  ▒▒ ImageLocality";
        let all = "= on every node (O): TaintToleration 300, NodeResourcesFit 99";
        assert_eq!(lines(120), [format!("{series}  {all}")]);
        assert_eq!(lines(80), [series, all]);
        assert_eq!(lines(60), [series, "= on every node (O): TaintToleration 300 and 1 more"]);
        let narrow = ["██ PodTopologySpread", "▒▒ ImageLocality", "= on every node (O): 2 plugins"];
        assert_eq!(lines(30), narrow);
        assert_eq!(equal_text(&equal[2..], 80), "= on every node (O): 0 by 1 plugin");
    }
}
