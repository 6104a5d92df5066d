//! Comparison with recorded decisions of kube-scheduler 1.36.2.

pub mod config;

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;

/// The scenarios of a corpus file, one a line.
pub fn read_lines(path: &Path) -> io::Result<Vec<Value>> {
    let lines = BufReader::new(GzDecoder::new(File::open(path)?)).lines();
    lines.map(|line| Ok(serde_json::from_str(&line?)?)).collect()
}
