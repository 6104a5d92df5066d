//! `==` and `!=`: values of Kubernetes' own types can only be compared with values of the same
//! type; anything else is an error instead of `false`.
//!
//! The crate's operator cannot fail, so a function replaces it. Upstream: `Equal` in `quantity.go`,
//! `semver.go`, `ip.go` and `cidr.go` of `staging/src/k8s.io/apiserver/pkg/cel`.

use ::cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, operators};
use ::cel::common::types::DYN_TYPE;
use ::cel::common::value::CowVal;
use ::cel::{DeclarationError, Env, ExecutionError};

use crate::quantity::{answer, failed};

const EQUAL: &str = "@equal";

/// The types that can only be compared with values of the same type.
const PARTICULAR: [&str; 4] = ["kubernetes.Quantity", "kubernetes.Semver", "net.IP", "net.CIDR"];

pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(EQUAL, EQUAL, vec![DYN_TYPE, DYN_TYPE], equal)
}

fn equal<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let no_overload = || failed(EQUAL, "no such overload");
    let [left, right] = args.as_slice() else { return Err(no_overload()) };
    let (kind, other) = (left.get_type().name(), right.get_type().name());
    if PARTICULAR.contains(&kind) && kind != other {
        return Err(no_overload());
    }
    answer(left.equals(&**right))
}

/// Replaces the operators by the function.
pub fn rewrite(expression: &mut IdedExpr) {
    parts(expression).into_iter().for_each(rewrite);
    let Expr::Call(call) = &mut expression.expr else { return };
    match call.func_name.as_str() {
        operators::EQUALS => call.func_name = EQUAL.to_owned(),
        operators::NOT_EQUALS => {
            call.func_name = EQUAL.to_owned();
            let equal = IdedExpr { id: expression.id, expr: Expr::Call(call.clone()) };
            let func_name = operators::LOGICAL_NOT.to_owned();
            expression.expr = Expr::Call(CallExpr { func_name, target: None, args: vec![equal] });
        }
        _ => {}
    }
}

fn parts(expression: &mut IdedExpr) -> Vec<&mut IdedExpr> {
    match &mut expression.expr {
        Expr::Call(CallExpr { target, args, .. }) => {
            target.as_deref_mut().into_iter().chain(args).collect()
        }
        Expr::Select(select) => vec![&mut select.operand],
        Expr::List(list) => list.elements.iter_mut().collect(),
        Expr::Map(map) => {
            let entries = map.entries.iter_mut();
            let parts = entries.map(|entry| match &mut entry.expr {
                EntryExpr::MapEntry(entry) => vec![&mut entry.key, &mut entry.value],
                EntryExpr::StructField(field) => vec![&mut field.value],
            });
            parts.flatten().collect()
        }
        Expr::Comprehension(each) => vec![
            &mut each.iter_range,
            &mut each.accu_init,
            &mut each.loop_cond,
            &mut each.loop_step,
            &mut each.result,
        ],
        _ => Vec::new(),
    }
}
