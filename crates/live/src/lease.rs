//! Leader election with a lease (coordination.k8s.io/v1), as in client-go: the replica that holds
//! the lease and renews it in time schedules.
//!
//! A separate thread renews it, so that a long cycle cannot lose the lease. When it is not renewed
//! in time, the gate for all writes is shut first, before the loss is reported. At the end the
//! lease is released. Upstream: client-go `tools/leaderelection`.

mod record;

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::clock;
use crate::failure::RequestFailure;
use crate::link::{KubeconfigTarget, Link, LinkError};
use crate::runtime::{self, StartReport};
use crate::scheduling::Lead;
use crate::traffic;
use crate::write::{Calls, WriteGate, WriteOptions};

use record::LeaseRecord;

/// The longest delay of an attempt, as a multiple of the retry period.
const JITTER: f64 = 1.2;

/// Which lease, and how it is held.
#[derive(Clone, Debug)]
pub struct LeaseSettings {
    /// Namespace of the Lease object.
    pub namespace: String,
    /// Name of the Lease object.
    pub name: String,
    /// The identity of this replica: unique among replicas.
    pub identity: String,
    /// How long other replicas wait after the last renewal before they acquire it.
    pub lease: Duration,
    /// How long renewal is tried before leadership is lost.
    pub deadline: Duration,
    /// How often it is renewed, or tried to be acquired.
    pub retry: Duration,
}

/// A candidacy for the lease. Dropping it releases the lease.
pub struct Election {
    lead: watch::Receiver<Lead>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Election {
    /// Becomes a candidate. Losing the lease shuts `gate`.
    ///
    /// # Errors
    /// The cluster cannot be reached.
    pub fn start(
        target: KubeconfigTarget,
        settings: LeaseSettings,
        gate: WriteGate,
    ) -> Result<Election, LinkError> {
        let (stop, stopped) = watch::channel(false);
        let (leads, lead) = watch::channel(Lead::Waiting);
        let work = move |opened: StartReport<()>| async move {
            match Link::new(target).await {
                Ok(link) => {
                    // The receiver is dropped if the program ends now.
                    let _sent = opened.send(Ok(()));
                    LeaseContender::new(link, settings).campaign(&leads, stopped, &gate).await;
                }
                Err(error) => drop(opened.send(Err(error))),
            }
        };
        let ((), thread) = runtime::begin("lease", "leader election", work)?;
        Ok(Election { lead, stop, thread: Some(thread) })
    }

    /// The present leadership, as a watch channel.
    pub fn lead(&self) -> watch::Receiver<Lead> {
        self.lead.clone()
    }
}

impl Drop for Election {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked no longer holds anything.
            let _ended = thread.join();
        }
    }
}

/// Acquires and renews the lease.
struct LeaseContender {
    calls: Calls,
    settings: LeaseSettings,
    /// The last observed lease, and when by our clock: clocks of other machines are not trusted.
    observed: Option<(LeaseRecord, Instant)>,
    leads: bool,
    tries: u32,
}

impl LeaseContender {
    fn new(link: Link, settings: LeaseSettings) -> LeaseContender {
        let gate = WriteGate::closed("");
        gate.open();
        let options = WriteOptions { qps: -1.0, burst: 1, dry_run: false };
        let calls = Calls::new(link, gate, &options);
        LeaseContender { calls, settings, observed: None, leads: false, tries: 0 }
    }

    async fn campaign(
        mut self,
        lead: &watch::Sender<Lead>,
        mut stop: watch::Receiver<bool>,
        gate: &WriteGate,
    ) {
        // An error of `changed` means that the receiver was dropped.
        tokio::select! {
            _ = stop.changed() => return self.release().await,
            () = self.acquire() => {}
        }
        lead.send_replace(Lead::Leading);
        let lost = tokio::select! {
            _ = stop.changed() => return self.release().await,
            lost = self.renew() => lost,
        };
        gate.shut(&lost);
        lead.send_replace(Lead::Lost(lost));
    }

    /// Returns once the lease is acquired.
    async fn acquire(&mut self) {
        while !matches!(self.attempt().await, Ok(true)) {
            sleep(self.settings.retry.mul_f64(1.0 + JITTER * self.chance())).await;
        }
        self.leads = true;
    }

