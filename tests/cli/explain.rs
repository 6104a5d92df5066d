//! `kubestep explain`: for every fixture the right cause, with the whole output.

use kubestep_source::fixtures;

use crate::harness::Call;

/// Each fixture with the pods to explain.
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
    ("claim-unbound", &["reports"]),
    ("volume-limit", &["store-4"]),
    ("device-taken", &["train"]),
    ("gang-short", &["train-2", "lonely-0"]),
    ("cordoned", &["job"]),
    ("node-pools", &["checkout"]),
    ("zone-loss", &["reports"]),
    ("rollout", &[]),
    ("opaque-plugin", &["web", "report", "cache", "worker"]),
    ("coscheduling", &["train-2", "index-0"]),
    ("numa", &["packets"]),
    ("quota", &["blue/extra", "green/report"]),
    ("upgrade", &["train", "report"]),
];

fn on(story: &str) -> Call {
    Call::new().bytes("cluster.yaml", fixtures::find(story).unwrap().cluster.as_bytes())
}

#[test]
fn every_fixture_names_its_true_cause() {
    assert_eq!(ASKED.len(), fixtures::STORIES.len());
    for (story, pods) in ASKED {
        for pod in *pods {
            on(story).says(
                &format!("explain/{story}-{}", pod.replace('/', "-")),
                &format!("explain {pod} -f cluster.yaml"),
            );
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
fn the_smallest_changes_are_proposed() {
    for (story, pod) in [
        ("affinity-typo", "database"),
        ("zone-volume", "database-0"),
        ("preemption-never", "nightly"),
        ("wrong-scheduler", "analytics"),
        ("held-at-permit", "other"),
    ] {
        let line = format!("explain {pod} -f cluster.yaml --fix");
        on(story).says(&format!("explain/fix-{story}-{pod}"), &line);
    }
    on("tainted").says("explain/fix-json", "explain train -f cluster.yaml --fix -o json");
    for (name, fixes) in [("few", 2), ("many", 30)] {
        let line = format!("explain web-2 -f cluster.yaml --fix --max-fixes {fixes}");
        on("spread-skew").says(&format!("explain/max-fixes-{name}"), &line);
    }
    on("tour").says("explain/fix-none", "explain web-0 -f cluster.yaml --fix");
}

/// Equal pods wait for the resources of one node; a fix is checked in the way `run --edit` applies
/// it.
#[test]
fn a_change_is_judged_as_run_carries_it_out() {
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {allocatable: {cpu: 4, \
                pods: 110}}\n---\n";
    let pod = |number: u32| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: p-{number}}}\nspec: {{containers: \
             [{{name: c, resources: {{requests: {{cpu: 2}}}}}}]}}\n---\n"
        )
    };
    let cluster = node.to_owned() + &(0..6).map(pod).collect::<String>();
    let call = Call::new().bytes("cluster.yaml", cluster.as_bytes());
    for pod in ["p-2", "p-3", "p-4", "p-5"] {
        let said = call.run(&format!("explain {pod} -f cluster.yaml --fix -o json"));
        let explained: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
        let found = explained["fixes"]["found"].as_array().unwrap();
        assert!(!found.is_empty());
        for fix in found {
            let edits = fix["edits"].as_array().unwrap().iter();
            let edits: Vec<&str> = edits.map(|edit| edit.as_str().unwrap()).collect();
            // An edit that puts an object contains quotation marks, which end a word here.
            if edits.iter().any(|edit| edit.contains('"')) {
                continue;
            }
            let options: String = edits.iter().map(|edit| format!(" --edit \"{edit}\"")).collect();
            let run = call.run(&format!("run -f cluster.yaml{options}"));
            let is_placed = run.stdout.contains(&format!("default/{pod}  on "));
            assert_eq!(fix["contended"], !is_placed, "{pod}{options}: {}", run.stdout);
        }
    }
    call.says("explain/fix-contended", "explain p-5 -f cluster.yaml --fix");
}

