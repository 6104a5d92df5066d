//! The checks behind `/healthz`, `/livez` and `/readyz`, and how they are told.
//!
//! Upstream: `staging/src/k8s.io/apiserver/pkg/server/healthz`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

/// How the scheduler is, as it says itself.
#[derive(Debug, Default)]
pub struct Health {
    /// Whether the cluster was read and is followed.
    pub followed: AtomicBool,
    /// Whether the lease, if there is one, was not lost.
    pub alive: AtomicBool,
    /// Whether a lease is taken.
    elects: bool,
}

/// A check: its name, and whether it is passed.
type Check = (&'static str, bool);

impl Health {
    /// Of a scheduler that has just begun, and does or does not take a lease.
    pub fn new(elects: bool) -> Health {
        Health { followed: AtomicBool::new(false), alive: AtomicBool::new(true), elects }
    }

    /// Answers for the path of a group of checks, or of one of them, and what is asked behind it:
    /// `verbose` and `exclude=NAME`. What each check of a group came to is told to `seen`, with
    /// the group and the check. `None`: it is no such path. `true`: all is well.
    pub fn answer(
        &self,
        path: &str,
        query: &str,
        mut seen: impl FnMut(&str, &str, bool),
    ) -> Option<(bool, String)> {
        let (group, check) = match path.trim_start_matches('/').split_once('/') {
            Some((group, check)) => (group, Some(check)),
            None => (path.trim_start_matches('/'), None),
        };
        let checks = self.checks(group)?;
        match check {
            None => {
                let asked = Asked::of(query);
                let counted = checks.iter().filter(|(name, _)| !asked.excluded.contains(name));
                counted.for_each(|(name, fine)| seen(group, name, *fine));
                Some(told(group, &checks, &asked))
            }
            Some(name) => {
                let (_, fine) = checks.into_iter().find(|check| check.0 == name)?;
                let text = if fine { "ok" } else { "internal server error: reason withheld\n" };
                Some((fine, text.to_owned()))
            }
        }
    }

    fn checks(&self, group: &str) -> Option<Vec<Check>> {
        let elected = ("leaderElection", self.alive.load(Ordering::Relaxed));
        let elected = Some(elected).filter(|_| self.elects);
        let followed = ("sched-handler-sync", self.followed.load(Ordering::Relaxed));
        let ping = || vec![("ping", true)];
        Some(match group {
            "livez" => ping(),
            "healthz" => elected.map_or_else(ping, |check| vec![check]),
            "readyz" => elected.into_iter().chain([("shutdown", true), followed]).collect(),
            _ => return None,
        })
    }
}

/// What stands behind the path.
struct Asked<'a> {
    verbose: bool,
    excluded: BTreeSet<&'a str>,
}

impl<'a> Asked<'a> {
    fn of(query: &'a str) -> Asked<'a> {
        let parts = || query.split('&').map(|part| part.split_once('=').unwrap_or((part, "")));
        Asked {
            verbose: parts().any(|(name, _)| name == "verbose"),
            excluded: parts()
                .filter(|(name, _)| *name == "exclude")
                .map(|(_, check)| check)
                .collect(),
        }
    }
}

/// `ok`, or what became of each check.
fn told(group: &str, checks: &[Check], asked: &Asked<'_>) -> (bool, String) {
    let is_excluded = |(name, _): &Check| asked.excluded.contains(name);
    let fine = checks.iter().all(|check| check.1 || is_excluded(check));
    if fine && !asked.verbose {
        return (true, "ok".to_owned());
    }
    let line = |check: &Check| match check {
        (name, _) if is_excluded(check) => format!("[+]{name} excluded: ok\n"),
        (name, true) => format!("[+]{name} ok\n"),
        (name, false) => format!("[-]{name} failed: reason withheld\n"),
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
    fn a_check_has_a_path_of_its_own() {
        let health = Health::new(true);
        let answer = |path: &str| health.answer(path, "", |_, _, _| ());
        assert_eq!(answer("/readyz/shutdown"), Some((true, "ok".into())));
        assert!(!answer("/readyz/sched-handler-sync").unwrap().0);
        assert_eq!(answer("/livez/leaderElection"), None);
        assert_eq!(answer("/metrics"), None);
        health.alive.store(false, Ordering::Relaxed);
        assert!(!answer("/healthz").unwrap().0);
        assert!(answer("/livez").unwrap().0);
        assert!(Health::new(false).answer("/healthz/ping", "", |_, _, _| ()).unwrap().0);
    }

    #[test]
    fn checks_can_be_excluded() {
        let health = Health::new(false);
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