    /// Renews until that has failed for too long. Returns the reason.
    async fn renew(&mut self) -> String {
        let mut renewed = Instant::now();
        let mut problem = String::new();
        loop {
            sleep(self.settings.retry).await;
            let left = self.settings.deadline.saturating_sub(renewed.elapsed());
            let begun = Instant::now();
            match timeout(left, self.attempt()).await {
                Ok(Ok(true)) => {
                    renewed = begun;
                    problem.clear();
                    continue;
                }
                Ok(Ok(false)) => problem = "another replica has taken the lease".to_owned(),
                Ok(Err(failure)) => problem = failure.to_string(),
                // The attempt may have been cut off by the deadline.
                Err(_) if problem.is_empty() => problem = "no response".to_owned(),
                Err(_) => {}
            }
            if renewed.elapsed() >= self.settings.deadline {
                self.leads = false;
                let seconds = self.settings.deadline.as_secs();
                return format!("the lease was not renewed within {seconds} s: {problem}");
            }
        }
    }

    /// Acquires or renews the lease; `false` if another replica holds it. While it is ours, nobody
    /// else should write it, so it is renewed without being read; if that fails, it is read after
    /// all.
    async fn attempt(&mut self) -> Result<bool, RequestFailure> {
        self.tries += 1;
        if let Some(valid) = self.valid().filter(|_| self.leads)
            && self.write(Some(&valid)).await.is_ok()
        {
            return Ok(true);
        }
        let half = self.half();
        let current = timeout(half, self.calls.get(&self.path())).await.map_err(|_| late(half))?;
        let text = match current {
            Err(RequestFailure::Absent(_)) => {
                self.write(None).await?;
                return Ok(true);
            }
            text => text?,
        };
        self.observe(&text)?;
        let Some((seen, since)) = &self.observed else { return Ok(false) };
        let is_ours = seen.holder == self.settings.identity;
        if !seen.holder.is_empty() && !is_ours && since.elapsed() < seen.lease(&self.settings) {
            return Ok(false);
        }
        let seen = seen.clone();
        if is_ours {
            traffic::renewed_slowly(&self.settings.name);
        }
        self.write(Some(&seen)).await?;
        Ok(true)
    }

    /// The lease as it was observed last, if it is ours and has not expired.
    fn valid(&self) -> Option<LeaseRecord> {
        let (seen, since) = self.observed.as_ref()?;
        let is_ours = seen.holder == self.settings.identity;
        (is_ours && since.elapsed() < seen.lease(&self.settings)).then(|| seen.clone())
    }

    /// Creates the lease, or takes it over from what was `seen`.
    async fn write(&mut self, seen: Option<&LeaseRecord>) -> Result<(), RequestFailure> {
        let record = LeaseRecord::new(&self.settings, clock::local(), seen);
        let call = match seen {
            Some(_) => record.update(&self.settings),
            None => record.creation(&self.settings),
        };
        let half = self.half();
        let text = timeout(half, self.calls.make(&call)).await.map_err(|_| late(half))??;
        self.observe(&text)
    }

    /// How long one request may take.
    fn half(&self) -> Duration {
        self.settings.deadline / 2
    }

    /// Remembers the lease as observed, and when it changed.
    fn observe(&mut self, text: &[u8]) -> Result<(), RequestFailure> {
        let record = LeaseRecord::read(text)?;
        match &mut self.observed {
            Some((seen, _)) if seen.is_same(&record) => *seen = record,
            observed => *observed = Some((record, Instant::now())),
        }
        Ok(())
    }

    /// Releases the lease, so that other replicas need not wait for it to expire.
    async fn release(self) {
        let Some((seen, _)) = &self.observed else { return };
        if self.leads && seen.holder == self.settings.identity {
            let released = seen.released(clock::local());
            let call = released.update(&self.settings);
            // If the release fails, the lease expires.
            let _released = timeout(self.settings.retry, self.calls.make(&call)).await;
        }
    }

    fn path(&self) -> String {
        record::path(&self.settings)
    }

    /// A pseudo-random number from 0 to 1 that differs between replicas.
    fn chance(&self) -> f64 {
        f64::from(hash(&(&self.settings.identity, self.tries)) as u32) / f64::from(u32::MAX)
    }
}

fn late(after: Duration) -> RequestFailure {
    RequestFailure::Unreachable(format!("no response within {} s", after.as_secs()))
}

/// A unique name for this replica: the host name and a random number.
pub fn identity(host: &str) -> String {
    let chance = [0_u8, 1].map(|half| hash(&(half, std::process::id(), clock::local().0)));
    format!("{host}_{:016x}{:016x}", chance[0], chance[1])
}

fn hash(value: &impl std::hash::Hash) -> u64 {
    use std::hash::BuildHasher;
    // `RandomState` has random keys.
    std::hash::RandomState::new().hash_one(value)
}
