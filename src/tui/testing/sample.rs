//! A small made-up session: two cycles, one that fails on all nodes and one that ties.

use std::sync::Arc;

use crate::tui::model::{
    Configuration, CyclePosition, Model, PodPlace, PodRow, QueuedPod, WaitingPod,
};
use crate::tui::names::CommonNameParts;
use kubestep_api::{Name, Taint, TaintEffect, Time};
use kubestep_config as config;
use kubestep_config::{ExtensionPoint, FeatureGates};
use kubestep_debug::Position as Frame;
use kubestep_debug::trace::Entry;
use kubestep_framework::node::{NodeId, NodeInfo};
use kubestep_framework::pod::{NamespacedName, PodInfo};
use kubestep_framework::record::column::Column;
use kubestep_framework::record::*;
use kubestep_framework::status::{Code, Status};
use kubestep_framework::testing;

const NODES: [&str; 5] = ["node-a", "node-b", "node-c", "node-d", "node-e"];
const SECOND: i64 = 1_000_000;

pub fn pod(name: &str) -> NamespacedName {
    NamespacedName::new("shop".into(), name.into())
}

fn node_names() -> Arc<NodeNames> {
    let order = (0..5).map(NodeId).collect();
    Arc::new(NodeNames { order, names: NODES.iter().map(|n| Name::new(n)).collect() })
}

fn said(plugin: &str, status: Status) -> PluginStatus {
    PluginStatus::new(plugin.into(), status)
}

fn column(plugin: &str, verdicts: &[VerdictId]) -> FilterColumn {
    FilterColumn { plugin: plugin.into(), verdicts: Column::from_values(verdicts) }
}

/// No node fits: two lack cpu, two are tainted, one was cordoned and lacks cpu as well.
fn rejected() -> CycleRecord {
    let mut table = VerdictTable::default();
    let by = |code, reason: &str, plugin: &str| Status::new(code, reason).by(plugin.into());
    let cpu = by(Code::Unschedulable, "Insufficient cpu", "NodeResourcesFit");
    let taint = by(
        Code::UnschedulableAndUnresolvable,
        "node(s) had untolerated taint(s)",
        "TaintToleration",
    );
    let cordon =
        by(Code::UnschedulableAndUnresolvable, "node(s) were unschedulable", "NodeUnschedulable");
    let [cpu, taint, cordon] = [cpu, taint, cordon].map(|s| table.id_of(&s));
    let pass = VerdictId::PASS;
    let plugins = vec![
        column("NodeUnschedulable", &[pass, pass, pass, pass, cordon]),
        column("TaintToleration", &[pass, pass, taint, taint, pass]),
        column("NodeAffinity", &[VerdictId::SKIPPED; 5]),
        column("NodeResourcesFit", &[cpu, cpu, pass, pass, cpu]),
    ];
    let verdicts = Column::from_values(&[cpu, cpu, taint, taint, cordon]);
    let nodes = node_names();
    let preempt = "0/5 nodes are available: 2 No preemption victims found for incoming pod, \
                   3 Preemption is not helpful for scheduling.";
    CycleRecord {
        cycle: 1,
        pod: pod("web-7f"),
        attempt: 1,
        profile: "default-scheduler".into(),
        time: Time(SECOND),
        filter: FilterRecord {
            plugins: plugins.into(),
            verdicts,
            evaluated: nodes.order.clone().into(),
            extenders: Vec::new(),
            extender: vec![],
        },
        nodes,
        verdicts: Arc::new(table),
        pre_filter: vec![
            said("NodeAffinity", Status::skip()),
            said("NodeResourcesFit", Status::SUCCESS),
        ]
        .into(),
        post_filter: vec![said("DefaultPreemption", Status::unschedulable(preempt))],
        outcome: Outcome::Unschedulable,
        message: "0/5 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu, 2 \
                  node(s) had untolerated taint(s). preemption: 0/5 nodes are available: 2 No \
                  preemption victims found for incoming pod, 3 Preemption is not helpful for \
                  scheduling."
            .into(),
        evaluated_nodes: 5,
        ..CycleRecord::default()
    }
}

