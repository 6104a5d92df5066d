//! `kubestep capture`: the current state of a cluster as a file that `-f` reads.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::cli::cluster;
use crate::cli::exit::Exit;
use crate::cli::open::read_config;
use crate::cli::options::{Cluster, Destination, Redact};
use crate::cli::plugins::gates;
use crate::cli::registry::Subcommand;
use kubestep_live::Snapshot;
use kubestep_live::capture::{self, Settings};
use kubestep_live::record::{Output, missing_kinds};
use kubestep_live::redact::Redactor;

/// Write a snapshot of a cluster to a file that -f reads
#[derive(Args, Debug)]
pub(super) struct Capture {
    #[command(flatten)]
    cluster: Cluster,
    #[command(flatten)]
    destination: Destination,
    /// Take only this namespace's objects; may be repeated
    #[arg(short = 'n', long = "namespace", value_name = "NAMESPACE")]
    namespaces: Vec<String>,
    /// The scheduler's configuration, to include in the capture
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The scheduler's feature gates, to include in the capture: Name=true,Name=false
    #[arg(long, value_name = "GATES")]
    feature_gates: Option<String>,
    #[command(flatten)]
    redact: Redact,
}

impl Subcommand for Capture {
    const NAME: &'static str = "capture";

    /// Lists the cluster and writes the file.
    fn run(&self) -> Result<Exit> {
        let mut settings = settings(self.config.as_deref(), self.feature_gates.as_deref())?;
        let Destination { output: path, .. } = &self.destination;
        let (links, file) = (self.destination.links(), self.destination.name());
        Output::check(path, links).with_context(|| file.clone())?;
        let (mut snapshot, name) = cluster::snapshot(&self.cluster, &self.namespaces)?;
        if self.redact.redact {
            redact(&mut snapshot, &mut settings);
        }
        let text = capture::text(&snapshot, &settings)?;
        let mut output = Output::create(path, links).with_context(|| file.clone())?;
        let written = output.write_all(text.as_bytes()).and_then(|()| output.finish());
        match written {
            // The reader closed the pipe early.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            written => written.with_context(|| file.clone())?,
        }
        for notice in snapshot.notices() {
            kubestep_output::line(notice);
        }
        let objects = snapshot.objects().count();
        kubestep_output::line(format!(
            "{objects} objects of {name} ({}) in {file}",
            snapshot.server_version
        ));
        Ok(Exit::Fine)
    }
}

/// Pseudonymizes the snapshot and the settings.
fn redact(snapshot: &mut Snapshot, settings: &mut Settings) {
    let mut redactor = Redactor::new(snapshot.objects());
    // Holders are names of machines.
    snapshot.leases = None;
    let parts = snapshot.parts.iter_mut().flat_map(|part| &mut part.listed.objects);
    parts.for_each(|object| *object = redactor.object(object));
    settings.scheduler_config =
        settings.scheduler_config.take().map(|config| redactor.config(config));
    settings.missing = Some(redactor.missing(&missing_kinds(snapshot)));
}

/// The scheduler's settings, validated before the cluster is contacted.
pub(super) fn settings(config: Option<&Path>, feature_gates: Option<&str>) -> Result<Settings> {
    let features = gates(feature_gates)?;
    let feature_gates = feature_gates.map(str::to_owned);
    let mut settings = Settings { feature_gates, ..Settings::default() };
    if let Some(path) = config {
        let (text, from) = (read_config(path)?, path.display().to_string());
        kubestep_config::resolve(
            Some(&text),
            &features,
            &kubestep_plugins::registry().descriptors(),
        )
        .context(from.clone())?;
        settings.scheduler_config = Some(kubestep_api::yaml::from_str(&text).context(from)?);
    }
    Ok(settings)
}
