//! The command line: the real program, its whole output and its exit code.
//!
//! `UPDATE_GOLDEN=1 cargo test --test cli` rewrites the expected outputs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has to stop"
)]

mod bench;
mod config;
mod controllers;
mod coverage;
mod diff;
mod errors;
mod explain;
mod extended;
mod foreign;
mod harness;
mod kube_version;
mod mcp;
mod new_node;
mod odd;
mod opaque;
mod options;
mod packaging;
mod recordings;
mod redacted;
mod render;
mod report;
mod run;
mod schema;
mod secrets;
mod shapes;
mod storage;
mod tested;
mod tries;
mod upgrade;
mod versions;
mod wasm;

use harness::Call;
use kubestep_source::fixtures::STORIES;

#[test]
fn help() {
    Call::new().says("help", "--help");
    Call::new().says("help-run", "run --help");
    Call::new().says("help-demo", "demo --help");
    Call::new().says("help-explain", "explain --help");
    Call::new().says("help-config", "config --help");
    Call::new().says("help-plugins", "plugins --help");
    Call::new().says("help-render", "render --help");
    Call::new().says("help-info", "info --help");
    Call::new().says("help-completions", "completions --help");
    Call::new().says("help-man", "man --help");
    Call::new().says("help-rbac", "rbac --help");
    Call::new().says("help-schedule", "schedule --help");
    Call::new().says("help-capture", "capture --help");
}

#[test]
fn the_version_is_that_of_the_package() {
    let said = Call::new().run("--version");
    assert_eq!(said.stdout, format!("kubestep {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!((said.stderr.as_str(), said.code), ("", Some(0)));
}

#[test]
fn demo_lists_its_stories() {
    Call::new().says("demo-list", "demo --list");
}

#[test]
fn every_story_runs() {
    for story in STORIES {
        Call::new().says(&format!("stories/{}", story.name), &format!("run --demo {}", story.name));
    }
}

#[test]
fn without_a_terminal_no_screen_is_started() {
    Call::new().says("no-terminal", "demo");
    Call::new().says("no-terminal-file", "-f cluster.yaml");
    // The wrong name is reported before the missing terminal.
    Call::new().says("demo-unknown", "demo taint");
}

#[test]
fn options_may_stand_before_the_command() {
    let before = Call::new().run("--demo fragmented explain report");
    let behind = Call::new().run("explain report --demo fragmented");
    assert_eq!((before.code, before.stdout), (behind.code, behind.stdout));
    Call::new().says("theme-first", "--theme light demo fragmented");
    Call::new().says("option-first", "-f cluster.yaml run -o json");
}

#[test]
fn a_device_is_no_file() {
    let said = Call::new().run("run -f /dev/zero");
    assert!(said.stderr.contains("/dev/zero: is a device, not a file"), "{}", said.stderr);
    let empty = Call::new().run("run -f /dev/null");
    assert!(!empty.stderr.contains("is a device"), "{}", empty.stderr);
}
