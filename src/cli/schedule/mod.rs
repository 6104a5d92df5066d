//! `kubestep schedule`: the embedded scheduler in place of kube-scheduler.
//!
//! Writes to a cluster, and only after confirmation: see [`consent`].

mod consent;
mod flags;
mod gates;
mod log;
mod opening;
mod port;
mod reviews;
mod screen;
mod upstream;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::cli::cluster;
use crate::cli::exit::Exit;
use crate::cli::open::{self, LoadedCluster, Writes};
use crate::cli::options::{ClusterOptions, InputOptions, UnknownPluginPolicy};
use crate::cli::registry::Subcommand;
use crate::cli::version::{Scheduler, VersionOptions};
use kubestep_api::Kind;
use kubestep_cluster::World;
use kubestep_config as config;
use kubestep_config::Feature;
use kubestep_framework::tie_break::TieBreak;
use kubestep_live::extender_client::CallScope;
use kubestep_live::kinds::KindReader;
use kubestep_live::lease::{Election, LeaseSettings};
use kubestep_live::scheduling::{Scheduling, SchedulingEnd, Wire};
use kubestep_live::serve::{PageGates, Zpages};
use kubestep_live::write::{WriteOptions, Writer};
use kubestep_live::{ClusterSnapshot, Feed, KubeconfigTarget, Link, MissingKindAccess};
use kubestep_source::Filter;

use consent::Consent;
use flags::{Client, LeaderElection};
use gates::Gates;
use log::Log;
use opening::StopSignals;
use port::{Observability, Ports};
use screen::{SchedulingScreen, ScreenMode};
use upstream::Upstream;

/// Schedule the pods of a live cluster in place of kube-scheduler
///
/// It writes to the cluster. It shows what it will write and asks for confirmation; without a
/// terminal, --yes-write is required. --tui opens the debugger on it.
///
/// It accepts kube-scheduler's flags and can replace it.
#[derive(Args, Debug)]
#[command(after_long_help = upstream::help())]
pub(super) struct Schedule {
    // Before all others: it looks at their values, which they take out.
    #[command(flatten)]
    upstream: Upstream,
    /// The cluster's kubeconfig; without it the configuration's, KUBECONFIG, ~/.kube/config or the
    /// pod's own credentials
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The kubeconfig's context
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The API server's address, overriding the kubeconfig
    #[arg(long, value_name = "URL")]
    master: Option<String>,
    /// The scheduler's configuration (KubeSchedulerConfiguration, v1)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Write the configuration with all defaults to this file, and exit
    #[arg(long, value_name = "FILE")]
    write_config_to: Option<PathBuf>,
    #[command(flatten)]
    unknown: UnknownPluginPolicy,
    #[command(flatten)]
    version: VersionOptions,
    /// Feature gates that differ from the version's defaults: Name=true,Name=false; may be repeated
    #[arg(long, value_name = "GATES")]
    feature_gates: Vec<String>,
    /// How long a pod may stay unschedulable before it is requeued without an event
    #[arg(long, value_name = "TIME", value_parser = flags::time, default_value = "5m")]
    pod_max_in_unschedulable_pods_duration: Duration,
    /// How ties between the best nodes are broken: upstream, first or seed:N
    #[arg(long, value_name = "HOW", default_value = "upstream")]
    tie_break: TieBreak,
    /// Write without asking
    #[arg(long)]
    yes_write: bool,
    /// Send every write with dryRun=All: the server validates it and changes nothing. No lease is
    /// taken
    #[arg(long, conflicts_with = "yes_write")]
    dry_run: bool,
    /// Verbosity on standard error: 0 errors, 1 changes, 2 every decision
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 1)]
    verbosity: u8,
    #[command(flatten)]
    client: Client,
    #[command(flatten)]
    election: LeaderElection,
    #[command(flatten)]
    ports: Ports,
    #[command(flatten)]
    screen: ScreenMode,
}

/// How long the API server's version is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

impl Subcommand for Schedule {
    const NAME: &'static str = "schedule";

