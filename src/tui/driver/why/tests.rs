//! "Why?" as a person asks it, for every built-in cluster.

use crate::tui::testing::{LiveInterface, session};
use kubestep_source::fixtures;

/// Each story's pod, and how the answer begins: with the decisive cause.
const ASKED: &[(&str, &str, &str)] = &[
    (
        "tour",
        "default/database",
        "is pending: node selector disktype=sdd (no node has it; did you mean \"ssd\"?)",
    ),
    (
        "fragmented",
        "default/report",
        "is pending: Insufficient cpu on every node (500m cpu short on node-0)",
    ),
    (
        "tainted",
        "default/train",
        "is pending: Insufficient cpu on 2 nodes (800m cpu short on general-0), taint \
      dedicated=gpu:NoSchedule is not tolerated on gpu-0",
    ),
    (
        "affinity-typo",
        "default/database",
        "is pending: node affinity disktype=sdd (no node has it; did you mean \"ssd\"?)",
    ),
    (
        "affinity-alone",
        "default/worker",
        "is pending: pod affinity: there are no pods with app=cache",
    ),
    ("anti-affinity-deadlock", "default/cache-3", "is pending: anti-affinity: pods with app=cache"),
    (
        "spread-skew",
        "default/web-2",
        "is pending: Insufficient cpu on c-0 (400m cpu short), spread over \
      topology.kubernetes.io/zone would exceed maxSkew on 2 nodes",
    ),
    (
        "preemption-budget",
        "default/payment",
        "is on node-1 (attempt 2): it preempted default/batch there (fewer \
      violated disruption budgets)",
    ),
    (
        "preemption-violates",
        "default/payment",
        "is on node-0 (attempt 2): it preempted default/orders there (the \
      only candidate)",
    ),
    (
        "preemption-never",
        "default/nightly",
        "is pending: Insufficient cpu on node-0 (500m cpu short); preemption: not \
      eligible due to preemptionPolicy=Never",
    ),
    (
        "gated",
        "default/quota-checked",
        "is pending: scheduling gate \"example.com/quota\" holds it back",
    ),
    (
        "wrong-scheduler",
        "default/analytics",
        "is pending: no profile serves the scheduler name \"volcanoo\"",
    ),
    (
        "host-port",
        "default/ingress-canary",
        "is pending: host port 8443/TCP is in use on every node",
    ),
    ("held-at-permit", "default/release-1", "is pending: ManualPermit holds it at Permit"),
    (
        "zone-volume",
        "default/database-0",
        "is pending: Insufficient cpu on a-0 (500m cpu short), claim \
      default/data-database-0 has volume disk-database-0, which is only for",
    ),
    ("claim-unbound", "default/reports", "is pending: StorageClass fast-ssd does not exist"),
    (
        "volume-limit",
        "default/store-4",
        "is pending: volume limit of disk.csi.example.com reached on every node",
    ),
    (
        "device-taken",
        "default/train",
        "is pending: claim default/train, request gpu needs 1 device of class gpu: held \
      by other claims on gpu-0",
    ),
    (
        "gang-short",
        "default/train-1",
        "is pending: its pod group default/train needs 3 pods at once, and only 2",
    ),
    ("cordoned", "default/job", "is pending: cordoned on every node"),
    (
        "node-pools",
        "default/checkout",
        "is pending: Insufficient cpu on every node (1.3 cpu short on general-1)",
    ),
    (
        "zone-loss",
        "default/reports",
        "is pending: Insufficient cpu on every node (needs 6 cpu, 4 allocatable on b-0)",
    ),
    (
        "opaque-plugin",
        "default/report",
        "is pending: Insufficient cpu on every node (needs 6 cpu, 4 allocatable on",
    ),
    (
        "coscheduling",
        "default/train-2",
        "is pending: its pod group default/train needs 3 pods at once, and only 2 of them fit",
    ),
    ("numa", "default/packets", "is pending: cannot be aligned to one NUMA zone on any node"),
    (
        "quota",
        "green/report",
        "is on node-0 (attempt 2): CapacityScheduling preempted blue/worker-2 there (the only \
      candidate)",
    ),
    (
        "upgrade",
        "default/report",
        "is pending: Insufficient cpu on 2 nodes (4 cpu short on memory-0), taint",
    ),
    (
        "rollout",
        "default/web-6d4f-k2x7p",
        "is on node-a (bound when loaded) Rescheduled now, without spec.nodeName, it would fit",
    ),
];

#[test]
fn the_answer_of_every_story_begins_with_the_decisive_cause() {
    assert_eq!(ASKED.len(), fixtures::STORIES.len());
    for (story, pod, cause) in ASKED {
        for size in [(80, 24), (120, 36)] {
            let mut live = LiveInterface::demo(story)
                .resized(size.0, size.1)
                .keys(&format!("c6/{pod}<Enter>W"));
            let text = live.text();
            assert!(text.contains(&format!("Why {pod}?")), "{story}: {text}");
            let inside = |line: &str| Some(line.split_once('│')?.1.rsplit_once('│')?.0.to_owned());
            let words: Vec<String> = text.lines().filter_map(inside).collect();
            let words: Vec<String> =
                words.join(" ").split_whitespace().map(str::to_owned).collect();
            let begins = format!("{pod} {cause}");
            assert!(words.join(" ").starts_with(&begins), "{story}: {begins}\n{text}");
        }
    }
}

