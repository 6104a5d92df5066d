//! Live clusters: lists, watches, captures, recordings and shadow mode.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot go on has to stop"
)]

mod attended;
mod auxiliary;
mod beside;
mod consent;
mod control_plane;
mod disrupted;
mod extender;
mod follow;
mod mirror;
mod misbehaving;
mod objects;
mod proxy;
mod random;
mod real;
mod real_attended;
mod real_bench;
mod real_port;
mod real_schedule;
mod real_shadow;
mod real_writes;
mod record;
mod running;
mod schedule;
mod schedulers;
mod screens;
mod standin;
#[path = "../pty/terminal.rs"]
mod terminal;
mod versions;
mod writes;
