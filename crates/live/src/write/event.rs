//! Events for people (events.k8s.io), written in the background; nothing waits for them. While many
//! other writes are in flight they wait for a few seconds: each is one more write for the API server,
//! which pods that wait for their bindings need more.
//!
//! Upstream: client-go `tools/events`, with its twelve attempts.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, interval, sleep, timeout_at};

use crate::clock;
use crate::failure::RequestFailure;
use crate::write::call::{BodyFormat, Calls, WriteCall};
use crate::write::series::{ReportedEvent, SeriesTracker};
use kubestep_api::{ResourceVersion, Time, Uid};
use kubestep_framework::host::{ApiEvent, RelatedObject};
use kubestep_framework::pod::NamespacedName;

/// Events written at once.
const WORKERS: usize = 8;
/// Events in the queue; further ones are dropped. Enough for [`WAITS`] at 1,000 events a second.
const QUEUE: usize = 4_000;
/// Other writes, queued or in flight, for which events wait.
const BUSY: usize = 16;
/// How long an event waits for other writes at most.
const WAITS: Duration = Duration::from_secs(3);
/// Attempts at an event while the server cannot be reached.
const TRIES: u32 = 12;
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_secs(10);
/// The API version of pod groups.
const GROUPS: &str = "scheduling.k8s.io/v1alpha2";
/// Interval of the check for series that ended.
const FINISH: Duration = Duration::from_secs(6 * 60);

/// Writes events in the background.
pub(super) struct Events {
    inbox: UnboundedSender<(ApiEvent, ResourceVersion)>,
    task: JoinHandle<()>,
}

impl Events {
    /// Writes events through `calls`. `load` is the number of other writes, queued or
    /// in flight.
    pub fn new(calls: Arc<Calls>, load: watch::Receiver<usize>) -> Events {
        let (inbox, events) = unbounded_channel();
        Events { inbox, task: tokio::spawn(write_all(calls, events, load)) }
    }

    /// Queues an event about a pod of this version.
    pub fn queue(&self, event: ApiEvent, version: ResourceVersion) {
        // The task ends with the program.
        let _sent = self.inbox.send((event, version));
    }

    /// Waits until all queued events are written.
    pub async fn finish(self) {
        drop(self.inbox);
        // A task that panicked has nothing left to write.
        let _ended = self.task.await;
    }
}

async fn write_all(
    calls: Arc<Calls>,
    mut events: UnboundedReceiver<(ApiEvent, ResourceVersion)>,
    load: watch::Receiver<usize>,
) {
    let (mut series, mut ends) = (SeriesTracker::default(), interval(FINISH));
    let (places, host) = (Arc::new(Semaphore::new(WORKERS)), hostname());
    let mut under_way = JoinSet::new();
    loop {
        let reported = tokio::select! {
            event = events.recv() => match event {
                Some((event, version)) => {
                    series.take(event, version, clock::local()).into_iter().collect()
                }
                None => break,
            },
            _ = ends.tick() => series.finish(clock::local()),
        };
        while under_way.try_join_next().is_some() {}
        for reported in reported.into_iter().take(QUEUE.saturating_sub(under_way.len())) {
            let (calls, places, host) = (calls.clone(), places.clone(), host.clone());
            let (load, queued) = (load.clone(), Instant::now());
            under_way.spawn(async move {
                let _place = places.acquire_owned().await;
                wait_for_others(load, queued + WAITS).await;
                write_event(&calls, &reported, &host).await;
            });
        }
    }
    while under_way.join_next().await.is_some() {}
}

/// Waits until few other writes are in flight, or until `end`.
async fn wait_for_others(mut load: watch::Receiver<usize>, end: Instant) {
    // After `end`, and once the writer is dropped, the event is written anyway.
    let _in_time = timeout_at(end, load.wait_for(|writes| *writes < BUSY)).await;
}

/// Writes one event, with retries while the server cannot be reached. An event that the server
/// rejects is dropped.
async fn write_event(calls: &Calls, reported: &ReportedEvent, host: &str) {
    for _ in 0..TRIES {
        let answer = match reported.series {
            None => create(calls, reported, host).await,
            Some(_) => match calls.make(&patch(reported)).await {
                Err(RequestFailure::Absent(_)) => create(calls, reported, host).await,
                answer => answer.map(drop),
            },
        };
        let again = match answer {
            Err(RequestFailure::Unreachable(_)) => true,
            // The first event of a series may not exist yet.
            Err(RequestFailure::Server { code: 409, .. }) => reported.series.is_some(),
            _ => false,
        };
        if !again || !calls.gate().is_open() {
            return;
        }
        sleep(PAUSE).await;
    }
}

