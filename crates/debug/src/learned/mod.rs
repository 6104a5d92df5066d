//! Learned verdicts: what opaque plugins must have said where the real scheduler has spoken.
//!
//! The scheduler's message counts reasons ([`message`]). Those that known plugins explain are
//! matched with nodes ([`known`]); what is left belongs to the opaque plugins. Reports that name
//! nodes are read by [`reported`].

pub mod known;
pub mod message;
pub mod reported;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use self::known::{KnownVerdicts, Rejection};
use self::message::FitMessage;
use self::reported::{ReportedResults, koordinator, message_for, simulator};
use crate::why::info;
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_api::words::count;
use kubestep_cluster::World;
use kubestep_framework::pod::NamespacedName;
use kubestep_scheduler::what_if::Probe;

/// What opaque plugins must have said about a pod, by a message of the real scheduler.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Learned {
    /// The opaque plugins at PreFilter or Filter; it was one of them.
    pub plugins: Vec<Symbol>,
    /// The message of the real scheduler, as it was reported.
    pub message: String,
    /// The extension point at which they rejected.
    pub at: ReportingPoint,
    /// The reasons that no known plugin explains, each with its number of nodes.
    pub reasons: Vec<CountedReason>,
    /// The least number of nodes that they rejected.
    pub at_least: usize,
    /// The greatest number of nodes that they rejected.
    pub at_most: usize,
    /// The nodes that they rejected for certain: no known plugin does.
    pub nodes: Vec<Name>,
    /// Nodes that they may have rejected before a known plugin would have.
    pub among: Vec<Name>,
    /// What does not add up.
    pub contradictions: Vec<String>,
}

/// Where an opaque plugin spoke.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ReportingPoint {
    /// At Filter: the message counts their nodes.
    #[default]
    Filter,
    /// At PreFilter: it rejected the pod.
    PreFilter,
    /// At Reserve or Permit: it rejected the selected node.
    AfterSelection,
    /// Nowhere: known plugins explain the whole message.
    Nowhere,
}

/// A reason with its number of nodes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CountedReason {
    /// The reason as the message has it.
    pub reason: String,
    /// The number of nodes.
    pub nodes: usize,
}

/// What the real scheduler reported about a pod, as far as it is about opaque plugins.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedFailure {
    /// What the message of the pod's condition or event shows.
    pub learned: Option<Learned>,
    /// By reports that name nodes.
    pub reported: Vec<ReportedResults>,
}

/// The reason of the condition of a pod that the scheduler could not place.
const UNSCHEDULABLE: &str = "Unschedulable";

/// What the real scheduler reported about a pending pod: in the pod's condition and annotations,
/// and in `said`, a message, FailedScheduling events or koordinator's diagnosis. `None` if the
/// pod is not pending, or its profile has no opaque plugin.
pub fn heard(world: &World, pod: NamespacedName, said: Option<&str>) -> Option<ReportedFailure> {
    let object = world.api().objects().pod(pod)?;
    if !object.spec.node_name.is_empty() {
        return None;
    }
    let probe = Probe::new(world.scheduler(), &info(world, pod, object), world.now())?;
    let opaque = probe.framework().opaque()?;
    let all: Vec<Symbol> = opaque.plugins.iter().map(|plugin| plugin.name).collect();
    let known = KnownVerdicts::of_probe(&probe)?;
    let mut conditions = object.status.conditions.iter();
    let condition = conditions.find(|condition| condition.reason == UNSCHEDULABLE);
    let message = said.map(|said| message_for(said, pod));
    let message = message.or_else(|| condition.map(|condition| condition.message.clone()));
    let annotations = &object.metadata.annotations;
    let annotation = |name: &str| annotations.get_str(name).map(|text| &**text);
    let simulated = simulator(annotation, &all);
    let diagnosed = said.and_then(|said| koordinator(said, &known));
    Some(ReportedFailure {
        learned: message.and_then(|message| learn(&known, &message)),
        reported: simulated.into_iter().chain(diagnosed).collect(),
    })
}

impl ReportedFailure {
    /// Whether anything is known.
    pub fn is_empty(&self) -> bool {
        self.learned.is_none() && self.reported.is_empty()
    }

    /// All that was learned, in lines.
    pub fn lines(&self) -> Vec<String> {
        let learned = self.learned.iter().flat_map(Learned::lines);
        learned.chain(self.reported.iter().flat_map(ReportedResults::lines)).collect()
    }
}

