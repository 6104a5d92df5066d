//! Drains, losses and rollouts that run in both clusters.

use serde_json::Value;

use super::lab::Lab;
use super::{Story, place};

/// A workload whose pods request that many CPUs and end at once; `$spec` and `$pod` are more fields.
macro_rules! workload {
    ($kind:literal, $name:literal, $cpu:literal, $spec:literal, $pod:literal) => {
        concat!(
            "---\n{apiVersion: apps/v1, kind: ",
            $kind,
            ", metadata: {name: ",
            $name,
            "}, spec: {",
            $spec,
            " selector: {matchLabels: {app: ",
            $name,
            "}}, template: {metadata: {labels: {app: ",
            $name,
            "}}, spec: {",
            $pod,
            " terminationGracePeriodSeconds: 0, containers: [{name: c, image: pause, resources: \
             {requests: {cpu: '",
            $cpu,
            "'}}}]}}}}\n"
        )
    };
}

/// A disruption budget of the workload of that name.
macro_rules! budget {
    ($name:literal, $spec:literal) => {
        concat!(
            "---\n{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: ",
            $name,
            "}, spec: {",
            $spec,
            ", selector: {matchLabels: {app: ",
            $name,
            "}}}}\n"
        )
    };
}

/// A pod that no controller recreates.
macro_rules! bare_pod {
    ($name:literal, $metadata:literal, $spec:literal) => {
        concat!(
            "---\n{apiVersion: v1, kind: Pod, metadata: {name: ",
            $name,
            $metadata,
            "}, spec: {",
            $spec,
            " terminationGracePeriodSeconds: 0, containers: [{name: c, image: pause, resources: \
             {requests: {cpu: 100m}}}]}}\n"
        )
    };
}

const DEFAULT: Story = Story {
    name: "",
    nodes: &[("a", "8", "x")],
    objects: "",
    more_nodes: &[],
    more_objects: "",
    edit: "drain node a",
    act: drain,
    check: |_, _, _| {},
};

fn drain(lab: &Lab, _: &str) {
    lab.kubectl("drain a --ignore-daemonsets --delete-emptydir-data --timeout=60s");
}

fn drain_in_vain(lab: &Lab, _: &str) {
    let reported = lab.kubectl_fails("drain a --ignore-daemonsets --timeout=15s");
    assert!(reported.contains("disruption budget"), "{reported}");
}

