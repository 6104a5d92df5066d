//! `value.includes(other)`: whether an attribute equals a value, or contains it as a list. Stored
//! expressions may use it even with DRAListTypeAttributes, the gate of such lists, off.
//!
//! Upstream: `includesFunc` in `staging/src/k8s.io/dynamic-resource-allocation/cel/compile.go`.

use ::cel::common::types::DYN_TYPE;
use ::cel::common::value::CowVal;
use ::cel::{DeclarationError, Env, ExecutionError};

use crate::quantity::{answer, failed};

const NAME: &str = "includes";

/// The maximum length of a list: as many values as a device may have.
const LONGEST: usize = 48;

/// Adds the function.
pub fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_member_overload(NAME, "dra_includes_dyn_dyn", DYN_TYPE, vec![DYN_TYPE], includes)
}

fn includes<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [target, wanted] = args.as_slice() else { return Err(failed(NAME, "no such overload")) };
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
            return Err(failed(NAME, &text));
        }
        if item.equals(&**wanted) {
            return answer(true);
        }
    }
    answer(false)
}