/// What must have been said for `message`, given what known plugins say. `None` if the message is
/// none about nodes that do not fit, or no opaque plugin can reject nodes.
pub fn learn(known: &KnownVerdicts, message: &str) -> Option<Learned> {
    let fit = FitMessage::parse(message)?;
    let learned = Learned {
        plugins: known.opaque.clone(),
        message: message.to_owned(),
        ..Learned::default()
    };
    if fit.nodes == 1 && known.nodes.len() > 1 {
        return Some(after_selection(fit, learned));
    }
    if known.opaque.is_empty() {
        return None;
    }
    let mut learned = match fit.pre_filter.is_empty() {
        true => by_nodes(known, &fit, learned),
        false => by_pre_filter(known, &fit, learned),
    };
    if fit.nodes != known.nodes.len() {
        let (theirs, here) = (count(fit.nodes, "node"), known.nodes.len());
        learned.contradictions.push(format!("the message is about {theirs}, here are {here}"));
    }
    Some(learned)
}

/// A message about one node of many: a plugin rejected the pod after that node was selected.
fn after_selection(fit: FitMessage, learned: Learned) -> Learned {
    let reason = |(reason, nodes)| CountedReason { reason, nodes };
    let reasons = fit.reasons.into_iter().map(reason).collect();
    Learned { at: ReportingPoint::AfterSelection, reasons, at_least: 1, at_most: 1, ..learned }
}

fn by_pre_filter(known: &KnownVerdicts, fit: &FitMessage, learned: Learned) -> Learned {
    let own = known.pre_filter.as_ref().map(|status| status.message());
    if own.as_deref() == Some(fit.pre_filter.as_str()) {
        return Learned { at: ReportingPoint::Nowhere, ..learned };
    }
    let (reason, nodes) = (fit.pre_filter.clone(), fit.nodes);
    let reasons = vec![CountedReason { reason, nodes }];
    let all = known.nodes.iter().map(|(node, _)| *node).collect();
    Learned {
        at: ReportingPoint::PreFilter,
        reasons,
        at_least: nodes,
        at_most: nodes,
        nodes: all,
        ..learned
    }
}

/// The nodes that known plugins reject for the same reasons.
struct ReasonGroup<'a> {
    nodes: Vec<Name>,
    reasons: &'a BTreeSet<Symbol>,
    /// The least and the greatest number of them that opaque plugins rejected first.
    taken: (usize, usize),
}

fn by_nodes(known: &KnownVerdicts, fit: &FitMessage, mut learned: Learned) -> Learned {
    let mut theirs: BTreeMap<&str, usize> = BTreeMap::new();
    for (reason, nodes) in &fit.reasons {
        *theirs.entry(reason).or_default() += nodes;
    }
    let mut groups = groups(known);
    let ours: BTreeMap<Symbol, usize> = groups.iter().fold(BTreeMap::new(), |mut all, group| {
        for reason in group.reasons {
            *all.entry(*reason).or_default() += group.nodes.len();
        }
        all
    });
    let missing = |reason: &Symbol| {
        let there = theirs.get(reason.as_str()).copied().unwrap_or(0);
        ours[reason].saturating_sub(there)
    };
    take(&mut groups, &missing);
    for (reason, here) in &ours {
        let there = theirs.get(reason.as_str()).copied().unwrap_or(0);
        let holds = groups.iter().filter(|group| group.reasons.contains(reason));
        let most: usize = holds.map(|group| group.taken.1).sum();
        if there > *here || here - there > most {
            let words = format!("{} there, {here} here: {reason}", count(there, "node"));
            learned.contradictions.push(words);
        }
    }
    for (reason, there) in &theirs {
        let here = ours.get(&Symbol::new(reason)).copied().unwrap_or(0);
        if *there > here {
            let (reason, nodes) = ((*reason).to_owned(), there - here);
            learned.reasons.push(CountedReason { reason, nodes });
        }
    }
    settle(known, &groups, learned)
}

