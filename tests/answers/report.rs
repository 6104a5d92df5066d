//! The results of all cases: a table by category, the four percentages, and a file per wrong
//! answer.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use serde_json::Value;

use crate::measure::{Faults, Measure};
use crate::program;

/// One case and the faults of its answer.
pub struct Outcome {
    pub category: &'static str,
    pub seed: u64,
    pub number: usize,
    pub faults: Faults,
}

impl Outcome {
    pub fn has(&self, measure: Measure) -> bool {
        self.faults.iter().any(|(of, _)| *of == measure)
    }
}

/// The numbers of right answers and of all answers, by category and measure.
pub type Table = BTreeMap<&'static str, BTreeMap<Measure, (usize, usize)>>;

pub fn table(outcomes: &[Outcome]) -> Table {
    let mut table = Table::new();
    for outcome in outcomes {
        for measure in Measure::ALL {
            let row = table.entry(outcome.category).or_default();
            let (right, all) = row.entry(measure).or_default();
            *all += 1;
            *right += usize::from(!outcome.has(measure));
        }
    }
    table
}

/// The categories and measures with wrong answers.
pub fn wrong(table: &Table) -> Vec<String> {
    let mut wrong = Vec::new();
    for (category, row) in table {
        let row = row.iter().filter(|(_, (right, all))| right != all);
        wrong.extend(row.map(|(measure, (right, all))| {
            format!("{category}: {measure:?}: {right} of {all} are right")
        }));
    }
    wrong
}

/// The table as text, categories with wrong answers first, and the percentages.
pub fn text(table: &Table) -> String {
    let mut text = format!("{:<34} cause found works smallest\n", "category");
    let mut sums: BTreeMap<Measure, (usize, usize)> = BTreeMap::new();
    for (category, row) in table {
        let _ = write!(text, "{category:<34}");
        for (measure, (right, all)) in row {
            let _ = write!(text, " {right:>3}/{all}");
            let sum = sums.entry(*measure).or_default();
            *sum = (sum.0 + right, sum.1 + all);
        }
        text += "\n";
    }
    for (measure, (right, all)) in sums {
        let percent = 100.0 * right as f64 / all.max(1) as f64;
        let _ = writeln!(text, "{measure:?}: {right}/{all} = {percent:.1} %");
    }
    text
}

/// Writes the case to a file and returns how to reproduce it.
///
/// # Panics
/// The folder is not writable.
pub fn write(
    outcome: &Outcome,
    pod: &str,
    settings: (Option<&str>, &str),
    documents: &[Value],
) -> String {
    let Outcome { category, seed, number, faults } = outcome;
    let folder: PathBuf = std::env::temp_dir().join("kubestep-answers");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{category}-{seed}-{number}.json"));
    std::fs::write(&file, serde_json::to_string_pretty(&program::list(documents)).unwrap())
        .unwrap();
    let mut command = format!("kubestep explain {pod} -f {} --fix", file.display());
    if let Some(config) = settings.0 {
        let path = file.with_extension("config.yaml");
        std::fs::write(&path, program::configuration(config)).unwrap();
        let _ = write!(command, " --config {}", path.display());
    }
    if !settings.1.is_empty() {
        let _ = write!(command, " --feature-gates {}", settings.1);
    }
    let mut text = format!("{category}, seed {seed}, cluster {number}: {command}\n");
    for (measure, fault) in faults {
        let short: String = fault.chars().take(400).collect();
        let _ = writeln!(text, "  {measure:?}: {short}");
    }
    text
}
