//! Follows the pods of the cluster: which exist, and when each got its node.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hashbrown::HashMap;
use serde_json::Value;
use tokio::time::sleep;

use crate::failure::RequestFailure;
use crate::lines::NextLine;
use crate::link::{KubeconfigTarget, Link, LinkError};
use crate::runtime::StartReport;
use kubestep_bench::measure::Measurement;
use kubestep_bench::target::{PodCounts, PodFilter};

const PODS: &str = "/api/v1/pods";
/// How long a watch may be silent before its connection counts as broken; bookmarks come each
/// minute.
const SILENCE: Duration = Duration::from_secs(150);
/// The pause before pods are listed again.
const PAUSE: Duration = Duration::from_millis(500);

/// The pods as far as the watch has reported them; shared with the thread that watches.
#[derive(Clone, Default)]
pub(super) struct SeenPods(Arc<Mutex<WatchedPods>>);

#[derive(Default)]
struct WatchedPods {
    pods: HashMap<(String, String), SeenPod>,
    /// Each pod that got a node: when, after how long, and what the pod is.
    scheduled: Vec<Scheduled>,
}

#[derive(Clone, Default)]
struct SeenPod {
    labels: Value,
    /// Nanoseconds on the clock of the benchmark.
    created: u64,
    is_scheduled: bool,
    /// What its condition about scheduling says.
    condition: Option<String>,
}

struct Scheduled {
    at: u64,
    /// How long after its creation.
    after: u64,
    namespace: String,
    labels: Value,
}

fn takes(which: &PodFilter, namespace: &str, labels: &Value) -> bool {
    which.namespaces.iter().any(|name| name == namespace)
        && which.labels.iter().all(|(key, value)| labels[key] == value.as_str())
}

impl SeenPods {
    fn lock(&self) -> MutexGuard<'_, WatchedPods> {
        // A change of a pod is never half done, so a poisoned lock is still valid.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn count(&self) -> usize {
        self.lock().pods.len()
    }

    pub fn names(&self, which: &PodFilter) -> Vec<String> {
        let seen = self.lock();
        let meant = |((namespace, _), pod): &(&(String, String), &SeenPod)| {
            takes(which, namespace, &pod.labels)
        };
        seen.pods.iter().filter(meant).map(|((_, name), _)| name.clone()).collect()
    }

    pub fn counts(&self, which: &PodFilter) -> PodCounts {
        let mut counts = PodCounts::default();
        for ((namespace, name), pod) in &self.lock().pods {
            if !takes(which, namespace, &pod.labels) {
                continue;
            }
            match (pod.is_scheduled, &pod.condition) {
                (true, _) => counts.scheduled += 1,
                (false, Some(condition)) => {
                    counts.attempted += 1;
                    counts.pending = Some(format!("pod {namespace}/{name}: {condition}"));
                }
                (false, None) => {
                    counts.unattempted += 1;
                    let words = || format!("pod {namespace}/{name} was not tried");
                    counts.pending.get_or_insert_with(words);
                }
            }
        }
        counts
    }

    /// What was measured of some pods since `begin`.
    pub fn measured(&self, which: &PodFilter, begin: u64) -> Measurement {
        let mut measured = Measurement::default();
        for pod in &self.lock().scheduled {
            if pod.at >= begin && takes(which, &pod.namespace, &pod.labels) {
                measured.scheduled.push(pod.at);
                measured.pods.add(pod.after);
            }
        }
        measured
    }

    fn put(&self, pod: &Value, now: u64) {
        let Some(key) = key(pod) else { return };
        let mut seen = self.lock();
        let WatchedPods { pods, scheduled } = &mut *seen;
        let known =
            pods.entry(key).or_insert_with(|| SeenPod { created: now, ..SeenPod::default() });
        known.labels = pod["metadata"]["labels"].clone();
        known.condition = condition(pod);
        let has_node = pod["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
        if has_node && !known.is_scheduled {
            let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
            let (after, labels) = (now - known.created, known.labels.clone());
            scheduled.push(Scheduled { at: now, after, namespace, labels });
        }
        known.is_scheduled = has_node;
    }

    fn remove(&self, pod: &Value) {
        if let Some(key) = key(pod) {
            self.lock().pods.remove(&key);
        }
    }

    /// Takes over a whole list.
    fn replace(&self, items: &[Value], now: u64) {
        let keys: Vec<_> = items.iter().filter_map(key).collect();
        self.lock().pods.retain(|key, _| keys.contains(key));
        items.iter().for_each(|pod| self.put(pod, now));
    }
}

