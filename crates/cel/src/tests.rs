//! Tests of CEL on devices: upstream's table with its values, and upstream's answers to several
//! hundred more expressions.
//!
//! Each line of `answers.jsonl.gz` is such an expression `expr` on a device `dev` of the driver,
//! with `lists` if attributes may be lists, and the `answer`: `true`, `false` or the error.

use std::io::Read;

use serde_json::{Value, json};

use super::*;

const ANSWERS: &[u8] = include_bytes!("tests/answers.jsonl.gz");
const DRIVER: &str = "dra.example.com";
const DEFAULT: Options = Options { lists: false, sharing: true };

fn evaluate(expression: &str, device: Value) -> Result<bool, String> {
    let device: Device = serde_json::from_value(device).unwrap();
    let answer = compile(expression.into(), DEFAULT).matches(DRIVER.into(), &device);
    answer.map_err(|error| error.to_string())
}

/// `expression` on a device with this attribute `name` of the driver.
fn with_name(expression: &str, value: Value) -> Result<bool, String> {
    evaluate(expression, json!({"attributes": {"name": value}}))
}

#[test]
fn what_no_api_server_stores_is_not_compiled() {
    let long = |bytes: usize| format!("{:bytes$}true", "");
    assert_eq!(with_name(&long(10_236), json!({"bool": true})), Ok(true));
    let error = with_name(&long(10_237), json!({"bool": true})).unwrap_err();
    assert_eq!(error, "CEL compile error: 10241 bytes are too long: at most 10240");
}

#[test]
fn attributes_of_every_type() {
    let name = |rest: &str| format!("device.attributes[\"dra.example.com\"].name{rest}");
    assert_eq!(with_name(&name(""), json!({"bool": true})), Ok(true));
    assert_eq!(with_name(&name(" > 0"), json!({"int": 1})), Ok(true));
    assert_eq!(with_name(&name(" == \"fish\""), json!({"string": "fish"})), Ok(true));
    assert_eq!(with_name(&name(" in [\"bird\", \"cat\"]"), json!({"string": "fish"})), Ok(false));
    let newer = name(".isGreaterThan(semver(\"0.0.1\"))");
    assert_eq!(with_name(&newer, json!({"version": "1.0.0"})), Ok(true));
    let relaxed = name(".isGreaterThan(semver(\"v0.0.1\", true)) && isSemver(\"v1\", true)");
    assert_eq!(with_name(&relaxed, json!({"version": "1.0.0"})), Ok(true));
    let lookup = "device.attributes[\"dra.example.com\"][\"name\"]";
    assert_eq!(with_name(lookup, json!({"bool": true})), Ok(true));
}

#[test]
fn unqualified_names_are_of_the_drivers_domain() {
    let device = json!({"attributes": {"other.example.com/name": {"bool": true}}});
    let of =
        |domain: &str| evaluate(&format!("device.attributes[{domain:?}].name"), device.clone());
    assert_eq!(of("other.example.com"), Ok(true));
    assert_eq!(of(DRIVER), Err("CEL runtime error: no such key: name".to_owned()));
    assert_eq!(evaluate("device.driver == \"dra.example.com\"", json!({})), Ok(true));
}

#[test]
fn a_domain_that_is_not_there_is_empty_an_attribute_an_error() {
    let device = json!({"attributes": {"dra.example.com/something": {"bool": true}}});
    let evaluate = |expression: &str| evaluate(expression, device.clone());
    let missing = "device.attributes[\"no-such-domain\"].noSuchAttr.isGreaterThan(quantity(\"0\"))";
    assert_eq!(evaluate(missing), Err("CEL runtime error: no such key: noSuchAttr".to_owned()));
    assert_eq!(evaluate("\"no-such-domain\" in device.attributes"), Ok(false));
    assert_eq!(evaluate("\"dra.example.com\" in device.attributes"), Ok(true));
    assert_eq!(evaluate("has(device.attributes[\"dra.example.com\"].something)"), Ok(true));
    assert_eq!(evaluate("has(device.attributes[\"dra.example.com\"].other)"), Ok(false));
    assert_eq!(evaluate("has(device.attributes[\"x\"].other)"), Ok(false));
    // A side that decides the result absorbs the error, on either side.
    let absorbed = "device.attributes[\"x\"].y == 1 && device.driver == \"z\"";
    assert_eq!(evaluate(absorbed), Ok(false));
}

#[test]
fn capacities_are_quantities() {
    let device = json!({"capacity": {"name": {"value": "1Mi"}}});
    let evaluate = |rest: &str| {
        evaluate(&format!("device.capacity[\"dra.example.com\"].name{rest}"), device.clone())
    };
    assert_eq!(evaluate(".isGreaterThan(quantity(\"1Ki\"))"), Ok(true));
    assert_eq!(evaluate(".isLessThan(quantity(\"1Ki\"))"), Ok(false));
    assert_eq!(evaluate(".compareTo(quantity(\"1024Ki\")) == 0"), Ok(true));
    assert_eq!(evaluate(" == quantity(\"1024Ki\")"), Ok(true));
    assert_eq!(evaluate(".sub(quantity(\"1Ki\")).asInteger() == 1047552"), Ok(true));
    assert_eq!(evaluate(".add(1).isGreaterThan(quantity(\"1Mi\"))"), Ok(true));
    let wrong = evaluate(".isGreaterThan(quantity(\"much\"))").unwrap_err();
    assert!(wrong.starts_with("CEL runtime error: quantities must match"), "{wrong}");
}

