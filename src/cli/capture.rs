//! `kubestep capture`: the current state of a cluster as a file that `-f` reads.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;

use crate::cli::cluster;
use crate::cli::exit::Exit;
use crate::cli::open::read_config;
use crate::cli::options::{ClusterOptions, DestinationOptions, Redact, UnknownPluginPolicy};
use crate::cli::registry::Subcommand;
use crate::cli::version::Scheduler;
use kubestep_config::UnknownPlugins;
use kubestep_live::ClusterSnapshot;
use kubestep_live::capture::{self, CaptureSettings};
use kubestep_live::record::{RecordingOutput, missing_kinds};
use kubestep_live::redact::Redactor;
use kubestep_source::{Auxiliary, Captured};

/// Write a snapshot of a cluster to a file that -f reads
#[derive(Args, Debug)]
pub(super) struct Capture {
    #[command(flatten)]
    cluster: ClusterOptions,
    #[command(flatten)]
    destination: DestinationOptions,
    /// Take only this namespace's objects; may be repeated
    #[arg(short = 'n', long = "namespace", value_name = "NAMESPACE")]
    namespaces: Vec<String>,
    /// The scheduler's configuration, to include in the capture
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    unknown: UnknownPluginPolicy,
    #[command(flatten)]
    scheduler: Scheduler,
    #[command(flatten)]
    redact: Redact,
}

impl Subcommand for Capture {
    const NAME: &'static str = "capture";

    /// Lists the cluster and writes the file.
    fn run(&self) -> Result<Exit> {
        let given = GivenSettings::read(self.config.as_deref(), &self.scheduler, &self.unknown)?;
        let DestinationOptions { output: path, .. } = &self.destination;
        let (links, file) = (self.destination.links(), self.destination.name());
        RecordingOutput::check(path, links).with_context(|| file.clone())?;
        let (mut snapshot, name) = cluster::snapshot(&self.cluster, &self.namespaces)?;
        let mut settings = given.of_server(&snapshot.server_version)?;
        if self.redact.redact {
            redact(&mut snapshot, &mut settings);
        }
        let text = capture::text(&snapshot, &settings)?;
        let mut output = RecordingOutput::create(path, links).with_context(|| file.clone())?;
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
fn redact(snapshot: &mut ClusterSnapshot, settings: &mut CaptureSettings) {
    let mut redactor = Redactor::new(snapshot.objects());
    // Holders are names of machines; messages of controllers contain names.
    snapshot.leases = None;
    snapshot.auxiliary = Auxiliary::default();
    let parts = snapshot.parts.iter_mut().flat_map(|part| &mut part.listed.objects);
    parts.for_each(|object| *object = redactor.object(object));
    settings.scheduler_config =
        settings.scheduler_config.take().map(|config| redactor.config(config));
    settings.missing = Some(redactor.missing(&missing_kinds(snapshot)));
}

/// The scheduler's settings for a file, which depend on the version of a cluster that may not have
/// been contacted yet.
pub(super) struct GivenSettings {
    scheduler: Scheduler,
    unknown: UnknownPlugins,
    /// The text of the configuration, and the file that it is from.
    config: Option<(String, String)>,
}

impl GivenSettings {
    /// Reads them. They are validated at once if the options name the version.
    pub fn read(
        config: Option<&Path>,
        scheduler: &Scheduler,
        unknown: &UnknownPluginPolicy,
    ) -> Result<GivenSettings> {
        let config = match config {
            Some(path) => Some((read_config(path)?, path.display().to_string())),
            None => None,
        };
        let (scheduler, unknown) = (scheduler.clone(), unknown.or_opaque());
        let given = GivenSettings { scheduler, unknown, config };
        if given.scheduler.version.kube_version.is_some() {
            given.of_server("")?;
        }
        Ok(given)
    }

    /// Validates them for the version that the options or the server name.
    pub fn of_server(&self, server_version: &str) -> Result<CaptureSettings> {
        let server_version = server_version.to_owned();
        let captured = Captured { server_version, ..Captured::default() };
        let gates = self.scheduler.choose(&captured)?.gates;
        let options = &self.scheduler.version;
        let mut settings = CaptureSettings {
            kube_version: options.kube_version.as_ref().map(|served| served.asked.clone()),
            emulated_version: options.emulated_version.as_ref().map(ToString::to_string),
            feature_gates: self.scheduler.feature_gates.clone(),
            ..CaptureSettings::default()
        };
        if let Some((text, from)) = &self.config {
            let (none, unknown) = (Vec::new(), self.unknown);
            let (registry, _) = crate::plugins::registry_for(Some(text), unknown)?;
            kubestep_config::resolve_as(Some(text), none, &gates, &registry.descriptors(), unknown)
                .context(from.clone())?;
            let document = kubestep_api::yaml::from_str(text).context(from.clone())?;
            settings.scheduler_config = Some(document);
        }
        Ok(settings)
    }
}
