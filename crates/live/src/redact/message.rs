//! Messages of schedulers and connections: their vocabulary is kept, every other word is a name.

use super::Redactor;

/// Vocabulary of schedulers, API servers and connections, in lower case.
const WORDS: &str = include_str!("words.txt");

impl Redactor {
    /// The message with every name replaced, consistently with the objects.
    pub fn message(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        // Taints and quotations are names, even if they are words of the vocabulary.
        let mut is_quoted = false;
        while !rest.is_empty() {
            let end = rest.find(|c: char| !in_word(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            let core = word.trim_end_matches(['.', '/', '-']);
            out += &self.word(core, is_quoted);
            out += &word[core.len()..];
            let mut chars = after.chars();
            let next = chars.next();
            is_quoted = match next {
                Some('{') => true,
                Some('}') => false,
                Some('"') => !is_quoted,
                _ => is_quoted,
            };
            out.extend(next);
            rest = chars.as_str();
        }
        out
    }

    fn word(&mut self, word: &str, is_quoted: bool) -> String {
        let letters = word.trim_start_matches(['.', '/', '-', '_']);
        let lower = letters.to_ascii_lowercase();
        let is_name = is_quoted && self.names.known(letters).is_some();
        let is_known = !is_name && (is_a_word(&lower) || self.kept.contains(letters));
        // Includes times such as 2026-01-31T12.
        let in_number = |c: char| c.is_ascii_digit() || matches!(c, '/' | '.' | '-' | 'T' | 'Z');
        let is_number = letters.starts_with(|c: char| c.is_ascii_digit())
            && letters.chars().all(in_number)
            || letters.is_empty();
        if is_number || is_known || is_native(letters) {
            return word.to_owned();
        }
        if let Some((domain, _)) = letters.split_once('/')
            && super::is_well_known(domain)
        {
            return word.to_owned();
        }
        let before = &word[..word.len() - letters.len()];
        let new = match (self.names.known(letters), letters.split_once('/')) {
            (Some(known), _) => known,
            // namespace/name, or a resource and its domain.
            (None, Some((first, second))) => {
                let (first, second) = (self.word(first, is_quoted), self.word(second, is_quoted));
                format!("{first}/{second}")
            }
            (None, None) => self.names.of(letters, "word"),
        };
        format!("{before}{new}")
    }
}

/// Whether a lower-case word is in the vocabulary.
pub(super) fn is_a_word(word: &str) -> bool {
    WORDS.lines().any(|known| known == word)
}

fn in_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '/' | '-' | '_')
}

/// Names of resources and values that Kubernetes itself defines.
fn is_native(word: &str) -> bool {
    matches!(word, "cpu" | "memory" | "ephemeral-storage" | "pods" | "default-scheduler")
        || word.starts_with("hugepages-")
}
