//! The functions that expressions can use, with their signatures.
//!
//! Upstream: `staging/src/k8s.io/apiserver/pkg/cel/environment/base.go` with its libraries, and of
//! cel-go `common/stdlib`, `cel/library.go` and `ext`.

use hashbrown::HashMap;
use std::sync::LazyLock;

use crate::types::Type;

/// A signature of a function.
#[derive(Clone, PartialEq, Debug)]
pub struct Signature {
    /// Whether it is a member function of its first argument.
    pub is_member: bool,
    /// The types of its arguments.
    pub takes: Vec<Type>,
    /// The type of its result.
    pub gives: Type,
}

/// Functions with their signatures: `(int, A) A` for a function, `list(A).(int) A` for a member
/// function of a list. Single capitals are type variables.
const TABLE: &[(&str, &str)] = &[
    ("_?_:_", "(bool, A, A) A"),
    ("_&&_", "(bool, bool) bool"),
    ("_||_", "(bool, bool) bool"),
    ("!_", "(bool) bool"),
    ("@not_strictly_false", "(bool) bool"),
    ("_==_", "(A, A) bool"),
    ("_!=_", "(A, A) bool"),
    ("_<_", ORDER),
    ("_<=_", ORDER),
    ("_>_", ORDER),
    ("_>=_", ORDER),
    (
        "_+_",
        "(bytes, bytes) bytes; (double, double) double; (int, int) int; \
         (list(A), list(A)) list(A); (string, string) string; (uint, uint) uint",
    ),
    ("_-_", "(double, double) double; (int, int) int; (uint, uint) uint"),
    ("_*_", "(double, double) double; (int, int) int; (uint, uint) uint"),
    ("_/_", "(double, double) double; (int, int) int; (uint, uint) uint"),
    ("_%_", "(int, int) int; (uint, uint) uint"),
    ("-_", "(double) double; (int) int"),
    (
        "_[_]",
        "(list(A), int) A; (map(A, B), A) B; (optional(list(A)), int) optional(A); \
         (optional(map(A, B)), A) optional(B)",
    ),
    (
        "_[?_]",
        "(list(A), int) optional(A); (optional(list(A)), int) optional(A); \
         (map(A, B), A) optional(B); (optional(map(A, B)), A) optional(B)",
    ),
    ("@in", "(A, list(A)) bool; (A, map(A, B)) bool"),
    (
        "size",
        "(bytes) int; bytes.() int; (list(A)) int; list(A).() int; (map(A, B)) int; \
         map(A, B).() int; (string) int; string.() int",
    ),
    ("type", "(A) type(A)"),
    ("dyn", "(A) dyn"),
    ("bool", "(bool) bool; (string) bool"),
    ("bytes", "(bytes) bytes; (string) bytes"),
    ("double", "(double) double; (int) double; (string) double; (uint) double"),
    ("int", "(int) int; (double) int; (string) int; (uint) int"),
    ("uint", "(uint) uint; (double) uint; (int) uint; (string) uint"),
    (
        "string",
        "(string) string; (bool) string; (bytes) string; (double) string; (int) string; \
         (uint) string; (ip) string; (cidr) string",
    ),
    ("contains", "string.(string) bool"),
    ("endsWith", "string.(string) bool"),
    ("startsWith", "string.(string) bool"),
    ("matches", "(string, string) bool; string.(string) bool"),
    ("optional.of", "(A) optional(A)"),
    ("optional.ofNonZeroValue", "(A) optional(A)"),
    ("optional.none", "() optional(A)"),
    ("hasValue", "optional(A).() bool"),
    ("value", "optional(A).() A"),
    ("or", "optional(A).(optional(A)) optional(A)"),
    ("orValue", "optional(A).(A) A"),
    ("charAt", "string.(int) string"),
    ("indexOf", "string.(string) int; string.(string, int) int; list(A).(A) int"),
    ("lastIndexOf", "string.(string) int; string.(string, int) int; list(A).(A) int"),
    ("lowerAscii", "string.() string"),
    ("upperAscii", "string.() string"),
    ("replace", "string.(string, string) string; string.(string, string, int) string"),
    ("split", "string.(string) list(string); string.(string, int) list(string)"),
    ("substring", "string.(int) string; string.(int, int) string"),
    ("trim", "string.() string"),
    ("join", "list(string).() string; list(string).(string) string"),
    ("format", "string.(list(dyn)) string"),
    ("strings.quote", "(string) string"),
    ("find", "string.(string) string"),
    ("findAll", "string.(string) list(string); string.(string, int) list(string)"),
    ("isSorted", "list(#).() bool"),
    ("sort", "list(#).() list(#)"),
    ("min", "list(#).() #"),
    ("max", "list(#).() #"),
    ("sum", "list(int).() int; list(uint).() uint; list(double).() double"),
    ("first", "list(A).() optional(A)"),
    ("last", "list(A).() optional(A)"),
    ("slice", "list(A).(int, int) list(A)"),
    ("flatten", "list(list(A)).() list(A); list(dyn).(int) list(dyn)"),
    ("@sortByAssociatedKeys", "list(A).(list(#)) list(A)"),
    ("lists.range", "(int) list(int)"),
    ("reverse", "list(A).() list(A)"),
    ("distinct", "list(A).() list(A)"),
    ("sets.contains", "(list(A), list(A)) bool"),
    ("sets.equivalent", "(list(A), list(A)) bool"),
    ("sets.intersects", "(list(A), list(A)) bool"),
    ("quantity", "(string) quantity"),
    ("isQuantity", "(string) bool"),
    ("sign", "(quantity) int"),
    ("isInteger", "quantity.() bool"),
    ("asInteger", "quantity.() int"),
    ("asApproximateFloat", "quantity.() double"),
    ("add", "quantity.(quantity) quantity; quantity.(int) quantity"),
    ("sub", "quantity.(quantity) quantity; quantity.(int) quantity"),
    ("compareTo", "quantity.(quantity) int; semver.(semver) int"),
    ("isGreaterThan", "quantity.(quantity) bool; semver.(semver) bool"),
    ("isLessThan", "quantity.(quantity) bool; semver.(semver) bool"),
    ("semver", "(string) semver; (string, bool) semver"),
    ("isSemver", "(string) bool; (string, bool) bool"),
    ("major", "semver.() int"),
    ("minor", "semver.() int"),
    ("patch", "semver.() int"),
    ("ip", "(string) ip; cidr.() ip"),
    ("isIP", "(string) bool"),
    ("ip.isCanonical", "(string) bool"),
    ("family", "ip.() int"),
    ("isUnspecified", "ip.() bool"),
    ("isLoopback", "ip.() bool"),
    ("isLinkLocalMulticast", "ip.() bool"),
    ("isLinkLocalUnicast", "ip.() bool"),
    ("isGlobalUnicast", "ip.() bool"),
    ("cidr", "(string) cidr"),
    ("isCIDR", "(string) bool"),
    ("containsIP", "cidr.(string) bool; cidr.(ip) bool"),
    ("containsCIDR", "cidr.(string) bool; cidr.(cidr) bool"),
    ("prefixLength", "cidr.() int"),
    ("masked", "cidr.() cidr"),
    ("includes", "dyn.(dyn) bool"),
    ("@put", "(map(A, B), A, B) map(A, B)"),
    ("@merge", "(map(A, B), map(A, B)) map(A, B)"),
];

