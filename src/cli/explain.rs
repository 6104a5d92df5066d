//! `kubestep explain`: why a pod is pending or on its node.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::cli::config;
use crate::cli::exit::Exit;
use crate::cli::format;
use crate::cli::memory;
use crate::cli::open::session;
use crate::cli::options::InputOptions;
use crate::cli::registry::Subcommand;
use crate::cli::tries::Tries;
use crate::cli::waiting::Steps;
use crate::report::fixes as report_fixes;
use crate::report::new_nodes as report_new_nodes;
use crate::report::outcome;
use crate::report::why::{self as report, WhyDetail};
use crate::report::{add_version, lines_shown};
use kubestep_api::Name;
use kubestep_api::words::count;
use kubestep_cluster::World;
use kubestep_config::{FeatureGates, suggest};
use kubestep_debug::Session;
use kubestep_debug::fix::{self, Fixes, SearchLimits};
use kubestep_debug::learned::{ReportedFailure, heard};
use kubestep_debug::new_node::{self, NewNodes};
use kubestep_debug::why::{Why, ask};
use kubestep_framework::pod::NamespacedName;
use kubestep_framework::record::QueueName;
use kubestep_output::clean::clean;

/// Explain why a pod is pending, or why it is on its node and not on another
#[derive(Args, Debug)]
pub(super) struct Explain {
    /// The pod: its name, or NAMESPACE/NAME; without it, the one that is pending
    #[arg(value_name = "POD")]
    pod: Option<String>,
    #[command(flatten)]
    input: InputOptions,
    /// Output format and amount of detail
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    output: ExplainFormat,
    /// Explain this node only
    #[arg(long, value_name = "NODE", conflicts_with = "why_not")]
    node: Option<String>,
    /// Explain why the pod is not on this node: which plugin rejects it, or how many points it
    /// lacks
    #[arg(long, value_name = "NODE")]
    why_not: Option<String>,
    /// Search for the smallest changes that make the pod fit; each is tried on a copy
    #[arg(long, conflicts_with_all = ["node", "why_not"])]
    fix: bool,
    /// Stop the search when this many kinds of changes are found
    #[arg(long, value_name = "N", default_value_t = fix::FIXES, requires = "fix")]
    #[arg(value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    max_fixes: usize,
    /// Try nodes that could be created, each on a copy: of NodePools, of cluster-autoscaler's node
    /// groups, and copies of existing nodes
    #[arg(long, conflicts_with_all = ["node", "why_not"])]
    new_node: bool,
    /// What your scheduler reported about the pod, if its profile has plugins that kubestep does not
    /// have: a file with the message, with FailedScheduling events, or with koordinator's
    /// diagnosis, "-" for standard input; without it, the pod's condition and the annotations of
    /// kube-scheduler-simulator
    #[arg(long, value_name = "FILE")]
    reported: Option<PathBuf>,
    /// Run at most this many scheduling cycles first, for the pods ahead in the queue
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    max_cycles: usize,
    #[command(flatten)]
    tries: Tries,
}

/// The most pods listed in the error that one must be chosen.
const LISTED: usize = 10;

/// Cost of a preemption candidate in filtered nodes: an estimate from runs with 5,000 nodes.
const CANDIDATE: usize = 500;
/// Cost, in filtered nodes, of a run that takes less than a second.
const CHEAP: usize = 10_000_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ExplainFormat {
    /// For people, in short: identical reasons folded, the nearest nodes first
    #[default]
    Text,
    /// For people, with every node, all scores and the whole history
    Wide,
    /// For programs, as described in schema/ of the repository
    Json,
    /// The same as YAML
    Yaml,
}

/// What the options ask for, in addition to the answer.
struct ExplainOutput<'a> {
    why: &'a Why,
    /// What would help, if it was searched.
    fixes: Option<Fixes>,
    /// Which new nodes would take the pod, if that was asked.
    nodes: Option<NewNodes>,
    /// What the real scheduler reported about opaque plugins.
    heard: Option<ReportedFailure>,
    /// The version and the feature gates that decided.
    gates: FeatureGates,
}

impl Subcommand for Explain {
    const NAME: &'static str = "explain";

