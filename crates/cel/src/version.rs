//! Semantic versions in CEL: attributes of devices, and the versions they are compared with.
//!
//! Upstream: `staging/src/k8s.io/apiserver/pkg/cel/library/semverlib.go`.

use std::cmp::Ordering;

use ::cel::common::types::{BOOL_TYPE, CelBool, STRING_TYPE, Type};
use ::cel::common::value::{CowVal, StaticVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};
use semver::Version;

use crate::quantity::{CallResult, answer, failed, number, text};
use crate::val_methods;

static SEMVER: Type = Type::new_unspecified_type("kubernetes.Semver");

/// A version as a value.
#[derive(Clone, Debug)]
pub struct VersionValue(pub Version);

impl Val for VersionValue {
    val_methods!(SEMVER, Any);

    fn equals(&self, other: &dyn Val) -> bool {
        let other = other.downcast_ref::<VersionValue>();
        other.is_some_and(|other| self.0.cmp_precedence(&other.0) == Ordering::Equal)
    }
}

impl StaticVal for VersionValue {}

/// Adds the type and its functions.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_type(SEMVER.to_owned())?;
    let relaxed = || vec![STRING_TYPE, BOOL_TYPE];
    env.add_overload("semver", "string_to_semver", vec![STRING_TYPE], create)?;
    env.add_overload("semver", "string_bool_to_semver", relaxed(), create)?;
    let is_semver = |args: Vec<CowVal<'_, '_>>| answer(read(&args).is_ok());
    env.add_overload("isSemver", "is_semver_string", vec![STRING_TYPE], is_semver)?;
    env.add_overload("isSemver", "is_semver_string_bool", relaxed(), is_semver)?;
    let mut member = |name: &str, id: &str, args: Vec<Type>, op| {
        env.add_member_overload(name, id, SEMVER.to_owned(), args, op)
    };
    let other = || vec![SEMVER.to_owned()];
    member("compareTo", "semver_cmp", other(), |args| number(compare(&args)? as i64))?;
    member("isGreaterThan", "semver_is_greater_than", other(), |args| {
        answer(compare(&args)? == Ordering::Greater)
    })?;
    member("isLessThan", "semver_is_less_than", other(), |args| {
        answer(compare(&args)? == Ordering::Less)
    })?;
    member("major", "semver_major", vec![], |args| number(at(&args, 0)?.major as i64))?;
    member("minor", "semver_minor", vec![], |args| number(at(&args, 0)?.minor as i64))?;
    member("patch", "semver_patch", vec![], |args| number(at(&args, 0)?.patch as i64))
}

/// Parses a version as strictly as upstream.
///
/// # Errors
/// It is not a semantic version; the text is upstream's.
pub fn parse(text: &str) -> Result<Version, String> {
    if text.is_empty() {
        return Err("Version string empty".to_owned());
    }
    let mut parts = text.splitn(3, '.');
    let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("No Major.Minor.Patch elements found".to_owned());
    };
    check_number("major", "Major", major)?;
    check_number("minor", "Minor", minor)?;
    let (rest, build) = rest.split_once('+').map_or((rest, None), |(rest, b)| (rest, Some(b)));
    let (patch, pre) = rest.split_once('-').map_or((rest, None), |(patch, p)| (patch, Some(p)));
    check_number("patch", "Patch", patch)?;
    pre.into_iter().flat_map(|pre| pre.split('.')).try_for_each(check_prerelease)?;
    build.into_iter().flat_map(|build| build.split('.')).try_for_each(check_build)?;
    Version::parse(text).map_err(|error| error.to_string())
}

fn check_number(name: &str, title: &str, text: &str) -> Result<(), String> {
    if !is_number(text) {
        return Err(format!("Invalid character(s) found in {name} number {text:?}"));
    }
    if has_leading_zeros(text) {
        return Err(format!("{title} number must not contain leading zeroes {text:?}"));
    }
    check_range(text)
}

fn check_range(text: &str) -> Result<(), String> {
    let why = match text.parse::<u64>() {
        Ok(_) => return Ok(()),
        Err(_) if text.is_empty() => "invalid syntax",
        Err(_) => "value out of range",
    };
    Err(format!("strconv.ParseUint: parsing {text:?}: {why}"))
}

fn check_prerelease(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if !is_number(text) {
        let invalid = || format!("Invalid character(s) found in prerelease {text:?}");
        return is_identifier(text).then_some(()).ok_or_else(invalid);
    }
    if has_leading_zeros(text) {
        return Err(format!("Numeric PreRelease version must not contain leading zeroes {text:?}"));
    }
    check_range(text)
}

fn check_build(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("Build meta data is empty".to_owned());
    }
    let invalid = || format!("Invalid character(s) found in build meta data {text:?}");
    is_identifier(text).then_some(()).ok_or_else(invalid)
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_identifier(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn has_leading_zeros(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

/// The version in the arguments; a second argument `true` relaxes the rules.
fn read(args: &[CowVal<'_, '_>]) -> Result<Version, String> {
    let relaxed = args.get(1).and_then(|arg| arg.downcast_ref::<CelBool>());
    match relaxed.is_some_and(|relaxed| *relaxed.inner()) {
        true => parse(&normalized(text(args))),
        false => parse(text(args)),
    }
}

/// Completes a version: removes a leading `v` and leading zeros, and adds missing numbers.
fn normalized(text: &str) -> String {
    let text = text.strip_prefix('v').unwrap_or(text);
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (numbers, rest) = text.split_at(end);
    let mut numbers: Vec<&str> = numbers.split('.').map(without_zeros).collect();
    numbers.resize(numbers.len().max(3), "0");
    numbers.join(".") + rest
}

fn without_zeros(number: &str) -> &str {
    match number.trim_start_matches('0') {
        "" if !number.is_empty() => "0",
        rest => rest,
    }
}

fn create<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> CallResult<'b, 'v> {
    match read(&args) {
        Ok(version) => Ok(CowVal::owned(VersionValue(version))),
        Err(text) => Err(failed("semver", &text)),
    }
}

fn at(args: &[CowVal<'_, '_>], index: usize) -> Result<Version, ExecutionError> {
    let value = args.get(index).and_then(|value| value.downcast_ref::<VersionValue>());
    value.map(|value| value.0.clone()).ok_or_else(|| failed("semver", "no such overload"))
}

fn compare(args: &[CowVal<'_, '_>]) -> Result<Ordering, ExecutionError> {
    Ok(at(args, 0)?.cmp_precedence(&at(args, 1)?))
}
