//! `kubestep explain`: for every fixture the true cause, in the whole output.

use kubestep::fixtures;

use crate::harness::Call;

/// Each fixture with the pods that are asked about.
const ASKED: &[(&str, &[&str])] = &[
    ("tour", &["train", "database", "web-0", "payment", "gated", "release", "stray"]),
    ("fragmented", &["report"]),
    ("tainted", &["train"]),
    ("affinity-typo", &["database"]),
    ("affinity-alone", &["worker"]),
    ("anti-affinity-deadlock", &["cache-3"]),
    ("spread-skew", &["web-2"]),
    ("preemption-budget", &["payment"]),
    ("preemption-violates", &["payment"]),
    ("preemption-never", &["nightly"]),
    ("gated", &["quota-checked"]),
    ("wrong-scheduler", &["analytics"]),
    ("host-port", &["ingress-canary"]),
    ("held-at-permit", &["release-1", "other"]),
    ("zone-volume", &["database-0"]),
    ("cordoned", &["job"]),
];

fn on(story: &str) -> Call {
    Call::new().bytes("cluster.yaml", fixtures::find(story).unwrap().cluster.as_bytes())
}

#[test]
fn every_fixture_names_its_true_cause() {
    assert_eq!(ASKED.len(), fixtures::STORIES.len());
    for (story, pods) in ASKED {
        for pod in *pods {
            on(story)
                .says(&format!("explain/{story}-{pod}"), &format!("explain {pod} -f cluster.yaml"));
        }
    }
}

#[test]
fn wide_tells_every_node_and_the_whole_story() {
    for (story, pod) in [("tour", "train"), ("tour", "web-0"), ("spread-skew", "web-2")] {
        let line = format!("explain {pod} -f cluster.yaml -o wide");
        on(story).says(&format!("explain/wide-{story}-{pod}"), &line);
    }
}

#[test]
fn one_node_and_why_not_that_one() {
    let tour = on("tour");
    tour.says("explain/node-refused", "explain train -f cluster.yaml --node gpu-0");
    tour.says("explain/node-fits", "explain web-0 -f cluster.yaml --node a-0");
    tour.says("explain/why-not-fewer-points", "explain web-0 -f cluster.yaml --why-not a-0");
    tour.says("explain/why-not-refused", "explain web-0 -f cluster.yaml --why-not b-1");
}

#[test]
fn what_is_asked_wrongly_is_said() {
    let tour = on("tour");
    tour.says("explain/no-pod", "explain trian -f cluster.yaml");
    tour.says("explain/no-node", "explain train -f cluster.yaml --node gpu-1");
    tour.says("explain/both", "explain train -f cluster.yaml --node a-0 --why-not a-1");
    tour.says("explain/nothing-to-open", "explain train");
    let twice = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: a}\n---\n\
                 apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: b}\n";
    Call::new().file("pods.yaml", twice).says("explain/two-pods", "explain web -f pods.yaml");
    Call::new().file("pods.yaml", twice).says("explain/no-nodes", "explain a/web -f pods.yaml");
}
