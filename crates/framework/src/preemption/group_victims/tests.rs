//! Which pods groups evict: upstream's cases, in which slots become free as pods are removed.

use serde_json::{Value, json};

use super::*;
use crate::status::Code;
use crate::testing::{Cluster, PodBuilder, info, node, object, pod};
use kubestep_api::Pod;

const LOW: i32 = 0;
const MIDDLE: i32 = 100;
const HIGH: i32 = 1000;

/// A pod on a node.
fn on(name: &str, node: &str, priority: i32) -> Pod {
    pod(name).on(node).priority(priority)
}

fn of_group(pod: Pod, group: &str) -> Pod {
    pod.spec(json!({"schedulingGroup": {"podGroupName": group}}))
}

fn group(name: &str, spec: Value) -> kubestep_api::Object {
    let metadata = json!({"name": name, "namespace": "default", "uid": name});
    object(json!({"kind": "PodGroup", "metadata": metadata, "spec": spec}))
}

/// A group whose pods are disrupted together.
fn whole(name: &str, priority: i32) -> kubestep_api::Object {
    group(name, json!({"disruptionMode": "PodGroup", "priority": priority}))
}

/// A group whose pods are disrupted one by one.
fn loose(name: &str) -> kubestep_api::Object {
    group(name, json!({"disruptionMode": "Pod"}))
}

/// Slots for the preempting group: each becomes free when the named pods are removed.
struct Slots<'a> {
    cluster: &'a mut Cluster,
    slots: &'a [(&'a str, &'a [&'a str])],
    needed: usize,
}

impl PlacementTrial for Slots<'_> {
    fn remove(&mut self, unit: &Unit) {
        for pod in &unit.pods {
            self.cluster.snapshot.change_node(pod.pod.spec.node_name, |node| {
                assert!(node.remove_pod(pod.uid()).is_some());
            });
        }
    }

    fn add(&mut self, unit: &Unit) {
        for pod in &unit.pods {
            let node = pod.pod.spec.node_name;
            self.cluster.snapshot.change_node(node, |node| node.add_pod(pod.clone()));
        }
    }

    fn schedule(&mut self) -> Status {
        let is_free = |(node, blocking): &&(&str, &[&str])| {
            let pods = &self.cluster.node(node).pods;
            !pods.iter().any(|pod| blocking.contains(&pod.key().name.text().as_str()))
        };
        match self.slots.iter().filter(is_free).count() >= self.needed {
            true => Status::SUCCESS,
            false => Status::unschedulable("too few slots"),
        }
    }
}

/// A case: the pods on the nodes, and the preemptor.
struct Case {
    pods: Vec<Pod>,
    objects: Vec<kubestep_api::Object>,
    /// The priority of the preempting group; those of its pods do not matter.
    priority: i32,
    preempting: Vec<Pod>,
}

impl Case {
    fn new(pods: impl Into<Vec<Pod>>) -> Case {
        let preempting = vec![pod("p").priority(HIGH)];
        Case { pods: pods.into(), objects: Vec::new(), priority: HIGH, preempting }
    }

    fn with(mut self, object: kubestep_api::Object) -> Case {
        self.objects.push(object);
        self
    }

    fn priority(self, priority: i32) -> Case {
        Case { priority, ..self }
    }

    fn preempting(self, pods: impl Into<Vec<Pod>>) -> Case {
        Case { preempting: pods.into(), ..self }
    }

    /// The names of the victims, sorted; or code and message.
    fn victims(self, slots: &[(&str, &[&str])]) -> Result<Vec<String>, (Code, String)> {
        let nodes = ["n1", "n2", "n3", "n4", "n5"].map(node);
        let mut cluster = Cluster::new(nodes, self.pods);
        for object in self.objects {
            cluster.objects.insert(object);
        }
        let preemptor = whole("preempting", self.priority);
        let kubestep_api::Object::PodGroup(preemptor) = preemptor else { panic!("no other case") };
        let pods: Vec<_> = self.preempting.into_iter().map(info).collect();
        let preemptor = GroupPreemptor { group: &preemptor, pods: &pods };
        let units = units(&cluster.snapshot, &cluster.objects, cluster.now);
        let budgets = DisruptionBudgets::new(&cluster.objects);
        let needed = pods.len();
        let mut trial = Slots { cluster: &mut cluster, slots, needed };
        let victims = preemptor.select_victims(units, &budgets, &mut trial);
        let victims = victims.map_err(|status| (status.code(), status.message()))?;
        let mut names: Vec<String> =
            victims.iter().map(|victim| victim.key().name.to_string()).collect();
        names.sort();
        Ok(names)
    }
}

fn names(names: &[&str]) -> Result<Vec<String>, (Code, String)> {
    Ok(names.iter().map(|name| name.to_string()).collect())
}

/// A budget that allows no disruption of the pods labelled `app=foo`.
fn budget() -> kubestep_api::Object {
    object(json!({
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "budget", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "foo"}}},
        "status": {"disruptionsAllowed": 0},
    }))
}