async fn create(calls: &Calls, reported: &ReportedEvent, host: &str) -> Result<(), RequestFailure> {
    let path = path(reported);
    let body = event_json(reported, host);
    let call = WriteCall { method: Method::POST, path, content: BodyFormat::Json, body };
    calls.make(&call).await.map(drop)
}

fn path(reported: &ReportedEvent) -> String {
    format!("/apis/events.k8s.io/v1/namespaces/{}/events", reported.event.regarding.namespace)
}

fn patch(reported: &ReportedEvent) -> WriteCall {
    let path = format!("{}/{}", path(reported), reported.name);
    let body = json!({ "series": series_json(reported) });
    WriteCall { method: Method::PATCH, path, content: BodyFormat::StrategicPatch, body }
}

fn event_json(reported: &ReportedEvent, host: &str) -> Value {
    let event = &reported.event;
    let mut json = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": reported.name, "namespace": event.regarding.namespace},
        "eventTime": micros(reported.since),
        "reportingController": event.reporter,
        "reportingInstance": format!("{}-{host}", event.reporter),
        "action": event.action,
        "reason": event.reason,
        "type": event.kind,
        "note": event.note,
        "regarding": pod_json(event.regarding, event.uid),
    });
    json["regarding"]["resourceVersion"] = reported.version.to_string().into();
    if let Some(RelatedObject { is_group, key, uid }) = event.related {
        json["related"] = pod_json(key, uid);
        if is_group {
            json["related"]["kind"] = "PodGroup".into();
            json["related"]["apiVersion"] = GROUPS.into();
        }
    }
    if reported.series.is_some() {
        json["series"] = series_json(reported);
    }
    json
}

fn series_json(reported: &ReportedEvent) -> Value {
    match reported.series {
        Some((count, last)) => json!({"count": count, "lastObservedTime": micros(last)}),
        None => Value::Null,
    }
}

fn pod_json(pod: NamespacedName, uid: Uid) -> Value {
    let (namespace, name) = (pod.namespace, pod.name);
    json!({
        "kind": "Pod", "apiVersion": "v1", "namespace": namespace, "name": name, "uid": uid,
    })
}

/// A time with six fractional digits, which the API requires.
pub(crate) fn micros(time: Time) -> String {
    match jiff::Timestamp::from_microsecond(time.0) {
        Ok(time) => format!("{time:.6}"),
        Err(_) => String::new(),
    }
}

/// The name of this machine; in a cluster, that of the pod.
pub fn hostname() -> String {
    let set = std::env::var("HOSTNAME").ok().filter(|name| !name.is_empty());
    let read = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = set.or_else(read).unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_event_waits_for_many_other_writes_for_a_while() {
        let (load, now) = (watch::Sender::new(BUSY), Instant::now());
        wait_for_others(load.subscribe(), now).await;
        let waiting =
            tokio::spawn(wait_for_others(load.subscribe(), now + Duration::from_secs(3600)));
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished(), "its time is not over, and the others are many");
        load.send_modify(|writes| *writes -= 1);
        waiting.await.unwrap();
    }

    #[test]
    fn an_event_has_the_fields_of_the_api() {
        let pod = NamespacedName::new("d".into(), "p".into());
        let event = ApiEvent {
            regarding: pod,
            uid: "1".into(),
            related: Some(RelatedObject { is_group: true, key: pod, uid: "2".into() }),
            reporter: "s".into(),
            kind: "Normal",
            reason: "Preempted",
            action: "Preempting",
            note: "Preempted by pod 2 on node n".into(),
        };
        let since = Time(1_767_225_600_000_000);
        let mut series = SeriesTracker::default();
        series.take(event.clone(), "7".into(), since);
        let reported = series.take(event, "7".into(), Time(since.0 + 5)).unwrap();
        let json = event_json(&reported, "host");
        assert_eq!(json["eventTime"], "2026-01-01T00:00:00.000000Z");
        assert_eq!(json["reportingInstance"], "s-host");
        assert_eq!(json["regarding"]["resourceVersion"], "7");
        assert_eq!([&json["related"]["uid"], &json["related"]["kind"]], ["2", "PodGroup"]);
        let mut of_pod = reported.clone();
        of_pod.event.related = Some(RelatedObject { is_group: false, key: pod, uid: "3".into() });
        assert_eq!(event_json(&of_pod, "host")["related"], pod_json(pod, "3".into()));
        let last = "2026-01-01T00:00:00.000005Z";
        assert_eq!(json["series"], json!({"count": 2, "lastObservedTime": last}));
        assert_eq!(patch(&reported).path, format!("{}/{}", path(&reported), reported.name));
    }
}
