//! The checks behind `/healthz`, `/livez` and `/readyz`, and how they are told.
//!
//! Upstream: `staging/src/k8s.io/apiserver/pkg/server/healthz`.

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

    /// Answers for the path of a group of checks, or of one of them. `None`: it is no such path.
    /// `true`: all is well.
    pub fn answer(&self, path: &str, verbose: bool) -> Option<(bool, String)> {
        let (group, check) = match path.trim_start_matches('/').split_once('/') {
            Some((group, check)) => (group, Some(check)),
            None => (path.trim_start_matches('/'), None),
        };
        let checks = self.checks(group)?;
        match check {
            None => Some(told(group, &checks, verbose)),
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

/// `ok`, or what became of each check.
fn told(group: &str, checks: &[Check], verbose: bool) -> (bool, String) {
    let fine = checks.iter().all(|(_, fine)| *fine);
    if fine && !verbose {
        return (true, "ok".to_owned());
    }
    let line = |(name, fine): &Check| match fine {
        true => format!("[+]{name} ok\n"),
        false => format!("[-]{name} failed: reason withheld\n"),
    };
    let lines: String = checks.iter().map(line).collect();
    (fine, format!("{lines}{group} check {}\n", if fine { "passed" } else { "failed" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_has_a_path_of_its_own() {
        let health = Health::new(true);
        assert_eq!(health.answer("/readyz/shutdown", false), Some((true, "ok".into())));
        assert!(!health.answer("/readyz/sched-handler-sync", false).unwrap().0);
        assert_eq!(health.answer("/livez/leaderElection", false), None);
        assert_eq!(health.answer("/metrics", false), None);
        health.alive.store(false, Ordering::Relaxed);
        assert!(!health.answer("/healthz", false).unwrap().0);
        assert!(health.answer("/livez", false).unwrap().0);
        assert!(Health::new(false).answer("/healthz/ping", false).unwrap().0);
    }
}
