//! How certain the decision of a cycle is: what opaque plugins could have changed about it.
//!
//! The decision is whether the pod gets a node, which one, and which pods it preempts; not the
//! words of a rejection. It is judged from the state in which the cycle began, and as if no opaque
//! plugin failed with an error.

use std::fmt;

use super::{CycleRecord, Outcome, PluginStatus, ScoreColumn, VerdictId};
use crate::node::NodeId;
use crate::opaque::{OpaquePlugin, OpaquePlugins};
use crate::plugin::ScoreBasis;
use crate::preemption::eligibility::{NEVER, VICTIM_TERMINATING};
use crate::record::scores::MAX_NODE_SCORE;
use crate::status::{Code, Status};
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_config::ExtensionPoint::{
    self, Bind, Filter, Permit, PlacementGenerate, PlacementScore, PostFilter, PreBind, PreEnqueue,
    PreFilter, QueueSort, Reserve, Score,
};

/// The points at which a plugin can reject nodes.
const REJECTING: &[ExtensionPoint] = &[PreFilter, Filter];
/// The points at which a plugin can reject or hold a pod that has a node.
const AFTER_SELECTION: &[ExtensionPoint] = &[Reserve, Permit, PreBind, Bind];
/// The points at which a plugin can change what becomes of the pods of a group.
const OF_GROUP: &[ExtensionPoint] =
    &[PreFilter, Filter, Score, Reserve, Permit, PlacementGenerate, PlacementScore];

/// Where the choice of a node depends on others.
const OTHERS: &str = "; rejecting other nodes could also change it";

/// How certain a decision is.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Certainty {
    /// What opaque plugins could have changed; empty if the decision is certain.
    pub uncertainties: Vec<Uncertainty>,
    /// How far the selected node leads, if opaque plugins score.
    pub lead: Option<ScoreLead>,
}

/// What opaque plugins could have changed about a decision.
#[derive(Clone, PartialEq, Debug)]
pub enum Uncertainty {
    /// At PreEnqueue: keep the pod out of the active queue.
    Gate {
        /// The plugin, by name.
        plugin: Symbol,
    },
    /// At QueueSort: try other pods first.
    Order {
        /// The plugin that orders the queue.
        plugin: Symbol,
        /// How many other pods it could have put first.
        others: usize,
    },
    /// At PreFilter or Filter: reject the selected node.
    Reject {
        /// The plugin, by name.
        plugin: Symbol,
        /// The extension points at which it could.
        points: Vec<ExtensionPoint>,
        /// The selected node, by name.
        node: Name,
        /// Whether a rejection of other nodes could change the choice, too: scores are compared
        /// with theirs, they tie, or the search would go on.
        others: bool,
    },
    /// At Score: prefer another node. The numbers are in [`Certainty::lead`].
    Prefer {
        /// The plugins that score.
        plugins: Vec<Symbol>,
    },
    /// After the selection: reject or hold the pod.
    Hold {
        /// The plugin, by name.
        plugin: Symbol,
        /// The extension points at which it could.
        points: Vec<ExtensionPoint>,
    },
    /// At PostFilter: make room for the pod, or keep others from doing that.
    MakeRoom {
        /// The plugin, by name.
        plugin: Symbol,
    },
    /// At PreFilter or Filter: reject the node on which the pod preempts others.
    RejectPreemption {
        /// The plugin, by name.
        plugin: Symbol,
        /// The extension points at which it could.
        points: Vec<ExtensionPoint>,
        /// The node, by name.
        node: Name,
        /// Whether a rejection of other nodes could change the choice, too: the search for victims
        /// ended early.
        others: bool,
    },
    /// At PreFilter or Filter: reject nodes before others do, which lets the pod preempt.
    AllowPreemption {
        /// The plugin, by name.
        plugin: Symbol,
        /// The extension points at which it could.
        points: Vec<ExtensionPoint>,
    },
    /// At PreFilter or Filter: avoid the error that ended the cycle.
    AvoidError {
        /// The plugin, by name.
        plugin: Symbol,
        /// The extension points at which it could.
        points: Vec<ExtensionPoint>,
    },
    /// What becomes of the other pods of the group, and where the group is placed.
    Group {
        /// The plugin, by name.
        plugin: Symbol,
        /// The extension points at which it could.
        points: Vec<ExtensionPoint>,
    },
}

