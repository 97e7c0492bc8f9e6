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
