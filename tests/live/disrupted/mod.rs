//! Drains, lost nodes and rollouts, compared with the real thing: kubestep simulates the edit on a
//! cluster, then kubectl does the same to it, with the real kube-scheduler and
//! kube-controller-manager. The same pods must end on the same nodes or pending, and the same
//! budgets must block.
//!
//! It needs `kube-scheduler` and `kube-controller-manager` next to the API server in the folder
//! `KUBEBUILDER_ASSETS`. A story avoids what is random upstream, such as nodes of equal scores.
//! `KUBESTEP_STORY=NAME` runs one.

mod lab;
mod stories;

use std::fmt::Write;

use serde_json::Value;

use lab::{Lab, Node, by_name, place, workload};

/// What happens to a cluster.
struct Story {
    name: &'static str,
    /// The nodes on which the first objects start.
    nodes: &'static [Node],
    objects: &'static str,
    /// Nodes and objects that are created once the others run.
    more_nodes: &'static [Node],
    more_objects: &'static str,
    edit: &'static str,
    /// Does the same with kubectl.
    act: fn(&Lab, &str),
    /// What else has to hold; the report and what kubestep says besides.
    check: fn(&Lab, &Value, &str),
}

/// The pods of a cluster as text: `WORKLOAD NODE`, and for a rollout whether each is new.
type End = Vec<String>;

fn play(stories: &[Story]) {
    let chosen = std::env::var("KUBESTEP_STORY").ok();
    let lab = Lab::start();
    let mut differences = String::new();
    for story in stories {
        if chosen.as_deref().is_some_and(|chosen| chosen != story.name) {
            continue;
        }
        let difference = story.play(&lab);
        eprintln!("{}: {}", story.name, if difference.is_empty() { "agrees" } else { "differs" });
        differences += &difference;
        lab.clear();
    }
    assert!(differences.is_empty(), "kubestep and the cluster differ:\n{differences}");
}

impl Story {
    /// The differences, empty if there are none.
    fn play(&self, lab: &Lab) -> String {
        lab.create_nodes(self.nodes);
        lab.apply(self.objects);
        lab.settle();
        lab.create_nodes(self.more_nodes);
        lab.apply(self.more_objects);
        lab.settle();
        let before = lab.pods();
        let (report, reported, _) = lab.kubestep(self.edit);
        (self.act)(lab, self.edit);
        lab.settle();
        let after = lab.pods();
        let mut differences = String::new();
        let mut compare = |what: &str, simulated: End, real: End| {
            if simulated != real {
                let _ = writeln!(
                    differences,
                    "{}, {what}:\n  kubestep {simulated:?}\n  cluster  {real:?}",
                    self.name
                );
            }
        };
        match report["disruption"]["rollouts"].as_array().is_some_and(|all| !all.is_empty()) {
            true => {
                compare("pods", simulated_rollout(&before, &report), real_rollout(&before, &after))
            }
            false => compare("pods", simulated(&before, &report), real(&after)),
        }
        compare("blocked", blocked(&report), really_blocked(lab, &report, &after));
        if !differences.is_empty() {
            let _ = writeln!(differences, "{reported}{}", lab.kubectl("get events"));
        }
        (self.check)(lab, &report, &reported);
        differences
    }
}

fn real(pods: &[Value]) -> End {
    sorted(pods.iter().map(|pod| format!("{} {}", workload(pod), place(pod))))
}

/// The pods in the end of the simulation: those at its beginning, without the ones that left, with
/// their replacements.
fn simulated(before: &[Value], report: &Value) -> End {
    let mut pods: Vec<(String, String, String)> = before
        .iter()
        .map(|pod| (pod["metadata"]["name"].as_str().unwrap().into(), workload(pod), place(pod)))
        .collect();
    for left in report["disruption"]["left"].as_array().into_iter().flatten() {
        let name = |field: &str| {
            left[field]
                .as_str()
                .and_then(|pod| pod.split_once('/'))
                .map(|(_, name)| name.to_owned())
        };
        let at = pods.iter().position(|(pod, ..)| Some(pod) == name("pod").as_ref()).unwrap();
        let (_, workload, _) = pods.remove(at);
        let place = left["placedOn"].as_str().unwrap_or("pending");
        pods.extend(name("replacement").map(|pod| (pod, workload, place.to_owned())));
    }
    sorted(pods.into_iter().map(|(_, workload, place)| format!("{workload} {place}")))
}

fn real_rollout(before: &[Value], after: &[Value]) -> End {
    let is_old =
        |pod: &Value| before.iter().any(|old| old["metadata"]["uid"] == pod["metadata"]["uid"]);
    sorted(
        after
            .iter()
            .map(|pod| format!("{} {}", if is_old(pod) { "old" } else { "new" }, place(pod))),
    )
}

fn simulated_rollout(before: &[Value], report: &Value) -> End {
    let steps = report["disruption"]["rollouts"][0]["steps"].as_array().unwrap();
    let named = |step: &Value, field: &str| {
        step[field].as_str().and_then(|pod| pod.split_once('/')).map(|(_, name)| name.to_owned())
    };
    let deleted: Vec<String> = steps.iter().filter_map(|step| named(step, "deleted")).collect();
    let old = by_name(before).into_iter().filter(|(name, _)| !deleted.contains(name));
    let old = old.map(|(_, pod)| format!("old {}", place(pod)));
    let created = steps.iter().filter(|step| step["created"].is_string());
    let new = created.map(|step| format!("new {}", step["node"].as_str().unwrap_or("pending")));
    sorted(old.chain(new))
}

fn blocked(report: &Value) -> End {
    let blocked = report["disruption"]["blocked"].as_array().into_iter().flatten();
    sorted(blocked.map(|blocked| format!("{} {}", blocked["node"], blocked["reason"])))
}

/// The pods that are still on drained nodes, although a drain evicts them, with the numbers of
/// their budget.
fn really_blocked(lab: &Lab, report: &Value, after: &[Value]) -> End {
    let drained = report["disruption"]["drained"].as_array().cloned().unwrap_or_default();
    let stays = |pod: &&Value| {
        let owner = pod["metadata"]["ownerReferences"][0]["kind"].as_str();
        let on_it = drained.iter().any(|node| node["node"] == pod["spec"]["nodeName"]);
        let mirror = &pod["metadata"]["annotations"]["kubernetes.io/config.mirror"];
        on_it && mirror.is_null() && owner != Some("DaemonSet")
    };
    sorted(after.iter().filter(stays).map(|pod| {
        let app = pod["metadata"]["labels"]["app"].as_str().unwrap();
        let text = lab.kubectl(&format!("get pdb {app} -o json"));
        let budget: Value = serde_json::from_str(&text).unwrap();
        let status = &budget["status"];
        let (needed, has) = (&status["desiredHealthy"], &status["currentHealthy"]);
        let pods = if *needed == 1 { "pod" } else { "pods" };
        let reason = format!("budget default/{app} needs {needed} healthy {pods} and has {has}");
        format!("{} \"{reason}\"", pod["spec"]["nodeName"])
    }))
}

fn sorted(lines: impl Iterator<Item = String>) -> End {
    let mut lines: End = lines.collect();
    lines.sort();
    lines
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_drains_end_as_simulated() {
    play(stories::DRAINS);
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_losses_end_as_simulated() {
    play(stories::LOSSES);
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_rollouts_end_as_simulated() {
    play(stories::ROLLOUTS);
}
