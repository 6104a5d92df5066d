//! Names of objects and values of labels. A cluster has ever new ones and interned strings are never
//! freed, so a name holds its own text: all of it, or what follows a beginning that many names share.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU32;

use compact_str::{CompactString, format_compact};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

use crate::intern::Symbol;

/// The characters that can be packed, in the order of their codes. The digit 0 means no character.
const ALPHABET: &[u8; 39] = b"-.0123456789_abcdefghijklmnopqrstuvwxyz";
/// The digits of a packed text have this base.
const BASE: u32 = ALPHABET.len() as u32 + 1;
/// Digits in a word: 40⁶ is just below 2³².
const DIGITS: usize = 6;
/// Words of the packed part.
const WORDS: usize = 4;
/// Characters that can be packed, at most.
const PACKED: usize = DIGITS * WORDS;
/// The digit of each byte; 0 if it cannot be packed.
const DIGIT_OF: [u8; 256] = digits();
/// Two digits at once have this base.
const PAIRS: u32 = BASE * BASE;
/// The characters of each two digits; 0 where there is none.
static CHARACTERS: [[u8; 2]; PAIRS as usize] = characters();
/// A multiplier that spreads bits (SplitMix64's).
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
/// In `head`: the packed part is a UUID.
const UUID: u32 = 1 << 31;

const fn digits() -> [u8; 256] {
    let mut digits = [0; 256];
    let mut digit = 0;
    while digit < ALPHABET.len() {
        digits[ALPHABET[digit] as usize] = digit as u8 + 1;
        digit += 1;
    }
    digits
}

const fn characters() -> [[u8; 2]; PAIRS as usize] {
    let mut characters = [[0; 2]; PAIRS as usize];
    let mut at = 0;
    while at < characters.len() {
        characters[at] = [character(at / BASE as usize), character(at % BASE as usize)];
        at += 1;
    }
    characters
}

const fn character(digit: usize) -> u8 {
    if digit == 0 { 0 } else { ALPHABET[digit - 1] }
}

/// The name of an object, or the value of a label. `Copy`, 20 bytes, equal exactly when the text is
/// equal; `Name::default()` is the empty text.
///
/// The last part of the text is packed: a UUID, or up to 24 characters of lower-case letters, digits,
/// `-`, `.` and `_`, from the beginning of a word on. What comes before it, and a text that does not
/// end so, is interned: of `checkout-payments-worker-7d4b9c6f5-x2k9q` it is
/// `checkout-payments-`, of `pvc-` and a UUID `pvc-`, of a text of up to 24 such characters
/// nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name {
    /// The number of the interned beginning plus one, and whether a UUID follows. It is never 0, so
    /// that `Option<Name>` has 20 bytes, too.
    head: NonZeroU32,
    /// The digits of the packed text from its first on, or the bits of the UUID from the highest on:
    /// compared as numbers, they are in the order of the text.
    packed: [u32; WORDS],
}

impl Name {
    /// The empty text.
    pub const EMPTY: Name = Name { head: NonZeroU32::MIN, packed: [0; WORDS] };

    /// The name with this text, whose beginning is interned if the text cannot be packed as a whole.
    pub fn new(text: &str) -> Name {
        let (head, uuid, packed) = split(text);
        let (number, kind) = (Symbol::new(head).number(), if uuid { UUID } else { 0 });
        Name { head: NonZeroU32::MIN.saturating_add(number) | kind, packed }
    }

    /// Whether the text is empty.
    #[inline]
    pub fn is_empty(self) -> bool {
        self == Name::EMPTY
    }

    /// A hash: equal names have the same number, different ones rarely do.
    #[inline]
    pub fn number(self) -> u32 {
        (self.mixed() >> 32) as u32
    }

    /// All bits in one number, each of which changes the upper half.
    #[inline]
    fn mixed(self) -> u64 {
        let pair = |at: usize| u64::from(self.packed[at]) << 32 | u64::from(self.packed[at + 1]);
        let rest = pair(2) ^ u64::from(self.head.get()).rotate_left(20);
        (pair(0).wrapping_mul(ODD) ^ rest).wrapping_mul(ODD)
    }

    /// The text.
    pub fn text(self) -> CompactString {
        let (head, packed) = (self.head().as_str(), self.unpacked());
        match (head, packed.as_str()) {
            ("", _) => packed,
            (_, "") => CompactString::const_new(head),
            _ => format_compact!("{head}{packed}"),
        }
    }

