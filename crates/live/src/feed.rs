//! The stream of changes of a cluster: all kinds listed once, then every change in the order in
//! which the server of its kind sent it, and notices about the connection.
//!
//! A separate thread waits for the network. Changes queue up until they are taken, so a slow reader
//! loses nothing; one that does not read for hours calls [`Feed::keep_newest`].

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use futures::future::join_all;
use hashbrown::HashSet;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::backoff::Pace;
use crate::clock;
use crate::failure::RequestFailure;
use crate::kinds::ReadKind;
use crate::link::{KubeconfigTarget, Link, LinkError};
use crate::outage::{Outage, Outages, Retry};
use crate::runtime::{self, StartReport};
use crate::snapshot::{ClusterSnapshot, NamespaceScope};
use crate::watch::Watcher;
use kubestep_api::words::count;
use kubestep_api::{Kind, Object};
use kubestep_framework::pod::NamespacedName;

/// Queued events from which older versions of objects are dropped.
pub(crate) const QUEUED: usize = 50_000;

/// A change of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// An object was added or changed.
    Put(Object),
    /// An object was deleted.
    Delete {
        /// Kind of the deleted object.
        kind: Kind,
        /// Its namespace and name.
        key: NamespacedName,
    },
}

impl Delta {
    /// The kind and name of the object.
    pub fn place(&self) -> (Kind, NamespacedName) {
        match self {
            Delta::Put(object) => (object.kind(), NamespacedName::of(object)),
            Delta::Delete { kind, key } => (*kind, *key),
        }
    }
}

/// A notice about the connection, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Whether the display may be wrong or stale until another notice.
    pub serious: bool,
    /// One sentence, for the status line.
    pub text: String,
}

/// What a feed delivers.
#[derive(Clone, Debug, PartialEq)]
pub enum FeedEvent {
    /// An object was created, updated or deleted.
    Delta(Delta),
    /// The state of the connection changed.
    Notice(Notice),
}

/// A cluster that is followed, until this is dropped.
pub struct Feed {
    /// Events that were taken out of `events` already; they come first.
    kept: VecDeque<FeedEvent>,
    /// Changes that were dropped since the last [`Feed::take_dropped`].
    dropped: usize,
    events: UnboundedReceiver<FeedEvent>,
    link: Arc<Link>,
    outages: Arc<Mutex<Outages>>,
}

impl Feed {
    /// Lists the cluster and starts to follow it. Returns once the lists are complete.
    ///
    /// # Errors
    /// The cluster cannot be reached.
    pub fn open(
        target: KubeconfigTarget,
        scope: NamespaceScope,
        pace: Pace,
    ) -> Result<(ClusterSnapshot, Feed), LinkError> {
        let (events, inbox) = unbounded_channel();
        let outages: Arc<Mutex<Outages>> = Arc::default();
        let sender = FeedSender { events: events.clone(), outages: outages.clone() };
        let follow = move |opened: StartReport<_>| async move {
            match begin(target, &scope).await {
                Ok((snapshot, link)) => {
                    let link = Arc::new(link);
                    let watchers = watchers(&snapshot, &sender, pace);
                    // The receiver is dropped if the program ends now.
                    let _sent = opened.send(Ok((snapshot, link.clone())));
                    let followed = watchers.into_iter().map(|watcher| watcher.run(&link));
                    tokio::select! {
                        _ = join_all(followed) => {}
                        () = events.closed() => {}
                    }
                }
                Err(error) => drop(opened.send(Err(error))),
            }
        };
        let ((snapshot, link), _following) =
            runtime::begin("cluster", "following the cluster", follow)?;
        let kept = VecDeque::new();
        Ok((snapshot, Feed { kept, dropped: 0, events: inbox, link, outages }))
    }

    /// The next event, once there is one.
    pub async fn next(&mut self) -> Option<FeedEvent> {
        match self.kept.pop_front() {
            Some(event) => Some(event),
            None => self.events.recv().await,
        }
    }

