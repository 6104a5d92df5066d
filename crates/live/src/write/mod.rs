//! Writes to a live cluster: sends the embedded scheduler's writes to the API server in the
//! background and returns the results.
//!
//! A separate thread sends many writes at once, but those to one object in order: `Lane` defines
//! which are sequential. All of them pass the [`WriteGate`]: as soon as it is closed, because the lease
//! or the connection is lost, queued writes and writes in flight fail. Each kind of object that is
//! written has its file; `call` sends them all.

mod call;
mod claim;
mod event;
mod extender;
mod gate;
mod lanes;
mod limiter;
mod object;
mod pod;
pub mod rights;
mod series;
mod served;

use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::failure::RequestFailure;
use crate::link::{KubeconfigTarget, Link, LinkError};
use crate::runtime::{self, StartReport};
use kubestep_cluster::ExtenderFn;
use kubestep_cluster::remote::{
    BindingCycleWrite, CallType, Outgoing, Request, RequestResult, WriteOutcome,
};

pub use event::hostname;
pub use gate::WriteGate;

pub(crate) use call::{BodyFormat, Calls, WriteCall};
use event::Events;
pub(crate) use event::micros;
use extender::Extenders;
use lanes::{Lane, Lanes};

/// Writes at once of each sort, see [`InFlightLimits`]. Upstream limits only its rate; API servers limit
/// concurrency.
pub(crate) const AT_ONCE: usize = 64;
/// How long writes in flight may take when the program ends.
const AT_END: Duration = Duration::from_secs(5);

/// Rate limit and mode of writes.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Sustained writes per second; not limited if negative.
    pub qps: f32,
    /// Writes that may be sent at once after a pause.
    pub burst: u32,
    /// Sends every write with `dryRun=All`.
    pub dry_run: bool,
}

/// The result of a write.
#[derive(Clone, Debug)]
pub struct WriteResult {
    /// The ticket of the request.
    pub ticket: u64,
    /// The result for the scheduler.
    pub answer: RequestResult,
    /// The write, in a few words.
    pub what: String,
    /// What sort of call it was.
    pub call: Option<CallType>,
    /// See [`Request::binding_cycle_write`].
    pub in_binding_cycle: Option<BindingCycleWrite>,
    /// From when it could be sent to the answer.
    pub took: Duration,
}

/// Sends writes. Dropping it finishes those in flight, unless its gate is closed.
pub struct Writer {
    inbox: Option<UnboundedSender<Outgoing>>,
    answers: UnboundedReceiver<WriteResult>,
    gate: WriteGate,
    extenders: Extenders,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Prepares to write to a cluster. The gate is closed.
    ///
    /// # Errors
    /// The cluster cannot be reached.
    pub fn start(target: KubeconfigTarget, options: WriteOptions) -> Result<Writer, LinkError> {
        let (inbox, requests) = unbounded_channel();
        let (answered, answers) = unbounded_channel();
        let gate = WriteGate::closed("writing has not started");
        let passed = gate.clone();
        let extenders = Extenders::default();
        let asked = extenders.clone();
        let work = move |opened: StartReport<()>| async move {
            let links = async { Ok((Link::new(target.clone()).await?, Link::new(target).await?)) };
            match links.await {
                Ok((main, events)) => {
                    let calls = |link| Arc::new(Calls::new(link, passed.clone(), &options));
                    let (main, events) = (calls(main), calls(events));
                    // The receiver is dropped if the program ends now.
                    let _sent = opened.send(Ok(()));
                    serve(main, events, asked, requests, answered).await;
                }
                Err(error) => drop(opened.send(Err(error))),
            }
        };
        let ((), thread) = runtime::begin("writes", "writing to the cluster", work)?;
        Ok(Writer { inbox: Some(inbox), answers, gate, extenders, thread: Some(thread) })
    }

    /// The gate that all writes pass.
    pub fn gate(&self) -> &WriteGate {
        &self.gate
    }

    /// Sets the function that calls extenders to bind.
    pub fn bind_through(&self, extenders: ExtenderFn) {
        self.extenders.set(extenders);
    }

    /// Hands a write to the writer's thread.
    pub fn send(&self, request: Outgoing) {
        if let Some(inbox) = &self.inbox {
            // The thread ends with the program.
            let _sent = inbox.send(request);
        }
    }

    /// The next answer, once there is one.
    pub async fn next(&mut self) -> Option<WriteResult> {
        self.answers.recv().await
    }

    /// The next answer, for callers that wait for several things.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<WriteResult>> {
        self.answers.poll_recv(cx)
    }

    /// How many answers are queued.
    pub fn waiting(&self) -> usize {
        self.answers.len()
    }

    /// The next answer, if there is one already.
    pub fn try_next(&mut self) -> Option<WriteResult> {
        self.answers.try_recv().ok()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.inbox = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to finish.
            let _ended = thread.join();
        }
    }
}

