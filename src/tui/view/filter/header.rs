//! The header of the matrix: names of plugins in the room there is, and what is said of all nodes.

use std::collections::HashSet;

use crate::report;
use crate::tui::glyph::VerdictSign;
use crate::tui::text::{head, width, words};
use crate::tui::view::filter_counts::{FilterCounts, verdicts_on_nodes};
use kubestep_api::intern::Symbol;
use kubestep_framework::node::NodeId;
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

/// The names over the columns with their widths: in one line where there is room for them and for the
/// reason, else a word under the other, at last all equally narrow and words cut.
pub fn headers(names: Vec<Symbol>, room: u16, reason: u16) -> Vec<(String, u16)> {
    let whole = names.iter().map(|name| (name.to_string(), name.len() as u16));
    let stacked = names.iter().map(|name| {
        let words = words_of(name);
        let widest = words.iter().map(String::len).max().unwrap_or(0) as u16;
        (words.join("\n"), widest)
    });
    let whole: Vec<(String, u16)> = whole.collect();
    let stacked: Vec<(String, u16)> = stacked.collect();
    for (headers, beside) in [(whole, reason), (stacked, 0)] {
        let widen = |(name, width): (String, u16)| (name, width.max(WORDS));
        let headers: Vec<_> = headers.into_iter().map(widen).collect();
        let needed: u32 = headers.iter().map(|(_, width)| u32::from(width + 1)).sum();
        if needed + u32::from(beside) <= u32::from(room) {
            return headers;
        }
    }
    let number = names.len().clamp(1, 1_000) as u16;
    let width = (room / number).saturating_sub(1).clamp(SIGNS, WORDS);
    names.iter().map(|name| (short_name(name, width), width)).collect()
}

/// Rejections by extenders that a column is measured by.
const MEASURED: usize = 200;

/// Columns of the widest reason of a cycle; longer ones may be cut.
pub fn reason_width(cycle: &CycleRecord) -> u16 {
    let mut last = None;
    // Neighbours mostly have the same verdict.
    let changes = cycle.filter.verdicts.iter().filter(|id| last.replace(*id) != Some(*id));
    let verdicts: HashSet<VerdictId> = changes.collect();
    let verdicts = verdicts.into_iter().filter(|id| *id != VerdictId::PASS);
    let reasons = verdicts.map(|id| report::verdict::explain(cycle, id));
    let by_extenders = cycle.filter.extender.iter().take(MEASURED);
    let by_extenders = by_extenders.map(|(_, status)| report::verdict::reasons(status));
    let widest = reasons.chain(by_extenders).map(|reason| width(&reason)).max();
    u16::try_from(widest.unwrap_or(0)).unwrap_or(u16::MAX)
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

/// Of the verdict, then of each plugin and extender, how many of the evaluated nodes are rejected; one
/// pass over the compact columns.
pub fn notes(cycle: &CycleRecord) -> Vec<ColumnNote> {
    let filter = &cycle.filter;
    let on_nodes = verdicts_on_nodes(cycle);
    let sampled = cycle.evaluated_nodes < cycle.nodes.order.len();
    let rejected = filter.verdicts.iter().filter(|id| id.is_status()).count();
    let rejected = rejected + filter.extender.len();
    let passed = filter.verdicts.iter().filter(|id| *id == VerdictId::PASS).count();
    let passed = (passed > 0 && rejected + passed < cycle.nodes.order.len()).then_some(passed);
    let verdicts = ColumnNote { rejected, passed, ..ColumnNote::default() };
    let plugins = filter.plugins.iter().map(|plugin| {
        let counts = FilterCounts::of(cycle, plugin, &on_nodes);
        ColumnNote {
            rejected: counts.rejected,
            passed: sampled.then(|| counts.passed()),
            skipped: counts.is_skipped(),
            unknown: counts.is_unknown,
        }
    });
    let extenders = filter.extenders.iter().map(|name| {
        let own = |(_, status): &&(NodeId, Status)| status.plugin() == *name;
        ColumnNote { rejected: filter.extender.iter().filter(own).count(), ..ColumnNote::default() }
    });
    std::iter::once(verdicts).chain(plugins).chain(extenders).collect()
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