/// How far the selected node leads over its strongest rival.
#[derive(Clone, PartialEq, Debug)]
pub struct ScoreLead {
    /// The selected node, by name.
    pub node: Name,
    /// The opaque plugins that score, with their weights.
    pub scorers: Vec<(Symbol, i64)>,
    /// The most points by which they can favour one node over another: 100 times their weights.
    pub reach: i64,
    /// The other node that needs the fewest points to be selected.
    pub rival: Name,
    /// The points by which the selected node leads.
    pub by: i64,
    /// The most points, weighted, by which the opaque plugins may favour the rival so that the
    /// selected node still wins. It is one less than `by` if the rival would win the tie.
    pub allowed: i64,
    /// The number of other nodes that the opaque plugins could have made the best one.
    pub in_reach: usize,
}

impl ScoreLead {
    /// The points of one opaque plugin that still leave the selected node ahead, from 0 to 100.
    /// `None` if there are several.
    pub fn allowed_points(&self) -> Option<i64> {
        match self.scorers.as_slice() {
            [(_, weight)] => Some(self.allowed.div_euclid((*weight).max(1)).min(MAX_NODE_SCORE)),
            _ => None,
        }
    }
}

impl Certainty {
    /// Whether no opaque plugin could have changed the decision.
    pub fn is_certain(&self) -> bool {
        self.uncertainties.is_empty()
    }

    /// The certainty of the decision of a cycle.
    pub(super) fn of(record: &CycleRecord, opaque: &OpaquePlugins) -> Certainty {
        let mut certainty = Certainty::default();
        if record.outcome == Outcome::Dropped {
            return certainty;
        }
        let case = JudgedCycle { record, opaque };
        let uncertainties = &mut certainty.uncertainties;
        uncertainties.extend(case.order());
        if record.feasible.is_empty() {
            uncertainties.extend(case.without_node());
        } else {
            let is_placed = matches!(record.outcome, Outcome::Scheduled | Outcome::Waiting);
            if is_placed {
                uncertainties.extend(case.gates());
            }
            uncertainties.extend(case.rejections());
            certainty.lead = case.lead();
            let in_reach = certainty.lead.as_ref().filter(|lead| lead.in_reach > 0);
            uncertainties.extend(in_reach.map(|lead| Uncertainty::Prefer {
                plugins: lead.scorers.iter().map(|(plugin, _)| *plugin).collect(),
            }));
            if is_placed {
                uncertainties.extend(case.holds());
            }
        }
        uncertainties.extend(case.group());
        certainty
    }
}

/// A cycle whose certainty is sought.
struct JudgedCycle<'a> {
    record: &'a CycleRecord,
    opaque: &'a OpaquePlugins,
}

impl<'a> JudgedCycle<'a> {
    /// An uncertainty for each opaque plugin that runs at one of `points`.
    fn each(
        &self,
        points: &'a [ExtensionPoint],
        uncertainty: impl Fn(&OpaquePlugin, Vec<ExtensionPoint>) -> Uncertainty,
    ) -> Vec<Uncertainty> {
        self.opaque.at(points).map(|plugin| uncertainty(plugin, plugin.at(points))).collect()
    }

    fn order(&self) -> Vec<Uncertainty> {
        let others = self.record.others_active;
        if others == 0 {
            return Vec::new();
        }
        self.each(&[QueueSort], |plugin, _| Uncertainty::Order { plugin: plugin.name, others })
    }

    fn gates(&self) -> Vec<Uncertainty> {
        self.each(&[PreEnqueue], |plugin, _| Uncertainty::Gate { plugin: plugin.name })
    }

    /// The uncertainties about a pod for which no node was found.
    fn without_node(&self) -> Vec<Uncertainty> {
        let mut uncertainties = Vec::new();
        if self.record.outcome == Outcome::SchedulerError {
            uncertainties.extend(self.errors());
        }
        match &self.record.preemption {
            Some(preemption) => {
                let (node, others) = (preemption.node, self.has_more_candidates());
                uncertainties.extend(self.gates());
                uncertainties.extend(self.each(REJECTING, |plugin, points| {
                    Uncertainty::RejectPreemption { plugin: plugin.name, points, node, others }
                }));
            }
            None => uncertainties.extend(self.allowed_preemption()),
        }
        uncertainties.extend(self.post_filters());
        uncertainties
    }