#[test]
fn pods_that_are_placed_first_are_named() {
    let call = Call::new().bytes(
        "cluster.yaml",
        b"{kind: Node, apiVersion: v1, metadata: {name: a}, status: {allocatable: {cpu: 4, pods: 9}}}
---
{kind: Pod, apiVersion: v1, metadata: {name: busy}, spec: {nodeName: a, containers: [{name: c,
 resources: {requests: {cpu: 2500m}}}]}, status: {phase: Running}}
---
{kind: Pod, apiVersion: v1, metadata: {name: urgent}, spec: {priority: 100, containers: [{name: c,
 resources: {requests: {cpu: 1}}}]}}
---
{kind: Pod, apiVersion: v1, metadata: {name: web}, spec: {containers: [{name: c,
 resources: {requests: {cpu: 1}}}]}}
",
    );
    call.says("explain/placed-first", "explain web -f cluster.yaml");
}

/// In a file no pod has waited yet, and the part about requeuing is no longer than the answer.
#[test]
fn the_queue_is_reported_in_short() {
    for (story, pods) in ASKED {
        for pod in *pods {
            let text = on(story).run(&format!("explain {pod} -f cluster.yaml")).stdout;
            assert!(!text.contains("for 0s"), "{story} {pod}: {text}");
            let wide = on(story).run(&format!("explain {pod} -f cluster.yaml -o wide")).stdout;
            assert!(!wide.contains("(-o wide)"), "{story} {pod}: {wide}");
        }
    }
}

