//! Which kinds are not followed now, since when and why, and when that is reported: at its
//! beginning and end, at most once a minute, and again every five minutes while it lasts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::failure::RequestFailure;
use crate::kinds::ReadKind;
use kubestep_api::{Kind, Time};

/// Shortest time between the beginnings of two reported outages.
const BETWEEN: Duration = Duration::from_secs(60);
/// How often a lasting outage is reported again.
const AGAIN: Duration = Duration::from_secs(300);
/// How many kinds a report names.
const NAMED: usize = 3;

/// A kind that waits for its next attempt.
#[derive(Clone, Debug)]
pub struct Retry {
    /// The error of the last attempt.
    pub failure: RequestFailure,
    /// The error in a word or two.
    pub reason: String,
    /// Time until the next attempt.
    pub pause: Duration,
    /// Whether it is shown; `false` for the first retry of something that worked.
    pub is_outage: bool,
}

/// What is not followed, for a status line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The kind, or how many: `pods`, `7 kinds`.
    pub what: String,
    /// Why, in a word or two.
    pub reason: String,
    /// Seconds until the next attempt.
    pub retry_in: u64,
}

/// All kinds that are not followed.
#[derive(Debug, Default)]
pub struct Outages {
    retrying: BTreeMap<String, Retrying>,
    /// Kinds that could never be read.
    refused: BTreeSet<String>,
    /// When an outage was last reported.
    reported_at: Option<Instant>,
    /// Whether the present outage was reported.
    is_reported: bool,
    relist_reported_at: Option<Instant>,
}

#[derive(Debug)]
struct Retrying {
    since: Time,
    reason: String,
    next: Instant,
    is_outage: bool,
    /// Whether no cycle may run while this kind is not followed.
    blocks: bool,
}

impl Outages {
    /// `what` waits for its next attempt. Returns the notice to report.
    pub fn retry(
        &mut self,
        (what, row): (&str, &ReadKind),
        retry: &Retry,
        (now, time): (Instant, Time),
    ) -> Option<String> {
        let since = self.retrying.get(what).map_or(time, |before| before.since);
        let retrying = Retrying {
            since,
            reason: retry.reason.clone(),
            next: now + retry.pause,
            is_outage: retry.is_outage,
            blocks: blocks(row, retry),
        };
        self.retrying.insert(what.to_owned(), retrying);
        if !retry.is_outage || !self.is_due(now) {
            return None;
        }
        let (names, failure) = (self.names(what), &retry.failure);
        let lasting = match (time.0 - since.0) / 1_000_000 {
            ..=0 => String::new(),
            seconds @ 1..120 => format!(" for {seconds}s"),
            seconds => format!(" for {}m", seconds / 60),
        };
        let retry = match seconds_up(retry.pause) {
            0 => "retrying".to_owned(),
            seconds => format!("retry in {seconds}s"),
        };
        Some(format!("{names} not followed{lasting}: {failure}; {retry}"))
    }

    /// `what` was missing from the beginning, which was reported already.
    pub fn missing(
        &mut self,
        (what, row): (&str, &ReadKind),
        failure: &RequestFailure,
        (now, time): (Instant, Time),
    ) {
        if !failure.may_pass() {
            self.refused.insert(what.to_owned());
            return;
        }
        (self.is_reported, self.reported_at) = (true, Some(now));
        let (failure, reason) = (failure.clone(), failure.short());
        let retry = Retry { failure, reason, pause: Duration::ZERO, is_outage: true };
        // No report is due yet.
        let _reported = self.retry((what, row), &retry, (now, time));
    }

    /// `what` may not be read. Returns whether that is new.
    pub fn refuse(&mut self, what: &str) -> bool {
        self.refused.insert(what.to_owned())
    }

    /// `what` was listed. Returns whether it could not be read before.
    pub fn allow(&mut self, what: &str) -> bool {
        self.refused.remove(what)
    }

    /// The watch of `what` was accepted, which ends the outage if the watch had only just ended.
    pub fn begun(&mut self, what: &str) {
        if self.retrying.get(what).is_some_and(|retrying| !retrying.is_outage) {
            self.retrying.remove(what);
        }
    }

