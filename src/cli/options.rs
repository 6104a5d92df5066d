//! The options that several commands share, as clap sees them.

use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};

use crate::cli::version::Scheduler;
use crate::tui::color::ColorChoice;
use crate::tui::speed::Speed;
use kubestep_config::UnknownPlugins;
use kubestep_framework::tie_break::TieBreak;
use kubestep_output::file::Links;

/// The debugger for Kubernetes scheduling: kube-scheduler 1.31 to 1.37, step by step.
#[derive(Parser, Debug)]
#[command(name = "kubestep", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(flatten)]
    pub input: InputOptions,
    #[command(flatten)]
    pub view: ViewOptions,
}

/// The files or the cluster that a command reads, and which of their objects.
#[derive(Args, Debug, Default, Clone)]
pub struct InputOptions {
    /// File or folder with Kubernetes objects (YAML, JSON, lists, dumps; gzip too), "-" for
    /// standard input; may be repeated
    #[arg(short = 'f', long = "filename", value_name = "PATH")]
    pub files: Vec<PathBuf>,
    /// A built-in cluster instead of a file: a name from "kubestep demo --list"
    #[arg(long, value_name = "STORY", conflicts_with = "files")]
    pub demo: Option<String>,
    /// Replay recordings up to this time: 2026-01-31T12:00:00Z, or 12m30s after their lists;
    /// without it, to their end
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    #[command(flatten)]
    pub cluster: ClusterOptions,
    /// Also read where new nodes come from: a catalogue of instance types with prices, as
    /// karpenter's kwok provider has it, NodePools, NodeClaims, NodeOverlays, DaemonSets, a
    /// snapshot or the status of cluster-autoscaler; may be repeated. They serve --new-node and
    /// --fix; -f reads them too
    #[arg(long, value_name = "FILE")]
    pub instance_types: Vec<PathBuf>,
    /// Take only this namespace's objects; may be repeated
    #[arg(short = 'n', long = "namespace", value_name = "NAMESPACE")]
    pub namespaces: Vec<String>,
    /// Take only pods that this label selector matches
    #[arg(short = 'l', long = "selector", value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// Exclude an object: KIND/NAME or KIND/NAMESPACE/NAME, with * as wildcard; may be repeated
    #[arg(long, value_name = "KIND/NAME")]
    pub exclude: Vec<String>,
    /// Reject objects with unknown or duplicate fields, as "kubectl --validate=strict" does; otherwise
    /// such fields are warnings (in YAML, for the first 1,000 objects of a file)
    #[arg(long)]
    pub strict: bool,
    /// The scheduler's configuration (KubeSchedulerConfiguration, v1)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    #[command(flatten)]
    pub unknown: UnknownPluginPolicy,
    #[command(flatten)]
    pub scheduler: Scheduler,
    /// How ties between the best nodes are broken: upstream (as kube-scheduler's heap does), first
    /// (the first found) or seed:N (a repeatable pick that looks random; it also decides where
    /// preemption begins to search, and in which order one event moves several pods of the same
    /// priority and time)
    #[arg(long, value_name = "HOW", default_value = "upstream")]
    pub tie_break: TieBreak,
    /// Call the configuration's extenders over the network. Only filter, prioritize and preempt are
    /// called; bind is simulated, and nothing is written
    #[arg(long)]
    pub call_extenders: bool,
    #[command(flatten)]
    pub memory: MemoryOptions,
    /// Reject files with more uncompressed text than this, in MiB; of YAML, which is held as a
    /// whole, an eighth of it [default: 8192]
    #[arg(long, value_name = "MIB", help_heading = "Memory")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub input_limit: Option<u32>,
}

/// What happens to plugins that are not part of this program.
#[derive(Args, Debug, Default, Clone)]
pub struct UnknownPluginPolicy {
    /// What happens to plugins of the configuration that kubestep does not have: opaque keeps their
    /// place and marks the decisions that they could change as uncertain, reject fails [default:
    /// opaque; for "kubestep schedule" reject]
    #[arg(long, value_name = "WHAT", value_enum)]
    pub unknown_plugins: Option<UnknownChoice>,
}

