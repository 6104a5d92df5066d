//! The scores of one attempt on both sides: which differ, and from where.

use std::borrow::Cow;

use crate::diff::Pair;
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_framework::record::{CycleRecord, ScoreColumn};

/// A node whose scores differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScoreDifference {
    /// Name of the node.
    pub node: Name,
    /// Its total; `None` where it was not scored.
    pub total: Pair<Option<i64>>,
    /// The plugins whose part of it differs.
    pub plugins: Vec<PluginScore>,
}

/// A plugin's score of a node that differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PluginScore {
    /// Name of the plugin.
    pub plugin: Symbol,
    /// The plugin's own score; `None` where it did not score.
    pub raw: Pair<Option<i64>>,
    /// The same from 0 to 100, in relation to the other nodes.
    pub normalized: Pair<Option<i64>>,
    /// The plugin's weight in the profile; `None` where it did not score.
    pub weight: Pair<Option<i64>>,
}

/// Where a difference of a score comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScoreSource {
    /// The plugin scored on one side only.
    Presence,
    /// The plugin said something else.
    Raw,
    /// The plugin said the same, but what it said of other nodes changed the scale.
    Normalized,
    /// Only the weight differs.
    Weight,
}

impl ScoreSource {
    /// As `explain` and the JSON of `diff` name it: `raw`.
    pub fn as_str(self) -> &'static str {
        match self {
            ScoreSource::Presence => "presence",
            ScoreSource::Raw => "raw",
            ScoreSource::Normalized => "normalized",
            ScoreSource::Weight => "weight",
        }
    }
}

impl PluginScore {
    /// Where the difference begins.
    pub fn source(&self) -> ScoreSource {
        match self {
            _ if self.weight.a.is_none() || self.weight.b.is_none() => ScoreSource::Presence,
            _ if self.raw.differs() => ScoreSource::Raw,
            _ if self.normalized.differs() => ScoreSource::Normalized,
            _ => ScoreSource::Weight,
        }
    }

    /// What counts in the total: the normalized score times the weight.
    pub fn weighted(&self) -> Pair<Option<i64>> {
        let times = |score: Option<i64>, weight: Option<i64>| Some(score? * weight?);
        Pair {
            a: times(self.normalized.a, self.weight.a),
            b: times(self.normalized.b, self.weight.b),
        }
    }
}

/// The scores that differ, by the name of the node.
pub(super) fn compare(a: &CycleRecord, b: &CycleRecord) -> Vec<ScoreDifference> {
    let mut nodes = Vec::new();
    for (record, is_b) in [(a, false), (b, true)] {
        for (at, id) in record.feasible.iter().enumerate().take(record.score.totals.len()) {
            nodes.push((record.nodes.name(*id), is_b, at));
        }
    }
    nodes.sort_unstable();
    let mut found = Vec::new();
    for group in nodes.chunk_by(|one, other| one.0 == other.0) {
        let at = |side: bool| group.iter().find(|(_, is_b, _)| *is_b == side).map(|(.., at)| *at);
        let Some((name, ..)) = group.first() else { continue };
        found.extend(node(*name, Pair { a, b }, Pair { a: at(false), b: at(true) }));
    }
    found
}

fn node(
    name: Name,
    records: Pair<&CycleRecord>,
    at: Pair<Option<usize>>,
) -> Option<ScoreDifference> {
    let total = |record: &CycleRecord, at: Option<usize>| record.score.totals.get(at?);
    let total = Pair { a: total(records.a, at.a), b: total(records.b, at.b) };
    let mut plugins: Vec<Symbol> = Vec::new();
    for column in records.a.score.columns().chain(records.b.score.columns()) {
        if !plugins.contains(&column.plugin) {
            plugins.push(column.plugin);
        }
    }
    let scored = plugins.into_iter().map(|plugin| {
        let (a, b) =
            (PluginColumn::of(records.a, plugin, at.a), PluginColumn::of(records.b, plugin, at.b));
        PluginScore {
            plugin,
            raw: Pair { a: a.raw(), b: b.raw() },
            normalized: Pair { a: a.normalized(), b: b.normalized() },
            weight: Pair { a: a.weight(), b: b.weight() },
        }
    });
    let differs = |score: &PluginScore| score.raw.differs() || score.weighted().differs();
    let plugins: Vec<PluginScore> = scored.filter(differs).collect();
    (total.differs() || !plugins.is_empty()).then_some(ScoreDifference {
        node: name,
        total,
        plugins,
    })
}

/// A plugin's scores in one cycle, and the node's place among them.
struct PluginColumn<'a>(Option<(Cow<'a, ScoreColumn>, usize)>);

impl PluginColumn<'_> {
    fn of(record: &CycleRecord, plugin: Symbol, at: Option<usize>) -> PluginColumn<'_> {
        let column = record.score.columns().find(|column| column.plugin == plugin);
        PluginColumn(column.zip(at))
    }

    fn raw(&self) -> Option<i64> {
        self.0.as_ref().and_then(|(column, at)| column.raw.get(*at))
    }

    fn normalized(&self) -> Option<i64> {
        self.0.as_ref().and_then(|(column, at)| column.normalized.get(*at))
    }

    fn weight(&self) -> Option<i64> {
        self.0.as_ref().map(|(column, _)| column.weight)
    }
}