    fn run(&self) -> Result<Exit> {
        if let Some(path) = &self.write_config_to {
            return self.write_config(path);
        }
        if self.screen.tui {
            open::require_screen()?;
        }
        let (target, log) = (self.target()?, Log::new(self.verbosity));
        let (link, server_version) = self.link(&target)?;
        // Errors in the configuration are reported before anything is asked or served.
        let mut nothing = kubestep_source::ReadInput::default();
        nothing.captured.server_version = server_version;
        let configured = self.build(nothing, CallScope::Nothing)?.world;
        let election = match self.dry_run {
            true => None,
            false => self.election.settings(&configured.config().document.leader_election)?,
        };
        let consent = Consent {
            context: link.name(),
            server: link.server(),
            world: &configured,
            election: election.as_ref(),
            dry_run: self.dry_run,
        };
        if !consent.given(self.yes_write)? {
            return Ok(Exit::Fine);
        }
        let ending = StopSignals::listen()?;
        let (watched, unserved) = self.serve(election.as_ref(), &configured)?;
        unserved.iter().for_each(|notice| log.line(1, notice));
        let opened = opening::open(&target, |missing| self.reads(missing), &log, &ending)?;
        let Some((mut snapshot, feed)) = opened else { return ended(SchedulingEnd::Stopped, &log) };
        require_reading(&snapshot)?;
        let mut built = self.world(&mut snapshot, feed.link().name())?;
        if self.screen.tui {
            built.notices.extend(unserved);
        }
        let schedulable = Schedulable { target, built, feed, election, watched, ending };
        self.schedule(schedulable, &log)
    }
}

/// A readable cluster, and everything that is set up before the first write.
struct Schedulable {
    target: KubeconfigTarget,
    built: LoadedCluster,
    feed: Feed,
    election: Option<LeaseSettings>,
    watched: Observability,
    ending: StopSignals,
}

impl Schedule {
    /// Serves health and metrics, even before the API server is reachable.
    fn serve(
        &self,
        election: Option<&LeaseSettings>,
        world: &World,
    ) -> Result<(Observability, Vec<String>)> {
        let features = world.scheduler().features();
        let pages = PageGates {
            statusz: features.enabled(Feature::ComponentStatusz),
            flagz: features.enabled(Feature::ComponentFlagz),
            cbor: self.gates()?.cbor,
        };
        let zpages = Zpages::new(pages, self.upstream.values().clone());
        self.ports.serve(election.map_or("", |settings| &settings.name), world, zpages)
    }

    /// Schedules until the end.
    fn schedule(&self, schedulable: Schedulable, log: &Log) -> Result<Exit> {
        let Schedulable { target, built, feed, election, watched, ending } = schedulable;
        let options = self.client.write_options(&built.world.config().document.client_connection);
        let options = WriteOptions { dry_run: self.dry_run, ..options };
        let writer = Writer::start(target.clone(), options).map_err(cluster::explained)?;
        if let Some(extenders) = built.world.api().extenders() {
            writer.bind_through(extenders.clone());
        }
        if !self.screen.tui {
            built.notices.iter().for_each(|notice| log.line(1, notice));
        }
        let election = election
            .map(|settings| Election::start(target, settings, writer.gate().clone()))
            .transpose()
            .map_err(cluster::explained)?;
        let context = feed.link().name().to_owned();
        let wire = Wire::new(feed, writer, election);
        if self.screen.tui && !ending.has_come() {
            let start = SchedulingScreen { context, dry_run: self.dry_run, notices: built.notices };
            return self.screen.run(built.world, wire, watched, start);
        }
        ended(run(built.world, wire, watched, log.clone(), &ending)?, log)
    }

    /// The cluster that the flags select, or otherwise the configuration.
    fn target(&self) -> Result<KubeconfigTarget> {
        let (kubeconfig, context) = (self.kubeconfig.clone(), self.context.clone());
        if let (None, None, Some(_)) = (&kubeconfig, &context, &self.master) {
            return Ok(KubeconfigTarget {
                server: self.master.clone(),
                ..KubeconfigTarget::default()
            });
        }
        let mut options = ClusterOptions {
            kubeconfig,
            context,
            all_namespaces: true,
            verbose: self.verbosity > 1,
        };
        if let (None, Some(path)) = (&options.kubeconfig, &self.config) {
            let text = open::read_config(path)?;
            options.kubeconfig = flags::kubeconfig_in(&text);
        }
        Ok(KubeconfigTarget { server: self.master.clone(), ..cluster::target(&options)? })
    }

    /// The link to the API server, and its version if the options leave the scheduler's to it. That
    /// is empty as long as the server does not answer.
    fn link(&self, target: &KubeconfigTarget) -> Result<(Link, String)> {
        cluster::runtime()?.block_on(async {
            let link = Link::new(target.clone()).await.map_err(cluster::explained)?;
            if self.version.kube_version.is_some() {
                return Ok((link, String::new()));
            }
            let version = timeout(PATIENCE, kubestep_live::server_version(&link)).await;
            Ok((link, version.ok().and_then(Result::ok).unwrap_or_default()))
        })
    }

    fn gates(&self) -> Result<Gates> {
        gates::read(&self.feature_gates).context("--feature-gates")
    }

