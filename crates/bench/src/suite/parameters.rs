//! The parameters of a workload: operations name them as `$initNodes`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use kubestep_api::Duration;
use serde::Deserialize;
use serde_json::Value;

/// The values of a workload's parameters, and which of them were used.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Parameters {
    values: BTreeMap<String, Value>,
    #[serde(skip)]
    used: RefCell<BTreeSet<String>>,
}

impl Parameters {
    /// The value of `$name`.
    fn get(&self, parameter: &str) -> Result<&Value, String> {
        let name = parameter
            .strip_prefix('$')
            .ok_or_else(|| format!("the parameter {parameter:?} does not begin with \"$\""))?;
        let value = self.values.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.values.keys().map(String::as_str).collect();
            format!("the workload has no parameter {name:?}; it has {}", known.join(", "))
        })?;
        self.used.borrow_mut().insert(name.to_owned());
        Ok(value)
    }

    fn wrong(parameter: &str, value: &Value, expected: &str) -> String {
        format!("{parameter} is {value}, which is not {expected}")
    }

    /// Replaces a number by a parameter, if one is named.
    pub(super) fn count(&self, count: &mut usize, parameter: &str) -> Result<(), String> {
        if parameter.is_empty() {
            return Ok(());
        }
        let value = self.get(parameter)?;
        // As upstream, a fraction is cut off.
        let number = value.as_f64().filter(|number| *number >= 0.0);
        let number =
            number.ok_or_else(|| Self::wrong(parameter, value, "a number of 0 or more"))?;
        *count = number as usize;
        Ok(())
    }

    /// Replaces a duration by a parameter, if one is named.
    pub(super) fn duration(&self, duration: &mut String, parameter: &str) -> Result<(), String> {
        if parameter.is_empty() {
            return Ok(());
        }
        let value = self.get(parameter)?;
        let text = value.as_str().filter(|text| Duration::parse(text).is_some());
        let text =
            text.ok_or_else(|| Self::wrong(parameter, value, "a duration such as \"10s\""))?;
        text.clone_into(duration);
        Ok(())
    }

    /// Replaces a switch by a parameter, if one is named.
    pub(super) fn switch(&self, on: &mut bool, parameter: &str) -> Result<(), String> {
        if parameter.is_empty() {
            return Ok(());
        }
        let value = self.get(parameter)?;
        *on = value.as_bool().ok_or_else(|| Self::wrong(parameter, value, "true or false"))?;
        Ok(())
    }

    /// The parameters that no operation has used, in order.
    pub fn unused(&self) -> Vec<String> {
        let used = self.used.borrow();
        self.values.keys().filter(|name| !used.contains(*name)).cloned().collect()
    }
}
