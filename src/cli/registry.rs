//! The table of subcommands, one line each, in the order of the help.
//!
//! A subcommand is a file with a struct of its options that implements [`Subcommand`]. Parsing,
//! help, completions and manual pages all come from this table.

use anyhow::Result;
use clap::{ArgMatches, Args, Command};

use crate::cli::exit::Exit;
use crate::cli::{
    bench, bundle, capture, completions, config, demo, diff, explain, info, man, mcp, plugins,
    rbac, record, render, replay, report, run, schedule, test, upgrade, versions,
};

/// A subcommand, implemented by the struct of its options. The doc comment of the struct is its
/// help.
pub(super) trait Subcommand: Args {
    /// The name on the command line.
    const NAME: &'static str;

    /// Runs the subcommand with the options that were given.
    fn run(&self) -> Result<Exit>;
}

/// A line of the table.
pub(super) struct SubcommandEntry {
    /// The name on the command line.
    pub name: &'static str,
    /// Options and help, for clap.
    pub command: fn() -> Command,
    /// Runs the subcommand with the parsed options.
    pub run: fn(&ArgMatches) -> Result<Exit>,
}

pub(super) const SUBCOMMANDS: &[SubcommandEntry] = &[
    entry::<demo::Demo>(),
    entry::<run::RunCommand>(),
    entry::<explain::Explain>(),
    entry::<report::ReportCommand>(),
    entry::<diff::Diff>(),
    entry::<upgrade::UpgradeCommand>(),
    entry::<config::Config>(),
    entry::<plugins::PluginsCommand>(),
    entry::<versions::Versions>(),
    entry::<capture::Capture>(),
    entry::<record::RecordCommand>(),
    entry::<replay::ReplayCommand>(),
    entry::<bundle::Bundle>(),
    entry::<test::TestCommand>(),
    entry::<bench::Bench>(),
    entry::<rbac::Rbac>(),
    entry::<schedule::Schedule>(),
    entry::<render::Render>(),
    entry::<mcp::Mcp>(),
    entry::<info::Info>(),
    entry::<completions::Completions>(),
    entry::<man::Man>(),
];

const fn entry<S: Subcommand>() -> SubcommandEntry {
    SubcommandEntry { name: S::NAME, command: command::<S>, run: parse_and_run::<S> }
}

fn command<S: Subcommand>() -> Command {
    S::augment_args(Command::new(S::NAME))
}

fn parse_and_run<S: Subcommand>(matches: &ArgMatches) -> Result<Exit> {
    S::from_arg_matches(matches)?.run()
}