    /// Writes the configuration with all defaults.
    fn write_config(&self, path: &Path) -> Result<Exit> {
        let built = self.build(kubestep_source::ReadInput::default(), CallScope::Nothing)?;
        let text = config::to_yaml(&built.world.config().completed());
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Exit::Fine)
    }

    /// Whether the scheduler reads that kind with the given feature gates.
    fn reads(&self, missing: &MissingKindAccess) -> bool {
        match missing.place.row.reader {
            KindReader::Scheduler => true,
            // Only with a profile that has it, of which its plugin then says what is missing.
            KindReader::Debugger | KindReader::Plugin(_) => false,
            KindReader::Gate(name) => {
                let gates = self.gates().ok().and_then(|gates| gates.scheduler).unwrap_or_default();
                gates.split(',').any(|gate| gate.trim() == format!("{name}=true"))
            }
        }
    }

    fn world(&self, snapshot: &mut ClusterSnapshot, name: &str) -> Result<LoadedCluster> {
        snapshot.missing.retain(|missing| self.reads(missing));
        let notices = snapshot.notices();
        let objects = snapshot.take_objects();
        let mut read = kubestep_source::of_objects(objects, name, &Filter::default());
        read.listed_at = Some(snapshot.taken_at);
        read.captured.server_version.clone_from(&snapshot.server_version);
        read.warnings.retain(|warning| warning != kubestep_source::NOTHING_PENDING);
        read.warnings.extend(notices);
        let mut built =
            self.build(read, if self.dry_run { CallScope::Reads } else { CallScope::Everything })?;
        let gates = *built.world.scheduler().features();
        built.notices.extend(self.version.server_notices(gates, &snapshot.server_version));
        Ok(built)
    }

    /// The cluster with its scheduler.
    fn build(&self, read: kubestep_source::ReadInput, reach: CallScope) -> Result<LoadedCluster> {
        let (gates, version) = (self.gates()?, self.version.clone());
        let input = InputOptions {
            config: self.config.clone(),
            unknown: self.unknown.clone(),
            scheduler: Scheduler {
                version,
                feature_gates: gates.scheduler,
                ..Scheduler::default()
            },
            tie_break: self.tie_break,
            ..InputOptions::default()
        };
        let mut built = open::world(read, &input, (reach, Writes::Remote), |_| Vec::new())?;
        let longest = self.pod_max_in_unschedulable_pods_duration.as_nanos();
        let longest = kubestep_api::Duration { nanos: i64::try_from(longest).unwrap_or(i64::MAX) };
        built.world.scheduler_mut().queue_mut().set_max_unschedulable_duration(longest);
        built.notices.extend(self.upstream.notices());
        let other = |name: String| format!("--feature-gates {name} has no effect");
        built.notices.extend(gates.idle.into_iter().map(other));
        Ok(built)
    }
}

/// Fails if nodes or pods cannot be read: nothing can be scheduled without them.
fn require_reading(snapshot: &ClusterSnapshot) -> Result<()> {
    let needed = [Kind::Node, Kind::Pod];
    let missing = snapshot.missing.iter().find(|missing| needed.contains(&missing.place.row.kind));
    match missing {
        Some(missing) => bail!(
            "{} cannot be read ({}): \"kubestep rbac --schedule\" prints the role that a \
             scheduler needs",
            missing.what(),
            missing.why()
        ),
        None => Ok(()),
    }
}

/// Schedules until a signal or the loss of the lease.
fn run(
    world: World,
    wire: Wire,
    mut watched: Observability,
    log: Log,
    ending: &StopSignals,
) -> Result<SchedulingEnd> {
    let (stop, stopped) = watch::channel(false);
    let health = watched.health();
    let reporter = Box::new(move |world: &World, report| {
        watched.see(world, &report);
        log.report(report);
    });
    let mut scheduling = Scheduling::new(world, Box::new(wire), reporter);
    cluster::runtime()?.block_on(async {
        let ended = ending.requested()?;
        let asked = async move {
            ended.await;
            health.ending.store(true, Ordering::Relaxed);
            stop.send_replace(true);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            end = scheduling.run(stopped) => Ok(end),
            () = asked => Ok(SchedulingEnd::Stopped),
        }
    })
}

fn ended(end: SchedulingEnd, log: &Log) -> Result<Exit> {
    match end {
        SchedulingEnd::Stopped => {
            log.line(1, "stopped");
            Ok(Exit::Fine)
        }
        SchedulingEnd::LeadLost(reason) => {
            log.line(0, &format!("writing stopped: {reason}"));
            Ok(Exit::Lost)
        }
        SchedulingEnd::FeedEnded => bail!("the connection to the cluster ended"),
    }
}