/// The signatures of comparison operators.
const ORDER: &str = "(#, #) bool; (int, double) bool; (int, uint) bool; (double, int) bool; \
                     (double, uint) bool; (uint, int) bool; (uint, double) bool";

/// The types that `#` is replaced by.
const ORDERED: [&str; 6] = ["int", "uint", "double", "bool", "string", "bytes"];

/// Functions that upstream has and the interpreter lacks.
const NOT_HERE: &[&str] = &[
    "url",
    "isURL",
    "duration",
    "timestamp",
    "format.named",
    "format.dns1123Label",
    "format.dns1123Subdomain",
    "format.dns1035Label",
    "format.qualifiedName",
    "format.dns1123LabelPrefix",
    "format.dns1123SubdomainPrefix",
    "format.dns1035LabelPrefix",
    "format.labelValue",
    "format.uri",
    "format.uuid",
    "format.byte",
    "format.date",
    "format.datetime",
    "optional.unwrap",
    "unwrapOpt",
];

static FUNCTIONS: LazyLock<HashMap<&'static str, Vec<Signature>>> = LazyLock::new(|| {
    let forms = |text: &str| text.split(';').flat_map(|form| forms(form.trim())).collect();
    TABLE.iter().map(|(name, text)| (*name, forms(text))).collect()
});