pub const DRAINS: &[Story] = &[
    Story {
        name: "deployment",
        objects: workload!("Deployment", "web", "1", "replicas: 3,", ""),
        more_nodes: &[("b", "8", "y"), ("c", "5", "z")],
        ..DEFAULT
    },
    Story {
        name: "budget_that_delays",
        objects: concat!(
            workload!("Deployment", "web", "1", "replicas: 3,", ""),
            budget!("web", "minAvailable: 2")
        ),
        more_nodes: &[("b", "8", "y"), ("c", "5", "z")],
        check: |_, report, _| {
            let left = report["disruption"]["left"].as_array().unwrap();
            assert!(left.iter().any(|left| left["rejections"].as_i64() > Some(0)), "{left:?}");
        },
        ..DEFAULT
    },
    Story {
        name: "budget_that_blocks",
        objects: concat!(
            workload!("Deployment", "web", "3", "replicas: 2,", ""),
            budget!("web", "maxUnavailable: '50%'")
        ),
        more_nodes: &[("b", "2", "y")],
        act: drain_in_vain,
        check: |_, report, _| {
            assert_eq!(report["disruption"]["blocked"].as_array().unwrap().len(), 1);
        },
        ..DEFAULT
    },
    Story {
        name: "daemon_set_and_static_pod",
        objects: concat!(
            workload!("DaemonSet", "log", "1", "", ""),
            workload!("Deployment", "web", "1", "replicas: 1,", ""),
            bare_pod!(
                "static-a",
                ", annotations: {kubernetes.io/config.mirror: x}",
                "nodeName: a,"
            )
        ),
        more_nodes: &[("b", "8", "y"), ("c", "5", "z")],
        check: |_, report, _| {
            assert_eq!(report["disruption"]["kept"].as_array().unwrap().len(), 2);
        },
        ..DEFAULT
    },
    Story {
        name: "bare_pod_and_empty_dir",
        objects: concat!(
            workload!(
                "Deployment",
                "web",
                "1",
                "replicas: 1,",
                "volumes: [{name: v, emptyDir: {}}],"
            ),
            bare_pod!("alone", "", "")
        ),
        more_nodes: &[("b", "8", "y")],
        edit: "drain node a force",
        act: |lab, _| {
            let (_, reported, code) = lab.kubestep("drain node a");
            assert!(code == Some(2) && reported.contains("default/alone"), "{reported}");
            let refused = lab.kubectl_fails("drain a --ignore-daemonsets --delete-emptydir-data");
            assert!(refused.contains("default/alone"), "{refused}");
            let refused = lab.kubectl_fails("drain a --ignore-daemonsets --force");
            assert!(refused.contains("local storage"), "{refused}");
            lab.kubectl("drain a --ignore-daemonsets --force --delete-emptydir-data --timeout=60s");
        },
        check: |_, _, reported| {
            assert!(reported.contains("needs --delete-emptydir-data for 1 pod"), "{reported}");
        },
        ..DEFAULT
    },
    Story {
        name: "stateful_set",
        objects: workload!("StatefulSet", "db", "1", "replicas: 3, serviceName: db,", ""),
        more_nodes: &[("b", "8", "y"), ("c", "3", "z")],
        ..DEFAULT
    },
    Story {
        name: "spread_over_nodes",
        nodes: &[("a", "8", "x"), ("b", "8", "y")],
        objects: workload!(
            "Deployment",
            "web",
            "1",
            "replicas: 2,",
            "topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, \
             whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}],"
        ),
        check: is_one_pending,
        ..DEFAULT
    },
    Story {
        name: "anti_affinity",
        nodes: &[("a", "8", "x"), ("b", "8", "y")],
        objects: workload!(
            "Deployment",
            "web",
            "1",
            "replicas: 2,",
            "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
             [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}},"
        ),
        check: is_one_pending,
        ..DEFAULT
    },
    Story {
        name: "preemption",
        nodes: &[("a", "4", "x")],
        objects: concat!(
            "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: urgent}, \
             value: 1000}\n",
            workload!("Deployment", "urgent", "3", "replicas: 1,", "priorityClassName: urgent,")
        ),
        more_nodes: &[("b", "4", "y")],
        more_objects: workload!("Deployment", "batch", "3", "replicas: 1,", ""),
        check: is_one_pending,
        ..DEFAULT
    },
    Story {
        name: "two_nodes_in_turn",
        nodes: &[("a", "2", "x"), ("b", "2", "x")],
        objects: concat!(
            workload!("Deployment", "web", "1", "replicas: 3,", ""),
            budget!("web", "maxUnavailable: 1")
        ),
        more_nodes: &[("c", "9", "y"), ("d", "4", "z")],
        edit: "drain zone=x",
        act: |lab, _| {
            let zone = "topology.kubernetes.io/zone=x";
            lab.kubectl(&format!("drain -l {zone} --ignore-daemonsets --timeout=90s"));
        },
        ..DEFAULT
    },
];

fn is_one_pending(lab: &Lab, _: &Value, _: &str) {
    assert_eq!(lab.pods().iter().filter(|pod| place(pod) == "pending").count(), 1);
}

/// Deletes nodes, and waits until the garbage collector has deleted their pods.
fn lose(lab: &Lab, nodes: &[&str]) {
    lab.kubectl(&format!("delete node {}", nodes.join(" ")));
    lab.wait("pods stay on lost nodes", |lab| {
        lab.pods().iter().all(|pod| !nodes.contains(&place(pod).as_str()))
    });
}

