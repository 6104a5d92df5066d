//! Opening a cluster: files, configuration and gates to a session, and the debugger on it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use crate::cli::attach;
use crate::cli::cluster;
use crate::cli::exit::Exit;
use crate::cli::foreign;
use crate::cli::memory;
use crate::cli::options::{InputOptions, Screen, ViewOptions};
use crate::cli::recorded;
use crate::cli::stops;
use crate::cli::tries::{self, AddedObjects, Tries};
use crate::cli::waiting::with_progress;
use crate::cli::{demo, registry};
use crate::report;
use crate::report::disruption::DisruptionReport;
use crate::report::run::RunReport;
use crate::report::usage::Usage;
use crate::tui;
use crate::tui::background;
use crate::tui::data_source::DataSource;
use crate::tui::driver::SchedulerExit;
use crate::tui::loading::WaitOutcome;
use crate::tui::settings::{self, InterfaceOptions, InterfaceSettings};
use kubestep_api::intern::Symbol;
use kubestep_api::selector::Selector;
use kubestep_api::{Object, Provisioning, Time};
use kubestep_cluster::schedulers::{PodReports, Schedulers};
use kubestep_cluster::{World, workload};
use kubestep_config as config;
use kubestep_config::{ResolvedConfig, UnknownPlugins};
use kubestep_debug::{Session, not_created};
use kubestep_live::extender_client::{self, CallScope};
use kubestep_source::{Exclude, ExcludeError, Filter, Progress};

/// A session with what its reader should know about the input.
pub(super) struct ReadSession {
    pub session: Session,
    /// Where the input came from, in a few words.
    pub name: String,
    /// What the user has to know about the input, one sentence each.
    pub notices: Vec<String>,
    /// What was added to be tried.
    pub added: AddedObjects,
}

/// Opens the debugger on the input; on a live cluster it follows that.
pub(super) fn debugger(input: &InputOptions, view: &ViewOptions) -> Result<Exit> {
    require_screen()?;
    if is_dumb() || input.demo.is_some() {
        return show(session(input, &Tries::default(), None)?, view);
    }
    if input.files.is_empty() {
        let (opened, following) = attach::open(input, filter(input)?)?;
        let settings = settings(&view.screen);
        return debug(opened, &view.screen, settings, DataSource::Live(Box::new(following)));
    }
    let settings = settings(&view.screen);
    let progress = Arc::new(Progress::with_limit(input.input_limit));
    let (owned, telling) = (input.clone(), progress.clone());
    let speed = view.speed;
    let work = move || recorded::open(&owned, speed, &telling);
    match tui::loading::run(&name_of(input), &settings.appearance, &progress, work)? {
        WaitOutcome::Done(opened) => {
            let (opened, data_source) = opened?;
            debug(opened, &view.screen, settings, data_source)
        }
        WaitOutcome::Left(code) => leave(code),
    }
}

fn settings(view: &Screen) -> InterfaceSettings {
    let ask: fn() -> _ = background::ask;
    let (theme, color, ascii) = (view.theme.clone(), Some(view.color), view.ascii);
    let options = InterfaceOptions { theme, color, ascii, ask: Some(ask) };
    settings::load(&options, |name| std::env::var(name).ok())
}

/// Whether the terminal cannot place text.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// A full screen needs a terminal.
///
/// # Errors
/// There is none; names the commands that print the same.
pub(super) fn require_screen() -> Result<()> {
    if kubestep_output::stdout_is_terminal() {
        return Ok(());
    }
    let explains = registry::SUBCOMMANDS.iter().any(|entry| entry.name == "explain");
    let explain = match explains {
        true => ", \"kubestep explain\" why it is where it is",
        false => "",
    };
    bail!(
        "standard output is not a terminal, so the debugger cannot be shown: \"kubestep run\" prints \
         what becomes of each pod{explain}"
    )
}

/// Opens the debugger on a session; a terminal that cannot place text gets the report of a run.
pub(super) fn show(opened: ReadSession, view: &ViewOptions) -> Result<Exit> {
    match is_dumb() {
        true => print_input(opened),
        false => debug(opened, &view.screen, settings(&view.screen), DataSource::Nothing),
    }
}

fn debug(
    opened: ReadSession,
    view: &Screen,
    settings: InterfaceSettings,
    data_source: DataSource,
) -> Result<Exit> {
    let ReadSession { session, name, notices, .. } = opened;
    let (code, _) =
        show_with(OpenedSession { session, name, notices }, view, settings, data_source)?;
    leave(code)
}