    /// Whether nodes were left on which victims could have been found.
    fn has_more_candidates(&self) -> bool {
        let record = self.record;
        let is_resolvable = |status: &Status| status.code() == Code::Unschedulable;
        let by_pre_filter = record.pre_filter.iter().any(|answer| is_resolvable(&answer.status));
        let by_extenders =
            record.filter.extender.iter().filter(|(_, it)| is_resolvable(it)).count();
        let verdicts = record.filter.verdicts.iter().filter_map(|id| record.verdicts.get(id));
        let all = match by_pre_filter {
            true => record.nodes.order.len(),
            false => verdicts.filter(|status| is_resolvable(status)).count() + by_extenders,
        };
        let failed = record.dry_run.as_ref().map_or(0, |failed| failed.len());
        all > record.candidates.len() + failed
    }

    /// What keeps the pod from preempting, and would not if an opaque plugin rejected nodes first.
    fn allowed_preemption(&self) -> Vec<Uncertainty> {
        let record = self.record;
        let answers = &record.post_filter;
        let is_rejected = |why: &str| answers.iter().any(|it| it.status.message().ends_with(why));
        let waits_for_victims = is_rejected(VICTIM_TERMINATING);
        let by_extender =
            !record.filter.extender.is_empty() && !answers.is_empty() && !is_rejected(NEVER);
        let can = |plugin: &OpaquePlugin, point: ExtensionPoint| {
            let is_first = || point == PreFilter || self.is_before_nominated_rejection(plugin.name);
            by_extender || (waits_for_victims && is_first())
        };
        let uncertainties = self.opaque.at(REJECTING).map(|plugin| {
            let points = plugin.at(REJECTING).into_iter().filter(|point| can(plugin, *point));
            Uncertainty::AllowPreemption { plugin: plugin.name, points: points.collect() }
        });
        uncertainties.filter(|uncertainty| !uncertainty.points().is_empty()).collect()
    }

    /// Whether the plugin filters before the one that rejected the nominated node.
    fn is_before_nominated_rejection(&self, plugin: Symbol) -> bool {
        let record = self.record;
        let nominated = record.info.as_ref().map(|info| info.pod.status.nominated_node_name);
        let is_nominated = |id: &&NodeId| Some(record.nodes.name(**id)) == nominated;
        let node = record.nodes.order.iter().find(is_nominated);
        let verdict = node.and_then(|id| record.filter.verdicts.get(*id));
        let Some(status) = verdict.and_then(|id| record.verdicts.get(id)) else { return false };
        let place = |name| record.filter.plugins.iter().position(|column| column.plugin == name);
        place(plugin) < place(status.plugin())
    }

    fn errors(&self) -> Vec<Uncertainty> {
        self.each(REJECTING, |plugin, points| Uncertainty::AvoidError {
            plugin: plugin.name,
            points,
        })
    }

    /// The opaque PostFilter plugins that had their turn: those in front of the one that ended it.
    fn post_filters(&self) -> Vec<Uncertainty> {
        let record = self.record;
        let has_failed = record.outcome == Outcome::SchedulerError && record.post_filter.is_empty();
        if has_failed || record.nodes.order.is_empty() {
            return Vec::new();
        }
        let ends = |answer: &&PluginStatus| {
            let code = answer.status.code();
            !code.is_rejected() || code == Code::UnschedulableAndUnresolvable
        };
        let end = record.post_filter.iter().find(ends);
        let plugins = self.opaque.at(&[PostFilter]);
        let plugins =
            plugins.filter(|plugin| is_before(plugin.name, end, &self.opaque.post_filters));
        plugins.map(|plugin| Uncertainty::MakeRoom { plugin: plugin.name }).collect()
    }

    /// The uncertainties about the selected node by plugins that reject nodes.
    fn rejections(&self) -> Vec<Uncertainty> {
        let Some(node) = self.record.node else { return self.errors() };
        let others = self.others_matter();
        self.each(REJECTING, |plugin, points| Uncertainty::Reject {
            plugin: plugin.name,
            points,
            node,
            others,
        })
    }

    /// Whether the choice among the feasible nodes depends on all of them being feasible.
    fn others_matter(&self) -> bool {
        let record = self.record;
        let several = record.feasible.len() > 1;
        let more = || record.filter.verdicts.iter().any(|id| id == VerdictId::ENOUGH_FOUND);
        let compares = |column: &ScoreColumn| match self.opaque.score_basis(column.plugin) {
            ScoreBasis::NodeAlone => false,
            ScoreBasis::HighestScore | ScoreBasis::AllScores => {
                column.raw.iter().any(|raw| Some(raw) != column.raw.get(0))
            }
            ScoreBasis::FeasibleNodes => true,
        };
        several
            && (record.tied > 0
                || !record.score.extenders.is_empty()
                || record.score.plugins.iter().any(compares)
                || more())
    }

