//! Feature gates as kube-scheduler's command line has them: given more than once, with the name of
//! the component, and with gates that change nothing about scheduling, since the same line is
//! given to all components of a cluster.

/// Gates that kube-scheduler 1.36 knows, one a line.
const KNOWN: &str = include_str!("gates.txt");

/// What was given, in the form that all commands take: only gates that the scheduler looks at,
/// and those of which nothing is known, so that they are refused. Then the names left out.
pub(super) fn own(given: &[String]) -> (Option<String>, Vec<String>) {
    let parts = given.iter().flat_map(|text| text.split(',')).map(str::trim);
    let (mut own, mut others) = (Vec::new(), Vec::new());
    for part in parts.filter(|part| !part.is_empty()) {
        let part = part.strip_prefix("kube:").unwrap_or(part);
        let name = part.split('=').next().unwrap_or_default();
        let known = KNOWN.lines().any(|known| known == name);
        match known && crate::config::Feature::from_name(name).is_none() {
            true => others.push(name.to_owned()),
            false => own.push(part),
        }
    }
    (Some(own.join(",")).filter(|text| !text.is_empty()), others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_of_others_are_left_out() {
        let given = ["kube:MemoryQoS=true,GangScheduling=true".into(), "Typo=true".into()];
        let (gates, others) = own(&given);
        assert_eq!(gates.as_deref(), Some("GangScheduling=true,Typo=true"));
        assert_eq!(others, ["MemoryQoS"]);
        assert_eq!(own(&[]), (None, vec![]));
    }
}
