//! Follows one kind while its events are taken: lists it where needed, watches from there, and
//! continues after any failure of the connection.
//!
//! Three invariants keep the reported state true: the version of the newest event is remembered,
//! from which a watch continues; the version of every object is remembered, so that a list after
//! `410 Gone` reports only the difference; and a line counts only once it is complete.

use std::time::{Duration, Instant};

use hashbrown::{HashMap, HashSet};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::sleep;

use crate::backoff::{Backoff, EndedStream, Pace};
use crate::failure::RequestFailure;
use crate::feed::{Delta, FeedSender};
use crate::kinds::ReadKind;
use crate::lines::{Lines, NextLine};
use crate::link::Link;
use crate::list::{ListScope, Listed, read};
use crate::outage::Retry;
use kubestep_api::intern::Symbol;
use kubestep_api::{Name, ResourceVersion};
use kubestep_framework::pod::NamespacedName;

/// A line that takes longer than this to complete is shown as an outage.
const SLOW: Duration = Duration::from_secs(5);
/// How many unreadable objects are remembered, so that each is reported once.
const UNREADABLE: usize = 1_000;

/// Lists and watches one kind, and reports each change once.
pub(super) struct Watcher {
    place: ListScope,
    /// `pods`, `pods in shop`.
    what: String,
    /// The API version that the server serves; empty until the first list.
    version: &'static str,
    /// The version to continue from; empty if a list is needed.
    resource_version: String,
    /// Every object that was reported, with its version.
    known: HashMap<NamespacedName, ResourceVersion>,
    /// Unreadable objects that were reported.
    unreadable: HashSet<String>,
    sender: FeedSender,
    pace: Pace,
    backoff: Backoff,
}

#[derive(Deserialize)]
struct WatchLine<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// The metadata of every object.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ObjectHeader {
    metadata: HeaderMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HeaderMeta {
    name: Name,
    namespace: Symbol,
    resource_version: String,
}

impl Watcher {
    /// Continues after a list that was reported already.
    pub fn after(place: ListScope, listed: &Listed, sender: FeedSender, pace: Pace) -> Watcher {
        let version = |object: &kubestep_api::Object| {
            (NamespacedName::of(object), object.metadata().resource_version)
        };
        let what = place.what();
        Watcher {
            place,
            version: listed.version,
            resource_version: listed.resource_version.clone(),
            known: listed.objects.iter().map(version).collect(),
            unreadable: listed.unreadable.iter().cloned().collect(),
            sender,
            pace,
            backoff: Backoff::new(pace, &what),
            what,
        }
    }

    /// Starts with a list, as soon as the server allows it.
    pub fn unlisted(place: ListScope, sender: FeedSender, pace: Pace) -> Watcher {
        Watcher::after(place, &Listed::default(), sender, pace)
    }

    /// Follows until the receiver of the events is dropped.
    pub async fn run(mut self, link: &Link) {
        while !self.sender.is_closed() {
            // A list alone is no progress: only the watch after it is.
            let ended = match self.resource_version.is_empty() {
                true => self.list(link).await.err(),
                false => Some(self.watch(link).await),
            };
            if let Some(attempt) = ended {
                let pause = self.ended(attempt);
                sleep(pause).await;
            }
        }
    }

    /// Reports the end of an attempt. Returns how long to wait.
    fn ended(&mut self, attempt: EndedStream) -> Duration {
        let pause = self.backoff.pause(&attempt);
        let EndedStream { end: failure, was_read, .. } = attempt;
        if matches!(failure, RequestFailure::Expired(_)) {
            self.resource_version.clear();
            self.sender.relisting(&self.what);
        }
        match failure.may_pass() || was_read {
            _ if pause.is_zero() => {}
            true => {
                let (reason, is_outage) = (failure.short(), self.backoff.is_outage(pause));
                self.retrying(Retry { failure, reason, pause, is_outage });
            }
            false => self.sender.refused((&self.what, self.row()), &failure),
        }
        pause
    }

    fn retrying(&self, retry: Retry) {
        self.sender.retrying((&self.what, self.row()), &retry);
    }

