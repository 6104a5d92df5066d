//! Whether an input fits into memory, which is said before the system ends the program.
//!
//! All estimates are too small rather than too large: what they reject does not fit.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};

use kubestep_api::words::count;
use kubestep_debug::Session;
use kubestep_source::Progress;

/// MiB that the program may take, instead of what the machine and its control groups allow.
pub(super) const VARIABLE: &str = "KUBESTEP_MEMORY";

/// Memory of a node, a pod and the record of a cycle without matrices, in bytes.
const NODE: u64 = 2_000;
const POD: u64 = 800;
const CYCLE: u64 = 3_500;
/// How often the memory is looked at while the input is read.
const STEP: Duration = Duration::from_millis(100);
/// The part of the input from which the need of all of it is estimated.
const READ: f64 = 0.2;
/// Memory of buffers and threads while the input is read, in bytes. It does not grow with the input.
const BUFFERS: u64 = 32 << 20;

/// Checks that the cycles of the pending pods, at most `limit`, fit into memory.
///
/// # Errors
/// They do not.
pub(super) fn check(session: &Session, limit: usize) -> Result<()> {
    let world = session.world();
    let (nodes, pods) = (world.api().nodes().count(), world.api().objects().pods.len());
    let [active, ..] = world.scheduler().queue().lengths();
    let cycles = active.min(limit);
    let need = nodes as u64 * NODE + pods as u64 * POD + cycles as u64 * CYCLE;
    match allowed().filter(|allowed| need > *allowed) {
        None => Ok(()),
        Some(allowed) => bail!(
            "{}, {} and {} take at least {}, and {} of memory are available; -n, -l, --exclude \
             and --max-cycles take less of the input",
            count(nodes, "node"),
            count(pods, "pod"),
            count(cycles, "scheduling cycle"),
            mebibytes(need),
            mebibytes(allowed)
        ),
    }
}

/// Runs `work`, which reads the input, and ends it if the input does not fit into memory.
///
/// # Errors
/// Those of `work`, or the input does not fit.
pub(super) fn guard<T>(progress: &Progress, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let Some((allowed, before)) = allowed().zip(resident()) else { return work() };
    let too_large = OnceLock::new();
    let done = thread::scope(|scope| {
        let (working, ended) = channel::<()>();
        let too_large = &too_large;
        scope.spawn(move || {
            while ended.recv_timeout(STEP) == Err(RecvTimeoutError::Timeout) {
                let need = resident().zip(progress.part()).and_then(|(now, part)| {
                    projected(before, now, part).filter(|need| *need > allowed)
                });
                if let Some(need) = need {
                    let _first = too_large.set(need);
                    progress.cancel.store(true, Ordering::Relaxed);
                    return;
                }
            }
        });
        let done = work();
        drop(working);
        done
    });
    match too_large.get() {
        Some(need) if done.is_err() => bail!(
            "the input takes at least {} when it is read, and {} of memory are available; -n, -l \
             and --exclude take less of it",
            mebibytes(*need),
            mebibytes(allowed)
        ),
        _ => done,
    }
}

/// The memory after the whole input was read, at least, from that before and that after a part.
fn projected(before: u64, now: u64, part: f64) -> Option<u64> {
    // Parts that objects share do not grow with the input either.
    let grown = now.saturating_sub(before + BUFFERS) as f64 / part * 0.75;
    (part >= READ).then_some(before + grown as u64)
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// Memory that this process may take in all, in bytes; `None`: unknown.
fn allowed() -> Option<u64> {
    if let Some(set) = std::env::var(VARIABLE).ok().and_then(|text| text.parse::<u64>().ok()) {
        return Some(set << 20);
    }
    let machine = std::fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| kibibytes(&text, "MemAvailable:"));
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok();
    let groups = groups.and_then(|text| of_control_groups(Path::new("/sys/fs/cgroup"), &text));
    let free = machine.into_iter().chain(groups).min()?;
    Some(resident()? + free)
}

/// The memory that this process takes, in bytes.
fn resident() -> Option<u64> {
    kibibytes(&std::fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// The value of a line such as `MemAvailable:   12345 kB`, in bytes.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? << 10)
}

/// What the control groups of this process leave, in bytes: the least of a group and those around
/// it. `root` is where they are mounted, `text` names the group.
fn of_control_groups(root: &Path, text: &str) -> Option<u64> {
    let of_line = |line: &str| {
        let (numbers, path) = line.split_once(":/")?;
        let (folder, [limit, usage]) = match numbers {
            "0:" => (PathBuf::new(), ["memory.max", "memory.current"]),
            _ if numbers.split([':', ',']).any(|name| name == "memory") => {
                (PathBuf::from("memory"), ["memory.limit_in_bytes", "memory.usage_in_bytes"])
            }
            _ => return None,
        };
        let read = |group: &Path, file: &str| {
            std::fs::read_to_string(root.join(&folder).join(group).join(file)).ok()
        };
        let left = |group: &Path| {
            let number = |file| read(group, file)?.trim().parse::<u64>().ok();
            // Files that were read can be dropped from memory.
            let files = read(group, "memory.stat").and_then(|text| {
                let line = text.lines().find(|line| line.starts_with("inactive_file "))?;
                line.split_whitespace().nth(1)?.parse::<u64>().ok()
            });
            let used = number(usage)?.saturating_sub(files.unwrap_or(0));
            Some(number(limit)?.saturating_sub(used))
        };
        Path::new(path).ancestors().filter_map(left).min()
    };
    text.lines().filter_map(of_line).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_of_nested_groups_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("pods/pod/memory.max", "max\n");
        write("pods/pod/memory.current", "50\n");
        write("pods/memory.max", "1000\n");
        write("pods/memory.current", "400\n");
        write("pods/memory.stat", "anon 300\ninactive_file 100\n");
        assert_eq!(of_control_groups(root.path(), "0::/pods/pod\n"), Some(700));
        write("memory/box/memory.limit_in_bytes", "500\n");
        write("memory/box/memory.usage_in_bytes", "100\n");
        let old = "12:cpu,cpuacct:/box\n4:memory:/box\n";
        assert_eq!(of_control_groups(root.path(), old), Some(400));
        assert_eq!(of_control_groups(root.path(), "0::/elsewhere\n"), None);
    }

    #[test]
    fn memory_is_projected_from_a_part_that_says_something() {
        let mib = 1 << 20;
        assert_eq!(projected(10 * mib, 110 * mib, 0.1), None);
        assert_eq!(projected(10 * mib, 110 * mib, 0.25), Some(214 * mib));
        assert_eq!(projected(10 * mib, 5 * mib, 0.5), Some(10 * mib));
        assert!(resident() > Some(mib) && allowed() > resident());
        assert_eq!(kibibytes("A: 1 kB\nMemAvailable:  3 kB\n", "MemAvailable:"), Some(3 << 10));
    }
}
