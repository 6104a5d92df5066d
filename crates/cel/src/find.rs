//! Matches of a regular expression in a text: `find` and `findAll`.
//!
//! Upstream: `staging/src/k8s.io/apiserver/pkg/cel/library/regex.go`.

use ::cel::common::types::{CelInt, CelList, CelString, INT_TYPE, STRING_TYPE};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};
use regex::Regex;

use crate::quantity::{CallResult, failed};

pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let text = || vec![STRING_TYPE];
    env.add_member_overload("find", "string_find_string", STRING_TYPE, text(), find)?;
    env.add_member_overload("findAll", "string_find_all_string", STRING_TYPE, text(), find_all)?;
    let limited = vec![STRING_TYPE, INT_TYPE];
    env.add_member_overload("findAll", "string_find_all_string_int", STRING_TYPE, limited, find_all)
}

fn text<'c>(args: &'c [CowVal<'_, '_>], at: usize) -> &'c str {
    args.get(at).and_then(|arg| arg.downcast_ref::<CelString>()).map_or("", CelString::inner)
}

fn expression(args: &[CowVal<'_, '_>]) -> Result<Regex, ExecutionError> {
    Regex::new(text(args, 1)).map_err(|error| failed("find", &format!("Illegal regex: {error}")))
}

fn find<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> CallResult<'b, 'v> {
    let found =
        expression(&args)?.find(text(&args, 0)).map_or("", |found| found.as_str()).to_owned();
    Ok(CowVal::owned(CelString::from(found)))
}

/// All matches, or at most so many; a negative number means all.
fn find_all<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> CallResult<'b, 'v> {
    let most = args.get(2).and_then(|most| most.downcast_ref::<CelInt>());
    let most = most.and_then(|most| usize::try_from(*most.inner()).ok()).unwrap_or(usize::MAX);
    let expression = expression(&args)?;
    let found = expression.find_iter(text(&args, 0)).take(most);
    let found = found.map(|found| CelString::from(found.as_str().to_owned()));
    let found: Vec<Box<dyn Val + 'v>> =
        found.map(|text| Box::new(text) as Box<dyn Val + 'v>).collect();
    Ok(CowVal::owned(CelList::from(found)))
}
