//! Finds the known name that is most similar to an unknown one, for error messages.

/// The candidate with the smallest edit distance to `name`, if that is at most a quarter of the
/// length, as for a typo.
pub fn closest(
    name: &str,
    candidates: impl IntoIterator<Item = &'static str>,
) -> Option<&'static str> {
    candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit(name))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Whether `name` differs from `candidate` so little that it may be a typo of it.
pub fn is_typo_of(name: &str, candidate: &str) -> bool {
    name != candidate && distance(name, candidate) <= limit(name)
}

fn limit(name: &str) -> usize {
    (name.chars().count() / 4).max(1)
}

/// The edit distance, ignoring case; swapping two neighbouring characters counts once.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().take(100).collect();
    let b: Vec<char> = b.to_lowercase().chars().take(100).collect();
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_near_name_is_suggested() {
        let known = ["parallelism", "profiles", "extenders"];
        assert_eq!(closest("paralelism", known), Some("parallelism"));
        assert_eq!(closest("Profiles", known), Some("profiles"));
        assert_eq!(closest("frobnicate", known), None);
        assert_eq!(closest("prfoiles", known), Some("profiles"));
        assert_eq!(distance("kitten", "sitting"), 3);
        assert!(is_typo_of("databse", "database"));
        assert!(!is_typo_of("web", "batch") && !is_typo_of("web", "web"));
    }
}