    fn row(&self) -> &'static ReadKind {
        self.place.row
    }

    /// Lists and reports the differences.
    async fn list(&mut self, link: &Link) -> Result<(), EndedStream> {
        let was_read = !self.version.is_empty();
        let backoff = &mut self.backoff;
        let answer = match self.version {
            "" => self.place.list(link, backoff, 1).await,
            version => self.place.list_in(link, version, backoff, 1).await,
        };
        let listed = answer.map_err(|failure| EndedStream::failed(failure, was_read))?;
        self.version = listed.version;
        self.resource_version = listed.resource_version;
        let mut deleted = std::mem::take(&mut self.known);
        let mut changed = Vec::new();
        for object in listed.objects {
            let (key, version) = (NamespacedName::of(&object), object.metadata().resource_version);
            self.known.insert(key, version);
            if deleted.remove(&key) != Some(version) {
                changed.push(object);
            }
        }
        // Sorted, because the order of a hash map is random.
        let mut deleted: Vec<NamespacedName> = deleted.into_keys().collect();
        deleted.sort_unstable();
        let kind = self.row().kind;
        deleted.into_iter().for_each(|key| self.sender.delta(Delta::Delete { kind, key }));
        changed.into_iter().for_each(|object| self.sender.delta(Delta::Put(object)));
        listed.unreadable.into_iter().for_each(|problem| self.left_out(problem));
        self.sender.listed(&self.what);
        Ok(())
    }

    /// Watches until the watch ends.
    async fn watch(&mut self, link: &Link) -> EndedStream {
        let row = self.row();
        let query = row.query(self.version, self.place.namespace.as_deref());
        let (from, seconds) = (&self.resource_version, self.pace.watch_seconds);
        let path = format!(
            "{query}watch=1&allowWatchBookmarks=true&resourceVersion={from}&timeoutSeconds={seconds}"
        );
        let mut lines = match link.lines(&path).await {
            Ok(lines) => lines,
            Err(failure) => return EndedStream::failed(failure, true),
        };
        self.sender.begun(&self.what);
        let (begun, mut delivered) = (Instant::now(), false);
        let end = self.follow(&mut lines, &mut delivered).await;
        let end = end.err().unwrap_or(RequestFailure::Ended);
        EndedStream { lived: begun.elapsed(), delivered, was_read: true, end }
    }

    /// Reads the lines of a watch until the server ends it or nothing has arrived for too long.
    async fn follow(
        &mut self,
        lines: &mut Lines,
        delivered: &mut bool,
    ) -> Result<(), RequestFailure> {
        let begun = Instant::now();
        // After the start and after a slow line, the watch has to prove that it works.
        let mut is_followed = false;
        while !self.sender.is_closed() && lines.silence() < self.pace.idle {
            let is_new = match lines.next(self.pace.lived).await? {
                NextLine::Line(line) => self.take(line)?,
                NextLine::Quiet => false,
                NextLine::End => break,
            };
            *delivered |= is_new;
            let unfinished = lines.unfinished().unwrap_or_default();
            if unfinished >= SLOW {
                self.stalled(unfinished)?;
                is_followed = false;
            } else if !is_followed && (is_new || self.works(begun, unfinished)) {
                is_followed = true;
                self.sender.followed(&self.what);
            }
        }
        Ok(())
    }

    /// Whether a watch that has delivered nothing works: it has been open for a while, and is not
    /// within a line.
    fn works(&self, begun: Instant, unfinished: Duration) -> bool {
        begun.elapsed() >= self.pace.lived && unfinished.is_zero()
    }

    /// Fails if the present line has been incomplete for too long.
    fn stalled(&self, unfinished: Duration) -> Result<(), RequestFailure> {
        let idle = self.pace.idle;
        if unfinished >= idle {
            let text = format!("a line took more than {} s", idle.as_secs());
            return Err(RequestFailure::Malformed(text));
        }
        let failure =
            RequestFailure::Malformed(format!("a line takes more than {} s", SLOW.as_secs()));
        let (reason, pause) = ("slow response".into(), idle.saturating_sub(unfinished));
        self.retrying(Retry { failure, reason, pause, is_outage: true });
        Ok(())
    }

    /// Handles one event; `true` if it delivered something new.
    fn take(&mut self, line: &[u8]) -> Result<bool, RequestFailure> {
        let wrong =
            |error: serde_json::Error| RequestFailure::Malformed(format!("a watch: {error}"));
        let line: WatchLine<'_> = serde_json::from_slice(line).map_err(wrong)?;
        let text = line.object.get();
        if line.kind == "ERROR" {
            return Err(RequestFailure::of_event(text));
        }
        let ObjectHeader { metadata } = serde_json::from_str(text).map_err(wrong)?;
        let is_new = match line.kind {
            "ADDED" | "MODIFIED" => self.put(text, &metadata),
            "DELETED" => self.delete(&metadata),
            // Bookmarks: their version only says where a watch continues.
            _ => false,
        };
        if !metadata.resource_version.is_empty() {
            self.resource_version = metadata.resource_version;
        }
        Ok(is_new)
    }

    /// As upstream, versions are not compared: what a watch delivers is the newest, whatever other
    /// events or bookmarks had. Only an identical version is no change.
    fn put(&mut self, text: &str, header: &HeaderMeta) -> bool {
        let row = self.row();
        let object = match read(text, row, &row.api_version(self.version)) {
            Ok(object) => object,
            Err(problem) => {
                self.left_out(problem.to_string());
                return false;
            }
        };
        let version = object.metadata().resource_version;
        let has_version = version != ResourceVersion::default();
        if self.known.insert(header.key(), version) == Some(version) && has_version {
            return false;
        }
        self.sender.delta(Delta::Put(object));
        has_version
    }

    fn delete(&mut self, header: &HeaderMeta) -> bool {
        let (kind, key) = (self.row().kind, header.key());
        let was_known = self.known.remove(&key).is_some();
        if was_known {
            self.sender.delta(Delta::Delete { kind, key });
        }
        was_known
    }

    /// Reports an object that cannot be read, once.
    fn left_out(&mut self, problem: String) {
        if self.unreadable.len() >= UNREADABLE {
            self.unreadable.clear();
        }
        if !self.unreadable.contains(&problem) {
            self.sender.unreadable(&problem);
            self.unreadable.insert(problem);
        }
    }
}

impl HeaderMeta {
    fn key(&self) -> NamespacedName {
        NamespacedName::new(self.namespace, self.name)
    }
}
