//! The cost of going back in time in a given cluster: copies, steps back, memory.
//!
//! `cargo bench --bench time -- FILE [CYCLES [MIB]]`. Prints one figure per line; MIB is the memory
//! for going back, as for `--history-memory`.

#![allow(clippy::print_stdout, reason = "measurements are printed")]

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kubestep_cluster::{World, load};
use kubestep_config as config;
use kubestep_config::FeatureGates;
use kubestep_debug::{Session, StepOutcome};
use kubestep_source::{Filter, Progress};

/// Default number of cycles.
const CYCLES: usize = 1_000;
/// Copies by which their size is measured.
const COPIES: u64 = 20;

fn session(file: &str) -> Result<Session, String> {
    let read =
        kubestep_source::read(&[PathBuf::from(file)], &Filter::default(), &Progress::default());
    let read = read.map_err(|error| error.to_string())?;
    let (features, registry) = (FeatureGates::default(), kubestep_plugins::registry());
    let config = config::resolve(None, &features, &registry.descriptors());
    let config = config.map_err(|error| error.to_string())?;
    let mut world = World::new(&config, features, &registry).map_err(|error| error.to_string())?;
    load(&mut world, read.objects.into_iter().map(|loaded| loaded.object));
    Ok(Session::new(world))
}

/// Memory of this process in KiB, if the system reports it.
fn resident_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Memory of this process in MiB, as text.
fn resident() -> String {
    resident_kib().map_or("unknown".into(), |kib| format!("{} MiB", kib / 1024))
}

/// The memory of copies of a cluster that are made that many cycles apart: measured, and as
/// reported by the cluster.
fn measure_copies(world: &World, cycles: usize) {
    let mut world = world.clone();
    world.run(cycles);
    let mut copies = vec![world.clone()];
    let before = resident_kib().unwrap_or_default();
    for _ in 0..COPIES {
        world.run(cycles);
        collect(&mut world);
        copies.push(world.clone());
    }
    let took = resident_kib().unwrap_or_default().saturating_sub(before) / COPIES;
    let said = world.copy_bytes(cycles) / 1024;
    println!("a copy after {cycles} cycles: {took} KiB, by its own estimate {said} KiB");
}

/// Drops what a session would take from the world.
fn collect(world: &mut World) {
    world.api_mut().take_events();
    let queue = world.scheduler_mut().queue_mut();
    queue.drain_moves();
    queue.drain_hints();
}

/// The memory of the recording, and the part of its matrices.
fn of_history(session: &Session) -> String {
    let history = session.history();
    let (entries, mib) = (history.len(), history.matrix_bytes() >> 20);
    format!("{entries} entries, {mib} MiB of matrices")
}

/// The shortest and the longest duration of `times` runs.
fn measure<R>(what: &str, times: usize, mut run: impl FnMut(usize) -> R) {
    let mut took: Vec<Duration> = Vec::new();
    for at in 0..times {
        let started = Instant::now();
        let result = run(at);
        took.push(started.elapsed());
        drop(result);
    }
    took.sort();
    let (half, last) = (took[times / 2], took[times - 1]);
    println!("{what}: {half:.2?}, at most {last:.2?}");
}

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let file = arguments.first().ok_or("name a file with a cluster")?;
    let cycles = arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(CYCLES);
    let mut session = session(file)?;
    if let Some(mib) = arguments.get(2).and_then(|text| text.parse::<usize>().ok()) {
        session.set_history_memory(mib << 20);
    }
    println!("loaded: {}", resident());
    measure_copies(session.world(), 32);
    measure_copies(session.world(), 256);
    let copied = session.world().clone();
    measure("copy of the cluster", 20, |_| session.world().clone());
    measure("first cycle after a copy", 1, |_| session.run_cycle());
    drop(copied);
    let mut ran = 128;
    measure("cycle", 20, |_| session.run_cycle());
    let started = Instant::now();
    while session.history().cycle_count() < cycles {
        if session.run_cycle() != StepOutcome::NewCycle && session.advance_to_next_timer().is_none()
        {
            break;
        }
        if session.history().cycle_count() == ran * 2 {
            ran *= 2;
            println!("{ran} cycles: {}, {}", resident(), of_history(&session));
        }
    }
    let ran = session.history().cycle_count();
    println!("{ran} cycles in {:.2?}: {}", started.elapsed(), resident());
    println!("{}", of_history(&session));
    let last = session.timeline().steps().end() - 1;
    measure("step back from the end", 20, |at| session.world_at(last - at - 1));
    measure("jump into the past", 20, |at| session.world_at(last * at / 20));
    measure("step back in the past", 20, |at| session.world_at(last / 2 - at));
    println!("at the end: {}", resident());
    Ok(())
}