    /// The text as a symbol, which is interned for good: for names that a cluster has few of, such as
    /// those of namespaces.
    pub fn interned(self) -> Symbol {
        Symbol::new(&self.text())
    }

    /// The interned beginning.
    fn head(self) -> Symbol {
        Symbol::numbered((self.head.get() & !UUID) - 1)
    }

    fn is_uuid(self) -> bool {
        self.head.get() & UUID != 0
    }

    /// The text of the packed part.
    fn unpacked(self) -> CompactString {
        if self.is_uuid() {
            let number = self.packed.iter().fold(0, |bits, word| bits << 32 | u128::from(*word));
            let mut text = [0; Hyphenated::LENGTH];
            let text: &str = Uuid::from_u128(number).hyphenated().encode_lower(&mut text);
            return text.into();
        }
        let mut text = [0; PACKED];
        let words = self.packed.into_iter().take_while(|word| *word != 0);
        for (characters, word) in text.chunks_exact_mut(DIGITS).zip(words) {
            let pairs = [word / PAIRS / PAIRS, word / PAIRS % PAIRS, word % PAIRS];
            for (two, pair) in characters.chunks_exact_mut(2).zip(pairs) {
                two.copy_from_slice(&CHARACTERS[pair as usize]);
            }
        }
        let length = text.iter().position(|character| *character == 0).unwrap_or(PACKED);
        // Not an error: all characters are of the alphabet.
        std::str::from_utf8(&text[..length]).unwrap_or_default().into()
    }
}

/// The beginning that is interned, whether the rest is a UUID, and the rest, packed.
fn split(text: &str) -> (&str, bool, [u32; WORDS]) {
    let bytes = text.as_bytes();
    if let Some((start, uuid)) = uuid_at_end(text) {
        let words = std::array::from_fn(|word| (uuid.as_u128() >> (96 - 32 * word)) as u32);
        return (&text[..start], true, words);
    }
    let can_pack = |byte: &&u8| DIGIT_OF[**byte as usize] != 0;
    let length = bytes.iter().rev().take(PACKED).take_while(can_pack).count();
    let first = bytes.len() - length;
    let start = (first..bytes.len()).find(|start| begins_word(bytes, *start));
    let start = start.unwrap_or(bytes.len());
    (&text[..start], false, pack(&bytes[start..]))
}

/// Whether a word begins there, so that what comes before it may be what other names share.
fn begins_word(text: &[u8], at: usize) -> bool {
    at.checked_sub(1).is_none_or(|before| !text[before].is_ascii_alphanumeric())
}

/// The UUID at the end, in the spelling of the API server, and where it begins.
fn uuid_at_end(text: &str) -> Option<(usize, Uuid)> {
    let start = text.len().checked_sub(Hyphenated::LENGTH)?;
    let end = text.get(start..)?;
    let uuid = Uuid::try_parse(end).ok()?;
    let mut spelled = [0; Hyphenated::LENGTH];
    let same = uuid.hyphenated().encode_lower(&mut spelled) == end;
    (same && begins_word(text.as_bytes(), start)).then_some((start, uuid))
}

fn pack(text: &[u8]) -> [u32; WORDS] {
    let mut words = [0; WORDS];
    for (word, characters) in words.iter_mut().zip(text.chunks(DIGITS)) {
        for byte in characters {
            *word = *word * BASE + u32::from(DIGIT_OF[*byte as usize]);
        }
        *word *= BASE.pow((DIGITS - characters.len()) as u32);
    }
    words
}

impl Default for Name {
    fn default() -> Name {
        Name::EMPTY
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.mixed());
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name::new(text)
    }
}

impl From<String> for Name {
    fn from(text: String) -> Name {
        Name::new(&text)
    }
}

