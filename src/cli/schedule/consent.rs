//! Confirmation before anything is written: shows what, where, and as which user.

use std::io::{BufRead, IsTerminal, stdin};

use anyhow::{Result, bail};

use kubestep_cluster::World;
use kubestep_live::lease::LeaseSettings;
use kubestep_live::write::rights;

/// What is to be confirmed.
pub(super) struct Consent<'a> {
    /// Name of the kubeconfig's context.
    pub context: &'a str,
    /// URL of the API server.
    pub server: &'a str,
    /// The cluster with the scheduler.
    pub world: &'a World,
    /// The lease that will be taken.
    pub election: Option<&'a LeaseSettings>,
    /// Whether all writes are sent with dryRun=All.
    pub dry_run: bool,
}

impl Consent<'_> {
    /// Shows what will be written and asks for confirmation, except with `--yes-write` or if
    /// nothing is changed. `false`: the answer was no.
    ///
    /// # Errors
    /// There is no terminal to ask on.
    pub fn given(&self, yes_write: bool) -> Result<bool> {
        self.lines().iter().for_each(kubestep_output::line);
        if yes_write || self.dry_run {
            return Ok(true);
        }
        if !stdin().is_terminal() || !kubestep_output::stderr_is_terminal() {
            bail!(
                "there is no terminal to ask on whether to write to {}: --yes-write allows it, \
                 --dry-run sends every write with dryRun=All",
                self.context
            );
        }
        kubestep_output::ask(format!("Write to {}? Type its name to allow it: ", self.context));
        let mut answer = String::new();
        stdin().lock().read_line(&mut answer)?;
        let agreed = answer.trim() == self.context;
        if !agreed {
            kubestep_output::line("Nothing was written.");
        }
        Ok(agreed)
    }

    fn lines(&self) -> Vec<String> {
        let profiles = self.world.scheduler().frameworks().keys();
        let profiles: Vec<&str> = profiles.map(|name| name.as_str()).collect();
        let (context, server) = (self.context, self.server);
        let how = match self.dry_run {
            true => "will send dry-run writes (dryRun=All, nothing changes)",
            false => "will write",
        };
        let version = self.world.scheduler().features().version_words();
        let mut lines = vec![
            format!(
                "kubestep {how} to the cluster {context} ({server}) as kube-scheduler {version}"
            ),
            format!("for pods whose schedulerName is {}:", profiles.join(", ")),
        ];
        let writes = rights::lines(self.election.is_some());
        lines.extend(writes.into_iter().map(|line| format!("  {line}")));
        lines.push(match self.election {
            Some(lease) => {
                let (namespace, name) = (&lease.namespace, &lease.name);
                format!("It schedules while it holds the lease {namespace}/{name}.")
            }
            None => "It takes no lease: no other scheduler may serve the same pods.".into(),
        });
        lines
    }
}
