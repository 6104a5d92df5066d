//! What a scheduler's message about a pod says, in short.

use std::borrow::Cow;

/// The reasons out of the scheduler's message about a pod, the most frequent first:
/// `4 didn't match Pod's node affinity/selector, 1 had untolerated taint(s)`. A reason that PreFilter
/// had for all nodes has no number. Any other message as it is.
pub fn brief(message: &str) -> Cow<'_, str> {
    let Some((_, reasons)) = message.split_once("nodes are available: ") else {
        return Cow::Borrowed(message);
    };
    let sentence = [". ", " preemption: "].iter().filter_map(|end| reasons.find(end)).min();
    let reasons = reasons[..sentence.unwrap_or(reasons.len())].trim_end_matches('.');
    let mut counted: Vec<(usize, String)> = Vec::new();
    for part in reasons.split(", ") {
        let number = part.split_once(' ').and_then(|(n, words)| Some((n.parse().ok()?, words)));
        match (number, counted.last_mut()) {
            (Some((number, words)), _) => {
                let words = words.strip_prefix("node(s) ").unwrap_or(words);
                counted.push((number, words.to_owned()));
            }
            // A comma within a reason.
            (None, Some((_, words))) => *words = format!("{words}, {part}"),
            (None, None) => return Cow::Owned(reasons.to_owned()),
        }
    }
    counted.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    let words: Vec<String> = counted.iter().map(|(n, words)| format!("{n} {words}")).collect();
    Cow::Owned(words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::brief;

    #[test]
    fn a_message_is_its_reasons_with_the_most_frequent_first() {
        let message = "0/6 nodes are available: 1 node(s) had untolerated taint(s), 4 node(s) \
                       didn't match Pod's node affinity/selector, 1 Insufficient cpu. preemption: \
                       0/6 nodes are available: 6 Preemption is not helpful for scheduling.";
        let shown = "4 didn't match Pod's node affinity/selector, 1 had untolerated taint(s), \
                     1 Insufficient cpu";
        assert_eq!(brief(message), shown);
        let comma = "0/1 nodes are available: 1 node(s) had taints a, b that differ.";
        assert_eq!(brief(comma), "1 had taints a, b that differ");
        let of_all = "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not \
                      found";
        assert_eq!(brief(of_all), "pod has unbound immediate PersistentVolumeClaims");
        for other in ["waiting for scheduling gates: [a]", ""] {
            assert_eq!(brief(other), other);
        }
    }
}
