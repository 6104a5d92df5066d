//! Repeated events are counted in a series: the first one is created, the second turns it into a
//! series, further ones only increase the count until the series ends. Upstream: client-go
//! `tools/events/event_broadcaster.go`.

use std::collections::HashMap;

use kubestep_api::intern::Symbol;
use kubestep_api::{Name, ResourceVersion, Time, Uid};
use kubestep_framework::host::{ApiEvent, RelatedObject};
use kubestep_framework::pod::NamespacedName;

/// A series without events for this long has ended, in microseconds.
const FINISH: i64 = 6 * 60 * 1_000_000;

/// The fields in which repeated events are equal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct SeriesKey {
    kind: &'static str,
    action: &'static str,
    reason: &'static str,
    reporter: Symbol,
    regarding: (NamespacedName, Uid, ResourceVersion),
    related: Option<RelatedObject>,
}

/// An event as it is written.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ReportedEvent {
    /// The name of the event object.
    pub name: String,
    /// What the event says, and about which pod.
    pub event: ApiEvent,
    /// The version of the pod that it is about.
    pub version: ResourceVersion,
    /// When it first occurred.
    pub since: Time,
    /// Count and last time; `None` if it occurred once.
    pub series: Option<(u32, Time)>,
}

/// The events of the last minutes.
#[derive(Default)]
pub(super) struct SeriesTracker {
    reported: HashMap<SeriesKey, ReportedEvent>,
}

impl SeriesTracker {
    /// Adds an event. Returns what is to be written: a new event, or one that became a series.
    pub fn take(
        &mut self,
        event: ApiEvent,
        version: ResourceVersion,
        now: Time,
    ) -> Option<ReportedEvent> {
        let same = SeriesKey {
            kind: event.kind,
            action: event.action,
            reason: event.reason,
            reporter: event.reporter,
            regarding: (event.regarding, event.uid, version),
            related: event.related,
        };
        if let Some(reported) = self.reported.get_mut(&same) {
            if let Some((count, last)) = &mut reported.series {
                (*count, *last) = (*count + 1, now);
                return None;
            }
            reported.series = Some((2, now));
            return Some(reported.clone());
        }
        let name = name_of(event.regarding.name, now);
        let reported = ReportedEvent { name, event, version, since: now, series: None };
        self.reported.insert(same, reported.clone());
        Some(reported)
    }

    /// Removes the series that ended. Returns them, to be written with their final count.
    pub fn finish(&mut self, now: Time) -> Vec<ReportedEvent> {
        let quiet = |reported: &ReportedEvent| {
            let last = reported.series.map_or(reported.since, |(_, last)| last);
            last.0 < now.0 - FINISH
        };
        let ended =
            self.reported.extract_if(|_, reported| quiet(reported)).map(|(_, reported)| reported);
        ended.filter(|reported| reported.series.is_some()).collect()
    }
}

/// The name of an event: the pod's name and the time, as client-go forms it.
fn name_of(pod: Name, now: Time) -> String {
    /// The longest name that the API allows.
    const LONGEST: usize = 253;
    let time = format!(".{:x}", now.0.saturating_mul(1_000));
    let room = LONGEST - time.len();
    let pod: String = pod.text().chars().take(room).collect();
    format!("{pod}{time}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(note: &str) -> ApiEvent {
        ApiEvent {
            regarding: NamespacedName::new("d".into(), "p".into()),
            uid: "1".into(),
            related: None,
            reporter: "default-scheduler".into(),
            kind: "Warning",
            reason: "FailedScheduling",
            action: "Scheduling",
            note: note.into(),
        }
    }

    #[test]
    fn the_second_makes_a_series_that_is_written_again_when_it_ends() {
        let mut series = SeriesTracker::default();
        let mut take = |at, version: &str| series.take(event("no"), version.into(), Time(at));
        assert_eq!(take(0, "5").unwrap().series, None);
        assert_eq!(take(1, "5").unwrap().series, Some((2, Time(1))));
        assert_eq!(take(2, "5"), None);
        assert_eq!(take(3, "6").unwrap().series, None);
        assert_eq!(series.finish(Time(FINISH)), []);
        let ended = series.finish(Time(FINISH + 4));
        assert_eq!(ended.len(), 1);
        assert_eq!(ended[0].series, Some((3, Time(2))));
        assert!(series.reported.is_empty());
    }

    #[test]
    fn names_are_unique_and_not_too_long() {
        assert_eq!(name_of("web".into(), Time(255)), "web.3e418");
        let long = "x".repeat(253);
        assert_eq!(name_of(long.as_str().into(), Time(255)).len(), 253);
    }
}
