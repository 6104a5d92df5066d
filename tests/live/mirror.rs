//! The state of a cluster as received through lists and events; fails on an update that is older
//! than the known version.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kubestep_api::Kind;
use kubestep_framework::pod::NamespacedName;
use kubestep_live::{ClusterSnapshot, Delta, Feed, FeedEvent};

/// The known objects with their versions.
#[derive(Default)]
pub struct Mirror {
    objects: BTreeMap<(Kind, NamespacedName), u64>,
    /// The notices so far.
    pub notices: Vec<String>,
}

impl Mirror {
    /// The state from the lists.
    pub fn new(snapshot: &ClusterSnapshot) -> Mirror {
        let mut mirror = Mirror::default();
        for object in snapshot.objects() {
            mirror.take(FeedEvent::Delta(Delta::Put(object.clone())));
        }
        mirror
    }

    pub fn take(&mut self, event: FeedEvent) {
        match event {
            FeedEvent::Delta(Delta::Put(object)) => {
                let key = (object.kind(), NamespacedName::of(&object));
                let version = object.metadata().resource_version.number().unwrap();
                let old = self.objects.insert(key, version);
                assert!(old.is_none_or(|old| old < version), "{key:?}: {version} after {old:?}");
            }
            FeedEvent::Delta(Delta::Delete { kind, key }) => {
                let old = self.objects.remove(&(kind, key));
                assert!(old.is_some(), "{kind} {key} was not there to be deleted");
            }
            FeedEvent::Notice(notice) => self.notices.push(notice.text),
        }
    }

    /// In the form of [`crate::standin::StandIn::contents`], for comparison.
    pub fn contents(&self) -> Vec<(String, String)> {
        let line = |(&(kind, key), version): (&(Kind, NamespacedName), &u64)| {
            (format!("{} {}/{}", kind.plural(), key.namespace, key.name), version.to_string())
        };
        let mut all: Vec<_> = self.objects.iter().map(line).collect();
        all.sort();
        all
    }

    /// Applies events until `done`, for ten seconds at most.
    pub fn follow(&mut self, feed: &mut Feed, mut done: impl FnMut(&Mirror) -> bool) {
        let until = Instant::now() + Duration::from_secs(10);
        while !done(self) {
            match feed.try_next() {
                Some(event) => self.take(event),
                None => std::thread::sleep(Duration::from_millis(2)),
            }
            assert!(Instant::now() < until, "it did not come; notices: {:#?}", self.notices);
        }
    }
}
