//! Macros with two variables, such as `map.all(key, value, …)` and `list.transformList(index, item,
//! …)`. They become loops with one variable, a pair.
//!
//! Upstream: cel-go's `ext/comprehensions.go`.

use ::cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, operators,
};
use ::cel::common::types::{CelInt, CelList, CelMap, CelMapKey, DYN_TYPE, MAP_TYPE};
use ::cel::common::value::{CowVal, Val};
use ::cel::parser::{Macro, MacroExprHelper, ParseError};
use ::cel::{DeclarationError, Env, ExecutionError};

use crate::bound;
use crate::quantity::{CallResult, failed};

/// The function that builds the pairs of such a loop.
pub(crate) const PAIRS: &str = "@pairs";
/// The variable of such a loop.
pub(crate) const PAIR: &str = "@pair";
const PUT: &str = "@put";
const MERGE: &str = "@merge";
const RESULT: &str = "@result";

type Helper<'h, 'p> = &'h mut MacroExprHelper<'p>;

pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(PAIRS, PAIRS, vec![DYN_TYPE], pairs)?;
    env.add_overload(PUT, PUT, vec![MAP_TYPE, DYN_TYPE, DYN_TYPE], put)?;
    env.add_overload(MERGE, MERGE, vec![MAP_TYPE, MAP_TYPE], merge)?;
    for (name, args, kind) in [
        ("all", 3, MacroKind::All),
        ("exists", 3, MacroKind::Exists),
        ("existsOne", 3, MacroKind::One),
        ("exists_one", 3, MacroKind::One),
        ("transformList", 3, MacroKind::List),
        ("transformList", 4, MacroKind::List),
        ("transformMap", 3, MacroKind::Map),
        ("transformMap", 4, MacroKind::Map),
        ("transformMapEntry", 3, MacroKind::Entry),
        ("transformMapEntry", 4, MacroKind::Entry),
    ] {
        env.add_macro(Macro::receiver(name, args, move |helper, target, args| {
            expand(kind, helper, target, args)
        }))?;
    }
    Ok(())
}

/// The result that a macro collects.
#[derive(Clone, Copy)]
enum MacroKind {
    All,
    Exists,
    One,
    List,
    Map,
    Entry,
}

fn expand(
    kind: MacroKind,
    helper: Helper<'_, '_>,
    target: &mut Option<IdedExpr>,
    args: &mut Vec<IdedExpr>,
) -> Result<Option<IdedExpr>, ParseError> {
    let names: Vec<String> = args.iter().take(2).filter_map(name).collect();
    let ([key, value], Some(body)) = (&names[..], args.pop()) else {
        let id = args.first().map_or(0, |arg| arg.id);
        return Err(helper.new_error(id, "argument must be a simple name"));
    };
    let filter = (args.len() == 3).then(|| args.pop()).flatten();
    let range = call(helper, PAIRS, target.take().into_iter().collect());
    let mut step = collect(kind, helper, key, body);
    if let Some(filter) = filter {
        let otherwise = ident(helper, RESULT);
        step = call(helper, operators::CONDITIONAL, vec![filter, step, otherwise]);
    }
    let second = part(helper, 1);
    let step = bound(helper, value, second, step);
    let first = part(helper, 0);
    let loop_step = bound(helper, key, first, step);
    let accu_init = start(kind, helper);
    let loop_cond = condition(kind, helper);
    let mut result = ident(helper, RESULT);
    if matches!(kind, MacroKind::One) {
        let one = literal(helper, LiteralValue::Int(1.into()));
        result = call(helper, operators::EQUALS, vec![result, one]);
    }
    let whole = ComprehensionExpr {
        iter_range: range,
        iter_var: PAIR.to_owned(),
        iter_var2: None,
        accu_var: RESULT.to_owned(),
        accu_init,
        loop_cond,
        loop_step,
        result,
    };
    Ok(Some(helper.next_expr(Expr::Comprehension(Box::new(whole)))))
}

fn name(expression: &IdedExpr) -> Option<String> {
    match &expression.expr {
        Expr::Ident(name) => Some(name.clone()),
        _ => None,
    }
}

/// The accumulator extended by the result of the body.
fn collect(kind: MacroKind, helper: Helper<'_, '_>, key: &str, body: IdedExpr) -> IdedExpr {
    let so_far = ident(helper, RESULT);
    match kind {
        MacroKind::All => call(helper, operators::LOGICAL_AND, vec![so_far, body]),
        MacroKind::Exists => call(helper, operators::LOGICAL_OR, vec![so_far, body]),
        MacroKind::One => {
            let one = literal(helper, LiteralValue::Int(1.into()));
            let more = call(helper, operators::ADD, vec![so_far, one]);
            let otherwise = ident(helper, RESULT);
            call(helper, operators::CONDITIONAL, vec![body, more, otherwise])
        }
        MacroKind::List => {
            let one = helper.next_expr(Expr::List(ListExpr::new(vec![body])));
            call(helper, operators::ADD, vec![so_far, one])
        }
        MacroKind::Map => {
            let key = ident(helper, key);
            call(helper, PUT, vec![so_far, key, body])
        }
        MacroKind::Entry => call(helper, MERGE, vec![so_far, body]),
    }
}

