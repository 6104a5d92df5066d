//! Quantities compared with upstream's results.

use super::*;

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap()
}

#[test]
fn reads_rounding_up_and_prints_canonically() {
    let cases = [
        ("100m", 1, 100, "100m"),
        ("1.5Gi", 1_610_612_736, 1_610_612_736_000, "1536Mi"),
        ("0.1m", 1, 1, "100u"),
        ("1000m", 1, 1000, "1"),
        ("-5n", -1, -1, "-5n"),
        ("1e3", 1000, 1_000_000, "1e3"),
        ("+1Gi", 1_073_741_824, 1_073_741_824_000, "+1Gi"),
        ("8Ei", i64::MAX, -1000, "9223372036854775807"),
        ("0.5Ki", 512, 512_000, "512"),
        ("0", 0, 0, "0"),
        ("000", 0, 0, "0"),
    ];
    for (text, value, milli, canonical) in cases {
        let read = quantity(text);
        assert_eq!((read.value(), read.milli_value()), (value, milli), "{text}");
        assert_eq!(read.to_string(), canonical, "{text}");
    }
}

#[test]
fn rejects_what_upstream_rejects() {
    let cases = [
        ("", QuantityError::Format),
        ("1 Gi", QuantityError::Format),
        ("x", QuantityError::Format),
        ("1e", QuantityError::Suffix),
        ("1KB", QuantityError::Format),
        ("1KiB", QuantityError::Format),
        ("1e10Gi", QuantityError::Format),
        ("1MM", QuantityError::Suffix),
    ];
    for (text, error) in cases {
        assert_eq!(Quantity::parse(text).unwrap_err(), error, "{text}");
    }
}

#[test]
fn sums_are_exact_before_rounding() {
    let mut sum = quantity("100u");
    sum.add(&quantity("100u"));
    assert_eq!((sum.milli_value(), sum.to_string()), (1, "200u".into()));
    sum.sub(&quantity("1"));
    assert_eq!(sum.to_string(), "-999800u");
    let mut large = quantity("9E");
    large.add(&quantity("9E"));
    assert_eq!(large.to_string(), "18E");
    assert!(large > quantity("9E"));
}

#[test]
fn compares_across_notations() {
    assert_eq!(quantity("1Ki"), quantity("1024"));
    assert_eq!(quantity("1000m"), quantity("1"));
    assert!(quantity("1G") < quantity("1Gi"));
    assert!(quantity("1e40") > quantity("9E"));
}

#[test]
fn rounds_to_milli_as_the_api_does() {
    let mut fine = quantity("100u");
    assert!(!fine.round_up(MILLI));
    assert_eq!(fine.to_string(), "1m");
    let mut coarse = quantity("+1Gi");
    assert!(coarse.round_up(MILLI));
    assert_eq!(coarse.to_string(), "+1Gi");
}

#[test]
fn decodes_text_and_numbers() {
    for (json, printed) in [("\" 2 \"", "2"), ("2", "2"), ("0.5", "500m"), ("-1", "-1")] {
        assert_eq!(serde_json::from_str::<Quantity>(json).unwrap().to_string(), printed);
    }
    let error = serde_json::from_str::<Quantity>("\"1GB\"").unwrap_err().to_string();
    assert!(error.starts_with("\"1GB\" is not a quantity: "), "{error}");
    assert!(serde_json::from_str::<Quantity>("true").is_err());
}

/// Every line of the recorded corpus: text, both parsed values, canonical form or error.
#[test]
fn agrees_with_the_recorded_corpus() {
    let packed = include_bytes!("../../../../tests/conformance/quantity.jsonl.gz");
    let lines = std::io::read_to_string(flate2::read::GzDecoder::new(&packed[..])).unwrap();
    assert_eq!(lines.lines().count(), 300);
    let mut wrong = Vec::new();
    for line in lines.lines() {
        let expected: serde_json::Value = serde_json::from_str(line).unwrap();
        let found = match Quantity::parse(expected["in"].as_str().unwrap()) {
            Err(error) => serde_json::json!({
                "in": expected["in"], "err": error.to_string(), "value": 0, "milli": 0,
            }),
            Ok(read) => serde_json::json!({
                "in": expected["in"],
                "value": read.value(),
                "milli": read.milli_value(),
                "canon": read.to_string(),
            }),
        };
        if found != expected {
            wrong.push(format!("{expected}\n   {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn printing_and_reading_again_keeps_the_number(
            value in any::<i64>(), scale in -9..=0i32, binary: bool,
        ) {
            let format = if binary { Format::BinarySi } else { Format::DecimalSi };
            let made = Quantity::from_int(Int { value, scale }, format);
            let read = Quantity::parse(&made.to_string()).unwrap();
            prop_assert_eq!(&read, &made);
            // Without a binary suffix, the text is parsed as a decimal quantity with its own units.
            if read.format == made.format {
                prop_assert_eq!(read.to_string(), made.to_string());
            }
        }

        #[test]
        fn a_binary_number_without_a_unit_reads_as_a_decimal_one(value in 1..1_000_000_i64) {
            let made = Quantity::new(value * 1_000_125, Format::BinarySi);
            let read = Quantity::parse(&made.to_string()).unwrap();
            prop_assert_eq!(&read, &made);
            let has_unit = made.to_string().ends_with('i');
            prop_assert_eq!(read.format == Format::BinarySi, has_unit);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[-+]?[0-9.]{0,30}[eEinumkKMGTP]{0,2}[-+]?[0-9]{0,12}") {
            if let Ok(read) = Quantity::parse(&text) {
                let again = Quantity::parse(&read.to_string());
                let _readings = (read.value(), read.milli_value(), again.is_ok());
            }
        }

        #[test]
        fn sums_do_not_depend_on_the_order(a in any::<i32>(), b in any::<i32>(), scale in -9..3i32) {
            let (x, y) = (Int { value: a.into(), scale }, Int { value: b.into(), scale: 0 });
            let (x, y) = (
                Quantity::from_int(x, Format::DecimalSi), Quantity::from_int(y, Format::DecimalSi),
            );
            let (mut left, mut right) = (x.clone(), y.clone());
            left.add(&y);
            right.add(&x);
            prop_assert_eq!(&left, &right);
            left.sub(&y);
            prop_assert_eq!(left, x);
        }
    }
}

#[test]
fn fields_are_printed_as_in_go() {
    let printed = |text: &str| Quantity::parse(text).map(|it| it.as_go_struct()).unwrap();
    assert_eq!(printed("2"), "{{2 0} {<nil>}  DecimalSI}");
    assert_eq!(printed("1500m"), "{{1500 -3} {<nil>}  DecimalSI}");
    assert_eq!(printed("1Gi"), "{{1073741824 0} {<nil>}  BinarySI}");
}