    /// The next event, for callers that wait for several things.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<FeedEvent>> {
        match self.kept.pop_front() {
            Some(event) => Poll::Ready(Some(event)),
            None => self.events.poll_recv(cx),
        }
    }

    /// The next event, if there is one already.
    pub fn try_next(&mut self) -> Option<FeedEvent> {
        self.kept.pop_front().or_else(|| self.events.try_recv().ok())
    }

    /// How many events are queued.
    pub fn waiting(&self) -> usize {
        self.kept.len() + self.events.len()
    }

    /// If very many events are queued, drops all but the last change of each object, and
    /// objects that came and went meanwhile; `exists` says which objects the reader has. However
    /// long nothing is taken, the queue holds at most the objects that there are and were.
    pub fn keep_newest(&mut self, exists: impl Fn(Kind, NamespacedName) -> bool) {
        // The next time only once as many have queued up again.
        if self.events.len() <= QUEUED {
            return;
        }
        while let Ok(event) = self.events.try_recv() {
            self.kept.push_back(event);
        }
        let before = self.kept.len();
        self.kept = newest(std::mem::take(&mut self.kept), exists);
        self.dropped += before - self.kept.len();
    }

    /// How many changes [`Feed::keep_newest`] has dropped since the last call, as a notice.
    pub(crate) fn take_dropped(&mut self) -> Option<Notice> {
        dropped_notice(std::mem::take(&mut self.dropped))
    }

    /// Whether a kind that decisions depend on cannot be followed now.
    pub fn is_cut_off(&self) -> bool {
        lock(&self.outages).is_cut_off()
    }

    /// What is not followed now.
    pub fn outage(&self) -> Option<Outage> {
        lock(&self.outages).outage(Instant::now())
    }

    /// The connection to the cluster.
    pub fn link(&self) -> &Arc<Link> {
        &self.link
    }
}

/// The last change of each object, and each notice once, in the order of those that are left.
/// Without the deletion of objects that the reader does not know.
pub(crate) fn newest(
    events: VecDeque<FeedEvent>,
    exists: impl Fn(Kind, NamespacedName) -> bool,
) -> VecDeque<FeedEvent> {
    let (mut places, mut notices) = (HashSet::new(), HashSet::new());
    let mut left = VecDeque::new();
    for event in events.into_iter().rev() {
        let is_new = match &event {
            FeedEvent::Delta(delta) => {
                let (kind, key) = delta.place();
                places.insert((kind, key)) && (matches!(delta, Delta::Put(_)) || exists(kind, key))
            }
            FeedEvent::Notice(notice) => notices.insert(notice.text.clone()),
        };
        if is_new {
            left.push_front(event);
        }
    }
    left
}

/// That so many changes were dropped from the queue, if any were.
pub(crate) fn dropped_notice(dropped: usize) -> Option<Notice> {
    let text = || {
        let versions = count(dropped, "older version");
        format!("{versions} of objects were dropped from the queue without a decision")
    };
    (dropped > 0).then(|| Notice { serious: false, text: text() })
}

fn lock(outages: &Mutex<Outages>) -> MutexGuard<'_, Outages> {
    outages.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn begin(
    target: KubeconfigTarget,
    scope: &NamespaceScope,
) -> Result<(ClusterSnapshot, Link), LinkError> {
    let link = Link::new(target).await?;
    let snapshot = ClusterSnapshot::take(&link, scope).await?;
    Ok((snapshot, link))
}

/// A watcher for each list that was made, and one for each kind that may become readable later.
fn watchers(snapshot: &ClusterSnapshot, sender: &FeedSender, pace: Pace) -> Vec<Watcher> {
    let known = snapshot
        .parts
        .iter()
        .map(|part| Watcher::after(part.place.clone(), &part.listed, sender.clone(), pace));
    let missing = snapshot.missing.iter().filter(|missing| !missing.is_absent());
    let hoped = missing.map(|missing| {
        sender.missing((&missing.what(), missing.place.row), &missing.failure);
        Watcher::unlisted(missing.place.clone(), sender.clone(), pace)
    });
    known.chain(hoped).collect()
}