/// Sends writes until the sender is dropped.
async fn serve(
    calls: Arc<Calls>,
    event_calls: Arc<Calls>,
    extenders: Extenders,
    mut requests: UnboundedReceiver<Outgoing>,
    answers: UnboundedSender<WriteResult>,
) {
    let (mut lanes, places) = (Lanes::default(), InFlightLimits::default());
    let load = WriteLoad::default();
    let events = Events::new(event_calls, load.0.subscribe());
    let mut under_way = JoinSet::new();
    while let Some(Outgoing { ticket, request }) = requests.recv().await {
        while under_way.try_join_next().is_some() {}
        if let Request::Event { event, version } = request {
            events.queue(event, version);
            continue;
        }
        let lane = lanes.enter(Lane::of(&request));
        let places = places.of(&request);
        let (calls, answers) = (calls.clone(), answers.clone());
        let extenders = extenders.clone();
        let counted = load.count();
        under_way.spawn(async move {
            let _counted = counted;
            let _turn = lane.turn().await;
            let _place = places.acquire_owned().await;
            let (what, call, began) = (request.describe(), request.call_type(), Instant::now());
            let in_binding_cycle = request.binding_cycle_write();
            let answer = make(&calls, &extenders, request).await;
            let answer = answer.map_err(|failure| failure.describe());
            let took = began.elapsed();
            let result = WriteResult { ticket, answer, what, call, in_binding_cycle, took };
            // At the end of the program the receiver may be dropped.
            let _sent = answers.send(result);
        });
    }
    let end = async {
        while under_way.join_next().await.is_some() {}
        events.finish().await;
    };
    let _in_time = tokio::time::timeout(AT_END, end).await;
}

async fn make(
    calls: &Calls,
    extenders: &Extenders,
    request: Request,
) -> Result<WriteOutcome, RequestFailure> {
    match request {
        Request::Bind { pod, node } => pod::bind(calls, pod, node).await,
        Request::ExtenderBind { call, .. } => extender::bind(calls.gate(), extenders, call).await,
        Request::PodStatus { pod, patch } => pod::patch(calls, pod, &patch).await,
        Request::Evict { pod, condition } => pod::evict(calls, pod, condition).await,
        Request::ExtendedResourceClaim { pod, status } => {
            pod::name_claim(calls, pod, &status).await
        }
        Request::NodeResourceClaims { pod, statuses } => {
            pod::name_node_resources(calls, pod, &statuses).await
        }
        Request::Update { before, after } => object::update(calls, &before, &after).await,
        Request::Create(object) => object::create(calls, &object).await,
        Request::ReleaseClaim { key, uid, user } => claim::release(calls, key, uid, user).await,
        Request::DeleteClaim { claim, finalizer } => claim::delete(calls, &claim, finalizer).await,
        Request::GroupCondition { key, uid, condition } => {
            pod::set_group_condition(calls, key, uid, &condition).await
        }
        // Events have a queue of their own.
        Request::Event { .. } => Ok(WriteOutcome::Done),
    }
}

/// How many writes are queued or in flight, without events, which wait for them.
#[derive(Clone, Default)]
struct WriteLoad(Arc<watch::Sender<usize>>);

/// A write that counts until this is dropped.
struct CountedWrite(WriteLoad);

impl WriteLoad {
    fn count(&self) -> CountedWrite {
        self.0.send_modify(|writes| *writes += 1);
        CountedWrite(self.clone())
    }
}

impl Drop for CountedWrite {
    fn drop(&mut self) {
        self.0.0.send_modify(|writes| *writes -= 1);
    }
}

/// How many writes may be in flight. Slow sorts are counted separately, so that other writes do not
/// wait for them: a slow extender does not delay bindings by the API server, and bindings that hang
/// do not delay the deletion of victims.
struct InFlightLimits {
    extender: Arc<Semaphore>,
    eviction: Arc<Semaphore>,
    other: Arc<Semaphore>,
}

impl Default for InFlightLimits {
    fn default() -> InFlightLimits {
        let [extender, eviction, other] = [(); 3].map(|()| Arc::new(Semaphore::new(AT_ONCE)));
        InFlightLimits { extender, eviction, other }
    }
}

impl InFlightLimits {
    fn of(&self, request: &Request) -> Arc<Semaphore> {
        match request {
            Request::ExtenderBind { .. } => self.extender.clone(),
            Request::Evict { .. } => self.eviction.clone(),
            _ => self.other.clone(),
        }
    }
}