const NO_VICTIMS: &str = "No preemption victims found for incoming preemptor";

fn no_victims() -> Result<Vec<String>, (Code, String)> {
    Err((Code::UnschedulableAndUnresolvable, NO_VICTIMS.into()))
}

#[test]
fn a_pod_without_a_group_goes_before_one_with_a_group() {
    let case = Case::new([
        on("p1", "n1", LOW),
        of_group(on("p2", "n2", LOW), "g1"),
        of_group(on("p3", "n3", LOW), "g2"),
    ]);
    let slots: &[(&str, &[&str])] = &[("n1", &["p1"]), ("n2", &["p2"]), ("n3", &["p3"])];
    assert_eq!(case.with(loose("g1")).with(loose("g2")).victims(slots), names(&["p1"]));
}

#[test]
fn among_pods_of_groups_the_one_that_started_last_goes() {
    let shared = || {
        vec![
            of_group(on("p1", "n1", LOW).started(1), "g1"),
            of_group(on("p2", "n2", LOW).started(0), "g1"),
        ]
    };
    let slots: &[(&str, &[&str])] = &[("n1", &["p1"]), ("n2", &["p2"]), ("n3", &["p3"])];
    assert_eq!(Case::new(shared()).with(loose("g1")).victims(&slots[..2]), names(&["p1"]));
    let mut more = shared();
    more.push(on("p3", "n3", MIDDLE));
    assert_eq!(Case::new(more).with(loose("g1")).victims(slots), names(&["p1"]));
}

#[test]
fn as_many_go_as_the_group_needs() {
    let pods = [
        of_group(on("p1", "n1", LOW).started(2), "g1"),
        of_group(on("p2", "n2", LOW).started(1), "g1"),
        of_group(on("p3", "n3", LOW).started(0), "g2"),
        on("p4", "n4", MIDDLE),
        of_group(on("p5", "n5", HIGH).started(0), "g3"),
    ];
    let case = Case::new(pods).with(loose("g1")).with(loose("g2")).with(loose("g3"));
    let case = case.preempting(["a", "b", "c"].map(|name| pod(name).priority(HIGH)));
    let slots: &[(&str, &[&str])] =
        &[("n1", &["p1"]), ("n2", &["p2"]), ("n3", &["p3"]), ("n4", &["p4"]), ("n5", &["p5"])];
    assert_eq!(case.victims(slots), names(&["p1", "p2", "p3"]));
}

#[test]
fn the_least_important_go_and_no_more_than_needed() {
    assert_eq!(Case::new([on("p1", "n1", LOW)]).victims(&[("n1", &["p1"])]), names(&["p1"]));
    let pods = [on("p1", "n1", LOW), on("p2", "n1", MIDDLE), on("p3", "n1", HIGH)];
    let slots: &[(&str, &[&str])] = &[("n1", &["p1"]), ("n1", &["p2"]), ("n1", &["p3"])];
    assert_eq!(Case::new(pods).victims(slots), names(&["p1"]));
    let pods = ["p1", "p2", "p3", "p4"].map(|name| on(name, "n1", LOW));
    let slots: &[(&str, &[&str])] = &[("n1", &["p1", "p2"]), ("n1", &["p1"])];
    assert_eq!(Case::new(pods).victims(slots), names(&["p1"]));
}

#[test]
fn pods_under_a_budget_are_put_back_first() {
    let slots: &[(&str, &[&str])] = &[("n1", &["guarded"]), ("n2", &["free"])];
    let groups = [
        of_group(on("guarded", "n1", LOW).label("app", "foo"), "g1"),
        of_group(on("free", "n2", LOW), "g1"),
    ];
    assert_eq!(Case::new(groups).with(budget()).victims(slots), names(&["free"]));
    let slots: &[(&str, &[&str])] = &[("n1", &["guarded"]), ("n1", &["free"])];
    let pods = [on("guarded", "n1", LOW).label("app", "foo"), on("free", "n1", LOW)];
    assert_eq!(Case::new(pods).with(budget()).victims(slots), names(&["free"]));
    let slots: &[(&str, &[&str])] = &[("n1", &["p1"]), ("n1", &["p2"])];
    let both = [("p1", LOW), ("p2", MIDDLE)];
    let both = both.map(|(name, priority)| on(name, "n1", priority).label("app", "foo"));
    assert_eq!(Case::new(both).with(budget()).victims(slots), names(&["p1"]));
}

#[test]
fn a_group_violates_a_budget_if_one_of_its_pods_does() {
    let pods = [
        of_group(on("g1-1", "n1", LOW).label("app", "foo"), "g1"),
        of_group(on("g1-2", "n1", LOW), "g1"),
        on("p1", "n1", LOW),
    ];
    let slots: &[(&str, &[&str])] = &[("n1", &["g1-1"]), ("n1", &["p1"])];
    let case = Case::new(pods).with(whole("g1", LOW)).with(budget());
    assert_eq!(case.victims(slots), names(&["p1"]));
}

