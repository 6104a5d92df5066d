//! How certain the decisions of a session are, where its scheduler has opaque plugins.
//!
//! [`Certainty`] judges one cycle from the state in which it began. That state is what the cycles
//! before it made; so a [`SessionCertainty`] also counts the uncertain ones among them.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::trace::History;
use kubestep_api::Name;
use kubestep_api::intern::Symbol;
use kubestep_framework::extender::infos;
use kubestep_framework::node::NodeId;
use kubestep_framework::record::certainty::{Certainty, ScoreLead, Uncertainty};
use kubestep_framework::record::{CycleRecord, NodeNames, Outcome};
use kubestep_scheduler::what_if::Probe;

/// How certain a decision of a session is.
#[derive(Clone, PartialEq, Debug)]
pub struct SessionCertainty {
    /// The opaque plugins of the profile.
    pub opaque: Vec<Symbol>,
    /// How certain the decision is in the state in which its cycle began.
    pub certainty: Arc<Certainty>,
    /// The number of uncertain decisions before it, which made that state.
    pub earlier: usize,
}

impl SessionCertainty {
    /// The judgement of a recorded decision; `None` if its profile has no opaque plugin.
    pub fn of(history: &History, record: &CycleRecord) -> Option<SessionCertainty> {
        let opaque = record.opaque.as_ref()?.plugins.iter().map(|plugin| plugin.name).collect();
        let before = history.cycles().filter(|earlier| earlier.cycle < record.cycle);
        let earlier = before.filter(|earlier| is_uncertain(earlier)).count();
        Some(SessionCertainty { opaque, certainty: record.certainty()?, earlier })
    }

    /// The judgement of the decision that a cycle would make now: `feasible` are the nodes that
    /// fit, `node` is the best of them.
    pub(crate) fn supposed(
        history: &History,
        probe: &Probe,
        feasible: &[NodeId],
        node: Option<Name>,
    ) -> Option<SessionCertainty> {
        let mut record = CycleRecord {
            cycle: u64::MAX,
            opaque: Some(probe.framework().opaque()?.clone()),
            outcome: Outcome::Scheduled,
            nodes: names(probe),
            feasible: feasible.into(),
            node,
            ..CycleRecord::default()
        };
        if feasible.len() > 1 {
            record.score = probe.score(&infos(probe.snapshot(), feasible)).ok()?.record;
        }
        SessionCertainty::of(history, &record)
    }

    /// Whether the decision is certain, also after what was decided before.
    pub fn is_certain(&self) -> bool {
        self.certainty.is_certain() && self.earlier == 0
    }

    /// The verdict in a sentence.
    pub fn verdict(&self) -> String {
        let names: Vec<&str> = self.opaque.iter().map(|name| name.as_str()).collect();
        let names = names.join(" and ");
        match (self.certainty.is_certain(), self.earlier) {
            (true, 0) => format!("Certain, whatever {names} decides."),
            (true, 1) => "Certain if the uncertain decision before it is as shown.".to_owned(),
            (true, earlier) => {
                format!("Certain if the {earlier} uncertain decisions before it are as shown.")
            }
            (false, _) => {
                let is = if self.opaque.len() == 1 { "is" } else { "are" };
                format!("Uncertain, because {names} {is} opaque: the decision stands")
            }
        }
    }

    /// What the verdict depends on, a line each.
    pub fn conditions(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.certainty.conditions().collect();
        lines.extend(self.certainty.assurance());
        let earlier = match self.earlier {
            1 => "if the uncertain decision before it is as shown".to_owned(),
            number => format!("if the {number} uncertain decisions before it are as shown"),
        };
        if self.earlier > 0 && !self.certainty.is_certain() {
            lines.push(earlier);
        }
        lines
    }
}

/// Whether opaque plugins could have changed the decision of a cycle.
pub fn is_uncertain(record: &CycleRecord) -> bool {
    record.certainty().is_some_and(|certainty| !certainty.is_certain())
}

/// The nodes of a probe.
fn names(probe: &Probe) -> Arc<NodeNames> {
    let mut nodes = NodeNames::default();
    for node in probe.snapshot().iter() {
        let at = node.id.index();
        if nodes.names.len() <= at {
            nodes.names.resize(at + 1, Name::EMPTY);
        }
        nodes.names[at] = node.name;
        nodes.order.push(node.id);
    }
    Arc::new(nodes)
}

impl Serialize for SessionCertainty {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut value = value(&self.certainty);
        value["opaquePlugins"] = json!(self.opaque);
        value["earlierUncertain"] = self.earlier.into();
        value.serialize(serializer)
    }
}

/// How certain a decision is, as JSON.
pub fn value(certainty: &Certainty) -> Value {
    let mut value = json!({
        "certain": certainty.is_certain(),
        "conditions": certainty.uncertainties.iter().zip(certainty.conditions()).map(condition)
            .collect::<Vec<_>>(),
    });
    if let Some(lead) = &certainty.lead {
        value["lead"] = self::lead(lead);
    }
    value
}

fn condition((uncertainty, text): (&Uncertainty, String)) -> Value {
    let points: Vec<&str> = uncertainty.points().iter().map(|point| point.name()).collect();
    let mut value = json!({
        "kind": uncertainty.kind(),
        "plugins": uncertainty.plugins(),
        "points": points,
        "text": text,
    });
    match uncertainty {
        Uncertainty::Reject { node, others, .. }
        | Uncertainty::RejectPreemption { node, others, .. } => {
            value["node"] = json!(node);
            value["otherNodesMatter"] = json!(others);
        }
        Uncertainty::Order { others, .. } => value["otherPods"] = json!(others),
        _ => {}
    }
    value
}

fn lead(lead: &ScoreLead) -> Value {
    let scorers = lead.scorers.iter();
    let scorers = scorers.map(|(plugin, weight)| json!({"plugin": plugin, "weight": weight}));
    json!({
        "node": lead.node,
        "rival": lead.rival,
        "by": lead.by,
        "allowed": lead.allowed,
        "reach": lead.reach,
        "nodesInReach": lead.in_reach,
        "scorers": scorers.collect::<Vec<_>>(),
    })
}