/// What the stories show that are about something else than why a pod is pending.
const SHOWN: [(&str, &str); 6] = [
    ("held-at-permit", "held by ManualPermit"),
    ("node-pools", "New nodes that would take it: NodePool spare"),
    ("zone-loss", "default/database-0 (lost from a-0) pending"),
    ("rollout", "stuck: 0 of 4 pods updated and available"),
    ("upgrade", "Because of BalancedAllocationGain"),
    ("opaque-plugin", "uncertain holds only if TargetLoadPacking scored node-0 at most 30 points"),
];

#[test]
fn what_the_window_leaves_out_is_in_the_view() {
    let text = LiveInterface::demo("claim-unbound").resized(100, 36).keys("cW").text();
    assert!(text.contains("and 3 more events (gw)") && !text.contains("-o wide"), "{text}");
}

#[test]
fn a_step_closes_the_answer_for_the_moment_before() {
    let mut live = LiveInterface::demo("tour").keys("nW");
    assert!(live.text().contains("Why default/payment?"), "{}", live.text());
    let mut live = live.keys("n");
    assert!(!live.text().contains("Why default/payment?"), "{}", live.text());
    assert!(live.text().contains("cycle 2 default/web-0"), "{}", live.text());
}

#[test]
fn scores_keep_their_columns_where_names_are_shortened() {
    let node = |at: usize| {
        format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: ip-10-0-{at}-17.eu-west-1.compute.internal}}, \
             status: {{allocatable: {{cpu: {}, memory: 8Gi, pods: 10}}}}}}\n---\n",
            at + 2
        )
    };
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: default}, spec: {containers: \
               [{name: c, resources: {requests: {cpu: 1, memory: 1Gi}}}]}}";
    let cluster: String = (0..5).map(node).collect();
    let mut live = LiveInterface::new(session(&(cluster + pod)), (200, 50)).keys("n4");
    live.interface.answer();
    let text = live.text();
    assert!(text.contains("  ip-10-0-4-17  ip-10-0-3-17"), "{text}");
    let total = text.lines().find_map(|line| line.split_once("  total  ")).unwrap().1;
    assert!(total.split_whitespace().count() > 2, "{text}");
}

fn assert_shows(mut live: LiveInterface, story: &str, says: &str) {
    let text = live.text().replace('│', " ");
    let text: Vec<&str> = text.split_whitespace().collect();
    let says: Vec<&str> = says.split_whitespace().collect();
    assert!(text.join(" ").contains(&says.join(" ")), "{story}: {says:?}\n{text:?}");
}

#[test]
fn one_key_shows_what_every_story_demonstrates() {
    let asked = ASKED.iter().map(|(story, _, cause)| (*story, *cause));
    let asked = asked.filter(|(story, _)| SHOWN.iter().all(|(own, _)| own != story));
    for (story, says) in asked.chain(SHOWN) {
        assert_shows(LiveInterface::story(story).keys("r"), story, says);
    }
    let mut other = LiveInterface::demo("tour").keys("r");
    assert!(other.text().contains("error: this is no built-in story"), "{}", other.text());
}

#[test]
fn two_keys_show_why_a_pod_of_every_story_is_pending() {
    let pending = ASKED.iter().filter(|(story, ..)| !["held-at-permit", "rollout"].contains(story));
    for (story, _, cause) in pending {
        assert_shows(LiveInterface::demo(story).keys("cW"), story, cause);
    }
}

#[test]
fn another_key_tells_what_would_help() {
    let mut live = LiveInterface::demo("fragmented").keys("c2X");
    assert!(live.text().contains("What would make default/report fit?"), "{}", live.text());
    assert!(live.text().contains("resize pod default/report cpu=1.5"), "{}", live.text());
    let mut live = LiveInterface::demo("tour").keys("nX");
    assert!(live.text().contains("No change is needed"), "{}", live.text());
}

#[test]
fn without_a_pod_it_says_where_to_find_one() {
    let mut live = LiveInterface::demo("cordoned").keys("5W");
    assert!(live.text().contains("choose a pod first"), "{}", live.text());
}

#[test]
fn enter_on_a_cell_names_its_cause_and_on_a_score_its_formula() {
    let mut live = LiveInterface::demo("tour").keys("n3<Enter>");
    let text = live.text();
    assert!(text.contains("default/payment on a-0 in cycle 1"), "{text}");
    assert!(text.contains("Insufficient cpu: needs 3, 2.5 free"), "{text}");
    // The state before the cycle is reported, also where the cycle made room itself.
    let mut live = live.keys("<Esc>j<Enter>");
    assert!(live.text().contains("b-0: rejected"), "{}", live.text());
    let mut live = live.keys("<Esc>n4j<Enter>");
    let text = live.text();
    assert!(text.contains("default/web-0 on a-0 in cycle 2"), "{text}");
    assert!(text.contains("b-0 has 468 points, a-0 has 447: 21 fewer"), "{text}");
    assert!(text.contains("NodeResourcesFit on a-0:"), "{text}");
    live.golden("score-formulas-80x24");
}

#[test]
fn evictions_that_were_made_are_reported_as_made() {
    let mut live = LiveInterface::wide("tour").keys("nW");
    assert!(live.text().contains("Preemption: it preempted on b-0"), "{}", live.text());
    assert!(live.keys("G").text().contains("In backoff for 1.9s more"));
}
