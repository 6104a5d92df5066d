//! Reports: the same answers as in the debugger, as text or JSON.

pub mod config;
pub mod diff;
pub mod disruption;
pub mod fixes;
pub mod groups;
pub mod outcome;
pub mod outline;
pub mod replay;
pub mod run;
pub mod survive;
pub mod tested;
pub mod timings;
pub mod upgrade;
pub mod usage;
pub mod versions;
pub mod why;
