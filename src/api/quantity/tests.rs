//! Quantities against the values that upstream gives.

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
fn refuses_what_upstream_refuses() {
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