#[test]
fn macros_and_strings() {
    let device = json!({
        "attributes": {"services": {"string": "some_example_value"}},
        "capacity": {"memory": {"value": "1Mi"}},
    });
    for expression in [
        "cel.bind(dra, device.attributes[\"dra.example.com\"], dra.services != \"\")",
        "device.attributes.exists_one(x, x == \"dra.example.com\")",
        "device.attributes[\"dra.example.com\"].exists_one(x, x == \"services\")",
        "device.attributes[\"dra.example.com\"].services.split(\"example\").size() >= 2",
        "device.attributes[\"dra.example.com\"].services.matches(\"[^a]?me_\")",
        "device.capacity.exists_one(x, x == \"dra.example.com\")",
        "device.capacity[\"dra.example.com\"].exists_one(x, x == \"memory\")",
        "size(device.attributes) == 1",
        "device.allowMultipleAllocations == false",
        "[1, 2].all(x, x > 0) && [1, 2].exists(x, x == 2) ? true : false",
    ] {
        assert_eq!(evaluate(expression, device.clone()), Ok(true), "{expression}");
    }
    let shared = json!({"allowMultipleAllocations": true});
    assert_eq!(evaluate("device.allowMultipleAllocations", shared), Ok(true));
}

#[test]
fn mistakes_are_found_before_any_device_is_looked_at() {
    let error = |expression: &str| evaluate(expression, json!({})).unwrap_err();
    assert!(error("?!").contains("Syntax error"));
    assert_eq!(error("1"), "CEL compile error: must evaluate to bool or the unknown type, not int");
    assert_eq!(
        error("true && nosuch"),
        "CEL compile error: compilation failed: ERROR: <input>:1:9: undeclared reference to \
         'nosuch' (in container '')\n | true && nosuch\n | ........^"
    );
    assert!(error("device.nosuch == 1").contains("undefined field 'nosuch'"));
    assert!(error("device.driver.nosuch()").contains("undeclared reference to 'nosuch'"));
    let mismatch = |operator: &str, types: &str| {
        format!("found no matching overload for '{operator}' applied to '({types})'")
    };
    assert!(error("1 && true").contains("1:1: expected type 'bool' but found 'int'"));
    assert!(error("device.driver == 1").contains(&mismatch("_==_", "string, int")));
    assert!(error("device.driver > 1").contains(&mismatch("_>_", "string, int")));
    assert_eq!(evaluate("1 < 1.5", json!({})), Ok(true));
    assert!(error("isURL(device.driver)").contains("kubestep cannot evaluate"));
}

#[test]
fn mistakes_that_only_a_device_shows() {
    let name = "device.attributes[\"dra.example.com\"].name";
    assert_eq!(
        with_name(name, json!({"string": "fish"})).unwrap_err(),
        "CEL runtime error: CEL result of type string could not be converted to bool: \
         unsupported native conversion from string to 'bool'"
    );
    assert_eq!(
        with_name("true", json!({"version": "1.0"})).unwrap_err(),
        "CEL runtime error: attribute name: parse semantic version: No Major.Minor.Patch \
         elements found"
    );
    assert_eq!(
        with_name("true", json!({"strings": ["fish", "bird"]})).unwrap_err(),
        "CEL runtime error: attribute name: unsupported attribute value"
    );
}

#[test]
fn of_two_errors_the_left_one_counts() {
    let missing = |name: &str| format!("device.attributes[\"x\"].{name} == 1");
    let both = |operator: &str| format!("{} {operator} {}", missing("a"), missing("b"));
    let error = Err("CEL runtime error: no such key: a".to_owned());
    assert_eq!(evaluate(&both("&&"), json!({})), error);
    assert_eq!(evaluate(&both("||"), json!({})), error);
    assert_eq!(evaluate(&format!("!({} && true)", missing("a")), json!({})), error);
    assert_eq!(evaluate(&format!("{} || true", missing("a")), json!({})), Ok(true));
    assert_eq!(evaluate(&format!("true && {}", missing("a")), json!({})), error);
    assert_eq!(evaluate(&format!("false && {}", missing("a")), json!({})), Ok(false));
}

#[test]
fn types_that_do_not_go_together() {
    let name = "device.attributes[\"dra.example.com\"].name";
    let error = |rest: &str, value: Value| with_name(&format!("{name}{rest}"), value).unwrap_err();
    let fish = || json!({"string": "fish"});
    assert_eq!(error(" > 0", fish()), "CEL runtime error: no such overload");
    assert_eq!(
        error(".isGreaterThan(semver(\"1.0.0\"))", fish()),
        "CEL runtime error: no such overload: isGreaterThan(string, kubernetes.Semver)"
    );
    assert_eq!(error(" && true", fish()), "CEL runtime error: no such overload");
    // Values of different types are not equal, without an error.
    assert_eq!(with_name(&format!("{name} == 1"), fish()), Ok(false));
}

