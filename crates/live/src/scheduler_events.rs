//! The events that a cluster's schedulers write about pods: `Scheduled`, `FailedScheduling`,
//! `Preempted`. For recordings only: no decision of the embedded scheduler depends on them.

use std::time::Instant;

use serde::Deserialize;
use tokio::time::sleep;

use crate::backoff::{Backoff, EndedStream, Pace};
use crate::failure::RequestFailure;
use crate::lines::NextLine;
use crate::link::Link;

const PATH: &str = "/api/v1/events";
/// The reasons that kube-scheduler and compatible schedulers use.
const REASONS: [&str; 4] = ["Scheduled", "FailedScheduling", "Preempted", "SchedulerError"];

/// An event of a scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerEvent {
    /// The pod it is about, `namespace/name`.
    pub pod: String,
    /// `metadata.uid` of that pod.
    pub uid: String,
    /// The component that reported it, such as `default-scheduler`.
    pub reporter: String,
    /// `Scheduled`, `FailedScheduling` and so on.
    pub reason: String,
    /// The message, for people.
    pub message: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EventLine {
    #[serde(rename = "type")]
    kind: String,
    object: EventObject,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EventObject {
    metadata: Meta,
    involved_object: Involved,
    reason: String,
    message: String,
    reporting_component: String,
    source: EventSource,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Meta {
    resource_version: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Involved {
    namespace: String,
    name: String,
    uid: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct EventSource {
    component: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct EventList {
    metadata: Meta,
}

/// Passes every event from now on to `report`. Returns the reason if events may not be read; other
/// errors are retried.
pub async fn follow(link: &Link, mut report: impl FnMut(SchedulerEvent)) -> RequestFailure {
    let pace = Pace::default();
    let mut backoff = Backoff::new(pace, "events");
    loop {
        let attempt = match from_now(link).await {
            Ok(version) => watch(link, &version, pace, &mut report).await,
            Err(failure) => EndedStream::failed(failure, true),
        };
        let pause = backoff.pause(&attempt);
        match attempt.end {
            failure @ (RequestFailure::Refused(_) | RequestFailure::Absent(_)) => return failure,
            _ => sleep(pause).await,
        }
    }
}

async fn from_now(link: &Link) -> Result<String, RequestFailure> {
    let text = link.get(&format!("{PATH}?limit=1")).await?;
    let wrong = |error: serde_json::Error| RequestFailure::Malformed(format!("{PATH}: {error}"));
    let list: EventList = serde_json::from_slice(&text).map_err(wrong)?;
    Ok(list.metadata.resource_version)
}

async fn watch(
    link: &Link,
    version: &str,
    pace: Pace,
    report: &mut impl FnMut(SchedulerEvent),
) -> EndedStream {
    let query = "watch=1&allowWatchBookmarks=true&fieldSelector=involvedObject.kind%3DPod";
    let seconds = pace.watch_seconds;
    let path = format!("{PATH}?{query}&resourceVersion={version}&timeoutSeconds={seconds}");
    let mut lines = match link.lines(&path).await {
        Ok(lines) => lines,
        Err(failure) => return EndedStream::failed(failure, true),
    };
    let (begun, mut delivered) = (Instant::now(), false);
    let end = loop {
        match lines.next(pace.idle).await {
            Ok(NextLine::Line(line)) => {
                if let Some(event) = read(line) {
                    delivered = true;
                    report(event);
                }
            }
            Ok(NextLine::Quiet | NextLine::End) => break RequestFailure::Ended,
            Err(failure) => break failure,
        }
    };
    EndedStream { lived: begun.elapsed(), delivered, was_read: true, end }
}

fn read(line: &[u8]) -> Option<SchedulerEvent> {
    let EventLine { kind, object } = serde_json::from_slice(line).ok()?;
    let is_new = matches!(kind.as_str(), "ADDED" | "MODIFIED");
    if !is_new || !REASONS.contains(&object.reason.as_str()) {
        return None;
    }
    let Involved { namespace, name, uid } = object.involved_object;
    let reporter = match object.reporting_component.as_str() {
        "" => object.source.component,
        _ => object.reporting_component,
    };
    let (reason, message) = (object.reason, object.message);
    Some(SchedulerEvent { pod: format!("{namespace}/{name}"), uid, reporter, reason, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_events_of_schedulers_are_reported() {
        let event = |kind: &str, reason: &str| {
            let text = serde_json::json!({"type": kind, "object": {
                "metadata": {"resourceVersion": "7"},
                "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "web", "uid": "u"},
                "reason": reason, "message": "m", "reportingComponent": "default-scheduler",
            }});
            read(text.to_string().as_bytes())
        };
        let added = event("ADDED", "Scheduled").unwrap();
        assert_eq!(
            (added.pod.as_str(), added.reporter.as_str()),
            ("shop/web", "default-scheduler")
        );
        assert_eq!(event("ADDED", "Pulled"), None);
        assert_eq!(event("DELETED", "Scheduled"), None);
        assert_eq!(event("BOOKMARK", ""), None);
    }
}