/// What the debugger is opened on.
pub(super) struct OpenedSession {
    pub session: Session,
    /// Where the input came from, in a few words.
    pub name: String,
    /// What the user has to know about the input, one sentence each.
    pub notices: Vec<String>,
}

/// Opens the debugger until the user quits; gives the exit code, and how a live scheduler was
/// left.
pub(super) fn screen(
    shown: OpenedSession,
    view: &Screen,
    data_source: DataSource,
) -> Result<(i32, SchedulerExit)> {
    show_with(shown, view, settings(view), data_source)
}

fn show_with(
    shown: OpenedSession,
    view: &Screen,
    settings: InterfaceSettings,
    data_source: DataSource,
) -> Result<(i32, SchedulerExit)> {
    let OpenedSession { mut session, name, mut notices } = shown;
    if let Some(path) = &view.breakpoints {
        match path.exists() {
            true => stops::set(&mut session, &[], Some(path))?,
            false => notices.push(format!(
                "{} does not exist yet: breakpoints are written to it when you leave",
                path.display()
            )),
        }
    }
    let shown = tui::event_loop::OpenedInput { session, source: name, data_source };
    tui::event_loop::run(shown, settings, notices, view.breakpoints.as_deref())
}

pub(super) fn leave(code: i32) -> Result<Exit> {
    match code {
        0 => Ok(Exit::Fine),
        // Ended by a signal or Ctrl-C: the code says which.
        code => std::process::exit(code),
    }
}

fn print_input(opened: ReadSession) -> Result<Exit> {
    opened.notices.iter().for_each(kubestep_output::line);
    let mut session = opened.session;
    let before = Usage::of(session.world());
    session.run_until_idle(usize::MAX, |_| false);
    let report = RunReport::new(&session, before).with_causes(&mut session);
    kubestep_output::print(&report::run::text::run(&report))?;
    Ok(exit_of(&report))
}

/// Whether some pod stayed pending, or a drain or rollout is not complete.
pub(super) fn exit_of(report: &RunReport) -> Exit {
    let is_complete = report.disruption.as_ref().is_none_or(DisruptionReport::is_complete);
    match report.pending.is_empty() && is_complete {
        true => Exit::Fine,
        false => Exit::Unschedulable,
    }
}

/// Reads the input and loads it into a new cluster, with what is to be tried beside it.
pub(super) fn session(
    input: &InputOptions,
    tries: &Tries,
    percentage: Option<i32>,
) -> Result<ReadSession> {
    let progress = Progress::with_limit(input.input_limit);
    let work = || load(input, tries, percentage, &progress);
    if !reads_files(input) {
        return work();
    }
    with_progress(&progress, || memory::guard(&progress, work))
}

fn load(
    input: &InputOptions,
    tries: &Tries,
    percentage: Option<i32>,
    progress: &Progress,
) -> Result<ReadSession> {
    let (mut read, name) = read(input, progress)?;
    let until = recorded::until(input, read.recording.as_ref())?;
    read.wind(until);
    build(read, input, tries, percentage, name)
}

/// What the options name, and what to call it: a story, files, or a live cluster.
pub(super) fn read(
    input: &InputOptions,
    progress: &Progress,
) -> Result<(kubestep_source::ReadInput, String)> {
    if let Some(story) = &input.demo {
        return demo::read(story, &filter(input)?);
    }
    if input.files.is_empty() {
        return cluster::read(input, &filter(input)?);
    }
    Ok((kubestep_source::read(&input.files, &filter(input)?, progress)?, name_of(input)))
}

fn reads_files(input: &InputOptions) -> bool {
    input.demo.is_none() && !input.files.is_empty()
}

fn name_of(input: &InputOptions) -> String {
    let name = |path: &PathBuf| match path.as_os_str() == kubestep_source::STDIN {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    };
    let names: Vec<String> = input.files.iter().map(name).collect();
    names.join(", ")
}

