//! Examples in which every variable is set, to evaluate conditions when they are parsed.

use std::sync::Arc;

use crate::breakpoint::values::AmountValue;
use crate::breakpoint::variables::{Facts, NodeFacts, ScoreFacts, StatusFacts, WatchedValue};
use crate::ledger::NodeAmounts;
use kubestep_api::{Node, Pod, Time};
use kubestep_cluster::START;
use kubestep_config::ExtensionPoint;
use kubestep_framework::pod::PodInfo;
use kubestep_framework::record::{CycleRecord, QueueMove, QueueName};
use kubestep_framework::resource::Resource;
use kubestep_framework::status::Code;

pub struct Example {
    record: CycleRecord,
    amounts: NodeAmounts,
    moved: QueueMove,
    watched: WatchedValue,
}

/// Examples that differ in the type of the watched value.
pub fn examples() -> impl Iterator<Item = Example> {
    let amount = WatchedValue::Amount(AmountValue::of("cpu".into(), 500));
    [amount, WatchedValue::Number(1), WatchedValue::Text("active".into())]
        .into_iter()
        .map(Example::new)
}

impl Example {
    fn new(watched: WatchedValue) -> Example {
        let info = Arc::new(PodInfo::new(Arc::new(Pod::default())));
        let record = CycleRecord { info: Some(info), time: START, ..CycleRecord::default() };
        let amounts = NodeAmounts {
            free: Resource::default(),
            allocatable: Resource::default(),
            pods: 0,
            object: Some(Arc::new(Node::default())),
        };
        let moved = QueueMove {
            time: Time(0),
            pod: record.pod,
            from: QueueName::Active,
            to: QueueName::InFlight,
            event: "Pop".into(),
            plugin: None,
            order: None,
        };
        Example { record, amounts, moved, watched }
    }

    /// The variables of the example.
    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts {
            answer: Some(StatusFacts {
                point: ExtensionPoint::Filter,
                plugin: "NodeName".into(),
                code: Code::Unschedulable,
                reasons: &[],
            }),
            score: Some(ScoreFacts::default()),
            node: Some(NodeFacts { name: "node".into(), amounts: Some(&self.amounts) }),
            moved: Some(&self.moved),
            watched: Some((&self.watched, &self.watched)),
            ..Facts::of_cycle(&self.record)
        }
    }
}
