//! kube-scheduler 1.36 as a library: the objects that a scheduler reads ([`api`]), its
//! configuration ([`config`]) and the scheduler itself ([`engine`]), without clock, network or
//! chance. The crate `kubestep` puts a simulated or a live cluster around it and re-exports it.

pub mod api;
pub mod config;
pub mod engine;
pub mod intern;
