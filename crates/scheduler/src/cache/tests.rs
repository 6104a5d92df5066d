//! What the cache accepts and rejects, with upstream's error texts.

use super::*;
use kubestep_framework::snapshot::Snapshot;
use kubestep_framework::testing::{PodBuilder, info, node, pod};

fn on(name: &str, node: &str) -> Arc<PodInfo> {
    info(pod(name).on(node))
}

/// How many pods the cache has on each node, including ghosts.
fn counts(cache: &Cache) -> Vec<(Name, usize)> {
    cache.nodes().map(|node| (node.name, node.pods.len())).collect()
}

#[test]
fn a_pod_is_assumed_once_also_on_a_node_that_is_not_there() {
    let mut cache = Cache::default();
    assert_eq!(cache.assume_pod(on("a", "n1")), Ok(()));
    assert_eq!(counts(&cache), [("n1".into(), 1)]);
    assert!(cache.is_assumed(on("a", "n1").uid()));
    let text = "pod default-a(default/a) is in the cache, so can't be assumed";
    assert_eq!(cache.assume_pod(on("a", "n2")).unwrap_err().to_string(), text);
    cache.add_pod(on("b", "n1"));
    let text = "pod default-b(default/b) is in the cache, so can't be assumed";
    assert_eq!(cache.assume_pod(on("b", "n1")).unwrap_err().to_string(), text);
}

#[test]
fn only_an_assumed_pod_is_forgotten_and_only_where_it_is() {
    let mut cache = Cache::default();
    assert_eq!(cache.forget_pod(&on("a", "n1")), Ok(()), "unknown");
    cache.assume_pod(on("a", "n1")).unwrap();
    let text = "pod default-a(default/a) was assumed on n2 but assigned to n1";
    assert_eq!(cache.forget_pod(&on("a", "n2")).unwrap_err().to_string(), text);
    assert_eq!(cache.forget_pod(&on("a", "n1")), Ok(()));
    assert_eq!((counts(&cache), cache.pod_count()), (vec![], 0));
    cache.add_pod(on("b", "n1"));
    let text = "pod default-b(default/b) wasn't assumed so cannot be forgotten";
    assert_eq!(cache.forget_pod(&on("b", "n1")).unwrap_err().to_string(), text);
}

#[test]
fn a_bound_pod_confirms_or_corrects_the_assumed_one() {
    let mut cache = Cache::default();
    for name in ["n1", "n2"] {
        cache.add_node(Arc::new(node(name)));
    }
    cache.assume_pod(on("a", "n1")).unwrap();
    cache.add_pod(on("a", "n1"));
    assert!(!cache.is_assumed(on("a", "n1").uid()));
    cache.assume_pod(on("b", "n1")).unwrap();
    cache.add_pod(on("b", "n2"));
    assert_eq!(counts(&cache), [("n1".into(), 1), ("n2".into(), 1)]);
    // A pod that was already added stays on its node.
    cache.add_pod(on("b", "n1"));
    assert_eq!(counts(&cache), [("n1".into(), 1), ("n2".into(), 1)]);
}

#[test]
fn only_a_bound_pod_is_updated() {
    let mut cache = Cache::default();
    let text = "pod default-a(default/a) is not added to scheduler cache, so cannot be updated";
    assert_eq!(cache.update_pod(&pod("a"), on("a", "n1")).unwrap_err().to_string(), text);
    cache.assume_pod(on("a", "n1")).unwrap();
    let text = "assumed pod default-a(default/a) should not be updated";
    assert_eq!(cache.update_pod(&pod("a"), on("a", "n1")).unwrap_err().to_string(), text);
    cache.add_pod(on("a", "n1"));
    let larger = info(pod("a").on("n1").requests("cpu", "2"));
    assert_eq!(cache.update_pod(&pod("a"), larger), Ok(()));
    assert_eq!(cache.nodes().next().unwrap().requested.milli_cpu, 2000);
}

/// Upstream's `UpdatePod` finds the pod by the UID of the old object.
#[test]
fn a_pod_that_was_replaced_under_its_name_leaves_the_node() {
    let mut cache = Cache::default();
    cache.add_pod(on("a", "n1"));
    let mut recreated = pod("a").on("n1");
    recreated.metadata.uid = "recreated".into();
    assert_eq!(cache.update_pod(&pod("a"), info(recreated.clone())), Ok(()));
    assert_eq!((counts(&cache), cache.pod_count()), (vec![("n1".into(), 1)], 1));
    assert!(cache.pod(recreated.metadata.uid).is_some());
}

#[test]
fn a_removed_pod_is_the_one_that_was_recorded() {
    let mut cache = Cache::default();
    let removed = |cache: &mut Cache, pod: &Pod| {
        cache.remove_pod(pod).map(|pod| pod.pod.spec.node_name.to_string())
    };
    let text = "pod default-a(default/a) is not found in scheduler cache, so cannot be removed \
                from it";
    assert_eq!(removed(&mut cache, &pod("a")).unwrap_err().to_string(), text);
    cache.add_pod(on("a", "n1"));
    assert_eq!(removed(&mut cache, &pod("a")), Ok("n1".into()));
    cache.assume_pod(on("a", "n1")).unwrap();
    assert_eq!(removed(&mut cache, &pod("a").on("n1")), Ok("n1".into()));
    assert_eq!(cache.pod(on("a", "n1").uid()), None);
}

#[test]
fn the_count_of_an_image_is_that_of_when_its_node_changed() {
    let with_image = |name: &str| {
        let mut node = node(name);
        let image = kubestep_api::ContainerImage { names: vec!["app:1".into()], size_bytes: 10 };
        node.status.images = vec![image.into()];
        Arc::new(node)
    };
    let (mut cache, mut snapshot) = (Cache::default(), Snapshot::default());
    let mut counts = |cache: &mut Cache| -> Vec<u32> {
        cache.update_snapshot(&mut snapshot);
        snapshot.iter().map(|node| node.image_states[0].num_nodes).collect()
    };
    cache.add_node(with_image("n1"));
    assert_eq!(counts(&mut cache), [1]);
    cache.add_node(with_image("n2"));
    assert_eq!(counts(&mut cache), [1, 2], "n1 did not change");
    cache.add_pod(on("a", "n1"));
    assert_eq!(counts(&mut cache), [2, 2]);
}

#[test]
fn a_cluster_that_goes_on_changing_takes_no_more_slots_than_it_has_nodes() {
    let (mut cache, mut snapshot) = (Cache::default(), Snapshot::default());
    for at in 0..50 {
        let (name, orphan) = (format!("n{at}"), format!("gone{at}"));
        cache.add_node(Arc::new(node(&name)));
        cache.add_pod(on("a", &name));
        cache.update_snapshot(&mut snapshot);
        // The node is removed before its pod, and another pod never has a node.
        cache.remove_node(&node(&name)).unwrap();
        cache.add_pod(on("b", &orphan));
        cache.update_snapshot(&mut snapshot);
        assert_eq!(counts(&cache), [(name.as_str().into(), 1), (orphan.as_str().into(), 1)]);
        for pod in [pod("a").on(&name), pod("b").on(&orphan)] {
            cache.remove_pod(&pod).unwrap();
        }
        cache.update_snapshot(&mut snapshot);
        assert_eq!((counts(&cache), snapshot.slots() <= 2), (vec![], true));
    }
    assert!(cache.slots.is_empty() && cache.vanished.is_empty());
}