    /// How far the selected node leads; `None` if no opaque plugin scores, or nothing was compared.
    fn lead(&self) -> Option<ScoreLead> {
        let record = self.record;
        let scorers: Vec<(Symbol, i64)> =
            self.opaque.at(&[Score]).map(|plugin| (plugin.name, plugin.weight)).collect();
        let totals = record.score.totals.values();
        if scorers.is_empty() || totals.len() < 2 {
            return None;
        }
        let name = |at: usize| record.feasible.get(at).map(|id| record.nodes.name(*id));
        let own = (0..totals.len()).find(|at| name(*at) == record.node)?;
        let reach = scorers.iter().map(|(_, weight)| weight * MAX_NODE_SCORE).sum();
        let (mut best, mut in_reach) = (None::<(i64, i64, usize)>, 0);
        for at in (0..totals.len()).filter(|at| *at != own) {
            let by = totals[own] - totals[at];
            let (allowed, is_in_reach) = match record.tie_break.prefers(own, at) {
                Some(true) => (by, by < reach),
                Some(false) => (by - 1, by <= reach),
                None => (by, by <= reach),
            };
            in_reach += usize::from(is_in_reach);
            if best.is_none_or(|(least, ..)| allowed < least) {
                best = Some((allowed, by, at));
            }
        }
        let (allowed, by, rival) = best?;
        Some(ScoreLead {
            node: name(own)?,
            scorers,
            reach,
            rival: name(rival)?,
            by,
            allowed,
            in_reach,
        })
    }

    fn holds(&self) -> Vec<Uncertainty> {
        let bound = self.record.bind.iter().find(|answer| !answer.status.is_skip());
        let can_bind = |plugin: &OpaquePlugin| {
            let by_extender = self.record.extender_bind.is_some();
            !by_extender && is_before(plugin.name, bound, &self.opaque.binders)
        };
        let uncertainties = self.opaque.at(AFTER_SELECTION).map(|plugin| {
            let points = plugin.at(AFTER_SELECTION).into_iter();
            let points = points.filter(|point| *point != Bind || can_bind(plugin)).collect();
            Uncertainty::Hold { plugin: plugin.name, points }
        });
        uncertainties.filter(|uncertainty| !uncertainty.points().is_empty()).collect()
    }

    fn group(&self) -> Vec<Uncertainty> {
        if self.record.group.is_none() {
            return Vec::new();
        }
        self.each(OF_GROUP, |plugin, points| Uncertainty::Group { plugin: plugin.name, points })
    }
}

/// Whether a plugin runs before the one whose answer ended the turns in that order.
fn is_before(plugin: Symbol, end: Option<&PluginStatus>, order: &[Symbol]) -> bool {
    let place = |name: Symbol| order.iter().position(|other| *other == name);
    let end = end.and_then(|answer| place(answer.plugin));
    end.is_none_or(|end| place(plugin) < Some(end))
}

/// `Filter` or `PreFilter, Filter`.
fn at(points: &[ExtensionPoint]) -> String {
    points.iter().map(|point| point.name()).collect::<Vec<_>>().join(", ")
}

impl Uncertainty {
    /// The plugins that could have changed the decision.
    pub fn plugins(&self) -> &[Symbol] {
        match self {
            Uncertainty::Gate { plugin }
            | Uncertainty::Order { plugin, .. }
            | Uncertainty::Reject { plugin, .. }
            | Uncertainty::Hold { plugin, .. }
            | Uncertainty::MakeRoom { plugin }
            | Uncertainty::RejectPreemption { plugin, .. }
            | Uncertainty::AllowPreemption { plugin, .. }
            | Uncertainty::AvoidError { plugin, .. }
            | Uncertainty::Group { plugin, .. } => std::slice::from_ref(plugin),
            Uncertainty::Prefer { plugins } => plugins,
        }
    }

    /// The extension points at which they could have.
    pub fn points(&self) -> &[ExtensionPoint] {
        match self {
            Uncertainty::Gate { .. } => &[PreEnqueue],
            Uncertainty::Order { .. } => &[QueueSort],
            Uncertainty::Prefer { .. } => &[Score],
            Uncertainty::MakeRoom { .. } => &[PostFilter],
            Uncertainty::Reject { points, .. }
            | Uncertainty::Hold { points, .. }
            | Uncertainty::RejectPreemption { points, .. }
            | Uncertainty::AllowPreemption { points, .. }
            | Uncertainty::AvoidError { points, .. }
            | Uncertainty::Group { points, .. } => points,
        }
    }

