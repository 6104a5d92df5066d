//! The edits on offer for an object in its current state.

use crate::edit::{Edit, EditForm, FORMS, HostPort, NodeEdit, NodeSet, PodEdit, TermList, TermRef};
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Node, ObjectKey, Pod};
use kubestep_cluster::World;
use kubestep_cluster::rollout::WorkloadKind;
use kubestep_cluster::workload::workload_of;
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::QueueName;

/// An edit on offer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EditOffer {
    /// The edit as text, or its beginning.
    pub words: String,
    /// The missing arguments, as in the usage of a form; empty if none is missing.
    pub missing: &'static str,
    /// What follows the missing arguments, with a space before it.
    pub end: String,
}

impl EditOffer {
    /// The edit, with the format of what is missing.
    pub fn label(&self) -> String {
        let is_apart = self.missing.is_empty() || self.words.ends_with([' ', '=', '@']);
        format!("{}{}{}{}", self.words, if is_apart { "" } else { " " }, self.missing, self.end)
    }

    /// What the edit does, in a few words, from the table of forms.
    pub fn about(&self) -> &'static str {
        let matching = |form: &&EditForm| {
            let literal = form.usage.split(' ').zip(self.words.split([' ', '=']));
            let is_word = |word: &str| {
                !word.starts_with('[') && word.chars().all(|c| c.is_lowercase() || c == '-')
            };
            literal.take(2).all(|(form, word)| form == word || !is_word(form))
        };
        FORMS.iter().find(matching).map_or("", |form| form.about)
    }

    /// An edit of which nothing is missing.
    pub fn whole(words: String) -> EditOffer {
        EditOffer::begun(words, "")
    }

    /// The beginning of an edit, up to the missing arguments.
    pub fn begun(words: String, missing: &'static str) -> EditOffer {
        EditOffer { words, missing, end: String::new() }
    }

    fn of(edit: &Edit) -> EditOffer {
        EditOffer::whole(edit.to_string())
    }
}

/// The edits on offer for an object.
pub fn offers(world: &World, key: ObjectKey) -> Vec<EditOffer> {
    let name = NamespacedName::new(key.namespace, key.name);
    match key.kind {
        Kind::Node => world.api().node(key.name).map_or(Vec::new(), |node| of_node(node)),
        Kind::Pod => match world.api().objects().pod(name).cloned() {
            Some(pod) => of_pod(world, name, &pod),
            None => Vec::new(),
        },
        _ => vec![EditOffer::of(&Edit::Delete(key))],
    }
}

fn of_node(node: &Node) -> Vec<EditOffer> {
    let name = node.metadata.name;
    let edit = |edit| EditOffer::of(&Edit::Node(name, edit));
    let mut offers = vec![edit(match node.spec.unschedulable {
        true => NodeEdit::Uncordon,
        false => NodeEdit::Cordon,
    })];
    let taints = node.spec.taints.iter();
    offers.extend(taints.map(|taint| edit(NodeEdit::Untaint(taint.key, Some(taint.effect)))));
    offers.extend([
        EditOffer::begun(format!("taint node {name} "), "KEY[=VALUE]:EFFECT"),
        EditOffer::begun(format!("label node {name} "), "KEY=VALUE"),
        EditOffer::begun(format!("resize node {name} "), "RESOURCE=AMOUNT"),
        EditOffer::of(&Edit::AddNodes { count: 1, like: name }),
        EditOffer::begun(format!("drain node {name} "), "[force]"),
        EditOffer::of(&Edit::Lose(NodeSet::Named(name))),
    ]);
    offers
}