/// The signatures of a function; `None` if there is no such function.
pub(crate) fn forms_of(name: &str) -> Option<&'static [Signature]> {
    FUNCTIONS.get(name).map(Vec::as_slice)
}

/// Whether upstream has a function that the interpreter lacks.
pub(crate) fn is_upstreams(name: &str) -> bool {
    NOT_HERE.contains(&name)
}

/// A signature, or one for each ordered type.
fn forms(text: &str) -> Vec<Signature> {
    match text.contains('#') {
        true => ORDERED.iter().filter_map(|name| form(&text.replace('#', name))).collect(),
        false => form(text).into_iter().collect(),
    }
}

fn form(text: &str) -> Option<Signature> {
    let (takes, gives) = text.rsplit_once(") ")?;
    let (receiver, arguments) = match takes.rsplit_once(".(") {
        Some((receiver, arguments)) => (Some(type_of(receiver)?), arguments),
        None => (None, takes.strip_prefix('(')?),
    };
    let arguments = split(arguments).into_iter().map(type_of);
    let is_member = receiver.is_some();
    let takes = receiver.map(Some).into_iter().chain(arguments).collect::<Option<Vec<Type>>>()?;
    Some(Signature { is_member, takes, gives: type_of(gives)? })
}

/// Splits at commas outside brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_i32, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    parts.extend((!last.is_empty()).then_some(last));
    parts
}

fn type_of(text: &str) -> Option<Type> {
    if let Some((name, rest)) = text.split_once('(') {
        let of: Option<Vec<Type>> =
            split(rest.strip_suffix(')')?).into_iter().map(type_of).collect();
        let mut of = of?.into_iter();
        return Some(match name {
            "list" => Type::list(of.next()?),
            "map" => Type::map(of.next()?, of.next()?),
            "optional" => Type::optional(of.next()?),
            _ => Type::Kind(Some(Box::new(of.next()?))),
        });
    }
    Some(match text {
        "A" => Type::Var(0),
        "B" => Type::Var(1),
        "dyn" => Type::Named("dyn"),
        "bool" => Type::Named("bool"),
        "int" => Type::Named("int"),
        "uint" => Type::Named("uint"),
        "double" => Type::Named("double"),
        "string" => Type::Named("string"),
        "bytes" => Type::Named("bytes"),
        "quantity" => Type::Named("kubernetes.Quantity"),
        "semver" => Type::Named("kubernetes.Semver"),
        "ip" => Type::Named("net.IP"),
        "cidr" => Type::Named("net.CIDR"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_can_be_read() {
        for (name, text) in TABLE {
            let expected: usize = text
                .split(';')
                .map(|form| if form.contains('#') { ORDERED.len() } else { 1 })
                .sum();
            assert_eq!(forms_of(name).unwrap().len(), expected, "{name}: {text}");
        }
        let put = &forms_of("@put").unwrap()[0];
        assert_eq!((put.is_member, put.takes.len()), (false, 3));
        let member = &forms_of("containsIP").unwrap()[1];
        assert_eq!((member.is_member, member.takes.len()), (true, 2));
    }
}
