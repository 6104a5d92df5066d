//! kube-scheduler and `kubestep schedule` compared: the same story on two real API servers, and the
//! objects that each leaves there.
//!
//! It needs a `kube-scheduler` next to the API server in the folder `KUBEBUILDER_ASSETS`; see
//! [`crate::control_plane`]. A story avoids what is random upstream, such as nodes of equal scores.

pub mod devices;
mod extended;
mod flags;
mod gang;
mod metrics;
mod plain;
mod preemption;
mod profiles;
mod seen;
mod stage;
mod volumes;

use std::path::PathBuf;

use crate::control_plane::{assets, minor_version};
use stage::Stage;

/// A story: what is created and awaited on both sides.
type Story = (&'static str, fn(&mut Stage));

/// The kube-scheduler to compare with.
fn upstream() -> PathBuf {
    let program = assets().join("kube-scheduler");
    assert!(program.is_file(), "KUBEBUILDER_ASSETS names a folder without kube-scheduler");
    program
}

/// Runs stories with one configuration, and returns all differences.
fn play(config: &str, gates: &str, stories: &[Story]) {
    let program = upstream();
    let chosen = std::env::var("BESIDE_STORY").ok();
    let mut stage = Stage::new(&program, config, gates);
    let mut differences = String::new();
    for (name, story) in stories {
        if chosen.as_deref().is_some_and(|chosen| chosen != *name) {
            continue;
        }
        stage.begin(name);
        story(&mut stage);
        differences += &stage.end();
    }
    differences += &stage.metrics();
    differences += &stage.leave();
    assert!(differences.is_empty(), "kube-scheduler (-) and kubestep (+) differ:\n{differences}");
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_beside_kube_scheduler_with_the_defaults() {
    let mut stories: Vec<Story> = [plain::STORIES, preemption::STORIES, volumes::STORIES].concat();
    if minor_version() >= 34 {
        // Claims are served as v1.
        stories.extend(devices::STORIES);
    }
    play("", "", &stories);
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_beside_kube_scheduler_with_preemption_in_the_cycle() {
    play("", "SchedulerAsyncPreemption=false", preemption::STORIES);
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_beside_kube_scheduler_with_profiles_and_an_extender() {
    play(profiles::CONFIG, "", profiles::STORIES);
}

#[test]
#[cfg_attr(not(with_api_server), ignore = "needs KUBEBUILDER_ASSETS")]
fn real_beside_kube_scheduler_with_gangs_and_devices_as_resources() {
    let stories: Vec<Story> = [gang::STORIES, extended::STORIES].concat();
    play("", "GenericWorkload=true,GangScheduling=true,DRAExtendedResource=true", &stories);
}