    /// The watch of `what` works. Returns whether that ends a reported outage.
    pub fn followed(&mut self, what: &str) -> bool {
        self.retrying.remove(what);
        let is_over = self.is_reported && self.lost().next().is_none();
        self.is_reported &= !is_over;
        is_over
    }

    /// A kind is listed again because its version has expired. Returns whether to report it: after
    /// a restart a server forgets all versions at once.
    pub(crate) fn relist(&mut self, now: Instant) -> bool {
        let is_due = self.relist_reported_at.is_none_or(|at| now - at >= BETWEEN);
        if is_due {
            self.relist_reported_at = Some(now);
        }
        is_due
    }

    /// Whether a kind that decisions depend on cannot be followed.
    pub fn is_cut_off(&self) -> bool {
        self.retrying.values().any(|retrying| retrying.blocks)
    }

    /// What is not followed. The reason is that of the kind that is tried next.
    pub fn outage(&self, now: Instant) -> Option<Outage> {
        let next = self.lost().min_by_key(|(_, retrying)| retrying.next)?;
        let what = match self.lost().count() {
            1 => next.0.clone(),
            count => format!("{count} kinds"),
        };
        let retry_in = seconds_up(next.1.next.saturating_duration_since(now));
        Some(Outage { what, reason: next.1.reason.clone(), retry_in })
    }

    fn lost(&self) -> impl Iterator<Item = (&String, &Retrying)> {
        self.retrying.iter().filter(|(_, retrying)| retrying.is_outage)
    }

    fn is_due(&mut self, now: Instant) -> bool {
        let between = if self.is_reported { AGAIN } else { BETWEEN };
        let is_due = self.reported_at.is_none_or(|at| now - at >= between);
        if is_due {
            (self.is_reported, self.reported_at) = (true, Some(now));
        }
        is_due
    }

    /// `pods`, `pods, nodes and 7 more`.
    fn names(&self, first: &str) -> String {
        let others = self.lost().map(|(what, _)| what.as_str()).filter(|what| *what != first);
        let mut names: Vec<&str> = std::iter::once(first).chain(others).collect();
        let more = names.split_off(names.len().min(NAMED)).len();
        let names = names.join(", ");
        if more > 0 { format!("{names} and {more} more") } else { names }
    }
}

/// Whether decisions have to wait for this kind. A right that was withdrawn may never come back, so
/// it blocks only for nodes and pods, without which there is nothing to decide.
fn blocks(row: &ReadKind, retry: &Retry) -> bool {
    match retry.failure {
        RequestFailure::Refused(_) | RequestFailure::Absent(_) => {
            retry.is_outage && matches!(row.kind, Kind::Node | Kind::Pod)
        }
        RequestFailure::Ended | RequestFailure::Expired(_) => retry.is_outage,
        _ => true,
    }
}

