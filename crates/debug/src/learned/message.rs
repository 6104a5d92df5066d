//! A scheduler's message about a pod that fits no node, parsed back into reasons with numbers of
//! nodes: `0/6 nodes are available: 2 Insufficient cpu, 4 node(s) were unschedulable. preemption: …`.
//!
//! Upstream: `FitError` in `staging/src/k8s.io/kube-scheduler/framework/types.go`.

/// The message of a FitError.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FitMessage {
    /// The number of nodes that it is about.
    pub nodes: usize,
    /// What PreFilter said instead of reasons by node; empty if the nodes were filtered.
    pub pre_filter: String,
    /// Each reason with the number of nodes. A node can have several.
    pub reasons: Vec<(String, usize)>,
    /// What PostFilter said, after the reasons; empty if it added nothing.
    pub post_filter: String,
}

impl FitMessage {
    /// Parses a message; `None` if it is another one.
    pub fn parse(message: &str) -> Option<FitMessage> {
        let (nodes, rest) = message.strip_prefix("0/")?.split_once(" nodes are available:")?;
        let mut parsed = FitMessage { nodes: nodes.parse().ok()?, ..FitMessage::default() };
        let rest = rest.trim_start();
        if rest.is_empty() {
            return Some(parsed);
        }
        let (reasons, post_filter) = sentences(rest);
        parsed.post_filter = post_filter.to_owned();
        match counted(reasons) {
            Some(reasons) => parsed.reasons = reasons,
            None => parsed.pre_filter = reasons.to_owned(),
        }
        Some(parsed)
    }
}

/// The reasons and what PostFilter said. A reason may contain a full stop, so the first one ends
/// the reasons only where no further number follows.
fn sentences(text: &str) -> (&str, &str) {
    if let Some((reasons, rest)) = text.split_once(". preemption: ") {
        return (reasons, &text[text.len() - rest.len() - "preemption: ".len()..]);
    }
    match text.split_once(". ") {
        Some((reasons, post_filter)) => (reasons, post_filter),
        None => (text.strip_suffix('.').unwrap_or(text), ""),
    }
}

/// The reasons with their numbers; `None` if the text does not begin with a number. What follows a
/// comma without a number belongs to the reason before.
fn counted(text: &str) -> Option<Vec<(String, usize)>> {
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for part in text.split(", ") {
        let number = part.split_once(' ').and_then(|(n, words)| Some((n.parse().ok()?, words)));
        match (number, reasons.last_mut()) {
            (Some((number, words)), _) => reasons.push((words.to_owned(), number)),
            (None, Some((reason, _))) => *reason = format!("{reason}, {part}"),
            (None, None) => return None,
        }
    }
    Some(reasons)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> FitMessage {
        FitMessage::parse(text).unwrap()
    }

    fn reasons(message: &FitMessage) -> Vec<(usize, &str)> {
        message.reasons.iter().map(|(reason, number)| (*number, reason.as_str())).collect()
    }

    #[test]
    fn reasons_come_back_with_their_numbers() {
        let message = parsed(
            "0/6 nodes are available: 1 node(s) had untolerated taint {a.b/c: }, 2 Insufficient cpu, \
             3 cannot align pod, not at all. preemption: 0/6 nodes are available: 1 No preemption \
             victims found for incoming pod.",
        );
        assert_eq!(message.nodes, 6);
        assert_eq!(
            reasons(&message),
            [
                (1, "node(s) had untolerated taint {a.b/c: }"),
                (2, "Insufficient cpu"),
                (3, "cannot align pod, not at all"),
            ]
        );
        assert!(message.post_filter.starts_with("preemption: 0/6"), "{}", message.post_filter);
    }

    #[test]
    fn other_ends_and_pre_filter() {
        let message = parsed("0/2 nodes are available: 2 No v1.2 driver.");
        assert_eq!(reasons(&message), [(2, "No v1.2 driver")]);
        let message = parsed("0/3 nodes are available: pod group waits. gang said no");
        assert_eq!(
            (message.pre_filter.as_str(), message.post_filter.as_str()),
            ("pod group waits", "gang said no")
        );
        assert_eq!(parsed("0/2 nodes are available:").reasons, []);
        for other in ["", "no nodes available to schedule pods", "0/x nodes are available: 1 a."] {
            assert_eq!(FitMessage::parse(other), None);
        }
    }
}
