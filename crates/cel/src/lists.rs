//! Functions of lists: minimum and maximum, index, sum; and lists as sets.
//!
//! Upstream: `staging/src/k8s.io/apiserver/pkg/cel/library/lists.go`, and of cel-go `ext/lists.go`
//! and `ext/sets.go`.

use std::cmp::Ordering;

use ::cel::common::types::{CelInt, CelOptional, DYN_TYPE, LIST_TYPE};
use ::cel::common::value::{CowVal, Val};
use ::cel::{DeclarationError, Env, ExecutionError};

use crate::quantity::{CallResult, answer, failed, number};

type Items<'v> = Vec<Box<dyn Val + 'v>>;

pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    let mut member = |name: &str, args, op| {
        env.add_member_overload(name, &format!("list_{name}"), LIST_TYPE, args, op)
    };
    member("isSorted", vec![], |args| answer(is_sorted(&items(&args, 0)?)?))?;
    member("sum", vec![], |args| sum(items(&args, 0)?))?;
    member("min", vec![], |args| extreme("min", Ordering::Greater, items(&args, 0)?))?;
    member("max", vec![], |args| extreme("max", Ordering::Less, items(&args, 0)?))?;
    member("indexOf", vec![DYN_TYPE], |args| {
        let (items, item) = (items(&args, 0)?, one(&args, 1)?);
        index(items.iter().position(|known| known.equals(item)))
    })?;
    member("lastIndexOf", vec![DYN_TYPE], |args| {
        let (items, item) = (items(&args, 0)?, one(&args, 1)?);
        index(items.iter().rposition(|known| known.equals(item)))
    })?;
    member("first", vec![], |args| Ok(optional(items(&args, 0)?.into_iter().next())))?;
    member("last", vec![], |args| Ok(optional(items(&args, 0)?.pop())))?;
    env.add_member_overload(
        "includes",
        "dra_includes_dyn_dyn",
        DYN_TYPE,
        vec![DYN_TYPE],
        includes,
    )?;
    let mut set = |name: &str, op| {
        env.add_overload(name, &format!("list_{name}_list"), vec![LIST_TYPE, LIST_TYPE], op)
    };
    set("sets.contains", |args| {
        let (all, some) = (items(&args, 0)?, items(&args, 1)?);
        answer(contains(&all, &some))
    })?;
    set("sets.equivalent", |args| {
        let (left, right) = (items(&args, 0)?, items(&args, 1)?);
        answer(contains(&left, &right) && contains(&right, &left))
    })?;
    set("sets.intersects", |args| {
        let (left, right) = (items(&args, 0)?, items(&args, 1)?);
        answer(left.iter().any(|item| right.iter().any(|other| item.equals(&**other))))
    })
}

fn one<'c, 'b, 'v>(
    args: &'c [CowVal<'b, 'v>],
    at: usize,
) -> Result<&'c (dyn Val + 'v), ExecutionError> {
    args.get(at).map(|arg| &**arg).ok_or(ExecutionError::MissingArgumentOrTarget)
}

fn items<'v>(args: &[CowVal<'_, 'v>], at: usize) -> Result<Items<'v>, ExecutionError> {
    let list = one(args, at)?.as_iterable().ok_or_else(no_overload)?;
    let mut items = Vec::new();
    let mut each = list.iter();
    while let Some(item) = each.next() {
        items.push(item.clone_as_boxed());
    }
    Ok(items)
}

fn no_overload() -> ExecutionError {
    failed("list", "no such overload")
}

fn index<'b, 'v>(position: Option<usize>) -> CallResult<'b, 'v> {
    number(position.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1))
}

fn optional<'b, 'v>(item: Option<Box<dyn Val + 'v>>) -> CowVal<'b, 'v> {
    CowVal::Owned(Box::new(item.map_or_else(CelOptional::none, CelOptional::of)))
}

fn compare(left: &dyn Val, right: &dyn Val) -> Result<Ordering, ExecutionError> {
    left.as_comparer().ok_or_else(no_overload)?.compare(right).map_err(|_| no_overload())
}

fn is_sorted(items: &[Box<dyn Val + '_>]) -> Result<bool, ExecutionError> {
    for pair in items.windows(2) {
        if compare(&*pair[0], &*pair[1])? == Ordering::Greater {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The sum; 0 for an empty list.
fn sum<'b, 'v>(items: Items<'v>) -> CallResult<'b, 'v> {
    let mut items = items.into_iter();
    let Some(mut sum) = items.next() else { return Ok(CowVal::owned(CelInt::from(0))) };
    for item in items {
        let more = sum.as_adder().ok_or_else(no_overload)?.add(&*item)?.into_owned();
        sum = more;
    }
    Ok(CowVal::Owned(sum))
}

/// The first item to which no other item compares as `worse`.
fn extreme<'b, 'v>(name: &str, worse: Ordering, items: Items<'v>) -> CallResult<'b, 'v> {
    let mut items = items.into_iter();
    let empty = || failed(name, &format!("{name} called on empty list"));
    let mut best = items.next().ok_or_else(empty)?;
    for item in items {
        if compare(&*best, &*item)? == worse {
            best = item;
        }
    }
    Ok(CowVal::Owned(best))
}

fn contains(all: &[Box<dyn Val + '_>], some: &[Box<dyn Val + '_>]) -> bool {
    some.iter().all(|item| all.iter().any(|known| known.equals(&**item)))
}

/// The maximum length of a list that `includes` searches: as many values as a device may have.
const LONGEST: usize = 48;

/// `value.includes(other)`: whether an attribute equals a value, or contains it as a list. Stored
/// expressions may use it even with DRAListTypeAttributes, the gate of such lists, off.
///
/// Upstream: `includesFunc` in `staging/src/k8s.io/dynamic-resource-allocation/cel/compile.go`.
fn includes<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [target, wanted] = args.as_slice() else {
        return Err(failed("includes", "no such overload"));
    };
    let is_map = target.as_indexer().is_some() && target.as_adder().is_none();
    let Some(list) = target.as_iterable().filter(|_| !is_map) else {
        return answer(target.equals(&**wanted));
    };
    let mut items = list.iter();
    for at in 0.. {
        let Some(item) = items.next() else { break };
        if at == LONGEST {
            let text = format!(
                "'includes' function cannot be applied to lists longer than {LONGEST} values"
            );
            return Err(failed("includes", &text));
        }
        if item.equals(&**wanted) {
            return answer(true);
        }
    }
    answer(false)
}
