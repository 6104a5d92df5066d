//! kubestep: the debugger for Kubernetes scheduling.

pub mod intern;
