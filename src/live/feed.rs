//! The stream of changes of a cluster: all kinds listed once, then every change in the order in
//! which its kind's server told it, and what is to be said about the connection.
//!
//! A thread of its own waits for the network. Changes queue up without limit until they are
//! taken, so whoever stops looking for a while loses nothing.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio::runtime::Builder;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::api::{Kind, Object};
use crate::engine::pod::NamespacedName;
use crate::live::clock;
use crate::live::failure::Failure;
use crate::live::kinds::ReadKind;
use crate::live::link::{Link, LinkError, Target};
use crate::live::snapshot::{Scope, Snapshot};
use crate::live::watch::{Pace, Watcher};

/// Lists that are made anew within so long of each other are told of once.
const ANEW_ONCE: Duration = Duration::from_secs(10);

/// A change of the cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// An object is new or has changed.
    Put(Object),
    /// An object is gone.
    Delete {
        /// Its kind.
        kind: Kind,
        /// Its name.
        key: NamespacedName,
    },
}

/// Something to be said about the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Whether what is shown may be wrong or old until another notice.
    pub serious: bool,
    /// One sentence.
    pub text: String,
}

/// What a feed tells.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The cluster changed.
    Delta(Delta),
    /// Something is to be said.
    Notice(Notice),
}

/// A cluster that is followed. Dropped, it is followed no more.
pub struct Feed {
    events: UnboundedReceiver<Event>,
    link: Arc<Link>,
    troubles: Arc<Mutex<Troubles>>,
}

impl Feed {
    /// Lists the cluster and begins to follow it. Comes back with the lists.
    ///
    /// # Errors
    /// There is no way to the cluster.
    pub fn open(target: Target, scope: Scope, pace: Pace) -> Result<(Snapshot, Feed), LinkError> {
        let (events, inbox) = unbounded_channel();
        let (opened, opening) = mpsc::channel();
        let troubles: Arc<Mutex<Troubles>> = Arc::default();
        let teller = Teller { events: events.clone(), troubles: troubles.clone() };
        let follow = move || {
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(opened.send(Err(no_thread(&error)))),
            };
            runtime.block_on(async {
                match begin(target, &scope).await {
                    Ok((snapshot, link)) => {
                        let link = Arc::new(link);
                        let watchers = watchers(&snapshot, &teller, pace);
                        // Nobody listens if the program ends just now.
                        let _told = opened.send(Ok((snapshot, link.clone())));
                        let followed = watchers.into_iter().map(|watcher| watcher.run(&link));
                        tokio::select! {
                            _ = join_all(followed) => {}
                            () = events.closed() => {}
                        }
                    }
                    Err(error) => drop(opened.send(Err(error))),
                }
            });
        };
        let thread = thread::Builder::new().name("cluster".into()).spawn(follow);
        thread.map_err(|error| no_thread(&error))?;
        let ended = |_| no_thread(&std::io::Error::other("it has ended"));
        let (snapshot, link) = opening.recv().map_err(ended)??;
        Ok((snapshot, Feed { events: inbox, link, troubles }))
    }

    /// The next event, once there is one.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// The next event, for who waits for more than that.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.events.poll_recv(cx)
    }

    /// The next event, if there is one already.
    pub fn try_next(&mut self) -> Option<Event> {
        self.events.try_recv().ok()
    }

    /// How many events wait to be taken.
    pub fn waiting(&self) -> usize {
        self.events.len()
    }

    /// Whether something cannot be followed at the moment, as the server does not answer.
    pub fn is_cut_off(&self) -> bool {
        let troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        !troubles.cut.is_empty()
    }

    /// The way to the cluster.
    pub fn link(&self) -> &Arc<Link> {
        &self.link
    }
}

fn no_thread(error: &std::io::Error) -> LinkError {
    LinkError::Config {
        from: "the thread that waits for the cluster".into(),
        problem: error.to_string(),
    }
}

