//! Shared by all commands on a live cluster: which cluster, how to read it, and the errors if it
//! cannot be reached.

use anyhow::{Context, Result, anyhow};
use futures::future::join;
use tokio::runtime::Runtime;

use crate::cli::exit::Unreachable;
use crate::cli::options::{ClusterOptions, InputOptions};
use kubestep_live::record::missing_kinds;
use kubestep_live::{ClusterSnapshot, KubeconfigTarget, Link, LinkError, NamespaceScope};
use kubestep_live::{auxiliary, leases};
use kubestep_source::Filter;

/// The error if no input is given.
const NOTHING: &str = "nothing to open: name a file or folder with -f PATH (\"-\" reads standard \
    input), a cluster with --kubeconfig or --context, or try the built-in cluster with \
    \"kubestep demo\"";

/// The cluster that the options select.
///
/// # Errors
/// They select none, and there is no kubeconfig.
pub(super) fn target(options: &ClusterOptions) -> Result<KubeconfigTarget> {
    let (kubeconfig, context) = (options.kubeconfig.clone(), options.context.clone());
    let target = KubeconfigTarget { kubeconfig, context, server: None, verbose: options.verbose };
    if target.is_there() { Ok(target) } else { Err(anyhow!(NOTHING)) }
}

/// A runtime for calls to an API server.
pub(super) fn runtime() -> Result<Runtime> {
    kubestep_live::runtime::new().context("cannot wait for a network")
}

/// Lists a cluster once.
pub(super) fn snapshot(
    options: &ClusterOptions,
    namespaces: &[String],
) -> Result<(ClusterSnapshot, String)> {
    let target = target(options)?;
    let scope = NamespaceScope { namespaces: namespaces.to_vec() };
    let taken: Result<_, LinkError> = runtime()?.block_on(async {
        let link = Link::new(target).await?;
        let mut snapshot = ClusterSnapshot::take(&link, &scope).await?;
        (snapshot.leases, snapshot.auxiliary) =
            join(leases::read(&link), auxiliary::read(&link)).await;
        Ok((snapshot, link.name().to_owned()))
    });
    taken.map_err(explained)
}

/// Lists a cluster once, as input like a file's.
pub(super) fn read(
    input: &InputOptions,
    filter: &Filter,
) -> Result<(kubestep_source::ReadInput, String)> {
    let (mut snapshot, name) = snapshot(&input.cluster, &input.namespaces)?;
    let notices = snapshot.notices();
    let mut read = kubestep_source::of_objects(snapshot.take_objects(), &name, filter);
    read.warnings.extend(notices);
    read.captured.at = snapshot.taken_at.to_string();
    read.captured.server_version.clone_from(&snapshot.server_version);
    read.captured.missing = missing_kinds(&snapshot);
    read.captured.leases = snapshot.leases.take().unwrap_or_default();
    read.auxiliary = snapshot.auxiliary;
    Ok((read, format!("cluster {name}")))
}

/// Converts an error of the cluster connection to the program's error.
pub(super) fn explained(error: LinkError) -> anyhow::Error {
    match error {
        LinkError::Unreachable { .. } | LinkError::Refused { .. } => {
            Unreachable(error.to_string()).into()
        }
        error => error.into(),
    }
}
