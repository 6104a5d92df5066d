//! Attaches to a live cluster in shadow mode: lists become a session, watches follow.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::cli::cluster;
use crate::cli::open::{ReadSession, build_with};
use crate::cli::options::InputOptions;
use crate::cli::tries::Tries;
use kubestep_api::intern::Symbol;
use kubestep_api::{Kind, Object, Provisioning};
use kubestep_cluster::schedulers::PodReports;
use kubestep_config::ResolvedConfig;
use kubestep_live::{Feed, Following, NamespaceScope, Pace};
use kubestep_live::{auxiliary, leases};
use kubestep_source::{Filter, Loaded};

/// Opens the cluster that the options select.
pub(super) fn open(input: &InputOptions, filter: Filter) -> Result<(ReadSession, Following)> {
    let target = cluster::target(&input.cluster)?;
    let scope = NamespaceScope { namespaces: input.namespaces.clone() };
    let beside = target.clone();
    let opened = Feed::open(target, scope, Pace::default());
    let (mut snapshot, feed) = opened.map_err(cluster::explained)?;
    let name = feed.link().name().to_owned();
    let mut reports = PodReports::default();
    for object in snapshot.of_kind(Kind::Pod) {
        if let Object::Pod(pod) = object {
            reports.see(pod);
        }
    }
    let notices = snapshot.notices();
    let mut read = kubestep_source::of_objects(snapshot.take_objects(), &name, &filter);
    read.listed_at = Some(snapshot.taken_at);
    read.captured.server_version.clone_from(&snapshot.server_version);
    read.warnings.extend(notices);
    let asked_for = scheduler_names(&read);
    let opened =
        build_with(read, input, &Tries::default(), name, |config| serve_all(config, &asked_for))?;
    let mut following = Following::new(feed, filter);
    following.observe_schedulers(reports, leases::follow(beside.clone()));
    let of_files = Provisioning::clone(opened.session.world().provisioning());
    following.read_auxiliary(auxiliary::follow(beside), of_files);
    Ok((opened, following))
}

/// The scheduler names of pending pods, each with the number of pods.
pub(super) fn scheduler_names(read: &kubestep_source::ReadInput) -> BTreeMap<Symbol, usize> {
    let mut names = BTreeMap::new();
    for Loaded { object, .. } in &read.objects {
        if let Object::Pod(pod) = object
            && pod.spec.node_name.is_empty()
        {
            *names.entry(pod.spec.scheduler_name).or_default() += 1;
        }
    }
    names.remove(&Symbol::EMPTY);
    names
}

/// Adds a profile with the first profile's plugins for each scheduler name without a profile, so
/// that its pods can be inspected too. Returns notices about them.
pub(super) fn serve_all(
    config: &mut ResolvedConfig,
    names: &BTreeMap<Symbol, usize>,
) -> Vec<String> {
    let Some(first) = config.profiles.first().cloned() else { return Vec::new() };
    let mut notices = Vec::new();
    for (name, pods) in names {
        if config.profile(name).is_some() {
            continue;
        }
        config
            .profiles
            .push(kubestep_config::ResolvedProfile { scheduler_name: *name, ..first.clone() });
        notices.push(format!(
            "{} the scheduler {name}, whose rules are unknown: the plugins of {} are used",
            if *pods == 1 {
                "1 pending pod asks for".to_owned()
            } else {
                format!("{pods} pending pods ask for")
            },
            first.scheduler_name
        ));
    }
    notices
}
