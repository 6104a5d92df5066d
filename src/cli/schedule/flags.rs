//! kube-scheduler's flags for its client and its lease. A flag on the command line overrides the
//! configuration.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;

use kubestep_api::Duration as Written;
use kubestep_config::types::{ClientConnectionConfiguration, LeaderElectionConfiguration};
use kubestep_live::lease::{LeaseSettings, identity};
use kubestep_live::write::{WriteOptions, hostname};

/// How fast it writes.
#[derive(Args, Debug)]
#[command(next_help_heading = "Client")]
pub(super) struct Client {
    /// Sustained writes per second; not limited if negative. Overrides clientConnection.qps of the
    /// configuration
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    kube_api_qps: Option<f32>,
    /// Burst of writes after a pause. Overrides clientConnection.burst
    #[arg(long, value_name = "N")]
    kube_api_burst: Option<u32>,
}

/// Who schedules where several replicas run.
#[derive(Args, Debug)]
#[command(next_help_heading = "Leader election")]
pub(super) struct LeaderElection {
    /// Schedule only while holding a lease, so that several replicas can run; true unless the
    /// configuration says otherwise
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true")]
    leader_elect: Option<bool>,
    /// How long other replicas wait after the last renewal before they take the lease
    #[arg(long, value_name = "TIME", value_parser = time)]
    leader_elect_lease_duration: Option<Duration>,
    /// How long the leader tries to renew the lease before it exits
    #[arg(long, value_name = "TIME", value_parser = time)]
    leader_elect_renew_deadline: Option<Duration>,
    /// How often replicas renew the lease or try to take it
    #[arg(long, value_name = "TIME", value_parser = time)]
    leader_elect_retry_period: Option<Duration>,
    /// The kind of lock; only leases is supported
    #[arg(long, value_name = "KIND", value_parser = ["leases"])]
    leader_elect_resource_lock: Option<String>,
    /// The lease's name
    #[arg(long, value_name = "NAME")]
    leader_elect_resource_name: Option<String>,
    /// The lease's namespace
    #[arg(long, value_name = "NAMESPACE")]
    leader_elect_resource_namespace: Option<String>,
}

/// Parses a duration in Go's notation.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    let written = Written::parse(text).and_then(positive);
    written.ok_or_else(|| "a duration above 0 is required, such as 15s or 1m30s".to_owned())
}

fn positive(written: Written) -> Option<Duration> {
    let nanos = u64::try_from(written.nanos).ok().filter(|nanos| *nanos > 0)?;
    Some(Duration::from_nanos(nanos))
}

impl Client {
    /// The options of writes.
    pub fn write_options(&self, config: &ClientConnectionConfiguration) -> WriteOptions {
        WriteOptions {
            qps: self.kube_api_qps.unwrap_or(config.qps),
            burst: self.kube_api_burst.unwrap_or(config.burst.try_into().unwrap_or(0)),
            dry_run: false,
        }
    }
}

impl LeaderElection {
    /// The lease to acquire; `None` without leader election.
    ///
    /// # Errors
    /// The durations contradict each other.
    pub fn settings(&self, config: &LeaderElectionConfiguration) -> Result<Option<LeaseSettings>> {
        if !self.leader_elect.unwrap_or(config.leader_elect) {
            return Ok(None);
        }
        let chosen = |flag: Option<Duration>, written| {
            flag.or(positive(written)).unwrap_or(Duration::from_secs(1))
        };
        let settings = LeaseSettings {
            namespace: text(&self.leader_elect_resource_namespace, &config.resource_namespace),
            name: text(&self.leader_elect_resource_name, &config.resource_name),
            identity: identity(&hostname()),
            lease: chosen(self.leader_elect_lease_duration, config.lease_duration),
            deadline: chosen(self.leader_elect_renew_deadline, config.renew_deadline),
            retry: chosen(self.leader_elect_retry_period, config.retry_period),
        };
        if settings.lease <= settings.deadline {
            bail!(
                "--leader-elect-lease-duration ({:?}) must be longer than \
                 --leader-elect-renew-deadline ({:?}): otherwise two replicas could lead at once",
                settings.lease,
                settings.deadline
            );
        }
        if settings.deadline <= settings.retry.mul_f64(1.2) {
            bail!(
                "--leader-elect-renew-deadline ({:?}) must be longer than 1.2 times \
                 --leader-elect-retry-period ({:?}): otherwise nothing would be tried twice",
                settings.deadline,
                settings.retry
            );
        }
        Ok(Some(settings))
    }
}

fn text(flag: &Option<String>, config: &str) -> String {
    flag.clone().unwrap_or_else(|| config.to_owned())
}

/// The kubeconfig that a configuration names. Errors in the configuration are reported later.
pub(super) fn kubeconfig_in(config: &str) -> Option<PathBuf> {
    let document: serde_yaml::Value = kubestep_api::yaml::from_str(config).ok()?;
    let path = document.get("clientConnection")?.get("kubeconfig")?.as_str()?;
    (!path.is_empty()).then(|| path.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use kubestep_config as config;
    use kubestep_config::FeatureGates;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        client: Client,
        #[command(flatten)]
        election: LeaderElection,
    }

    fn settings(flags: &str) -> Result<Option<LeaseSettings>> {
        let flags = Flags::parse_from(std::iter::once("x").chain(flags.split_whitespace()));
        let (features, registry) = (FeatureGates::default(), crate::plugins::registry());
        let config = config::resolve(None, &features, &registry.descriptors()).unwrap();
        flags.election.settings(&config.document.leader_election)
    }

    #[test]
    fn a_flag_counts_more_than_the_configuration() {
        let default = settings("").unwrap().unwrap();
        assert_eq!(
            (default.namespace.as_str(), default.name.as_str()),
            ("kube-system", "kube-scheduler")
        );
        assert_eq!(default.lease, Duration::from_secs(15));
        assert!(settings("--leader-elect=false").unwrap().is_none());
        let own = settings("--leader-elect --leader-elect-lease-duration 1m").unwrap().unwrap();
        assert_eq!(own.lease, Duration::from_secs(60));
        assert_ne!(own.identity, default.identity);
    }

    #[test]
    fn times_that_would_let_two_lead_are_rejected() {
        let text = settings("--leader-elect-lease-duration 5s").unwrap_err().to_string();
        assert!(text.contains("two replicas could lead"), "{text}");
        assert!(settings("--leader-elect-retry-period 9s").is_err());
    }

    #[test]
    fn a_configuration_may_name_a_kubeconfig() {
        let config = "clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}";
        assert_eq!(kubeconfig_in(config), Some("/etc/kubernetes/scheduler.conf".into()));
        assert_eq!(kubeconfig_in("{}"), None);
    }
}