/// The nodes by the reasons for which known plugins reject them, and whether an opaque plugin runs
/// before.
fn groups(known: &KnownVerdicts) -> Vec<ReasonGroup<'_>> {
    let mut groups: Vec<(bool, ReasonGroup<'_>)> = Vec::new();
    for (node, rejection) in &known.nodes {
        let Some(Rejection { reasons, is_after_opaque }) = rejection else { continue };
        let same = |(after, group): &&mut (bool, ReasonGroup<'_>)| {
            after == is_after_opaque && group.reasons == reasons
        };
        match groups.iter_mut().find(same) {
            Some((_, group)) => group.nodes.push(*node),
            None => {
                let group = ReasonGroup { nodes: vec![*node], reasons, taken: (0, 0) };
                groups.push((*is_after_opaque, group));
            }
        }
    }
    for (after, group) in &mut groups {
        group.taken.1 = if *after { group.nodes.len() } else { 0 };
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Narrows how many nodes of each group opaque plugins rejected first, until nothing changes: of
/// each reason, `missing` nodes are not in the message.
fn take(groups: &mut [ReasonGroup<'_>], missing: &impl Fn(&Symbol) -> usize) {
    loop {
        let before: Vec<(usize, usize)> = groups.iter().map(|group| group.taken).collect();
        for at in 0..groups.len() {
            for reason in groups[at].reasons {
                let others = groups.iter().enumerate();
                let others =
                    others.filter(|(other, group)| *other != at && group.reasons.contains(reason));
                let (least, most) = others.fold((0, 0), |(least, most), (_, group)| {
                    (least + group.taken.0, most + group.taken.1)
                });
                let taken = &mut groups[at].taken;
                taken.0 = taken.0.max(missing(reason).saturating_sub(most)).min(taken.1);
                taken.1 = taken.1.min(missing(reason).saturating_sub(least)).max(taken.0);
            }
        }
        if groups.iter().map(|group| group.taken).eq(before) {
            return;
        }
    }
}

/// How many nodes, and which, and whether the numbers add up.
fn settle(known: &KnownVerdicts, groups: &[ReasonGroup<'_>], mut learned: Learned) -> Learned {
    let passing = known.nodes.iter().filter(|(_, rejection)| rejection.is_none());
    learned.nodes = passing.map(|(node, _)| *node).collect();
    let (least, most) = groups
        .iter()
        .fold((0, 0), |(least, most), group| (least + group.taken.0, most + group.taken.1));
    let by_nodes = (learned.nodes.len() + least, learned.nodes.len() + most);
    let counts = learned.reasons.iter().map(|reason| reason.nodes);
    // A node has at least one reason, and each reason counts it once.
    let by_reasons = (counts.clone().max().unwrap_or(0), counts.sum());
    let (low, high) = (by_nodes.0.max(by_reasons.0), by_nodes.1.min(by_reasons.1));
    if low > high {
        let (left, open) = (by_reasons.1, range(by_nodes));
        learned.contradictions.push(format!(
            "{open} must have been rejected by opaque plugins, but {} left",
            match left {
                0 => "no reason is".to_owned(),
                1 => "1 rejection is".to_owned(),
                more => format!("{more} rejections are"),
            }
        ));
    }
    (learned.at_least, learned.at_most) = if low > high { by_reasons } else { (low, high) };
    if learned.at_most == 0 && learned.nodes.is_empty() {
        learned.at = ReportingPoint::Nowhere;
    }
    for group in groups.iter().filter(|group| group.taken.1 > 0) {
        let all = group.taken.0 == group.nodes.len();
        let list = if all { &mut learned.nodes } else { &mut learned.among };
        list.extend(&group.nodes);
    }
    learned
}

/// `3 nodes` or `2 to 4 nodes`.
fn range((least, most): (usize, usize)) -> String {
    match least == most {
        true => count(least, "node"),
        false => format!("{least} to {}", count(most, "node")),
    }
}

impl Learned {
    /// Whether an opaque plugin spoke at all.
    pub fn is_spoken(&self) -> bool {
        self.at != ReportingPoint::Nowhere
    }

    /// Whether the message and the known plugins contradict each other.
    pub fn contradicts(&self) -> bool {
        !self.contradictions.is_empty()
    }

    /// What they said, in lines: who rejected how many nodes, why, and which.
    pub fn lines(&self) -> Vec<String> {
        let names: Vec<&str> = self.plugins.iter().map(|name| name.as_str()).collect();
        let names = match names.as_slice() {
            [] => "a plugin that kubestep does not have".to_owned(),
            names => names.join(" or "),
        };
        let reasons: Vec<String> = self.reasons.iter().map(|it| it.reason.clone()).collect();
        let reasons = reasons.join("; ");
        let mut lines = match self.at {
            ReportingPoint::Nowhere => vec![format!("{names} rejected no node")],
            ReportingPoint::PreFilter => {
                vec![format!("{names} rejected the pod at PreFilter: {reasons}")]
            }
            ReportingPoint::AfterSelection => {
                vec![format!("{names} rejected the selected node at Reserve or Permit: {reasons}")]
            }
            ReportingPoint::Filter => {
                let nodes = range((self.at_least, self.at_most));
                vec![format!("{names} rejected {nodes}: {reasons}")]
            }
        };
        if self.at == ReportingPoint::Filter {
            lines.extend(named("certain", &self.nodes));
            lines.extend(named("some of", &self.among));
        }
        let contradiction = |text: &String| format!("does not add up: {text}");
        lines.extend(self.contradictions.iter().map(contradiction));
        lines
    }
}

/// The nodes that are named in a line.
const NAMED: usize = 8;

fn named(words: &str, nodes: &[Name]) -> Option<String> {
    let names: Vec<String> = nodes.iter().take(NAMED).map(|node| node.to_string()).collect();
    let more = match nodes.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!nodes.is_empty()).then(|| format!("{words}: {}{more}", names.join(", ")))
}

#[cfg(test)]
mod tests;
