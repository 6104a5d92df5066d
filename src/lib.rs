//! kubestep: the debugger for Kubernetes scheduling.

pub mod config;
pub mod intern;
