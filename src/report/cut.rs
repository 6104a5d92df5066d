//! Runs that `--max-cycles` ended: what they would have done next is not known.

use kubestep_api::words::count;
use kubestep_debug::diff::Pair;

/// Which of two compared runs were ended, and after how many scheduling cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CutRuns {
    /// Whether each was ended.
    pub sides: Pair<bool>,
    /// `--max-cycles` of both runs.
    pub limit: usize,
}

impl CutRuns {
    /// Whether one was ended.
    pub fn any(&self) -> bool {
        self.sides.a || self.sides.b
    }

    /// A line for each run that was ended; `names` are those of the sides.
    pub fn lines(&self, names: Pair<&str>) -> Vec<String> {
        let sides = [(names.a, self.sides.a), (names.b, self.sides.b)];
        let ended = sides.into_iter().filter(|(_, is_cut)| *is_cut);
        ended
            .map(|(name, _)| format!("{name}: {}, more may differ", ended_after(self.limit)))
            .collect()
    }
}

/// `--max-cycles ended the run after 9 scheduling cycles`.
pub fn ended_after(limit: usize) -> String {
    format!("--max-cycles ended the run after {}", count(limit, "scheduling cycle"))
}

/// The notice of a run that was ended.
pub fn notice(limit: usize) -> String {
    format!("{}: not every pod was tried", ended_after(limit))
}
