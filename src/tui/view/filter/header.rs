//! The header of the matrix: names of plugins in the room there is, and what is said of all nodes.

use crate::tui::glyph::VerdictSign;
use crate::tui::text::{head, words};
use kubestep_api::intern::Symbol;
use kubestep_framework::node::NodeId;
use kubestep_framework::record::column::Column as Verdicts;
use kubestep_framework::record::{CycleRecord, VerdictId};
use kubestep_framework::status::Status;

/// Least width of a column that has a sign and a word in its cells.
pub const WORDS: u16 = 8;
/// Least width of one, with a sign in its cells.
const SIGNS: u16 = 4;
/// Words of a name over a column that is not as wide as the name.
const NAME_LINES: usize = 3;

/// What the header says of a column: how many nodes it rejects, or that it was skipped.
#[derive(Clone, Copy, Default)]
pub struct ColumnNote {
    /// How many nodes it rejects.
    rejected: usize,
    /// How many pass, if not all nodes were evaluated.
    passed: Option<usize>,
    /// Whether the plugin had nothing to check.
    pub skipped: bool,
    /// Whether the plugin is opaque.
    unknown: bool,
}

/// The names over the columns with their widths: in one line where there is room, else a word under
/// the other, at last all equally narrow and words cut.
pub fn headers(names: Vec<Symbol>, room: u16) -> Vec<(String, u16)> {
    let whole = names.iter().map(|name| (name.to_string(), name.len() as u16));
    let stacked = names.iter().map(|name| {
        let words = words_of(name);
        let widest = words.iter().map(String::len).max().unwrap_or(0) as u16;
        (words.join("\n"), widest)
    });
    let candidates: [Vec<(String, u16)>; 2] = [whole.collect(), stacked.collect()];
    for headers in candidates {
        let widen = |(name, width): (String, u16)| (name, width.max(WORDS));
        let headers: Vec<_> = headers.into_iter().map(widen).collect();
        if headers.iter().map(|(_, width)| u32::from(width + 1)).sum::<u32>() <= u32::from(room) {
            return headers;
        }
    }
    let number = names.len().clamp(1, 1_000) as u16;
    let width = (room / number).saturating_sub(1).clamp(SIGNS, WORDS);
    names.iter().map(|name| (short_name(name, width), width)).collect()
}

/// A plugin's name over a narrow column: the beginnings of its words, one a line.
fn short_name(plugin: &str, width: u16) -> String {
    let words = words_of(plugin);
    let short = words.iter().map(|word| head(word, usize::from(width)));
    short.collect::<Vec<_>>().join("\n")
}

/// The first words of a name.
fn words_of(plugin: &str) -> Vec<String> {
    let mut words = words(plugin);
    words.truncate(NAME_LINES);
    words
}

/// Of the verdict, then of each plugin and extender, how many nodes are rejected; one pass over the
/// compact columns.
pub fn notes(cycle: &CycleRecord) -> Vec<ColumnNote> {
    let filter = &cycle.filter;
    let count = |column: &Verdicts<VerdictId>| column.iter().filter(|id| id.is_status()).count();
    let rejected = count(&filter.verdicts) + filter.extender.len();
    let passed = filter.verdicts.iter().filter(|id| *id == VerdictId::PASS).count();
    let passed = (passed > 0 && rejected + passed < cycle.nodes.order.len()).then_some(passed);
    let verdicts = ColumnNote { rejected, passed, ..ColumnNote::default() };
    let nominated = by_nominated(cycle);
    let plugins = filter.plugins.iter().zip(nominated).map(|(plugin, nominated)| {
        let skipped = || plugin.verdicts.iter().all(|id| id == VerdictId::SKIPPED);
        let rejected = count(&plugin.verdicts) + nominated;
        let unknown = plugin.verdicts.iter().any(|id| id == VerdictId::UNKNOWN);
        ColumnNote { rejected, passed: None, skipped: rejected == 0 && skipped(), unknown }
    });
    let extenders = filter.extenders.iter().map(|name| {
        let own = |(_, status): &&(NodeId, Status)| status.plugin() == *name;
        ColumnNote { rejected: filter.extender.iter().filter(own).count(), ..ColumnNote::default() }
    });
    std::iter::once(verdicts).chain(plugins).chain(extenders).collect()
}

/// Of each plugin, how many nodes it rejects only with the nominated pods.
fn by_nominated(cycle: &CycleRecord) -> Vec<usize> {
    let filter = &cycle.filter;
    let mut rejected = vec![0; filter.plugins.len()];
    for (node, id) in cycle.nodes.order.iter().filter_map(|n| Some((*n, filter.verdicts.get(*n)?)))
    {
        let Some(status) = cycle.verdicts.get(id) else { continue };
        let by = filter.plugins.iter().position(|plugin| plugin.plugin == status.plugin());
        let Some((by, column)) = by.and_then(|by| Some((by, filter.plugins.get(by)?))) else {
            continue;
        };
        rejected[by] += usize::from(column.verdicts.get(node) == Some(VerdictId::PASS));
    }
    rejected
}

impl ColumnNote {
    /// How many nodes a column rejects, in words or in a narrow column.
    pub fn text(self, words: bool) -> String {
        match (self.rejected, words) {
            (_, true) if self.unknown => "unknown".to_owned(),
            (_, false) if self.unknown => VerdictSign::Unknown.glyph().to_owned(),
            (0, true) if self.skipped => "skipped".to_owned(),
            (0, true) => {
                self.passed.map_or_else(|| "all pass".to_owned(), |passed| format!("✓ {passed}"))
            }
            (0, false) if self.skipped => VerdictSign::Skip.glyph().to_owned(),
            (0, false) => VerdictSign::Success.glyph().to_owned(),
            (n, true) => format!("✗ {n}"),
            (n @ 1..1_000, false) => format!("✗{n}"),
            (n, false) => format!("✗{}k", n / 1_000),
        }
    }
}
