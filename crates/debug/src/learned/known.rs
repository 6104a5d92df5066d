//! What the plugins of this program say about each node, without opaque ones: by a record or a
//! probe.

use std::collections::BTreeSet;

use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint;
use kubestep_framework::opaque::OpaquePlugins;
use kubestep_framework::record::{CycleRecord, PluginStatus, VerdictId};
use kubestep_framework::status::Status;
use kubestep_scheduler::what_if::Probe;

/// What the known plugins say about the nodes.
#[derive(Clone, PartialEq, Debug)]
pub struct KnownVerdicts {
    /// The opaque plugins at PreFilter or Filter.
    pub opaque: Vec<Symbol>,
    /// Each node, with its rejection by the first known plugin that rejects it.
    pub nodes: Vec<(Name, Option<Rejection>)>,
    /// The rejection of the pod by a known PreFilter plugin.
    pub pre_filter: Option<Status>,
}

/// A rejection of a node by a known plugin.
#[derive(Clone, PartialEq, Debug)]
pub struct Rejection {
    /// The reasons, each once.
    pub reasons: BTreeSet<Symbol>,
    /// Whether an opaque plugin runs before the plugin, so that it may have rejected the node
    /// first.
    pub is_after_opaque: bool,
}

impl Rejection {
    fn new(status: &Status, is_after_opaque: bool) -> Rejection {
        Rejection { reasons: status.reasons().iter().copied().collect(), is_after_opaque }
    }
}

/// The opaque plugins that can reject nodes.
fn rejecting(opaque: &OpaquePlugins) -> Vec<Symbol> {
    let points = [ExtensionPoint::PreFilter, ExtensionPoint::Filter];
    opaque.at(&points).map(|plugin| plugin.name).collect()
}

/// The rejection of a node that PreFilter left out.
fn narrowed(answers: &[PluginStatus], is_after_opaque: bool) -> Rejection {
    let narrowing = answers.iter().filter(|answer| answer.nodes.is_some());
    let names: BTreeSet<&str> = narrowing.map(|answer| answer.plugin.as_str()).collect();
    let names = names.into_iter().collect::<Vec<_>>().join(" ");
    let text = format!("node(s) didn't satisfy plugin(s) [{names}]");
    Rejection::new(&Status::unresolvable(&text), is_after_opaque)
}

fn first_rejection(answers: &[PluginStatus]) -> Option<Status> {
    let mut rejections = answers.iter().filter(|answer| answer.status.is_rejected());
    rejections.next().map(|answer| answer.status.clone())
}

impl KnownVerdicts {
    /// As a cycle recorded it; `None` without opaque plugins, or if its matrix was left out.
    pub fn of_record(record: &CycleRecord) -> Option<KnownVerdicts> {
        let opaque = record.opaque.as_ref().filter(|_| record.is_whole())?;
        let columns = &record.filter.plugins;
        let first_opaque = columns
            .iter()
            .position(|column| opaque.plugins.iter().any(|plugin| plugin.name == column.plugin));
        let after = |at: usize| first_opaque.is_some_and(|first| first < at);
        let rejection = |node| {
            let final_verdict = record.filter.verdicts.get(node);
            if final_verdict == Some(VerdictId::NARROWED) {
                return Some(narrowed(&record.pre_filter, false));
            }
            if let Some(status) = final_verdict.and_then(|id| record.verdicts.get(id)) {
                let at = columns.iter().position(|column| column.plugin == status.plugin());
                return Some(Rejection::new(status, at.is_some_and(after)));
            }
            columns.iter().enumerate().find_map(|(at, column)| {
                let status = record.verdicts.get(column.verdicts.get(node)?)?;
                Some(Rejection::new(status, after(at)))
            })
        };
        let nodes = record.nodes.order.iter();
        Some(KnownVerdicts {
            opaque: rejecting(opaque),
            nodes: nodes.map(|node| (record.nodes.name(*node), rejection(*node))).collect(),
            pre_filter: first_rejection(&record.pre_filter),
        })
    }

    /// As the plugins say now; `None` without opaque plugins.
    pub(crate) fn of_probe(probe: &Probe) -> Option<KnownVerdicts> {
        let framework = probe.framework();
        let opaque = framework.opaque()?;
        let profile = framework.profile().at(ExtensionPoint::Filter);
        let place = |name: Symbol| profile.iter().position(|plugin| plugin.name == name);
        let is_opaque = |name: Symbol| framework.profile().is_opaque(name);
        let first_opaque = profile.iter().position(|plugin| is_opaque(plugin.name));
        let after = |name: Symbol| first_opaque.is_some_and(|first| place(name) > Some(first));
        let filters = framework.at(ExtensionPoint::Filter);
        let answers = probe.answers();
        let narrowing = || answers.iter().filter_map(|answer| answer.nodes.as_ref());
        let rejection =
            |node: Name, rejections: &[kubestep_scheduler::what_if::FilterRejection]| {
                if narrowing().any(|kept| !kept.contains(&node)) {
                    return Some(narrowed(answers, false));
                }
                // A pass with nominated pods comes first, so it decides where both reject.
                let first = rejections.iter().min_by_key(|rejection| rejection.filter)?;
                let name =
                    filters.get(first.filter).map(|plugin| plugin.name()).unwrap_or_default();
                Some(Rejection::new(&first.status, after(name)))
            };
        let rejections = probe.rejections();
        let nodes = probe.snapshot().iter().zip(&rejections);
        Some(KnownVerdicts {
            opaque: rejecting(opaque),
            nodes: nodes.map(|(node, own)| (node.name, rejection(node.name, own))).collect(),
            pre_filter: first_rejection(answers),
        })
    }
}