/// Three nodes fit, two share the best total, one node was never asked.
fn scheduled() -> CycleRecord {
    let pass = VerdictId::PASS;
    let mut table = VerdictTable::default();
    let cpu = Status::unschedulable("Insufficient cpu").by("NodeResourcesFit".into());
    let cpu = table.id_of(&cpu);
    let verdicts = [pass, pass, cpu, pass, VerdictId::ENOUGH_FOUND];
    let score = |plugin: &str, weight, raw: [i64; 3], normalized: [u8; 3]| ScoreColumn {
        plugin: plugin.into(),
        weight,
        raw: raw.to_vec().into(),
        normalized: normalized.iter().map(|score| i64::from(*score)).collect::<Vec<_>>().into(),
    };
    CycleRecord {
        cycle: 2,
        pod: pod("api-1"),
        attempt: 2,
        profile: "default-scheduler".into(),
        time: Time(12 * SECOND),
        nodes: node_names(),
        verdicts: Arc::new(table),
        pre_filter: vec![said("NodeResourcesFit", Status::SUCCESS)].into(),
        filter: FilterRecord {
            plugins: vec![column("NodeResourcesFit", &verdicts)].into(),
            verdicts: Column::from_values(&verdicts),
            evaluated: [0, 1, 2, 3].map(NodeId).into(),
            extenders: Vec::new(),
            extender: vec![],
        },
        feasible: [0, 1, 3].map(NodeId).into(),
        score: ScoreRecord {
            pre_score: vec![said("TaintToleration", Status::SUCCESS)].into(),
            plugins: vec![
                score("TaintToleration", 3, [0, 0, 1], [100, 100, 0]),
                score("NodeResourcesFit", 1, [62, 62, 91], [62, 62, 91]),
            ]
            .into(),
            totals: vec![362, 362, 91].into(),
            ..ScoreRecord::default()
        },
        reserve: vec![said("VolumeBinding", Status::SUCCESS)].into(),
        permit: vec![said("ManualPermit", Status::new(Code::Wait, ""))].into(),
        outcome: Outcome::Waiting,
        node: Some("node-b".into()),
        tied: 2,
        evaluated_nodes: 4,
        start_index: 1,
        ..CycleRecord::default()
    }
}

fn info(name: &str) -> Arc<PodInfo> {
    let mut pod = testing::pod(&format!("shop/{name}"));
    pod.metadata.labels.insert("app".into(), name.into());
    let requests = [("cpu", "500m"), ("memory", "256Mi")];
    for (resource, amount) in requests {
        let requests = pod.spec.containers[0].resources.requests.get_or_insert_default();
        requests.insert(resource.into(), amount.parse().unwrap());
    }
    Arc::new(PodInfo::new(Arc::new(pod)))
}

fn queued(name: &str, queue: QueueName, until: Option<i64>) -> QueuedPod {
    QueuedPod {
        info: info(name),
        queue,
        attempts: 1,
        since: Time(2 * SECOND),
        until: until.map(Time),
        rejected_by: if queue == QueueName::Active {
            vec![]
        } else {
            vec!["NodeResourcesFit".into()]
        },
        reason: String::new(),
        waits_for: None,
    }
}

fn node(at: usize, name: &str) -> Arc<NodeInfo> {
    let mut node = testing::node(name);
    node.metadata.labels.insert("zone".into(), if at < 2 { "one" } else { "two" }.into());
    node.spec.unschedulable = at == 4;
    if (2..4).contains(&at) {
        let effect = TaintEffect::NoSchedule;
        let (key, value) = ("gpu".into(), "true".into());
        node.spec.taints = vec![Taint { key, value, effect, time_added: None }];
    }
    let mut info = NodeInfo::new(NodeId(at as u32), name.into());
    info.set_node(Arc::new(node));
    for pod in 0..at {
        info.add_pod(self::info(&format!("on-{at}-{pod}")));
    }
    Arc::new(info)
}

fn configuration() -> Configuration {
    let gates = FeatureGates::default();
    let config = config::resolve(None, &gates, &crate::plugins::registry().descriptors()).unwrap();
    Configuration { gates, rows: Arc::new(config::rows::rows(&config)) }
}

/// NodeResourcesFit on a node in Filter.
pub fn filter_frame(node: u32) -> Frame {
    Frame::new(ExtensionPoint::Filter, Some("NodeResourcesFit".into()), Some(NodeId(node)))
}

/// The session: after the second cycle, standing in the first one's Filter.
pub fn model() -> Model {
    let cycles: Vec<_> = [rejected(), scheduled()].into_iter().map(Arc::new).collect();
    Model {
        revision: 1,
        source: "demo".into(),
        now: Time(14 * SECOND + SECOND / 2),
        cycles,
        position: Some(CyclePosition { cycle: 0, frame: filter_frame(1) }),
        queued: vec![
            queued("batch-1", QueueName::Active, None),
            queued("cart-1", QueueName::Backoff, Some(16 * SECOND)),
            queued("web-7f", QueueName::Unschedulable, Some(301 * SECOND)),
            queued("later-1", QueueName::Gated, None),
        ],
        waiting: vec![WaitingPod {
            info: info("api-1"),
            node: "node-b".into(),
            plugins: vec![("ManualPermit".into(), Time(72 * SECOND))],
        }],
        node_names: CommonNameParts::of(NODES.iter().copied()),
        nodes: NODES.iter().enumerate().map(|(i, n)| node(i, n)).collect(),
        pods: vec![PodRow {
            pod: info("web-7f").pod.clone(),
            place: PodPlace::Queue(QueueName::Unschedulable),
        }],
        events: vec![(
            0,
            Arc::new(Entry::Move(QueueMove {
                time: Time(SECOND),
                pod: pod("web-7f"),
                from: QueueName::InFlight,
                to: QueueName::Unschedulable,
                event: "ScheduleAttemptFailure".into(),
                plugin: None,
                order: None,
            })),
        )],
        configuration: configuration(),
        at_end: false,
        ..Model::default()
    }
}