pub const LOSSES: &[Story] = &[
    Story {
        name: "unreachable_node",
        objects: concat!(
            workload!(
                "Deployment",
                "quick",
                "1",
                "replicas: 2,",
                "tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: \
                 NoExecute, tolerationSeconds: 1}],"
            ),
            workload!(
                "Deployment",
                "patient",
                "2",
                "replicas: 1,",
                "tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: \
                 NoExecute}],"
            ),
            workload!("DaemonSet", "log", "1", "", ""),
            bare_pod!("alone", "", "nodeSelector: {kubernetes.io/hostname: a},")
        ),
        more_nodes: &[("b", "9", "y"), ("c", "3", "z")],
        edit: "lose node a",
        act: |lab, _| {
            lab.kubectl("taint node a node.kubernetes.io/unreachable:NoExecute");
            let is_quick = |pod: &&Value| pod["metadata"]["labels"]["app"] == "quick";
            lab.wait("the taint evicts", |lab| {
                lab.pods().iter().filter(is_quick).all(|pod| place(pod) != "a")
            });
            lose(lab, &["a"]);
        },
        ..DEFAULT
    },
    Story {
        name: "zone",
        nodes: &[("a1", "2", "x"), ("a2", "2", "x"), ("b", "4", "y"), ("c", "2", "z")],
        objects: concat!(
            workload!(
                "Deployment",
                "web",
                "1",
                "replicas: 6,",
                "topologySpreadConstraints: [{maxSkew: 1, topologyKey: \
                 topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: \
                 {matchLabels: {app: web}}}],"
            ),
            budget!("web", "minAvailable: 5")
        ),
        edit: "lose zone=x",
        act: |lab, _| lose(lab, &["a1", "a2"]),
        check: |_, report, _| {
            let violated = &report["disruption"]["violatedBudgets"][0];
            assert_eq!((&violated["needed"], &violated["lowest"]), (&5.into(), &4.into()));
        },
        ..DEFAULT
    },
];

const ROLLOUT: Story = Story { act: restart, ..DEFAULT };

/// What the edit `rollout KIND NAME` simulates.
fn restart(lab: &Lab, edit: &str) {
    lab.kubectl(&edit.replacen("rollout", "rollout restart", 1));
}

pub const ROLLOUTS: &[Story] = &[
    Story {
        name: "deployment_that_rolls",
        objects: workload!("Deployment", "web", "2", "replicas: 4,", ""),
        edit: "rollout deployment web",
        check: |_, report, _| {
            let rollout = &report["disruption"]["rollouts"][0];
            assert!(rollout["completeAfterSeconds"].is_number(), "{rollout}");
        },
        ..ROLLOUT
    },
    Story {
        name: "deployment_without_room_for_its_surge",
        nodes: &[("a", "6", "x")],
        objects: workload!(
            "Deployment",
            "web",
            "2",
            "replicas: 3, strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 2}},",
            ""
        ),
        edit: "rollout deployment web",
        check: |_, report, _| is_stuck(report, 3),
        ..ROLLOUT
    },
    Story {
        name: "deployment_against_itself",
        nodes: &[("a", "8", "x"), ("b", "8", "y")],
        objects: workload!(
            "Deployment",
            "web",
            "1",
            "replicas: 2,",
            "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
             [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}},"
        ),
        edit: "rollout deployment web",
        check: |_, report, _| is_stuck(report, 2),
        ..ROLLOUT
    },
    Story {
        name: "stateful_set_with_a_partition",
        objects: workload!(
            "StatefulSet",
            "db",
            "1",
            "replicas: 3, serviceName: db, updateStrategy: {rollingUpdate: {partition: 1}},",
            ""
        ),
        edit: "rollout statefulset db",
        ..ROLLOUT
    },
    Story {
        name: "daemon_set",
        nodes: &[("a", "8", "x"), ("b", "8", "y"), ("c", "8", "z")],
        objects: workload!("DaemonSet", "log", "1", "", ""),
        edit: "rollout daemonset log",
        ..ROLLOUT
    },
    Story {
        name: "daemon_set_with_surge_on_full_nodes",
        nodes: &[("a", "3", "x"), ("b", "3", "y")],
        objects: workload!(
            "DaemonSet",
            "log",
            "2",
            "updateStrategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: '100%'}},",
            ""
        ),
        edit: "rollout daemonset log",
        check: |_, report, _| is_stuck(report, 2),
        ..ROLLOUT
    },
];

/// Whether no new pod is available and that many old ones stay.
fn is_stuck(report: &Value, old: usize) {
    let rollout = &report["disruption"]["rollouts"][0];
    assert_eq!((&rollout["updatedAvailable"], &rollout["old"]), (&0.into(), &old.into()));
    assert!(!rollout["pending"].as_array().unwrap().is_empty(), "{rollout}");
}