/// The values of `--unknown-plugins`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UnknownChoice {
    /// Keep their place; never run them
    Opaque,
    /// Fail, as kube-scheduler without them does
    Reject,
}

impl UnknownPluginPolicy {
    /// The choice, or `default`.
    pub fn or(&self, default: UnknownPlugins) -> UnknownPlugins {
        match self.unknown_plugins {
            Some(UnknownChoice::Opaque) => UnknownPlugins::Opaque,
            Some(UnknownChoice::Reject) => UnknownPlugins::Reject,
            None => default,
        }
    }

    /// The choice of a command that only looks.
    pub fn or_opaque(&self) -> UnknownPlugins {
        self.or(UnknownPlugins::Opaque)
    }
}

/// How much of the past is kept.
#[derive(Args, Debug, Clone)]
pub struct MemoryOptions {
    /// Memory for the past, in MiB: recorded matrices and copies of the cluster. The oldest
    /// matrices are dropped first, and recomputed when needed
    #[arg(long, value_name = "MIB", default_value_t = HISTORY_MEMORY, help_heading = "Memory")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub history_memory: u32,
}

/// MiB for the past unless said otherwise.
const HISTORY_MEMORY: u32 = 256;

impl Default for MemoryOptions {
    fn default() -> MemoryOptions {
        MemoryOptions { history_memory: HISTORY_MEMORY }
    }
}

impl MemoryOptions {
    /// The limit in bytes; the option has MiB.
    pub fn bytes(&self) -> usize {
        (self.history_memory as usize) << 20
    }
}

/// Which cluster, where no file is named.
#[derive(Args, Debug, Default, Clone)]
pub struct ClusterOptions {
    /// The cluster's kubeconfig, if no file is named; without it KUBECONFIG, ~/.kube/config or the
    /// pod's own credentials
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The kubeconfig's context
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// All namespaces, which is the default
    #[arg(short = 'A', long, conflicts_with = "namespaces")]
    pub all_namespaces: bool,
    /// Show what the kubeconfig's credential plugin writes to standard error when it fails
    #[arg(short = 'v', long)]
    pub verbose: bool,
}

/// The file that is written.
#[derive(Args, Debug, Clone)]
pub struct DestinationOptions {
    /// The file to write; compressed if its name ends in .gz, "-" for standard output. Only you can
    /// read it, and it appears whole or not at all
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: PathBuf,
    /// If FILE is a symbolic link, replace its target instead of failing
    #[arg(long)]
    pub follow_symlinks: bool,
}

impl DestinationOptions {
    /// The file in words.
    pub fn name(&self) -> String {
        self.output.display().to_string()
    }

    /// What is done with a link.
    pub fn links(&self) -> Links {
        if self.follow_symlinks { Links::Follow } else { Links::Refuse }
    }
}

/// Whether names are pseudonymized.
#[derive(Args, Debug, Default, Clone)]
pub struct Redact {
    /// Replace names, namespaces, labels, images, annotations, hosts and messages with consistent
    /// pseudonyms: the scheduler decides the same, and the file does not show whose cluster it is.
    /// Amounts, times, drivers and names of Kubernetes itself stay
    #[arg(long)]
    pub redact: bool,
}

/// How the debugger looks, and how fast it plays.
#[derive(Args, Debug, Default, Clone)]
#[command(next_help_heading = "Screen")]
pub struct ViewOptions {
    #[command(flatten)]
    pub screen: Screen,
    /// Play a recording from the start at this multiple of its own speed: 1, 10, max. Without it
    /// the debugger waits at the start
    #[arg(long, value_name = "FACTOR")]
    pub speed: Option<Speed>,
}

/// How the debugger looks.
#[derive(Args, Debug, Default, Clone)]
#[command(next_help_heading = "Screen")]
pub struct Screen {
    /// Theme: a built-in one, or a file in the themes folder of the configuration
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,
    /// Colours: auto, always or never; NO_COLOR is honoured
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    #[arg(value_enum)]
    pub color: ColorChoice,
    /// Draw with ASCII characters only
    #[arg(long)]
    pub ascii: bool,
    /// Breakpoints and watches of a file, as :break save writes it; they are saved there when you
    /// leave
    #[arg(long, value_name = "FILE")]
    pub breakpoints: Option<PathBuf>,
}
