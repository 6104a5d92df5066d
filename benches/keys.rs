//! The time of keys and frames in every view, for a given cluster.
//!
//! `cargo bench --bench keys -- FILE [CYCLES [ONLY]]`. Runs the cycles, sets a dozen breakpoints and
//! watches, then presses keys and draws a frame after each. ONLY keeps the measurements with one of
//! these parts in their names, as in `why|jumps`. Prints one line per measurement: keys with the
//! slowest one, then frames, then slices of long work, each with the median and the maximum. Times
//! are processor times of all threads, so that other work on the machine does not count.

#![allow(clippy::print_stdout, reason = "measurements are printed")]

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use kubestep::tui::interface::Interface;
use kubestep::tui::key::KeyPress;
use kubestep::tui::offscreen::parse_keys;
use kubestep::tui::settings::{self, InterfaceOptions};
use kubestep_cluster::{World, load};
use kubestep_config as config;
use kubestep_config::FeatureGates;
use kubestep_debug::{Session, StepOutcome};
use kubestep_source::{Filter, Progress};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use rustix::time::{ClockId, clock_gettime};

/// Default number of cycles.
const CYCLES: usize = 20_000;
/// The slice length of the program.
const SLICE: Duration = Duration::from_millis(20);

/// The breakpoints and watches that are set before keys are pressed.
const SET: &[&str] = &[
    "break Filter/NodeResourcesFit if node.free.cpu < 1500m",
    "break pod:p-17",
    "break node:node-00042",
    "break on:unschedulable",
    "break on:preemption",
    "break queue:backoff",
    "break Score/ImageLocality log if score > 90",
    "break on:tie if cycle > 100000",
    "break Filter/TaintToleration node:node-00009",
    "watch node:node-00001 cpu",
    "watch queue:active",
    "watch pod:p-5",
];

/// The measurements: name and keys.
const TRIED: &[(&str, &str)] = &[
    ("step over, back", "nnnnNNNN"),
    ("step into, back", "ssssSSSS"),
    ("cycles back", "0{{{{{{{{{{{{"),
    ("cycles forward", "}}}}}}"),
    ("jumps", ":cycle 17<enter>:cycle 9000<enter>:cycle 15321<enter>:cycle 4711<enter>"),
    ("jumps, queues shown", "2:cycle 19000<enter>:cycle 12345<enter>{{{}}}"),
    ("overview", "0jjjj<pagedown><pageup>"),
    ("timeline", "1jjjj<pagedown><pageup>Gggo"),
    ("timeline, search", "1/p-19999<enter><esc>"),
    ("queues", "2jjjj<pagedown><pageup>Gggo"),
    ("queues, search", "2/p-1999<enter><esc>"),
    ("matrix", "3jjjj<pagedown><pageup>Ggglloz"),
    ("matrix, search", "3/node-0442<enter><esc>"),
    ("scores", "4jjjj<pagedown><pageup>Ggglo"),
    ("weights", "4lll***%%%"),
    ("nodes", "5jjjj<pagedown><pageup>Ggglo"),
    ("nodes, search", "5/node-0442<enter><esc>"),
    ("pods", "6jjjj<pagedown><pageup>Ggglo"),
    ("pods, search", "6/p-19999<enter><esc>"),
    ("pods in the past", "6:cycle 9001<enter>{{{{"),
    ("why", "6GW<esc>"),
    ("why, folded", "6Ggw<enter>jj"),
    ("describe", "6Gd<esc>3Gd<esc>"),
    ("causes in the matrix", "3Gl<enter><esc>lll<enter><esc>"),
    ("formulas", "4Gl<enter><esc>lll<enter><esc>"),
    ("smallest change", "6GX<esc><esc>"),
    ("waiting", "7jj"),
    ("preemption", "8jj"),
    ("events", "9jjjj<pagedown><pageup>Gggo"),
    ("events, search", "9/p-19999<enter><esc>"),
    ("breakpoints", "Bjjj"),
    ("configuration", "gcjjj"),
    ("times", "gtjj"),
    ("continue back", "0:cycle 19000<enter>CCC"),
    ("what-if", "0:cycle 20000<enter>:what-if cordon node node-00003<enter>u"),
    ("what-if in the past", ":cycle 9000<enter>:what-if cordon node node-00007<enter>}}}D<esc>u"),
    (
        "undo and redo of much",
        ":branch original<enter>:cycle 9000<enter>:what-if cordon node node-00008<enter>cuU",
    ),
    ("to the original", ":branch original<enter>"),
    ("a new future", ":cycle 12000<enter>!"),
];