async fn begin(target: Target, scope: &Scope) -> Result<(Snapshot, Link), LinkError> {
    let link = Link::new(target).await?;
    let snapshot = Snapshot::take(&link, scope).await?;
    Ok((snapshot, link))
}

/// A watcher for each list that was made, and one for each that may come to be allowed.
fn watchers(snapshot: &Snapshot, teller: &Teller, pace: Pace) -> Vec<Watcher> {
    let known = snapshot
        .parts
        .iter()
        .map(|part| Watcher::after(part.place.clone(), &part.listed, teller.clone(), pace));
    let missing = snapshot.missing.iter().filter(|missing| !missing.is_absent());
    let hoped = missing.map(|missing| {
        teller.note_refused(&missing.what());
        Watcher::anew(missing.place.clone(), teller.clone(), pace)
    });
    known.chain(hoped).collect()
}

/// What the watchers tell through. Of an outage that all of them see it tells once.
#[derive(Clone)]
pub(super) struct Teller {
    events: UnboundedSender<Event>,
    troubles: Arc<Mutex<Troubles>>,
}

/// What cannot be followed at the moment.
#[derive(Default)]
struct Troubles {
    /// As the server does not answer.
    cut: BTreeSet<String>,
    /// As it may not be read.
    refused: BTreeSet<String>,
    /// When it was last said that something was listed anew.
    told_anew: Option<Instant>,
}

impl Teller {
    /// Whether nobody listens any more.
    pub fn is_alone(&self) -> bool {
        self.events.is_closed()
    }

    pub fn delta(&self, delta: Delta) {
        self.send(Event::Delta(delta));
    }

    /// An object was left out.
    pub fn unreadable(&self, problem: &str) {
        self.notice(true, format!("left out, as it cannot be read: {problem}"));
    }

    /// The server had forgotten the version to go on from.
    pub fn gone(&self, what: &str) {
        // After a restart it forgets everything at once.
        let mut troubles = self.troubles();
        let told = troubles.told_anew.is_some_and(|told| told.elapsed() < ANEW_ONCE);
        troubles.told_anew = Some(Instant::now());
        drop(troubles);
        if !told {
            let text = format!("the server has forgotten where we were with {what}: listed anew");
            self.notice(false, text);
        }
    }

    fn troubles(&self) -> std::sync::MutexGuard<'_, Troubles> {
        self.troubles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `what` was not allowed when it all began, which was said already.
    fn note_refused(&self, what: &str) {
        self.troubles().refused.insert(what.to_owned());
    }

    /// `what` cannot be followed.
    pub fn trouble(&self, what: &str, row: &ReadKind, failure: &Failure) {
        let mut troubles = self.troubles();
        let refused = matches!(failure, Failure::Refused(_) | Failure::Absent(_));
        let first = troubles.cut.is_empty();
        let set = if refused { &mut troubles.refused } else { &mut troubles.cut };
        let new = set.insert(what.to_owned());
        drop(troubles);
        if refused && new {
            self.notice(true, format!("{what}: {failure}; {}", row.without));
        } else if !refused && first {
            // The others go down with the same server.
            let time = clock::local();
            self.notice(true, format!("{what} cannot be followed since {time}: {failure}"));
        }
    }

    /// `what` is being followed.
    pub fn well(&self, what: &str) {
        let mut troubles = self.troubles();
        let (was_refused, was_cut) = (troubles.refused.remove(what), troubles.cut.remove(what));
        let all_well = troubles.cut.is_empty();
        drop(troubles);
        if was_refused {
            self.notice(false, format!("{what} can be read now"));
        }
        if was_cut && all_well {
            self.notice(false, "everything is followed again; nothing was missed".into());
        }
    }

    fn notice(&self, serious: bool, text: String) {
        self.send(Event::Notice(Notice { serious, text }));
    }

    fn send(&self, event: Event) {
        // Without a listener there is nothing to tell.
        let _told = self.events.send(event);
    }
}