/// Collects what the watchers report. An outage that affects all of them is reported once.
#[derive(Clone)]
pub(super) struct FeedSender {
    events: UnboundedSender<FeedEvent>,
    outages: Arc<Mutex<Outages>>,
}

impl FeedSender {
    /// Whether the receiver was dropped.
    pub(crate) fn is_closed(&self) -> bool {
        self.events.is_closed()
    }

    pub fn delta(&self, delta: Delta) {
        self.send(FeedEvent::Delta(delta));
    }

    /// An object was skipped because it cannot be read.
    pub fn unreadable(&self, problem: &str) {
        self.notice(true, format!("skipped, unreadable: {problem}"));
    }

    /// The version to continue from has expired.
    pub fn relisting(&self, what: &str) {
        if lock(&self.outages).relist(Instant::now()) {
            let text = format!("relisting {what}: the resource version has expired (410)");
            self.notice(false, text);
        }
    }

    /// `what` could not be read at the start, which was reported already.
    fn missing(&self, what: (&str, &ReadKind), failure: &RequestFailure) {
        lock(&self.outages).missing(what, failure, (Instant::now(), clock::local()));
    }

    /// `what` may not be read, and never could be.
    pub fn refused(&self, (what, row): (&str, &ReadKind), failure: &RequestFailure) {
        if lock(&self.outages).refuse(what) {
            self.notice(true, format!("{what}: {failure}; {}", row.without));
        }
    }

    /// Ends the outage of `what`, if there was one, with a notice.
    pub fn listed(&self, what: &str) {
        if lock(&self.outages).allow(what) {
            self.notice(false, format!("{what} is readable now"));
        }
    }

    /// `what` waits for its next attempt.
    pub fn retrying(&self, what: (&str, &ReadKind), retry: &Retry) {
        let report = lock(&self.outages).retry(what, retry, (Instant::now(), clock::local()));
        if let Some(text) = report {
            self.notice(true, text);
        }
    }

    /// The watch of `what` was accepted.
    pub fn begun(&self, what: &str) {
        lock(&self.outages).begun(what);
    }

    /// The watch of `what` works.
    pub fn followed(&self, what: &str) {
        if lock(&self.outages).followed(what) {
            self.notice(false, "all watches work again".into());
        }
    }

    fn notice(&self, serious: bool, text: String) {
        self.send(FeedEvent::Notice(Notice { serious, text }));
    }

    fn send(&self, event: FeedEvent) {
        // The receiver may have been dropped.
        let _sent = self.events.send(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubestep_framework::testing::{PodBuilder, node, pod};

    #[test]
    fn only_the_last_change_of_each_object_is_left() {
        let put = |object: Object| FeedEvent::Delta(Delta::Put(object));
        let web: Object = pod("web").into();
        let key = NamespacedName::of(&web);
        let bound: Object = pod("web").on("n").into();
        let deletion = FeedEvent::Delta(Delta::Delete { kind: Kind::Pod, key });
        let notice = |text: &str| FeedEvent::Notice(Notice { serious: true, text: text.into() });
        let node = || put(node("n").into());
        let (first, again) = (put(web), put(bound));
        let events =
            [notice("a"), first.clone(), node(), deletion.clone(), notice("a"), again.clone()];
        let left = newest(events.into(), |_, _| true);
        assert_eq!(left, [node(), notice("a"), again]);
        let left = newest([first.clone(), node(), deletion.clone()].into(), |_, name| name == key);
        assert_eq!(left, [node(), deletion.clone()]);
        // Neither its creation nor its deletion concerns a reader that does not know it.
        assert_eq!(newest([first, node(), deletion].into(), |_, _| false), [node()]);
    }
}