fn seconds_up(pause: Duration) -> u64 {
    pause.as_millis().div_ceil(1_000).try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;

    struct Story {
        outages: Outages,
        start: Instant,
    }

    impl Story {
        fn new() -> Story {
            Story { outages: Outages::default(), start: Instant::now() }
        }

        fn at(&self, seconds: u64) -> Instant {
            self.start + Duration::from_secs(seconds)
        }

        /// Lets a kind fail at `second`, with the next attempt four seconds later.
        fn fail(&mut self, second: u64, kind: Kind, failure: &RequestFailure) -> Option<String> {
            self.retry(second, kind, failure, true)
        }

        fn retry(
            &mut self,
            second: u64,
            kind: Kind,
            failure: &RequestFailure,
            is_outage: bool,
        ) -> Option<String> {
            let pause = Duration::from_millis(3_200);
            let (reason, failure) = (failure.short(), failure.clone());
            let retry = Retry { failure, reason, pause, is_outage };
            let (now, time) = (self.at(second), Time(second as i64 * 1_000_000));
            self.outages.retry((kind.plural(), kinds::row(kind).unwrap()), &retry, (now, time))
        }
    }

    fn words(outage: Option<Outage>) -> String {
        outage.map_or_else(String::new, |Outage { what, reason, retry_in }| {
            format!("{what} {reason} {retry_in}")
        })
    }

    #[test]
    fn an_outage_is_reported_at_its_beginning_and_end_and_every_five_minutes() {
        let mut story = Story::new();
        let down = RequestFailure::Unreachable("connection refused".into());
        let said = "pods not followed: connection refused; retry in 4s";
        assert_eq!(story.fail(0, Kind::Pod, &down).as_deref(), Some(said));
        let kinds = [Kind::Node, Kind::Service, Kind::CsiNode];
        assert!(kinds.iter().all(|kind| story.fail(1, *kind, &down).is_none()));
        assert!((10..300).all(|second| story.fail(second, Kind::Pod, &down).is_none()));
        let again = story.fail(300, Kind::Pod, &down).unwrap();
        let expected = "pods, csinodes, nodes and 1 more not followed for 5m: ";
        assert!(again.starts_with(expected), "{again}");
        assert!(!story.outages.followed("pods"));
        assert!(!story.outages.followed("services"));
        assert!(!story.outages.followed("nodes"));
        assert!(story.outages.followed("csinodes"));
        assert!(!story.outages.followed("csinodes"));
    }

    #[test]
    fn a_connection_that_comes_and_goes_is_reported_once_a_minute() {
        let mut story = Story::new();
        let mut reports = 0;
        for second in 0..600 {
            reports += usize::from(story.fail(second, Kind::Pod, &RequestFailure::Ended).is_some());
            reports += usize::from(story.outages.followed("pods"));
        }
        assert_eq!(reports, 20);
    }

    #[test]
    fn the_status_line_has_the_next_attempt() {
        let mut story = Story::new();
        assert_eq!(story.outages.outage(story.start), None);
        story.fail(0, Kind::Pod, &RequestFailure::Expired(String::new()));
        assert_eq!(words(story.outages.outage(story.at(0))), "pods 410 4");
        assert_eq!(words(story.outages.outage(story.at(2))), "pods 410 2");
        assert_eq!(words(story.outages.outage(story.at(9))), "pods 410 0");
        story.fail(
            1,
            Kind::Node,
            &RequestFailure::Server { code: 500, message: String::new(), after: None },
        );
        assert_eq!(words(story.outages.outage(story.at(1))), "2 kinds 410 3");
        story.outages.followed("pods");
        assert_eq!(words(story.outages.outage(story.at(1))), "nodes 500 4");
        story.outages.followed("nodes");
        assert_eq!(story.outages.outage(story.at(1)), None);
    }

    #[test]
    fn the_first_retry_is_not_shown_but_nothing_is_decided_without_a_connection() {
        let mut story = Story::new();
        let down = RequestFailure::Unreachable(String::new());
        assert_eq!(story.retry(0, Kind::Pod, &down, false), None);
        assert_eq!(story.outages.outage(story.start), None);
        assert!(story.outages.is_cut_off());
        story.outages.begun("pods");
        assert!(!story.outages.is_cut_off());
        story.fail(1, Kind::Pod, &down);
        story.outages.begun("pods");
        assert!(story.outages.is_cut_off(), "only a watch that works ends an outage");
    }

    #[test]
    fn rights_that_were_withdrawn_stop_decisions_only_without_nodes_and_pods() {
        let refused = RequestFailure::Refused(String::new());
        for (kind, stops) in [(Kind::Pod, true), (Kind::Node, true), (Kind::CsiNode, false)] {
            let mut story = Story::new();
            story.fail(0, kind, &refused);
            assert_eq!(story.outages.is_cut_off(), stops, "{kind}");
            assert!(story.outages.outage(story.start).is_some());
        }
    }

    #[test]
    fn what_was_missing_at_the_start_is_not_reported_twice() {
        let mut story = Story::new();
        let row = |kind| kinds::row(kind).unwrap();
        let busy = RequestFailure::Busy { after: None, message: String::new() };
        let (refused, at) = (RequestFailure::Refused(String::new()), (story.start, Time(0)));
        story.outages.missing(("pods", row(Kind::Pod)), &busy, at);
        story.outages.missing(("csinodes", row(Kind::CsiNode)), &refused, at);
        assert_eq!(words(story.outages.outage(story.start)), "pods 429 0");
        assert_eq!(story.fail(1, Kind::Pod, &busy), None);
        assert!(!story.outages.refuse("csinodes"));
        assert!(story.outages.followed("pods"));
        assert!(story.outages.allow("csinodes"));
    }
}
