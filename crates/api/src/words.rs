//! Wording that messages of several packages share.

use std::fmt::Display;

/// A number of things: `1 node`, `2 nodes`, `3 patches`.
pub fn count<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let hisses = ["s", "x", "ch", "sh"].iter().any(|end| noun.ends_with(end));
    let ending = match hisses {
        _ if number == N::from(1) => "",
        true => "es",
        false => "s",
    };
    format!("{number} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_not_many() {
        let counted = [count(0_usize, "node"), count(1_u64, "node"), count(2_i64, "more node")];
        assert_eq!(counted, ["0 nodes", "1 node", "2 more nodes"]);
        assert_eq!([count(1_u16, "patch"), count(2_u16, "patch")], ["1 patch", "2 patches"]);
    }
}
