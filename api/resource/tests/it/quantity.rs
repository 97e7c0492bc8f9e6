//! Every row of `data/quantity.tsv`, which `data/quantity_vectors.go` printed with k8s.io/apimachinery v0.34.3.

use koord_resource::quantity::{Format, Quantity};

fn rows(kind: &str) -> impl Iterator<Item = Vec<&'static str>> {
    let rows = include_str!("../data/quantity.tsv").lines().map(|line| line.split('\t').collect::<Vec<_>>());
    rows.filter(move |row| row[0] == kind)
}

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap()
}

fn format_name(quantity: &Quantity) -> String {
    format!("{:?}", quantity.format())
}

#[test]
fn texts_are_read_and_printed_as_in_go() {
    let mut seen = 0;
    for row in rows("parse") {
        seen += 1;
        let text = row[1];
        if let Some(error) = row[2].strip_prefix('!') {
            assert_eq!(text.parse::<Quantity>().map_err(|error| error.to_string()).unwrap_err(), error, "{text:?}");
            continue;
        }
        let quantity = quantity(text);
        let (mut up, mut kilo) = (quantity.clone(), quantity.clone());
        let (up_exact, kilo_exact) = (up.round_up(0), kilo.round_up(3));
        let answers = [
            quantity.to_string(),
            (-(-quantity.clone())).to_string(),
            format_name(&quantity),
            quantity.value().to_string(),
            quantity.milli_value().to_string(),
            quantity.signum().to_string(),
            quantity.as_i64().is_some().to_string(),
            up.to_string(),
            up_exact.to_string(),
            kilo.to_string(),
            kilo_exact.to_string(),
        ];
        assert_eq!(answers, row[2..13], "{text:?}");
        let float = row[13].replace("+Inf", "inf");
        assert!(
            (quantity.as_f64() - float.parse::<f64>().unwrap()).abs() <= quantity.as_f64().abs() * 1e-15
                || float == "inf",
            "{text:?}"
        );
    }
    assert!(seen >= 1500);
}

#[test]
fn sums_differences_and_orders_are_gos() {
    for row in rows("pair") {
        let (x, y) = (quantity(row[1]), quantity(row[2]));
        let (sum, difference) = (x.clone() + &y, x.clone() - &y);
        let answers = [
            sum.to_string(),
            format_name(&sum),
            difference.to_string(),
            format_name(&difference),
            (x.cmp(&y) as i8).to_string(),
            sum.value().to_string(),
            difference.milli_value().to_string(),
        ];
        assert_eq!(answers, row[3..10], "{row:?}");
    }
}

#[test]
fn products_are_gos() {
    for row in rows("mul") {
        let mut product = quantity(row[1]);
        let exact = product.multiply(row[2].parse().unwrap());
        assert_eq!([product.to_string(), exact.to_string()], row[3..5], "{row:?}");
    }
}

#[test]
fn numbers_take_the_format_they_are_given() {
    for row in rows("new") {
        let number = row[1].parse().unwrap();
        let format = [Format::DecimalSI, Format::BinarySI, Format::DecimalExponent]
            .into_iter()
            .find(|format| format!("{format:?}") == row[2])
            .unwrap();
        let answers = [Quantity::new(number, format).to_string(), Quantity::from_milli(number, format).to_string()];
        assert_eq!(answers, row[3..5], "{row:?}");
    }
}

/// Pairs of texts, and whether Go's `reflect.DeepEqual` finds what is read from them equal.
const FORMS: [(&str, &str, bool); 36] = [
    ("1", "1", true),
    ("1", "1000m", false),
    ("1", "1.0", false),
    ("1", "+1", false),
    ("1", "01", false),
    ("1", "1e0", false),
    ("-1", "-1", true),
    ("0", "0", true),
    ("0", "00", false),
    ("0", "0m", false),
    ("00", "+0", true),
    ("00", "0Ki", false),
    ("1000", "1k", false),
    // No text is kept after three zeros.
    ("1000", "01000", true),
    ("1000", "+1000", true),
    ("1000", "1000.0", false),
    ("1000m", "1.000", true),
    ("1000m", "1", false),
    ("500m", "500m", true),
    ("500m", "0.5", false),
    // No text is kept without digits before the point, or with a scale that is no multiple of three.
    ("500m", "0.500", false),
    ("0.500", ".500", true),
    ("0.5", ".5", true),
    ("1.5", "01.5", true),
    ("1.500", "1500m", false),
    ("1.500", "1.500", true),
    ("1Ki", "1Ki", true),
    ("1Ki", "1024", false),
    ("1Ki", "01Ki", false),
    // No text is kept of a multiple of eight.
    ("8Ki", "08Ki", true),
    ("1024Ki", "+1024Ki", true),
    ("1024Ki", "1Mi", false),
    // What is beyond the fast path has a scale of nine, and no text.
    ("1.5Gi", "1.50Gi", true),
    ("1n", "0.1n", false),
    ("0.1n", "0.2n", true),
    ("9223372036854775808Ki", "9223372036854775809Ki", true),
];

#[test]
fn amounts_have_one_form_where_go_keeps_them_alike() {
    for (x, y, alike) in FORMS {
        assert_eq!(quantity(x).has_form_of(&quantity(y)), alike, "{x} and {y}");
        assert_eq!(quantity(y).has_form_of(&quantity(x)), alike, "{y} and {x}");
    }
}

#[test]
fn what_is_computed_has_the_form_of_texts_that_go_does_not_keep() {
    for (text, alike) in [("1000", true), ("2000", false), ("1k", false), ("1e3", false), ("1000.000", false)] {
        assert_eq!(quantity(text).has_form_of(&Quantity::new(1000, Format::DecimalSI)), alike, "{text}");
    }
    assert!(!quantity("500").has_form_of(&Quantity::new(500, Format::DecimalSI)), "Go keeps the text");
    let sum = Quantity::ZERO + &quantity("500");
    assert!(sum.has_form_of(&Quantity::new(500, Format::DecimalSI)), "a sum has no text");
    let mut rounded = quantity("500");
    assert!(rounded.round_up(0) && rounded.has_form_of(&quantity("500")), "nothing is rounded");
}
