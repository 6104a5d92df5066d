//! The fingerprint of the pods on a node, as its agent writes it into the NodeResourceTopology.
//!
//! Upstream: `github.com/k8stopologyawareschedwg/podfingerprint`; the hash is XXH64.

use kubestep_framework::pod::NamespacedName;

/// The fingerprint of these pods, in any order.
pub fn fingerprint(pods: impl Iterator<Item = NamespacedName>) -> String {
    let hash = |pod: NamespacedName| {
        let seed = xxh64(pod.namespace.as_bytes(), 0);
        xxh64(pod.name.text().as_bytes(), seed)
    };
    let mut hashes: Vec<u64> = pods.map(hash).collect();
    hashes.sort_unstable();
    let bytes: Vec<u8> = hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect();
    format!("pfp0v001{:016x}", xxh64(&bytes, 0))
}

const P1: u64 = 0x9E37_79B1_85EB_CA87;
const P2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const P3: u64 = 0x1656_67B1_9E37_79F9;
const P4: u64 = 0x85EB_CA77_C2B2_AE63;
const P5: u64 = 0x27D4_EB2F_1656_67C5;

fn round(acc: u64, lane: u64) -> u64 {
    acc.wrapping_add(lane.wrapping_mul(P2)).rotate_left(31).wrapping_mul(P1)
}

/// Reads the bytes of a little-endian number.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

pub(super) fn xxh64(bytes: &[u8], seed: u64) -> u64 {
    let stripes = bytes.chunks_exact(32);
    let rest = stripes.remainder();
    let mut hash = match bytes.len() < 32 {
        true => seed.wrapping_add(P5),
        false => {
            let mut lanes =
                [P1.wrapping_add(P2), P2, 0, P1.wrapping_neg()].map(|it| seed.wrapping_add(it));
            for stripe in stripes {
                for (lane, word) in lanes.iter_mut().zip(stripe.chunks_exact(8)) {
                    *lane = round(*lane, number(word));
                }
            }
            let rotated = lanes.iter().zip([1, 7, 12, 18]).map(|(lane, by)| lane.rotate_left(by));
            let sum = rotated.fold(0, u64::wrapping_add);
            let merge =
                |hash: u64, lane: &u64| (hash ^ round(0, *lane)).wrapping_mul(P1).wrapping_add(P4);
            lanes.iter().fold(sum, merge)
        }
    };
    hash = hash.wrapping_add(bytes.len() as u64);
    let words = rest.chunks_exact(8);
    let mut tail = words.remainder();
    for word in words {
        hash = (hash ^ round(0, number(word))).rotate_left(27).wrapping_mul(P1).wrapping_add(P4);
    }
    if let Some((half, after)) = tail.split_at_checked(4) {
        let mixed = hash ^ number(half).wrapping_mul(P1);
        hash = mixed.rotate_left(23).wrapping_mul(P2).wrapping_add(P3);
        tail = after;
    }
    for byte in tail {
        hash = (hash ^ u64::from(*byte).wrapping_mul(P5)).rotate_left(11).wrapping_mul(P1);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(P2);
    hash = (hash ^ (hash >> 29)).wrapping_mul(P3);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_xxh64() {
        assert_eq!(xxh64(b"", 0), 0xEF46_DB37_51D8_E999);
        assert_eq!(xxh64(b"a", 0), 0xD24E_C4F1_A98C_6E5B);
        assert_eq!(xxh64(b"abc", 0), 0x44BC_2CF5_AD77_0999);
        let text = b"Nobody inspects the spammish repetition";
        assert_eq!(xxh64(text, 0), 0xFBCE_A83C_8A37_8BF1);
    }

    #[test]
    fn the_order_of_the_pods_does_not_matter() {
        let pod = |name: &str| NamespacedName::new("ns".into(), name.into());
        let (ab, ba) = ([pod("a"), pod("b")], [pod("b"), pod("a")]);
        assert_eq!(fingerprint(ab.into_iter()), fingerprint(ba.into_iter()));
        assert_ne!(fingerprint(ab.into_iter()), fingerprint([pod("a")].into_iter()));
        assert_eq!(fingerprint(std::iter::empty()), "pfp0v001ef46db3751d8e999");
    }
}
