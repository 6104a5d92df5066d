//! "Why?" as a person asks it, for every built-in cluster.

use crate::tui::testing::LiveInterface;

/// Each story's pod by its row in the queues or the pods, and words of its true cause.
const ASKED: &[(&str, &str, &str)] = &[
    ("fragmented", "default/report", "500m short"),
    ("tainted", "default/train", "taint dedicated=gpu:NoSchedule is not tolerated"),
    ("affinity-typo", "default/database", "did you mean \"ssd\"?"),
    ("spread-skew", "default/web-2", "PodTopologySpread"),
    ("preemption-never", "default/nightly", "preemptionPolicy"),
    ("gated", "default/quota-checked", "example.com/quota"),
    ("wrong-scheduler", "default/analytics", "no profile serves"),
    ("host-port", "default/ingress-canary", "8443"),
    ("zone-volume", "default/database-0", "disk-database-0"),
    ("cordoned", "default/job", "cordoned"),
];

#[test]
fn one_key_tells_the_true_cause() {
    for (story, pod, cause) in ASKED {
        let name = pod.trim_start_matches("default/");
        let mut live = LiveInterface::demo(story).keys(&format!("c6/{name}<Enter>W"));
        let text = live.text();
        assert!(text.contains(&format!("Why {pod}?")), "{story}: {text}");
        // The window scrolls: what is below is seen in time.
        let below = live.keys("G").text();
        let all = format!("{text}{below}").replace(['│', '\n'], " ");
        let all: Vec<&str> = all.split_whitespace().collect();
        assert!(all.join(" ").contains(cause), "{story}: {text}{below}");
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
    // The state before the cycle is told, also where the cycle made room itself.
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
fn evictions_that_were_made_are_told_as_made() {
    let mut live = LiveInterface::wide("tour").keys("nW");
    assert!(live.text().contains("Preemption: it preempted on b-0"), "{}", live.text());
    assert!(live.keys("G").text().contains("In backoff for 1.9s more"));
}
