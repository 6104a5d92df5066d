//! The columns of the plugins: as narrow as their numbers, with the name above in as many lines as that needs.

use crate::tui::text::{in_lines, words};
use crate::tui::theme::Scope;
use crate::tui::widget::grid::GridColumn;
use kubestep_framework::record::ScoreColumn;

/// Lines that the name of a plugin takes at most.
const NAME_LINES: usize = 3;

/// Columns of the widest of some numbers.
fn digits(numbers: impl Iterator<Item = i64>) -> usize {
    let (low, high) = numbers.fold((0, 0), |(low, high), n| (n.min(low), n.max(high)));
    low.to_string().len().max(high.to_string().len())
}

/// A score as far as its steps differ: `94`, `94→188`, `62→94`, `3200→94→188`.
pub fn steps(raw: i64, normalized: i64, weighted: i64) -> String {
    match (raw == normalized, normalized == weighted) {
        (true, true) => weighted.to_string(),
        (true, false) => format!("{normalized}→{weighted}"),
        (false, true) => format!("{raw}→{normalized}"),
        (false, false) => format!("{raw}→{normalized}→{weighted}"),
    }
}

/// What a plugin's column needs, whatever the lines of its name.
struct PluginColumn {
    words: Vec<String>,
    /// Columns of its widest score and of the note.
    least: usize,
    note: String,
}

impl PluginColumn {
    fn of(plugin: &ScoreColumn, weight: i64) -> PluginColumn {
        let same = plugin.raw.iter().eq(plugin.normalized.iter());
        let raw = if same { "" } else { "raw→norm→" };
        let (raws, normalized) = (digits(plugin.raw.iter()), digits(plugin.normalized.iter()));
        let weighted = digits(plugin.normalized.iter().map(|score| score * weight));
        let steps = match (same, weight == 1) {
            (true, true) => weighted,
            (true, false) => normalized + 1 + weighted,
            (false, true) => raws + 1 + normalized,
            (false, false) => raws + 1 + normalized + 1 + weighted,
        };
        let note = if same && weight == 1 { String::new() } else { format!("{raw}×{weight}") };
        let least = steps.max(note.chars().count());
        PluginColumn { words: words(&plugin.plugin), least, note }
    }

    fn title(&self, lines: usize) -> String {
        in_lines(&self.words, lines)
    }

    fn width(&self, lines: usize) -> usize {
        self.title(lines).lines().map(str::len).max().unwrap_or(0).max(self.least)
    }
}

/// The columns of some plugins with their weights. Names are in as few lines as make the columns as narrow
/// as they can be: a number alone below a long name is far from its row's others.
pub fn of_plugins<'a>(plugins: impl Iterator<Item = (&'a ScoreColumn, i64)>) -> Vec<GridColumn> {
    let columns: Vec<PluginColumn> =
        plugins.map(|(plugin, weight)| PluginColumn::of(plugin, weight)).collect();
    let sum = |lines: usize| columns.iter().map(|column| column.width(lines)).sum::<usize>();
    let narrowest = sum(NAME_LINES);
    let lines = (1..NAME_LINES).find(|lines| sum(*lines) == narrowest).unwrap_or(NAME_LINES);
    let grid = |column: PluginColumn| {
        let width = u16::try_from(column.width(lines)).unwrap_or(u16::MAX);
        let note = (!column.note.is_empty()).then(|| (column.note.clone(), Scope::TextDim));
        GridColumn::number(&column.title(lines), width).with_note(note.into_iter().collect())
    };
    columns.into_iter().map(grid).collect()
}