    fn run(&self) -> Result<Exit> {
        let opened = session(&self.input, &self.tries, None)?;
        let mut session = opened.session;
        opened.notices.iter().for_each(kubestep_output::line);
        memory::check(&session, self.max_cycles)?;
        let named = self.pod.as_deref().map(|name| find(&session, name)).transpose()?;
        let (start, steps) = (session.world().clone(), Steps::watch());
        let ran = self.run_before(&mut session, &steps);
        let pod = named.map_or_else(|| only_pending(&session), Ok)?;
        let nodes = self.nodes(&session)?;
        let why = ask(&mut session, pod, &nodes)
            .with_context(|| format!("{pod} was evicted or deleted in the meantime"))?;
        self.not_reached(&why, ran).into_iter().for_each(kubestep_output::line);
        let limits = SearchLimits::of_fixes(self.max_fixes);
        let fixes = self.fix.then(|| fixes(&session, &start, pod, limits, &steps));
        let nodes = self.new_node.then(|| new_nodes(&session, pod, &steps)).flatten();
        let said = self.reported.as_deref().map(config::read).transpose()?;
        let heard = heard(&start, pod, said.as_deref()).filter(|heard| !heard.is_empty());
        let gates = *session.world().scheduler().features();
        self.show(&ExplainOutput { why: &why, fixes, nodes, heard, gates })?;
        Ok(if why.is_schedulable() { Exit::Fine } else { Exit::Unschedulable })
    }
}

impl Explain {
    /// Runs the cycles of the pods ahead in the queue. Returns the number of cycles.
    fn run_before(&self, session: &mut Session, steps: &Steps) -> usize {
        let most = self.max_cycles;
        let interrupt = steps.and_interrupt("explains what is known so far");
        let words = |done, most| format!("cycle {done} of at most {most}{interrupt}");
        let mut cycles = 0;
        steps.go_on(cycles, most);
        let ran = steps.show(words, || {
            session.run_until_idle(most, |_| {
                cycles += 1;
                !steps.go_on(cycles, most)
            })
        });
        session.livelock().into_iter().for_each(kubestep_output::line);
        if steps.is_stopped() {
            kubestep_output::line(format!(
                "stopped after {ran} of at most {most} cycles; known so far:"
            ));
        }
        ran
    }

    /// The notice that the pod had no attempt yet, and how to get there.
    fn not_reached(&self, why: &Why, ran: usize) -> Option<String> {
        let queue = why.queue.as_ref().filter(|queue| queue.queue.0 == QueueName::Active)?;
        let number = queue.position.filter(|_| ran >= self.max_cycles)?;
        Some(format!(
            "{} were run, and {} is number {number} in the queue: --max-cycles {} reaches it",
            count(ran, "cycle"),
            why.pod,
            ran.saturating_add(number)
        ))
    }

    fn show(&self, answer: &ExplainOutput) -> Result<()> {
        let symbol = |name: &Option<String>| name.as_deref().map(Name::new);
        let wide = self.output == ExplainFormat::Wide;
        let (node, why_not) = (symbol(&self.node), symbol(&self.why_not));
        let detail = WhyDetail { wide, node, why_not, rest: "-o wide", ..WhyDetail::default() };
        kubestep_output::print(&match self.output {
            ExplainFormat::Text | ExplainFormat::Wide => answer.text(&detail),
            ExplainFormat::Json => format::json(&answer.value()),
            ExplainFormat::Yaml => format::yaml(&answer.value()),
        })?;
        Ok(())
    }

    /// The nodes that the options name.
    fn nodes(&self, session: &Session) -> Result<Vec<Name>> {
        let asked = self.node.iter().chain(&self.why_not);
        let known = || session.world().scheduler().cache().nodes().map(|node| node.name.text());
        let mut nodes = Vec::new();
        for name in asked {
            if !known().any(|node| node == name) {
                let near = suggest::closest(name, known());
                let near = near.map(|near| format!(", did you mean {near:?}?")).unwrap_or_default();
                bail!("there is no node {name:?}{near}");
            }
            nodes.push(Name::new(name));
        }
        Ok(nodes)
    }
}

/// Searches for fixes. `start` is the cluster before the run.
pub(super) fn fixes(
    session: &Session,
    start: &World,
    pod: NamespacedName,
    limits: SearchLimits,
    steps: &Steps,
) -> Fixes {
    let world = session.world();
    let start = if is_cheap(session) { start } else { world };
    let interrupt = steps.and_interrupt("stops");
    let words = |tried, most| format!("{tried} of at most {most} changes tried{interrupt}");
    let mut go_on = |tried, most| steps.go_on(tried, most);
    let search = || fix::fixes(world, start, pod, limits, &mut go_on);
    let fixes = steps.show(words, search);
    if steps.is_stopped() {
        let tried = count(fixes.tried, "change");
        kubestep_output::line(format!(
            "the search was stopped after {tried}; others may be smaller"
        ));
    }
    fixes
}