    /// What it is, for programs: `reject`, `prefer`, ….
    pub fn kind(&self) -> &'static str {
        match self {
            Uncertainty::Gate { .. } => "gate",
            Uncertainty::Order { .. } => "order",
            Uncertainty::Reject { .. } => "reject",
            Uncertainty::Prefer { .. } => "prefer",
            Uncertainty::Hold { .. } => "hold",
            Uncertainty::MakeRoom { .. } => "makeRoom",
            Uncertainty::RejectPreemption { .. } => "rejectPreemption",
            Uncertainty::AllowPreemption { .. } => "allowPreemption",
            Uncertainty::AvoidError { .. } => "avoidError",
            Uncertainty::Group { .. } => "group",
        }
    }
}

/// The condition under which the decision stands.
impl fmt::Display for Uncertainty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Uncertainty::Gate { plugin } => {
                write!(f, "only if {plugin} let the pod into the queue (PreEnqueue)")
            }
            Uncertainty::Order { plugin, others } => {
                let pods = if *others == 1 { "pod" } else { "pods" };
                write!(f, "only if {plugin} put it before {others} other active {pods} (QueueSort)")
            }
            Uncertainty::Reject { plugin, points, node, others } => {
                write!(f, "only if {plugin} did not reject {node} ({})", at(points))?;
                f.write_str(if *others { OTHERS } else { "" })
            }
            Uncertainty::Prefer { plugins } => {
                let names: Vec<&str> = plugins.iter().map(|name| name.as_str()).collect();
                write!(f, "only if {} did not prefer another node (Score)", names.join(" and "))
            }
            Uncertainty::Hold { plugin, points } => {
                write!(f, "only if {plugin} did not reject or hold the pod ({})", at(points))
            }
            Uncertainty::MakeRoom { plugin } => {
                write!(f, "only if {plugin} did not make room for the pod (PostFilter)")
            }
            Uncertainty::RejectPreemption { plugin, points, node, others } => {
                let at = at(points);
                write!(f, "only if {plugin} did not reject {node}, where it preempts ({at})")?;
                f.write_str(if *others { OTHERS } else { "" })
            }
            Uncertainty::AllowPreemption { plugin, points } => {
                let at = at(points);
                write!(
                    f,
                    "only if {plugin} did not reject nodes first and so let it preempt ({at})"
                )
            }
            Uncertainty::AvoidError { plugin, points } => {
                write!(f, "only if {plugin} did not reject nodes before the error ({})", at(points))
            }
            Uncertainty::Group { plugin, points } => {
                write!(f, "only if {plugin} treated the pods of the group alike ({})", at(points))
            }
        }
    }
}

/// By how much the selected node leads, and how far opaque plugins reach.
impl fmt::Display for ScoreLead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScoreLead { node, rival, by, reach, .. } = self;
        let names: Vec<&str> = self.scorers.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(" and ");
        if self.in_reach == 0 {
            return write!(f, "{node} leads {rival} by {by}; {names} can change {reach} at most");
        }
        let points = |points: i64| match points {
            ..=0 => format!("no higher than {node}"),
            1 => format!("at most 1 point above {node}"),
            points => format!("at most {points} points above {node}"),
        };
        match self.allowed_points() {
            Some(allowed) => write!(f, "only if {names} scored {rival} {}", points(allowed))?,
            None => {
                let together = points(self.allowed);
                write!(f, "only if {names} together, weighted, scored {rival} {together}")?;
            }
        }
        match self.in_reach {
            1 => Ok(()),
            nodes => write!(f, "; {nodes} nodes could have come first"),
        }
    }
}

impl Certainty {
    /// The conditions under which the decision stands, a sentence each; the numbers of the lead
    /// instead of the uncertainty that they quantify.
    pub fn conditions(&self) -> impl Iterator<Item = String> + '_ {
        self.uncertainties.iter().map(|uncertainty| match (uncertainty, &self.lead) {
            (Uncertainty::Prefer { .. }, Some(lead)) => lead.to_string(),
            _ => uncertainty.to_string(),
        })
    }

    /// Why no score of an opaque plugin could have changed the choice, if that is so.
    pub fn assurance(&self) -> Option<String> {
        self.lead.as_ref().filter(|lead| lead.in_reach == 0).map(ScoreLead::to_string)
    }
}
