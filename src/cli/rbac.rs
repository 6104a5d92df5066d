//! `kubestep rbac`: the smallest role that allows reading a cluster, or scheduling in it.

use anyhow::Result;
use clap::Args;

use crate::cli::exit::Exit;
use crate::cli::registry::Subcommand;
use kubestep_live::access;

/// Print the smallest role that allows reading a cluster, or scheduling in it
#[derive(Args, Debug)]
pub(super) struct Rbac {
    /// The role's name
    #[arg(long, value_name = "NAME", default_value = "kubestep")]
    name: String,
    /// The role that "kubestep schedule" needs, which writes
    #[arg(long)]
    schedule: bool,
}

impl Subcommand for Rbac {
    const NAME: &'static str = "rbac";

    fn run(&self) -> Result<Exit> {
        match self.schedule {
            true => kubestep_output::print(&access::scheduler_role(&self.name))?,
            false => kubestep_output::print(&access::cluster_role(&self.name))?,
        }
        Ok(Exit::Fine)
    }
}