fn of_pod(world: &World, key: NamespacedName, pod: &Pod) -> Vec<EditOffer> {
    let edit = |edit| EditOffer::of(&Edit::Pod(key, edit));
    let mut offers = Vec::new();
    let spec = &pod.spec;
    offers.extend(spec.scheduling_gates.iter().map(|gate| edit(PodEdit::Ungate(gate.name))));
    offers.push(EditOffer::begun(format!("resize pod {key} "), "RESOURCE=AMOUNT"));
    offers.push(EditOffer::begun(format!("tolerate pod {key} "), "KEY[=VALUE][:EFFECT]|all"));
    let selected = spec.node_selector.iter().flat_map(|labels| labels.keys());
    offers.extend(selected.map(|label| edit(PodEdit::Unselect(label))));
    offers.extend(required_terms(pod).into_iter().map(|term| edit(PodEdit::Relax(term))));
    let mut keys: Vec<Symbol> =
        spec.topology_spread_constraints.iter().map(|one| one.topology_key).collect();
    keys.dedup();
    offers.extend(keys.into_iter().map(|key| edit(PodEdit::Unspread(key))));
    offers.extend(host_ports(pod).into_iter().map(|port| edit(PodEdit::Unport(port))));
    offers.push(EditOffer::begun(format!("priority pod {key} "), "NUMBER"));
    offers.push(EditOffer::begun(format!("label pod {key} "), "KEY=VALUE"));
    if let Some((kind, name)) = workload_of(world.api().objects(), pod)
        && WorkloadKind::by_name(&kind).is_some()
    {
        let words = format!("rollout {} {}/{name} ", kind.to_lowercase(), key.namespace);
        offers.push(EditOffer::begun(words, "[CONTAINER] [image=IMAGE] [RESOURCE=AMOUNT]"));
    }
    if spec.node_name.is_empty() {
        offers.extend(of_pending(world, key));
    }
    let object = ObjectKey { kind: Kind::Pod, namespace: key.namespace, name: key.name };
    offers.push(EditOffer::of(&Edit::Delete(object)));
    offers
}

fn of_pending(world: &World, key: NamespacedName) -> Vec<EditOffer> {
    let mut offers = Vec::new();
    match world.scheduler().queue().queue_of(key) {
        QueueName::Unschedulable => {
            offers
                .extend([EditOffer::of(&Edit::Activate(key)), EditOffer::of(&Edit::Requeue(key))]);
        }
        QueueName::Backoff => offers.push(EditOffer::of(&Edit::Activate(key))),
        _ => {}
    }
    let of_pod = |words: String, missing| {
        let end = format!(" for pod {key}");
        EditOffer { end, ..EditOffer::begun(words, missing) }
    };
    let decisions = ["choose", "force", "veto"].map(|verb| of_pod(format!("{verb} node "), "NAME"));
    offers.extend(decisions);
    offers.push(EditOffer::begun(format!("fail bind for pod {key}"), "[always]"));
    offers.push(of_pod("fail plugin ".into(), "PLUGIN at POINT"));
    offers.push(EditOffer::begun("fail extender ".into(), "URL"));
    offers
}

/// The required terms of a pod's affinity.
fn required_terms(pod: &Pod) -> Vec<TermRef> {
    let Some(affinity) = pod.spec.affinity.as_deref() else { return Vec::new() };
    let node = affinity.node_affinity.as_ref();
    let required =
        node.and_then(|node| node.required_during_scheduling_ignored_during_execution.as_ref());
    let towards = affinity.pod_affinity.as_ref();
    let away = affinity.pod_anti_affinity.as_ref();
    let counts = [
        (TermList::NodeRequired, required.map(|list| list.node_selector_terms.len())),
        (
            TermList::PodRequired,
            towards.map(|pod| pod.required_during_scheduling_ignored_during_execution.len()),
        ),
        (
            TermList::AntiRequired,
            away.map(|pod| pod.required_during_scheduling_ignored_during_execution.len()),
        ),
    ];
    let terms = counts.into_iter().flat_map(|(list, count)| {
        (0..count.unwrap_or(0)).map(move |index| TermRef { list, index, expression: None })
    });
    terms.collect()
}

