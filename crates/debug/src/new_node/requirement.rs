//! Requirements on labels, as karpenter compares them with what an instance type offers.
//!
//! Upstream: `pkg/scheduling/requirement.go` of kubernetes-sigs/karpenter.

use kubestep_api::intern::Symbol;
use kubestep_api::{LabelRequirement, Name};

/// The values that a label may have.
pub(super) type Offered = Vec<(Symbol, Vec<Name>)>;

/// The values of the label; none if it is not known.
pub(super) fn values(offered: &Offered, key: Symbol) -> Option<&[Name]> {
    offered.iter().find(|(other, _)| *other == key).map(|(_, values)| values.as_slice())
}

/// Whether a label with that value, or its absence, meets the requirement.
pub(super) fn allows(requirement: &LabelRequirement, value: Option<Name>) -> bool {
    let listed = |value: Name| requirement.values.contains(&value);
    let bound = requirement.values.first().and_then(|bound| bound.text().parse::<i64>().ok());
    let compares = |holds: fn(i64, i64) -> bool| {
        let number = value.and_then(|value| value.text().parse::<i64>().ok());
        number.zip(bound).is_some_and(|(number, bound)| holds(number, bound))
    };
    match requirement.operator.as_str() {
        "In" => value.is_some_and(listed),
        "NotIn" => !value.is_some_and(listed),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compares(|number, bound| number > bound),
        "Lt" => compares(|number, bound| number < bound),
        "Gte" => compares(|number, bound| number >= bound),
        "Lte" => compares(|number, bound| number <= bound),
        _ => false,
    }
}

/// Whether some of the values meets the requirement.
pub(super) fn allows_some(requirement: &LabelRequirement, values: &[Name]) -> bool {
    values.iter().any(|value| allows(requirement, Some(*value)))
}

/// The requirement as in a selector: `zone In [a, b]`.
pub(super) fn text_of(requirement: &LabelRequirement) -> String {
    let LabelRequirement { key, operator, values } = requirement;
    match values.is_empty() {
        true => format!("{key} {operator}"),
        false => {
            let values: Vec<String> = values.iter().map(|value| value.to_string()).collect();
            format!("{key} {operator} [{}]", values.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirement(operator: &str, values: &[&str]) -> LabelRequirement {
        let values = values.iter().map(|value| Name::new(value)).collect();
        LabelRequirement { key: "k".into(), operator: operator.into(), values }
    }

    #[test]
    fn each_operator_is_karpenters() {
        for (operator, values, value, allowed) in [
            ("In", &["a", "b"][..], Some("a"), true),
            ("In", &["a"], Some("c"), false),
            ("In", &["a"], None, false),
            ("NotIn", &["a"], None, true),
            ("NotIn", &["a"], Some("a"), false),
            ("Exists", &[], Some("x"), true),
            ("Exists", &[], None, false),
            ("DoesNotExist", &[], None, true),
            ("Gt", &["4"], Some("5"), true),
            ("Gt", &["4"], Some("4"), false),
            ("Gte", &["4"], Some("4"), true),
            ("Lte", &["4"], Some("4"), true),
            ("Lt", &["4"], Some("x"), false),
            ("Like", &["a"], Some("a"), false),
        ] {
            let requirement = requirement(operator, values);
            assert_eq!(allows(&requirement, value.map(Name::new)), allowed, "{operator} {value:?}");
        }
        assert_eq!(text_of(&requirement("In", &["a", "b"])), "k In [a, b]");
    }
}
