//! Which schedulers of the real cluster are running: who holds their leases, and since when they
//! have not reported on any pod. Nothing here influences decisions.

use std::collections::BTreeMap;

use crate::World;
use kubestep_api::intern::Symbol;
use kubestep_api::words::count;
use kubestep_api::{Duration, Lease, Leases, Name, Pod, Time};
use kubestep_framework::pod::NamespacedName;

/// How long a scheduler may be silent before that is reported.
const QUIET: Duration = Duration::from_secs(60);
/// The scheduler of pods that name none, and the lease of its replicas.
const DEFAULT: (&str, &str) = ("default-scheduler", "kube-scheduler");

/// What is known of the cluster's schedulers at one time.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct Schedulers {
    /// When that was, by the cluster's clock.
    pub as_of: Time,
    /// The leases of schedulers, by name.
    pub leases: Vec<SchedulerLease>,
    /// Schedulers that do not report on pods that wait for them, by name.
    pub silent: Vec<MissingReports>,
    /// The versions of the replicas of each lease, if they differ.
    pub versions: Vec<ReplicaVersion>,
}

/// The lease of a scheduler's replicas.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchedulerLease {
    /// Its namespace and name.
    pub lease: NamespacedName,
    /// Who holds it; empty if no replica does.
    pub holder: String,
    /// Since when the holder has it; `None` if the lease does not say.
    pub acquired: Option<Time>,
    /// When the holder renewed it last.
    pub renewed: Option<Time>,
    /// How long it is valid without renewal, in seconds.
    pub seconds: i64,
    /// Whether it is not valid any more.
    pub expired: bool,
}

/// A scheduler that does not report on pods that wait for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MissingReports {
    /// The scheduler name of the pods.
    pub scheduler: Symbol,
    /// How many pods it has not reported on.
    pub pods: usize,
    /// The creation of the oldest of them.
    pub since: Time,
    /// Its last report on any pod; `None` if there is none.
    pub last_report: Option<Time>,
}

/// A replica, and its version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplicaVersion {
    /// The lease that it would take.
    pub lease: Name,
    /// Name of the replica.
    pub replica: Name,
    /// Its version, with the version that it emulates if that differs.
    pub version: String,
}

/// The reports of schedulers on pods: the condition `PodScheduled`, which kube-scheduler writes
/// after each attempt.
#[derive(Clone, Default, Debug)]
pub struct PodReports {
    /// The newest report, by scheduler name.
    last: BTreeMap<Symbol, Time>,
    /// Pods without a report: their scheduler names and creation times.
    waiting: BTreeMap<NamespacedName, (Symbol, Time)>,
}

impl PodReports {
    /// Takes in the present state of a pod.
    pub fn see(&mut self, pod: &Pod) {
        let key = NamespacedName::new(pod.metadata.namespace, pod.metadata.name);
        let scheduler = pod.spec.scheduler_name;
        let scheduler = if scheduler.is_empty() { DEFAULT.0.into() } else { scheduler };
        let report = pod.status.conditions.iter().find(|one| one.type_ == "PodScheduled");
        if let Some(at) = report.and_then(|report| report.last_transition_time) {
            let last = self.last.entry(scheduler).or_insert(at);
            *last = at.max(*last);
        }
        let waits = report.is_none()
            && pod.spec.node_name.is_empty()
            && pod.spec.scheduling_gates.is_empty()
            && !pod.is_terminal()
            && !pod.is_terminating();
        match pod.metadata.creation_timestamp.filter(|_| waits) {
            Some(created) => drop(self.waiting.insert(key, (scheduler, created))),
            None => drop(self.waiting.remove(&key)),
        }
    }

    /// Forgets a deleted pod.
    pub fn forget(&mut self, pod: NamespacedName) {
        self.waiting.remove(&pod);
    }

    /// The schedulers that are silent at `now`.
    fn silent(&self, now: Time) -> Vec<MissingReports> {
        let mut silent = BTreeMap::<Symbol, MissingReports>::new();
        for (scheduler, created) in self.waiting.values() {
            let last_report = self.last.get(scheduler).copied();
            let one = silent.entry(*scheduler).or_insert(MissingReports {
                scheduler: *scheduler,
                pods: 0,
                since: *created,
                last_report,
            });
            one.pods += 1;
            one.since = one.since.min(*created);
        }
        let is_silent = |one: &MissingReports| {
            let last = one.last_report.unwrap_or(one.since).max(one.since);
            now - last > QUIET
        };
        silent.into_values().filter(is_silent).collect()
    }
}

