//! A run as comma-separated values, quoted by RFC 4180: one line per pod.

use super::RunReport;
use crate::report::outcome::conditions;

/// A header, then the result of each pod.
pub fn run(report: &RunReport) -> String {
    let mut text =
        line(&["namespace", "pod", "outcome", "node", "attempts", "reason", "uncertain"]);
    for entry in &report.placed {
        let attempt = entry.attempt.to_string();
        let (namespace, name) = (&entry.pod.namespace, entry.pod.name.text());
        let node = entry.node.text();
        let uncertain = conditions(entry.certainty.as_deref()).unwrap_or_default();
        text += &line(&[namespace, &name, "placed", &node, &attempt, "", &uncertain]);
    }
    for entry in &report.evicted {
        let (namespace, name) = (&entry.pod.namespace, entry.pod.name.text());
        let reason = format!("for {}", entry.by);
        text += &line(&[namespace, &name, "evicted", &entry.node.text(), "", &reason, ""]);
    }
    for entry in &report.pending {
        let (namespace, name) = (&entry.pod.namespace, entry.pod.name.text());
        let uncertain = conditions(entry.certainty.as_deref()).unwrap_or_default();
        text += &line(&[namespace, &name, "pending", "", "", &entry.reason, &uncertain]);
    }
    text
}

fn line(fields: &[&str]) -> String {
    let fields: Vec<String> = fields.iter().map(|text| field(text)).collect();
    format!("{}\n", fields.join(","))
}

fn field(text: &str) -> String {
    match text.contains(['"', ',', '\r', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_quotes_gets_them() {
        let fields = ["plain", "a,b", "say \"x\"", "two\nlines", ""];
        assert_eq!(line(&fields), "plain,\"a,b\",\"say \"\"x\"\"\",\"two\nlines\",\n");
    }
}