fn host_ports(pod: &Pod) -> Vec<HostPort> {
    let ports = pod.spec.containers.iter().flat_map(|container| &container.ports);
    let taken = ports.filter(|port| port.host_port != 0);
    taken
        .map(|port| HostPort {
            port: port.host_port,
            protocol: if port.protocol.is_unset() {
                kubestep_api::Protocol::Tcp
            } else {
                port.protocol
            },
            ip: port.host_ip,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::tests::{bound, container, world};

    fn words(world: &World, kind: Kind, namespace: &str, name: &str) -> Vec<String> {
        let key = ObjectKey { kind, namespace: namespace.into(), name: name.into() };
        offers(world, key).iter().map(EditOffer::label).collect()
    }

    #[test]
    fn what_is_offered_can_be_done() {
        for story in kubestep_source::fixtures::STORIES {
            let mut world = world(story.cluster);
            world.run(20);
            let nodes =
                world.api().nodes().map(|node| (Kind::Node, Symbol::EMPTY, node.metadata.name));
            let pods =
                world.api().objects().pods.keys().map(|key| (Kind::Pod, key.namespace, key.name));
            for (kind, namespace, name) in nodes.chain(pods).collect::<Vec<_>>() {
                let key = ObjectKey { kind, namespace, name };
                for offer in offers(&world, key) {
                    if offer.missing.is_empty() {
                        let edit: Edit = offer.words.parse().unwrap();
                        let done = edit.apply(&mut world.clone());
                        assert!(done.is_ok(), "{}: {done:?}", offer.words);
                    }
                }
            }
        }
    }

    #[test]
    fn each_offer_says_what_it_does() {
        let offer = |words: &str, missing| EditOffer::begun(words.into(), missing);
        assert_eq!(offer("uncordon node a", "").about(), "make it schedulable again");
        let fault = offer("fail plugin ", "PLUGIN at POINT [for pod NAME] [always]");
        assert_eq!(
            (fault.about(), fault.label()),
            (
                "make a plugin return an error",
                "fail plugin PLUGIN at POINT [for pod NAME] [always]".into()
            )
        );
        let bind = offer("fail bind for pod default/p", "[always]");
        assert_eq!(bind.label(), "fail bind for pod default/p [always]");
        assert_eq!(offer("weight NodeAffinity=", "NUMBER").about(), "set a score plugin's weight");
        assert_eq!(
            offer("resize pod default/p ", "A").about(),
            "set what a pod, or one container, requests"
        );
        for story in kubestep_source::fixtures::STORIES {
            let world = world(story.cluster);
            for pod in world.api().objects().pods.keys() {
                let key = ObjectKey { kind: Kind::Pod, namespace: pod.namespace, name: pod.name };
                let silent = offers(&world, key).into_iter().find(|offer| offer.about().is_empty());
                assert_eq!(silent, None);
            }
        }
    }

    #[test]
    fn offers_follow_the_object() {
        let text = "{kind: Node, metadata: {name: a}, spec: {unschedulable: true, taints: [{key: k, \
                    effect: NoExecute}]}}\n---\n{kind: Pod, metadata: {name: p}, spec: \
                    {schedulingGates: [{name: g}], nodeSelector: {disk: ssd}, containers: [{name: c, \
                    ports: [{hostPort: 80}]}], affinity: {podAntiAffinity: \
                    {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: z}]}}}}\n";
        let world = world(&(text.to_owned() + &bound("q", "a", &container(""))));
        let node = words(&world, Kind::Node, "", "a");
        assert_eq!(node[..2], ["uncordon node a", "untaint node a k:NoExecute"]);
        let pod = words(&world, Kind::Pod, "default", "p");
        for expected in [
            "ungate pod default/p g",
            "unselect pod default/p disk",
            "relax pod default/p podAntiAffinity.required[0]",
            "unport pod default/p 80/TCP",
            "resize pod default/p RESOURCE=AMOUNT",
            "delete pod default/p",
            "choose node NAME for pod default/p",
            "fail plugin PLUGIN at POINT for pod default/p",
        ] {
            assert!(pod.iter().any(|words| words == expected), "{expected}: {pod:?}");
        }
        let bound = words(&world, Kind::Pod, "default", "q");
        assert!(!bound.iter().any(|words| words.starts_with("veto") || words.starts_with("fail")));
        assert_eq!(words(&world, Kind::Pod, "default", "none"), [""; 0]);
    }
}
