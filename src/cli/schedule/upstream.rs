//! Every flag of kube-scheduler, so that its command line can be used here: supported,
//! ignored, or rejected with a reason.

use std::collections::BTreeMap;

use clap::builder::{Arg, ArgAction};
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches};

/// How a flag is handled.
#[derive(Clone, Copy, Debug)]
pub(super) enum FlagUse {
    /// It has the same effect as in kube-scheduler.
    Taken,
    /// It is accepted and has no effect, for this reason.
    Idle(&'static str),
    /// It is rejected, for this reason: ignoring it would be misleading.
    Refused(&'static str),
}

use FlagUse::{Idle, Refused, Taken};

const CERTIFICATES: &str = "client certificates are not supported: callers need a bearer token \
                            (--authentication-kubeconfig)";
const LOGS: &str = "log lines are written unbuffered, as text, to standard error";
const GO: &str = "kubestep is not a Go program, so there are no goroutines to profile";
const HTTP2: &str = "only HTTP/1.1 is served";
const COMPATIBILITY: &str = "no feature gate of the scheduler depends on it";
const METRICS: &str = "metrics and their labels cannot be configured";
const SHARING: &str = "the port is not shared with other programs";

/// The flags, in the order of `kube-scheduler --help`.
pub(super) const TABLE: &[(&str, FlagUse)] = &[
    ("config", Taken),
    ("master", Taken),
    ("unsupported-kube-api-over-localhost", Refused("name the server with --master")),
    ("write-config-to", Taken),
    ("bind-address", Taken),
    ("cert-dir", Taken),
    ("disable-http2-serving", Idle(HTTP2)),
    ("http2-max-streams-per-connection", Idle(HTTP2)),
    ("permit-address-sharing", Refused(SHARING)),
    ("permit-port-sharing", Refused(SHARING)),
    ("secure-port", Taken),
    ("tls-cert-file", Taken),
    ("tls-cipher-suites", Taken),
    ("tls-curve-preferences", Refused("key exchanges cannot be configured")),
    ("tls-min-version", Taken),
    ("tls-private-key-file", Taken),
    ("tls-sni-cert-key", Refused("only one certificate is served: --tls-cert-file")),
    ("authentication-kubeconfig", Taken),
    ("authentication-skip-lookup", Idle("nothing is looked up in the cluster")),
    ("authentication-token-webhook-cache-ttl", Taken),
    ("authentication-tolerate-lookup-failure", Idle("nothing is looked up in the cluster")),
    ("client-ca-file", Refused(CERTIFICATES)),
    ("requestheader-allowed-names", Refused(CERTIFICATES)),
    ("requestheader-client-ca-file", Refused(CERTIFICATES)),
    ("requestheader-extra-headers-prefix", Refused(CERTIFICATES)),
    ("requestheader-group-headers", Refused(CERTIFICATES)),
    ("requestheader-uid-headers", Refused(CERTIFICATES)),
    ("requestheader-username-headers", Refused(CERTIFICATES)),
    ("authorization-always-allow-paths", Taken),
    ("authorization-kubeconfig", Taken),
    ("authorization-webhook-cache-authorized-ttl", Taken),
    ("authorization-webhook-cache-unauthorized-ttl", Taken),
    ("contention-profiling", Idle(GO)),
    ("kube-api-burst", Taken),
    ("kube-api-content-type", Idle("requests and responses are JSON")),
    ("kube-api-qps", Taken),
    ("kubeconfig", Taken),
    ("pod-max-in-unschedulable-pods-duration", Taken),
    ("profiling", Idle(GO)),
    ("leader-elect", Taken),
    ("leader-elect-lease-duration", Taken),
    ("leader-elect-renew-deadline", Taken),
    ("leader-elect-resource-lock", Taken),
    ("leader-elect-resource-name", Taken),
    ("leader-elect-resource-namespace", Taken),
    ("leader-elect-retry-period", Taken),
    ("emulated-version", Taken),
    ("feature-gates", Taken),
    ("min-compatibility-version", Idle(COMPATIBILITY)),
    ("allow-metric-labels", Refused(METRICS)),
    ("allow-metric-labels-manifest", Refused(METRICS)),
    ("disabled-metrics", Refused(METRICS)),
    ("show-hidden-metrics-for-version", Idle("there are no hidden metrics")),
    ("log-flush-frequency", Idle(LOGS)),
    ("log-json-info-buffer-size", Idle(LOGS)),
    ("log-json-split-stream", Idle(LOGS)),
    ("log-text-info-buffer-size", Idle(LOGS)),
    ("log-text-split-stream", Idle(LOGS)),
    ("logging-format", Idle(LOGS)),
    ("v", Taken),
    ("vmodule", Idle("one level applies to the whole log: --v")),
    ("help", Taken),
    ("version", Refused("\"kubestep --version\" prints it")),
];

/// The values of supported flags that are not given and have no default here: those of
/// kube-scheduler, as its `/flagz` shows them.
const DEFAULTS: &[(&str, &str)] = &[
    ("emulated-version", "[]"),
    ("kube-api-burst", "100"),
    ("kube-api-qps", "50"),
    ("leader-elect", "true"),
    ("leader-elect-lease-duration", "15s"),
    ("leader-elect-renew-deadline", "10s"),
    ("leader-elect-resource-lock", "leases"),
    ("leader-elect-resource-name", "kube-scheduler"),
    ("leader-elect-resource-namespace", "kube-system"),
    ("leader-elect-retry-period", "2s"),
    ("secure-port", "10259"),
    ("tls-cipher-suites", "[]"),
];

/// The given flags without an effect, and the values of all that have one.
#[derive(Debug, Default)]
pub(super) struct Upstream {
    idle: Vec<&'static str>,
    values: BTreeMap<String, String>,
}

impl Upstream {
    /// A notice for each given flag that has no effect.
    pub fn notices(&self) -> impl Iterator<Item = String> {
        let reason = |name: &str| match TABLE.iter().find(|row| row.0 == name) {
            Some((_, Idle(reason))) => *reason,
            _ => "",
        };
        self.idle.iter().map(move |name| format!("--{name} has no effect: {}", reason(name)))
    }

    /// The flags with their values, as `/flagz` shows them: those without an effect only if they
    /// were given.
    pub fn values(&self) -> &BTreeMap<String, String> {
        &self.values
    }
}

/// Every flag that is supported or was given, with its value.
fn values(matches: &ArgMatches) -> BTreeMap<String, String> {
    let default = |name: &str| DEFAULTS.iter().find(|row| row.0 == name).map_or("", |row| row.1);
    let taken = TABLE.iter().filter(|(name, kind)| matches!(kind, Taken) && *name != "help");
    let mut values: BTreeMap<String, String> =
        taken.map(|(name, _)| ((*name).to_owned(), default(name).to_owned())).collect();
    // clap names a group of flags after its struct.
    let flags = matches.ids().filter(|id| id.as_str().starts_with(char::is_lowercase));
    for id in flags {
        let name = if id == "verbosity" { "v".to_owned() } else { id.as_str().replace('_', "-") };
        let given = matches.get_raw(id.as_str()).into_iter().flatten();
        let given: Vec<_> = given.map(|value| value.to_string_lossy()).collect();
        let text = if given.len() > 1 { format!("[{}]", given.join(",")) } else { given.concat() };
        values.insert(name, text);
    }
    values
}

/// The flags that have no effect or are not supported, for the end of the help.
pub(super) fn help() -> String {
    let mut text = "kube-scheduler's other flags:\n".to_owned();
    for (name, kind) in TABLE {
        match kind {
            Taken => {}
            Idle(reason) => text += &format!("  --{name}: no effect: {reason}\n"),
            Refused(reason) => text += &format!("  --{name}: not supported: {reason}\n"),
        }
    }
    text
}

impl FromArgMatches for Upstream {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Upstream, clap::Error> {
        let (mut idle, values) = (Vec::new(), values(matches));
        for (name, kind) in TABLE {
            let (reason, rejected) = match kind {
                Taken => continue,
                Idle(reason) => (reason, false),
                Refused(reason) => (reason, true),
            };
            if matches.value_source(name).is_none() {
                continue;
            }
            if rejected {
                let text = format!("--{name} is not supported: {reason}\n");
                return Err(clap::Error::raw(ErrorKind::UnknownArgument, text));
            }
            idle.push(*name);
        }
        Ok(Upstream { idle, values })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Upstream::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Upstream {
    fn augment_args(command: Command) -> Command {
        let others = TABLE.iter().filter(|(_, kind)| !matches!(kind, Taken));
        others.fold(command, |command, (name, _)| {
            // Whether such a flag takes a value does not matter here.
            let arg = Arg::new(*name).long(*name).hide(true);
            command.arg(arg.num_args(0..=1).action(ArgAction::Append).default_missing_value(""))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Upstream::augment_args(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::schedule::Schedule;

    fn command() -> Command {
        Schedule::augment_args(Command::new("schedule").disable_version_flag(true))
    }

    fn parse(flags: &str) -> Result<Schedule, clap::Error> {
        let matches = command()
            .try_get_matches_from(std::iter::once("schedule").chain(flags.split_whitespace()))?;
        Schedule::from_arg_matches(&matches)
    }

    #[test]
    fn every_flag_that_is_taken_is_one() {
        let command = command();
        for (name, kind) in TABLE.iter().filter(|(name, _)| *name != "help") {
            let arg = command.get_arguments().find(|arg| arg.get_long() == Some(name));
            let arg = arg.unwrap_or_else(|| panic!("--{name}"));
            assert_eq!(arg.is_hide_set(), !matches!(kind, Taken), "--{name}");
        }
    }

    #[test]
    fn the_command_line_of_a_cluster_is_understood() {
        let line = "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf \
                    --authorization-kubeconfig=/etc/kubernetes/scheduler.conf \
                    --bind-address=127.0.0.1 --kubeconfig=/etc/kubernetes/scheduler.conf \
                    --leader-elect=true --profiling=false --logging-format json --v=2";
        let notices: Vec<String> = parse(line).unwrap().upstream.notices().collect();
        assert_eq!(notices.len(), 2, "{notices:?}");
        assert!(notices[0].starts_with("--profiling has no effect: "), "{notices:?}");
    }

    #[test]
    fn values_are_those_given_or_kube_schedulers() {
        let parsed = parse("--kube-api-qps=20 --authorization-always-allow-paths=/a,/b --v 2");
        let upstream = parsed.unwrap().upstream;
        let value = |name: &str| upstream.values().get(name).map(String::as_str);
        assert_eq!(value("kube-api-qps"), Some("20"));
        assert_eq!(value("kube-api-burst"), Some("100"));
        assert_eq!(value("leader-elect-resource-name"), Some("kube-scheduler"));
        assert_eq!(value("authorization-always-allow-paths"), Some("[/a,/b]"));
        assert_eq!(value("v"), Some("2"));
        assert_eq!(value("dry-run"), Some("false"));
        assert_eq!(value("profiling"), None);
        let taken = TABLE.iter().filter(|(name, kind)| matches!(kind, Taken) && *name != "help");
        for (name, _) in taken {
            assert!(value(name).is_some(), "--{name}");
        }
        assert!(DEFAULTS.iter().all(|(name, _)| TABLE.iter().any(|row| row.0 == *name)));
        let ids: Vec<&String> = upstream.values().keys().collect();
        assert!(ids.iter().all(|id| *id == &id.to_lowercase()), "no groups: {ids:?}");
    }

    #[test]
    fn what_would_be_missed_is_rejected() {
        let error = parse("--client-ca-file=ca.crt").unwrap_err().to_string();
        assert!(
            error.contains("--client-ca-file is not supported: client certificates"),
            "{error}"
        );
    }
}