/// The interface, as the program runs it.
struct Bench {
    interface: Interface,
    terminal: Terminal<TestBackend>,
    keys: Vec<Duration>,
    frames: Vec<Duration>,
    slices: Vec<Duration>,
    /// The key that took longest so far.
    slowest: Option<(Duration, KeyPress)>,
}

/// Processor time of all threads of this process.
fn processor() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// Memory of this process in MiB, if the system reports it.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

fn measured<R>(times: &mut Vec<Duration>, run: impl FnOnce() -> R) -> R {
    let before = processor();
    let result = run();
    times.push(processor().saturating_sub(before));
    result
}

impl Bench {
    fn press(&mut self, key: KeyPress) {
        let Bench { interface, keys, slowest, .. } = self;
        measured(keys, || interface.key(key));
        let took = keys.last().copied().unwrap_or_default();
        if slowest.is_none_or(|(most, _)| most < took) {
            *slowest = Some((took, key));
        }
        self.draw();
        self.finish();
    }

    fn draw(&mut self) {
        let Bench { interface, terminal, frames, .. } = self;
        measured(frames, || terminal.draw(|frame| interface.draw(frame)).map(drop))
            .unwrap_or_default();
    }

    /// Completes the work that a key started, slice by slice.
    fn finish(&mut self) {
        loop {
            let (app, driver) = (&self.interface.app, &self.interface.driver);
            if driver.is_searching() {
                // Background work does not block keys.
                thread::sleep(SLICE);
            } else if !app.is_running() && !driver.is_working() {
                return;
            }
            let Bench { interface, slices, .. } = self;
            measured(slices, || interface.work());
            self.draw();
        }
    }

    fn say(&mut self, what: &str) {
        let part = |times: &mut Vec<Duration>| {
            times.sort();
            let (half, most) = (times.get(times.len() / 2), times.last());
            let [half, most] = [half, most].map(|time| time.map_or(0.0, |t| t.as_secs_f64() * 1e3));
            let text = format!("{:4} × {half:6.1} ≤ {most:7.1} ms", times.len());
            times.clear();
            text
        };
        let (keys, frames) = (part(&mut self.keys), part(&mut self.frames));
        let slices = part(&mut self.slices);
        let slowest = self.slowest.take().map(|(_, key)| key.to_string()).unwrap_or_default();
        println!(
            "{what:22} keys {keys} {slowest:7} frames {frames}  slices {slices}  {} MiB",
            resident()
        );
    }
}

fn session(file: &str, cycles: usize) -> Result<Session, String> {
    let read =
        kubestep_source::read(&[PathBuf::from(file)], &Filter::default(), &Progress::default());
    let read = read.map_err(|error| error.to_string())?;
    let (features, registry) = (FeatureGates::default(), kubestep_plugins::registry());
    let config = config::resolve(None, &features, &registry.descriptors());
    let config = config.map_err(|error| error.to_string())?;
    let mut world = World::new(&config, features, &registry).map_err(|error| error.to_string())?;
    load(&mut world, read.objects.into_iter().map(|loaded| loaded.object));
    let mut session = Session::new(world);
    session.set_history_memory(256 << 20);
    while session.history().cycle_count() < cycles {
        if session.run_cycle() != StepOutcome::NewCycle && session.advance_to_next_timer().is_none()
        {
            break;
        }
    }
    Ok(session)
}

fn main() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let file = arguments.first().ok_or("name a file with a cluster")?;
    let cycles = arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(CYCLES);
    let only = arguments.get(2);
    let session = session(file, cycles)?;
    println!("{} cycles, {} MiB", session.history().cycle_count(), resident());
    let settings = settings::load(&InterfaceOptions::default(), |_| None);
    let (appearance, keymap) = (settings.appearance, settings.keymap);
    let interface = Interface::new(appearance, keymap, session, "bench".into());
    let mut interface = interface.map_err(|e| e.to_string())?;
    interface.resize(160, 50);
    let terminal = Terminal::new(TestBackend::new(160, 50)).map_err(|e| e.to_string())?;
    let [keys, frames, slices] = [const { Vec::new() }; 3];
    let mut shown = Bench { interface, terminal, keys, frames, slices, slowest: None };
    shown.draw();
    for set in SET {
        let typed = format!(":{set}<enter>");
        parse_keys(&typed).map_err(|e| e.to_string())?.into_iter().for_each(|key| shown.press(key));
        shown.say(set);
    }
    let is_meant =
        |what: &str| only.is_none_or(|only| only.split('|').any(|part| what.contains(part)));
    for (what, keys) in TRIED.iter().filter(|(what, _)| is_meant(what)) {
        parse_keys(keys).map_err(|e| e.to_string())?.into_iter().for_each(|key| shown.press(key));
        shown.say(what);
    }
    Ok(())
}
