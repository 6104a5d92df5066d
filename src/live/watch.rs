//! One kind, followed for as long as anybody listens: listed where it has to be, then watched
//! from there, and taken up again after whatever happens to the connection.
//!
//! What was told stays true because three things are remembered: the version of the newest
//! event, from which a watch goes on; the version of every object, so that a list after `410
//! Gone` tells only the difference; and that a line counts only with its end.

use std::time::Duration;

use hashbrown::HashMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::sleep;

use crate::api::ResourceVersion;
use crate::engine::pod::NamespacedName;
use crate::intern::Symbol;
use crate::live::failure::Failure;
use crate::live::feed::{Delta, Teller};
use crate::live::lines::Next;
use crate::live::link::Link;
use crate::live::list::{Listed, Place, read};

/// How fast things are tried again.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The server ends a watch after so many seconds.
    pub watch_seconds: u32,
    /// A watch in which nothing is heard for so long is asked for anew: its connection may be
    /// dead. Bookmarks come every minute, but not for a kind of which the server has seen no
    /// change since it was started.
    pub idle: Duration,
    /// The pause after a failure, doubled each time.
    pub pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
    /// The pause after a refusal: roles change rarely.
    pub refused: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            watch_seconds: 300,
            idle: Duration::from_secs(90),
            pause: Duration::from_millis(250),
            longest_pause: Duration::from_secs(30),
            refused: Duration::from_secs(60),
        }
    }
}

/// Follows one kind.
pub(super) struct Watcher {
    place: Place,
    /// The API version that the server has.
    version: &'static str,
    /// Where to go on; "" where a list is needed.
    resource_version: String,
    /// Every object that was told of, with its version.
    known: HashMap<NamespacedName, ResourceVersion>,
    teller: Teller,
    pace: Pace,
    failures: u32,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// What every object says of itself.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Header {
    metadata: HeaderMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HeaderMeta {
    name: Symbol,
    namespace: Symbol,
    resource_version: String,
}

impl Watcher {
    /// Goes on after a list that was told already.
    pub fn after(place: Place, listed: &Listed, teller: Teller, pace: Pace) -> Watcher {
        let version = |object: &crate::api::Object| {
            (NamespacedName::of(object), object.metadata().resource_version)
        };
        Watcher {
            place,
            version: listed.version,
            resource_version: listed.resource_version.clone(),
            known: listed.objects.iter().map(version).collect(),
            teller,
            pace,
            failures: 0,
        }
    }

    /// Begins with a list, as soon as the server gives one.
    pub fn anew(place: Place, teller: Teller, pace: Pace) -> Watcher {
        Watcher::after(place, &Listed::default(), teller, pace)
    }

    /// Follows until nobody listens any more.
    pub async fn run(mut self, link: &Link) {
        while !self.teller.is_alone() {
            let done = match self.resource_version.is_empty() {
                true => self.list(link).await,
                false => self.watch(link).await,
            };
            match done {
                Ok(()) => self.well(),
                Err(failure) => self.failed(failure).await,
            }
        }
    }

    fn well(&mut self) {
        self.failures = 0;
        self.teller.well(&self.what());
    }

    /// Says what happened and waits as long as that asks for.
    async fn failed(&mut self, failure: Failure) {
        // A server that has just been started does not know its roles yet: what could be read
        // before is asked for again soon.
        let was_read = !self.resource_version.is_empty();
        let pause = match &failure {
            Failure::Refused(_) | Failure::Absent(_) if !was_read => self.pace.refused,
            Failure::Busy { after: Some(after), .. } => *after,
            _ => {
                let doubled = self.pace.pause.saturating_mul(1 << self.failures.min(16));
                doubled.min(self.pace.longest_pause)
            }
        };
        match failure {
            Failure::Expired(_) => {
                self.resource_version.clear();
                self.teller.gone(&self.what());
            }
            failure => {
                self.failures += 1;
                self.teller.trouble(&self.what(), self.place.row, &failure);
                sleep(pause).await;
            }
        }
    }