fn key(pod: &Value) -> Option<(String, String)> {
    let metadata = &pod["metadata"];
    Some((metadata["namespace"].as_str()?.to_owned(), metadata["name"].as_str()?.to_owned()))
}

/// What the condition about scheduling says, once there is one.
fn condition(pod: &Value) -> Option<String> {
    let conditions = pod["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == "PodScheduled")?;
    Some(found["message"].as_str().unwrap_or_default().to_owned())
}

/// The thread that follows all pods, and notes when each was scheduled.
pub(super) struct Watching {
    seen: SeenPods,
    begun: Instant,
}

impl Watching {
    pub fn new(seen: SeenPods, begun: Instant) -> Watching {
        Watching { seen, begun }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Follows until the program ends; reports once the first list is there.
    pub async fn run(self, target: KubeconfigTarget, opened: StartReport<()>) {
        let link = match Link::new(target).await {
            Ok(link) => link,
            Err(error) => return drop(opened.send(Err(error))),
        };
        let first = self.list(&link).await;
        let unreachable =
            |failure| LinkError::Unreachable { server: link.server().into(), failure };
        let mut version = match first {
            Ok(version) => version,
            Err(failure) => return drop(opened.send(Err(unreachable(failure)))),
        };
        let _sent = opened.send(Ok(()));
        loop {
            if self.follow(&link, &version).await.is_err() {
                sleep(PAUSE).await;
            }
            // Whatever ended the watch: a new list has everything that was missed.
            match self.list(&link).await {
                Ok(newer) => version = newer,
                Err(_) => sleep(PAUSE).await,
            }
        }
    }

    /// Lists all pods; returns the version of the list.
    async fn list(&self, link: &Link) -> Result<String, RequestFailure> {
        let list = link.get(PODS).await?;
        let list: Value = serde_json::from_slice(&list)
            .map_err(|error| RequestFailure::Malformed(error.to_string()))?;
        let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        self.seen.replace(items, self.now());
        Ok(list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned())
    }

    async fn follow(&self, link: &Link, version: &str) -> Result<(), RequestFailure> {
        let query = format!("{PODS}?watch=1&allowWatchBookmarks=true&resourceVersion={version}");
        let mut lines = link.lines(&query).await?;
        while let NextLine::Line(line) = lines.next(SILENCE).await? {
            let event: Value = serde_json::from_slice(line)
                .map_err(|error| RequestFailure::Malformed(error.to_string()))?;
            match event["type"].as_str() {
                Some("ADDED" | "MODIFIED") => self.seen.put(&event["object"], self.now()),
                Some("DELETED") => self.seen.remove(&event["object"]),
                Some("ERROR") => {
                    return Err(RequestFailure::of_event(&event["object"].to_string()));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_are_counted_once_when_they_get_a_node() {
        let seen = SeenPods::default();
        let pod = |name: &str, node: &str, conditions: Value| {
            json!({"metadata": {"namespace": "a", "name": name, "labels": {"type": "x"}},
                   "spec": {"nodeName": node}, "status": {"conditions": conditions}})
        };
        let refused = json!([{"type": "PodScheduled", "status": "False", "message": "no room"}]);
        seen.put(&pod("p", "", json!(null)), 10);
        seen.put(&pod("q", "", json!(null)), 20);
        seen.put(&pod("q", "", refused), 30);
        let which = PodFilter::new("a", &[("type".to_owned(), "x".to_owned())].into());
        let pending = Some("pod a/q: no room".to_owned());
        let counts = PodCounts { scheduled: 0, attempted: 1, unattempted: 1, pending };
        assert_eq!(seen.counts(&which), counts);
        seen.put(&pod("p", "n", json!(null)), 40);
        seen.put(&pod("p", "n", json!(null)), 50);
        let measured = seen.measured(&which, 15);
        assert_eq!((measured.scheduled, measured.pods.max()), (vec![40], 30));
        assert_eq!(seen.measured(&which, 45).scheduled, [0; 0]);
        seen.replace(&[pod("q", "n", json!(null))], 60);
        assert_eq!((seen.names(&which), seen.count()), (vec!["q".to_owned()], 1));
        assert_eq!(seen.names(&PodFilter::new("b", &[].into())), [""; 0]);
    }
}
