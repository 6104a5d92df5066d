//! `kubestep man`: manual pages, generated from the command line's definition.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Command};

use crate::cli::exit::Exit;
use crate::cli::registry::Subcommand;

/// Print the manual page, or write those of all commands into a folder
#[derive(Args, Debug)]
#[command(after_help = "For example: kubestep man | man -l -")]
pub(super) struct Man {
    /// An existing folder: kubestep.1, kubestep-run.1, … are written to it
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl Subcommand for Man {
    const NAME: &'static str = "man";

    fn run(&self) -> Result<Exit> {
        let command = crate::cli::command();
        let Some(folder) = &self.folder else {
            kubestep_output::print(&page(command)?)?;
            return Ok(Exit::Fine);
        };
        for subcommand in command.get_subcommands() {
            let name = format!("kubestep-{}", subcommand.get_name());
            write(folder, &name, subcommand.clone().name(name.clone()))?;
        }
        write(folder, "kubestep", command)?;
        Ok(Exit::Fine)
    }
}

fn write(folder: &Path, name: &str, command: Command) -> Result<()> {
    let path = folder.join(format!("{name}.1"));
    std::fs::write(&path, page(command)?).with_context(|| path.display().to_string())
}

fn page(command: Command) -> Result<String> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
