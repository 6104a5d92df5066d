//! The real cluster: its feed, its writer, and the lease.

use std::task::{Context, Poll};

use tokio::sync::watch;

use crate::attended::{Arrival, Cluster, LeaderStatus};
use crate::feed::Feed;
use crate::lease::Election;
use crate::scheduling::Lead;
use crate::write::Writer;
use kubestep_api::Time;
use kubestep_cluster::remote::Outgoing;

/// The cluster behind a feed and a writer. Fields are dropped in order, so dropping it first
/// finishes the writes in flight and then releases the lease.
pub struct Wire {
    feed: Feed,
    writer: Writer,
    lead: Option<watch::Receiver<Lead>>,
    _election: Option<Election>,
    ended: bool,
}

impl Wire {
    /// Without an election, the caller has to make sure that nothing else schedules the same pods.
    pub fn new(feed: Feed, writer: Writer, election: Option<Election>) -> Wire {
        let lead = election.as_ref().map(Election::lead);
        Wire { feed, writer, lead, _election: election, ended: false }
    }
}

impl Cluster for Wire {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Arrival>> {
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

    fn standing(&mut self) -> LeaderStatus {
        let gate = self.writer.gate();
        let lead = self.lead.as_ref().map_or(Lead::Leading, |lead| lead.borrow().clone());
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
