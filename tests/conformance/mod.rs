//! Comparison with recorded decisions of kube-scheduler 1.36.2.

pub mod config;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;

/// The scenarios of a corpus file, one a line.
pub fn read_lines(path: &Path) -> Vec<Value> {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    BufReader::new(GzDecoder::new(file))
        .lines()
        .map(|line| serde_json::from_str(&line.expect("gzip data")).expect("a JSON line"))
        .collect()
}
