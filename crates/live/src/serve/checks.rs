//! The checks behind `/healthz`, `/livez` and `/readyz`, and their reports: a group without
//! reasons, because anonymous callers may read it, and each check alone with its reason.
//!
//! Upstream: `staging/src/k8s.io/apiserver/pkg/server/healthz`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

/// The health of the scheduler, as it reports it.
#[derive(Debug, Default)]
pub struct Health {
    /// Whether the cluster was listed and is followed.
    pub followed: AtomicBool,
    /// Whether the lease, if one is used, was lost.
    pub lost: AtomicBool,
    /// Whether the process is shutting down.
    pub ending: AtomicBool,
    /// The name of the lease; empty: none is used.
    lease: String,
}

/// The name of a check, and its error.
type Check = (&'static str, Result<(), String>);

impl Health {
    /// The health of a scheduler that starts now. `lease` is the name of its lease; empty: none is
    /// used.
    pub fn new(lease: &str) -> Health {
        Health { lease: lease.to_owned(), ..Health::default() }
    }

    /// Answers the path of a group of checks or of one check, with its query: `verbose` and
    /// `exclude=NAME`. Passes the result of each check of a group to `seen`, with the names of
    /// group and check. Returns whether all checks pass, and the text; `None`: it is not such a
    /// path.
    pub fn answer(
        &self,
        path: &str,
        query: &str,
        mut seen: impl FnMut(&str, &str, bool),
    ) -> Option<(bool, String)> {
        let path = path.strip_prefix('/')?;
        let Some((group, name)) = path.split_once('/') else {
            let (checks, asked) = (self.checks(path)?, CheckRequest::of(query));
            let counted = checks.iter().filter(|(name, _)| !asked.excluded.contains(name));
            counted.for_each(|(name, result)| seen(path, name, result.is_ok()));
            return Some(summary(path, &checks, &asked));
        };
        let (_, result) = self.checks(group)?.into_iter().find(|check| check.0 == name)?;
        Some(match result {
            Ok(()) => (true, "ok".to_owned()),
            Err(reason) => (false, format!("internal server error: {reason}\n")),
        })
    }

    /// The paths that are served.
    pub fn paths(&self) -> impl Iterator<Item = String> {
        let groups = ["healthz", "livez", "readyz"].into_iter();
        groups.flat_map(|group| {
            let checks = self.checks(group).unwrap_or_default().into_iter();
            let each = checks.map(move |(name, _)| format!("/{group}/{name}"));
            std::iter::once(format!("/{group}")).chain(each)
        })
    }

    fn checks(&self, group: &str) -> Option<Vec<Check>> {
        let check = |fine: bool, reason: &dyn Fn() -> String| fine.then_some(()).ok_or_else(reason);
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        let ping = || vec![("ping", Ok(()))];
        let elected = (!self.lease.is_empty()).then(|| {
            let lost = || format!("failed election to renew leadership on lease {}", self.lease);
            ("leaderElection", check(!is(&self.lost), &lost))
        });
        let ending = check(!is(&self.ending), &|| "process is shutting down".into());
        let unread = || "handlers are not fully synchronized".into();
        let followed = check(is(&self.followed), &unread);
        let ready = [("shutdown", ending), ("sched-handler-sync", followed)];
        Some(match group {
            "livez" => ping(),
            "healthz" => elected.map_or_else(ping, |check| vec![check]),
            "readyz" => elected.into_iter().chain(ready).collect(),
            _ => return None,
        })
    }
}

/// The query of a health check.
struct CheckRequest<'a> {
    verbose: bool,
    excluded: BTreeSet<&'a str>,
}

impl<'a> CheckRequest<'a> {
    fn of(query: &'a str) -> CheckRequest<'a> {
        let parts = || query.split('&').map(|part| part.split_once('=').unwrap_or((part, "")));
        CheckRequest {
            verbose: parts().any(|(name, _)| name == "verbose"),
            excluded: parts()
                .filter(|(name, _)| *name == "exclude")
                .map(|(_, check)| check)
                .collect(),
        }
    }
}

/// `ok`, or the result of each check.
fn summary(group: &str, checks: &[Check], asked: &CheckRequest<'_>) -> (bool, String) {
    let is_excluded = |(name, _): &Check| asked.excluded.contains(name);
    let fine = checks.iter().all(|check| check.1.is_ok() || is_excluded(check));
    if fine && !asked.verbose {
        return (true, "ok".to_owned());
    }
    let line = |check: &Check| match check {
        (name, _) if is_excluded(check) => format!("[+]{name} excluded: ok\n"),
        (name, Ok(())) => format!("[+]{name} ok\n"),
        (name, Err(_)) => format!("[-]{name} failed: reason withheld\n"),
    };
    let mut lines: String = checks.iter().map(line).collect();
    let unknown =
        asked.excluded.iter().filter(|name| checks.iter().all(|(known, _)| known != *name));
    let unknown: Vec<String> = unknown.map(|name| format!("{name:?}")).collect();
    if !unknown.is_empty() {
        let names = unknown.join(",");
        lines += &format!("warn: some health checks cannot be excluded: no matches for {names}\n");
    }
    (fine, format!("{lines}{group} check {}\n", if fine { "passed" } else { "failed" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_has_a_path_of_its_own_that_gives_the_reason() {
        let health = Health::new("main");
        let answer = |path: &str| health.answer(path, "", |_, _, _| ());
        let failed = |reason: &str| Some((false, format!("internal server error: {reason}\n")));
        assert_eq!(answer("/readyz/shutdown"), Some((true, "ok".into())));
        let unread = failed("handlers are not fully synchronized");
        assert_eq!(answer("/readyz/sched-handler-sync"), unread);
        assert_eq!(answer("/livez/leaderElection"), None);
        assert_eq!(answer("/metrics"), None);
        assert_eq!(answer("readyz"), None);
        health.lost.store(true, Ordering::Relaxed);
        let lost = failed("failed election to renew leadership on lease main");
        assert_eq!(answer("/healthz/leaderElection"), lost);
        assert!(!answer("/healthz").unwrap().0);
        assert!(answer("/livez").unwrap().0);
        assert!(Health::new("").answer("/healthz/ping", "", |_, _, _| ()).unwrap().0);
        health.ending.store(true, Ordering::Relaxed);
        assert_eq!(answer("/readyz/shutdown"), failed("process is shutting down"));
    }

    #[test]
    fn every_path_is_answered() {
        let health = Health::new("main");
        let paths: Vec<String> = health.paths().collect();
        assert_eq!(paths.len(), 8, "{paths:?}");
        assert!(paths.iter().all(|path| health.answer(path, "", |_, _, _| ()).is_some()));
    }

    #[test]
    fn checks_can_be_excluded() {
        let health = Health::new("");
        let mut seen = Vec::new();
        let query = "exclude=sched-handler-sync&verbose&exclude=etcd&exclude=b";
        let answer = health.answer("/readyz", query, |group, check, fine| {
            seen.push(format!("{group} {check} {fine}"));
        });
        let text = "[+]shutdown ok\n[+]sched-handler-sync excluded: ok\nwarn: some health checks \
                    cannot be excluded: no matches for \"b\",\"etcd\"\nreadyz check passed\n";
        assert_eq!(answer, Some((true, text.into())));
        assert_eq!(seen, ["readyz shutdown true"]);
    }
}