/// Adds a notice of the objects that no scheduler reads. Returns a kind among them that makes pods.
fn note_skipped(read: &kubestep_source::ReadInput, notices: &mut Vec<String>) -> Option<Symbol> {
    if read.skipped.is_empty() {
        return None;
    }
    let of_rollouts = |kind: &Symbol| ["DaemonSet", "Deployment"].contains(&kind.as_str());
    for (is_read, what) in
        [(false, "not read by a scheduler"), (true, "only read for rollouts and new nodes")]
    {
        let kinds = read.skipped.iter().filter(|(kind, _)| of_rollouts(kind) == is_read);
        let kinds: Vec<String> = kinds.map(|(kind, count)| format!("{count} {kind}")).collect();
        if !kinds.is_empty() {
            notices.push(format!("{what}: {}", kinds.join(", ")));
        }
    }
    let idle = notices.iter().any(|notice| {
        notice == kubestep_source::NOTHING_PENDING || notice == kubestep_source::NOTHING_READ
    });
    // DaemonSets are also read for new nodes, which get their pods.
    let mut kinds = read.skipped.keys().filter(|kind| idle || kind.as_str() != "DaemonSet");
    kinds.find(|kind| workload::kinds().any(|it| **kind == it)).cloned()
}

/// Loads what was read into a new cluster.
pub(super) fn build(
    read: kubestep_source::ReadInput,
    input: &InputOptions,
    tries: &Tries,
    percentage: Option<i32>,
    name: String,
) -> Result<ReadSession> {
    build_with(read, input, tries, name, |world_config| {
        if let Some(percentage) = percentage {
            world_config.percentage_of_nodes_to_score = percentage;
        }
        Vec::new()
    })
}

/// The same with a notice about the configuration, if there is one.
pub(super) fn build_with(
    mut read: kubestep_source::ReadInput,
    input: &InputOptions,
    tries: &Tries,
    name: String,
    adapt: impl FnOnce(&mut ResolvedConfig) -> Vec<String>,
) -> Result<ReadSession> {
    let reach = if input.call_extenders { CallScope::Reads } else { CallScope::Nothing };
    let manifests = std::mem::take(&mut read.manifests);
    let mut built = world(read, input, (reach, Writes::Local), adapt)?;
    let mut notices = built.notices;
    notices.extend(tries::create(&manifests, &mut built.world)?);
    let mut added = tries::add(tries, input.strict, &mut built.world)?;
    let is_manifest = !input.files.is_empty() && !has_controlled_pods(&built.world);
    if let Some(kind) = built.workload.filter(|_| is_manifest && tries.pods.is_empty()) {
        notices.push(format!(
            "-f does not create the pods of a {kind}; --pod FILE with its manifest creates and \
             schedules them"
        ));
    }
    if !added.workloads.is_empty() || !manifests.is_empty() {
        notices.retain(|notice| {
            notice != kubestep_source::NOTHING_PENDING && notice != kubestep_source::NOTHING_READ
        });
    }
    notices.append(&mut added.notices);
    let mut session = Session::new(built.world);
    session.set_history_memory(input.memory.bytes());
    Ok(ReadSession { session, name, notices, added })
}

/// Whether controllers created pods: then the input is a cluster's, and not only manifests.
fn has_controlled_pods(world: &World) -> bool {
    let mut pods = world.api().objects().pods.values();
    pods.any(|pod| pod.metadata.controller().is_some())
}

/// Where the scheduler's writes go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Writes {
    /// To the simulated API server.
    Local,
    /// To the one that the objects are from.
    Remote,
}

/// A cluster with its scheduler.
pub(super) struct LoadedCluster {
    pub world: World,
    /// What the user has to know about the input, one sentence each.
    pub notices: Vec<String>,
    /// A kind that makes pods, if the input has some.
    workload: Option<Symbol>,
}

/// Loads what was read into a new cluster.
pub(super) fn world(
    mut read: kubestep_source::ReadInput,
    input: &InputOptions,
    (reach, writes): (CallScope, Writes),
    adapt: impl FnOnce(&mut ResolvedConfig) -> Vec<String>,
) -> Result<LoadedCluster> {
    let chosen = input.scheduler.choose(&read.captured)?;
    let features = chosen.gates;
    let (text, from) = config_text(input, &read)?;
    let unknown = input.unknown.or(match writes {
        Writes::Local => UnknownPlugins::Opaque,
        Writes::Remote => UnknownPlugins::Reject,
    });
    let (registry, absent_guests) = crate::plugins::registry_for(text.as_deref(), unknown)?;
    let (text, descriptors) = (text.as_deref(), registry.descriptors());
    let mut resolved =
        config::resolve_as(text, Vec::new(), &features, &descriptors, unknown).context(from)?;
    let mut adapted = adapt(&mut resolved);
    if read.foreign.iter().any(|file| file.is_scheduler) {
        adapted.extend(attach::serve_all(&mut resolved, &attach::scheduler_names(&read)));
    }
    let mut world = World::new(&resolved, features, &registry)?;
    world.scheduler_mut().set_tie_break(input.tie_break);
    let mut notices = foreign::notices(&read);
    notices.extend(read.warnings.iter().cloned());
    notices.extend(chosen.notices);
    notices.extend(absent_guests);
    notices.extend(adapted);
    notices.extend(reach_extenders(&resolved, reach, &mut world)?);
    notices.extend(resolved.warnings.iter().map(ToString::to_string));
    let workload = note_skipped(&read, &mut notices);
    if writes == Writes::Remote {
        // Before anything is loaded: objects keep the versions that they have there.
        world.mirror_remote();
    }
    world.set_schedulers(schedulers(&read));
    world.set_provisioning(provisioning(&mut read, input)?);
    world.set_controllers(std::mem::take(&mut read.auxiliary.controllers));
    let objects = read.objects.into_iter().map(|loaded| loaded.object);
    if let Some(now) = read.listed_at {
        world.begin_at(now, objects.len());
    }
    notices.extend(kubestep_cluster::load(&mut world, objects));
    if read.listed_at.is_some() {
        world.note_writes();
    }
    notices.extend(not_created::notices(&world));
    Ok(LoadedCluster { world, notices, workload })
}