#[test]
fn an_expression_cannot_run_for_ever() {
    let ten = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]";
    let nested = |depth: usize| {
        let open: String = (0..depth).map(|at| format!("{ten}.all(x{at}, ")).collect();
        format!("{open}true{}", ")".repeat(depth))
    };
    assert_eq!(evaluate(&nested(2), json!({})), Ok(true));
    let error = evaluate(&nested(7), json!({})).unwrap_err();
    assert_eq!(error, "CEL runtime error: operation cancelled: actual cost limit exceeded");
}

/// `expression` on a device whose attribute `name` is this list, with the gate for lists.
fn with_list(expression: &str, value: Value) -> Result<bool, String> {
    let device = json!({"attributes": {"name": value, "single": {"string": "fish"}}});
    let device: Device = serde_json::from_value(device).unwrap();
    let options = Options { lists: true, ..DEFAULT };
    let answer = compile(expression.into(), options).matches(DRIVER.into(), &device);
    answer.map_err(|error| error.to_string())
}

#[test]
fn attributes_may_be_lists_behind_their_gate() {
    let name = |rest: &str| format!("device.attributes[\"dra.example.com\"].name{rest}");
    let animals = || json!({"strings": ["fish", "bird"]});
    assert_eq!(with_list(&name(".includes(\"fish\")"), animals()), Ok(true));
    assert_eq!(with_list(&name(".includes(\"cat\")"), animals()), Ok(false));
    assert_eq!(with_list(&name(".exists(x, x == \"bird\")"), animals()), Ok(true));
    assert_eq!(with_list(&name(".all(x, x.startsWith(\"f\"))"), animals()), Ok(false));
    assert_eq!(with_list(&name(".size() == 2"), animals()), Ok(true));
    assert_eq!(with_list(&name("[1] == \"bird\""), animals()), Ok(true));
    assert_eq!(with_list(&name(".includes(2)"), json!({"ints": [1, 2]})), Ok(true));
    assert_eq!(with_list(&name(".includes(false)"), json!({"bools": [true]})), Ok(false));
    let newer = name(".exists(v, v.isGreaterThan(semver(\"1.0.0\")))");
    assert_eq!(with_list(&newer, json!({"versions": ["0.9.0", "1.2.0"]})), Ok(true));
    let broken = with_list(&name(".size() == 1"), json!({"versions": ["one"]}));
    assert!(broken.unwrap_err().contains("attribute name: parse semantic version"));
    // On a single value it means equality.
    let single = "device.attributes[\"dra.example.com\"].single.includes(\"fish\")";
    assert_eq!(with_list(single, animals()), Ok(true));
    let long: Vec<i64> = (0..49).collect();
    let text = "'includes' function cannot be applied to lists longer than 48 values";
    let error = with_list(&name(".includes(50)"), json!({"ints": long})).unwrap_err();
    assert!(error.contains(text), "{error}");
}

#[test]
fn without_the_gate_a_list_is_no_attribute() {
    let name = "device.attributes[\"dra.example.com\"].name";
    let error = with_name(&format!("{name}.size() == 1"), json!({"ints": [1]})).unwrap_err();
    assert_eq!(error, "CEL runtime error: attribute name: unsupported attribute value");
    assert_eq!(with_name(&format!("{name}.includes(1)"), json!({"int": 1})), Ok(true));
}

/// Stored expressions can use whatever any gate allows; the stable allocator does not disable it.
#[test]
fn gates_take_nothing_from_expressions() {
    let options = Options { lists: false, sharing: false };
    let device: Device = serde_json::from_value(json!({"allowMultipleAllocations": true})).unwrap();
    let matches = |text: &str| compile(text.into(), options).matches(DRIVER.into(), &device);
    assert_eq!(matches("device.allowMultipleAllocations"), Ok(false));
    assert_eq!(matches("[1, 2].includes(2) && device.driver.includes(device.driver)"), Ok(true));
}

#[test]
fn upstreams_answers() {
    let mut text = String::new();
    flate2::read::GzDecoder::new(ANSWERS).read_to_string(&mut text).unwrap();
    let mut wrong = Vec::new();
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let device: Device = serde_json::from_value(case["dev"].clone()).unwrap();
        let options = Options { lists: case["lists"] == true, ..DEFAULT };
        let expression = case["expr"].as_str().unwrap();
        let answer = compile(expression.into(), options).matches(DRIVER.into(), &device);
        let answer = answer.map_or_else(|error| error.to_string(), |answer| answer.to_string());
        if case["answer"] != *answer {
            wrong.push(format!("{expression}\n  {}\n  {answer}", case["answer"]));
        }
    }
    assert!(text.lines().count() > 500 && wrong.is_empty(), "{}", wrong.join("\n"));
}
