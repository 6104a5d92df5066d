//! What templates become, and what is wrong with some.

use std::path::Path;

use proptest::prelude::*;

use super::Template;

fn parsed(text: &str) -> Result<Template, String> {
    Template::parse(Path::new("pod.yaml"), text).map_err(|error| error.to_string())
}

fn rendered(text: &str) -> String {
    let rendered = parsed(text).and_then(|it| it.render(7, 20).map_err(|error| error.to_string()));
    rendered.unwrap_or_else(|error| error)
}

#[test]
fn values_are_inserted() {
    for (text, expected) in [
        ("name: a-{{.Index}}", "name: a-7"),
        ("{{ .Index }} of {{ .Count }}", "7 of 20"),
        ("memory: {{ DivideInt 30000 .Count }}Mi", "memory: 1500Mi"),
        ("8{{ Mod .Index 5 }}", "82"),
        ("{{ .Index | Mod 20 }}", "6"),
        ("{{ AddInt (MultiplyInt .Index 2) 1 2 }}", "17"),
        ("{{ SubtractInt .Index 9 }}", "-2"),
        ("{{ DivideInt 7 2 }} {{ DivideInt -7 2 }}", "3 -3"),
        ("{{ DivideFloat .Index 2 }}", "3.5"),
        ("{{ DivideFloat 4 2 }}", "2"),
        ("{{ MultiplyFloat 1e20 10 }} {{ DivideFloat 1 100000 }}", "1e+21 1e-05"),
        ("{{ AddFloat \"0.5\" `1` }}", "1.5"),
        ("a{{/* a comment */}}b", "ab"),
        ("a \n {{- .Index -}} \n b", "a7b"),
        ("a {{-1}}", "a -1"),
        ("no action }} here", "no action }} here"),
    ] {
        assert_eq!(rendered(text), expected, "{text}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    for (text, expected) in [
        ("a\nb: {{ .Index", "pod.yaml:2: \"{{\" has no \"}}\""),
        ("{{ .Name }}", "pod.yaml:1: there is no field \".Name\"; there are .Index and .Count"),
        (
            "\n\n{{ if .Index }}",
            "pod.yaml:3: \"if\" is not supported: scheduler_perf's templates only insert values",
        ),
        ("{{ Mod .Index 0 }}", "pod.yaml:1: Mod: division by zero"),
        ("{{ DivideInt 1 0 }}", "pod.yaml:1: DivideInt: division by zero"),
        ("{{ Mod 1 }}", "pod.yaml:1: Mod: takes 2 numbers, but there are 1"),
        ("{{ AddInt \"x\" }}", "pod.yaml:1: AddInt: \"x\" is not a number"),
        ("{{ (AddInt 1 }}", "pod.yaml:1: \"(\" has no \")\""),
        ("{{ 1 2 }}", "pod.yaml:1: unexpected \"2\" in \"1 2\""),
        ("{{ 1 | 2 }}", "pod.yaml:1: only a function can follow \"|\""),
        ("{{}}", "pod.yaml:1: an action is empty or ends too early"),
        ("{{ \"a }}", "pod.yaml:1: a quote is not closed in \"\\\"a\""),
    ] {
        assert_eq!(rendered(text), expected, "{text}");
    }
    assert!(rendered("{{ Modulo 1 2 }}").contains("no function \"Modulo\"; there are AddFloat,"));
}

#[test]
fn a_template_without_actions_is_constant() {
    assert!(parsed("kind: Pod # {{/* nothing */}}").unwrap().is_constant());
    assert!(!parsed("name: a-{{.Index}}").unwrap().is_constant());
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[-{}|().a-z0-9 \"`/*\n]{0,40}", index in 0..9usize) {
        if let Ok(template) = parsed(&text) {
            let _rendered = template.render(index, 9);
        }
    }
}