/// Where new nodes come from, by the input and by the files beside it.
pub(super) fn provisioning(
    read: &mut kubestep_source::ReadInput,
    input: &InputOptions,
) -> Result<Provisioning> {
    let mut known = std::mem::take(&mut read.auxiliary.provisioning);
    if !input.instance_types.is_empty() {
        let progress = Progress::with_limit(input.input_limit);
        let more = kubestep_source::read(&input.instance_types, &Filter::default(), &progress);
        known.merge(more.context("--instance-types")?.auxiliary.provisioning);
    }
    Ok(known)
}

/// What the input shows of the cluster's own schedulers, if it says when it was read.
fn schedulers(read: &kubestep_source::ReadInput) -> Schedulers {
    let Ok(at) = Time::parse(&read.captured.at) else { return Schedulers::default() };
    let mut reports = PodReports::default();
    for loaded in &read.objects {
        if let Object::Pod(pod) = &loaded.object {
            reports.see(pod);
        }
    }
    Schedulers::new(&read.captured.leases, &reports, at)
}

/// Enables calls to the configured extenders if requested. Returns a notice about it.
fn reach_extenders(
    config: &ResolvedConfig,
    reach: CallScope,
    world: &mut World,
) -> Result<Option<String>> {
    if config.extenders.is_empty() {
        return Ok(None);
    }
    let urls: Vec<&str> = config.extenders.iter().map(|e| e.url_prefix.as_str()).collect();
    let urls = urls.join(", ");
    if reach == CallScope::Nothing {
        return Ok(Some(format!(
            "extenders are not called and count as unreachable; --call-extenders calls them: {urls}"
        )));
    }
    let client = extender_client::connect(&config.extenders, reach).context("extenders")?;
    world.api_mut().set_extenders(client);
    if reach == CallScope::Everything {
        return Ok(Some(format!("extenders are called: {urls}")));
    }
    Ok(Some(format!("extenders are called, except for bind, which is simulated: {urls}")))
}

/// The text of the configuration and where it is from: `--config`, else the input.
pub(super) fn config_text(
    input: &InputOptions,
    read: &kubestep_source::ReadInput,
) -> Result<(Option<String>, String)> {
    if let Some(path) = &input.config {
        return Ok((Some(read_config(path)?), path.display().to_string()));
    }
    Ok(match &read.scheduler_config {
        // Empty lines in front, so that a place in the text is one in the file.
        Some(found) => {
            let before = "\n".repeat(found.origin.line.saturating_sub(1) as usize);
            (Some(before + &found.text), found.origin.file.to_string())
        }
        None => (None, "the default configuration".into()),
    })
}

/// The text of a configuration file.
pub(super) fn read_config(path: &Path) -> Result<String> {
    Ok(kubestep_source::read_whole(path)?)
}

fn filter(input: &InputOptions) -> Result<Filter> {
    let excluded: Result<Vec<Exclude>, ExcludeError> =
        input.exclude.iter().map(|text| Exclude::parse(text)).collect();
    let pods = input.selector.as_deref().map(Selector::parse).transpose();
    Ok(Filter {
        namespaces: input.namespaces.iter().map(|name| Symbol::new(name)).collect(),
        pods: pods.map_err(anyhow::Error::msg).context("-l")?,
        exclude: excluded.context("--exclude")?,
        strict: input.strict,
    })
}
