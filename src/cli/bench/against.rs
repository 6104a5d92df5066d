//! `kubestep bench --against`: runs in a real cluster, after confirmation.

use std::io::{BufRead, IsTerminal, stdin};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Result, bail};

use super::Bench;
use crate::cli::cluster::explained;
use kubestep_api::words::count;
use kubestep_config::FeatureGates;
use kubestep_live::KubeconfigTarget;
use kubestep_live::bench::ClusterTarget;
use kubestep_source::Captured;

/// The cluster in which workloads run.
pub(super) struct RealCluster {
    kubeconfig: PathBuf,
    context: Option<String>,
    gates: FeatureGates,
    /// Whether Ctrl-C was typed.
    interrupted: Arc<AtomicBool>,
}

impl RealCluster {
    /// Connects, and follows the cluster's pods from then on.
    pub fn open(&self) -> Result<ClusterTarget> {
        let kubeconfig = Some(self.kubeconfig.clone());
        let target = KubeconfigTarget {
            kubeconfig,
            context: self.context.clone(),
            server: None,
            verbose: false,
        };
        let opened = ClusterTarget::open(target, self.gates, self.interrupted.clone());
        opened.map_err(explained)
    }
}

impl Bench {
    /// The cluster of `--against`, once its user has confirmed. `None`: the answer was no.
    ///
    /// # Errors
    /// It cannot be reached, or there is no terminal to ask on.
    pub(super) fn real_cluster(&self, workloads: usize) -> Result<Option<Option<RealCluster>>> {
        let Some(kubeconfig) = self.against.clone() else { return Ok(Some(None)) };
        let gates = self.scheduler.choose(&Captured::default())?.gates;
        let interrupted = Arc::new(AtomicBool::new(false));
        let context = self.against_context.clone();
        let real = RealCluster { kubeconfig, context, gates, interrupted };
        let target = real.open()?;
        let (context, server) = target.names();
        kubestep_output::line(format!(
            "{} will create nodes, pods and other objects in {context} ({server}), which has {}, \
             and delete them again",
            count(workloads, "workload"),
            count(target.pods_before(), "pod")
        ));
        if !self.yes_create_objects && !agreed(context)? {
            return Ok(None);
        }
        // The first Ctrl-C ends the workload, which then deletes what it created.
        let flag = real.interrupted.clone();
        signal_hook::flag::register(signal_hook::consts::SIGINT, flag)?;
        Ok(Some(Some(real)))
    }
}

fn agreed(context: &str) -> Result<bool> {
    if !stdin().is_terminal() || !kubestep_output::stderr_is_terminal() {
        bail!(
            "there is no terminal to ask on whether to create objects in {context}: \
             --yes-create-objects allows it"
        );
    }
    kubestep_output::ask(format!("Create objects in {context}? Type its name to allow it: "));
    let mut answer = String::new();
    stdin().lock().read_line(&mut answer)?;
    let agreed = answer.trim() == context;
    if !agreed {
        kubestep_output::line("Nothing was created.");
    }
    Ok(agreed)
}