impl From<Symbol> for Name {
    fn from(text: Symbol) -> Name {
        Name::new(text.as_str())
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        other.strip_prefix(self.head().as_str()).is_some_and(|rest| self.unpacked() == rest)
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl PartialEq<Symbol> for Name {
    fn eq(&self, other: &Symbol) -> bool {
        *self == *other.as_str()
    }
}

impl PartialEq<Name> for Symbol {
    fn eq(&self, other: &Name) -> bool {
        other == self
    }
}

/// By text.
impl Ord for Name {
    fn cmp(&self, other: &Name) -> Ordering {
        if self.head == other.head {
            return self.packed.cmp(&other.packed);
        }
        // The beginnings mostly differ before one of them ends.
        let heads = [self, other].map(|name| name.head().as_str());
        match heads[0].bytes().zip(heads[1].bytes()).find(|(own, others)| own != others) {
            Some((own, others)) => own.cmp(&others),
            None => self.text().cmp(&other.text()),
        }
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Name) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A line break is written as `\n`, as of a [`Symbol`].
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.width().or(f.precision()).is_some() {
            return f.pad(&self.text().replace('\n', "\\n"));
        }
        fmt::Display::fmt(&self.head(), f)?;
        f.write_str(&self.unpacked())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.text().as_str(), f)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        crate::macros::text(deserializer, |text| Ok::<_, std::convert::Infallible>(Name::new(text)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "0f2a9c54-6d3e-4b61-8a07-5c1f0e9d7b32";

    fn interned(text: &str) -> &'static str {
        Name::new(text).head().as_str()
    }

    #[test]
    fn only_a_beginning_that_others_share_is_interned() {
        assert_eq!(interned("web-7d4b9c6f5-x2k9q"), "");
        assert_eq!(interned("checkout-payments-worker-7d4b9c6f5-x2k9q"), "checkout-payments-");
        assert_eq!(interned("backup-of-everything-29012345-x2k9q"), "backup-of-everything-");
        assert_eq!((interned(ID), interned(&format!("pvc-{ID}"))), ("", "pvc-"));
        assert_eq!(interned("aws:///eu-1a/i-0a1b2c3d4e5f60718"), "aws:///eu-1a/");
        let (upper, long) = (ID.to_uppercase(), "x".repeat(25));
        for whole in ["NVIDIA-A100-SXM4-80GB", "True", &upper, &long] {
            assert_eq!(interned(whole), whole);
        }
    }

    #[test]
    fn what_looks_like_a_uuid_stays_as_it_is() {
        let nil = Uuid::nil().to_string();
        let late = "00000000-0000-0000-8a07-5c1f0e9d7b32";
        for text in [&ID.to_uppercase(), &ID.replace('-', ""), &nil, late, &format!("x{ID}")] {
            assert_eq!(Name::new(text).text(), text);
            assert_ne!(Name::new(text), Name::new(ID));
            assert!(!Name::new(text).is_empty());
        }
    }

    #[test]
    fn twenty_bytes() {
        assert_eq!((size_of::<Name>(), size_of::<Option<Name>>()), (20, 20));
    }

    #[test]
    fn json_has_the_text() {
        let json = serde_json::to_string(&[Name::new(ID), Name::new("Mine")]).unwrap();
        assert_eq!(json, format!("[\"{ID}\",\"Mine\"]"));
        let read: [Name; 2] = serde_json::from_str(&json).unwrap();
        assert_eq!(read, [Name::new(ID), Name::new("Mine")]);
        assert!(serde_json::from_str::<Name>("1").is_err());
        assert_eq!(format!("{:>6}|{:<6}|", Name::new("web"), Name::new("Web")), "   web|Web   |");
        assert_eq!(Name::new("a\nb").to_string(), "a\\nb");
    }

    /// Texts that look like names, and some that do not.
    fn texts() -> impl Strategy<Value = String> {
        let uuid = any::<u128>().prop_map(|bits| Uuid::from_u128(bits).to_string());
        let parts = prop_oneof!["[a-c._-]{0,30}", "[A-Ca-c/\n-]{0,9}", "web-", uuid, ".{0,3}"];
        proptest::collection::vec(parts, 0..4).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn a_name_is_its_text(text in texts()) {
            let name = Name::new(&text);
            let read = name.text();
            prop_assert_eq!(read.as_str(), &text);
            prop_assert_eq!(name.is_empty(), text.is_empty());
            prop_assert_eq!(name.to_string(), text.replace('\n', "\\n"));
            prop_assert!(name == *text);
        }

        #[test]
        fn order_and_equality_are_by_text(a in texts(), b in texts()) {
            let (left, right) = (Name::new(&a), Name::new(&b));
            prop_assert_eq!(left.cmp(&right), a.cmp(&b));
            prop_assert_eq!(left == right, a == b);
            prop_assert_eq!(left == *b, a == b);
        }
    }
}
