//! The options, as clap sees them.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::engine::tie_break::TieBreak;
use crate::tui::color::ColorChoice;

/// The debugger for Kubernetes scheduling: kube-scheduler 1.36, step by step.
#[derive(Parser, Debug)]
#[command(name = "kubestep", version, args_conflicts_with_subcommands = true)]
#[command(after_help = "Exit codes: 0 everything placed (or the debugger left), 1 some pod \
    stayed pending, 2 wrong usage or input.")]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub input: Input,
    #[command(flatten)]
    pub view: View,
}

/// The subcommands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Open a built-in cluster: no file and no cluster needed
    Demo(Demo),
    /// Schedule everything without a screen and print what became of each pod
    Run(Box<Run>),
}

/// What to read.
#[derive(Args, Debug, Default)]
pub struct Input {
    /// File or folder with Kubernetes objects (YAML, JSON, lists, dumps; gzip too), "-" for
    /// standard input; may be repeated
    #[arg(short = 'f', long = "filename", value_name = "PATH")]
    pub files: Vec<PathBuf>,
    /// Take only this namespace's objects; may be repeated
    #[arg(short = 'n', long = "namespace", value_name = "NAMESPACE")]
    pub namespaces: Vec<String>,
    /// Take only pods that this label selector matches
    #[arg(short = 'l', long = "selector", value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// Leave out an object: KIND/NAME or KIND/NAMESPACE/NAME, with * as wildcard; may be repeated
    #[arg(long, value_name = "KIND/NAME")]
    pub exclude: Vec<String>,
    /// The scheduler's configuration (KubeSchedulerConfiguration, v1)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Feature gates that differ from the 1.36 defaults: Name=true,Name=false
    #[arg(long, value_name = "GATES")]
    pub feature_gates: Option<String>,
    /// How ties between the best nodes are broken: upstream (what kube-scheduler's heap yields),
    /// first (in the order found) or seed:N (a pick that looks random and can be repeated; it
    /// also says where preemption begins to look)
    #[arg(long, value_name = "HOW", default_value = "upstream")]
    pub tie_break: TieBreak,
    /// Call the extenders of the configuration over the network. Only filter, prioritize and
    /// preempt are ever called; bind is simulated, nothing is written anywhere
    #[arg(long)]
    pub call_extenders: bool,
}

/// How the debugger looks.
#[derive(Args, Debug, Default, Clone)]
#[command(next_help_heading = "Screen")]
pub struct View {
    /// Theme: a built-in one or a file of the themes folder beside the configuration
    #[arg(long, value_name = "NAME", global = true)]
    pub theme: Option<String>,
    /// Colours: auto, always or never; NO_COLOR is honoured
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    #[arg(value_enum)]
    pub color: ColorChoice,
    /// Draw with ASCII characters only
    #[arg(long, global = true)]
    pub ascii: bool,
}

/// `kubestep demo`
#[derive(Args, Debug)]
pub struct Demo {
    /// Which story to open; without it, the tour of several
    #[arg(value_name = "STORY")]
    pub story: Option<String>,
    /// List the stories
    #[arg(long)]
    pub list: bool,
}

/// `kubestep run`
#[derive(Args, Debug)]
pub struct Run {
    #[command(flatten)]
    pub input: Input,
    /// Stop after so many scheduling cycles
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub max_cycles: usize,
    /// Go on until no pod can be tried any more without an event or a timer (the default)
    #[arg(long)]
    pub until_idle: bool,
    /// Replace percentageOfNodesToScore of the configuration, 0 to 100
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..=100))]
    pub percentage_of_nodes_to_score: Option<i32>,
    /// Print one JSON object with the times taken instead of the placements
    #[arg(long)]
    pub timings: bool,
    /// Write one line of JSON a cycle to this file
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// What a line of the trace holds
    #[arg(long, value_name = "DETAIL", default_value = "summary")]
    #[arg(value_parser = ["summary", "full"])]
    pub trace_detail: String,
}