impl Schedulers {
    /// What leases and reports show at `now`.
    pub fn new(leases: &Leases, reports: &PodReports, now: Time) -> Schedulers {
        let silent = reports.silent(now);
        let named = |name: Name| {
            let text = name.text();
            let reported = || Some(reports.last.contains_key(&Symbol::known(&text)?));
            text == DEFAULT.1 || text.contains("scheduler") || reported().unwrap_or(false)
        };
        // One that reported after its lease ended runs without leader election.
        let is_in_use = |lease: &&Lease| {
            let end = |at: Time| at.0 + lease.spec.lease_duration_seconds * 1_000_000;
            let report = reports.last.get(&scheduler_of(lease.metadata.name));
            report.zip(lease.spec.renew_time).is_none_or(|(report, at)| report.0 <= end(at))
        };
        let of_scheduler =
            leases.leases.iter().filter(|lease| named(lease.metadata.name)).filter(is_in_use);
        let mut leases_found: Vec<SchedulerLease> = of_scheduler
            .map(|lease| {
                let (metadata, spec) = (&lease.metadata, &lease.spec);
                let end = |at: Time| at.0 + spec.lease_duration_seconds * 1_000_000;
                SchedulerLease {
                    lease: NamespacedName::new(metadata.namespace, metadata.name),
                    holder: spec.holder_identity.clone(),
                    acquired: spec.acquire_time,
                    renewed: spec.renew_time,
                    seconds: spec.lease_duration_seconds,
                    expired: spec.renew_time.is_some_and(|at| end(at) < now.0),
                }
            })
            .collect();
        leases_found.sort_by_key(|lease| lease.lease);
        Schedulers { as_of: now, leases: leases_found, silent, versions: versions(leases) }
    }

    /// Whether both print the same report.
    pub fn reports_equal(&self, other: &Schedulers) -> bool {
        let leases = |all: &Schedulers| -> Vec<_> {
            let key = |one: &SchedulerLease| (one.lease, one.holder.clone(), one.expired);
            all.leases.iter().map(key).collect()
        };
        let silent = |all: &Schedulers| -> Vec<Symbol> {
            all.silent.iter().map(|one| one.scheduler).collect()
        };
        leases(self) == leases(other)
            && silent(self) == silent(other)
            && self.versions == other.versions
    }

    /// Why no scheduler serves the pods of a scheduler name, in a sentence, if that is so.
    pub fn absence(&self, scheduler: Symbol, now: Time) -> Option<String> {
        let lease = self.lease_of(scheduler);
        if let Some(lease) = lease.filter(|lease| lease.holder.is_empty() || lease.expired) {
            return Some(lease.describe(now));
        }
        let silence = self.silent.iter().find(|one| one.scheduler == scheduler)?;
        Some(silence.describe(lease.is_some(), now))
    }

    /// The first reason why no scheduler serves a pod that waits.
    pub fn first_absence(&self, now: Time) -> Option<String> {
        let silent = self.silent.iter().map(|one| one.scheduler);
        let mut names = std::iter::once(Symbol::new(DEFAULT.0)).chain(silent);
        names.find_map(|name| self.absence(name, now))
    }

    /// The differing versions of the replicas of a lease, in words.
    pub fn version_words(&self) -> Option<String> {
        let first = self.versions.first()?;
        let of_lease = self.versions.iter().filter(|one| one.lease == first.lease);
        let words = of_lease.map(|one| format!("{} runs {}", one.replica, one.version));
        let words: Vec<String> = words.collect();
        Some(format!(
            "the replicas of {} have different versions: {}",
            first.lease,
            words.join(", ")
        ))
    }

    /// The lease of the replicas that serve a scheduler name. kube-scheduler's own replicas share
    /// one; for another scheduler it has the scheduler's name, if it is known at all.
    pub(crate) fn lease_of(&self, scheduler: Symbol) -> Option<&SchedulerLease> {
        let name = if scheduler == DEFAULT.0 { Symbol::new(DEFAULT.1) } else { scheduler };
        let mut named = self.leases.iter().filter(|lease| lease.lease.name == name);
        let first = named.next();
        // Of several leases of that name one may be left over.
        named.chain(first).max_by_key(|lease| lease.renewed)
    }
}

