//! Finds the known name that is most similar to an unknown one, for error messages.

use kubestep_api::Name;

/// The candidate with the smallest edit distance to `name`, if that is at most a quarter of the
/// length, as for a typo.
pub fn closest<T: AsRef<str>>(name: &str, candidates: impl IntoIterator<Item = T>) -> Option<T> {
    candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate.as_ref()), candidate))
        .filter(|(distance, _)| *distance <= limit(name))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Like [`closest`], for names.
pub fn closest_name(name: Name, candidates: impl IntoIterator<Item = Name>) -> Option<Name> {
    closest(&name.text(), candidates.into_iter().map(Name::text)).map(|near| Name::new(&near))
}

/// Whether `name` differs from `candidate` so little that it may be a typo of it.
pub fn is_typo_of(name: &str, candidate: &str) -> bool {
    name != candidate && distance(name, candidate) <= limit(name)
}

fn limit(name: &str) -> usize {
    (name.chars().count() / 4).max(1)
}

/// The edit distance of the first 100 characters, ignoring case; swapping two neighbours counts once.
fn distance(a: &str, b: &str) -> usize {
    let start = |text: &str| text.chars().take(100).collect::<String>().to_lowercase();
    strsim::osa_distance(&start(a), &start(b))
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