/// Tries the nodes that could be created.
fn new_nodes(session: &Session, pod: NamespacedName, steps: &Steps) -> Option<NewNodes> {
    let interrupt = steps.and_interrupt("stops");
    let words = |tried, most| format!("{tried} of {most} new nodes tried{interrupt}");
    let mut go_on = |tried, most| steps.go_on(tried, most);
    steps.show(words, || new_node::new_nodes(session.world(), pod, &mut go_on))
}

/// Whether the run is cheap enough to repeat for each fix. Otherwise fixes are checked on the state
/// after it.
fn is_cheap(session: &Session) -> bool {
    let records = session.history().cycles();
    let cost = records.map(|record| record.evaluated_nodes + CANDIDATE * record.candidates.len());
    cost.sum::<usize>() <= CHEAP
}

impl ExplainOutput<'_> {
    fn text(&self, detail: &WhyDetail) -> String {
        let fixes = self.fixes.as_ref().map(|fixes| format!("\n{}", report_fixes::text(fixes)));
        let nodes = |nodes| format!("\n{}", report_new_nodes::text(nodes, detail.wide));
        let nodes = self.nodes.as_ref().map(nodes);
        let heard = self.heard.iter().flat_map(|heard| {
            let lines = heard.lines().into_iter();
            let lines = lines.map(|line| format!("  {}\n", clean(&line)));
            std::iter::once("\nYour scheduler reported that\n".to_owned()).chain(lines)
        });
        let heard: String = heard.collect();
        report::text(self.why, detail)
            + &heard
            + &fixes.unwrap_or_default()
            + &nodes.unwrap_or_default()
    }

    fn value(&self) -> Value {
        let mut value = report::value(self.why);
        add_version(&mut value, self.gates);
        if let Some(fields) = value.as_object_mut() {
            let fixes = self.fixes.as_ref().map(|fixes| ("fixes", report_fixes::value(fixes)));
            let nodes =
                self.nodes.as_ref().map(|nodes| ("newNodes", report_new_nodes::value(nodes)));
            let heard = self.heard.as_ref().map(|heard| ("heard", json!(heard)));
            let more = fixes.into_iter().chain(nodes).chain(heard);
            fields.extend(more.map(|(name, value)| (name.to_owned(), value)));
        }
        value
    }
}

/// The pending pod, if there is only one.
fn only_pending(session: &Session) -> Result<NamespacedName> {
    let pending = outcome::pending(session);
    match pending.as_slice() {
        [only] => Ok(only.pod),
        [] => bail!("no pod is pending: name the one to explain"),
        several => {
            let named: Vec<String> =
                several.iter().take(LISTED).map(|pending| pending.pod.to_string()).collect();
            let more = match several.len().saturating_sub(LISTED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            bail!("name the pod to explain; pending: {}{more}", named.join(", "))
        }
    }
}

/// The pods whose names begin with that of a workload: `web-5c9-x7k2p` for `web`.
fn that_begin_with(session: &Session, namespace: Option<&str>, name: &str) -> Option<String> {
    let is_after = |pod: &str| pod.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
    let pods = &session.world().api().objects().pods;
    let keys = pods.keys().filter(|key| {
        is_after(&key.name.text()) && namespace.is_none_or(|namespace| key.namespace == namespace)
    });
    let mut names: Vec<String> = keys.map(NamespacedName::to_string).collect();
    names.sort();
    let more = names.drain(lines_shown(names.len(), LISTED)..).count();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty())
        .then(|| format!("; pods that begin with \"{name}-\": {}{more}", names.join(", ")))
}

/// The pod of that name; a name without a namespace must be unique.
fn find(session: &Session, text: &str) -> Result<NamespacedName> {
    let pods = &session.world().api().objects().pods;
    // kubectl's `pod/NAME`.
    let of_kind = ["pod/", "pods/", "po/"].iter().find_map(|kind| text.strip_prefix(kind));
    let text = of_kind.unwrap_or(text);
    let (namespace, name) = match text.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, text),
    };
    let named = pods.keys().filter(|key| {
        key.name == name && namespace.is_none_or(|namespace| key.namespace == namespace)
    });
    let mut found: Vec<NamespacedName> = named.copied().collect();
    found.sort();
    match found.as_slice() {
        [only] => Ok(*only),
        [] => {
            let near = || suggest::closest(name, pods.keys().map(|key| key.name.text()));
            let hint = that_begin_with(session, namespace, name)
                .or_else(|| near().map(|near| format!(", did you mean {near:?}?")));
            bail!("there is no pod {text:?}{}", hint.unwrap_or_default())
        }
        several => {
            let several: Vec<String> = several.iter().map(NamespacedName::to_string).collect();
            bail!("several pods are named {name:?}: write {}", several.join(" or "))
        }
    }
}