fn start(kind: MacroKind, helper: Helper<'_, '_>) -> IdedExpr {
    match kind {
        MacroKind::All => literal(helper, LiteralValue::Boolean(true.into())),
        MacroKind::Exists => literal(helper, LiteralValue::Boolean(false.into())),
        MacroKind::One => literal(helper, LiteralValue::Int(0.into())),
        MacroKind::List => helper.next_expr(Expr::List(ListExpr::new(Vec::new()))),
        MacroKind::Map | MacroKind::Entry => {
            helper.next_expr(Expr::Map(MapExpr { entries: Vec::new() }))
        }
    }
}

/// The loop condition: until the result is decided.
fn condition(kind: MacroKind, helper: Helper<'_, '_>) -> IdedExpr {
    let so_far = ident(helper, RESULT);
    let undecided = match kind {
        MacroKind::All => so_far,
        MacroKind::Exists => call(helper, operators::LOGICAL_NOT, vec![so_far]),
        _ => return literal(helper, LiteralValue::Boolean(true.into())),
    };
    call(helper, operators::NOT_STRICTLY_FALSE, vec![undecided])
}

fn ident(helper: Helper<'_, '_>, name: &str) -> IdedExpr {
    helper.next_expr(Expr::Ident(name.to_owned()))
}

fn literal(helper: Helper<'_, '_>, value: LiteralValue) -> IdedExpr {
    helper.next_expr(Expr::Literal(value))
}

fn call(helper: Helper<'_, '_>, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    helper.next_expr(Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }))
}

/// The key or the value of the pair.
fn part(helper: Helper<'_, '_>, at: i64) -> IdedExpr {
    let pair = ident(helper, PAIR);
    let at = literal(helper, LiteralValue::Int(at.into()));
    call(helper, operators::INDEX, vec![pair, at])
}

/// A list's items with their indexes, or a map's values with their keys.
fn pairs<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> CallResult<'b, 'v> {
    let no_overload = || failed(PAIRS, "no such overload");
    let of = args.first().ok_or_else(no_overload)?;
    let mut each = of.as_iterable().ok_or_else(no_overload)?.iter();
    let map = of.as_indexer().filter(|_| of.as_adder().is_none());
    let mut pairs: Vec<Box<dyn Val + 'v>> = Vec::new();
    let mut at = 0_i64;
    while let Some(item) = each.next() {
        let pair: Vec<Box<dyn Val + 'v>> = match map {
            Some(map) => vec![item.clone_as_boxed(), map.get(item)?.into_owned()],
            None => vec![Box::new(CelInt::from(at)), item.clone_as_boxed()],
        };
        pairs.push(Box::new(CelList::from(pair)));
        at += 1;
    }
    Ok(CowVal::owned(CelList::from(pairs)))
}

fn put<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> CallResult<'b, 'v> {
    let mut args = args.into_iter();
    let (Some(map), Some(key), Some(value)) = (args.next(), args.next(), args.next()) else {
        return Err(failed(PUT, "no such overload"));
    };
    let entries = map.downcast_ref::<CelMap>().cloned().unwrap_or_default();
    let key = CelMapKey::try_from(key.into_owned())?;
    insert(entries, key, value.into_owned()).map(CowVal::owned)
}

fn merge<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> CallResult<'b, 'v> {
    let [map, more] = args.as_slice() else { return Err(failed(MERGE, "no such overload")) };
    let entries =
        |map: &CowVal<'b, 'v>| map.downcast_ref::<CelMap<'v>>().cloned().unwrap_or_default();
    let mut more = entries(more).into_inner().into_iter();
    let all = more.try_fold(entries(map), |all, (key, value)| insert(all, key, value));
    all.map(CowVal::owned)
}

fn insert<'v>(
    map: CelMap<'v>,
    key: CelMapKey<'v>,
    value: Box<dyn Val + 'v>,
) -> Result<CelMap<'v>, ExecutionError> {
    let mut entries = map.into_inner();
    if entries.contains_key(&key) {
        return Err(failed(MERGE, &format!("insert failed: key {key:?} already exists")));
    }
    entries.insert(key, value);
    Ok(CelMap::from(entries))
}
