//! A busy cluster that is followed for a week, on a virtual clock: pods are created, scheduled, run,
//! finish and are deleted, and nodes come and go. The memory of the session stays flat.
//!
//! `cargo test` plays a part of it. `KUBESTEP_SOAK_DAYS=7 cargo test --release -p kubestep-live --test soak --
//! --nocapture` plays a week and prints the memory of each day.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on has to stop"
)]

#[path = "soak/busy_cluster.rs"]
mod busy_cluster;

use std::alloc::System;

use busy_cluster::BusyCluster;
use cap::Cap;
use kubestep_api::intern;
use kubestep_cluster::World;
use kubestep_config as config;
use kubestep_config::FeatureGates;
use kubestep_debug::Session;
use kubestep_live::Shadow;

/// Counts the bytes that are allocated.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Bytes of a compared decision at most.
const DECISION: usize = 1_500;

/// How long a busy cluster is followed, and with which limit.
struct Soak {
    /// Parts after each of which the memory is measured.
    parts: usize,
    /// Pods that come in each part.
    pods: usize,
    /// `--history-memory`, in bytes.
    history: usize,
}

/// The memory after a part, in bytes.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// What is allocated.
    live: usize,
    /// Interned strings, which are never freed.
    strings: usize,
    /// Compared decisions that are kept, whose number has a limit.
    decisions: usize,
}

impl Measured {
    fn now(shadow: &Shadow) -> Measured {
        Measured {
            live: ALLOCATOR.allocated(),
            strings: intern::count(),
            decisions: shadow.decisions().len(),
        }
    }
}

fn session() -> Session {
    let (registry, features) = (kubestep_plugins::registry(), FeatureGates::default());
    let config = config::resolve(None, &features, &registry.descriptors()).unwrap();
    let mut world = World::new(&config, features, &registry).unwrap();
    world.note_writes();
    Session::new(world)
}

fn play(soak: &Soak) -> Vec<Measured> {
    let mut session = session();
    session.set_history_memory(soak.history);
    session.forget_past();
    let mut shadow = Shadow::default();
    let mut cluster = BusyCluster::new(&mut session, &mut shadow);
    let mut measured = Vec::new();
    for part in 1..=soak.parts {
        cluster.run(&mut session, &mut shadow, soak.pods);
        let now = Measured::now(&shadow);
        println!(
            "part {part}: {} changes, {} cycles, {:.1} MiB, {} interned strings",
            cluster.changes(),
            session.history().cycle_count(),
            now.live as f64 / 1_048_576.0,
            now.strings,
        );
        measured.push(now);
    }
    assert!(session.forgotten_before().is_some(), "nothing was dropped: the soak is too short");
    measured
}

#[test]
fn memory_stays_flat_however_long_a_cluster_is_followed() {
    let days: Option<usize> = std::env::var("KUBESTEP_SOAK_DAYS").ok().and_then(|d| d.parse().ok());
    // A pod every two seconds.
    let soak = match days {
        Some(days) => Soak { parts: days.max(3), pods: 43_200, history: 64 << 20 },
        None => Soak { parts: 5, pods: 200, history: 1 << 20 },
    };
    let measured = play(&soak);
    // The first parts fill the history.
    let (settled, last) = (measured[1], measured[measured.len() - 1]);
    let decisions = last.decisions - settled.decisions;
    assert!(last.live <= settled.live / 10 * 11 + decisions * DECISION, "{measured:#?}");
    // Names of objects and values of labels are their own, whatever comes and goes.
    assert_eq!(last.strings, settled.strings, "{measured:#?}");
}