    /// `pods`, `pods in shop`.
    fn what(&self) -> String {
        match &self.place.namespace {
            Some(namespace) => format!("{} in {namespace}", self.place.row.kind.plural()),
            None => self.place.row.kind.plural().to_owned(),
        }
    }

    /// Lists and tells what is different from what was told.
    async fn list(&mut self, link: &Link) -> Result<(), Failure> {
        let listed = match self.version {
            "" => self.place.list(link).await?,
            version => self.place.list_in(link, version).await?,
        };
        self.version = listed.version;
        self.resource_version = listed.resource_version;
        let mut gone = std::mem::take(&mut self.known);
        let mut news = Vec::new();
        for object in listed.objects {
            let (key, version) = (NamespacedName::of(&object), object.metadata().resource_version);
            self.known.insert(key, version);
            if gone.remove(&key) != Some(version) {
                news.push(object);
            }
        }
        // In an order that does not depend on hashing.
        let mut gone: Vec<NamespacedName> = gone.into_keys().collect();
        gone.sort_unstable();
        let kind = self.place.row.kind;
        gone.into_iter().for_each(|key| self.teller.delta(Delta::Delete { kind, key }));
        news.into_iter().for_each(|object| self.teller.delta(Delta::Put(object)));
        listed.unreadable.iter().for_each(|problem| self.teller.unreadable(problem));
        Ok(())
    }

    /// Watches until the server ends it.
    async fn watch(&mut self, link: &Link) -> Result<(), Failure> {
        let query = self.place.row.query(self.version, self.place.namespace.as_deref());
        let (from, seconds) = (&self.resource_version, self.pace.watch_seconds);
        let path = format!(
            "{query}watch=1&allowWatchBookmarks=true&resourceVersion={from}&timeoutSeconds={seconds}"
        );
        let mut lines = link.lines(&path).await?;
        self.well();
        while let Next::Line(line) = lines.next(self.pace.idle).await? {
            self.take(line)?;
            if self.teller.is_alone() {
                break;
            }
        }
        Ok(())
    }

    fn take(&mut self, line: &[u8]) -> Result<(), Failure> {
        let wrong = |error: serde_json::Error| Failure::Malformed(format!("a watch: {error}"));
        let line: Line<'_> = serde_json::from_slice(line).map_err(wrong)?;
        let text = line.object.get();
        if line.kind == "ERROR" {
            return Err(Failure::of_event(text));
        }
        let header: Header = serde_json::from_str(text).map_err(wrong)?;
        if self.is_repeated(&header.metadata.resource_version) {
            return Ok(());
        }
        match line.kind {
            "ADDED" | "MODIFIED" => self.put(text, &header.metadata),
            "DELETED" => self.delete(&header.metadata),
            _ => {}
        }
        self.resource_version = header.metadata.resource_version;
        Ok(())
    }

    /// Whether an event of this version was told already: a server, or what stands in between,
    /// may tell a part again. Versions grow; where they are no numbers nothing is known.
    fn is_repeated(&self, version: &str) -> bool {
        let number = |text: &str| text.parse::<u64>().ok();
        match (number(version), number(&self.resource_version)) {
            (Some(new), Some(newest)) => new <= newest,
            _ => false,
        }
    }

    fn put(&mut self, text: &str, header: &HeaderMeta) {
        let row = self.place.row;
        match read(text, row, &row.api_version(self.version)) {
            Ok(object) => {
                self.known.insert(header.key(), object.metadata().resource_version);
                self.teller.delta(Delta::Put(object));
            }
            Err(problem) => self.teller.unreadable(&problem),
        }
    }

    fn delete(&mut self, header: &HeaderMeta) {
        let (kind, key) = (self.place.row.kind, header.key());
        if self.known.remove(&key).is_some() {
            self.teller.delta(Delta::Delete { kind, key });
        }
    }
}

impl HeaderMeta {
    fn key(&self) -> NamespacedName {
        NamespacedName::new(self.namespace, self.name)
    }
}