#[test]
fn a_group_goes_as_a_whole() {
    let pods = ["p1", "p2"].into_iter().zip(["n1", "n2"]);
    let pods: Vec<_> = pods.map(|(name, node)| of_group(on(name, node, LOW), "g1")).collect();
    let case = Case::new(pods).with(whole("g1", LOW));
    assert_eq!(case.victims(&[("n1", &["p1"])]), names(&["p1", "p2"]));
    let mixed = [
        of_group(on("g1-1", "n1", LOW), "g1"),
        of_group(on("g1-2", "n1", LOW), "g1"),
        on("p1", "n1", MIDDLE),
    ];
    let case = Case::new(mixed).with(whole("g1", LOW));
    assert_eq!(case.victims(&[("n1", &["g1-1"])]), names(&["g1-1", "g1-2"]));
}

#[test]
fn a_single_pod_goes_before_a_whole_group() {
    let pods = [
        on("p1", "n1", LOW),
        of_group(on("g1-1", "n1", LOW), "g1"),
        of_group(on("g1-2", "n1", LOW), "g1"),
    ];
    let slots: &[(&str, &[&str])] = &[("n1", &["g1-1", "g1-2"]), ("n1", &["p1"])];
    assert_eq!(Case::new(pods).with(whole("g1", LOW)).victims(slots), names(&["p1"]));
}

#[test]
fn one_pod_that_never_preempts_is_enough() {
    let pods = || [on("p1", "n1", LOW), of_group(on("p2", "n2", LOW), "g1")];
    let never = pod("a").spec(json!({"preemptionPolicy": "Never"}));
    let case = Case::new(pods()).preempting([never, pod("b").priority(HIGH)]);
    let reason = "not eligible due to preemptionPolicy=Never.";
    let slots: &[(&str, &[&str])] = &[("n1", &["p1"]), ("n2", &["p2"])];
    assert_eq!(case.victims(slots), Err((Code::Unschedulable, reason.into())));
}

#[test]
fn only_what_is_less_important_can_go() {
    let case = Case::new([on("p1", "n1", HIGH)]).priority(MIDDLE);
    assert_eq!(case.victims(&[("n1", &["p1"])]), no_victims());
    assert_eq!(Case::new([]).priority(MIDDLE).victims(&[]), no_victims());
}

#[test]
fn where_evicting_all_does_not_help_the_groups_own_status_counts() {
    let case = Case::new([on("p1", "n1", LOW)]);
    assert_eq!(case.victims(&[]), Err((Code::Unschedulable, "too few slots".into())));
}

/// Two pods with priority `pods` in a group with priority `group`, against a preempting group.
fn divergent(pods: i32, group: i32, preempting: i32) -> Result<Vec<String>, (Code, String)> {
    let victims = [on("p1", "n1", pods), on("p2", "n2", pods)];
    let case = Case::new(victims.map(|pod| of_group(pod, "g1"))).with(whole("g1", group));
    case.priority(preempting).victims(&[("n1", &["p1"])])
}

#[test]
fn the_priority_of_the_group_counts_not_that_of_its_pods() {
    assert_eq!(divergent(HIGH, MIDDLE, HIGH), names(&["p1", "p2"]));
    assert_eq!(divergent(LOW, MIDDLE, MIDDLE), no_victims());
    assert_eq!(divergent(MIDDLE, MIDDLE, HIGH), names(&["p1", "p2"]));
    assert_eq!(divergent(MIDDLE, MIDDLE, LOW), no_victims());
}

/// A unit of that many pods, with the start time of the first.
fn unit(pods: usize, grouped: bool, priority: i32, started: i64) -> Unit {
    let pods = (0..pods).map(|at| {
        let pod = pod(&format!("p{at}"));
        info(if grouped { of_group(pod, "g") } else { pod })
    });
    Unit { pods: pods.collect(), priority, started: (Time(started), 0) }
}

#[test]
fn importance_is_priority_then_group_then_size_then_age() {
    let ordered = [
        unit(1, false, 20, 9),
        unit(2, true, 10, 5),
        unit(2, true, 10, 9),
        unit(1, true, 10, 1),
        unit(1, false, 10, 5),
        unit(1, false, 10, 9),
    ];
    for (a, first) in ordered.iter().enumerate() {
        for (b, second) in ordered.iter().enumerate() {
            assert_eq!(first.is_more_important(second), a < b, "{a} {b}");
        }
    }
}

#[test]
fn a_group_is_as_old_as_the_first_of_its_pods_that_is_met() {
    let pods = [on("p1", "n1", LOW).started(7), on("p2", "n2", LOW).started(3)];
    let mut cluster = Cluster::new(["n1", "n2"].map(node), pods.map(|pod| of_group(pod, "g1")));
    cluster.objects.insert(whole("g1", LOW));
    let units = units(&cluster.snapshot, &cluster.objects, cluster.now);
    let [only] = units.as_slice() else { panic!("{units:?}") };
    assert_eq!((only.pods.len(), only.started.0), (2, Time(7_000_000)));
}
