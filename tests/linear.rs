//! The work grows linearly with the size of an input, whatever its structure: compares the
//! processor time for one size and for four times that size. The ratio is four for linear and
//! sixteen for quadratic work.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has to stop")]

use std::hint::black_box;
use std::time::Duration;

use kubestep_config as config;
use kubestep_config::FeatureGates;
use kubestep_source::{Filter, read_text};
use rustix::time::{ClockId, clock_gettime};

/// Between the ratios of linear and of quadratic work.
const MOST: f64 = 9.0;
/// The fastest of this many runs counts, as other programs only slow a run down.
const RUNS: usize = 5;

/// Text of about that many bytes.
type Shape = fn(usize) -> String;

const FILES: &[(&str, Shape)] = &[
    ("deep.yaml", |size| format!("a: {}", "[".repeat(size))),
    ("deep-maps.yaml", |size| format!("a: {}", "{a: ".repeat(size / 4))),
    ("deep-in-a-pod.yaml", |size| format!("{POD}  annotations: {}", "[".repeat(size))),
    ("block.yaml", |size| "- ".repeat(size / 2)),
    ("wide.yaml", |size| format!("{POD}  labels: {{{}}}", "a: b, ".repeat(size / 6))),
    ("brackets-in-text.yaml", |size| format!("{POD}  annotations: {{a: '{}'}}", "[".repeat(size))),
    ("quotes.yaml", |size| format!("a: [{} {}]", "[".repeat(150), "'x', ".repeat(size / 5))),
    ("comments.yaml", |size| "# a\n".repeat(size / 4)),
    ("documents.yaml", |size| "---\nkind: Event\n".repeat(size / 16)),
    ("anchors.yaml", |size| {
        let line = |at: usize| format!("a{at}: &a{at} 1\nb{at}: *a{at}\n");
        (0..size / 24).map(line).collect()
    }),
    ("items.yaml", |size| {
        format!("kind: List\nitems:\n{}", "- kind: Event\n  a: b\n".repeat(size / 22))
    }),
    ("deep.json", |size| "[".repeat(size)),
    ("items.json", |size| format!("[{}1]", "{\"kind\":\"Event\"},".repeat(size / 17))),
    ("documents.json", |size| "{\"kind\":\"Event\"}\n".repeat(size / 17)),
    ("name.json", |size| {
        format!(
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{}"}}}}"#,
            "a".repeat(size)
        )
    }),
    ("blank.jsonl", |size| {
        format!("{{\"schema\":\"kubestep/recording/v1\"}}{}", "\n".repeat(size))
    }),
];

const CONFIGURATIONS: &[(&str, Shape)] = &[
    ("deep", |size| format!("{CONFIG}profiles: {}", "[".repeat(size))),
    ("profiles", |size| {
        let profile = |at: usize| format!("- schedulerName: s{at}\n");
        format!("{CONFIG}profiles:\n{}", (0..size / 20).map(profile).collect::<String>())
    }),
    ("unknown", |size| {
        format!("{CONFIG}{}", (0..size / 10).map(|at| format!("a{at}: 1\n")).collect::<String>())
    }),
];

const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n";
const CONFIG: &str =
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

#[test]
fn files_of_every_shape_take_time_in_proportion() {
    for (name, shape) in FILES {
        let read = |text: String| drop(black_box(read_text(name, text.into(), &Filter::default())));
        in_proportion(name, *shape, read);
    }
    let (registry, gates) = (kubestep::plugins::registry(), FeatureGates::default());
    for (name, shape) in CONFIGURATIONS {
        let resolve = |text: String| {
            let _ended = black_box(config::resolve(Some(&text), &gates, &registry.descriptors()));
        };
        in_proportion(name, *shape, resolve);
    }
}

fn in_proportion(name: &str, shape: Shape, work: impl Fn(String)) {
    // Below a few milliseconds, constant costs would hide the growth.
    let mut size = 10_000;
    while spent(&shape(size), &work) < Duration::from_millis(4) && size < 2_000_000 {
        size *= 2;
    }
    let (one, four) = (quickest(&shape(size), &work), quickest(&shape(4 * size), &work));
    let ratio = four.as_secs_f64() / one.as_secs_f64();
    assert!(ratio < MOST, "{name}: {size} bytes take {one:?}, four times as many {four:?}");
}

fn quickest(text: &str, work: &impl Fn(String)) -> Duration {
    (0..RUNS).map(|_| spent(text, work)).min().unwrap()
}

/// Processor time of all threads.
fn spent(text: &str, work: &impl Fn(String)) -> Duration {
    let now = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap();
    let (text, before) = (text.to_owned(), now());
    work(text);
    now() - before
}
