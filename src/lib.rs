//! kubestep: the debugger for Kubernetes scheduling.

pub mod api;
pub mod cli;
pub mod config;
pub mod debug;
pub mod engine;
pub mod extender_client;
pub mod fixtures;
pub mod intern;
pub mod live;
pub mod report;
pub mod sim;
pub mod source;
pub mod trace;
pub mod tui;