impl SchedulerLease {
    /// Its state in a sentence.
    pub fn describe(&self, now: Time) -> String {
        let lease = self.lease;
        let age = |at: Option<Time>| at.map(|at| span(now.0 - at.0)).unwrap_or_default();
        match (self.holder.as_str(), self.expired) {
            ("", _) => format!("no scheduler runs: no replica holds the lease {lease}"),
            (holder, true) => format!(
                "no scheduler runs: {holder} holds the lease {lease} and renewed it {} ago (valid \
                 for {}s)",
                age(self.renewed),
                self.seconds
            ),
            (holder, false) => {
                format!("{holder} holds the lease {lease} since {} ago", age(self.acquired))
            }
        }
    }
}

impl MissingReports {
    fn describe(&self, has_lease: bool, now: Time) -> String {
        let MissingReports { scheduler, pods, since, last_report } = self;
        let pods = count(*pods, "pod");
        let waits = span(now.0 - since.0);
        match last_report {
            Some(at) => format!(
                "{scheduler} has not reported on any pod for {}: {pods} without a report, the \
                 oldest for {waits}",
                span(now.0 - at.0)
            ),
            None if has_lease => format!(
                "{scheduler} holds its lease and has never reported on a pod: {pods} without a \
                 report, the oldest for {waits}"
            ),
            None => format!(
                "no scheduler {scheduler} has ever reported on a pod: {pods} without a report, the \
                 oldest for {waits}"
            ),
        }
    }
}

/// The scheduler name that the replicas of a lease serve.
fn scheduler_of(lease: Name) -> Symbol {
    if lease == DEFAULT.1 { DEFAULT.0.into() } else { lease.interned() }
}

/// The versions of the candidates of each lease whose candidates differ.
fn versions(leases: &Leases) -> Vec<ReplicaVersion> {
    let mut all: Vec<ReplicaVersion> = leases
        .candidates
        .iter()
        .map(|candidate| {
            let spec = &candidate.spec;
            let emulates =
                !spec.emulation_version.is_empty() && spec.emulation_version != spec.binary_version;
            let version = match emulates {
                true => format!("{} as {}", spec.binary_version, spec.emulation_version),
                false => spec.binary_version.clone(),
            };
            ReplicaVersion { lease: spec.lease_name, replica: candidate.metadata.name, version }
        })
        .collect();
    all.sort_by_key(|one| (one.lease, one.replica));
    let differs = |one: &ReplicaVersion| {
        one.lease.text().contains("scheduler")
            && all.iter().any(|other| other.lease == one.lease && other.version != one.version)
    };
    all.iter().filter(|one| differs(one)).cloned().collect()
}

