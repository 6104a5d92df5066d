//! The known name that is closest to an unknown one, for error messages.

/// The candidate with the smallest edit distance to `name`, if it is near
/// enough to be a slip of the keyboard (a quarter of the length at most).
pub fn closest(
    name: &str,
    candidates: impl IntoIterator<Item = &'static str>,
) -> Option<&'static str> {
    let limit = (name.chars().count() / 4).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance, upper and lower case being equal.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.to_lowercase().chars().take(100).collect();
    let b: Vec<char> = b.to_lowercase().chars().take(100).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let above = row[j + 1];
            let replaced = diagonal + usize::from(x != y);
            row[j + 1] = replaced.min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[b.len()]
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
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