#[test]
fn a_pod_whose_turn_has_not_come_names_the_option_that_reaches_it() {
    let tour = on("tour");
    let first = tour.run("explain web-0 -f cluster.yaml --max-cycles 1");
    let option = first.stderr.split("--max-cycles ").nth(1).unwrap();
    let most = option.split(' ').next().unwrap();
    let line = format!("explain web-0 -f cluster.yaml --max-cycles {most}");
    let reached = tour.run(&line);
    assert!(!reached.stderr.contains("--max-cycles"), "{most}: {}", reached.stderr);
    assert!(!reached.stdout.contains("not tried yet"), "{most}: {}", reached.stdout);
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

/// The JSON output, checked against the schema like every JSON output.
fn json(call: &Call, pod: &str) -> serde_json::Value {
    let said = call.run(&format!("explain {pod} -f cluster.yaml -o json"));
    serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{pod}: {}", said.stderr))
}

#[test]
fn every_fixture_as_json() {
    for (story, pods) in ASKED {
        let call = on(story);
        for pod in *pods {
            let value = json(&call, pod);
            let namespace = if pod.contains('/') { "" } else { "default/" };
            assert_eq!(value["pod"], format!("{namespace}{pod}"), "{story}");
            let code = call.run(&format!("explain {pod} -f cluster.yaml")).code;
            assert_eq!(value["schedulable"], code == Some(0), "{story} {pod}");
        }
    }
    on("spread-skew").says("explain/json", "explain web-2 -f cluster.yaml -o json");
    on("affinity-typo").says("explain/yaml", "explain database -f cluster.yaml -o yaml");
}

/// The kinds of causes that are reported for a pod.
fn kinds(call: &Call, pod: &str) -> Vec<String> {
    let value = json(call, pod);
    let nodes = value["nodes"].as_array().unwrap();
    let blockers = nodes.iter().flat_map(|node| node["blockers"].as_array().unwrap());
    let causes = blockers.flat_map(|blocker| blocker["causes"].as_array().unwrap());
    let mut kinds: Vec<String> =
        causes.map(|cause| cause["kind"].as_str().unwrap().to_owned()).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

#[test]
fn volumes_are_followed_to_their_zone_limit_and_capacity() {
    let call = Call::new().bytes("cluster.yaml", include_bytes!("explain/volumes.yaml"));
    for pod in ["gone", "elsewhere", "none", "limit", "once", "zone", "class"] {
        call.says(&format!("explain/volumes-{pod}"), &format!("explain {pod} -f cluster.yaml"));
    }
    assert_eq!(kinds(&call, "elsewhere"), ["volume"]);
    assert_eq!(kinds(&call, "none"), ["volume"]);
    assert_eq!(kinds(&call, "gone"), ["volume"]);
    assert_eq!(kinds(&call, "limit"), ["volumeLimit"]);
    assert_eq!(kinds(&call, "once"), ["volumeTaken"]);
    assert_eq!(kinds(&call, "zone"), ["otherZone"]);
}

#[test]
fn devices_are_counted_by_what_fails_them() {
    let call = Call::new().bytes("cluster.yaml", include_bytes!("explain/devices.yaml"));
    for pod in ["large", "second", "missing"] {
        call.says(&format!("explain/devices-{pod}"), &format!("explain {pod} -f cluster.yaml"));
    }
    assert_eq!(kinds(&call, "large"), ["devices"]);
    assert_eq!(kinds(&call, "second"), ["devices"]);
}

/// Ten similar nodes: the selected one is listed first, however few are shown.
#[test]
fn the_winner_of_a_tie_stands_first() {
    let node = |number: u32| {
        format!(
            "apiVersion: v1\nkind: Node\nmetadata: {{name: node-{number}}}\nstatus:\n  \
             allocatable: {{cpu: \"2\", memory: 4Gi, pods: \"10\"}}\n---\n"
        )
    };
    let pod =
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - name: main\n";
    let cluster = (0..10).map(node).collect::<String>() + pod;
    let call = Call::new().bytes("cluster.yaml", cluster.as_bytes());
    call.says("explain/tie", "explain web -f cluster.yaml --tie-break seed:3");
    for seed in 0..10 {
        let said = call.run(&format!("explain web -f cluster.yaml --tie-break seed:{seed}"));
        let (head, table) = said.stdout.split_once("× weight):").unwrap();
        let chosen = head.split(" is on ").nth(1).unwrap().split(' ').next().unwrap();
        let first = table.lines().nth(1).unwrap();
        assert!(first.trim_start().starts_with(&format!("{chosen} ")), "{}", said.stdout);
    }
}

/// Nodes `n1`, `n2` … with 4 CPUs, and a pod `web` with these fields.
fn uniform(nodes: usize, spec: &str) -> Call {
    let amounts = "{cpu: \"4\", memory: 8Gi, pods: \"10\"}";
    let node = |at: usize| {
        format!(
            "apiVersion: v1\nkind: Node\nmetadata: {{name: n{at}}}\nstatus: {{allocatable: \
             {amounts}, capacity: {amounts}}}\n---\n"
        )
    };
    let nodes: String = (1..=nodes).map(node).collect();
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec: {{{spec} containers: \
         [{{name: c, resources: {{requests: {{cpu: \"1\"}}}}}}]}}\n"
    );
    Call::new().bytes("cluster.yaml", (nodes + &pod).as_bytes())
}

#[test]
fn a_margin_that_no_cycle_decided_is_hypothetical() {
    let bigger = "apiVersion: v1\nkind: Node\nmetadata: {name: big}\nstatus: {allocatable: \
                  {cpu: \"8\", memory: 8Gi, pods: \"10\"}}\n---\n";
    let call = uniform(1, "nodeName: big,").bytes("big.yaml", bigger.as_bytes());
    let text = call.run("explain web -f cluster.yaml -f big.yaml").stdout;
    assert!(text.contains("default/web is on big (bound when loaded)\nRescheduled now"), "{text}");
    assert!(text.contains(" big would win by ") && !text.contains(" won by "), "{text}");
}

#[test]
fn formulas_of_the_best_nodes_say_how_to_see_the_others() {
    let call = uniform(5, "");
    let text = call.run("explain web -f cluster.yaml -o wide").stdout;
    let heading = "Formulas of 3 of the 5 nodes (--node NODE: of another):";
    assert!(text.contains(heading), "{text}");
    let of = |node: &str| format!("NodeResourcesFit on {node}:");
    let shown = |text: &str| (1..=5).filter(|at| text.contains(&of(&format!("n{at}")))).count();
    assert_eq!(shown(&text), 3, "{text}");
    let absent = (1..=5).map(|at| format!("n{at}")).find(|node| !text.contains(&of(node)));
    let node = absent.unwrap();
    let other = call.run(&format!("explain web -f cluster.yaml -o wide --node {node}")).stdout;
    assert!(other.contains(&of(&node)), "{other}");
}

#[test]
fn a_cycle_that_stopped_early_says_how_many_nodes_were_evaluated() {
    let text = uniform(200, "").run("explain web -f cluster.yaml").stdout;
    let evaluated = "it fit 100 of 100 nodes evaluated, and would fit 100 of the others; ";
    assert!(text.contains(evaluated), "{text}");
    let text = uniform(20, "").run("explain web -f cluster.yaml").stdout;
    assert!(text.contains("it fit 20 of 20 nodes; "), "{text}");
}
