//! The program: [`cli`] has the subcommands, [`report`] the text and JSON of their results, and
//! [`tui`] the screen of the debugger. [`plugins`] lists the plugins.
//!
//! It is a library only so that tests and benchmarks can use its parts. What it is built on are the
//! packages in `crates`, and programs of your own should depend on those: `kubestep-debug` shows
//! how to load a cluster, schedule its pods and read the record, `kubestep-framework` how to write
//! and register a plugin.

pub mod cli;
pub mod plugins;
pub mod report;
pub mod tui;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