/// A time span in whole units: `40s`, `9m`, `3h`, `2d`.
fn span(micros: i64) -> String {
    let seconds = (micros / 1_000_000).max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

impl World {
    /// What is known of the schedulers of the real cluster.
    pub fn schedulers(&self) -> &Schedulers {
        &self.api.schedulers
    }

    /// Takes over what is known of the schedulers of the real cluster.
    pub fn set_schedulers(&mut self, schedulers: Schedulers) {
        self.api.schedulers = schedulers.into();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kubestep_framework::testing::{PodBuilder, pod};

    const NOW: Time = Time(1_767_225_600_000_000);

    fn leases(renewed: &str) -> Leases {
        serde_json::from_value(json!({"leases": [
            {"metadata": {"name": "kube-scheduler", "namespace": "kube-system"}, "spec": {
                "holderIdentity": "cp-1", "leaseDurationSeconds": 15, "renewTime": renewed,
                "acquireTime": "2025-12-31T00:00:00.000000Z"}},
            {"metadata": {"name": "cloud-controller", "namespace": "kube-system"}, "spec": {}},
        ]}))
        .unwrap()
    }

    fn waiting(name: &str, scheduler: &str, minutes: i64) -> Pod {
        let mut pod = pod(name).spec(json!({"schedulerName": scheduler}));
        pod.metadata.creation_timestamp = Some(Time(NOW.0 - minutes * 60_000_000));
        pod
    }

    fn reports(pods: &[Pod]) -> PodReports {
        let mut reports = PodReports::default();
        pods.iter().for_each(|pod| reports.see(pod));
        reports
    }

    #[test]
    fn a_lease_that_nobody_renews_is_an_absence() {
        let name = Symbol::new("default-scheduler");
        let of = |leases: &Leases| {
            Schedulers::new(leases, &PodReports::default(), NOW).absence(name, NOW)
        };
        let expired = "no scheduler runs: cp-1 holds the lease kube-system/kube-scheduler and \
                       renewed it 8m ago (valid for 15s)";
        assert_eq!(of(&leases("2025-12-31T23:52:00.000000Z")).as_deref(), Some(expired));
        assert_eq!(of(&leases("2025-12-31T23:59:50.000000Z")), None);
        let mut free = leases("2025-12-31T23:59:50.000000Z");
        free.leases[0].spec.holder_identity.clear();
        assert!(
            of(&free).unwrap().ends_with("no replica holds the lease kube-system/kube-scheduler")
        );
        assert_eq!(of(&Leases::default()), None, "what is not known is not reported");
    }

    #[test]
    fn a_scheduler_that_reports_without_its_lease_is_not_absent() {
        let expired = leases("2025-12-31T23:52:00.000000Z");
        let of = |reported: &str| {
            let mut other = waiting("a", "", 30);
            let condition = json!([{"type": "PodScheduled", "status": "True",
                "lastTransitionTime": reported}]);
            other.status.conditions = serde_json::from_value(condition).unwrap();
            Schedulers::new(&expired, &reports(&[other]), NOW).first_absence(NOW)
        };
        assert_eq!(of("2025-12-31T23:59:00.000000Z"), None);
        assert!(of("2025-12-31T23:51:00.000000Z").unwrap().starts_with("no scheduler runs"));
    }

    #[test]
    fn a_scheduler_is_silent_if_it_reports_on_nothing_while_pods_wait() {
        let mut pods = vec![waiting("a", "", 9), waiting("b", "", 5), waiting("c", "batch", 20)];
        let silent = |pods: &[Pod], name: &str| {
            let found = Schedulers::new(&Leases::default(), &reports(pods), NOW);
            found.absence(name.into(), NOW).unwrap_or_default()
        };
        let text = silent(&pods, "batch");
        assert!(text.starts_with("no scheduler batch has ever reported on a pod: 1 pod"), "{text}");
        let mut other = waiting("d", "", 30);
        let condition = |minutes: i64| {
            json!([{"type": "PodScheduled", "status": "False",
                "lastTransitionTime": Time(NOW.0 - minutes * 60_000_000).to_string()}])
        };
        other.status.conditions = serde_json::from_value(condition(12)).unwrap();
        pods.push(other.clone());
        let text = silent(&pods, "default-scheduler");
        let expected = "default-scheduler has not reported on any pod for 12m: 2 pods without a \
                        report, the oldest for 9m";
        assert_eq!(text, expected);
        other.status.conditions = serde_json::from_value(condition(0)).unwrap();
        pods.push(other);
        assert_eq!(silent(&pods, "default-scheduler"), "", "it reported on another pod just now");
        assert_eq!(silent(&[waiting("a", "", 0)], "default-scheduler"), "");
    }

    #[test]
    fn versions_are_listed_if_they_differ() {
        let candidates = |versions: [&str; 2]| -> Leases {
            let one = |(at, version): (usize, &&str)| {
                json!({"metadata": {"name": format!("cp-{at}")}, "spec": {
                    "leaseName": "kube-scheduler", "binaryVersion": version,
                    "emulationVersion": "1.35.0"}})
            };
            let all: Vec<_> = versions.iter().enumerate().map(one).collect();
            serde_json::from_value(json!({"candidates": all})).unwrap()
        };
        let words = |versions| {
            Schedulers::new(&candidates(versions), &PodReports::default(), NOW).version_words()
        };
        assert_eq!(words(["1.36.2", "1.36.2"]), None);
        let sentence = words(["1.35.0", "1.36.2"]).unwrap();
        assert!(sentence.ends_with("cp-0 runs 1.35.0, cp-1 runs 1.36.2 as 1.35.0"), "{sentence}");
    }
}
