//! The cluster beyond this process, as the scheduler sees it: changes and answers arrive, writes go
//! out, and writing is allowed or not.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::watch;

use crate::feed::{Feed, FeedEvent, Notice};
use crate::lease::Election;
use crate::scheduling::Lead;
use crate::write::{WriteResult, Writer};
use kubestep_api::{Kind, Time};
use kubestep_cluster::remote::Outgoing;
use kubestep_framework::pod::NamespacedName;

/// Something that arrived from the cluster.
#[derive(Debug)]
pub enum Arrival {
    /// A change, or a notice about the connection.
    Event(FeedEvent),
    /// The answer to a write.
    Answered(WriteResult),
    /// The lease was acquired or lost: [`Cluster::leader_status`] has changed.
    Lead,
}

/// Whether writes are allowed now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaderStatus {
    /// This replica holds the lease, so writes are allowed.
    Leads,
    /// Another replica may hold the lease.
    Waits,
    /// Writes are never allowed again; the reason.
    Lost(String),
    /// The cluster cannot be followed.
    CutOff,
}

impl LeaderStatus {
    /// For people, in a few words.
    pub fn describe(&self) -> String {
        match self {
            LeaderStatus::Leads => "leading: decisions are written to the cluster".into(),
            LeaderStatus::Waits => {
                "not leading: no cycle runs until this replica gets the lease".into()
            }
            LeaderStatus::Lost(reason) => format!("writing stopped: {reason}"),
            LeaderStatus::CutOff => "the connection to the cluster is lost: no cycles and no \
                                     writes until it is restored"
                .into(),
        }
    }

    /// Whether writes will never be allowed again.
    pub fn is_lost(&self) -> bool {
        matches!(self, LeaderStatus::Lost(_))
    }

    /// The leadership; `None` if it is not known.
    pub(super) fn lead(&self) -> Option<Lead> {
        Some(match self {
            LeaderStatus::Leads => Lead::Leading,
            LeaderStatus::Waits => Lead::Waiting,
            LeaderStatus::Lost(reason) => Lead::Lost(reason.clone()),
            LeaderStatus::CutOff => return None,
        })
    }
}

/// The cluster beyond this process.
pub trait Cluster: Send {
    /// The next arrival, once there is one; `None` if no more can arrive.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arrival>>;

    /// The next arrival, if there is one already.
    fn try_next(&mut self) -> Option<Arrival>;

    /// How many arrivals are queued.
    fn waiting(&self) -> usize;

    /// If very many changes are queued, keeps the newest of each object; `exists` says which
    /// objects the reader has.
    fn keep_newest(&mut self, exists: &dyn Fn(Kind, NamespacedName) -> bool);

    /// A notice about the changes that were dropped since the last call.
    fn take_dropped(&mut self) -> Option<Notice>;

    /// Whether writes are allowed. Once it answers no, no further write is sent.
    fn leader_status(&mut self) -> LeaderStatus;

    /// The time by the server's clock.
    fn now(&self) -> Time;

    /// Sends a write in the background.
    fn send(&mut self, request: Outgoing);
}

/// The cluster behind a feed and a writer. Fields are dropped in order, so dropping it first
/// finishes the writes in flight and then releases the lease.
pub struct Wire {
    feed: Feed,
    writer: Writer,
    lead: Option<Leadership>,
    _election: Option<Election>,
    ended: bool,
}

/// The leadership, and its next change.
struct Leadership {
    lead: watch::Receiver<Lead>,
    change: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Leadership {
    fn new(lead: watch::Receiver<Lead>) -> Leadership {
        let change = Box::pin(changed(lead.clone()));
        Leadership { lead, change }
    }

    fn poll_change(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        std::task::ready!(self.change.as_mut().poll(cx));
        let mut seen = self.lead.clone();
        seen.mark_unchanged();
        self.change = Box::pin(changed(seen));
        Poll::Ready(())
    }
}

/// Returns when the leadership changes; never, once the election has ended.
async fn changed(mut lead: watch::Receiver<Lead>) {
    if lead.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

impl Wire {
    /// Without an election, the caller has to make sure that nothing else schedules the same pods.
    pub fn new(feed: Feed, writer: Writer, election: Option<Election>) -> Wire {
        let lead = election.as_ref().map(|election| Leadership::new(election.lead()));
        Wire { feed, writer, lead, _election: election, ended: false }
    }
}

impl Cluster for Wire {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arrival>> {
        let lead = self.lead.as_mut().map(|lead| lead.poll_change(cx));
        if lead.is_some_and(|change| change.is_ready()) {
            return Poll::Ready(Some(Arrival::Lead));
        }
        if let Poll::Ready(answered) = self.writer.poll_next(cx) {
            return Poll::Ready(answered.map(Arrival::Answered));
        }
        let event = std::task::ready!(self.feed.poll_next(cx));
        self.ended |= event.is_none();
        Poll::Ready(event.map(Arrival::Event))
    }

    fn try_next(&mut self) -> Option<Arrival> {
        let answered = self.writer.try_next().map(Arrival::Answered);
        answered.or_else(|| self.feed.try_next().map(Arrival::Event))
    }

    fn waiting(&self) -> usize {
        self.feed.waiting() + self.writer.waiting()
    }

    fn keep_newest(&mut self, exists: &dyn Fn(Kind, NamespacedName) -> bool) {
        self.feed.keep_newest(exists);
    }

    fn take_dropped(&mut self) -> Option<Notice> {
        self.feed.take_dropped()
    }

    fn leader_status(&mut self) -> LeaderStatus {
        let gate = self.writer.gate();
        let lead = self.lead.as_ref().map_or(Lead::Leading, |lead| lead.lead.borrow().clone());
        match lead {
            Lead::Lost(reason) => {
                gate.shut(&reason);
                return LeaderStatus::Lost(reason);
            }
            Lead::Waiting => {
                gate.close("this replica does not lead");
                return LeaderStatus::Waits;
            }
            Lead::Leading => {}
        }
        if self.ended || self.feed.is_cut_off() {
            gate.close("the connection to the cluster is lost");
            return LeaderStatus::CutOff;
        }
        gate.open();
        LeaderStatus::Leads
    }

    fn now(&self) -> Time {
        self.feed.link().now()
    }

    fn send(&mut self, request: Outgoing) {
        self.writer.send(request);
    }
}
