//! `kubestep completions`: shell completions of the command line.

use anyhow::Result;
use clap::Args;
use clap_complete::Shell;

use crate::cli::exit::Exit;
use crate::cli::registry::Subcommand;

/// Print completions for a shell
#[derive(Args, Debug)]
#[command(after_help = "For example: kubestep completions bash > \
    ~/.local/share/bash-completion/completions/kubestep\n\nNames of pods, nodes, namespaces, \
    contexts and stories are completed too with: source <(COMPLETE=bash kubestep)")]
pub(super) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

impl Subcommand for Completions {
    const NAME: &'static str = "completions";

    fn run(&self) -> Result<Exit> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut crate::cli::command(), "kubestep", &mut text);
        kubestep_output::print(&String::from_utf8_lossy(&text))?;
        Ok(Exit::Fine)
    }
}
