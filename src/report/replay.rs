//! Compares the decisions of a cluster's scheduler in a recording with ours: a table of counts, and
//! each decision that differs, with the reason.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::report::add_version;
use kubestep_api::Time;
use kubestep_api::words::count;
use kubestep_config::FeatureGates;
use kubestep_live::Agreement;
use kubestep_live::replay::ReplayedDecision;
use kubestep_source::recording::RecordingHeader;

/// The results of the comparison, in the order of the table.
const VERDICTS: [(Agreement, &str); 5] = [
    (Agreement::Same, "same"),
    (Agreement::Tie, "tie"),
    (Agreement::Different, "different"),
    (Agreement::Opaque, "opaque"),
    (Agreement::Incomparable, "incomparable"),
];

/// What `replay` prints: decisions, and how they compare.
pub struct ReplayReport<'a> {
    /// The header of the recording.
    pub header: &'a RecordingHeader,
    /// When the lists were complete.
    pub listed_at: Time,
    /// The time up to which it was replayed.
    pub until: Time,
    /// The number of replayed changes.
    pub changes: usize,
    /// The decisions, oldest first.
    pub decisions: &'a [ReplayedDecision],
    /// The version and the feature gates that decided here.
    pub gates: FeatureGates,
    /// Notices about the input, one sentence each.
    pub notices: &'a [String],
}

impl ReplayReport<'_> {
    /// Whether any of our decisions differs.
    pub fn differs(&self) -> bool {
        self.count(Agreement::Different) > 0
    }

    /// The results that are counted: that of opaque plugins only where it occurs.
    fn counted(&self) -> impl Iterator<Item = (Agreement, &'static str)> {
        let occurs = |verdict| verdict != Agreement::Opaque || self.count(verdict) > 0;
        VERDICTS.into_iter().filter(move |(verdict, _)| occurs(*verdict))
    }

    fn count(&self, verdict: Agreement) -> usize {
        self.decisions.iter().filter(|decision| of(decision).0 == verdict).count()
    }

    /// The report as text; `all` includes equal decisions.
    pub fn text(&self, all: bool) -> String {
        let seconds = (self.until.0 - self.listed_at.0) as f64 / 1e6;
        let mut text = format!(
            "{seconds:.1} s of {}: {}, {} of the cluster's scheduler{}\n\n",
            self.of(),
            count(self.changes, "change"),
            count(self.decisions.len(), "decision"),
            match self.gates.other_version() {
                Some(version) => format!(", compared with kube-scheduler {version}"),
                None => String::new(),
            }
        );
        // Writing into a String cannot fail.
        for (verdict, _) in self.counted() {
            let _ = writeln!(text, "  {:18} {:>6}", verdict.as_str(), self.count(verdict));
        }
        for (verdict, _) in VERDICTS {
            let mut of_it = self.decisions.iter().filter(|one| of(one).0 == verdict).peekable();
            if of_it.peek().is_none() || (verdict == Agreement::Same && !all) {
                continue;
            }
            let _ = writeln!(text, "\n{}", verdict.as_str());
            of_it.for_each(|one| self.write(&mut text, one));
        }
        text
    }

    fn of(&self) -> String {
        let context = match self.header.context.as_str() {
            "" => "a cluster",
            context => context,
        };
        match self.header.server_version.as_str() {
            "" => context.to_owned(),
            version => format!("{context} ({version})"),
        }
    }

    fn write(&self, text: &mut String, compared: &ReplayedDecision) {
        let decision = &compared.decision;
        let after = (decision.time.0 - self.listed_at.0) as f64 / 1e6;
        let _ = writeln!(text, "  +{after:.3} s  {}", decision.pod);
        let (verdict, reason) = of(compared);
        let _ = writeln!(text, "    theirs: {}", decision.theirs);
        if verdict != Agreement::Same {
            let ours = if decision.ours.is_empty() { "nothing" } else { &decision.ours };
            let _ = writeln!(text, "    ours:   {ours}");
        }
        if !reason.is_empty() {
            let _ = writeln!(text, "    {reason}");
        }
        let learned = decision
            .learned
            .as_ref()
            .filter(|learned| verdict != Agreement::Opaque && learned.is_spoken());
        for line in learned.iter().flat_map(|learned| learned.lines()) {
            let _ = writeln!(text, "    learned: {line}");
        }
    }

    /// The report as JSON, by `schema/replay.v1.json`.
    pub fn json(&self) -> Value {
        let counted = self.counted();
        let counts = counted.map(|(verdict, name)| (name.to_owned(), self.count(verdict).into()));
        let decision = |compared: &ReplayedDecision| {
            let decision = &compared.decision;
            let (verdict, reason) = of(compared);
            let name = VERDICTS.iter().find(|(one, _)| *one == verdict).map(|(_, name)| *name);
            let mut value = json!({
                "time": decision.time.to_string(),
                "pod": decision.pod.to_string(),
                "verdict": name,
                "theirs": decision.theirs,
                "ours": decision.ours,
                "cycle": decision.cycle,
                "reason": reason,
            });
            if let Some(learned) = &decision.learned {
                value["learned"] = json!(learned.as_ref());
            }
            value
        };
        let mut value = json!({
            "schema": "kubestep/replay/v1",
            "context": self.header.context,
            "serverVersion": self.header.server_version,
            "listedAt": self.listed_at.to_string(),
            "until": self.until.to_string(),
            "changes": self.changes,
            "counts": Value::Object(counts.collect()),
            "decisions": self.decisions.iter().map(decision).collect::<Vec<_>>(),
            "notices": self.notices,
        });
        add_version(&mut value, self.gates);
        value
    }
}

/// A decision that ours has not made cannot be compared.
fn of(compared: &ReplayedDecision) -> (Agreement, &str) {
    match compared.verdict() {
        (Agreement::Untried, reason) => (Agreement::Incomparable, reason),
        verdict => verdict,
    }
}
