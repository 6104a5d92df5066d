//! The header of the matrix: names of plugins in the room there is, and what is said of all nodes.

use std::collections::HashSet;

use crate::report;
use crate::tui::glyph::VerdictSign;
use crate::tui::text::{head, width, words};
use crate::tui::theme::Scope;
use crate::tui::view::filter_counts::{FilterCounts, verdicts_on_nodes};
use crate::tui::view::verdict;
use crate::tui::widget::bar::StyledParts;
use indexmap::IndexMap;
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
    /// Of these, on how many preemption can't help.
    unresolvable: usize,
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
    let short = words.iter().map(|word| match self::width(word) > usize::from(width) {
        true => format!("{}…", head(word, usize::from(width).saturating_sub(1))),
        false => word.clone(),
    });
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
    let is_unresolvable = |sign: VerdictSign| sign == VerdictSign::Unresolvable;
    let by_extender =
        |(_, status): &&(NodeId, Status)| is_unresolvable(verdict::of_code(status.code()));
    let mut by_id: IndexMap<VerdictId, usize> = IndexMap::new();
    filter.verdicts.iter().for_each(|id| *by_id.entry(id).or_default() += 1);
    let by_plugin = |(id, _): &(&VerdictId, &usize)| is_unresolvable(verdict::of_id(cycle, **id));
    let unresolvable = by_id.iter().filter(by_plugin).map(|(_, nodes)| nodes).sum::<usize>()
        + filter.extender.iter().filter(by_extender).count();
    let passed = filter.verdicts.iter().filter(|id| *id == VerdictId::PASS).count();
    let passed = (passed > 0 && rejected + passed < cycle.nodes.order.len()).then_some(passed);
    let verdicts = ColumnNote { rejected, unresolvable, passed, ..ColumnNote::default() };
    let plugins = filter.plugins.iter().map(|plugin| {
        let counts = FilterCounts::of(cycle, plugin, &on_nodes);
        ColumnNote {
            rejected: counts.rejected,
            unresolvable: counts.unresolvable(cycle),
            passed: sampled.then(|| counts.passed()),
            skipped: counts.is_skipped(),
            unknown: counts.is_unknown,
        }
    });
    let extenders = filter.extenders.iter().map(|name| {
        let own = |(_, status): &&(NodeId, Status)| status.plugin() == *name;
        let own = || filter.extender.iter().filter(own);
        ColumnNote {
            rejected: own().count(),
            unresolvable: own().filter(by_extender).count(),
            ..ColumnNote::default()
        }
    });
    std::iter::once(verdicts).chain(plugins).chain(extenders).collect()
}

impl ColumnNote {
    /// Whether preemption can't help on some nodes.
    pub fn has_unresolvable(self) -> bool {
        self.unresolvable > 0
    }

    /// How many nodes a column rejects, with words where the cells have some, in so many columns.
    pub fn parts(self, words: bool, room: u16) -> StyledParts {
        use VerdictSign::{Skip, Success, Unknown};
        let dim = |text: String| vec![(text, Scope::TextDim)];
        match (self.rejected, words) {
            (_, true) if self.unknown => dim("unknown".to_owned()),
            (_, false) if self.unknown => dim(Unknown.glyph().to_owned()),
            (0, true) if self.skipped => dim("skipped".to_owned()),
            (0, true) => dim(self
                .passed
                .map_or_else(|| "all pass".to_owned(), |passed| format!("✓ {passed}"))),
            (0, false) if self.skipped => dim(Skip.glyph().to_owned()),
            (0, false) => dim(Success.glyph().to_owned()),
            _ => self.rejections(words, room.into()),
        }
    }

    /// How many rejections of each kind: `⊘ 5 ✗ 1`; where these do not fit, the sum behind the signs.
    fn rejections(self, words: bool, room: usize) -> StyledParts {
        let blank = if words { " " } else { "" };
        let kinds = [
            (VerdictSign::Unresolvable, self.unresolvable),
            (VerdictSign::Unschedulable, self.rejected - self.unresolvable),
        ];
        let kinds: Vec<(VerdictSign, usize)> =
            kinds.into_iter().filter(|(_, nodes)| *nodes > 0).collect();
        let each = kinds.iter().enumerate().map(|(at, (sign, nodes))| {
            let before = if at > 0 { blank } else { "" };
            (format!("{before}{}{blank}{}", sign.glyph(), number(*nodes, words)), sign.scope())
        });
        let each: StyledParts = each.collect();
        if each.iter().map(|(text, _)| width(text)).sum::<usize>() <= room {
            return each;
        }
        let mut sum: StyledParts =
            kinds.iter().map(|(sign, _)| (sign.glyph().to_owned(), sign.scope())).collect();
        sum.push((format!("{blank}{}", number(self.rejected, words)), Scope::TextDim));
        sum
    }
}

/// A number, short in a column without words.
fn number(nodes: usize, words: bool) -> String {
    match nodes {
        1_000.. if !words => format!("{}k", nodes / 1_000),
        _ => nodes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejections_are_counted_by_their_kind() {
        let shown = |rejected, unresolvable, words, room| -> String {
            let note = ColumnNote { rejected, unresolvable, ..ColumnNote::default() };
            note.parts(words, room).into_iter().map(|(text, _)| text).collect()
        };
        assert_eq!(shown(6, 6, true, 8), "⊘ 6");
        assert_eq!(shown(6, 0, true, 8), "✗ 6");
        assert_eq!(shown(6, 5, true, 8), "⊘ 5 ✗ 1");
        assert_eq!(shown(1133, 200, true, 11), "⊘ 200 ✗ 933");
        assert_eq!(shown(1133, 200, true, 8), "⊘✗ 1133", "no room for both");
        assert_eq!(shown(6, 5, false, 4), "⊘5✗1");
        assert_eq!(shown(20, 5, false, 4), "⊘✗20");
        assert_eq!(shown(1133, 200, false, 4), "⊘✗1k");
        assert_eq!(shown(0, 0, true, 8), "all pass");
    }
}
