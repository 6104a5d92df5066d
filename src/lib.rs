//! kubestep: the debugger for Kubernetes scheduling.

pub mod api;
pub mod config;
pub mod debug;
pub mod engine;
pub mod intern;
pub mod sim;
pub mod source;
pub mod trace;
